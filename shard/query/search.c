/* Search: which events match, how many there are, and the next ones in time.
 *
 * A query is tried against names once, per plane; after that an event is matched by its name's
 * byte in a table. Counting looks at every event of the lines that can match, some 5 ns each.
 * Hits are collected into a heap of `limit`: a lane is read from where the search stands only as
 * far as it can still add a nearer hit than those held.
 */
#include "shard/query/pattern.h"
#include "shard/query/query_int.h"

#define LIMIT_MAX 1000

struct hit {
    int64_t begin_ps, duration_ps; /* session time */
    uint64_t id;
    uint32_t line, lane; /* number of the line */
    uint32_t str;        /* name, for query_text */
};

struct search {
    const struct part *p;
    struct query_book book;
    const struct query_search *q;
    struct xp_arena *a;
    struct out *out;
    struct pattern pat;
    struct query_span span;
    struct query_lines lines;
    bool loading;
    uint8_t **match;         /* by table of names; NULL: not made yet, or no name matches */
    bool *made, *any;        /* by table: match was made; some name matches */
    uint64_t total, *counts; /* by index in lines */
    struct hit *heap;        /* the farthest hit held is at the top */
    size_t n, max;
};

/* --- what can match --- */

static bool plane_matches(const struct search *s, uint32_t plane)
{
    return pattern_match(&s->pat, PATTERN_PLANE, part_str(s->p, s->p->planes[plane].name));
}

/* One byte a name of the table: do events of this name match? */
static bool make_match(struct search *s, uint32_t table)
{
    uint32_t n = query_table_size(&s->book, table);
    s->made[table] = true;
    if (table < s->p->nplanes && !plane_matches(s, table))
        return true;
    uint8_t *m = xp_arena_alloc(s->a, (size_t)n + 1);
    if (!m)
        return false;
    for (uint32_t i = 0; i < n && !out_cancelled(s->out); i++) {
        struct xp_span name = query_text(&s->book, query_name(&s->book, table, i));
        m[i] = pattern_match(&s->pat, PATTERN_NAME, name);
        s->any[table] |= m[i];
    }
    s->match[table] = m;
    return true;
}

/* Can events of this line match, and does it reach into the window? */
static bool line_matches(const struct search *s, const struct query_line *l)
{
    return query_line_in(l->line, &s->span) && s->any[query_table(&s->book, l)] &&
           (!l->made || plane_matches(s, l->line->plane)) &&
           pattern_match(&s->pat, PATTERN_LINE, query_line_name(&s->book, l));
}

/* --- blocks of a lane, either way --- */

struct blocks {
    const struct lane *lane;
    uint64_t first, last; /* events still to come: [first, last) */
    int dir;
    size_t lo, hi; /* of ev, what is wanted */
    struct lane_event ev[LANE_BLOCK];
};

static bool next_block(struct blocks *b)
{
    struct lane_cursor c;
    if (b->first >= b->last)
        return false;
    uint64_t base = b->dir > 0 ? b->first : b->last - 1;
    base -= base % LANE_BLOCK;
    lane_seek_ord(&c, b->lane, base);
    size_t n = lane_next_block(&c, b->ev);
    b->lo = b->first > base ? (size_t)(b->first - base) : 0;
    b->hi = b->last - base < n ? (size_t)(b->last - base) : n;
    if (b->dir > 0)
        b->first = base + n;
    else
        b->last = base;
    return n > 0;
}

static bool in_time(const struct search *s, const struct lane_event *ev)
{
    int64_t dur = ev->end_ps - ev->begin_ps;
    return dur >= s->pat.min_ps && dur <= s->pat.max_ps;
}

/* --- counting --- */

/* No event of the block lasts as long as asked for. */
static bool too_short(const struct search *s, const struct lane *l, uint64_t ord)
{
    struct lane_node node;
    lane_node_get(l, 0, ord / LANE_BLOCK, &node);
    return node.longest_ps < s->pat.min_ps;
}

/* Events [first, last) of one block whose name matches. */
static uint32_t count_names(const uint8_t *match, const struct lane *lane, uint64_t first,
                            uint64_t last)
{
    uint32_t names[LANE_BLOCK], count = 0;
    uint64_t block = first / LANE_BLOCK, base = block * LANE_BLOCK;
    size_t n = lane_names(lane, block, names);
    if (last - base < n)
        n = (size_t)(last - base);
    for (size_t i = (size_t)(first - base); i < n; i++)
        count += match[names[i]];
    return count;
}

static uint64_t count_by_name(const struct search *s, const uint8_t *match, const struct lane *lane,
                              uint64_t first, uint64_t last)
{
    uint64_t count = 0;
    while (first < last && !out_cancelled(s->out)) {
        count += count_names(match, lane, first, last);
        first += LANE_BLOCK - first % LANE_BLOCK;
    }
    return count;
}

static uint64_t count_lane(struct search *s, const struct query_line *ql, const struct lane *lane)
{
    const struct part_line *l = ql->line;
    const uint8_t *match = s->match[query_table(&s->book, ql)];
    struct blocks b = {.lane = lane, .dir = 1};
    uint64_t count = 0;
    lod_range(lane, query_line_time(l, s->span.t0_ps), query_line_time(l, s->span.t1_ps), &b.first,
              &b.last);
    if (!s->pat.timed)
        return count_by_name(s, match, lane, b.first, b.last);
    while (b.first < b.last && !out_cancelled(s->out)) {
        if (too_short(s, lane, b.first)) {
            b.first += LANE_BLOCK - b.first % LANE_BLOCK;
            continue;
        }
        if (!next_block(&b))
            break;
        for (size_t i = b.lo; i < b.hi; i++)
            count += match[b.ev[i].name] && in_time(s, &b.ev[i]);
    }
    return count;
}

/* --- hits, nearest first --- */

/* Is a nearer than b, seen in the direction of the search? */
static bool nearer(const struct search *s, const struct hit *a, const struct hit *b)
{
    bool less = a->begin_ps != b->begin_ps ? a->begin_ps < b->begin_ps : a->id < b->id;
    return s->q->dir > 0 ? less : !less;
}

static void sift_down(struct search *s, size_t i, size_t n)
{
    struct hit top = s->heap[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && nearer(s, &s->heap[k], &s->heap[k + 1]))
            k++;
        if (!nearer(s, &top, &s->heap[k]))
            break;
        s->heap[i] = s->heap[k];
    }
    s->heap[i] = top;
}

static void keep(struct search *s, const struct hit *h)
{
    if (s->n == s->max) {
        if (nearer(s, h, &s->heap[0])) {
            s->heap[0] = *h;
            sift_down(s, 0, s->n);
        }
        return;
    }
    size_t i = s->n++;
    for (size_t up; i && nearer(s, &s->heap[up = (i - 1) / 2], h); i = up)
        s->heap[i] = s->heap[up];
    s->heap[i] = *h;
}

/* The farthest comes off the top each time and goes to the end. */
static void sort_hits(struct search *s)
{
    for (size_t n = s->n; n > 1;) {
        struct hit far = s->heap[0];
        s->heap[0] = s->heap[--n];
        s->heap[n] = far;
        sift_down(s, 0, n);
    }
}

static bool beyond_start(const struct search *s, const struct hit *h)
{
    const struct query_search *q = s->q;
    if (h->begin_ps != q->after_ps)
        return q->dir > 0 ? h->begin_ps > q->after_ps : h->begin_ps < q->after_ps;
    return q->dir > 0 ? h->id > q->after_id : h->id < q->after_id;
}

/* The heap is full and whatever comes from here on in this lane is farther. */
static bool full_before(const struct search *s, int64_t begin_ps)
{
    if (s->n < s->max)
        return false;
    int64_t far = s->heap[0].begin_ps;
    return s->q->dir > 0 ? begin_ps > far : begin_ps < far;
}

/* False when the rest of the lane cannot add anything. */
static bool take_block(struct search *s, const struct query_line *ql, uint32_t lane,
                       const struct blocks *b)
{
    const struct part_line *l = ql->line;
    uint32_t table = query_table(&s->book, ql);
    const uint8_t *match = s->match[table];
    for (size_t k = 0; k < b->hi - b->lo; k++) {
        const struct lane_event *ev = &b->ev[b->dir > 0 ? b->lo + k : b->hi - 1 - k];
        if (!match[ev->name])
            continue;
        struct hit h = {.begin_ps = query_session(l, ev->begin_ps),
                        .duration_ps = ev->end_ps - ev->begin_ps,
                        .id = query_id(ql, lane, ev),
                        .line = ql->number,
                        .lane = lane,
                        .str = query_name(&s->book, table, ev->name)};
        if (full_before(s, h.begin_ps))
            return false;
        if (in_time(s, ev) && beyond_start(s, &h))
            keep(s, &h);
    }
    const struct lane_event *end = &b->ev[b->dir > 0 ? b->hi - 1 : b->lo];
    return !full_before(s, query_session(l, end->begin_ps));
}

/* The next block, and those after it, hold only what is farther than all hits held. */
static bool out_of_reach(const struct search *s, const struct part_line *l, const struct blocks *b)
{
    struct lane_node node;
    if (s->n < s->max)
        return false;
    lane_node_get(b->lane, 0, (b->dir > 0 ? b->first : b->last - 1) / LANE_BLOCK, &node);
    return full_before(s, query_session(l, b->dir > 0 ? node.begin_ps : node.end_ps));
}

/* Steps over the next block if it holds nothing that matches; rare names are found so. */
static bool skip_block(const struct search *s, const uint8_t *match, struct blocks *b)
{
    uint64_t ord = b->dir > 0 ? b->first : b->last - 1, base = ord - ord % LANE_BLOCK;
    if (s->pat.timed ? !too_short(s, b->lane, ord)
                     : count_names(match, b->lane, base, base + LANE_BLOCK) > 0)
        return false;
    if (b->dir > 0)
        b->first = base + LANE_BLOCK;
    else
        b->last = base;
    return true;
}

static void hits_in_lane(struct search *s, const struct query_line *ql, uint32_t lane)
{
    const struct part_line *l = ql->line;
    struct blocks b = {.lane = l->lanes[lane], .dir = s->q->dir};
    lod_range(b.lane, query_line_time(l, s->span.t0_ps), query_line_time(l, s->span.t1_ps),
              &b.first, &b.last);
    int64_t after = query_line_time(l, s->q->after_ps);
    uint64_t first, last;
    lod_range(b.lane, b.dir > 0 ? after : -QUERY_LINE_TIME_MAX,
              b.dir > 0 ? QUERY_LINE_TIME_MAX : query_add(after, 1), &first, &last);
    b.first = first > b.first ? first : b.first;
    b.last = last < b.last ? last : b.last;
    while (b.first < b.last && !out_of_reach(s, l, &b) && !out_cancelled(s->out)) {
        if (skip_block(s, s->match[query_table(&s->book, ql)], &b))
            continue;
        if (!next_block(&b) || !take_block(s, ql, lane, &b))
            break;
    }
}

/* --- the query --- */

static enum xp_status prepare(struct search *s, struct xp_error *err)
{
    const struct query_search *q = s->q;
    if (q->limit < 1 || q->limit > LIMIT_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "limit is %u; 1 to %d is expected", q->limit,
                       LIMIT_MAX);
    if (q->dir != 1 && q->dir != -1)
        return xp_fail(err, XP_BAD_REQUEST, 0, "dir is %d; 1 or -1 is expected", q->dir);
    XP_TRY(pattern_parse(&s->pat, q->q, err));
    s->loading = !part_ready(s->p);
    XP_TRY(query_select(&s->book, &q->rows, q->derived, s->a, &s->lines, err));
    XP_TRY(query_times(s->p, q->t0_ps, q->t1_ps, &s->span, err));
    s->max = (size_t)q->limit + 1; /* one more tells whether there are more */
    s->heap = xp_arena_alloc(s->a, s->max * sizeof *s->heap);
    size_t tables = query_tables(&s->book);
    s->match = xp_arena_zalloc(s->a, tables * sizeof *s->match);
    s->made = xp_arena_zalloc(s->a, tables);
    s->any = xp_arena_zalloc(s->a, tables);
    s->counts = xp_arena_zalloc(s->a, (s->lines.n + 1) * sizeof *s->counts);
    if (!s->heap || !s->match || !s->made || !s->any || !s->counts)
        return xp_fail(err, XP_BUSY, 0, "no memory left to search");
    return XP_OK;
}

static enum xp_status search_line(struct search *s, size_t i, struct xp_error *err)
{
    const struct query_line *ql = &s->lines.v[i];
    const struct part_line *l = ql->line;
    uint32_t table = query_table(&s->book, ql);
    if (!s->made[table] && !make_match(s, table))
        return xp_fail(err, XP_BUSY, 0, "no memory left to search");
    if (!line_matches(s, ql))
        return XP_OK;
    for (uint32_t k = 0; k < l->nlanes; k++) {
        s->counts[i] += count_lane(s, ql, l->lanes[k]);
        hits_in_lane(s, ql, k);
    }
    s->total += s->counts[i];
    return XP_OK;
}

static void write_hit(const struct search *s, const struct hit *h, struct xp_json *j)
{
    xp_json_obj(j);
    xp_json_key(j, "id");
    xp_json_u64(j, h->id);
    xp_json_key(j, "line");
    xp_json_u64(j, h->line);
    xp_json_key(j, "lane");
    xp_json_u64(j, h->lane);
    xp_json_key(j, "name");
    xp_json_span(j, query_text(&s->book, h->str));
    xp_json_key(j, "begin_ps");
    xp_json_i64(j, h->begin_ps);
    xp_json_key(j, "duration_ps");
    xp_json_i64(j, h->duration_ps);
    xp_json_obj_end(j);
}

static void write_lines(const struct search *s, struct xp_json *j)
{
    xp_json_key(j, "lines");
    xp_json_arr(j);
    for (size_t i = 0; i < s->lines.n; i++) {
        if (!s->counts[i])
            continue;
        xp_json_obj(j);
        xp_json_key(j, "line");
        xp_json_u64(j, s->lines.v[i].number);
        xp_json_key(j, "count");
        xp_json_u64(j, s->counts[i]);
        xp_json_obj_end(j);
        out_flush(s->out);
    }
    xp_json_arr_end(j);
}

static void write_answer(struct search *s)
{
    struct xp_json j;
    size_t n = s->n < s->q->limit ? s->n : s->q->limit;
    sort_hits(s);
    xp_json_init(&j, &s->out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "q");
    xp_json_span(&j, s->q->q);
    xp_json_key(&j, "total");
    xp_json_u64(&j, s->total);
    write_lines(s, &j);
    xp_json_key(&j, "hits");
    xp_json_arr(&j);
    for (size_t i = 0; i < n; i++) {
        write_hit(s, &s->heap[i], &j);
        out_flush(s->out);
    }
    xp_json_arr_end(&j);
    xp_json_key(&j, "more");
    xp_json_bool(&j, s->n > n);
    xp_json_key(&j, "loading");
    xp_json_bool(&j, s->loading);
    xp_json_obj_end(&j);
}

enum xp_status query_search(const struct part *p, const struct query_search *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct search *s = xp_arena_zalloc(scratch, sizeof *s);
    if (!s)
        return xp_fail(err, XP_BUSY, 0, "no memory left to search");
    s->p = s->book.p = p;
    s->q = q;
    s->a = scratch;
    s->out = out;
    XP_TRY(prepare(s, err));
    for (size_t i = 0; i < s->lines.n && !out_cancelled(out); i++)
        XP_TRY(search_line(s, i, err));
    if (out_cancelled(out))
        return xp_fail(err, XP_CANCELLED, 0, "the search is not wanted any more");
    write_answer(s);
    return XP_OK;
}
