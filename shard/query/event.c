/* One event in full: its place, its arguments, read from the file, and what it is linked to. */
#include <math.h>

#include "lib/base/pb_wire.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/query/query_int.h"

#define ARGS_MAX 1000
#define STRING_MAX (64 << 10)

struct detail {
    const struct part *p;
    struct query_book *book;
    const struct part_plane *plane;
    struct xp_json *j;
    struct out *out;
    uint32_t nargs;
    bool cut;
};

/* --- arguments --- */

static void text_double(struct xp_buf *b, uint64_t bits)
{
    double v = xp_pb_double(bits);
    if (isnan(v)) {
        xp_buf_str(b, "NaN");
    } else if (isinf(v)) {
        xp_buf_str(b, v < 0 ? "-Infinity" : "Infinity");
    } else {
        struct xp_json j;
        xp_json_init(&j, b);
        xp_json_double(&j, v);
    }
}

static const char *type_name(enum xspace_value type)
{
    switch (type) {
    case XSPACE_DOUBLE:
        return "double";
    case XSPACE_U64:
        return "uint64";
    case XSPACE_I64:
        return "int64";
    case XSPACE_STR:
    case XSPACE_REF: /* to a name that is the value */
        return "string";
    case XSPACE_BYTES:
        return "bytes";
    case XSPACE_NONE:
        break;
    }
    return "none";
}

static void write_string(struct detail *d, struct xp_span s)
{
    struct xp_span shown = query_cut(s, STRING_MAX);
    xp_json_span(d->j, shown);
    if (shown.n < s.n) {
        xp_json_key(d->j, "cut");
        xp_json_bool(d->j, true);
        xp_json_key(d->j, "bytes");
        xp_json_u64(d->j, s.n);
    }
}

static void write_number(struct detail *d, const struct xspace_stat *s)
{
    struct xp_buf text;
    xp_buf_init(&text, 64);
    if (s->type == XSPACE_DOUBLE)
        text_double(&text, s->num);
    else if (s->type == XSPACE_I64)
        xp_buf_fmt(&text, "%lld", (long long)s->num);
    else
        xp_text_u64(&text, s->num);
    xp_json_span(d->j, xp_buf_all(&text));
    xp_buf_fini(&text);
}

static void write_value(struct detail *d, const struct xspace_stat *s)
{
    xp_json_key(d->j, "value");
    switch (s->type) {
    case XSPACE_DOUBLE:
    case XSPACE_U64:
    case XSPACE_I64:
        write_number(d, s);
        break;
    case XSPACE_STR:
        write_string(d, s->bytes);
        break;
    case XSPACE_REF:
        write_string(d, part_stat_name(d->p, d->plane, (int64_t)s->num));
        break;
    case XSPACE_BYTES:
        xp_json_null(d->j);
        xp_json_key(d->j, "bytes");
        xp_json_u64(d->j, s->bytes.n);
        break;
    case XSPACE_NONE:
        xp_json_null(d->j);
        break;
    }
}

static void write_args(struct detail *d, struct xp_span body, uint32_t field, const char *from)
{
    struct xspace_stats it = xspace_stats_open(body, field);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s)) {
        if (d->nargs == ARGS_MAX) {
            d->cut = true;
            return;
        }
        d->nargs++;
        xp_json_obj(d->j);
        xp_json_key(d->j, "name");
        xp_json_span(d->j, part_stat_name(d->p, d->plane, s.metadata_id));
        write_value(d, &s);
        xp_json_key(d->j, "type");
        xp_json_str(d->j, type_name(s.type));
        xp_json_key(d->j, "from");
        xp_json_str(d->j, from);
        xp_json_obj_end(d->j);
        out_flush(d->out);
    }
    d->cut |= it.bad;
}

/* XEvent.num_occurrences, set instead of an offset where one event stands for several. */
static void write_occurrences(struct xp_json *j, struct xp_span body)
{
    struct xp_pb r = xp_pb_open(body);
    struct xp_pb_field f;
    bool have = false;
    int64_t n = 0;
    while (xp_pb_next(&r, &f))
        if (f.num == 5 && f.type == XP_PB_VARINT) {
            n = (int64_t)f.value;
            have = true;
        }
    xp_json_key(j, "occurrences");
    if (have)
        xp_json_i64(j, n);
    else
        xp_json_null(j);
}

/* --- the answer --- */

/* What the event is called, and what is shown where that differs. */
static void names_of(const struct query_book *b, const struct query_event_at *e,
                     struct xp_span *name, struct xp_span *display)
{
    const struct part_plane *pl = &b->p->planes[e->l.line->plane];
    *name = *display = (struct xp_span){0};
    if (e->l.made) {
        const struct derive *d = b->d;
        *display = query_text(b, query_name(b, query_table(b, &e->l), e->ev.name));
        if (e->ev.name < d->nnames)
            *name = xp_strpool_get(&d->strings, d->names[e->ev.name].name);
        if (e->l.made->named_by_step)
            *name = *display;
        if (xp_span_eq(*name, *display))
            *display = (struct xp_span){0};
    } else if (e->ev.name < pl->nevmeta) {
        *name = part_str(b->p, pl->evmeta[e->ev.name].name);
        *display = part_str(b->p, pl->evmeta[e->ev.name].display_name);
    }
}

static void write_place(const struct query_book *b, const struct query_event_at *e,
                        struct xp_json *j)
{
    const struct part *p = b->p;
    const struct part_plane *pl = &p->planes[e->l.line->plane];
    struct xp_span name, display;
    names_of(b, e, &name, &display);
    xp_json_key(j, "id");
    xp_json_u64(j, e->ev.at);
    xp_json_key(j, "name");
    xp_json_span(j, name);
    xp_json_key(j, "display_name");
    xp_json_span(j, display);
    xp_json_key(j, "line");
    xp_json_u64(j, e->l.number);
    xp_json_key(j, "line_name");
    xp_json_span(j, query_line_name(b, &e->l));
    xp_json_key(j, "plane");
    xp_json_u64(j, e->l.line->plane);
    xp_json_key(j, "plane_name");
    xp_json_span(j, part_str(p, pl->name));
    xp_json_key(j, "derived");
    xp_json_bool(j, e->l.made != NULL);
    xp_json_key(j, "lane");
    xp_json_u64(j, e->lane);
    xp_json_key(j, "begin_ps");
    xp_json_i64(j, query_session(e->l.line, e->ev.begin_ps));
    xp_json_key(j, "duration_ps");
    xp_json_i64(j, e->ev.end_ps - e->ev.begin_ps);
    xp_json_key(j, "self_ps");
    xp_json_i64(j, query_self(e));
}

static void write_neighbour(struct xp_json *j, const char *key, const struct query_event_at *e,
                            int dir)
{
    struct query_event_at to;
    xp_json_key(j, key);
    if (query_step(e, dir, &to))
        xp_json_u64(j, to.ev.at);
    else
        xp_json_null(j);
}

/* The metadata that a derived event shares its name with; NULL: none. */
static const struct part_evmeta *shared_meta(const struct detail *d, const struct query_event_at *e)
{
    const struct derive *made = d->book->d;
    uint32_t i = e->ev.name < made->nnames ? made->names[e->ev.name].evmeta : 0;
    return i && i <= d->plane->nevmeta ? &d->plane->evmeta[i - 1] : NULL;
}

/* The event's message and its metadata's. What cannot be read any more leaves the rest of the
 * answer as it is: args_cut says so. */
static void read_bodies(struct detail *d, const struct query_event_at *e, struct xp_arena *a,
                        struct xp_span *body, struct xp_span *meta)
{
    struct xp_error ignored;
    *body = *meta = (struct xp_span){0};
    if (e->l.made) {
        const struct part_evmeta *m = shared_meta(d, e);
        if (m && part_evmeta_body(d->p, m, a, meta, &ignored) != XP_OK)
            d->cut = true;
        return;
    }
    if (part_event_body(d->p, e->ev.at, a, body, &ignored) != XP_OK)
        d->cut = true;
    if (e->ev.name < d->plane->nevmeta &&
        part_evmeta_body(d->p, &d->plane->evmeta[e->ev.name], a, meta, &ignored) != XP_OK)
        d->cut = true;
}

static enum xp_status write_event(struct query_book *b, const struct query_event_at *e,
                                  struct xp_arena *a, struct out *out, struct xp_error *err)
{
    const struct part *p = b->p;
    struct xp_json j;
    struct xp_span body, meta;
    struct detail d = {
        .p = p, .book = b, .plane = &p->planes[e->l.line->plane], .j = &j, .out = out};

    xp_json_init(&j, &out->text);
    read_bodies(&d, e, a, &body, &meta);
    xp_json_obj(&j);
    write_place(b, e, &j);
    write_occurrences(&j, body);
    xp_json_key(&j, "args");
    xp_json_arr(&j);
    write_args(&d, meta, 5, "metadata");
    write_args(&d, body, 4, "event");
    xp_json_arr_end(&j);
    xp_json_key(&j, "args_cut");
    xp_json_bool(&j, d.cut);
    xp_json_key(&j, "flows");
    XP_TRY(query_flows(p, e, a, &j, out, err));
    write_neighbour(&j, "previous", e, -1);
    write_neighbour(&j, "next", e, 1);
    xp_json_obj_end(&j);
    return XP_OK;
}

enum xp_status query_event(const struct part *p, uint64_t id, struct xp_arena *scratch,
                           struct out *out, struct xp_error *err)
{
    struct query_book b = {.p = p};
    struct query_event_at e;
    XP_TRY(query_find(&b, id, scratch, out, &e, err));
    return write_event(&b, &e, scratch, out, err);
}

enum xp_status query_neighbour(const struct part *p, uint64_t id, int dir, struct xp_arena *scratch,
                               struct out *out, struct xp_error *err)
{
    struct query_book b = {.p = p};
    struct query_event_at e, to;
    XP_TRY(query_find(&b, id, scratch, out, &e, err));
    if (!query_step(&e, dir, &to))
        return xp_fail(err, XP_NOT_FOUND, 0, "event %llu is the %s of its line",
                       (unsigned long long)id, dir < 0 ? "first" : "last");
    return write_event(&b, &to, scratch, out, err);
}
