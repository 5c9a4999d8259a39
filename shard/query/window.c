/* The timeline window: lanes as rectangles, as many as fit the answer.
 *
 * In three steps: count the events of each row and sample what it will cost; walk the pyramids
 * at the cell width that the samples promise to fit; measure, and merge what was walked into
 * wider cells until it does fit. So that the pyramids are walked once.
 */
#include "lib/base/pb_wire.h"
#include "lib/base/utf8.h"
#include "shard/query/query_int.h"

#define PX_MAX 16384
#define BYTES_DEFAULT 65536
#define BYTES_MIN 4096
#define BYTES_MAX (4u << 20)

/* A name is drawn into a rectangle; more of it is in the event's own answer. */
#define NAME_MAX_BYTES 120

/* Cells may be as wide as this many pixels where everything in them is dense (lod.h). */
#define DENSE_PX 4

/* What is aimed at before anything is measured, in bytes a rectangle (merged ones: 14-20). */
#define RECT_BYTES 14

/* Bytes outside the rows, and roughly those of a row outside its rectangles. */
#define HEAD_BYTES 352
#define ROW_BYTES 36

/* Below a pixel of 1 ps cells would have no length and nothing were merged: fine for lanes with
 * no more events than this. */
#define SINGLES_MAX 65536

struct row {
    const struct part_line *line;
    const struct lane *lane_data;
    uint32_t number, lane;
    uint32_t table;    /* of the names */
    uint64_t first_id; /* of a derived line's lane; 0: ids are offsets */
    uint64_t first, last;
    size_t at, n; /* its rectangles */
};

/* Names of the answer, by query_name's ids. */
struct names {
    uint32_t *slots; /* open addressing: index + 1 in v */
    uint32_t mask, n, cap;
    uint32_t *v;
    size_t bytes;
};

struct window {
    const struct part *p;
    struct query_book book;
    struct xp_arena *a;
    struct out *out;
    struct query_progress progress;
    struct query_span span;
    uint32_t px, max_bytes, merge_px;
    struct row *rows;
    size_t nrows, cap_rows, max_rows;
    struct lod_sample *samples;
    size_t nsamples, cap_samples;
    struct lod_rects rects;
    struct names names;
    uint64_t events;
    uint32_t cut_rows;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to draw this window");
}

/* --- rows --- */

static void *grown(struct xp_arena *a, void *old, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 256;
    void *v = xp_arena_alloc(a, more * size);
    if (!v)
        return NULL;
    if (n)
        memcpy(v, old, n * size);
    *cap = more;
    return v;
}

static bool add_row(struct window *w, const struct row *r)
{
    w->events += r->last - r->first;
    if (w->nrows == w->max_rows) {
        w->cut_rows++;
        return true;
    }
    if (w->nrows == w->cap_rows) {
        struct row *v = grown(w->a, w->rows, w->nrows, &w->cap_rows, sizeof *v);
        if (!v)
            return false;
        w->rows = v;
    }
    while (w->cap_samples - w->nsamples < LOD_SAMPLES) {
        struct lod_sample *v = grown(w->a, w->samples, w->nsamples, &w->cap_samples, sizeof *v);
        if (!v)
            return false;
        w->samples = v;
    }
    w->rows[w->nrows++] = *r;
    w->nsamples += lod_sample(r->lane_data, r->first, r->last, &w->samples[w->nsamples]);
    return true;
}

/* The rows that have events in the window, and samples of them. */
static enum xp_status find_rows(struct window *w, const struct query_lines *lines,
                                struct xp_error *err)
{
    static const struct lane_event none;
    for (size_t i = 0; i < lines->n; i++) {
        const struct part_line *l = lines->v[i].line;
        if (out_cancelled(w->out))
            return xp_fail(err, XP_CANCELLED, 0, "the window is not wanted any more");
        if (!query_line_in(l, &w->span))
            continue;
        int64_t t0 = query_line_time(l, w->span.t0_ps), t1 = query_line_time(l, w->span.t1_ps);
        for (uint32_t k = 0; k < l->nlanes; k++) {
            struct row r = {.line = l, .lane_data = l->lanes[k], .number = lines->v[i].number};
            r.lane = k;
            r.table = query_table(&w->book, &lines->v[i]);
            r.first_id = lines->v[i].made ? query_id(&lines->v[i], k, &none) : 0;
            lod_range(r.lane_data, t0, t1, &r.first, &r.last);
            if (r.first < r.last && !add_row(w, &r))
                return no_memory(err);
        }
    }
    return XP_OK;
}

/* --- how wide --- */

static uint64_t cell_of(const struct window *w, uint32_t merge_px)
{
    uint64_t span = (uint64_t)w->span.t1_ps - (uint64_t)w->span.t0_ps;
    return (uint64_t)((unsigned __int128)span * merge_px / w->px);
}

static uint32_t wider(const struct window *w, uint32_t merge_px, uint32_t by)
{
    uint64_t m = (uint64_t)merge_px + by;
    return m < w->px ? (uint32_t)m : w->px;
}

static uint32_t choose_merge_px(const struct window *w)
{
    size_t fixed = HEAD_BYTES + w->nrows * ROW_BYTES;
    uint64_t want = (w->max_bytes > fixed ? w->max_bytes - fixed : 0) / RECT_BYTES;
    uint32_t m = 1;
    while (m < w->px && lod_expect(w->samples, w->nsamples, cell_of(w, m)) > want)
        m = wider(w, m, m / 4 + 1);
    return m;
}

/* --- rectangles --- */

static void merge_all(struct window *w, size_t nrows)
{
    uint64_t cell = cell_of(w, w->merge_px);
    size_t to = 0;
    for (size_t i = 0; i < nrows; i++) {
        struct row *r = &w->rows[i];
        if (to != r->at)
            memmove(&w->rects.v[to], &w->rects.v[r->at], r->n * sizeof *w->rects.v);
        r->at = to;
        r->n = lod_merge(&w->rects.v[to], r->n, cell);
        to += r->n;
    }
    w->rects.n = to;
}

static enum xp_status walk_rows(struct window *w, struct xp_error *err)
{
    size_t enough = w->max_bytes / 4 + 1024;
    for (size_t i = 0; i < w->nrows; i++) {
        struct row *r = &w->rows[i];
        struct lod_scale s = {.cell_ps = cell_of(w, w->merge_px), .pixel_ps = cell_of(w, 1)};
        s.dense_ps = cell_of(w, DENSE_PX);
        w->rects.numbers = r->first_id > 0;
        if (!s.cell_ps && r->last - r->first > SINGLES_MAX)
            s.cell_ps = 1;
        if (out_cancelled(w->out))
            return xp_fail(err, XP_CANCELLED, 0, "the window is not wanted any more");
        r->at = w->rects.n;
        if (!lod_walk(r->lane_data, r->first, r->last, &s, &w->rects))
            return no_memory(err);
        r->n = w->rects.n - r->at;
        while (w->rects.n > enough && w->merge_px < w->px) {
            w->merge_px = wider(w, w->merge_px, w->merge_px);
            merge_all(w, i + 1);
        }
    }
    return XP_OK;
}

/* --- names --- */

static bool names_reset(struct names *t, struct xp_arena *a, size_t nrects)
{
    size_t size = 64;
    while (size < nrects * 2 + 2)
        size *= 2;
    if (!t->slots || t->mask + 1 < size) {
        t->slots = xp_arena_alloc(a, size * sizeof *t->slots);
        t->v = xp_arena_alloc(a, (size / 2 + 1) * sizeof *t->v);
        t->mask = (uint32_t)size - 1;
    }
    if (!t->slots || !t->v)
        return false;
    memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof *t->slots);
    t->v[0] = 0; /* names[0] is "" */
    t->n = 1;
    t->bytes = 2;
    return true;
}

static struct xp_span name_text(const struct query_book *b, uint32_t str)
{
    return query_cut(query_text(b, str), NAME_MAX_BYTES);
}

/* Its index in the answer. */
static uint32_t names_add(struct names *t, const struct query_book *b, uint32_t str)
{
    if (!str)
        return 0;
    uint32_t i = (uint32_t)(str * UINT32_C(0x9e3779b1)) & t->mask;
    for (; t->slots[i]; i = (i + 1) & t->mask)
        if (t->v[t->slots[i] - 1] == str)
            return t->slots[i] - 1;
    t->v[t->n++] = str;
    t->slots[i] = t->n;
    struct xp_span text = name_text(b, str);
    t->bytes += 3 + (xp_utf8_valid(text) ? text.n : 3 * text.n);
    return t->n - 1;
}

/* --- measuring --- */

static inline size_t varint_size(uint64_t v)
{
    return (size_t)((63 - __builtin_clzll(v | 1)) * 9 + 73) / 64;
}

/* Bytes of a row outside its columns' entries: tags, lengths, numbers. */
static size_t row_head(const struct row *r)
{
    return 5 + 1 + varint_size(r->number) + 3 + 2 * (1 + varint_size(r->last - r->first)) + 11 +
           6 * (1 + varint_size(r->n * XP_VARINT_MAX));
}

/* Labels the rectangles of a row and says how many bytes they will take. */
static size_t row_bytes(struct window *w, const struct row *r)
{
    struct lod_rect *v = &w->rects.v[r->at];
    int64_t end = v[0].begin_ps;
    uint64_t id = -r->first_id; /* the first one counts from 0 */
    size_t bytes = XP_VARINT_MAX, singles = 0;
    for (size_t i = 0; i < r->n; i++) {
        v[i].label = names_add(&w->names, &w->book, query_name(&w->book, r->table, v[i].name));
        bytes += varint_size((uint64_t)(v[i].begin_ps - end)) + varint_size(v[i].label) +
                 varint_size((uint64_t)(v[i].end_ps - v[i].begin_ps)) +
                 varint_size(xp_zigzag((int64_t)(v[i].id - id)));
        if (v[i].count > 1)
            bytes += varint_size(v[i].count) + varint_size((uint64_t)v[i].busy_ps);
        else
            singles++;
        end = v[i].end_ps;
        id = v[i].id;
    }
    return singles == r->n ? bytes : bytes + singles;
}

struct size {
    size_t bytes; /* of the whole answer */
    size_t fixed; /* of these, what merging does not change */
    size_t rows;  /* so many, from the first, stay below the limit */
};

static bool measure(struct window *w, struct size *out)
{
    if (!names_reset(&w->names, w->a, w->rects.n))
        return false;
    *out = (struct size){.fixed = HEAD_BYTES};
    size_t entries = 0;
    for (size_t i = 0; i < w->nrows; i++) {
        out->fixed += row_head(&w->rows[i]);
        entries += row_bytes(w, &w->rows[i]);
        out->bytes = out->fixed + entries + w->names.bytes;
        if (out->bytes <= w->max_bytes)
            out->rows = i + 1;
    }
    return true;
}

/* The width at which the entries should fit, if they shrink as cells widen. */
static uint32_t next_merge_px(const struct window *w, const struct size *s)
{
    if (s->fixed >= w->max_bytes)
        return w->px;
    uint64_t target = (uint64_t)w->merge_px * (s->bytes - s->fixed) / (w->max_bytes - s->fixed);
    uint64_t least = (uint64_t)w->merge_px + w->merge_px / 8 + 1;
    if (target < least)
        target = least;
    return target < w->px ? (uint32_t)target : w->px;
}

/* Merges until the answer fits; where even one cell a row does not, rows are left out. */
static enum xp_status fit(struct window *w, struct xp_error *err)
{
    struct size s;
    for (;;) {
        if (!measure(w, &s))
            return no_memory(err);
        if (s.bytes <= w->max_bytes)
            return XP_OK;
        if (w->merge_px == w->px)
            break;
        w->merge_px = next_merge_px(w, &s);
        merge_all(w, w->nrows);
    }
    w->cut_rows += (uint32_t)(w->nrows - s.rows);
    w->nrows = s.rows;
    /* Once more, so that there are only names that the rows left use. */
    return measure(w, &s) ? XP_OK : no_memory(err);
}

/* --- writing --- */

static void put_num(struct xp_buf *b, uint32_t field, uint64_t v)
{
    if (v)
        xp_pb_put_u64(b, field, v);
}

enum column { COL_BEGIN = 6, COL_DURATION, COL_NAME, COL_ID, COL_COUNT, COL_BUSY };

/* One packed column; tmp has room for a varint a rectangle. */
static void put_column(struct xp_buf *b, enum column col, const struct window *w,
                       const struct row *r, uint8_t *tmp)
{
    const struct lod_rect *v = &w->rects.v[r->at];
    int64_t t0 = query_line_time(r->line, w->span.t0_ps);
    uint8_t *p = tmp;
    for (size_t i = 0; i < r->n; i++) {
        switch (col) {
        case COL_BEGIN:
            p = xp_varint_write(p, i ? (uint64_t)(v[i].begin_ps - v[i - 1].end_ps)
                                     : xp_zigzag(query_sub(v[0].begin_ps, t0)));
            break;
        case COL_DURATION:
            p = xp_varint_write(p, (uint64_t)(v[i].end_ps - v[i].begin_ps));
            break;
        case COL_NAME:
            p = xp_varint_write(p, v[i].label);
            break;
        case COL_ID:
            p = xp_varint_write(p,
                                xp_zigzag((int64_t)(v[i].id - (i ? v[i - 1].id : -r->first_id))));
            break;
        case COL_COUNT:
            p = xp_varint_write(p, v[i].count);
            break;
        case COL_BUSY:
            if (v[i].count > 1)
                p = xp_varint_write(p, (uint64_t)v[i].busy_ps);
            break;
        }
    }
    xp_pb_put_bytes(b, col, xp_span_of(tmp, (size_t)(p - tmp)));
}

static void put_row(struct xp_buf *b, const struct window *w, const struct row *r, uint8_t *tmp)
{
    const struct lod_rect *v = &w->rects.v[r->at];
    uint64_t events = r->last - r->first;
    int64_t busy = 0;
    bool many = false;
    for (size_t i = 0; i < r->n; i++) {
        busy = query_add(busy, v[i].busy_ps);
        many |= v[i].count > 1;
    }
    put_num(b, 1, r->number);
    put_num(b, 2, r->lane);
    put_num(b, 3, events);
    put_num(b, 4, events - r->n);
    put_num(b, 5, (uint64_t)busy);
    for (enum column c = COL_BEGIN; c <= (many ? COL_BUSY : COL_ID); c++)
        put_column(b, c, w, r, tmp);
}

static void put_state(struct xp_buf *b, const struct part *p, const struct query_progress *pr)
{
    put_num(b, 9, pr->loading);
    put_num(b, 10, pr->bytes_done);
    put_num(b, 11, pr->bytes_total);
    put_num(b, 12, pr->planes_done);
    put_num(b, 13, pr->planes_total);
    put_num(b, 14, pr->partial);
    if (pr->partial && p->damage.status != XP_OK) {
        struct xp_buf text;
        xp_buf_init(&text, 4096);
        xp_buf_fmt(&text, "byte %llu: ", (unsigned long long)p->damage.offset);
        xp_utf8_append(&text, xp_span_str(p->damage.text));
        xp_pb_put_bytes(b, 15, xp_buf_all(&text));
        xp_buf_fini(&text);
    }
}

static void put_names(struct xp_buf *b, const struct window *w)
{
    struct xp_buf text;
    xp_buf_init(&text, 4 * NAME_MAX_BYTES);
    for (uint32_t i = 0; i < w->names.n; i++) {
        text.n = 0;
        xp_utf8_append(&text, name_text(&w->book, w->names.v[i]));
        xp_pb_put_bytes(b, 4, xp_buf_all(&text));
    }
    xp_buf_fini(&text);
}

static enum xp_status put_answer(struct window *w, struct xp_error *err)
{
    struct xp_buf *b = &w->out->text, one;
    size_t most = 0;
    uint64_t drawn = 0;
    for (size_t i = 0; i < w->nrows; i++) {
        drawn += w->rows[i].n;
        most = w->rows[i].n > most ? w->rows[i].n : most;
    }
    uint8_t *tmp = xp_arena_alloc(w->a, (most + 1) * XP_VARINT_MAX);
    if (!tmp)
        return no_memory(err);
    w->out->content_type = "application/x-protobuf";
    put_num(b, 1, (uint64_t)w->span.t0_ps);
    put_num(b, 2, (uint64_t)w->span.t1_ps);
    put_num(b, 3, w->px);
    put_names(b, w);
    xp_buf_init(&one, OUT_MAX);
    for (size_t i = 0; i < w->nrows; i++) {
        one.n = 0;
        put_row(&one, w, &w->rows[i], tmp);
        xp_pb_put_bytes(b, 5, xp_buf_all(&one));
    }
    xp_buf_fini(&one);
    put_num(b, 6, w->events);
    put_num(b, 7, w->events - drawn);
    put_num(b, 8, w->merge_px);
    put_state(b, w->p, &w->progress);
    put_num(b, 16, w->cut_rows);
    return XP_OK;
}

/* --- the query --- */

static enum xp_status check(const struct query_window *q, struct xp_error *err)
{
    if (q->px < 1 || q->px > PX_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "px is %u; 1 to %u is expected", q->px, PX_MAX);
    if (q->max_bytes && (q->max_bytes < BYTES_MIN || q->max_bytes > BYTES_MAX))
        return xp_fail(err, XP_BAD_REQUEST, 0, "max_bytes is %u; %u to %u is expected",
                       q->max_bytes, BYTES_MIN, BYTES_MAX);
    return XP_OK;
}

enum xp_status query_window(const struct part *p, const struct query_window *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct window w = {.p = p, .a = scratch, .out = out, .px = q->px, .rects.a = scratch};
    w.book.p = p;
    struct query_lines lines;
    XP_TRY(check(q, err));
    w.max_bytes = q->max_bytes ? q->max_bytes : BYTES_DEFAULT;
    w.max_rows = w.max_bytes / 24;
    query_progress(p, &w.progress);
    XP_TRY(query_select(&w.book, &q->rows, false, scratch, &lines, err));
    XP_TRY(query_times(p, q->t0_ps, q->t1_ps, &w.span, err));
    XP_TRY(find_rows(&w, &lines, err));
    w.merge_px = choose_merge_px(&w);
    XP_TRY(walk_rows(&w, err));
    for (size_t i = 0; i < w.nrows; i++)
        if (w.rows[i].first_id)
            lod_number(w.rows[i].lane_data, &w.rects.v[w.rows[i].at], w.rows[i].n);
    XP_TRY(fit(&w, err));
    return put_answer(&w, err);
}
