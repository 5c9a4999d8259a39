/* The values of one statistic along a line: counters, bytes in use, FLOPs of ops.
 *
 * Statistics are in the file (store/body.h), so what a request costs is what it reads: of a window
 * with more than LOOK_MAX events every second, third... one of each name is looked at, and the
 * answer says so. (Writers take their counters in turn: every second event of the line may be of
 * one.) Values are thinned to the pixels: of those in one the first, the least, the largest and the
 * last.
 */
#include <math.h>
#include <stdlib.h>

#include "shard/query/query_int.h"
#include "shard/query/values.h"

#define LOOK_MAX 100000 /* events whose bytes are read, and the first of each name: twice that */
#define LIST_LOOK 256   /* of those, for the list of statistics */
#define LIST_MAX 64     /* statistics listed */
#define SERIES_MAX 16
#define CARRY_LOOK (UINT64_C(1) << 20) /* events before the window whose names are looked at */
#define CARRY_MAX 256                  /* counters whose last value from before it is taken */
#define PX_MAX 4096

struct sample {
    int64_t t_ps; /* session */
    uint64_t at;
    uint32_t name, series;
    double v;
};

struct curve {
    const struct part *p;
    struct query_book book;
    const struct query_curve *q;
    struct xp_arena *a;
    struct out *out;
    struct query_span span;
    struct query_line line;
    const struct part_plane *plane;
    bool loading;
    uint64_t events; /* of the window, and the last one before */
    size_t looked;   /* of these */
    struct sample *v;
    size_t n, cap;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the values");
}

static enum xp_status not_wanted(struct xp_error *err)
{
    return xp_fail(err, XP_CANCELLED, 0, "the values are not wanted any more");
}

/* --- which events --- */

struct reach {
    uint64_t first, last;
};

static struct reach reach_of(const struct curve *c, uint32_t lane)
{
    struct reach r;
    const struct part_line *l = c->line.line;
    lod_range(l->lanes[lane], query_line_time(l, c->span.t0_ps), query_line_time(l, c->span.t1_ps),
              &r.first, &r.last);
    r.first -= r.first > 0; /* whose value holds when the window begins */
    return r;
}

/* Every how many events of a name one is looked at. */
struct stride {
    uint64_t every;
    uint64_t *seen; /* by name, the last is of those that have none: events so far */
    bool scattered; /* there are too many names to look at the first of each */
};

static uint64_t *seen_of(const struct curve *c, const struct stride *s, uint32_t name)
{
    return &s->seen[name < c->plane->nevmeta ? name : c->plane->nevmeta];
}

static void count_names(const struct curve *c, const struct stride *s, const struct reach *r,
                        const struct lane *lane)
{
    uint32_t names[LANE_BLOCK];
    for (uint64_t b = r->first / LANE_BLOCK; b * LANE_BLOCK < r->last; b++) {
        size_t n = lane_names(lane, b, names);
        for (size_t i = 0; i < n; i++)
            if (b * LANE_BLOCK + i >= r->first && b * LANE_BLOCK + i < r->last)
                ++*seen_of(c, s, names[i]);
    }
}

static enum xp_status choose_stride(struct curve *c, size_t most, struct stride *s,
                                    struct xp_error *err)
{
    const struct part_line *l = c->line.line;
    size_t n = (size_t)c->plane->nevmeta + 1, names = 0;
    *s = (struct stride){.every = c->events > most ? (c->events + most - 1) / most : 1};
    s->seen = xp_arena_zalloc(c->a, n * sizeof *s->seen);
    if (!s->seen)
        return no_memory(err);
    c->cap = (size_t)(c->events < 2 * most ? c->events : 2 * most);
    if (s->every == 1)
        return XP_OK;
    for (uint32_t k = 0; k < l->nlanes && !out_cancelled(c->out); k++) {
        struct reach r = reach_of(c, k);
        count_names(c, s, &r, l->lanes[k]);
    }
    for (size_t i = 0; i < n; i++)
        names += s->seen[i] > 0;
    s->scattered = names > most;
    memset(s->seen, 0, n * sizeof *s->seen);
    return XP_OK;
}

static void take(struct curve *c, const struct stride *s, const struct reach *r, uint32_t lane)
{
    const struct part_line *l = c->line.line;
    struct lane_cursor cur;
    struct lane_event ev;
    lane_seek_ord(&cur, l->lanes[lane], r->first);
    for (uint64_t i = r->first; i < r->last && c->n < c->cap && lane_next(&cur, &ev); i++) {
        uint64_t nth = (*seen_of(c, s, ev.name))++;
        if (s->scattered)
            nth += (ev.name * UINT64_C(0x9e3779b97f4a7c15) >> 32) % s->every;
        if (nth % s->every == 0)
            c->v[c->n++] = (struct sample){
                .t_ps = query_session(l, ev.begin_ps), .at = ev.at, .name = ev.name};
    }
}

/* --- counters in turn --- */

static bool is_counters(const struct curve *c)
{
    return xp_span_eq(c->q->stat, XP_SPAN_LIT("counter_value"));
}

struct carry {
    uint32_t *lane, *sample; /* by name: where it was met last, and its sample; 0: none, else + 1 */
    size_t n;
};

/* The event is the last one of its lane and name. Of several lanes' the latest holds. */
static void carry_one(struct curve *c, struct carry *k, uint32_t lane, uint64_t ord)
{
    const struct part_line *l = c->line.line;
    struct lane_cursor cur;
    struct lane_event ev;
    lane_seek_ord(&cur, l->lanes[lane], ord);
    if (!lane_next(&cur, &ev))
        return;
    uint32_t *sample = &k->sample[ev.name < c->plane->nevmeta ? ev.name : c->plane->nevmeta];
    int64_t t_ps = query_session(l, ev.begin_ps);
    if (*sample && c->v[*sample - 1].t_ps >= t_ps)
        return;
    if (!*sample) {
        *sample = (uint32_t)++c->n;
        k->n++;
    }
    c->v[*sample - 1] = (struct sample){.t_ps = t_ps, .at = ev.at, .name = ev.name};
}

static void carry_lane(struct curve *c, struct carry *k, uint32_t lane)
{
    const struct lane *l = c->line.line->lanes[lane];
    uint64_t first = reach_of(c, lane).first, end = first + 1; /* that one is taken already */
    uint64_t stop = end > CARRY_LOOK ? end - CARRY_LOOK : 0;
    uint32_t names[LANE_BLOCK];
    while (end > stop && k->n < CARRY_MAX && !out_cancelled(c->out)) {
        uint64_t block = (end - 1) / LANE_BLOCK * LANE_BLOCK;
        size_t n = lane_names(l, block / LANE_BLOCK, names);
        for (size_t i = end - block; i-- > 0 && k->n < CARRY_MAX;) {
            uint32_t name = i < n && names[i] < c->plane->nevmeta ? names[i] : c->plane->nevmeta;
            bool met = k->lane[name] == lane + 1;
            k->lane[name] = lane + 1;
            if (!met && block + i != first)
                carry_one(c, k, lane, block + i);
        }
        end = block;
    }
}

/* Writers take their counters in turn: when the window begins the value of each holds that was
 * written last, and only one of these events is the last before it. */
static enum xp_status carry_in(struct curve *c, struct xp_error *err)
{
    size_t n = (size_t)c->plane->nevmeta + 1;
    struct carry k = {.lane = xp_arena_zalloc(c->a, n * sizeof *k.lane),
                      .sample = xp_arena_zalloc(c->a, n * sizeof *k.sample)};
    if (!k.lane || !k.sample)
        return no_memory(err);
    for (uint32_t i = 0; i < c->line.line->nlanes; i++)
        carry_lane(c, &k, i);
    return XP_OK;
}

static int by_place(const void *x, const void *y)
{
    const struct sample *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

static enum xp_status choose_events(struct curve *c, size_t most, struct xp_error *err)
{
    const struct part_line *l = c->line.line;
    struct stride stride;
    for (uint32_t k = 0; k < l->nlanes; k++) {
        struct reach r = reach_of(c, k);
        c->events += r.last - r.first;
    }
    XP_TRY(choose_stride(c, most, &stride, err));
    c->v = xp_arena_alloc(c->a, (c->cap + CARRY_MAX) * sizeof *c->v);
    if (!c->v)
        return no_memory(err);
    for (uint32_t k = 0; k < l->nlanes && !out_cancelled(c->out); k++) {
        struct reach r = reach_of(c, k);
        take(c, &stride, &r, k);
    }
    c->looked = c->n;
    if (is_counters(c))
        XP_TRY(carry_in(c, err));
    qsort(c->v, c->n, sizeof *c->v, by_place);
    return XP_OK;
}

/* --- their values --- */

/* Values of a name, for events that have none of their own. */
struct shared {
    bool known, has;
    double v;
};

static bool take_value(struct values_eye *eye, double *v)
{
    struct value got;
    while (values_next(eye, &got)) {
        if (got.type != VALUE_DOUBLE && got.type != VALUE_U64 && got.type != VALUE_I64)
            continue;
        *v = got.type == VALUE_I64   ? (double)(int64_t)got.num
             : got.type == VALUE_U64 ? (double)got.num
                                     : value_double(&got);
        return isfinite(*v);
    }
    return false;
}

static enum xp_status shared_value(struct curve *c, struct values_eye *eye, struct shared *s,
                                   uint32_t name, struct xp_error *err)
{
    if (!s->known) {
        if (name < c->plane->nevmeta)
            XP_TRY(values_of_evmeta(eye, name, err));
        s->has = name < c->plane->nevmeta && take_value(eye, &s->v);
        s->known = true;
    }
    return XP_OK;
}

/* Only events with a value are left. */
static enum xp_status read_values(struct curve *c, struct xp_error *err)
{
    struct values_eye eye;
    char *stat = xp_arena_zalloc(c->a, c->q->stat.n + 1);
    struct shared *shared = xp_arena_zalloc(c->a, ((size_t)c->plane->nevmeta + 1) * sizeof *shared);
    size_t to = 0;
    if (!stat || !shared)
        return no_memory(err);
    memcpy(stat, c->q->stat.p, c->q->stat.n);
    values_open(&eye, c->p, c->plane, &(const char *){stat}, 1, c->a);
    for (size_t i = 0; i < c->n; i++) {
        struct sample s = c->v[i];
        if (out_cancelled(c->out))
            return not_wanted(err);
        XP_TRY(values_of_event(&eye, s.at, err));
        if (!take_value(&eye, &s.v)) {
            struct shared *of = &shared[s.name < c->plane->nevmeta ? s.name : c->plane->nevmeta];
            XP_TRY(shared_value(c, &eye, of, s.name, err));
            if (!of->has)
                continue;
            s.v = of->v;
        }
        c->v[to++] = s;
    }
    c->n = to;
    return XP_OK;
}

/* --- curves --- */

static int by_series(const void *x, const void *y)
{
    const struct sample *a = x, *b = y;
    if (a->series != b->series)
        return a->series > b->series ? 1 : -1;
    if (a->t_ps != b->t_ps)
        return a->t_ps > b->t_ps ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

/* A counter's events are called by what is counted: a curve each. Other values make one. */
static void deal(struct curve *c)
{
    uint32_t table = query_table(&c->book, &c->line);
    for (size_t i = 0; i < c->n; i++)
        c->v[i].series = is_counters(c) ? query_name(&c->book, table, c->v[i].name) : 0;
    qsort(c->v, c->n, sizeof *c->v, by_series);
}

static size_t series_end(const struct curve *c, size_t from)
{
    size_t i = from;
    while (i < c->n && c->v[i].series == c->v[from].series)
        i++;
    return i;
}

/* Of a pixel's samples [i, end): first, least, largest, last, in their order, each once. */
static size_t thin(const struct sample *v, size_t i, size_t end, size_t keep[4])
{
    size_t low = i, high = i, n = 0;
    for (size_t k = i; k < end; k++) {
        low = v[k].v < v[low].v ? k : low;
        high = v[k].v > v[high].v ? k : high;
    }
    size_t all[4] = {i, low < high ? low : high, low < high ? high : low, end - 1};
    for (size_t k = 0; k < 4; k++)
        if (!n || keep[n - 1] != all[k])
            keep[n++] = all[k];
    return n;
}

static uint64_t pixel_of(const struct curve *c, int64_t t_ps)
{
    uint64_t span = (uint64_t)c->span.t1_ps - (uint64_t)c->span.t0_ps;
    if (t_ps < c->span.t0_ps)
        return 0;
    return 1 + (uint64_t)((unsigned __int128)((uint64_t)t_ps - (uint64_t)c->span.t0_ps) * c->q->px /
                          span);
}

/* One sample after the other that is to be shown, of a series. */
static size_t thin_all(const struct curve *c, size_t from, size_t end, size_t *keep)
{
    size_t n = 0;
    for (size_t i = from; i < end;) {
        size_t k = i;
        uint64_t pixel = pixel_of(c, c->v[i].t_ps);
        while (k < end && pixel_of(c, c->v[k].t_ps) == pixel)
            k++;
        n += thin(c->v, i, k, &keep[n]);
        i = k;
    }
    return n;
}

static void write_series(struct curve *c, struct xp_json *j, size_t from, size_t end, size_t *keep)
{
    size_t n = thin_all(c, from, end, keep);
    double low = c->v[from].v, high = low;
    for (size_t i = from; i < end; i++) {
        low = c->v[i].v < low ? c->v[i].v : low;
        high = c->v[i].v > high ? c->v[i].v : high;
    }
    xp_json_obj(j);
    xp_json_key(j, "name");
    xp_json_span(j, query_text(&c->book, c->v[from].series));
    xp_json_key(j, "values");
    xp_json_u64(j, end - from);
    xp_json_key(j, "min");
    xp_json_double(j, low);
    xp_json_key(j, "max");
    xp_json_double(j, high);
    xp_json_key(j, "t");
    xp_json_arr(j);
    for (size_t i = 0; i < n; i++)
        xp_json_i64(j, c->v[keep[i]].t_ps);
    xp_json_arr_end(j);
    xp_json_key(j, "v");
    xp_json_arr(j);
    for (size_t i = 0; i < n; i++)
        xp_json_double(j, c->v[keep[i]].v);
    xp_json_arr_end(j);
    xp_json_obj_end(j);
    out_flush(c->out);
}

/* Does a sample of the series that ends here lie in the window? Else they only say what held when
 * it began. */
static bool is_alive(const struct curve *c, size_t end)
{
    return c->v[end - 1].t_ps >= c->span.t0_ps;
}

static size_t alive(const struct curve *c)
{
    size_t n = 0;
    for (size_t end, i = 0; i < c->n; i = end) {
        end = series_end(c, i);
        n += is_alive(c, end);
    }
    return n;
}

/* There is room for those that the window is of first, all in the order that every window has. */
static enum xp_status write_all(struct curve *c, struct xp_json *j, struct xp_error *err)
{
    uint64_t series = 0;
    size_t n = alive(c), room[2] = {n < SERIES_MAX ? SERIES_MAX - n : 0, SERIES_MAX};
    size_t *keep = xp_arena_alloc(c->a, (c->n + 4) * sizeof *keep);
    if (!keep)
        return no_memory(err);
    xp_json_key(j, "series");
    xp_json_arr(j);
    for (size_t i = 0; i < c->n; series++) {
        size_t end = series_end(c, i);
        size_t *left = &room[is_alive(c, end)];
        if (*left) {
            write_series(c, j, i, end, keep);
            --*left;
        }
        i = end;
    }
    xp_json_arr_end(j);
    xp_json_key(j, "series_total");
    xp_json_u64(j, series);
    return XP_OK;
}

/* --- which statistics there are --- */

struct list {
    int64_t ids[LIST_MAX];
    size_t n;
};

static void note_stats(struct list *l, struct xp_span body, uint32_t field)
{
    struct xspace_stats it = xspace_stats_open(body, field);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s)) {
        size_t i = 0;
        if (s.type != XSPACE_DOUBLE && s.type != XSPACE_U64 && s.type != XSPACE_I64)
            continue;
        while (i < l->n && l->ids[i] != s.metadata_id)
            i++;
        if (i == l->n && l->n < LIST_MAX)
            l->ids[l->n++] = s.metadata_id;
    }
}

static enum xp_status list_stats(struct curve *c, struct xp_json *j, struct xp_error *err)
{
    struct body_reader r;
    struct list l = {.n = 0};
    struct xp_span body;
    body_open(&r, c->p, c->a);
    for (size_t i = 0; i < c->n && !out_cancelled(c->out); i++) {
        XP_TRY(body_event(&r, c->v[i].at, &body, err));
        note_stats(&l, body, 4);
        if (c->v[i].name < c->plane->nevmeta) {
            XP_TRY(body_evmeta(&r, &c->plane->evmeta[c->v[i].name], &body, err));
            note_stats(&l, body, 5);
        }
    }
    xp_json_key(j, "stats");
    xp_json_arr(j);
    for (size_t i = 0; i < l.n; i++)
        xp_json_span(j, part_stat_name(c->p, c->plane, l.ids[i]));
    xp_json_arr_end(j);
    return XP_OK;
}

static enum xp_status prepare(struct curve *c, struct xp_error *err)
{
    struct query_lines lines;
    if (c->q->rows.n != 1)
        return xp_fail(err, XP_BAD_REQUEST, 0, "rows is one line: its number");
    if (c->q->px < 1 || c->q->px > PX_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "px is %u; 1 to %d is expected", c->q->px, PX_MAX);
    c->loading = !part_ready(c->p);
    XP_TRY(query_select(&c->book, &c->q->rows, false, c->a, &lines, err));
    XP_TRY(query_times(c->p, c->q->t0_ps, c->q->t1_ps, &c->span, err));
    if (lines.n == 0)
        return xp_fail(err, XP_BUSY, 0, "the line's plane is not decoded yet");
    c->line = lines.v[0];
    if (c->line.made)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "a derived line has no values of its own: ask for those of the line that it "
                       "was made from");
    c->plane = &c->p->planes[c->line.line->plane];
    return XP_OK;
}

enum xp_status query_curve(const struct part *p, const struct query_curve *q,
                           struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct curve c = {.p = p, .book.p = p, .q = q, .a = scratch, .out = out};
    struct xp_json j;
    bool list = q->stat.n == 0;
    XP_TRY(prepare(&c, err));
    XP_TRY(choose_events(&c, list ? LIST_LOOK : LOOK_MAX, err));
    if (!list) {
        XP_TRY(read_values(&c, err));
        deal(&c);
    }
    if (out_cancelled(out))
        return not_wanted(err);
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "line");
    xp_json_u64(&j, c.line.number);
    xp_json_key(&j, "t0_ps");
    xp_json_i64(&j, c.span.t0_ps);
    xp_json_key(&j, "t1_ps");
    xp_json_i64(&j, c.span.t1_ps);
    xp_json_key(&j, "events");
    xp_json_u64(&j, c.events);
    xp_json_key(&j, "looked");
    xp_json_u64(&j, c.looked);
    if (!list) {
        xp_json_key(&j, "stat");
        xp_json_span(&j, q->stat);
    }
    XP_TRY(list ? list_stats(&c, &j, err) : write_all(&c, &j, err));
    xp_json_key(&j, "loading");
    xp_json_bool(&j, c.loading);
    xp_json_obj_end(&j);
    return XP_OK;
}
