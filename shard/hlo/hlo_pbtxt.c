#include "shard/hlo/hlo_pbtxt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard/hlo/hlo_text.h"

#define DEPTH_MAX 100 /* protobuf's own parsers stop there */
#define FIELDS_MAX ((size_t)1 << 26)

/* --- the schema --- */

enum { REPEATED = 1, PRESENT = 2 };
enum kind { DOUBLE, FLOAT, INT64, UINT64, INT32, BOOL, STRING, MESSAGE_, BYTES, UINT32, ENUM_ };

enum {
#define ENUM(name, values)
#define MESSAGE(name, fields) M_##name,
#include "shard/hlo/schema.def"
#undef ENUM
#undef MESSAGE
};
enum {
#define ENUM(name, values) E_##name,
#define MESSAGE(name, fields)
#include "shard/hlo/schema.def"
#undef ENUM
#undef MESSAGE
};

struct field {
    uint16_t num;
    uint8_t kind, flags, sub;
    const char *name;
};
struct value {
    int32_t number;
    const char *name;
};

#define KIND_DOUBLE DOUBLE
#define KIND_FLOAT FLOAT
#define KIND_INT64 INT64
#define KIND_UINT64 UINT64
#define KIND_INT32 INT32
#define KIND_BOOL BOOL
#define KIND_STRING STRING
#define KIND_MESSAGE MESSAGE_
#define KIND_BYTES BYTES
#define KIND_UINT32 UINT32
#define KIND_ENUM ENUM_
#define FIELD(num, kind, flags, sub, name) {num, KIND_##kind, flags, sub, #name},
#define VALUE(number, name) {number, #name},
#define ENUM(name, values) static const struct value values_##name[] = {values};
#define MESSAGE(name, fields) static const struct field fields_##name[] = {fields};
#include "shard/hlo/schema.def"
#undef ENUM
#undef MESSAGE

static const struct {
    const struct field *v;
    size_t n;
} messages[] = {
#define ENUM(name, values)
#define MESSAGE(name, fields) {fields_##name, sizeof fields_##name / sizeof(struct field)},
#include "shard/hlo/schema.def"
#undef ENUM
#undef MESSAGE
};
static const struct {
    const struct value *v;
    size_t n;
} enums[] = {
#define ENUM(name, values) {values_##name, sizeof values_##name / sizeof(struct value)},
#define MESSAGE(name, fields)
#include "shard/hlo/schema.def"
#undef ENUM
#undef MESSAGE
};

static const struct field *field_of(uint32_t message, uint32_t num)
{
    size_t lo = 0, hi = messages[message].n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (messages[message].v[mid].num < num)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool found = lo < messages[message].n && messages[message].v[lo].num == num;
    return found ? &messages[message].v[lo] : NULL;
}

/* --- the walk: open messages on a stack, the fields of all of them in one array --- */

struct seen {
    const struct field *f;
    struct xp_pb_field at;
    uint32_t order;
};

struct walk {
    struct xp_buf *out;
    const uint8_t *start;
    struct seen *seen;
    size_t n, cap;
    struct {
        size_t first, next;
    } open[DEPTH_MAX];
    int depth;
    struct xp_error *err;
};

static int seen_cmp(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;
    if (a->f->num != b->f->num)
        return a->f->num < b->f->num ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static bool grow(struct walk *w)
{
    size_t cap = w->cap ? 2 * w->cap : 256;
    struct seen *seen = cap <= FIELDS_MAX ? realloc(w->seen, cap * sizeof *seen) : NULL;
    if (!seen)
        return false;
    w->seen = seen;
    w->cap = cap;
    return true;
}

static enum xp_status enter(struct walk *w, uint32_t message, struct xp_span bytes)
{
    struct xp_pb r = xp_pb_open(bytes);
    struct xp_pb_field f;
    uint32_t order = 0, last = 0;
    bool sorted = true;

    if (w->depth == DEPTH_MAX)
        return xp_fail(w->err, XP_CORRUPT, (uint64_t)(bytes.p - w->start),
                       "messages nest deeper than %d", DEPTH_MAX);
    w->open[w->depth].first = w->open[w->depth].next = w->n;
    while (xp_pb_next(&r, &f)) {
        const struct field *known = field_of(message, f.num);
        if (!known)
            continue;
        if (w->n == w->cap && !grow(w))
            return xp_fail(w->err, XP_BUSY, 0, "no memory for the fields of a message");
        sorted &= f.num >= last;
        last = f.num;
        w->seen[w->n++] = (struct seen){known, f, order++};
    }
    if (r.bad)
        return xp_fail(w->err, XP_CORRUPT, (uint64_t)(r.p - w->start), "a message is malformed");
    if (!sorted)
        qsort(w->seen + w->open[w->depth].first, order, sizeof *w->seen, seen_cmp);
    w->depth++;
    return XP_OK;
}

/* --- values --- */

static void indent(struct walk *w, int depth)
{
    for (int i = 0; i < depth; i++)
        xp_buf_str(w->out, "  ");
}

static void number_text(struct xp_buf *out, double v, bool single)
{
    char text[48];

    if (isnan(v)) {
        xp_buf_str(out, "nan");
        return;
    }
    snprintf(text, sizeof text, "%.*g", single ? 6 : 15, v);
    if (single ? strtof(text, NULL) != (float)v : strtod(text, NULL) != v)
        snprintf(text, sizeof text, "%.*g", single ? 9 : 17, v);
    xp_buf_str(out, text);
}

static void enum_text(struct xp_buf *out, uint32_t which, int32_t number)
{
    for (size_t i = 0; i < enums[which].n; i++) {
        if (enums[which].v[i].number == number) {
            xp_buf_str(out, enums[which].v[i].name);
            return;
        }
    }
    xp_buf_fmt(out, "%d", number);
}

static void scalar_text(struct walk *w, const struct field *f, uint64_t v)
{
    uint32_t low = (uint32_t)v;
    float single;

    switch (f->kind) {
    case DOUBLE:
        number_text(w->out, xp_pb_double(v), false);
        break;
    case FLOAT:
        memcpy(&single, &low, sizeof single);
        number_text(w->out, (double)single, true);
        break;
    case INT64:
        xp_buf_fmt(w->out, "%lld", (long long)v);
        break;
    case INT32:
        xp_buf_fmt(w->out, "%d", (int)low);
        break;
    case UINT64:
        xp_buf_fmt(w->out, "%llu", (unsigned long long)v);
        break;
    case UINT32:
        xp_buf_fmt(w->out, "%u", low);
        break;
    case BOOL:
        xp_buf_str(w->out, v ? "true" : "false");
        break;
    case ENUM_:
        enum_text(w->out, f->sub, (int32_t)low);
        break;
    }
}

static void put_scalar(struct walk *w, const struct field *f, uint64_t v)
{
    indent(w, w->depth - 1);
    xp_buf_fmt(w->out, "%s: ", f->name);
    scalar_text(w, f, v);
    xp_buf_byte(w->out, '\n');
}

static void put_text(struct walk *w, const struct field *f, struct xp_span s)
{
    indent(w, w->depth - 1);
    xp_buf_fmt(w->out, "%s: \"", f->name);
    hlo_text_escape(w->out, s);
    xp_buf_str(w->out, "\"\n");
}

static size_t fixed_size(uint8_t kind)
{
    return kind == DOUBLE ? 8 : kind == FLOAT ? 4 : 0;
}

static enum xp_status put_packed(struct walk *w, const struct field *f, struct xp_span s)
{
    size_t size = fixed_size(f->kind);
    const uint8_t *p = s.p, *end = s.p + s.n;

    while (p < end) {
        uint64_t v = 0;
        if (size) {
            for (size_t i = 0; i < size && p + i < end; i++)
                v |= (uint64_t)p[i] << (8 * i);
            p = (size_t)(end - p) < size ? NULL : p + size;
        } else {
            p = xp_varint_read(p, end, &v);
        }
        if (!p)
            return xp_fail(w->err, XP_CORRUPT, (uint64_t)(s.p - w->start),
                           "a packed field is malformed");
        put_scalar(w, f, v);
    }
    return XP_OK;
}

/* The last of several occurrences counts, but for repeated fields. */
static bool is_last(const struct walk *w, size_t i)
{
    return i + 1 == w->n || w->seen[i + 1].f != w->seen[i].f;
}

static enum xp_status put_field(struct walk *w, size_t i)
{
    const struct field *f = w->seen[i].f;
    const struct xp_pb_field *at = &w->seen[i].at;
    bool text = f->kind == STRING || f->kind == BYTES;

    if (!(f->flags & REPEATED) && !is_last(w, i))
        return XP_OK;
    if (at->type == XP_PB_LEN && f->kind != MESSAGE_ && !text)
        return f->flags & REPEATED ? put_packed(w, f, at->bytes) : XP_OK;
    if ((at->type == XP_PB_LEN) != (text || f->kind == MESSAGE_))
        return XP_OK; /* of a type that the schema does not have there */
    if (f->kind == MESSAGE_) {
        struct xp_span bytes = at->bytes;
        indent(w, w->depth - 1);
        xp_buf_fmt(w->out, "%s {\n", f->name);
        return enter(w, f->sub, bytes);
    }
    if (text) {
        if (f->flags || at->bytes.n)
            put_text(w, f, at->bytes);
        return XP_OK;
    }
    if (f->flags || at->value)
        put_scalar(w, f, at->value);
    return XP_OK;
}

enum xp_status hlo_pbtxt(struct xp_span bytes, struct xp_buf *out, void (*flush)(void *ctx),
                         void *ctx, struct xp_error *err)
{
    struct walk w = {.out = out, .start = bytes.p, .err = err};
    enum xp_status status = enter(&w, M_HloProto, bytes);

    while (status == XP_OK && w.depth && !out->failed) {
        size_t *next = &w.open[w.depth - 1].next;
        if (*next < w.n) {
            status = put_field(&w, (*next)++);
            continue;
        }
        w.n = w.open[--w.depth].first;
        if (w.depth) {
            indent(&w, w.depth - 1);
            xp_buf_str(out, "}\n");
        }
        if (flush)
            flush(ctx);
    }
    free(w.seen);
    return status;
}
