#include "shard/decode/xspace_decoder.h"

#include "shard/decode/xspace_wire.h"

/* Behind the group whose begin tag ended at p, or NULL. */
static const uint8_t *skip_group(const uint8_t *p, const uint8_t *end, uint32_t num)
{
    uint32_t open[XSPACE_GROUPS];
    int depth = 1;
    open[0] = num;
    while (depth) {
        struct xspace_field f;
        bool bad;
        p = xspace_header(p, end, &f, &bad);
        if (!p)
            return NULL;
        if (f.type == XSPACE_GROUP_BEGIN) {
            if (depth == XSPACE_GROUPS)
                return NULL;
            open[depth++] = f.num;
        } else if (f.type == XSPACE_GROUP_END) {
            if (open[--depth] != f.num)
                return NULL;
        } else if (f.type == XP_PB_LEN) {
            if (f.value > (uint64_t)(end - p))
                return NULL;
            p += f.value;
        }
    }
    return p;
}

/* The next field of a message that lies whole in memory. NULL at the end too; then p == end. */
static const uint8_t *next_field(const uint8_t *p, const uint8_t *end, struct xspace_field *f)
{
    bool bad;
    const uint8_t *q = p < end ? xspace_header(p, end, f, &bad) : NULL;
    if (!q || f->type == XSPACE_GROUP_END)
        return NULL;
    if (f->type == XSPACE_GROUP_BEGIN)
        return skip_group(q, end, f->num);
    if (f->type == XP_PB_LEN) {
        if (f->value > (uint64_t)(end - q))
            return NULL;
        q += f->value;
    }
    return q;
}

/* --- numbers --- */

#if defined(__x86_64__)
#define HAS_PEXT 1
#define PEXT_TARGET __attribute__((target("bmi,bmi2")))

/* As assembler, so that one inline function is of use to functions of either target. */
static inline uint64_t pext(uint64_t x, uint64_t mask)
{
    uint64_t v;
    __asm__("pextq %2, %1, %0" : "=r"(v) : "r"(x), "r"(mask));
    return v;
}

/* AMD's older CPUs have the instruction, in microcode: it takes them longer than what it saves. */
static bool pext_is_fast(void)
{
    return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
           !__builtin_cpu_is("znver2") && !__builtin_cpu_is("bdver4");
}
#else
#define HAS_PEXT 0
#define pext(x, mask) 0
#define pext_is_fast() false
#endif

#define ALWAYS static inline __attribute__((always_inline))

/* A varint of up to 8 bytes without a branch on its length; 8 bytes must be readable. Returns
 * NULL for a longer one. Loops over bytes cost a misprediction for nearly every time and duration,
 * which is most of what an event costs. */
ALWAYS const uint8_t *varint8(const uint8_t *p, uint64_t *v, bool fast)
{
    const uint64_t sevens = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t x;
    memcpy(&x, p, 8);
    uint64_t stop = ~x & ~sevens;
    if (__builtin_expect(!stop, 0))
        return NULL;
    if (fast) {
        *v = pext(x, (stop ^ (stop - 1)) & sevens);
    } else {
        x &= (stop ^ (stop - 1)) & sevens;
        x = (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x7f007f007f007f00)) >> 1;
        x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x3fff00003fff0000)) >> 2;
        *v = (x & UINT64_C(0x0fffffff)) | (x & UINT64_C(0x0fffffff00000000)) >> 4;
    }
    return p + (__builtin_ctzll(stop) >> 3) + 1;
}

/* --- stats --- */

static const struct {
    uint32_t wire;
    enum xspace_value type;
} stat_values[] = {[2] = {XP_PB_FIXED64, XSPACE_DOUBLE}, [3] = {XP_PB_VARINT, XSPACE_U64},
                   [4] = {XP_PB_VARINT, XSPACE_I64},     [5] = {XP_PB_LEN, XSPACE_STR},
                   [6] = {XP_PB_LEN, XSPACE_BYTES},      [7] = {XP_PB_VARINT, XSPACE_REF}};

static void stat_field(struct xspace_stat *s, const struct xspace_field *f)
{
    if (f->num == 1 && f->type == XP_PB_VARINT) {
        s->metadata_id = (int64_t)f->value;
    } else if (f->num >= 2 && f->num <= 7 && f->type == stat_values[f->num].wire) {
        s->type = stat_values[f->num].type;
        s->num = f->type == XP_PB_LEN ? 0 : f->value;
        s->bytes = f->type == XP_PB_LEN ? xspace_field_span(f) : (struct xp_span){0};
    }
}

static bool stat_parse(struct xp_span body, struct xspace_stat *s)
{
    const uint8_t *p = body.p, *end = body.p + body.n, *q;
    struct xspace_field f;
    *s = (struct xspace_stat){0};
    while ((q = next_field(p, end, &f))) {
        stat_field(s, &f);
        p = q;
    }
    return p == end;
}

/* A varint that ends by `end`; `limit` is as far as may be read. */
static inline const uint8_t *varint_by(const uint8_t *p, const uint8_t *end, const uint8_t *limit,
                                       uint64_t *v)
{
    const uint8_t *q = limit - p >= 8 ? varint8(p, v, false) : NULL;
    return !q ? xp_varint_read(p, end, v) : q <= end ? q : NULL;
}

/* A stat as writers write it: id, then one value, and no more. */
static inline bool stat_fast(const uint8_t *p, const uint8_t *end, const uint8_t *limit,
                             struct xspace_stat *s)
{
    if (end - p < 4 || end - p >= 0x80 || *p != 0x08)
        return false;
    uint64_t v = p[1];
    if (v < 0x80)
        p += 2;
    else if (!(p = xp_varint_read(p + 1, end, &v)) || p == end)
        return false;
    s->metadata_id = (int64_t)v;
    uint8_t tag = *p++;
    uint32_t num = tag >> 3, wire = tag & 7;
    if (num < 2 || num > 7 || wire != stat_values[num].wire)
        return false;
    s->type = stat_values[num].type;
    s->bytes = (struct xp_span){0};
    if (wire == XP_PB_FIXED64) {
        if (end - p != 8)
            return false;
        memcpy(&s->num, p, 8);
        return true;
    }
    if (!(p = varint_by(p, end, limit, &v)))
        return false;
    s->num = v;
    if (wire == XP_PB_VARINT)
        return p == end;
    s->num = 0;
    s->bytes = xp_span_of(p, (size_t)v);
    return v == (uint64_t)(end - p);
}

bool xspace_stats_next(struct xspace_stats *it, struct xspace_stat *stat)
{
    struct xspace_field f;
    const uint8_t *q;
    const uint8_t tag = (uint8_t)(it->field << 3 | XP_PB_LEN);
    if (it->end - it->p > 2 && it->p[0] == tag && it->p[1] < 0x80 &&
        it->p[1] <= it->end - it->p - 2) {
        const uint8_t *body = it->p + 2, *after = body + it->p[1];
        if (stat_fast(body, after, it->end, stat)) {
            it->p = after;
            return true;
        }
    }
    while ((q = next_field(it->p, it->end, &f))) {
        it->p = q;
        if (f.num != it->field || f.type != XP_PB_LEN)
            continue;
        if (stat_parse(xspace_field_span(&f), stat))
            return true;
        it->bad = true;
        return false;
    }
    it->bad |= it->p != it->end;
    return false;
}

/* --- events --- */

static void event_field(struct xspace_event *ev, const struct xspace_field *f)
{
    if (f->type != XP_PB_VARINT)
        return;
    int64_t v = (int64_t)f->value;
    switch (f->num) {
    case 1:
        ev->metadata_id = v;
        break;
    case 2: /* 2 and 5 are one oneof */
        ev->offset_ps = v;
        ev->num_occurrences = 0;
        ev->has_occurrences = false;
        break;
    case 3:
        ev->duration_ps = v;
        break;
    case 5:
        ev->num_occurrences = v;
        ev->has_occurrences = true;
        ev->offset_ps = 0;
        break;
    default:
        break;
    }
}

/* Any order, any fields. False: malformed at *where. */
static bool event_parse(struct xspace_event *ev, const uint8_t *p, const uint8_t *end,
                        const uint8_t **where)
{
    const uint8_t *begin = p, *q;
    struct xspace_field f;
    ev->metadata_id = ev->offset_ps = ev->duration_ps = ev->num_occurrences = 0;
    ev->has_occurrences = false;
    ev->stats = (uint32_t)(end - p);
    while ((q = next_field(p, end, &f))) {
        event_field(ev, &f);
        if (f.num == 4 && f.type == XP_PB_LEN && ev->stats == (uint32_t)(end - begin))
            ev->stats = (uint32_t)(p - begin);
        p = q;
    }
    *where = p;
    return p == end;
}

/* The same, for numbers that mostly take one byte or two. */
ALWAYS const uint8_t *varint_small(const uint8_t *p, uint64_t *v, bool fast)
{
    uint16_t x;
    memcpy(&x, p, 2);
    if (__builtin_expect((x & 0x8080) == 0x8080, 0))
        return varint8(p, v, fast);
    unsigned two = x >> 7 & 1;
    *v = (x & 0x7fu) | ((x >> 1 & 0x3f80u) & (0u - two));
    return p + 1 + two;
}

/* Is the stat whose first bytes these are one that nobody asks about? 22 len 08 id, as writers put
 * it; little-endian. */
static inline bool stat_dull(uint32_t head, uint64_t len, const uint8_t *dull)
{
    return (head & 0x80ff80ff) == 0x00080022 && len >= 2 && dull[head >> 24] == XSPACE_DULL;
}

/* The order all writers use: 1, 2, 3, then stats. False: not so, event_parse decides. Up to 8
 * bytes behind end must be readable. */
ALWAYS bool event_fast(struct xspace_event *ev, const uint8_t *p, const uint8_t *end,
                       const uint8_t *dull, bool fast)
{
    const uint8_t *begin = p;
    uint64_t id = 0, offset = 0, duration = 0;
    if (p < end && *p == 0x08 && !(p = varint_small(p + 1, &id, fast)))
        return false;
    if (p < end && *p == 0x10 && !(p = varint8(p + 1, &offset, fast)))
        return false;
    if (p < end && *p == 0x18 && !(p = varint8(p + 1, &duration, fast)))
        return false;
    const uint8_t *stats = p;
    while (p < end && *p == 0x22) {
        uint32_t head;
        memcpy(&head, p, sizeof head);
        uint64_t len = head >> 8 & 0xff;
        bool next = p == stats && dull; /* so far all were */
        p += 2;
        if (len >= 0x80 && !(p = varint8(p - 1, &len, fast)))
            return false;
        if (len > (uint64_t)(end - p))
            return false;
        p += len;
        if (next && stat_dull(head, len, dull))
            stats = p;
    }
    ev->stats = (uint32_t)(stats - begin);
    ev->metadata_id = (int64_t)id;
    ev->offset_ps = (int64_t)offset;
    ev->duration_ps = (int64_t)duration;
    ev->num_occurrences = 0;
    ev->has_occurrences = false;
    return p == end;
}

/* --- the decoder --- */

static enum xp_status fail(struct xspace_decoder *d, uint64_t at, const char *what)
{
    return xp_fail(&d->error, XP_CORRUPT, at, "%s", what);
}

/* A status of the sink ends the decoder as well. */
static enum xp_status sank(struct xspace_decoder *d, enum xp_status st)
{
    if (st != XP_OK)
        xp_fail(&d->error, st, d->pos, "%s", xp_status_text(st));
    return st;
}

#define EMIT(d, fn, ...) ((d)->sink->fn ? sank(d, (d)->sink->fn((d)->ctx, __VA_ARGS__)) : XP_OK)

static enum xp_status flush(struct xspace_decoder *d)
{
    size_t n = d->nbatch;
    if (!n)
        return XP_OK;
    d->nbatch = 0;
    d->line.nevents += n;
    return EMIT(d, on_events, d->batch, n);
}

static inline struct xspace_event *batch_next(struct xspace_decoder *d)
{
    return &d->batch[d->nbatch];
}

static inline enum xp_status batch_push(struct xspace_decoder *d)
{
    return ++d->nbatch == XSPACE_BATCH ? flush(d) : XP_OK;
}

static struct xspace_frame *top(struct xspace_decoder *d)
{
    return &d->frames[d->depth - 1];
}

static struct xp_span text_span(const struct xspace_text *t)
{
    return xp_span_of(t->p, t->n);
}

/* Opens the message [d->pos, d->pos + len); the frames of XSpace nest at most six deep. */
static enum xp_status enter(struct xspace_decoder *d, enum xspace_frame_kind kind, uint64_t len)
{
    uint64_t at = d->pos;
    d->frames[d->depth++] = (struct xspace_frame){kind, 0, at, at + len};
    switch (kind) {
    case XSPACE_F_PLANE:
        d->plane = (struct xspace_plane){.at = at, .len = len};
        d->plane_name.n = 0;
        return EMIT(d, on_plane_begin, at, len);
    case XSPACE_F_LINE:
        d->line = (struct xspace_line){.at = at, .len = len};
        d->name.n = d->display_name.n = 0;
        return EMIT(d, on_line_begin, at, len);
    case XSPACE_F_EVENT:
        d->big_event = (struct xspace_event){.at = at, .big = true};
        d->big_event.len = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;
        break;
    case XSPACE_F_STAT:
        d->big_stat = (struct xspace_stat){0};
        break;
    case XSPACE_F_META:
        d->big_meta.big = true;
        d->big_meta.at = at;
        d->name.n = d->display_name.n = 0;
        break;
    case XSPACE_F_META_VALUE:
        d->big_meta.at = at;
        d->big_meta.len = len;
        break;
    default:
        break;
    }
    return XP_OK;
}

bool xspace_decoder_line(const struct xspace_decoder *d, struct xspace_line *line)
{
    for (int i = 0; i < d->depth; i++) {
        if (d->frames[i].kind != XSPACE_F_LINE)
            continue;
        *line = d->line;
        line->name = text_span(&d->name);
        line->display_name = text_span(&d->display_name);
        return true;
    }
    return false;
}

static enum xp_status leave_line(struct xspace_decoder *d)
{
    XP_TRY(flush(d));
    struct xspace_line line = d->line;
    line.name = text_span(&d->name);
    line.display_name = text_span(&d->display_name);
    return EMIT(d, on_line_end, &line);
}

static enum xp_status leave(struct xspace_decoder *d)
{
    struct xspace_frame f = *top(d);
    d->depth--;
    switch (f.kind) {
    case XSPACE_F_PLANE:
        d->plane.name = text_span(&d->plane_name);
        return EMIT(d, on_plane_end, &d->plane);
    case XSPACE_F_LINE:
        return leave_line(d);
    case XSPACE_F_EVENT:
        *batch_next(d) = d->big_event;
        return batch_push(d);
    case XSPACE_F_STAT:
        return EMIT(d, on_plane_stat, f.at, &d->big_stat);
    case XSPACE_F_META:
        d->big_meta.name = text_span(&d->name);
        d->big_meta.display_name = text_span(&d->display_name);
        return EMIT(d, on_meta, &d->big_meta);
    case XSPACE_F_GROUP:
        return fail(d, d->pos, "the message ends inside a group");
    default:
        return XP_OK;
    }
}

/* The bytes to come are text for *t; what does not fit is dropped. */
static enum xp_status open_text(struct xspace_decoder *d, struct xspace_text *t, uint64_t len)
{
    t->n = 0;
    d->text = t;
    d->text_left = len;
    return XP_OK;
}

static enum xp_status close_text(struct xspace_decoder *d)
{
    struct xspace_text *t = d->text;
    d->text = NULL;
    if (t->n == XSPACE_NAME_MAX) { /* maybe cut: not inside a character */
        uint32_t n = t->n;
        while (n && t->n - n < 4 && (t->p[n - 1] & 0xc0) == 0x80)
            n--;
        if (n && t->p[n - 1] >= 0xc0)
            t->n = n - 1;
    }
    return XP_OK;
}

static enum xp_status take_text(struct xspace_decoder *d, const uint8_t *p, size_t n)
{
    struct xspace_text *t = d->text;
    size_t room = XSPACE_NAME_MAX - t->n, m = n < room ? n : room;
    memcpy(t->p + t->n, p, m);
    t->n += (uint32_t)m;
    d->text_left -= n;
    d->pos += n;
    return d->text_left ? XP_OK : close_text(d);
}

/* --- whole elements --- */

static enum xp_status on_event(struct xspace_decoder *d, const uint8_t *p, size_t n)
{
    struct xspace_event *ev = batch_next(d);
    const uint8_t *where;
    ev->at = d->pos;
    ev->len = (uint32_t)n;
    ev->big = false;
    ev->body = xp_span_of(p, n);
    if (!event_parse(ev, p, p + n, &where))
        return fail(d, d->pos + (uint64_t)(where - p), "a field of an event was expected here");
    return batch_push(d);
}

static void meta_value_field(struct xspace_meta *m, const struct xspace_field *f)
{
    uint32_t display = m->kind == XSPACE_EVENT_META ? 4 : 3;
    if (f->num == 1 && f->type == XP_PB_VARINT)
        m->key = (int64_t)f->value;
    else if (f->num == 2 && f->type == XP_PB_LEN)
        m->name = xspace_field_span(f);
    else if (f->num == display && f->type == XP_PB_LEN)
        m->display_name = xspace_field_span(f);
}

static enum xp_status on_meta(struct xspace_decoder *d, enum xspace_meta_kind kind,
                              const uint8_t *p, size_t n)
{
    struct xspace_meta m = {.kind = kind, .at = d->pos};
    const uint8_t *begin = p, *end = p + n, *q;
    struct xspace_field f;
    bool keyed = false;
    int64_t key = 0;
    while ((q = next_field(p, end, &f))) {
        if (f.num == 1 && f.type == XP_PB_VARINT) {
            key = (int64_t)f.value;
            keyed = true;
        } else if (f.num == 2 && f.type == XP_PB_LEN) {
            m.at = d->pos + (uint64_t)(f.data - begin);
            m.len = f.value;
            m.body = xspace_field_span(&f);
        }
        p = q;
    }
    if (p != end)
        return fail(d, d->pos + (uint64_t)(p - begin),
                    "a field of a metadata entry was expected here");
    p = m.body.p;
    end = p ? p + m.body.n : p;
    while (p && (q = next_field(p, end, &f))) {
        meta_value_field(&m, &f);
        p = q;
    }
    if (p != end)
        return fail(d, m.at + (uint64_t)(p - m.body.p), "a field of metadata was expected here");
    if (keyed)
        m.key = key;
    return EMIT(d, on_meta, &m);
}

static enum xp_status on_stat(struct xspace_decoder *d, const uint8_t *p, size_t n)
{
    struct xspace_stat s;
    d->plane.nstats++;
    if (!stat_parse(xp_span_of(p, n), &s))
        return fail(d, d->pos, "the fields of a stat were expected here");
    return EMIT(d, on_plane_stat, d->pos, &s);
}

static enum xp_status on_text(struct xspace_decoder *d, uint32_t num, const uint8_t *p, size_t n)
{
    if (num == 4)
        return EMIT(d, on_hostname, xp_span_of(p, n));
    return EMIT(d, on_message, num == 2, xp_span_of(p, n));
}

/* Field f.num of the top frame, its n bytes whole at p (the object's d->pos). */
static enum xp_status element(struct xspace_decoder *d, uint32_t num, const uint8_t *p, size_t n)
{
    enum xp_status st;
    switch (top(d)->kind) {
    case XSPACE_F_SPACE:
        st = on_text(d, num, p, n);
        break;
    case XSPACE_F_LINE:
        st = on_event(d, p, n);
        break;
    default: /* PLANE */
        if (num == 6)
            st = on_stat(d, p, n);
        else
            st = on_meta(d, num == 4 ? XSPACE_EVENT_META : XSPACE_STAT_META, p, n);
        break;
    }
    d->pos += n;
    return st;
}

/* --- fields of the top frame --- */

enum action { SKIP, ELEMENT, ENTER, TEXT };

struct rule {
    enum action action;
    enum xspace_frame_kind kind; /* ENTER; ELEMENT: if it is too large to be whole */
    struct xspace_text *text;
};

static struct rule rule_of(struct xspace_decoder *d, uint32_t num)
{
    struct rule skip = {SKIP, XSPACE_F_SPACE, NULL};
    switch (top(d)->kind) {
    case XSPACE_F_SPACE:
        if (num == 1)
            return (struct rule){ENTER, XSPACE_F_PLANE, NULL};
        return num <= 4 ? (struct rule){ELEMENT, XSPACE_F_SPACE, NULL} : skip;
    case XSPACE_F_PLANE:
        if (num == 2)
            return (struct rule){TEXT, XSPACE_F_SPACE, &d->plane_name};
        if (num == 3)
            return (struct rule){ENTER, XSPACE_F_LINE, NULL};
        if (num == 6)
            return (struct rule){ELEMENT, XSPACE_F_STAT, NULL};
        return num == 4 || num == 5 ? (struct rule){ELEMENT, XSPACE_F_META, NULL} : skip;
    case XSPACE_F_LINE:
        if (num == 4)
            return (struct rule){ELEMENT, XSPACE_F_EVENT, NULL};
        if (num == 2)
            return (struct rule){TEXT, XSPACE_F_SPACE, &d->name};
        return num == 11 ? (struct rule){TEXT, XSPACE_F_SPACE, &d->display_name} : skip;
    case XSPACE_F_META:
        return num == 2 ? (struct rule){ENTER, XSPACE_F_META_VALUE, NULL} : skip;
    case XSPACE_F_META_VALUE:
        if (num == 2)
            return (struct rule){TEXT, XSPACE_F_SPACE, &d->name};
        if (num == (d->big_meta.kind == XSPACE_EVENT_META ? 4u : 3u))
            return (struct rule){TEXT, XSPACE_F_SPACE, &d->display_name};
        return skip;
    default:
        return skip;
    }
}

static void line_scalar(struct xspace_line *line, uint32_t num, int64_t v)
{
    if (num == 1)
        line->id = v;
    else if (num == 3)
        line->timestamp_ns = v;
    else if (num == 9)
        line->duration_ps = v;
    else if (num == 10)
        line->display_id = v;
}

static void scalar(struct xspace_decoder *d, const struct xspace_field *f)
{
    bool varint = f->type == XP_PB_VARINT;
    switch (top(d)->kind) {
    case XSPACE_F_PLANE:
        if (varint && f->num == 1)
            d->plane.id = (int64_t)f->value;
        break;
    case XSPACE_F_LINE:
        if (varint)
            line_scalar(&d->line, f->num, (int64_t)f->value);
        break;
    case XSPACE_F_EVENT:
        event_field(&d->big_event, f);
        break;
    case XSPACE_F_STAT:
        stat_field(&d->big_stat, f);
        break;
    case XSPACE_F_META:
        if (varint && f->num == 1)
            d->big_meta.key = (int64_t)f->value;
        break;
    case XSPACE_F_META_VALUE:
        if (varint && f->num == 1 && !d->big_meta.key)
            d->big_meta.key = (int64_t)f->value;
        break;
    default:
        break;
    }
}

static enum xp_status group(struct xspace_decoder *d, const struct xspace_field *f, uint64_t at)
{
    struct xspace_frame *t = top(d);
    if (f->type == XSPACE_GROUP_BEGIN) {
        if (d->depth == (int)(sizeof d->frames / sizeof *d->frames))
            return fail(d, at, "groups are nested too deep");
        d->frames[d->depth++] = (struct xspace_frame){XSPACE_F_GROUP, f->num, d->pos, t->end};
        return XP_OK;
    }
    if (t->kind != XSPACE_F_GROUP || t->group != f->num)
        return fail(d, at, "a group ends that was not begun");
    d->depth--;
    return XP_OK;
}

/* A length-delimited field whose header has been consumed and whose bytes are not wanted whole. */
static enum xp_status begin_field(struct xspace_decoder *d, const struct rule *r,
                                  const struct xspace_field *f)
{
    if (r->action == TEXT && f->value)
        return open_text(d, r->text, f->value);
    if (r->action == TEXT) {
        r->text->n = 0;
        return XP_OK;
    }
    if (r->action == ENTER || (r->action == ELEMENT && r->kind != XSPACE_F_SPACE)) {
        if (r->kind == XSPACE_F_META)
            d->big_meta =
                (struct xspace_meta){.kind = f->num == 4 ? XSPACE_EVENT_META : XSPACE_STAT_META};
        if (r->kind == XSPACE_F_STAT)
            d->plane.nstats++;
        return enter(d, r->kind, f->value);
    }
    if (top(d)->kind == XSPACE_F_STAT) { /* which value it is, if not the value */
        struct xspace_field type = *f;
        type.data = NULL;
        type.value = 0;
        stat_field(&d->big_stat, &type);
    }
    d->skip = f->value;
    return XP_OK;
}

/* Parses the field at p, d->pos in the object, of which [p, end) is there. *used: bytes consumed, 0
 * when more are needed; then *need says how many, counted from p, or 0 if that is not known. */
static enum xp_status step(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                           size_t *used, size_t *need)
{
    struct xspace_field f;
    bool bad;
    uint64_t at = d->pos, left = top(d)->end - at;
    *used = *need = 0;
    bool all = (uint64_t)(end - p) >= left; /* the frame ends within what is there */
    if (all)
        end = p + left;
    const uint8_t *q = xspace_header(p, end, &f, &bad);
    if (!q) {
        if (bad)
            return fail(d, at, "the tag and value of a field were expected here");
        return all ? fail(d, at, "a field leaves the message it is in") : XP_OK;
    }
    size_t head = (size_t)(q - p);
    if (f.type == XP_PB_LEN) {
        if (f.value > left - head)
            return fail(d, at, "a length leaves the message it is in");
        struct rule r = rule_of(d, f.num);
        if (r.action == ELEMENT && f.value <= XSPACE_PATCH - XSPACE_HEADER_MAX) {
            if ((uint64_t)(end - q) < f.value) {
                *need = head + f.value;
                return XP_OK;
            }
            d->pos += head;
            *used = head + f.value;
            return element(d, f.num, q, f.value);
        }
        d->pos += head;
        *used = head;
        return begin_field(d, &r, &f);
    }
    d->pos += head;
    *used = head;
    if (f.type == XSPACE_GROUP_BEGIN || f.type == XSPACE_GROUP_END)
        return group(d, &f, at);
    scalar(d, &f);
    return XP_OK;
}

/* Events one after the other, each whole in [p, end) with room to read past it. Returns how far it
 * came; what stops it is step's to judge. */
ALWAYS const uint8_t *events_run(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                                 enum xp_status *st, bool fast)
{
    const uint8_t *stop = end - 24;
    uint64_t left = top(d)->end - d->pos;
    if (end - p < 24)
        return p;
    if (left < (uint64_t)(stop - p))
        stop = p + left;
    const uint8_t *begin = p;
    uint64_t base = d->pos;
    while (p < stop && *p == 0x22) {
        uint64_t len = p[1];
        const uint8_t *body = p + 2;
        if (len >= 0x80 && !(body = varint8(p + 1, &len, fast)))
            break;
        if (body > stop || len > (uint64_t)(stop - body) || len > XSPACE_PATCH - XSPACE_HEADER_MAX)
            break;
        struct xspace_event *ev = batch_next(d);
        if (!event_fast(ev, body, body + len, d->dull, fast))
            break;
        ev->at = base + (uint64_t)(body - begin);
        ev->len = (uint32_t)len;
        ev->big = false;
        ev->body = xp_span_of(body, len);
        p = body + len;
        if (++d->nbatch == XSPACE_BATCH) {
            d->pos = base + (uint64_t)(p - begin);
            if ((*st = flush(d)) != XP_OK)
                return p;
        }
    }
    d->pos = base + (uint64_t)(p - begin);
    return p;
}

#if HAS_PEXT
static PEXT_TARGET const uint8_t *events_pext(struct xspace_decoder *d, const uint8_t *p,
                                              const uint8_t *end, enum xp_status *st)
{
    return events_run(d, p, end, st, true);
}
#endif

static const uint8_t *events_plain(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                                   enum xp_status *st)
{
    return events_run(d, p, end, st, false);
}

static const uint8_t *events_fast(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                                  enum xp_status *st)
{
#if HAS_PEXT
    if (d->pext)
        return events_pext(d, p, end, st);
#endif
    return events_plain(d, p, end, st);
}

/* Closes every frame that ends here. */
static enum xp_status close_frames(struct xspace_decoder *d)
{
    while (d->depth > 1 && d->pos == top(d)->end)
        XP_TRY(leave(d));
    return XP_OK;
}

/* Completes the field whose first bytes are in the patch buffer. Returns the bytes it took. */
static size_t from_patch(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                         enum xp_status *st)
{
    size_t had = d->npatch, used = 0, need = 0;
    size_t want = XSPACE_HEADER_MAX;
    if ((*st = flush(d)) != XP_OK) /* the batch may point into the patch buffer */
        return 0;
    for (int round = 0; round < 2; round++) {
        size_t n = want > d->npatch ? want - d->npatch : 0;
        if (n > (size_t)(end - p))
            n = (size_t)(end - p);
        memcpy(d->patch + d->npatch, p, n);
        d->npatch += (uint32_t)n;
        p += n;
        *st = step(d, d->patch, d->patch + d->npatch, &used, &need);
        if (*st != XP_OK || used || need <= d->npatch)
            break;
        want = need;
    }
    size_t took = d->npatch - had;
    if (used) {
        took = used - had; /* what was copied beyond the field is input again */
        d->npatch = 0;
    }
    return took;
}

static size_t advance(struct xspace_decoder *d, const uint8_t *p, const uint8_t *end,
                      enum xp_status *st)
{
    size_t n = (size_t)(end - p), used = 0, need;
    if (d->skip) {
        if (n > d->skip)
            n = (size_t)d->skip;
        d->skip -= n;
        d->pos += n;
        return n;
    }
    if (d->text_left) {
        if (n > d->text_left)
            n = (size_t)d->text_left;
        *st = take_text(d, p, n);
        return n;
    }
    if (d->npatch)
        return from_patch(d, p, end, st);
    if (top(d)->kind == XSPACE_F_LINE) {
        const uint8_t *q = events_fast(d, p, end, st);
        if (q != p)
            return (size_t)(q - p);
    }
    *st = step(d, p, end, &used, &need);
    if (*st != XP_OK || used)
        return used;
    if ((*st = flush(d)) != XP_OK)
        return 0;
    memcpy(d->patch, p, n); /* less than a whole element, so that it fits */
    d->npatch = (uint32_t)n;
    return n;
}

void xspace_decoder_init(struct xspace_decoder *d, const struct xspace_sink *sink, void *ctx,
                         enum xspace_start start, uint64_t at, uint64_t len)
{
    static const enum xspace_frame_kind kinds[] = {[XSPACE_AT_SPACE] = XSPACE_F_SPACE,
                                                   [XSPACE_AT_PLANE] = XSPACE_F_PLANE,
                                                   [XSPACE_AT_LINE] = XSPACE_F_LINE};
    d->sink = sink;
    d->ctx = ctx;
    d->error = (struct xp_error){0};
    d->dull = NULL;
    d->pext = pext_is_fast();
    d->pos = at;
    d->skip = d->text_left = 0;
    d->text = NULL;
    d->begun = d->hopped = false;
    d->nbatch = d->npatch = 0;
    d->plane_name.n = d->name.n = d->display_name.n = 0;
    d->plane = (struct xspace_plane){0};
    d->line = (struct xspace_line){0};
    uint64_t end = at + len < at ? UINT64_MAX : at + len;
    d->frames[0] = (struct xspace_frame){kinds[start], 0, at, end};
    d->depth = 1;
}

void xspace_decoder_dull(struct xspace_decoder *d, const uint8_t *dull)
{
    d->dull = dull;
}

/* The root's own begin, which init does not call because it cannot fail. */
static enum xp_status begin(struct xspace_decoder *d)
{
    struct xspace_frame root = d->frames[0];
    d->begun = true;
    if (root.kind == XSPACE_F_SPACE)
        return XP_OK;
    d->depth = 0;
    return enter(d, root.kind, root.end - root.at);
}

static enum xp_status passed_on(struct xspace_decoder *d, struct xp_error *err)
{
    if (err)
        *err = d->error;
    return d->error.status;
}

enum xp_status xspace_decoder_push(struct xspace_decoder *d, struct xp_span in,
                                   struct xp_error *err)
{
    const uint8_t *p = in.p, *end = in.p + in.n;
    enum xp_status st = d->error.status;
    if (st == XP_OK && !d->begun)
        st = begin(d);
    if (st == XP_OK && d->hopped) {
        d->hopped = false;
        st = close_frames(d);
    }
    while (p < end && st == XP_OK) {
        if (d->pos == d->frames[0].end && !d->npatch && !d->skip && !d->text_left) {
            st = fail(d, d->pos, "bytes behind the end of the message");
            break;
        }
        p += advance(d, p, end, &st);
        if (st == XP_OK && !d->skip && !d->text_left && !d->npatch)
            st = close_frames(d);
    }
    if (d->nbatch) { /* what came before a failure is handed on too */
        struct xp_error kept = d->error;
        enum xp_status flushed = flush(d);
        if (kept.status != XP_OK)
            d->error = kept;
        else
            st = flushed;
    }
    return st == XP_OK ? XP_OK : passed_on(d, err);
}

uint64_t xspace_decoder_hop(struct xspace_decoder *d)
{
    uint64_t n = d->error.status == XP_OK ? d->skip : 0;
    d->pos += n;
    d->skip = 0;
    d->hopped |= n > 0;
    return n;
}

enum xp_status xspace_decoder_finish(struct xspace_decoder *d, struct xp_error *err)
{
    static const char *const inside[] = {"a profile", "a plane",  "a line",   "an event",
                                         "a stat",    "metadata", "metadata", "a group"};
    if (d->error.status == XP_OK && !d->begun)
        begin(d);
    if (d->error.status == XP_OK && d->hopped)
        close_frames(d);
    if (d->error.status == XP_OK) {
        struct xspace_frame *t = top(d);
        bool open = d->skip || d->text_left || d->npatch || d->depth > 1;
        bool endless = t->kind == XSPACE_F_SPACE && t->end == UINT64_MAX;
        if (open || (!endless && d->pos != t->end))
            xp_fail(&d->error, XP_CORRUPT, d->pos + d->npatch, "the bytes end inside %s",
                    inside[t->kind]);
        else if (t->kind != XSPACE_F_SPACE)
            leave(d);
    }
    return d->error.status == XP_OK ? XP_OK : passed_on(d, err);
}
