#include "shard/hlo/hlo_int.h"

/* --- decoding --- */

enum { SHAPE_TYPE = 2, SHAPE_DIMS = 3, SHAPE_CHILDREN = 4, SHAPE_LAYOUT = 5, SHAPE_DYNAMIC = 6 };
enum { LAYOUT_MINOR = 1, LAYOUT_TILES = 6, LAYOUT_BITS = 7, LAYOUT_SPACE = 8 };

static struct hlo_shape *shape_of(struct hlo_decoder *d, uint32_t i)
{
    return (struct hlo_shape *)d->shapes.p + i;
}

static enum xp_status decode_layout(struct hlo_decoder *d, struct xp_span msg, struct hlo_shape *s)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    s->layout = msg;
    s->has_layout = true;
    while (xp_pb_next(&r, &f)) {
        if (f.num == LAYOUT_MINOR)
            XP_TRY(hlo_add_ints(d, &f, &s->minor));
        else if (f.num == LAYOUT_SPACE && f.type == XP_PB_VARINT)
            s->memory_space = (int64_t)f.value;
    }
    return r.bad ? hlo_malformed(d, &r) : XP_OK;
}

/* While a shape waits for its turn, `layout` holds its whole message. */
static enum xp_status add_child(struct hlo_decoder *d, uint32_t parent, struct xp_span msg)
{
    struct hlo_shape *child = hlo_vec_more(d, &d->shapes, 1);
    if (!child)
        return hlo_no_room(d);
    child->layout = msg;
    child->parent = parent;
    struct hlo_run *children = &shape_of(d, parent)->children;
    if (children->n++ == 0)
        children->at = d->shapes.n - 1;
    return XP_OK;
}

static enum xp_status decode_one(struct hlo_decoder *d, uint32_t at)
{
    struct hlo_shape s = *shape_of(d, at);
    struct xp_pb r = xp_pb_open(s.layout);
    struct xp_span layout = {0};
    bool has_layout = false;
    struct xp_pb_field f;

    s.layout = (struct xp_span){0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == SHAPE_DIMS)
            XP_TRY(hlo_add_ints(d, &f, &s.dims));
        else if (f.num == SHAPE_DYNAMIC)
            XP_TRY(hlo_add_ints(d, &f, &s.dynamic));
        else if (f.num == SHAPE_TYPE && f.type == XP_PB_VARINT)
            s.type = (uint32_t)f.value;
        else if (f.num == SHAPE_CHILDREN && f.type == XP_PB_LEN)
            XP_TRY(add_child(d, at, f.bytes));
        else if (f.num == SHAPE_LAYOUT && f.type == XP_PB_LEN)
            layout = f.bytes, has_layout = true;
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    if (has_layout)
        XP_TRY(decode_layout(d, layout, &s));
    s.children = shape_of(d, at)->children;
    *shape_of(d, at) = s;
    return XP_OK;
}

/* Breadth first: the table is its own queue, children lie side by side, and a level ends where the
 * next begins. */
enum xp_status hlo_decode_shape(struct hlo_decoder *d, struct xp_span msg, uint32_t *index)
{
    struct hlo_shape *s = hlo_vec_more(d, &d->shapes, 1);
    if (!s)
        return hlo_no_room(d);
    s->layout = msg;
    s->parent = HLO_NONE;
    *index = d->shapes.n - 1;
    uint32_t level_end = d->shapes.n;
    for (uint32_t at = *index, depth = 0; at < d->shapes.n; at++) {
        if (at == level_end) {
            level_end = d->shapes.n;
            if (++depth > HLO_DEPTH_MAX)
                return xp_fail(d->err, XP_CORRUPT, 0, "a shape nests deeper than %d",
                               HLO_DEPTH_MAX);
        }
        XP_TRY(decode_one(d, at));
    }
    return XP_OK;
}

/* --- types --- */

static const struct {
    const char *text;
    uint32_t bits;
} types[] = {
#define X(name, number, text, bits) [number] = {text, bits},
#include "shard/hlo/types.def"
#undef X
};

const char *hlo_type_text(uint32_t type)
{
    return type < sizeof types / sizeof *types ? types[type].text : "unknown";
}

uint32_t hlo_type_bits(uint32_t type)
{
    return type < sizeof types / sizeof *types ? types[type].bits : 0;
}

/* --- walking a shape and all that is in it --- */

/* The next shape in depth-first order below `root`, HLO_NONE at the end. */
static uint32_t next_shape(const struct hlo_module *m, uint32_t root, uint32_t at)
{
    if (m->shapes[at].children.n)
        return m->shapes[at].children.at;
    while (at != root) {
        const struct hlo_run *siblings = &m->shapes[m->shapes[at].parent].children;
        if (at + 1 < siblings->at + siblings->n)
            return at + 1;
        at = m->shapes[at].parent;
    }
    return HLO_NONE;
}

static int64_t times(int64_t x, int64_t y)
{
    int64_t z;
    if (x < 0 || y < 0)
        return 0;
    return __builtin_mul_overflow(x, y, &z) ? INT64_MAX : z;
}

static int64_t plus(int64_t x, int64_t y)
{
    int64_t z;
    return __builtin_add_overflow(x, y, &z) ? INT64_MAX : z;
}

static int64_t array_elements(const struct hlo_module *m, const struct hlo_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->dims.n; i++)
        n = times(n, m->ints[s->dims.at + i]);
    return n;
}

/* Elements of fewer than 8 bits are counted as bytes unless the layout packs them. */
static int64_t array_bytes(const struct hlo_module *m, const struct hlo_shape *s)
{
    int64_t bits = hlo_type_bits(s->type), n = array_elements(m, s);
    int64_t packed = s->has_layout ? hlo_get_int(s->layout, LAYOUT_BITS, 0) : 0;

    if (bits == 0)
        return 0;
    if (packed > 0 && packed < 8)
        return times(n, packed) == INT64_MAX ? INT64_MAX : (times(n, packed) + 7) / 8;
    return times(n, (bits + 7) / 8);
}

int64_t hlo_shape_elements(const struct hlo_module *m, uint32_t shape)
{
    int64_t n = 0;
    if (shape >= m->nshapes)
        return 0;
    for (uint32_t at = shape; at != HLO_NONE; at = next_shape(m, shape, at))
        if (m->shapes[at].type != HLO_TYPE_TUPLE)
            n = plus(n, array_elements(m, &m->shapes[at]));
    return n;
}

int64_t hlo_shape_bytes(const struct hlo_module *m, uint32_t shape, int64_t pointer_bytes)
{
    int64_t n = 0;
    if (shape >= m->nshapes)
        return 0;
    for (uint32_t at = shape; at != HLO_NONE; at = next_shape(m, shape, at)) {
        const struct hlo_shape *s = &m->shapes[at];
        n = plus(n, s->type == HLO_TYPE_TUPLE ? times(s->children.n, pointer_bytes)
                                              : array_bytes(m, s));
    }
    return n;
}

uint32_t hlo_subshape(const struct hlo_module *m, uint32_t shape, const int64_t *index, size_t n)
{
    for (size_t i = 0; shape < m->nshapes && i < n; i++) {
        const struct hlo_run *c = &m->shapes[shape].children;
        shape = index[i] >= 0 && index[i] < c->n ? c->at + (uint32_t)index[i] : HLO_NONE;
    }
    return shape < m->nshapes ? shape : HLO_NONE;
}

bool hlo_shape_is_scalar_like(const struct hlo_module *m, uint32_t shape)
{
    if (shape >= m->nshapes || hlo_type_bits(m->shapes[shape].type) == 0)
        return false;
    return array_elements(m, &m->shapes[shape]) == 1;
}

/* --- text --- */

static void array_text(const struct hlo_module *m, const struct hlo_shape *s, struct xp_buf *out)
{
    xp_buf_str(out, hlo_type_text(s->type));
    xp_buf_byte(out, '[');
    for (uint32_t i = 0; i < s->dims.n && !out->failed; i++) {
        int64_t dim = m->ints[s->dims.at + i];
        bool dynamic = i < s->dynamic.n && m->ints[s->dynamic.at + i];
        if (i)
            xp_buf_byte(out, ',');
        if (dim == INT64_MIN) /* unbounded */
            xp_buf_byte(out, '?');
        else
            xp_buf_fmt(out, dynamic ? "<=%lld" : "%lld", (long long)dim);
    }
    xp_buf_byte(out, ']');
}

static void int_list(struct xp_span msg, uint32_t field, struct xp_buf *out)
{
    struct hlo_ints it = hlo_ints_open(msg, field);
    int64_t v;
    for (bool first = true; !out->failed && hlo_ints_next(&it, &v); first = false) {
        if (!first)
            xp_buf_byte(out, ',');
        if (v == INT64_MIN) /* combines with the dimension before */
            xp_buf_byte(out, '*');
        else
            xp_buf_fmt(out, "%lld", (long long)v);
    }
}

/* The rest of a layout, after a colon if there is any of it. */
static void layout_rest(const struct hlo_shape *s, struct xp_buf *out)
{
    struct hlo_spans tiles = hlo_spans_open(s->layout, LAYOUT_TILES);
    struct xp_span tile;
    bool any = false;

    for (; !out->failed && hlo_spans_next(&tiles, &tile); any = true) {
        xp_buf_str(out, any ? "(" : "T(");
        int_list(tile, 1, out);
        xp_buf_byte(out, ')');
    }
    int64_t tail = hlo_get_int(s->layout, 16, 1);
    if (tail != 0 && tail != 1)
        xp_buf_fmt(out, "L(%lld)", (long long)tail);
    int64_t index_type = hlo_get_int(s->layout, 11, 0);
    if (index_type)
        xp_buf_fmt(out, "#(%s)", hlo_type_text((uint32_t)index_type));
    int64_t pointer_type = hlo_get_int(s->layout, 12, 0);
    if (pointer_type)
        xp_buf_fmt(out, "*(%s)", hlo_type_text((uint32_t)pointer_type));
    int64_t bits = hlo_get_int(s->layout, LAYOUT_BITS, 0);
    if (bits)
        xp_buf_fmt(out, "E(%lld)", (long long)bits);
    if (s->memory_space)
        xp_buf_fmt(out, "S(%lld)", (long long)s->memory_space);
    struct hlo_spans splits = hlo_spans_open(s->layout, 17);
    struct xp_span split;
    for (any = false; !out->failed && hlo_spans_next(&splits, &split); any = true) {
        xp_buf_fmt(out, "%s(%lld:", any ? "" : "SC", (long long)hlo_get_int(split, 1, 0));
        int_list(split, 2, out);
        xp_buf_byte(out, ')');
    }
    int64_t prefix = hlo_get_int(s->layout, 15, 0);
    if (prefix > 0)
        xp_buf_fmt(out, "M(%lld)", (long long)prefix);
}

static void dim_levels(const struct hlo_shape *s, struct xp_buf *out)
{
    static const char letters[] = "DCSL";
    struct hlo_ints it = hlo_ints_open(s->layout, 9);
    int64_t v;
    bool first = true;
    for (; !out->failed && hlo_ints_next(&it, &v); first = false) {
        xp_buf_str(out, first ? "D(" : ",");
        xp_buf_byte(out, v >= 0 && v < 4 ? (uint8_t)letters[v] : '?');
    }
    if (!first)
        xp_buf_byte(out, ')');
}

static void layout_text(const struct hlo_module *m, const struct hlo_shape *s, struct xp_buf *out)
{
    size_t before = out->n;

    for (uint32_t i = 0; i < s->minor.n && !out->failed; i++)
        xp_buf_fmt(out, i ? ",%lld" : "{%lld", (long long)m->ints[s->minor.at + i]);
    if (out->failed)
        return;
    if (s->minor.n == 0)
        xp_buf_byte(out, '{');
    size_t colon = out->n;
    xp_buf_byte(out, ':');
    dim_levels(s, out);
    layout_rest(s, out);
    if (!out->failed && out->n == colon + 1)
        out->n = colon;
    xp_buf_byte(out, '}');
    /* A scalar of no special layout has none. */
    if (!out->failed && s->dims.n == 0 && out->n == before + 2)
        out->n = before;
}

void hlo_shape_text(const struct hlo_module *m, uint32_t shape, bool layout, struct xp_buf *out)
{
    for (uint32_t at = shape; shape < m->nshapes && at != HLO_NONE && !out->failed;) {
        const struct hlo_shape *s = &m->shapes[at];
        if (s->type == HLO_TYPE_TUPLE || s->type == HLO_TYPE_BUFFER) {
            xp_buf_str(out, s->type == HLO_TYPE_TUPLE ? "(" : "b(");
            if (s->children.n == 0)
                xp_buf_byte(out, ')');
        } else {
            array_text(m, s, out);
            if (layout && !out->failed && s->has_layout && hlo_type_bits(s->type))
                layout_text(m, s, out);
        }
        uint32_t next = next_shape(m, shape, at);
        if (s->children.n == 0) { /* close the tuples that end here */
            uint32_t up = at;
            while (up != shape &&
                   (next == HLO_NONE || m->shapes[next].parent != m->shapes[up].parent)) {
                up = m->shapes[up].parent;
                xp_buf_byte(out, ')');
            }
            if (next != HLO_NONE) {
                uint32_t k = next - m->shapes[m->shapes[next].parent].children.at;
                if (k % 5 == 0)
                    xp_buf_fmt(out, ", /*index=%u*/", k);
                else
                    xp_buf_str(out, ", ");
            }
        }
        at = next;
    }
}
