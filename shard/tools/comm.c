#include "shard/tools/comm.h"

#include <stdlib.h>

const char *comm_kind_name(uint8_t kind)
{
    static const char *const names[COMM_KINDS] = {
        "collective-permute", "send",           "recv",       "all-reduce",
        "all-gather",         "reduce-scatter", "all-to-all", "collective-broadcast"};
    return kind < COMM_KINDS ? names[kind] : "";
}

bool comm_init(struct comm *c, struct xp_arena *a)
{
    *c = (struct comm){.a = a};
    idmap_init(&c->channel_by, a);
    idmap_init(&c->group_by, a);
    idmap_init(&c->cell_by, a);
    return xp_strpool_init(&c->strings, a) && xp_strpool_init(&c->group_keys, a) &&
           xp_strpool_init(&c->cell_keys, a);
}

void comm_fini(struct comm *c)
{
    vec_free(&c->cores);
    vec_free(&c->channels);
    vec_free(&c->edges);
    vec_free(&c->groups);
    vec_free(&c->cells);
}

/* --- rows by what they are --- */

/* The element that `by` has for id, or a new one of zeros. NULL: memory is out. */
static void *row_of(struct vec *v, size_t size, struct idmap *by, uint32_t id, bool *fresh)
{
    uint32_t at;
    *fresh = !idmap_get(by, id, &at);
    if (!*fresh)
        return (uint8_t *)v->p + size * at;
    void *to = vec_push(v, size);
    if (!to || !idmap_put(by, id, (uint32_t)v->n - 1))
        return NULL;
    memset(to, 0, size);
    return to;
}

struct comm_channel *comm_channel_of(struct comm *c, uint32_t key)
{
    bool fresh;
    struct comm_channel *to = row_of(&c->channels, sizeof *to, &c->channel_by, key, &fresh);
    if (to && fresh)
        to->key = key;
    return to;
}

struct comm_group *comm_group_of(struct comm *c, uint32_t op, uint64_t program, uint32_t label,
                                 uint8_t kind)
{
    const uint64_t key[] = {op, program, label, kind};
    uint32_t id = xp_strpool_add(&c->group_keys, xp_span_of(key, sizeof key));
    bool fresh;
    if (id == XP_STRPOOL_FULL)
        return NULL;
    struct comm_group *to = row_of(&c->groups, sizeof *to, &c->group_by, id, &fresh);
    if (to && fresh) {
        to->op = op;
        to->program = program;
        to->label = label;
        to->kind = kind;
    }
    return to;
}

struct comm_cell *comm_cell_of(struct comm *c, uint32_t label, uint8_t kind, int64_t step)
{
    const uint64_t key[] = {label, kind, (uint64_t)step};
    uint32_t id = xp_strpool_add(&c->cell_keys, xp_span_of(key, sizeof key));
    bool fresh;
    if (id == XP_STRPOOL_FULL)
        return NULL;
    struct comm_cell *to = row_of(&c->cells, sizeof *to, &c->cell_by, id, &fresh);
    if (to && fresh) {
        to->label = label;
        to->kind = kind;
        to->step = step;
    }
    return to;
}

struct comm_cell *comm_cell_find(const struct comm *c, uint32_t label, uint8_t kind, int64_t step)
{
    const uint64_t key[] = {label, kind, (uint64_t)step};
    uint32_t id = xp_strpool_find(&c->cell_keys, xp_span_of(key, sizeof key)), at;
    return id != XP_STRPOOL_FULL && idmap_get(&c->cell_by, id, &at)
               ? &VEC(c->cells, struct comm_cell)[at]
               : NULL;
}

void comm_sum_add(struct comm_sum *to, const struct comm_sum *from)
{
    to->count += from->count;
    to->total_ps += from->total_ps;
    to->waits += from->waits;
    to->wait_ps += from->wait_ps;
    if (from->count && (to->count == from->count || from->longest_ps > to->longest_ps)) {
        to->longest_ps = from->longest_ps;
        to->longest_begin_ps = from->longest_begin_ps;
        to->longest_core = from->longest_core;
    }
}

bool comm_has_id(const struct comm *c, const struct comm_core *core)
{
    return !core->by_number || (c->hosts == 1 && c->partitions <= (int64_t)c->cores.n);
}

/* --- facts --- */

static void put_sum(struct facts_out *f, const struct comm_sum *s)
{
    facts_u64(f, s->count);
    facts_u64(f, s->total_ps);
    facts_u64(f, s->longest_ps);
    facts_u64(f, s->waits);
    facts_u64(f, s->wait_ps);
    facts_i64(f, s->longest_begin_ps);
    facts_u64(f, s->longest_core);
}

static void put_text(const struct comm *c, struct facts_out *f, uint32_t id)
{
    facts_text(f, xp_strpool_get(&c->strings, id));
}

static int by_total(const void *a, const void *b)
{
    const struct comm_channel *x = *(const struct comm_channel *const *)a,
                              *y = *(const struct comm_channel *const *)b;
    if ((x->kind == COMM_PERMUTE) != (y->kind == COMM_PERMUTE)) /* they tell who sends to whom */
        return x->kind == COMM_PERMUTE ? -1 : 1;
    if (x->sum.total_ps != y->sum.total_ps)
        return x->sum.total_ps > y->sum.total_ps ? -1 : 1;
    return (x > y) - (x < y);
}

/* Of which channels the edges go along, by number of the channel; NULL: memory is out. */
static bool *edged(const struct comm *c, struct xp_span wanted)
{
    size_t n = c->channels.n;
    const struct comm_channel *v = c->channels.p, **order;
    bool *yes = xp_arena_zalloc(c->a, n + 1);
    order = xp_arena_alloc(c->a, (n + 1) * sizeof *order);
    if (!yes || !order)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        order[i] = &v[i];
        yes[i] = wanted.n && xp_span_eq(xp_strpool_get(&c->strings, v[i].key), wanted);
    }
    if (n)
        qsort(order, n, sizeof *order, by_total);
    for (size_t i = 0; !wanted.n && i < n && i < COMM_EDGED; i++)
        yes[order[i] - v] = true;
    return yes;
}

static void put_edges(const struct comm *c, struct facts_out *f, const bool *yes)
{
    const struct comm_edge *e = c->edges.p;
    uint64_t n = 0;
    for (size_t i = 0; yes && i < c->edges.n; i++)
        n += yes[e[i].channel];
    facts_u64(f, n);
    for (size_t i = 0; n && i < c->edges.n; i++) {
        if (!yes[e[i].channel])
            continue;
        facts_u64(f, e[i].channel);
        facts_u64(f, e[i].core);
        facts_i64(f, e[i].from);
        facts_i64(f, e[i].to);
        put_sum(f, &e[i].sum);
    }
}

static void put_cores(const struct comm *c, struct facts_out *f)
{
    facts_u64(f, c->cores.n);
    for (size_t i = 0; i < c->cores.n; i++) {
        const struct comm_core *core = &VEC(c->cores, struct comm_core)[i];
        put_text(c, f, core->plane);
        facts_u64(f, core->ordinal);
        facts_u64(f, core->core_num);
        facts_i64(f, core->id);
        facts_i64(f, core->chip);
        facts_u64(f, core->by_number);
    }
}

static void put_channels(const struct comm *c, struct facts_out *f)
{
    facts_u64(f, c->channels.n);
    for (size_t i = 0; i < c->channels.n; i++) {
        const struct comm_channel *v = &VEC(c->channels, struct comm_channel)[i];
        put_text(c, f, v->key);
        put_text(c, f, v->op);
        facts_u64(f, v->program);
        facts_u64(f, v->bytes);
        facts_i64(f, v->channel);
        facts_u64(f, v->kind);
        put_sum(f, &v->sum);
    }
}

static void put_groups(const struct comm *c, struct facts_out *f)
{
    facts_u64(f, c->groups.n);
    for (size_t i = 0; i < c->groups.n; i++) {
        const struct comm_group *v = &VEC(c->groups, struct comm_group)[i];
        put_text(c, f, v->op);
        put_text(c, f, v->label);
        facts_u64(f, v->program);
        facts_u64(f, v->bytes);
        facts_u64(f, v->kind);
        put_sum(f, &v->sum);
    }
    facts_u64(f, c->cells.n);
    for (size_t i = 0; i < c->cells.n; i++) {
        const struct comm_cell *v = &VEC(c->cells, struct comm_cell)[i];
        put_text(c, f, v->label);
        facts_u64(f, v->kind);
        facts_i64(f, v->step);
        facts_u64(f, v->count);
        facts_u64(f, v->total_ps);
        facts_u64(f, v->cores);
    }
}

void comm_put(const struct comm *c, struct facts_out *f, struct xp_span wanted)
{
    put_cores(c, f);
    put_channels(c, f);
    put_edges(c, f, edged(c, wanted));
    put_groups(c, f);
    facts_u64(f, c->cells_left);
    facts_u64(f, c->channels_left);
    facts_u64(f, c->unpaired);
    facts_i64(f, c->slices);
    facts_i64(f, c->per_slice);
    facts_i64(f, c->partitions);
}

enum xp_status comm_map(const struct tool_host *host, const struct tool_args *args,
                        struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct xp_span wanted = {0}, marker = {0};
    struct facts_out f;
    struct comm c;
    tool_arg(args, "channel", &wanted);
    tool_arg(args, "step_marker", &marker);
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = comm_init(&c, a) ? comm_read(&c, host, marker, err)
                                         : xp_fail(err, XP_BUSY, 0, "no memory left for channels");
    if (st == XP_OK)
        comm_put(&c, &f, wanted);
    comm_fini(&c);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- and back --- */

struct getter {
    struct comm *c;
    struct facts *f;
    uint32_t host, first_core;
    uint32_t *channels; /* of the host, by number: place in c->channels */
    size_t ncores, nchannels;
    bool busy;
};

static uint32_t get_text(struct getter *g)
{
    uint32_t id = xp_strpool_add(&g->c->strings, facts_get_text(g->f));
    g->busy |= id == XP_STRPOOL_FULL;
    return id;
}

static struct comm_sum get_sum(struct getter *g)
{
    struct comm_sum s = {.count = facts_get_u64(g->f)};
    s.total_ps = facts_get_u64(g->f);
    s.longest_ps = facts_get_u64(g->f);
    s.waits = facts_get_u64(g->f);
    s.wait_ps = facts_get_u64(g->f);
    s.longest_begin_ps = facts_get_i64(g->f);
    uint64_t core = facts_get_u64(g->f);
    if (core >= g->ncores)
        g->f->bad |= s.count > 0;
    else
        s.longest_core = g->first_core + (uint32_t)core;
    return s;
}

static void get_core(struct getter *g)
{
    struct comm_core *core = vec_push(&g->c->cores, sizeof *core);
    if (!core) {
        g->busy = true;
        return;
    }
    *core = (struct comm_core){.host = g->host};
    uint32_t plane = get_text(g);
    core->plane = plane;
    core->ordinal = (uint32_t)facts_get_u64(g->f);
    core->core_num = (uint32_t)facts_get_u64(g->f);
    core->id = facts_get_i64(g->f);
    core->chip = facts_get_i64(g->f);
    core->by_number = facts_get_u64(g->f) != 0;
}

static void get_channel(struct getter *g, size_t i)
{
    uint32_t key = get_text(g), op = get_text(g);
    struct comm_channel *to = g->busy ? NULL : comm_channel_of(g->c, key);
    if (!to) {
        g->busy = true;
        return;
    }
    to->op = op;
    to->program = facts_get_u64(g->f);
    to->bytes = facts_get_u64(g->f);
    to->channel = facts_get_i64(g->f);
    to->kind = (uint8_t)facts_get_u64(g->f);
    struct comm_sum sum = get_sum(g);
    comm_sum_add(&to->sum, &sum);
    g->channels[i] = (uint32_t)(to - VEC(g->c->channels, struct comm_channel));
}

static void get_edge(struct getter *g)
{
    struct comm_edge *e = vec_push(&g->c->edges, sizeof *e);
    if (!e) {
        g->busy = true;
        return;
    }
    uint64_t channel = facts_get_u64(g->f), core = facts_get_u64(g->f);
    *e = (struct comm_edge){.from = facts_get_i64(g->f)};
    e->to = facts_get_i64(g->f);
    e->sum = get_sum(g);
    if (channel >= g->nchannels || core >= g->ncores) {
        g->f->bad = true;
        g->c->edges.n--;
        return;
    }
    e->channel = g->channels[channel];
    e->core = g->first_core + (uint32_t)core;
}

static void get_group(struct getter *g)
{
    uint32_t op = get_text(g), label = get_text(g);
    uint64_t program = facts_get_u64(g->f), bytes = facts_get_u64(g->f);
    uint8_t kind = (uint8_t)facts_get_u64(g->f);
    struct comm_sum sum = get_sum(g);
    struct comm_group *to = g->busy ? NULL : comm_group_of(g->c, op, program, label, kind);
    g->busy |= !to;
    if (to) {
        to->bytes = bytes;
        comm_sum_add(&to->sum, &sum);
    }
}

static void get_cell(struct getter *g)
{
    uint32_t label = get_text(g);
    uint8_t kind = (uint8_t)facts_get_u64(g->f);
    int64_t step = facts_get_i64(g->f);
    uint64_t count = facts_get_u64(g->f), total = facts_get_u64(g->f), cores = facts_get_u64(g->f);
    struct comm_cell *to = g->busy ? NULL : comm_cell_of(g->c, label, kind, step);
    g->busy |= !to;
    if (to) {
        to->count += count;
        to->total_ps += total;
        to->cores += cores;
    }
}

enum xp_status comm_add(struct comm *c, struct facts *f, uint32_t host, struct xp_error *err)
{
    struct getter g = {.c = c, .f = f, .host = host, .first_core = (uint32_t)c->cores.n};
    g.ncores = facts_get_count(f);
    for (size_t n = g.ncores; n && !f->bad && !g.busy; n--)
        get_core(&g);
    g.nchannels = facts_get_count(f);
    g.channels = xp_arena_zalloc(c->a, (g.nchannels + 1) * sizeof *g.channels);
    g.busy |= !g.channels;
    for (size_t i = 0; i < g.nchannels && !f->bad && !g.busy; i++)
        get_channel(&g, i);
    for (size_t n = facts_get_count(f); n && !f->bad && !g.busy; n--)
        get_edge(&g);
    for (size_t n = facts_get_count(f); n && !f->bad && !g.busy; n--)
        get_group(&g);
    for (size_t n = facts_get_count(f); n && !f->bad && !g.busy; n--)
        get_cell(&g);
    c->cells_left += facts_get_u64(f);
    c->channels_left += facts_get_u64(f);
    c->unpaired += facts_get_u64(f);
    int64_t slices = facts_get_i64(f);
    int64_t each = facts_get_i64(f);
    c->slices = slices > c->slices ? slices : c->slices;
    c->per_slice = each > c->per_slice ? each : c->per_slice;
    int64_t partitions = facts_get_i64(f);
    c->partitions = partitions > c->partitions ? partitions : c->partitions;
    c->hosts++;
    return g.busy ? xp_fail(err, XP_BUSY, 0, "no memory left for channels") : facts_ok(f, err);
}
