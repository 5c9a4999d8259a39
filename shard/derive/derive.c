#include "shard/derive/derive.h"

#include <pthread.h>

#include "lib/base/hash.h"
#include "shard/derive/derive_int.h"
#include "shard/derive/device_time.h"

/* What part->derived points at. The locks are held while deriving and making, so that the second
 * worker waits for the first one's result. */
struct derived {
    pthread_mutex_t lock;
    struct derive d, groups; /* groups: without the lines of TPU cores that are made here */
    bool done, groups_done;
    struct kept {
        pthread_mutex_t lock;
        void *p;
    } kept[DERIVE_KEPT_COUNT];
};

static pthread_mutex_t part_lock = PTHREAD_MUTEX_INITIALIZER; /* over part->derived itself */

static void derived_free(void *p)
{
    struct derived *x = p;
    pthread_mutex_destroy(&x->lock);
    for (int i = 0; i < DERIVE_KEPT_COUNT; i++)
        pthread_mutex_destroy(&x->kept[i].lock);
    free(x);
}

static struct derived *derived_of(struct part *p)
{
    pthread_mutex_lock(&part_lock);
    struct derived *x = p->derived;
    if (!x && (x = calloc(1, sizeof *x))) {
        pthread_mutex_init(&x->lock, NULL);
        for (int i = 0; i < DERIVE_KEPT_COUNT; i++)
            pthread_mutex_init(&x->kept[i].lock, NULL);
        p->derived_free = derived_free;
        p->derived = x;
    }
    pthread_mutex_unlock(&part_lock);
    return x;
}

/* --- scratch --- */

enum xp_status derive_busy(struct derive_work *w)
{
    return xp_fail(w->err, XP_BUSY, 0, "no memory left to derive the profile's lines");
}

/* Moves what was gathered to where it stays; NULL for nothing. */
static bool keep(struct derive_work *w, struct vec *v, size_t size, void *to, uint32_t *n)
{
    void *p = NULL;
    if (v->n && !(p = xp_bump_alloc(&w->bump, v->n * size, 16)))
        return false;
    if (v->n)
        memcpy(p, v->p, v->n * size);
    memcpy(to, &p, sizeof p);
    *n = (uint32_t)v->n;
    return true;
}

/* --- names of derived events --- */

static size_t name_slot(const struct derive_work *w, uint32_t plane, uint32_t name)
{
    size_t i = xp_hash_u64((uint64_t)plane << 32 | name) & w->name_mask;
    for (; w->name_table[i]; i = (i + 1) & w->name_mask) {
        uint32_t k = w->name_table[i] - 1;
        if (w->name_planes[k] == plane && VEC(w->names, struct derive_name)[k].name == name)
            break;
    }
    return i;
}

static bool name_room(struct derive_work *w)
{
    if (w->names.n * 2 < w->name_mask + 1 && w->name_table)
        return true;
    size_t size = w->name_table ? (w->name_mask + 1) * 2 : 256;
    uint32_t *planes = realloc(w->name_planes, size * sizeof *planes);
    if (!planes)
        return false;
    w->name_planes = planes;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(w->name_table);
    w->name_table = table;
    w->name_mask = size - 1;
    for (uint32_t k = 0; k < w->names.n; k++)
        if (planes[k] != UINT32_MAX)
            table[name_slot(w, planes[k], VEC(w->names, struct derive_name)[k].name)] = k + 1;
    return true;
}

static size_t meta_slot(const struct derive_work *w, const struct part_plane *pl, uint32_t name)
{
    size_t i = xp_hash_u64(name) & w->meta_mask;
    while (w->metas[i] && pl->evmeta[w->metas[i] - 1].name != name)
        i = (i + 1) & w->meta_mask;
    return i;
}

/* Names of a plane's metadata can be looked up; the first of a name counts. */
static bool metas_of(struct derive_work *w, uint32_t plane)
{
    const struct part_plane *pl = &w->part->planes[plane];
    if (w->metas && w->meta_plane == plane)
        return true;
    size_t size = 16;
    while (size < (size_t)pl->nevmeta * 2)
        size *= 2;
    free(w->metas);
    if (!(w->metas = calloc(size, sizeof *w->metas)))
        return false;
    w->meta_mask = size - 1;
    w->meta_plane = plane;
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        size_t slot = pl->evmeta[i].at ? meta_slot(w, pl, pl->evmeta[i].name) : SIZE_MAX;
        if (slot != SIZE_MAX && !w->metas[slot])
            w->metas[slot] = i + 1;
    }
    return true;
}

/* The plane's own metadata of that name, as XProf's builder would find it. False when memory is
 * out. */
static bool share_metadata(struct derive_work *w, uint32_t plane, struct xp_span name,
                           struct derive_name *n)
{
    const struct part_plane *pl = &w->part->planes[plane];
    uint32_t id = xp_strpool_find(&w->part->strings, name);
    if (id == XP_STRPOOL_FULL)
        return true;
    if (!metas_of(w, plane))
        return false;
    if (!(n->evmeta = w->metas[meta_slot(w, pl, id)]))
        return true;
    struct xp_span display = part_str(w->part, pl->evmeta[n->evmeta - 1].display_name);
    if (display.n)
        n->display = xp_strpool_add(&w->d->strings, display);
    return true;
}

uint32_t derive_name_of(struct derive_work *w, uint32_t plane, struct xp_span name)
{
    uint32_t id = xp_strpool_add(&w->d->strings, name);
    if (id == XP_STRPOOL_FULL || !name_room(w))
        return UINT32_MAX;
    size_t slot = name_slot(w, plane, id);
    if (w->name_table[slot])
        return w->name_table[slot] - 1;
    struct derive_name *n = vec_push(&w->names, sizeof *n);
    if (!n)
        return UINT32_MAX;
    *n = (struct derive_name){.name = id};
    if (!share_metadata(w, plane, name, n)) {
        w->names.n--;
        return UINT32_MAX;
    }
    w->name_planes[w->names.n - 1] = plane;
    w->name_table[slot] = (uint32_t)w->names.n;
    return (uint32_t)w->names.n - 1;
}

bool derive_name_display(struct derive_work *w, uint32_t name, struct xp_span display)
{
    struct derive_name *n = &VEC(w->names, struct derive_name)[name];
    if (!n->display)
        n->display = xp_strpool_add(&w->d->strings, display);
    return n->display != XP_STRPOOL_FULL;
}

/* --- lines --- */

static void line_span(struct part_line *line)
{
    bool any = false;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        int64_t begin, end;
        if (!lane_count(line->lanes[i]))
            continue;
        lane_span(line->lanes[i], &begin, &end);
        if (!any || begin < line->begin_ps)
            line->begin_ps = begin;
        if (!any || end > line->end_ps)
            line->end_ps = end;
        any = true;
    }
}

struct derive_line *derive_add_line(struct derive_work *w, uint32_t plane, int64_t id,
                                    struct xp_span name, struct part_line *line)
{
    struct derive_line *l = vec_push(&w->lines, sizeof *l);
    if (!l)
        return NULL;
    line->plane = plane;
    line->id = id;
    line->derived = true;
    line_span(line);
    uint32_t kept = xp_strpool_add(&w->d->strings, name);
    *l = (struct derive_line){.line = line,
                              .plane = plane,
                              .tid = id,
                              .own_names = true,
                              .group_by = DERIVE_GROUP_NONE,
                              .name = xp_strpool_get(&w->d->strings, kept)};
    return l;
}

struct line_builder *derive_builder(struct derive_work *w, const struct lane_source *sources)
{
    struct line_builder *b = w->builders.n
                                 ? VEC(w->builders, struct line_builder *)[--w->builders.n]
                                 : line_builder_on(w->scratch, &w->bump);
    if (b)
        line_builder_source(b, sources);
    return b;
}

enum xp_status derive_builder_end(struct derive_work *w, struct line_builder *b,
                                  struct part_line *line)
{
    enum xp_status st = line_builder_end(b, line);
    struct line_builder **idle = st == XP_OK ? vec_push(&w->builders, sizeof(void *)) : NULL;
    if (idle)
        *idle = b;
    return st;
}

enum xp_status derive_build(struct derive_work *w, const struct plane_event *ev, size_t n,
                            struct part_line **out)
{
    struct part_line *line = xp_bump_alloc(&w->bump, sizeof *line, 16);
    struct line_builder *b = line ? derive_builder(w, NULL) : NULL;
    if (!b)
        return derive_busy(w);
    *line = (struct part_line){0};
    for (size_t i = 0; i < n; i++)
        if (line_builder_add(b, ev[i].begin_ps, ev[i].end_ps, ev[i].name, ev[i].at) != XP_OK)
            return derive_busy(w);
    if (derive_builder_end(w, b, line) != XP_OK)
        return derive_busy(w);
    line->derived = line->sorted = true;
    line_span(line);
    *out = line;
    return XP_OK;
}

/* --- planes --- */

static bool starts(struct xp_span s, const char *prefix)
{
    return xp_span_starts(s, xp_span_str(prefix));
}

static bool all_digits(struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

static bool is_host_plane(struct xp_span name)
{
    static const char *const hosts[] = {
        "/host:CPU", "Host CPUs",           "/host:tfstreamz", "/host:metadata",
        "Syscalls",  "/host:python-tracer", "/host:CUPTI",     "/host:__ScopeRangeCallStack__"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (xp_span_eq(name, xp_span_str(hosts[i])))
            return true;
    return false;
}

/* N of "...:N" or "...:N more". */
static uint32_t ordinal_of(struct xp_span name)
{
    size_t i = name.n;
    while (i && name.p[i - 1] != ':')
        i--;
    uint64_t v = 0;
    for (; i < name.n && name.p[i] >= '0' && name.p[i] <= '9' && v < UINT32_MAX; i++)
        v = v * 10 + (name.p[i] - '0');
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static bool is_device_plane(struct xp_span name)
{
    return !is_host_plane(name) &&
           (starts(name, "/device") || starts(name, "#Chip") || starts(name, "/custom:"));
}

static bool plane_init(struct derive_work *w, uint32_t i)
{
    const struct part_plane *pl = &w->part->planes[i];
    struct derive_plane *dp = &w->d->planes[i];
    struct xp_span name = part_str(w->part, pl->name);
    *dp = (struct derive_plane){
        .name = name,
        .host = xp_span_eq(name, XP_SPAN_LIT("/host:CPU")),
        .device = is_device_plane(name),
        .tpu = starts(name, "/device:TPU:"),
        .gpu = starts(name, "/device:GPU:"),
        .ordinal = ordinal_of(name),
    };
    dp->tensor_core = dp->tpu && name.n > 12 && all_digits(xp_span_of(name.p + 12, name.n - 12));
    for (uint32_t k = 0; k < pl->nstatmeta; k++)
        if (pl->statmeta[k].kind < STAT_KIND_COUNT)
            dp->kinds |= UINT64_C(1) << pl->statmeta[k].kind;
    if (!pl->nevmeta)
        return true;
    dp->evflags = xp_bump_alloc(&w->bump, pl->nevmeta * sizeof *dp->evflags, 16);
    for (uint32_t k = 0; dp->evflags && k < pl->nevmeta; k++) {
        dp->evflags[k] = derive_event_flags(part_str(w->part, pl->evmeta[k].name));
        dp->evflags_any |= dp->evflags[k];
    }
    dp->hides = dp->evflags_any & EV_INTERNAL;
    return dp->evflags;
}

/* The file's lines, as they are. */
static bool lines_init(struct derive_work *w)
{
    const struct part *p = w->part;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        w->d->planes[i].first_line = (uint32_t)w->lines.n;
        w->d->planes[i].nlines = pl->nlines;
        for (uint32_t k = pl->first_line; k < pl->first_line + pl->nlines; k++) {
            const struct part_line *line = &p->lines[k];
            struct derive_line *l = vec_push(&w->lines, sizeof *l);
            if (!l)
                return false;
            *l = (struct derive_line){.line = line,
                                      .plane = i,
                                      .tid = line->display_id ? line->display_id : line->id,
                                      .name = part_line_name(p, line),
                                      .side = line->side};
            l->module_line = !w->d->grouped && w->d->planes[i].tensor_core &&
                             w->d->planes[i].kinds >> STAT_QUEUE_ID & 1 &&
                             w->d->planes[i].kinds >> STAT_RUN_ID & 1 &&
                             xp_span_eq(part_str(p, line->name), XP_SPAN_LIT("XLA Modules"));
        }
    }
    return true;
}

/* XProf leaves a profile alone when every plane of a host or device knows group ids. */
static bool is_grouped(const struct derive *d)
{
    for (uint32_t i = 0; i < d->part->nplanes; i++) {
        const struct derive_plane *dp = &d->planes[i];
        if ((dp->device || is_host_plane(dp->name)) && !(dp->kinds >> STAT_GROUP_ID & 1))
            return false;
    }
    return true;
}

/* Brings the lines of a plane together, in their order. */
static bool lines_keep(struct derive_work *w)
{
    struct derive *d = w->d;
    size_t n = w->lines.n, at = 0;
    d->lines = xp_bump_alloc(&w->bump, (n ? n : 1) * sizeof *d->lines, 16);
    uint32_t *counts = calloc(w->part->nplanes + 1, sizeof *counts);
    if (!d->lines || !counts) {
        free(counts);
        return false;
    }
    const struct derive_line *lines = w->lines.p;
    for (size_t i = 0; i < n; i++)
        counts[lines[i].plane]++;
    for (uint32_t i = 0; i < w->part->nplanes; i++) {
        d->planes[i].first_line = (uint32_t)at;
        at += counts[i];
        d->planes[i].nlines = 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct derive_plane *dp = &d->planes[lines[i].plane];
        d->lines[dp->first_line + dp->nlines++] = lines[i];
    }
    d->nlines = (uint32_t)n;
    free(counts);
    return true;
}

static int root_order(const void *a, const void *b)
{
    const struct derive_root *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static enum xp_status derive_all(struct derive_work *w)
{
    XP_TRY(derive_group_events(w));
    for (uint32_t i = 0; w->all_lines && i < w->part->nplanes; i++)
        if (w->d->planes[i].tensor_core)
            XP_TRY(derive_tpu_lines(w, i));
    return derive_gpu_lines(w);
}

static int relation_order(const void *a, const void *b)
{
    const struct derive_relation *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->child > y->child) - (x->child < y->child);
}

static void sort_relations(struct vec *v)
{
    struct derive_relation *r = v->p;
    size_t n = 0;
    if (v->n)
        qsort(r, v->n, sizeof *r, relation_order);
    for (size_t i = 0; i < v->n; i++)
        if (!n || relation_order(&r[n - 1], &r[i]))
            r[n++] = r[i];
    v->n = n;
}

/* All that is made of steps and ops has a kilobyte and more a device. */
static enum xp_status devices_check(const struct part *p, struct xp_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nplanes; i++)
        n += is_device_plane(part_str(p, p->planes[i].name));
    return n <= DERIVE_DEVICES_MAX
               ? XP_OK
               : xp_fail(
                     err, XP_TOO_LARGE, 0,
                     "the profile names %u devices: of one host's no more than %d are looked at", n,
                     DERIVE_DEVICES_MAX);
}

static enum xp_status derive_run(struct derive_work *w)
{
    struct derive *d = w->d;
    struct part *p = w->part;
    XP_TRY(devices_check(p, w->err)); /* before anything of the part's memory is taken */
    d->part = p;
    d->host = p->nhostnames ? xp_fnv(XP_FNV_INIT, p->hostnames[0]) : 0;
    d->planes = xp_bump_alloc(&w->bump, (p->nplanes + 1) * sizeof *d->planes, 16);
    if (!d->planes || !xp_strpool_init(&d->strings, p->arena))
        return derive_busy(w);
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (!plane_init(w, i))
            return derive_busy(w);
    d->grouped = is_grouped(d);
    if (!lines_init(w))
        return derive_busy(w);
    if (!d->grouped)
        XP_TRY(derive_all(w));
    if (w->roots.n)
        qsort(w->roots.p, w->roots.n, sizeof(struct derive_root), root_order);
    sort_relations(&w->relations);
    if (!lines_keep(w) || !keep(w, &w->names, sizeof *d->names, &d->names, &d->nnames) ||
        !keep(w, &w->group_names, sizeof *d->group_names, &d->group_names, &d->ngroups) ||
        !keep(w, &w->roots, sizeof *d->roots, &d->roots, &d->nroots) ||
        !keep(w, &w->relations, sizeof *d->relations, &d->relations, &d->nrelations))
        return derive_busy(w);
    return XP_OK;
}

static enum xp_status derive_into(struct part *p, struct derive *d, bool all_lines,
                                  struct xp_error *err)
{
    struct derive_work w = {.d = d, .part = p, .all_lines = all_lines, .err = err};
    *d = (struct derive){0};
    xp_bump_init(&w.bump, p->arena);
    w.scratch = xp_arena_new(NULL);
    bool ok = w.scratch && xp_strpool_init(&w.paths, w.scratch);
    enum xp_status st = ok ? derive_run(&w) : derive_busy(&w);
    xp_arena_free(w.scratch);
    vec_free(&w.names);
    vec_free(&w.lines);
    vec_free(&w.builders);
    vec_free(&w.scopes);
    vec_free(&w.path_at);
    vec_free(&w.group_names);
    vec_free(&w.roots);
    vec_free(&w.relations);
    vec_free(&w.nodes);
    vec_free(&w.contexts);
    free(w.name_table);
    free(w.name_planes);
    free(w.metas);
    return st;
}

enum xp_status derive_get(struct part *p, const struct derive **out, struct xp_error *err)
{
    struct derived *x = derived_of(p);
    if (!x)
        return xp_fail(err, XP_BUSY, 0, "no memory left to derive the profile's lines");
    enum xp_status st = XP_OK;
    pthread_mutex_lock(&x->lock);
    if (!x->done)
        st = derive_into(p, &x->d, true, err);
    x->done = st == XP_OK;
    pthread_mutex_unlock(&x->lock);
    *out = &x->d;
    return st;
}

enum xp_status derive_groups_get(struct part *p, const struct derive **out, struct xp_error *err)
{
    struct derived *x = derived_of(p);
    if (!x)
        return xp_fail(err, XP_BUSY, 0, "no memory left to group the profile's events");
    enum xp_status st = XP_OK;
    pthread_mutex_lock(&x->lock);
    if (!x->done && !x->groups_done) {
        st = derive_into(p, &x->groups, false, err);
        x->groups_done = st == XP_OK;
    }
    *out = x->groups_done ? &x->groups : &x->d;
    pthread_mutex_unlock(&x->lock);
    return st;
}

bool derive_borrow(struct part *p, const struct derive *d)
{
    struct derived *x = derived_of(p);
    if (!x)
        return false;
    x->d = x->groups = *d;
    x->done = x->groups_done = true;
    return true;
}

enum xp_status derive_keep(struct part *p, enum derive_kept slot, derive_make_fn make, void **kept,
                           struct xp_error *err)
{
    const struct derive *d;
    if (slot == DERIVE_KEPT_OP_STATS)
        XP_TRY(device_times_get(p, err));
    if (slot == DERIVE_KEPT_FLOWS || slot == DERIVE_KEPT_LAYERS)
        XP_TRY(derive_get(p, &d, err));
    else
        XP_TRY(derive_groups_get(p, &d, err));
    struct kept *k = &((struct derived *)p->derived)->kept[slot];
    enum xp_status st = XP_OK;
    pthread_mutex_lock(&k->lock);
    if (!k->p)
        st = make(p, d, &k->p, err);
    *kept = k->p;
    pthread_mutex_unlock(&k->lock);
    return st;
}

/* --- looking at events --- */

void derive_look(struct derive_eye *eye, const struct derive *d, const struct derive_line *line)
{
    *eye = (struct derive_eye){.d = d, .line = line};
    side_open(&eye->side, line->side);
}

static bool not_after(const struct derive_span *s, const struct derive_event *ev)
{
    return s->begin_ps < ev->begin_ps || (s->begin_ps == ev->begin_ps && s->end_ps >= ev->end_ps);
}

/* The last span that is not after the event; from where it was found last time. */
static uint32_t span_before(struct derive_eye *eye, const struct derive_event *ev)
{
    const struct derive_span *v = eye->line->spans;
    uint32_t n = eye->line->nspans, lo = 0, hi = n;
    uint32_t at = eye->span;
    if (at < n && not_after(&v[at], ev)) {
        if (at + 1 == n || !not_after(&v[at + 1], ev))
            return at;
        lo = at + 1;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (not_after(&v[mid], ev))
            lo = mid + 1;
        else
            hi = mid;
    }
    eye->span = lo ? lo - 1 : 0;
    return lo ? lo - 1 : UINT32_MAX;
}

static int32_t group_by_spans(struct derive_eye *eye, const struct derive_event *ev)
{
    uint32_t i = span_before(eye, ev);
    const struct derive_span *v = eye->line->spans;
    if (i == UINT32_MAX || eye->line->group_by == DERIVE_GROUP_RUNS)
        return i == UINT32_MAX ? -1 : v[i].group;
    int32_t k = (int32_t)i;
    while (k >= 0 && v[k].end_ps < ev->end_ps)
        k = v[k].parent;
    return k < 0 ? -1 : v[k].group;
}

/* The first step that ends at or after the begin, if it overlaps (touching counts). */
static int32_t group_by_steps(const struct derive_plane *dp, struct derive_eye *eye,
                              const struct derive_event *ev)
{
    const struct derive_span *v = dp->steps;
    uint32_t lo = 0, hi = dp->nsteps, at = eye->span;
    if (at < hi && v[at].end_ps >= ev->begin_ps && (!at || v[at - 1].end_ps < ev->begin_ps)) {
        lo = hi = at;
    }
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (v[mid].end_ps < ev->begin_ps)
            lo = mid + 1;
        else
            hi = mid;
    }
    eye->span = lo;
    return lo < dp->nsteps && v[lo].begin_ps <= ev->end_ps ? v[lo].group : -1;
}

int64_t derive_group(struct derive_eye *eye, const struct derive_event *ev)
{
    const struct derive_line *l = eye->line;
    int32_t g = -1;
    if (l->group_by == DERIVE_GROUP_STEPS)
        g = group_by_steps(&eye->d->planes[l->plane], eye, ev);
    else if (l->nspans)
        g = group_by_spans(eye, ev);
    if (g >= 0)
        return g;
    const struct side_stat *s;
    if (side_kinds(eye->side.side) >> STAT_GROUP_ID & 1 && side_find(&eye->side, ev->at) &&
        (s = side_get(&eye->side, STAT_GROUP_ID)) && (s->type == SIDE_I64 || s->type == SIDE_U64))
        return (int64_t)s->num;
    return DERIVE_NO_GROUP;
}

#define CONTEXT_KINDS                                                                              \
    (UINT64_C(1) << STAT_PRODUCER_TYPE | UINT64_C(1) << STAT_PRODUCER_ID |                         \
     UINT64_C(1) << STAT_CONSUMER_TYPE | UINT64_C(1) << STAT_CONSUMER_ID |                         \
     UINT64_C(1) << STAT_CORRELATION_ID)
#define CONTEXT_FLAGS                                                                              \
    (EV_EXECUTOR | EV_TPU_EXECUTE | EV_ENQUEUE | EV_DEQUEUE | EV_LAUNCH | EV_COMPLETE)

/* What derive_stats_read finds where nothing can make a context, as on most lines: the flow that
 * the file gives. */
static void own_flow_read(const struct side_cursor *side, struct derive_stats *s)
{
    const struct side_stat *flow = NULL, *async = NULL;
    for (int i = 0; i < side->n; i++) {
        if (side->stats[i].kind == STAT_FLOW)
            flow = &side->stats[i];
        else if (side->stats[i].kind == STAT_IS_ASYNC)
            async = &side->stats[i];
    }
    s->has_flow = flow && (flow->type == SIDE_I64 || flow->type == SIDE_U64);
    s->flow = s->has_flow ? flow->num : 0;
    s->async_stat = async && (async->type == SIDE_I64 || async->type == SIDE_U64);
}

bool derive_flow(struct derive_eye *eye, const struct derive_event *ev, struct derive_flow *flow)
{
    if (!eye->side.side || !side_find(&eye->side, ev->at))
        return false;
    const struct derive_plane *dp = &eye->d->planes[eye->line->plane];
    const struct part_plane *pl = &eye->d->part->planes[eye->line->plane];
    struct derive_stats s = {0};
    uint16_t flags = !eye->line->own_names && ev->name < pl->nevmeta ? dp->evflags[ev->name] : 0;
    if (side_kinds(eye->side.side) & CONTEXT_KINDS || flags & CONTEXT_FLAGS ||
        eye->line->module_line)
        derive_stats_read(eye->d, dp, eye->line->module_line, flags, &eye->side, &s);
    else
        own_flow_read(&eye->side, &s);
    return derive_stats_flow(eye->d, dp, &s, flow);
}

struct xp_span derive_group_name(const struct derive *d, int64_t group)
{
    if (group < 0 || group >= d->ngroups)
        return (struct xp_span){0};
    return xp_strpool_get(&d->strings, d->group_names[group]);
}

struct xp_span derive_step_name(struct derive_eye *eye, const struct derive_event *ev)
{
    const struct derive *d = eye->d;
    if (eye->line->named_by_step) {
        struct xp_span s = derive_group_name(d, derive_group(eye, ev));
        if (s.n)
            return s;
    }
    if (eye->line->own_names)
        return (struct xp_span){0};
    uint32_t lo = 0, hi = d->nroots;
    if (hi && (ev->at < d->roots[0].at || ev->at > d->roots[hi - 1].at))
        lo = hi;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (d->roots[mid].at < ev->at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < d->nroots && d->roots[lo].at == ev->at)
        return xp_strpool_get(&d->strings, d->roots[lo].name);
    const struct side_stat *s;
    if (d->planes[eye->line->plane].kinds >> STAT_STEP_NAME & 1 && eye->side.side &&
        side_find(&eye->side, ev->at) && (s = side_get(&eye->side, STAT_STEP_NAME)) &&
        s->type == SIDE_STR)
        return part_str(d->part, (uint32_t)s->num);
    return (struct xp_span){0};
}

struct xp_span derive_event_name(struct derive_eye *eye, const struct derive_event *ev,
                                 struct xp_span *long_name)
{
    const struct derive *d = eye->d;
    struct xp_span name = {0}, display = {0};
    if (eye->line->own_names) {
        if (ev->name < d->nnames) {
            name = xp_strpool_get(&d->strings, d->names[ev->name].name);
            display = xp_strpool_get(&d->strings, d->names[ev->name].display);
        }
    } else {
        const struct part_plane *pl = &d->part->planes[eye->line->plane];
        if (ev->name < pl->nevmeta) {
            name = part_str(d->part, pl->evmeta[ev->name].name);
            display = part_str(d->part, pl->evmeta[ev->name].display_name);
        }
    }
    if (long_name)
        *long_name = display.n ? name : (struct xp_span){0};
    struct xp_span step = derive_step_name(eye, ev);
    if (step.n)
        return step;
    return display.n ? display : name;
}
