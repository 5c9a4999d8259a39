/* Statistics of a selection, by name.
 *
 * One pass over the selected lanes gives counts, sums and extremes of every name; the names
 * with the most self time are then known, and a second pass over the lines that have them fills
 * their quantiles. So memory grows with the names, not with the events.
 *
 * Self time: a lane's events lose what the next lane's events take that lie wholly inside them.
 * Rather than keep a sum an event, the parent's name is charged for each child.
 */
#include <stdlib.h>

#include "shard/query/quantile.h"
#include "shard/query/query_int.h"

#define LIMIT_MAX 1000
#define NO_ROW UINT32_MAX
#define ANY_PLANE UINT32_MAX

struct row {
    uint64_t count;
    int64_t total_ps, child_ps;
    int64_t min_ps, max_ps;
    uint64_t longest_id;
    uint32_t plane, str;
    struct quantile *quantile; /* of the rows that are returned */
};

struct aggregate {
    const struct part *p;
    struct query_book book;
    const struct query_aggregate *q;
    struct xp_arena *a;
    struct out *out;
    struct query_span span;
    struct query_lines lines;
    bool loading;
    uint32_t **map; /* by table of names, by name: row or NO_ROW */
    struct row *rows;
    uint32_t nrows, cap;
    uint32_t *slots; /* open addressing: row + 1 by (plane, str) */
    uint32_t mask;
    uint64_t events;
};

/* A line on its way through a pass. */
struct pass {
    struct aggregate *g;
    const struct query_line *of;
    const struct part_line *line;
    uint32_t table, lane;
    uint32_t *map;
    int64_t t0_ps, t1_ps; /* line time */
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the statistics");
}

/* --- rows by name --- */

static uint32_t slot_of(const struct aggregate *g, uint32_t plane, uint32_t str)
{
    uint64_t h = ((uint64_t)plane << 32 | str) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(h >> 32) & g->mask;
    while (g->slots[i] &&
           (g->rows[g->slots[i] - 1].plane != plane || g->rows[g->slots[i] - 1].str != str))
        i = (i + 1) & g->mask;
    return i;
}

static bool grow(struct aggregate *g)
{
    uint32_t cap = g->cap ? g->cap * 2 : 256;
    struct row *rows = xp_arena_alloc(g->a, cap * sizeof *rows);
    uint32_t *slots = xp_arena_zalloc(g->a, (size_t)cap * 2 * sizeof *slots);
    if (!rows || !slots || cap > UINT32_MAX / 4)
        return false;
    if (g->nrows)
        memcpy(rows, g->rows, g->nrows * sizeof *rows);
    g->rows = rows;
    g->slots = slots;
    g->cap = cap;
    g->mask = cap * 2 - 1;
    for (uint32_t i = 0; i < g->nrows; i++)
        g->slots[slot_of(g, rows[i].plane, rows[i].str)] = i + 1;
    return true;
}

/* The row of a name seen for the first time on this plane; NO_ROW when memory is spent. */
static uint32_t new_row(struct pass *ps, uint32_t name)
{
    struct aggregate *g = ps->g;
    uint32_t plane = g->q->by_name_only ? ANY_PLANE : ps->line->plane;
    uint32_t str = query_name(&g->book, ps->table, name);
    if (g->nrows == g->cap && !grow(g))
        return NO_ROW;
    uint32_t slot = slot_of(g, plane, str);
    if (!g->slots[slot]) {
        g->rows[g->nrows] =
            (struct row){.min_ps = INT64_MAX, .max_ps = -1, .plane = plane, .str = str};
        g->slots[slot] = ++g->nrows;
    }
    return ps->map[name] = g->slots[slot] - 1;
}

static uint32_t *table_map(struct aggregate *g, uint32_t table)
{
    if (!g->map[table]) {
        size_t n = (size_t)query_table_size(&g->book, table) + 1;
        g->map[table] = xp_arena_alloc(g->a, n * sizeof **g->map);
        if (g->map[table])
            memset(g->map[table], 0xff, n * sizeof **g->map);
    }
    return g->map[table];
}

/* --- the first pass: sums --- */

static inline int64_t clipped(const struct pass *ps, const struct lane_event *ev)
{
    int64_t b = ev->begin_ps > ps->t0_ps ? ev->begin_ps : ps->t0_ps;
    int64_t e = ev->end_ps < ps->t1_ps ? ev->end_ps : ps->t1_ps;
    return e > b ? e - b : 0;
}

static bool add_event(struct pass *ps, const struct lane_event *ev)
{
    uint32_t i = ps->map[ev->name];
    if (__builtin_expect(i == NO_ROW, 0) && (i = new_row(ps, ev->name)) == NO_ROW)
        return false;
    struct row *r = &ps->g->rows[i];
    int64_t dur = clipped(ps, ev);
    r->count++;
    r->total_ps = query_add(r->total_ps, dur);
    if (dur < r->min_ps)
        r->min_ps = dur;
    if (dur > r->max_ps) {
        r->max_ps = dur;
        r->longest_id = query_id(ps->of, ps->lane, ev);
    }
    return true;
}

/* The lane above, read along to find the event that a child lies in. */
struct parents {
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    size_t n, i;
};

static void parents_open(struct parents *up, const struct pass *ps, uint32_t lane)
{
    lane_seek(&up->c, ps->line->lanes[lane], ps->t0_ps);
    up->n = lane_next_block(&up->c, up->ev);
    up->i = 0;
}

/* Charges the parent of a child. Children come in order of begin. */
static void charge(struct parents *up, struct pass *ps, const struct lane_event *child)
{
    for (;;) {
        if (up->i == up->n) {
            up->n = lane_next_block(&up->c, up->ev);
            up->i = 0;
            if (!up->n)
                return;
        }
        if (up->ev[up->i].end_ps > child->begin_ps)
            break;
        up->i++;
    }
    const struct lane_event *e = &up->ev[up->i];
    if (e->begin_ps > child->begin_ps || e->end_ps < child->end_ps)
        return;
    uint32_t i = ps->map[e->name];
    if (i != NO_ROW) /* it overlaps the window as its child does, so the lane above has added it */
        ps->g->rows[i].child_ps = query_add(ps->g->rows[i].child_ps, clipped(ps, child));
}

/* Events [first, last) of a lane, block by block; visit returns false to stop. */
typedef bool (*block_fn)(struct pass *ps, const struct lane_event *ev, size_t n, void *ctx);

static bool each_block(struct pass *ps, uint32_t lane, block_fn visit, void *ctx)
{
    const struct lane *l = ps->line->lanes[lane];
    struct lane_cursor c;
    struct lane_event ev[LANE_BLOCK];
    uint64_t first, last;
    ps->lane = lane;
    lod_range(l, ps->t0_ps, ps->t1_ps, &first, &last);
    lane_seek_ord(&c, l, first);
    while (first < last && !out_cancelled(ps->g->out)) {
        size_t n = lane_next_block(&c, ev);
        if (!n)
            break;
        if (last - first < n)
            n = (size_t)(last - first);
        if (!visit(ps, ev, n, ctx))
            return false;
        first += n;
    }
    return true;
}

static bool sum_block(struct pass *ps, const struct lane_event *ev, size_t n, void *ctx)
{
    struct parents *up = ctx;
    for (size_t i = 0; i < n; i++)
        if (!add_event(ps, &ev[i]))
            return false;
    for (size_t i = 0; up && i < n; i++)
        charge(up, ps, &ev[i]);
    ps->g->events += n;
    return true;
}

static bool open_pass(struct pass *ps, struct aggregate *g, const struct query_line *l)
{
    *ps = (struct pass){.g = g, .of = l, .line = l->line, .table = query_table(&g->book, l)};
    ps->map = table_map(g, ps->table);
    ps->t0_ps = query_line_time(l->line, g->span.t0_ps);
    ps->t1_ps = query_line_time(l->line, g->span.t1_ps);
    return ps->map != NULL;
}

static bool sum_line(struct aggregate *g, const struct query_line *l)
{
    struct pass ps;
    struct parents up;
    if (!open_pass(&ps, g, l))
        return false;
    for (uint32_t k = 0; k < ps.line->nlanes; k++) {
        if (k)
            parents_open(&up, &ps, k - 1);
        if (!each_block(&ps, k, sum_block, k ? &up : NULL))
            return false;
    }
    return true;
}

/* --- the second pass: quantiles of the rows that are returned --- */

static bool quantile_block(struct pass *ps, const struct lane_event *ev, size_t n, void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        struct quantile *q = ps->g->rows[ps->map[ev[i].name]].quantile;
        if (q)
            quantile_add(q, (uint64_t)clipped(ps, &ev[i]));
    }
    return true;
}

static enum xp_status quantiles(struct aggregate *g, const uint32_t *order, size_t n,
                                struct xp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct row *r = &g->rows[order[i]];
        if (r->min_ps == r->max_ps)
            continue; /* all are the same */
        r->quantile = xp_arena_alloc(g->a, sizeof *r->quantile);
        if (!r->quantile ||
            !quantile_init(r->quantile, g->a, r->count, (uint64_t)r->min_ps, (uint64_t)r->max_ps))
            return no_memory(err);
    }
    for (size_t i = 0; i < g->lines.n; i++) {
        struct pass ps;
        if (!query_line_in(g->lines.v[i].line, &g->span))
            continue;
        if (!open_pass(&ps, g, &g->lines.v[i]))
            return no_memory(err);
        for (uint32_t k = 0; k < ps.line->nlanes; k++)
            each_block(&ps, k, quantile_block, NULL);
    }
    return XP_OK;
}

/* --- the answer --- */

static int64_t self_of(const struct row *r)
{
    return r->total_ps > r->child_ps ? r->total_ps - r->child_ps : 0;
}

static int by_self(const void *x, const void *y, void *ctx)
{
    const struct row *rows = ctx;
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    int64_t a = self_of(&rows[i]), b = self_of(&rows[k]);
    if (a != b)
        return a > b ? -1 : 1;
    if (rows[i].total_ps != rows[k].total_ps)
        return rows[i].total_ps > rows[k].total_ps ? -1 : 1;
    return i < k ? -1 : 1;
}

static uint32_t *sorted_rows(struct aggregate *g)
{
    uint32_t *order = xp_arena_alloc(g->a, ((size_t)g->nrows + 1) * sizeof *order);
    if (!order)
        return NULL;
    for (uint32_t i = 0; i < g->nrows; i++)
        order[i] = i;
    qsort_r(order, g->nrows, sizeof *order, by_self, g->rows);
    return order;
}

static int64_t percentile(const struct row *r, uint32_t percent)
{
    return r->quantile ? (int64_t)quantile_get(r->quantile, percent) : r->min_ps;
}

static void write_row(const struct aggregate *g, const struct row *r, struct xp_json *j)
{
    xp_json_obj(j);
    xp_json_key(j, "name");
    xp_json_span(j, query_text(&g->book, r->str));
    if (r->plane != ANY_PLANE)
        xp_json_key_u64(j, "plane", r->plane);
    xp_json_key_u64(j, "count", r->count);
    xp_json_key_i64(j, "total_ps", r->total_ps);
    xp_json_key_i64(j, "self_ps", self_of(r));
    xp_json_key_i64(j, "min_ps", r->min_ps);
    xp_json_key_i64(j, "max_ps", r->max_ps);
    xp_json_key_i64(j, "mean_ps", r->total_ps / (int64_t)r->count);
    xp_json_key_i64(j, "p50_ps", percentile(r, 50));
    xp_json_key_i64(j, "p99_ps", percentile(r, 99));
    if (r->quantile && !r->quantile->exact) {
        xp_json_key(j, "approximate");
        xp_json_bool(j, true);
    }
    xp_json_key_u64(j, "longest_id", r->longest_id);
    xp_json_obj_end(j);
}

struct sums {
    uint64_t names, count;
    int64_t total_ps, self_ps;
};

static struct sums sum_rows(const struct aggregate *g, const uint32_t *order, size_t from)
{
    struct sums s = {.names = g->nrows - from};
    for (size_t i = from; i < g->nrows; i++) {
        const struct row *r = &g->rows[order[i]];
        s.count += r->count;
        s.total_ps = query_add(s.total_ps, r->total_ps);
        s.self_ps = query_add(s.self_ps, self_of(r));
    }
    return s;
}

static void write_answer(struct aggregate *g, const uint32_t *order, size_t n)
{
    struct xp_json j;
    struct sums all = sum_rows(g, order, 0), rest = sum_rows(g, order, n);
    xp_json_init(&j, &g->out->text);
    xp_json_obj(&j);
    xp_json_key_i64(&j, "t0_ps", g->span.t0_ps);
    xp_json_key_i64(&j, "t1_ps", g->span.t1_ps);
    xp_json_key_u64(&j, "events", g->events);
    xp_json_key_u64(&j, "names", all.names);
    xp_json_key_i64(&j, "total_ps", all.total_ps);
    xp_json_key_i64(&j, "self_ps", all.self_ps);
    xp_json_key(&j, "rows");
    xp_json_arr(&j);
    for (size_t i = 0; i < n; i++) {
        write_row(g, &g->rows[order[i]], &j);
        out_flush(g->out);
    }
    xp_json_arr_end(&j);
    xp_json_key(&j, "rest");
    xp_json_obj(&j);
    xp_json_key_u64(&j, "names", rest.names);
    xp_json_key_u64(&j, "count", rest.count);
    xp_json_key_i64(&j, "total_ps", rest.total_ps);
    xp_json_key_i64(&j, "self_ps", rest.self_ps);
    xp_json_obj_end(&j);
    xp_json_key(&j, "loading");
    xp_json_bool(&j, g->loading);
    xp_json_obj_end(&j);
}

static enum xp_status prepare(struct aggregate *g, struct xp_error *err)
{
    const struct query_aggregate *q = g->q;
    if (q->limit < 1 || q->limit > LIMIT_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "limit is %u; 1 to %d is expected", q->limit,
                       LIMIT_MAX);
    g->loading = !part_ready(g->p);
    XP_TRY(query_select(&g->book, &q->rows, q->derived, g->a, &g->lines, err));
    XP_TRY(query_times(g->p, q->t0_ps, q->t1_ps, &g->span, err));
    g->map = xp_arena_zalloc(g->a, (size_t)query_tables(&g->book) * sizeof *g->map);
    return g->map && grow(g) ? XP_OK : no_memory(err);
}

enum xp_status query_aggregate(const struct part *p, const struct query_aggregate *q,
                               struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct aggregate g = {.p = p, .book.p = p, .q = q, .a = scratch, .out = out};
    XP_TRY(prepare(&g, err));
    for (size_t i = 0; i < g.lines.n; i++)
        if (query_line_in(g.lines.v[i].line, &g.span) && !sum_line(&g, &g.lines.v[i]))
            return no_memory(err);
    uint32_t *order = sorted_rows(&g);
    if (!order)
        return no_memory(err);
    size_t n = g.nrows < q->limit ? g.nrows : q->limit;
    if (!out_cancelled(out))
        XP_TRY(quantiles(&g, order, n, err));
    if (out_cancelled(out))
        return xp_fail(err, XP_CANCELLED, 0, "the statistics are not wanted any more");
    write_answer(&g, order, n);
    return XP_OK;
}
