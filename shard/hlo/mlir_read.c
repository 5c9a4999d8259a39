#include "shard/hlo/mlir_int.h"

/* Sections of a file, by number. */
enum { STRINGS, DIALECTS, ATTRS, OFFSETS, IR, SECTIONS = 9 };

/* Parts of an operation that may be there. */
enum { OP_ATTRS = 1, OP_RESULTS = 2, OP_OPERANDS = 4, OP_SUCCESSORS = 8, OP_REGIONS = 16 };

uint8_t mlir_byte(struct mlir_in *in)
{
    if (in->p == in->end) {
        in->bad = true;
        return 0;
    }
    return *in->p++;
}

struct xp_span mlir_bytes(struct mlir_in *in, uint64_t n)
{
    if (n > (size_t)(in->end - in->p)) {
        in->bad = true;
        return (struct xp_span){0};
    }
    struct xp_span s = xp_span_of(in->p, (size_t)n);
    in->p += n;
    return s;
}

/* The first byte's trailing zeros say how many bytes follow; little endian, the length bits cut. */
uint64_t mlir_varint(struct mlir_in *in)
{
    uint8_t first = mlir_byte(in);
    unsigned more = first ? (unsigned)__builtin_ctz(first) : 8;
    struct xp_span s = mlir_bytes(in, more);
    uint64_t v = 0;
    for (size_t i = s.n; i-- > 0;)
        v = v << 8 | s.p[i];
    return more == 8 ? v : (v << (8 - more - 1)) | (uint64_t)(first >> (more + 1));
}

uint32_t mlir_index(struct mlir_in *in, uint32_t n)
{
    uint64_t v = mlir_varint(in);
    if (v >= n)
        in->bad = true;
    return v < n ? (uint32_t)v : 0;
}

/* How many of something follow; each takes a byte at least. */
static uint32_t count(struct mlir_in *in)
{
    uint64_t v = mlir_varint(in);
    if (v > (size_t)(in->end - in->p))
        in->bad = true;
    return in->bad ? 0 : (uint32_t)v;
}

struct reading {
    struct mlir *m;
    struct xp_arena *a;
    struct xp_error *err;
    struct xp_span section[SECTIONS];
    size_t max;      /* of operations, values and the like: the bytes of the code */
    uint32_t *scope; /* values that may be used here */
    uint32_t nscope, scope_base;
};

static struct mlir_in open_section(const struct reading *r, int section)
{
    struct xp_span s = r->section[section];
    return (struct mlir_in){s.p, s.p ? s.p + s.n : s.p, !s.p};
}

static enum xp_status corrupt(struct reading *r, const char *what)
{
    return xp_fail(r->err, XP_CORRUPT, 0, "the MLIR bytecode's %s cannot be read", what);
}

static enum xp_status sections(struct reading *r, struct xp_span file)
{
    struct mlir_in in = {file.p, file.p + file.n, false};
    if (file.n < 5 || memcmp(file.p, "ML\xefR", 4) != 0)
        return corrupt(r, "head");
    in.p += 4;
    uint64_t version = mlir_varint(&in);
    if (version != 0)
        return xp_fail(r->err, XP_CORRUPT, 0,
                       "MLIR bytecode of version %llu is not read; kernels come in version 0",
                       (unsigned long long)version);
    while (!in.bad && mlir_byte(&in) != 0)
        ; /* who wrote it */
    while (!in.bad && in.p < in.end) {
        uint8_t id = mlir_byte(&in);
        uint64_t n = mlir_varint(&in);
        if (id & 0x80) {
            uint64_t align = mlir_varint(&in);
            while (align > 1 && !in.bad && (uint64_t)(in.p - file.p) % align)
                mlir_byte(&in);
        }
        struct xp_span s = mlir_bytes(&in, n);
        if ((id & 0x7f) < SECTIONS && !in.bad)
            r->section[id & 0x7f] = s;
    }
    return in.bad ? corrupt(r, "table of sections") : XP_OK;
}

/* Lengths come first, the last string's first; each string ends with a 0. */
static enum xp_status strings(struct reading *r)
{
    struct mlir *m = r->m;
    struct mlir_in in = open_section(r, STRINGS);
    m->nstrings = count(&in);
    m->strings = xp_arena_zalloc(r->a, ((size_t)m->nstrings + 1) * sizeof *m->strings);
    uint64_t *size = xp_arena_zalloc(r->a, ((size_t)m->nstrings + 1) * sizeof *size);
    if (!m->strings || !size)
        return xp_fail(r->err, XP_BUSY, 0, "no memory for MLIR bytecode");
    for (uint32_t i = m->nstrings; i-- > 0;)
        size[i] = mlir_varint(&in);
    for (uint32_t i = 0; i < m->nstrings; i++) {
        struct xp_span s = mlir_bytes(&in, size[i]);
        m->strings[i] = xp_span_of(s.p, s.n ? s.n - 1 : 0);
    }
    return in.bad ? corrupt(r, "strings") : XP_OK;
}

static enum xp_status dialects(struct reading *r)
{
    struct mlir *m = r->m;
    struct mlir_in in = open_section(r, DIALECTS);
    m->ndialects = count(&in);
    m->dialects = xp_arena_zalloc(r->a, ((size_t)m->ndialects + 1) * sizeof *m->dialects);
    size_t names = r->section[DIALECTS].n + 1;
    m->op_names = xp_arena_zalloc(r->a, names * sizeof *m->op_names);
    m->op_dialects = xp_arena_zalloc(r->a, names * sizeof *m->op_dialects);
    if (!m->dialects || !m->op_names || !m->op_dialects)
        return xp_fail(r->err, XP_BUSY, 0, "no memory for MLIR bytecode");
    for (uint32_t i = 0; i < m->ndialects && !in.bad; i++)
        m->dialects[i] = m->strings[mlir_index(&in, m->nstrings)];
    while (!in.bad && in.p < in.end) {
        uint32_t dialect = mlir_index(&in, m->ndialects);
        for (uint32_t n = count(&in); n-- > 0 && !in.bad;) {
            m->op_dialects[m->nop_names] = dialect;
            m->op_names[m->nop_names++] = m->strings[mlir_index(&in, m->nstrings)];
        }
    }
    return in.bad ? corrupt(r, "dialects") : XP_OK;
}

/* Attributes, then types: groups of one dialect, for each entry its size and whether the dialect
 * encodes it itself. */
static enum xp_status entries(struct reading *r)
{
    struct mlir *m = r->m;
    struct mlir_in in = open_section(r, OFFSETS), data = open_section(r, ATTRS);
    m->nattrs = count(&in);
    m->ntypes = count(&in);
    uint64_t n = (uint64_t)m->nattrs + m->ntypes;
    m->attrs = xp_arena_zalloc(r->a, (n + 1) * sizeof *m->attrs);
    if (!m->attrs)
        return xp_fail(r->err, XP_BUSY, 0, "no memory for MLIR bytecode");
    m->types = m->attrs + m->nattrs;
    for (uint64_t i = 0; i < n && !in.bad && !data.bad;) {
        struct xp_span dialect = m->dialects[mlir_index(&in, m->ndialects)];
        uint64_t group = mlir_varint(&in);
        if (group == 0 || group > n - i)
            return corrupt(r, "attributes");
        for (; group-- > 0 && !in.bad; i++) {
            uint64_t v = mlir_varint(&in);
            m->attrs[i] = (struct mlir_entry){mlir_bytes(&data, v >> 1), v & 1};
            if (v & 1 && !xp_span_eq(dialect, XP_SPAN_LIT("builtin")))
                return xp_fail(r->err, XP_CORRUPT, 0, "the MLIR dialect %.*s is not known",
                               dialect.n < 60 ? (int)dialect.n : 60, (const char *)dialect.p);
        }
    }
    return in.bad || data.bad ? corrupt(r, "attributes") : XP_OK;
}

/* --- the code --- */

/* What is being read: the rest of a region's operations, or of an operation's regions. */
struct level {
    uint32_t region, op; /* one of them is MLIR_NONE */
    uint64_t left;
    uint32_t scope, base; /* to go back to */
};

static uint32_t new_value(struct mlir *m, size_t max)
{
    return m->nvalues < max ? m->nvalues++ : MLIR_NONE;
}

/* Values of a region have their numbers before they are defined. */
static bool reserve(struct reading *r, uint64_t n)
{
    if (n > r->max || r->nscope + n > r->max)
        return false;
    for (; n-- > 0;)
        if ((r->scope[r->nscope++] = new_value(r->m, r->max)) == MLIR_NONE)
            return false;
    return true;
}

struct code {
    struct mlir_in in;
    uint32_t *next; /* of each region: the place in scope of the next value that it defines */
    struct level *levels;
    size_t depth;
};

static uint32_t define(struct reading *r, struct code *c, uint32_t region, uint32_t type)
{
    uint32_t at = c->next[region]++;
    if (at >= r->nscope) {
        c->in.bad = true;
        return 0;
    }
    r->m->values[r->scope[at]].type = type;
    return r->scope[at];
}

/* A block: its arguments, and how many operations follow. */
static uint64_t block(struct reading *r, struct code *c, uint32_t region)
{
    struct mlir_region *g = &r->m->regions[region];
    uint64_t v = mlir_varint(&c->in);
    g->has_block = true;
    if (v & 1) {
        g->narguments = count(&c->in);
        for (uint32_t i = 0; i < g->narguments && !c->in.bad; i++) {
            uint32_t type = mlir_index(&c->in, r->m->ntypes);
            uint32_t value = define(r, c, region, type);
            r->m->values[value].argument = true;
            g->first_argument = i ? g->first_argument : value;
            mlir_index(&c->in, r->m->nattrs); /* where it stands */
        }
    }
    if (v >> 1 > r->max)
        c->in.bad = true;
    return v >> 1;
}

static uint32_t operation(struct reading *r, struct code *c, uint32_t region)
{
    struct mlir *m = r->m;
    if (m->nops == r->max) {
        c->in.bad = true;
        return 0;
    }
    uint32_t at = m->nops++;
    struct mlir_op *op = &m->ops[at];
    *op = (struct mlir_op){.name = mlir_index(&c->in, m->nop_names),
                           .attrs = MLIR_NONE,
                           .first_region = MLIR_NONE,
                           .next = MLIR_NONE};
    uint8_t has = mlir_byte(&c->in);
    mlir_index(&c->in, m->nattrs); /* where it stands */
    if (has & OP_ATTRS)
        op->attrs = mlir_index(&c->in, m->nattrs);
    if (has & OP_RESULTS)
        op->nresults = count(&c->in);
    for (uint32_t i = 0; i < op->nresults && !c->in.bad; i++) {
        uint32_t value = define(r, c, region, mlir_index(&c->in, m->ntypes));
        op->first_result = i ? op->first_result : value;
    }
    op->operands = m->nrefs;
    if (has & OP_OPERANDS)
        op->noperands = count(&c->in);
    for (uint32_t i = 0; i < op->noperands && !c->in.bad; i++) {
        uint32_t k = mlir_index(&c->in, r->nscope - r->scope_base);
        if (m->nrefs == r->max || c->in.bad)
            c->in.bad = true;
        else
            m->refs[m->nrefs++] = r->scope[r->scope_base + k];
    }
    if (has & ~(OP_ATTRS | OP_RESULTS | OP_OPERANDS | OP_REGIONS))
        c->in.bad = true; /* successors, orders of uses: not in kernels of version 0 */
    uint64_t regions = has & OP_REGIONS ? mlir_varint(&c->in) : 0;
    if (regions >> 1 && !c->in.bad && c->depth < r->max) {
        c->levels[c->depth++] =
            (struct level){MLIR_NONE, at, regions >> 1, r->nscope, r->scope_base};
        if (regions & 1)
            r->scope_base = r->nscope;
    }
    return at;
}

static void link_op(struct mlir *m, uint32_t region, uint32_t op)
{
    struct mlir_region *g = &m->regions[region];
    if (g->first_op == MLIR_NONE)
        g->first_op = op;
    else
        m->ops[g->last_op].next = op;
    g->last_op = op;
}

static uint32_t new_region(struct reading *r, struct code *c, uint32_t parent)
{
    struct mlir *m = r->m;
    if (m->nregions == r->max) {
        c->in.bad = true;
        return 0;
    }
    m->regions[m->nregions] = (struct mlir_region){
        .parent = parent, .first_op = MLIR_NONE, .last_op = MLIR_NONE, .next = MLIR_NONE};
    return m->nregions++;
}

/* The next region of an operation, which stands in the region `parent`. */
static void begin_region(struct reading *r, struct code *c, uint32_t op, uint32_t parent)
{
    struct mlir *m = r->m;
    uint32_t at = new_region(r, c, parent);
    if (c->in.bad)
        return;
    if (m->ops[op].nregions++)
        m->regions[m->ops[op].last_region].next = at;
    else
        m->ops[op].first_region = at;
    m->ops[op].last_region = at;
    uint64_t blocks = mlir_varint(&c->in);
    if (blocks == 0)
        return;
    uint64_t values = mlir_varint(&c->in);
    c->next[at] = r->nscope;
    uint32_t scope = r->nscope;
    if (blocks != 1 || !reserve(r, values) || c->depth == r->max) {
        c->in.bad = true;
        return;
    }
    uint64_t n = block(r, c, at);
    c->levels[c->depth++] = (struct level){at, MLIR_NONE, n, scope, r->scope_base};
}

static void step(struct reading *r, struct code *c)
{
    struct level *l = &c->levels[c->depth - 1];
    if (l->left == 0) {
        r->nscope = l->scope;
        r->scope_base = l->base;
        c->depth--;
        return;
    }
    l->left--;
    if (l->op == MLIR_NONE) {
        uint32_t region = l->region, op = operation(r, c, region);
        if (!c->in.bad)
            link_op(r->m, region, op);
    } else {
        begin_region(r, c, l->op, c->levels[c->depth - 2].region);
    }
}

static enum xp_status code(struct reading *r)
{
    struct mlir *m = r->m;
    struct code c = {.in = open_section(r, IR)};
    r->max = r->section[IR].n + 2;
    m->values = xp_arena_zalloc(r->a, r->max * sizeof *m->values);
    m->ops = xp_arena_zalloc(r->a, r->max * sizeof *m->ops);
    m->regions = xp_arena_zalloc(r->a, r->max * sizeof *m->regions);
    m->refs = xp_arena_zalloc(r->a, r->max * sizeof *m->refs);
    r->scope = xp_arena_zalloc(r->a, r->max * sizeof *r->scope);
    c.next = xp_arena_zalloc(r->a, r->max * sizeof *c.next);
    c.levels = xp_arena_zalloc(r->a, (r->max + 2) * sizeof *c.levels);
    if (!m->values || !m->ops || !m->regions || !m->refs || !r->scope || !c.next || !c.levels)
        return xp_fail(r->err, XP_BUSY, 0, "no memory for MLIR bytecode");
    uint32_t top = new_region(r, &c, MLIR_NONE);
    uint64_t n = block(r, &c, top);
    c.levels[c.depth++] = (struct level){top, MLIR_NONE, n, 0, 0};
    while (c.depth && !c.in.bad)
        step(r, &c);
    return c.in.bad ? corrupt(r, "code") : XP_OK;
}

enum xp_status mlir_read(struct xp_span bytecode, struct xp_arena *a, struct mlir *m,
                         struct xp_error *err)
{
    struct reading r = {.m = m, .a = a, .err = err};
    *m = (struct mlir){0};
    XP_TRY(sections(&r, bytecode));
    XP_TRY(strings(&r));
    XP_TRY(dialects(&r));
    XP_TRY(entries(&r));
    return code(&r);
}
