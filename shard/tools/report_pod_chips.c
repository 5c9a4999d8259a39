/* Of the report of hosts and steps: cores where their chips sit, and what they did in a step. */
#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_pod.h"
#include "shard/tools/topology.h"

#define NOTE 480

struct place {
    const struct comm_core *core; /* NULL: of a GPU or CPU */
    const struct pod_core *sums;
    int64_t chip, slice;
    uint32_t xyz[3];
    uint64_t step_ps, own_ps, compute_ps, wait_ps, input_ps; /* of the step, or means */
    int64_t begin_ps;
    bool has_step;
};

struct chips {
    const struct figures *f;
    const struct comm *c;
    struct place *v;
    uint32_t n;
    int64_t slices, most; /* most: the highest number of a chip in a slice */
};

static const struct report_column columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"core", "Core", "", REPORT_COL_TEXT, false, "its plane"},
    {"id", "Id", "count", REPORT_COL_NUMBER, false, "as programs number cores; n/a: not told"},
    {"chip", "Chip", "count", REPORT_COL_NUMBER, false, "unique within the slice"},
    {"core_in_chip", "Core in chip", "count", REPORT_COL_NUMBER, false, ""},
    {"slice", "Slice", "count", REPORT_COL_NUMBER, false, "counted from 0, in order of hosts"},
    {"x", "x", "count", REPORT_COL_NUMBER, false, "place in the torus: see the table's note"},
    {"y", "y", "count", REPORT_COL_NUMBER, false, ""},
    {"z", "z", "count", REPORT_COL_NUMBER, false, ""},
    {"step_time", "Step time", "ps", REPORT_COL_NUMBER, false, "of the step, else mean"},
    {"own_time", "Step less waiting", "ps", REPORT_COL_NUMBER, false,
     "the longest holds up the others"},
    {"compute", "Compute", "ps", REPORT_COL_NUMBER, false, "busy, not waiting for others"},
    {"waiting", "Waiting", "ps", REPORT_COL_NUMBER, false, "in collectives, barriers, receives"},
    {"input", "Input", "ps", REPORT_COL_NUMBER, false, "waiting for it, the pause after included"},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the step; n/a for means"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct chips *v = ctx;
    const struct place *p = &v->v[i];
    *c++ = report_of_text(p->sums->host->name);
    *c++ = report_of_text(p->sums->core->name);
    *c++ = p->core && !p->core->by_number ? report_of_i64(p->core->id) : report_none();
    *c++ = p->core ? report_of_i64(p->chip) : report_none();
    *c++ = p->core ? report_of_u64(p->core->core_num) : report_none();
    *c++ = p->core ? report_of_i64(p->slice) : report_none();
    for (int k = 0; k < 3; k++)
        *c++ = report_of_u64(p->xyz[k]);
    const uint64_t ps[] = {p->step_ps, p->own_ps, p->compute_ps, p->wait_ps, p->input_ps};
    for (size_t k = 0; k < sizeof ps / sizeof *ps; k++)
        *c++ = p->has_step ? report_of_u64(ps[k]) : report_none();
    *c++ = report_of_text(p->sums->core->name);
    *c = p->has_step && p->begin_ps != INT64_MIN ? report_of_i64(p->begin_ps) : report_none();
}

/* --- what they did --- */

static void of_step(struct place *p, int64_t number)
{
    const struct figure_core *core = p->sums->core;
    for (uint32_t i = 0; i < core->nsteps; i++) {
        const struct figure_step *s = &core->steps[i];
        if (s->number != number)
            continue;
        struct pod_core one = {.host = p->sums->host, .core = core};
        pod_core_add(&one, s);
        p->step_ps = one.step_ps;
        p->own_ps = one.own_ps;
        p->compute_ps = one.compute_ps;
        p->wait_ps = one.wait_ps;
        p->input_ps = one.input_ps;
        p->begin_ps = s->begin_ps;
        p->has_step = true;
        return;
    }
}

static void of_all(struct place *p)
{
    const struct pod_core *s = p->sums;
    p->has_step = s->steps > 0;
    p->begin_ps = INT64_MIN;
    if (!p->has_step)
        return;
    p->step_ps = s->step_ps / s->steps;
    p->own_ps = s->own_ps / s->steps;
    p->compute_ps = s->compute_ps / s->steps;
    p->wait_ps = s->wait_ps / s->steps;
    p->input_ps = s->input_ps / s->steps;
}

/* --- where they are --- */

/* Cores of the facts by host and plane's number. */
static bool find_cores(struct chips *v, struct xp_arena *a)
{
    struct idmap by;
    idmap_init(&by, a);
    for (size_t i = 0; i < v->c->cores.n; i++) {
        const struct comm_core *core = &VEC(v->c->cores, struct comm_core)[i];
        if (!idmap_put(&by, (uint64_t)core->host << 32 | core->ordinal, (uint32_t)i))
            return false;
    }
    for (uint32_t i = 0; i < v->n; i++) {
        const struct pod_core *s = v->v[i].sums;
        uint64_t host = (uint64_t)(s->host - v->f->hosts);
        uint32_t at;
        if (s->core->kind == FIGURE_TENSOR_CORE &&
            idmap_get(&by, host << 32 | s->core->ordinal, &at))
            v->v[i].core = &VEC(v->c->cores, struct comm_core)[at];
    }
    return true;
}

/* Numbers of chips: as the profile says, else in order of hosts. Where two cores have the same, the
 * later one is of the next slice. */
static bool number(struct chips *v, struct xp_arena *a)
{
    struct idmap seen;
    int64_t next = 0;
    idmap_init(&seen, a);
    v->slices = 1;
    for (uint32_t i = 0; i < v->n; i++) {
        struct place *p = &v->v[i];
        if (!p->core)
            continue;
        p->chip = p->core->chip >= 0 && p->core->chip < TOPOLOGY_CHIPS ? p->core->chip : next;
        next = p->chip >= next ? p->chip + 1 : next;
        uint64_t key = (uint64_t)p->chip << 32 | p->core->core_num;
        uint32_t before = 0;
        if (idmap_get(&seen, key, &before))
            before++;
        if (!idmap_put(&seen, key, before))
            return false;
        p->slice = before;
        v->slices = (int64_t)before + 1 > v->slices ? (int64_t)before + 1 : v->slices;
        v->most = p->chip > v->most ? p->chip : v->most;
    }
    return true;
}

static uint32_t cores_of_chip(const struct chips *v)
{
    uint32_t cores = 1;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->v[i].core && v->v[i].core->core_num >= cores && v->v[i].core->core_num < 16)
            cores = v->v[i].core->core_num + 1;
    return cores;
}

/* The numbers go on from slice to slice, and the program tells how many devices one has. */
static void split(struct chips *v)
{
    uint32_t cores = cores_of_chip(v);
    int64_t each = v->c->per_slice / cores;
    if (v->slices > 1 || v->c->slices < 2 || each < 1 || v->most < each)
        each = INT64_MAX; /* one slice, or each counts from 0 */
    if (v->c->slices > 1 && v->slices == 1 && v->most < v->c->per_slice / cores)
        v->most = v->c->per_slice / cores - 1; /* of which not all are here */
    for (uint32_t i = 0; i < v->n && each < INT64_MAX; i++) {
        v->v[i].slice = v->v[i].chip / each;
        v->v[i].chip %= each;
        v->slices = v->v[i].slice >= v->slices ? v->v[i].slice + 1 : v->slices;
        v->most = each - 1;
    }
}

static void by_hosts(struct chips *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        v->v[i].xyz[0] = v->v[i].sums->core->ordinal;
        v->v[i].xyz[1] = (uint32_t)(v->v[i].sums->host - v->f->hosts);
        v->v[i].xyz[2] = 0;
    }
}

/* How many chips a slice has, whichever of its hosts are here: as many as the program is for, and
 * a slice that there is. 0: no slice is so large. */
static uint32_t size_of_slice(const struct chips *v, struct xp_span device)
{
    int64_t slices = v->slices > v->c->slices ? v->slices : v->c->slices, cores = cores_of_chip(v);
    int64_t all = cores * (slices > 1 ? slices : 1);
    int64_t told = (v->c->partitions + all - 1) / all, seen = v->most + 1;
    return topology_whole(device, (uint32_t)(told > seen ? told : seen));
}

static uint32_t chips_here(const struct chips *v, struct xp_arena *a)
{
    struct idmap seen;
    uint32_t n = 0, at;
    idmap_init(&seen, a);
    for (uint32_t i = 0; i < v->n; i++) {
        uint64_t key = (uint64_t)v->v[i].slice << 32 | (uint64_t)v->v[i].chip;
        if (!v->v[i].core || idmap_get(&seen, key, &at))
            continue;
        n++;
        if (!idmap_put(&seen, key, 0))
            break;
    }
    return n;
}

static const char *note_of(struct chips *v, const struct tool_args *args, struct report *r,
                           struct xp_error *err)
{
    struct xp_span asked = {0}, device = v->f->nhosts ? v->f->hosts[0].chip : (struct xp_span){0};
    uint32_t whole = size_of_slice(v, device);
    struct topology t = topology_of(device, whole);
    struct xp_error small = {0};
    char *note = xp_arena_alloc(r->a, NOTE), size[48], missing[160] = "";
    if (tool_arg(args, "topology", &asked) && asked.n) {
        struct topology own;
        if (topology_parse(asked, 1, &own, err))
            return NULL;
        if (topology_parse(asked, (uint32_t)v->most + 1, &own, &small) == XP_OK)
            t = own;
        else
            report_note(r, REPORT_WARNING, "small_topology", "%s.", small.text);
        asked.n = small.status == XP_OK ? asked.n : 0;
    }
    if (!note) {
        xp_fail(err, XP_BUSY, 0, "no memory left for the report");
        return NULL;
    }
    if (!whole && !asked.n)
        return "No torus: no slice is as large as the numbers of these chips say. x is the "
               "device's "
               "number, y its host; topology=4x8 says a shape.";
    for (uint32_t i = 0; i < v->n; i++)
        topology_place(&t, (uint32_t)v->v[i].chip, v->v[i].xyz);
    snprintf(size, sizeof size, t.solid ? "%u x %u x %u" : "%u x %u", t.dims[0], t.dims[1],
             t.dims[2]);
    uint64_t all = (uint64_t)t.dims[0] * t.dims[1] * t.dims[2] * (uint64_t)v->slices;
    uint32_t here = chips_here(v, r->a);
    if (here < all)
        snprintf(missing, sizeof missing, "%u of %llu chips are here, the others' hosts are not. ",
                 here, (unsigned long long)all);
    snprintf(note, NOTE, "%s: %s%s, chips in order of their numbers, x first. %s%s",
             asked.n ? "The torus as it was asked for" : "Assumed", size,
             v->slices > 1 ? " a slice" : "", missing,
             asked.n ? ""
                     : "No profile records coordinates: this is the shape that slices of this type "
                       "and size have; topology=4x8 says another.");
    return note;
}

/* A step that is not there, be it for the range or the hosts that were chosen, is none. */
static enum xp_status parse_step(struct report *r, const struct tool_args *args,
                                 const struct figures *f, bool *any, int64_t *step,
                                 struct xp_error *err)
{
    struct xp_span s = {0};
    *any = tool_arg(args, "step", &s) && s.n;
    *step = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || s.n > 15)
            return xp_fail(err, XP_BAD_REQUEST, 0, "step is the number of one step");
        else
            *step = *step * 10 + (s.p[i] - '0');
    for (uint32_t i = 0; *any && i < f->nsteps; i++)
        if (f->steps[i].number == *step)
            return XP_OK;
    if (*any)
        report_note(r, REPORT_WARNING, "no_such_step",
                    "There is no step %lld in what the page is about: chips show means.",
                    (long long)*step);
    *any = false;
    return XP_OK;
}

enum xp_status report_pod_chips(struct report *r, const struct figures *f, const struct comm *c,
                                const struct pod_core *cores, uint32_t n,
                                const struct tool_args *args, struct xp_error *err)
{
    struct chips v = {.f = f, .c = c, .v = xp_arena_zalloc(r->a, ((size_t)n + 1) * sizeof *v.v)};
    const char *note = "No torus: these devices have no place in one. x is the device's number, y "
                       "its host.";
    bool one, tpu = false;
    int64_t step;
    XP_TRY(parse_step(r, args, f, &one, &step, err));
    if (!v.v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    for (uint32_t i = 0; i < n; i++)
        if (cores[i].core->kind != FIGURE_SPARSE_CORE)
            v.v[v.n++].sums = &cores[i];
    if (!find_cores(&v, r->a) || !number(&v, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    split(&v);
    for (uint32_t i = 0; i < v.n; i++) {
        tpu |= v.v[i].core != NULL;
        if (one)
            of_step(&v.v[i], step);
        else
            of_all(&v.v[i]);
    }
    by_hosts(&v);
    if (tpu && !(note = note_of(&v, args, r, err)))
        return err->status;
    report_table(r, &(struct report_rows){.id = "chips",
                                          .title = tpu ? "Chips in the torus" : "Devices by host",
                                          .note = note,
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v.n,
                                          .row = row,
                                          .ctx = &v,
                                          .aside = true});
    return XP_OK;
}
