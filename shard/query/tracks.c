/* Planes and lines, in the order in which people want to see them, a page at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "shard/query/pattern.h"
#include "shard/query/query_int.h"

/* An answer ends behind the row that takes it above this. */
#define PAGE_BYTES (900 << 10)

static const char *const kind_names[] = {"device", "device", "host", "other"};

struct plane_key {
    struct xp_span name;
    enum query_kind kind;
    uint32_t plane;
    bool ready;
};

static bool digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The run of digits at s[*i] without leading zeros; *i moves behind it. */
static struct xp_span number_at(struct xp_span s, size_t *i)
{
    while (*i + 1 < s.n && s.p[*i] == '0' && digit(s.p[*i + 1]))
        ++*i;
    size_t from = *i;
    while (*i < s.n && digit(s.p[*i]))
        ++*i;
    return xp_span_of(s.p + from, *i - from);
}

/* Byte order, but runs of digits by their value: TPU:2 before TPU:10. */
static int natural_cmp(struct xp_span a, struct xp_span b)
{
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n) {
        if (digit(a.p[i]) && digit(b.p[k])) {
            struct xp_span x = number_at(a, &i), y = number_at(b, &k);
            if (x.n != y.n)
                return x.n < y.n ? -1 : 1;
            int c = xp_span_cmp(x, y);
            if (c)
                return c;
        } else if (a.p[i] != b.p[k]) {
            return a.p[i] < b.p[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    return (i < a.n) - (k < b.n);
}

static int by_plane(const void *x, const void *y)
{
    const struct plane_key *a = x, *b = y;
    if (a->ready != b->ready)
        return a->ready ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int c = natural_cmp(a->name, b->name);
    return c ? c : a->plane < b->plane ? -1 : 1;
}

static int64_t display_id(const struct query_line *l)
{
    if (l->made)
        return l->made->tid;
    return l->line->display_id ? l->line->display_id : l->line->id;
}

/* Threads by number, as XProf does: the main thread's is the lowest as a rule. */
static int by_line(const void *x, const void *y)
{
    const struct query_line *a = x, *b = y;
    int64_t i = display_id(a), k = display_id(b);
    if (i != k)
        return i < k ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_plane_and_line(const void *x, const void *y)
{
    const struct query_line *a = *(const struct query_line *const *)x;
    const struct query_line *b = *(const struct query_line *const *)y;
    if (a->line->plane != b->line->plane)
        return a->line->plane < b->line->plane ? -1 : 1;
    return by_line(a, b);
}

static const char *state_name(const struct part_plane *pl)
{
    switch (atomic_load_explicit(&((struct part_plane *)pl)->state, memory_order_acquire)) {
    case PART_WAITING:
        return "waiting";
    case PART_LOADING:
        return "loading";
    case PART_READY:
        return "ready";
    default:
        return "failed";
    }
}

/* How a derived line was made, for people. */
static const char *how_made(const struct derive_line *l)
{
    static const struct {
        int64_t first, last;
        const char *how;
    } made[] = {
        {DERIVE_LINE_STEPS, DERIVE_LINE_STEPS, "one event a step, around the kernels of its group"},
        {DERIVE_LINE_LAUNCHES, DERIVE_LINE_LAUNCHES, "the kernels that a step launched, counted"},
        {DERIVE_LINE_SCOPES, DERIVE_LINE_SCOPES,
         "name scopes of the framework, taken from the names of the ops that ran"},
        {DERIVE_LINE_OPS, DERIVE_LINE_OPS,
         "ops of the framework, taken from the names of the ops that ran"},
        {DERIVE_LINE_SOURCE, DERIVE_LINE_SOURCE,
         "lines of source code, taken from the ops that ran"},
        {DERIVE_LINE_OFFLOADS, DERIVE_LINE_OFFLOADS + DERIVE_LINE_OFFLOADS_MAX - 1,
         "offloads to the host, each from its start to its end"},
        {DERIVE_LINE_GPU_FIRST, DERIVE_LINE_GPU_LAST,
         "taken from what the kernels of one stream say about their origin"},
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (l->line->id >= made[i].first && l->line->id <= made[i].last)
            return made[i].how;
    return "the time between a thread pool's start and stop marks";
}

static void write_line(const struct query_book *b, const struct query_line *ql, struct xp_json *j)
{
    const struct part_line *l = ql->line;
    xp_json_obj(j);
    xp_json_key_u64(j, "line", ql->number);
    xp_json_key_i64(j, "id", display_id(ql));
    xp_json_key(j, "name");
    xp_json_span(j, query_line_name(b, ql));
    xp_json_key_u64(j, "events", l->nevents);
    xp_json_key_u64(j, "lanes", l->nlanes);
    xp_json_key_i64(j, "begin_ps", l->begin_ps);
    xp_json_key_i64(j, "end_ps", l->end_ps);
    xp_json_key_bool(j, "derived", ql->made != NULL);
    if (ql->made) {
        xp_json_key(j, "how");
        xp_json_str(j, how_made(ql->made));
    }
    xp_json_key_u64(j, "odd", l->odd);
    xp_json_key_u64(j, "overflow", l->overflow);
    xp_json_obj_end(j);
}

/* --- which rows --- */

/* Rows are planes (their headings) and lines, counted through the display order. */
struct page {
    const struct part *p;
    struct query_book book;
    const struct query_tracks *q;
    const struct pattern *pat; /* NULL: every row */
    struct out *out;
    struct xp_json j;
    const struct query_line **made; /* the derived lines, in display order */
    uint32_t nmade;
    struct xp_error not_made; /* why there are none */
    struct query_line *lines; /* room for those of the largest plane */
    uint64_t row;             /* of those that match, looked at so far */
    uint64_t lines_seen;      /* lines of published planes */
    uint64_t next;            /* first row that is not written, once the page is full */
    uint32_t rows;            /* written */
    size_t bytes;
    bool full;
};

static int by_number(const void *key, const void *row)
{
    uint32_t a = *(const uint32_t *)key, b = *(const uint32_t *)row;
    return (a > b) - (a < b);
}

static bool line_matches(const struct page *g, struct xp_span plane, const struct query_line *l)
{
    const struct query_rows *r = &g->q->rows;
    if (r->n && !bsearch(&l->number, r->lines, r->n, sizeof *r->lines, by_number))
        return false;
    return !g->pat || pattern_match_row(g->pat, plane, query_line_name(&g->book, l));
}

/* The next of the rows that match: is it of this page? */
static bool take_row(struct page *g)
{
    uint64_t row = g->row++;
    if (row < g->q->first || g->full)
        return false;
    if (g->rows == g->q->limit || (g->rows && g->bytes > PAGE_BYTES)) {
        g->full = true;
        g->next = row;
        return false;
    }
    g->rows++;
    return true;
}

/* Lines of the plane that match, in display order: as a rule they are in it already. */
static uint32_t file_lines(const struct page *g, const struct plane_key *key)
{
    const struct part_plane *pl = &g->p->planes[key->plane];
    uint32_t n = 0;
    bool sorted = true;
    for (uint32_t i = 0; key->ready && !g->q->derived_only && i < pl->nlines; i++) {
        struct query_line l = {.number = pl->first_line + i};
        l.line = &g->p->lines[l.number];
        if (!line_matches(g, key->name, &l))
            continue;
        g->lines[n++] = l;
        sorted = sorted && (n < 2 || by_line(&g->lines[n - 2], &g->lines[n - 1]) < 0);
    }
    if (!sorted)
        qsort(g->lines, n, sizeof *g->lines, by_line);
    return n;
}

static int by_made_plane(const void *key, const void *made)
{
    uint32_t a = *(const uint32_t *)key, b = (*(const struct query_line *const *)made)->line->plane;
    return (a > b) - (a < b);
}

/* The same with the plane's derived lines behind them. */
static uint32_t lines_of(const struct page *g, const struct plane_key *key)
{
    uint32_t n = file_lines(g, key);
    const struct query_line **at =
        g->nmade ? bsearch(&key->plane, g->made, g->nmade, sizeof *g->made, by_made_plane) : NULL;
    if (!at)
        return n;
    while (at > g->made && at[-1]->line->plane == key->plane)
        at--;
    for (; at < g->made + g->nmade && (*at)->line->plane == key->plane; at++)
        if (line_matches(g, key->name, *at))
            g->lines[n++] = **at;
    return n;
}

/* --- one plane --- */

static void open_plane(struct page *g, const struct plane_key *key)
{
    const struct part_plane *pl = &g->p->planes[key->plane];
    struct xp_json *j = &g->j;
    size_t before = g->out->text.n;
    xp_json_obj(j);
    xp_json_key_u64(j, "plane", key->plane);
    xp_json_key(j, "name");
    xp_json_span(j, key->name);
    xp_json_key(j, "state");
    xp_json_str(j, key->ready ? "ready" : state_name(pl));
    xp_json_key_u64(j, "events", key->ready ? pl->nevents : 0);
    xp_json_key(j, "kind");
    xp_json_str(j, kind_names[key->kind]);
    xp_json_key_u64(j, "lines_total", key->ready ? pl->nlines : 0);
    xp_json_key(j, "lines");
    xp_json_arr(j);
    g->bytes += g->out->text.n - before;
}

static void close_plane(struct page *g)
{
    xp_json_arr_end(&g->j);
    xp_json_obj_end(&g->j);
    out_flush(g->out);
}

static void write_plane(struct page *g, const struct plane_key *key)
{
    uint32_t n = lines_of(g, key);
    bool open = false;
    g->lines_seen += key->ready ? g->p->planes[key->plane].nlines : 0;
    bool only_lines = g->q->rows.n || g->q->derived_only;
    if (!n &&
        (only_lines || (g->pat && !pattern_match_row(g->pat, key->name, (struct xp_span){0}))))
        return; /* a plane whose lines match is there in any case */
    if (take_row(g)) {
        open_plane(g, key);
        open = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (g->full || g->row + (n - i) <= g->q->first) { /* none of the rest is of this page */
            g->row += n - i;
            break;
        }
        if (!take_row(g))
            continue;
        if (!open) /* begun on the page before */
            open_plane(g, key);
        open = true;
        size_t before = g->out->text.n;
        write_line(&g->book, &g->lines[i], &g->j);
        g->bytes += g->out->text.n - before;
        if (i % 64 == 0)
            out_flush(g->out);
    }
    if (open)
        close_plane(g);
}

/* --- the answer --- */

static void write_damage(const struct part *p, bool known, struct xp_json *j)
{
    xp_json_key(j, "damage");
    if (!known || p->damage.status == XP_OK) {
        xp_json_null(j);
        return;
    }
    xp_json_obj(j);
    xp_json_key_u64(j, "offset", p->damage.offset);
    xp_json_key(j, "detail");
    xp_json_str(j, p->damage.text);
    xp_json_obj_end(j);
}

static void write_head(const struct part *p, const struct query_progress *pr,
                       const struct plane_key *planes, struct xp_json *j)
{
    struct query_span span;
    uint64_t events = 0;
    char wall[24];

    query_times(p, 0, 0, &span, NULL);
    for (uint32_t i = 0; i < p->nplanes; i++)
        events += planes[i].ready ? p->planes[planes[i].plane].nevents : 0;
    xp_json_key_i64(j, "begin_ps", span.t0_ps);
    xp_json_key_i64(j, "end_ps", span.t1_ps - 1);
    xp_json_key_u64(j, "events", events);
    xp_json_key(j, "start_wall_ns");
    if (p->start_wall_ns) {
        snprintf(wall, sizeof wall, "%lld", (long long)p->start_wall_ns);
        xp_json_str(j, wall);
    } else {
        xp_json_null(j);
    }
    xp_json_key_bool(j, "loading", pr->loading);
    xp_json_key_u64(j, "bytes_done", pr->bytes_done);
    xp_json_key_u64(j, "bytes_total", pr->bytes_total);
    xp_json_key_u64(j, "planes_done", pr->planes_done);
    xp_json_key_u64(j, "planes_total", pr->planes_total);
    xp_json_key_bool(j, "partial", pr->partial);
    write_damage(p, pr->partial, j);
}

static void write_tail(struct page *g)
{
    char token[24];
    xp_json_key_u64(&g->j, "lines_total", g->lines_seen);
    if (g->book.d || g->not_made.status != XP_OK)
        xp_json_key_u64(&g->j, "derived_total", g->book.nmade);
    if (g->not_made.status != XP_OK) {
        xp_json_key(&g->j, "derived_note");
        xp_json_str(&g->j, g->not_made.text);
    }
    xp_json_key_u64(&g->j, "rows_total", g->row);
    xp_json_key_u64(&g->j, "first_row", g->q->first);
    xp_json_key_u64(&g->j, "rows", g->rows);
    xp_json_key(&g->j, "next");
    if (g->full) {
        snprintf(token, sizeof token, "%llu", (unsigned long long)g->next);
        xp_json_str(&g->j, token);
    } else {
        xp_json_null(&g->j);
    }
}

static enum xp_status write_page(struct page *g, const struct query_progress *pr,
                                 const struct plane_key *keys, struct xp_error *err)
{
    xp_json_init(&g->j, &g->out->text);
    xp_json_obj(&g->j);
    write_head(g->p, pr, keys, &g->j);
    xp_json_key(&g->j, "planes");
    xp_json_arr(&g->j);
    for (uint32_t i = 0; i < g->p->nplanes; i++) {
        write_plane(g, &keys[i]);
        if (i % 256 == 0 && out_cancelled(g->out))
            return xp_fail(err, XP_CANCELLED, 0, "the list of tracks is not wanted any more");
    }
    xp_json_arr_end(&g->j);
    write_tail(g);
    xp_json_obj_end(&g->j);
    return XP_OK;
}

/* The planes in display order, and in *most the lines of the largest. */
static struct plane_key *sorted_planes(const struct part *p, struct xp_arena *a, uint32_t *most)
{
    bool sorted = true;
    struct plane_key *keys = xp_arena_alloc(a, ((size_t)p->nplanes + 1) * sizeof *keys);
    *most = 0;
    for (uint32_t i = 0; keys && i < p->nplanes; i++) {
        keys[i] = (struct plane_key){.plane = i, .kind = QUERY_OTHER};
        keys[i].ready = plane_ready(&p->planes[i]);
        if (keys[i].ready) {
            keys[i].name = part_str(p, p->planes[i].name);
            keys[i].kind = query_plane_kind(keys[i].name);
            *most = p->planes[i].nlines > *most ? p->planes[i].nlines : *most;
        }
        sorted = sorted && (i == 0 || by_plane(&keys[i - 1], &keys[i]) < 0);
    }
    if (keys && !sorted)
        qsort(keys, p->nplanes, sizeof *keys, by_plane);
    return keys;
}

static enum xp_status check(const struct query_tracks *q, struct pattern *pat, struct xp_error *err)
{
    if (q->limit < 1 || q->limit > QUERY_TRACKS_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "limit is %u; 1 to %d is expected", q->limit,
                       QUERY_TRACKS_MAX);
    if (!q->q.n)
        return XP_OK;
    XP_TRY(pattern_parse(pat, q->q, err));
    if (pat->timed)
        return xp_fail(err, XP_BAD_REQUEST, 0, "q: a row has no duration");
    return XP_OK;
}

/* The derived lines, once the whole profile is there: until then it is `loading`. */
static enum xp_status take_made(struct page *g, struct xp_arena *a, struct xp_error *err)
{
    bool asked = g->q->rows.n && g->q->rows.lines[g->q->rows.n - 1] >= g->p->nlines;
    if ((!g->q->derived && !g->q->derived_only && !asked) || !part_ready(g->p))
        return XP_OK;
    enum xp_status status = query_derive(&g->book, a, err);
    if (status == XP_TOO_LARGE) {
        g->not_made = *err;
        return XP_OK;
    }
    XP_TRY(status);
    g->made = xp_arena_alloc(a, ((size_t)g->book.nmade + 1) * sizeof(const struct query_line *));
    if (!g->made)
        return xp_fail(err, XP_BUSY, 0, "no memory left for a list of derived lines");
    g->nmade = g->book.nmade;
    for (uint32_t i = 0; i < g->nmade; i++)
        g->made[i] = &g->book.made[i];
    qsort(g->made, g->nmade, sizeof(const struct query_line *), by_plane_and_line);
    return XP_OK;
}

enum xp_status query_tracks(const struct part *p, const struct query_tracks *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct page g = {.p = p, .book.p = p, .q = q, .out = out};
    struct pattern pat;
    struct query_progress pr;
    uint32_t most;
    XP_TRY(check(q, &pat, err));
    g.pat = q->q.n ? &pat : NULL;
    query_progress(p, &pr); /* first: see query_int.h */
    struct plane_key *keys = sorted_planes(p, scratch, &most);
    XP_TRY(take_made(&g, scratch, err));
    g.lines = xp_arena_alloc(scratch, ((size_t)most + g.nmade + 1) * sizeof *g.lines);
    if (!keys || !g.lines)
        return xp_fail(err, XP_BUSY, 0, "no memory left to list %u planes", p->nplanes);
    return write_page(&g, &pr, keys, err);
}
