#include "shard/tools/comm.h"

#include <stdio.h>

#include "lib/base/pb_wire.h"
#include "shard/hlo/hlo.h"
#include "shard/stats/figures.h"
#include "shard/tools/op_words.h"
#include "shard/tools/profile.h"

enum form { NONE, WHOLE, START, DONE };

/* What an event's name tells. */
struct op {
    struct op_words w;
    uint64_t program;
    uint8_t form, kind; /* enum form, enum comm_kind */
    uint32_t start;     /* of a done: its start + 1; 0: not known */
    uint32_t name;      /* in strings */
    uint32_t channel;   /* place + 1, of a permute, send or receive */
    uint32_t edge;      /* place + 1, of the core at hand */
    uint32_t label;     /* of the core's group */
    bool labelled, open, paired;
    int64_t begin_ps;
};

struct reader {
    struct comm *c;
    const struct tool_host *host;
    const struct part_plane *plane;
    const struct figure_core *figures; /* NULL: steps of the core are not known */
    struct op *ops;
    bool *wanted;
    uint32_t core;
    /* Programs of several slices may number the partitions of each from 0: what to add to get ids
     * of cores. */
    int64_t base;
    uint32_t step; /* a place in figures->steps */
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for channels");
}

/* --- the core --- */

enum { DETAILS, DEVICE, CHIP, PROGRAM, COLLECTIVE, NAMES };
static const char *const names[NAMES] = {"core_details", "device_id", "global_chip_id",
                                         "program_id", "dcn_collective_info"};

/* CoreDetails */
static void read_details(struct comm_core *core, struct xp_span bytes)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field f;
    int64_t id = 0, chip = 0, num = 0; /* proto3: what is 0 is not there */
    while (xp_pb_next(&msg, &f)) {
        if (f.type != XP_PB_VARINT)
            continue;
        num = f.num == 3 ? (int64_t)(uint32_t)f.value : num;
        chip = f.num == 5 ? (int64_t)(uint32_t)f.value : chip;
        id = f.num == 6 ? (int64_t)(uint32_t)f.value : id;
    }
    if (msg.bad)
        return;
    core->core_num = (uint32_t)num;
    core->chip = chip;
    core->id = id;
    core->by_number = false;
}

static bool add_core(struct reader *r, uint32_t ordinal)
{
    struct comm_core *core = vec_push(&r->c->cores, sizeof *core);
    struct values_eye eye;
    struct value v;
    bool details = false;
    if (!core)
        return false;
    *core = (struct comm_core){.ordinal = ordinal, .id = ordinal, .chip = -1, .by_number = true};
    core->plane = xp_strpool_add(&r->c->strings, profile_plane_name(r->host->part, r->plane));
    r->core = (uint32_t)r->c->cores.n - 1;
    values_open(&eye, r->host->part, r->plane, names, NAMES, r->c->a);
    values_of_plane(&eye);
    while (values_next(&eye, &v)) {
        bool whole = (v.type == VALUE_I64 || v.type == VALUE_U64) && (int64_t)v.num >= 0;
        if (v.which == DETAILS && (v.type == VALUE_BYTES || v.type == VALUE_TEXT)) {
            read_details(core, v.text);
            details = !core->by_number;
        } else if (v.which == DEVICE && whole && !details) {
            core->id = (int64_t)v.num;
            core->by_number = false;
        } else if (v.which == CHIP && whole && !details) {
            core->chip = (int64_t)v.num;
        }
    }
    return core->plane != XP_STRPOOL_FULL;
}

/* --- ops --- */

static bool kind_of(struct xp_span opcode, uint8_t *kind)
{
    for (int k = 0; k < COMM_KINDS; k++)
        if (xp_span_eq(opcode, xp_span_str(comm_kind_name(k)))) {
            *kind = k;
            return true;
        }
    *kind = COMM_ALL_TO_ALL;
    return xp_span_eq(opcode, XP_SPAN_LIT("ragged-all-to-all"));
}

static struct xp_span without(struct xp_span s, size_t n)
{
    return xp_span_of(s.p, s.n - n);
}

static void classify(struct op *op)
{
    struct xp_span code = op->w.opcode;
    op->form = WHOLE;
    if (xp_span_ends(code, XP_SPAN_LIT("-start"))) {
        op->form = START;
        code = without(code, 6);
    } else if (xp_span_ends(code, XP_SPAN_LIT("-done"))) {
        op->form = DONE;
        code = without(code, 5);
    }
    if (!code.n || !kind_of(code, &op->kind))
        op->form = NONE;
    else if (op->form == WHOLE && (op->kind == COMM_SEND || op->kind == COMM_RECV))
        op->form = START;
}

/* Slices that a DcnCollectiveInfoProto names, of which more than 64 are not counted, and devices.
 */
static void read_slices(struct comm *c, struct xp_span info)
{
    struct xp_span group, member;
    uint64_t seen = 0;
    for (struct hlo_spans g = hlo_spans_open(info, 2); hlo_spans_next(&g, &group);)
        for (struct hlo_spans m = hlo_spans_open(group, 1); hlo_spans_next(&m, &member);) {
            int64_t device = hlo_get_int(member, 2, 0);
            seen |= UINT64_C(1) << (hlo_get_int(member, 1, 0) & 63);
            if (device >= c->per_slice && device < 1 << 20)
                c->per_slice = device + 1;
        }
    int64_t n = __builtin_popcountll(seen);
    c->slices = n > c->slices ? n : c->slices;
}

static enum xp_status read_stats(struct reader *r, struct values_eye *eye, uint32_t i,
                                 struct xp_error *err)
{
    struct value v;
    XP_TRY(values_of_evmeta(eye, i, err));
    while (values_next(eye, &v)) {
        if (v.which == PROGRAM)
            r->ops[i].program = value_u64(&v);
        if (v.which == COLLECTIVE && v.type == VALUE_BYTES)
            read_slices(r->c, v.text);
    }
    return XP_OK;
}

/* What a done calls its start; where the text names no operand, its own name less "-done". */
static uint32_t start_of(struct reader *r, const struct op *op)
{
    struct xp_span name = xp_strpool_get(&r->c->strings, op->name), mark = XP_SPAN_LIT("-done");
    const uint8_t *at = name.n ? memmem(name.p, name.n, mark.p, mark.n) : NULL;
    if (op->w.operand.n || !at)
        return xp_strpool_add(&r->c->strings, op->w.operand);
    char *text = xp_arena_alloc(r->c->a, name.n);
    size_t before = (size_t)(at - name.p);
    if (!text)
        return XP_STRPOOL_FULL;
    memcpy(text, name.p, before);
    memcpy(text + before, at + mark.n, name.n - before - mark.n);
    return xp_strpool_add(&r->c->strings, xp_span_of(text, name.n - mark.n));
}

/* Starts by the name and program of their dones. */
static bool pair_up(struct reader *r)
{
    struct idmap by;
    struct xp_strpool keys;
    idmap_init(&by, r->c->a);
    if (!xp_strpool_init(&keys, r->c->a))
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < r->plane->nevmeta; i++) {
            struct op *op = &r->ops[i];
            if (op->form != (pass ? DONE : START))
                continue;
            uint32_t name = pass ? start_of(r, op) : op->name;
            const uint64_t key[] = {name, op->program};
            uint32_t id = xp_strpool_add(&keys, xp_span_of(key, sizeof key)), at;
            if (name == XP_STRPOOL_FULL || id == XP_STRPOOL_FULL)
                return false;
            if (pass)
                op->start = idmap_get(&by, id, &at) ? at + 1 : 0;
            else if (!idmap_put(&by, id, i))
                return false;
        }
    return true;
}

static enum xp_status read_ops(struct reader *r, bool *any, struct xp_error *err)
{
    const struct part *p = r->host->part;
    uint32_t n = r->plane->nevmeta;
    struct values_eye eye;
    r->ops = xp_arena_zalloc(r->c->a, ((size_t)n + 1) * sizeof *r->ops);
    r->wanted = xp_arena_zalloc(r->c->a, (size_t)n + 1);
    int64_t most = -1, one, me = VEC(r->c->cores, struct comm_core)[r->core].id;
    *any = false;
    if (!r->ops || !r->wanted)
        return no_memory(err);
    values_open(&eye, p, r->plane, names, NAMES, r->c->a);
    for (uint32_t i = 0; i < n; i++) {
        struct op *op = &r->ops[i];
        op->w = op_words_read(part_str(p, r->plane->evmeta[i].name));
        classify(op);
        if (op->form == NONE)
            continue;
        *any = r->wanted[i] = true;
        one = op_words_highest(&op->w);
        most = one > most ? one : most;
        op->name = xp_strpool_add(&r->c->strings, part_event_name(p, r->plane, i));
        if (op->name == XP_STRPOOL_FULL)
            return no_memory(err);
        XP_TRY(read_stats(r, &eye, i, err));
    }
    if (most >= r->c->partitions && most < OP_WORDS_MEMBERS)
        r->c->partitions = most + 1;
    r->base = r->c->slices > 1 && most >= 0 && me > most ? me - me % (most + 1) : 0;
    return pair_up(r) ? XP_OK : no_memory(err);
}

/* --- one that ended --- */

static bool channel_of(struct reader *r, struct op *op)
{
    char key[32];
    struct xp_span name = xp_strpool_get(&r->c->strings, op->name);
    int n = snprintf(key, sizeof key, ":%llu", (unsigned long long)op->program);
    char *text = xp_arena_alloc(r->c->a, name.n + (size_t)n + 1);
    if (!text)
        return false;
    if (name.n)
        memcpy(text, name.p, name.n);
    memcpy(text + name.n, key, (size_t)n);
    uint32_t id = xp_strpool_add(&r->c->strings, xp_span_of(text, name.n + (size_t)n));
    struct comm_channel *to = id == XP_STRPOOL_FULL ? NULL : comm_channel_of(r->c, id);
    if (!to)
        return false;
    to->op = op->name;
    to->program = op->program;
    to->bytes = op->w.bytes;
    to->channel = op->w.channel;
    to->kind = op->kind;
    op->channel = (uint32_t)(to - VEC(r->c->channels, struct comm_channel)) + 1;
    return true;
}

static bool edge_of(struct reader *r, struct op *op)
{
    struct comm_edge *e = vec_push(&r->c->edges, sizeof *e);
    struct xp_span pairs = op->w.pairs;
    int64_t from, to, me = VEC(r->c->cores, struct comm_core)[r->core].id - r->base;
    if (!e)
        return false;
    *e = (struct comm_edge){.channel = op->channel - 1, .core = r->core, .from = -1, .to = -1};
    while (op_words_pair(&pairs, &from, &to)) {
        if (to == me)
            e->from = r->base + from;
        if (from == me)
            e->to = r->base + to;
    }
    op->edge = (uint32_t)r->c->edges.n;
    return true;
}

static bool add_channel(struct reader *r, struct op *op, const struct comm_sum *one)
{
    if (!op->channel && r->c->channels.n >= COMM_CHANNELS) {
        r->c->channels_left++;
        return true;
    }
    if ((!op->channel && !channel_of(r, op)) || (!op->edge && !edge_of(r, op)))
        return false;
    comm_sum_add(&VEC(r->c->channels, struct comm_channel)[op->channel - 1].sum, one);
    comm_sum_add(&VEC(r->c->edges, struct comm_edge)[op->edge - 1].sum, one);
    return true;
}

/* The step that the time is in, or in the pause after it. */
static bool step_of(struct reader *r, int64_t begin_ps, int64_t *step)
{
    const struct figure_core *f = r->figures;
    if (!f)
        return false;
    while (r->step > 0 && f->steps[r->step].begin_ps > begin_ps)
        r->step--;
    while (r->step + 1 < f->nsteps && f->steps[r->step + 1].begin_ps <= begin_ps)
        r->step++;
    if (r->step >= f->nsteps || begin_ps < f->steps[r->step].begin_ps ||
        begin_ps >= f->steps[r->step].until_ps)
        return false;
    *step = f->steps[r->step].number;
    return true;
}

static bool label_of(struct reader *r, struct op *op)
{
    char text[80];
    op->labelled = true;
    size_t n =
        op_words_group(op->w.groups, VEC(r->c->cores, struct comm_core)[r->core].id - r->base,
                       r->base, text, sizeof text);
    op->label = n ? xp_strpool_add(&r->c->strings, xp_span_of(text, n)) : 0;
    return op->label != XP_STRPOOL_FULL;
}

static bool add_group(struct reader *r, struct op *op, const struct comm_sum *one, int64_t begin_ps)
{
    int64_t step;
    if (!op->labelled && !label_of(r, op))
        return false;
    struct comm_group *g = comm_group_of(r->c, op->name, op->program, op->label, op->kind);
    if (!g)
        return false;
    g->bytes = op->w.bytes;
    comm_sum_add(&g->sum, one);
    if (!step_of(r, begin_ps, &step))
        return true;
    bool full = r->c->cells.n >= COMM_CELLS;
    struct comm_cell *cell = full ? comm_cell_find(r->c, op->label, op->kind, step)
                                  : comm_cell_of(r->c, op->label, op->kind, step);
    if (!cell) {
        r->c->cells_left += full;
        return full;
    }
    cell->cores += cell->last_core != r->core + 1;
    cell->last_core = r->core + 1;
    cell->count++;
    cell->total_ps += one->total_ps;
    return true;
}

/* It began and ended in the range, whose end is where events that go on are cut: what seems to end
 * there may have gone on. */
static bool is_whole(const struct reader *r, uint64_t at, int64_t begin_ps, int64_t end_ps)
{
    const struct part *p = r->host->part;
    return end_ps >= begin_ps && part_begins(p, at, begin_ps) &&
           (!p->range || end_ps < p->range->t1_ps);
}

static bool ended(struct reader *r, struct op *op, int64_t begin_ps, int64_t end_ps, bool waits,
                  uint64_t wait_ps)
{
    uint64_t ps = figure_length(begin_ps, end_ps);
    struct comm_sum one = {.count = 1,
                           .total_ps = ps,
                           .longest_ps = ps,
                           .waits = waits,
                           .wait_ps = waits ? wait_ps : 0,
                           .longest_begin_ps = begin_ps,
                           .longest_core = r->core};
    op->paired = true;
    return op->kind <= COMM_RECV ? add_channel(r, op, &one) : add_group(r, op, &one, begin_ps);
}

static bool visit(struct reader *r, const struct lane_event *ev, int64_t base_ps)
{
    struct op *op = &r->ops[ev->name];
    int64_t begin = base_ps + ev->begin_ps, end = base_ps + ev->end_ps;
    bool whole = is_whole(r, ev->at, begin, end);
    if (op->form == WHOLE)
        return !whole || ended(r, op, begin, end, true, figure_length(begin, end));
    if (op->form == START) {
        op->open = whole;
        op->begin_ps = begin;
        return true;
    }
    struct op *start = op->start ? &r->ops[op->start - 1] : NULL;
    if (!start || !start->open)
        return true;
    start->open = false;
    return !whole || ended(r, start, start->begin_ps, end, true, figure_length(begin, end));
}

static enum xp_status visit_lines(struct reader *r, struct xp_span name, bool async,
                                  struct xp_error *err)
{
    const struct part *p = r->host->part;
    for (uint32_t i = r->plane->first_line; i < r->plane->first_line + r->plane->nlines; i++) {
        const struct part_line *line = &p->lines[i];
        struct lane_event *ev;
        size_t n;
        if (line->derived || !xp_span_eq(part_str(p, line->name), name))
            continue;
        XP_TRY(profile_events_named(line, r->wanted, r->plane->nevmeta, r->c->a, &ev, &n, err));
        for (size_t k = 0; k < n; k++) {
            struct op *op = &r->ops[ev[k].name];
            int64_t begin = line->base_ps + ev[k].begin_ps, end = line->base_ps + ev[k].end_ps;
            bool fine =
                async ? !is_whole(r, ev[k].at, begin, end) || ended(r, op, begin, end, false, 0)
                      : visit(r, &ev[k], line->base_ps);
            if (!fine)
                return no_memory(err);
        }
    }
    return XP_OK;
}

/* Starts whose done no line of ops has: the line of asynchronous ops shows them from end to end. */
static bool want_unpaired(struct reader *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->plane->nevmeta; i++) {
        struct op *op = &r->ops[i];
        r->wanted[i] = op->form == START && !op->paired;
        any |= r->wanted[i];
        r->c->unpaired += op->open;
    }
    return any;
}

static enum xp_status read_plane(struct reader *r, uint32_t ordinal, struct xp_error *err)
{
    bool any;
    if (!add_core(r, ordinal))
        return no_memory(err);
    XP_TRY(read_ops(r, &any, err));
    if (!any)
        return XP_OK;
    XP_TRY(visit_lines(r, XP_SPAN_LIT("XLA Ops"), false, err));
    return want_unpaired(r) ? visit_lines(r, XP_SPAN_LIT("Async XLA Ops"), true, err) : XP_OK;
}

enum xp_status comm_read(struct comm *c, const struct tool_host *host, struct xp_span marker,
                         struct xp_error *err)
{
    const struct part *p = host->part;
    struct figure_host h;
    XP_TRY(figures_of(host->part, host->name, marker, c->a, &h, err));
    for (uint32_t i = 0; i < p->nplanes; i++) {
        struct reader r = {.c = c, .host = host, .plane = &p->planes[i]};
        struct xp_span name = profile_plane_name(p, r.plane);
        uint32_t ordinal;
        if (!profile_is_tpu(name) || !profile_ordinal(name, &ordinal))
            continue;
        for (uint32_t k = 0; k < h.ncores && !r.figures; k++)
            if (h.cores[k].nsteps && xp_span_eq(h.cores[k].name, name))
                r.figures = &h.cores[k];
        XP_TRY(read_plane(&r, ordinal, err));
    }
    return XP_OK;
}
