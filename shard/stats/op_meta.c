#include "lib/base/pb_wire.h"
#include "shard/stats/op_stats_int.h"

/* The stats of an op's metadata. */
enum what {
    NOTHING,
    PROGRAM_ID,
    SYMBOL_ID,
    CATEGORY,
    TF_OP,
    FLOPS,
    MODEL_FLOPS,
    BYTES,
    BREAKDOWN,
    DEDUP_NAME,
    SOURCE,
    SOURCE_STACK
};

static const char *const stat_names[] = {
    [PROGRAM_ID] = "program_id",
    [SYMBOL_ID] = "symbol_id",
    [CATEGORY] = "hlo_category",
    [TF_OP] = "tf_op",
    [FLOPS] = "flops",
    [MODEL_FLOPS] = "model_flops",
    [BYTES] = "bytes_accessed",
    [BREAKDOWN] = "memory_access_breakdown",
    [DEDUP_NAME] = "deduplicated_name",
    [SOURCE] = "source",
    [SOURCE_STACK] = "source_stack",
};

#define SMALL_IDS 4096 /* stat ids that are looked up without a search */

struct reading {
    struct op_build *b;
    const struct part_plane *pl;
    struct meta_reader reader;
    uint8_t small[SMALL_IDS];
    struct xp_strpool categories; /* numbers: ids */
};

static uint8_t what_of(const struct reading *r, int64_t id)
{
    if ((uint64_t)id < SMALL_IDS)
        return r->small[id];
    struct xp_span name = part_stat_name(r->b->part, r->pl, id);
    for (size_t k = 1; k < sizeof stat_names / sizeof *stat_names; k++)
        if (xp_span_eq(name, xp_span_str(stat_names[k])))
            return (uint8_t)k;
    return NOTHING;
}

static void note_ids(struct reading *r)
{
    for (uint32_t i = 0; i < r->pl->nstatmeta; i++) {
        const struct part_statmeta *m = &r->pl->statmeta[i];
        if ((uint64_t)m->id >= SMALL_IDS)
            continue;
        struct xp_span name = part_str(r->b->part, m->name);
        for (size_t k = 1; k < sizeof stat_names / sizeof *stat_names; k++)
            if (xp_span_eq(name, xp_span_str(stat_names[k])))
                r->small[m->id] = (uint8_t)k;
    }
}

/* MemoryAccessBreakdown: entries { operation_type 1, memory_space 2, bytes_accessed 3 } */
static void read_breakdown(struct xp_span bytes, struct op_memory *mem)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field f, g;
    while (xp_pb_next(&msg, &f)) {
        if (f.num != 1 || f.type != XP_PB_LEN)
            continue;
        struct xp_pb entry = xp_pb_open(f.bytes);
        uint64_t access = 0, space = 0, n = 0;
        while (xp_pb_next(&entry, &g)) {
            if (g.type != XP_PB_VARINT)
                continue;
            access = g.num == 1 ? g.value : access;
            space = g.num == 2 ? g.value : space;
            n = g.num == 3 ? g.value : n;
        }
        mem->known = true;
        space = space >= 1 && space <= 3 ? space - 1 : OP_MEM_OTHER;
        mem->bytes[space][access < OP_MEM_ACCESSES ? access : OP_MEM_UNKNOWN] += n;
    }
}

/* "file:line"; anything else is no source. */
static bool read_source(struct op_build *b, struct xp_span s, struct op_source *out)
{
    const uint8_t *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
    int64_t line = 0;
    if (!colon || colon + 1 == s.p + s.n)
        return true;
    for (const uint8_t *p = colon + 1; p < s.p + s.n; p++) {
        if (*p < '0' || *p > '9' || line > INT32_MAX / 10)
            return true;
        line = line * 10 + *p - '0';
    }
    if (line > INT32_MAX)
        return true;
    out->line = (int32_t)line;
    return op_text(b, xp_span_of(s.p, (size_t)(colon - s.p)), &out->file);
}

static bool is_num(const struct xspace_stat *s)
{
    return s->type == XSPACE_U64 || s->type == XSPACE_I64;
}

static bool take_num(struct op_meta *m, uint8_t what, uint64_t v)
{
    struct op_metrics *op = &m->op;
    switch (what) {
    case PROGRAM_ID:
        op->program = v;
        return true;
    case SYMBOL_ID:
        m->symbol = v;
        return true;
    case FLOPS:
        op->flops = (double)v;
        return true;
    case MODEL_FLOPS:
        op->model_flops = (double)v;
        return true;
    case BYTES:
        op->bytes = v;
        return true;
    default:
        return false;
    }
}

static bool take_text(struct reading *r, struct op_meta *m, uint8_t what, struct xp_span s)
{
    struct op_metrics *op = &m->op;
    switch (what) {
    case CATEGORY:
        return op_text(r->b, s, &op->category);
    case TF_OP:
        return op_text(r->b, s, &op->provenance);
    case DEDUP_NAME:
        return op_text(r->b, s, &op->dedup_name);
    case SOURCE:
        return read_source(r->b, s, &op->source);
    case SOURCE_STACK:
        return op_text(r->b, s, &op->source.stack);
    default:
        return true;
    }
}

static enum xp_status read_one(struct reading *r, const struct part_evmeta *em, struct op_meta *m)
{
    struct op_build *b = r->b;
    struct xspace_stat s;
    struct xp_span body;
    bool has_program = false;

    XP_TRY(meta_reader_get(&r->reader, em, &body, b->err));
    m->op.name = part_str(b->part, em->display_name ? em->display_name : em->name);
    if (em->display_name)
        m->op.long_name = part_str(b->part, em->name);
    struct xspace_stats it = xspace_stats_open(body, 5);
    while (xspace_stats_next(&it, &s)) {
        uint8_t what = what_of(r, s.metadata_id);
        if (what == BREAKDOWN && s.type == XSPACE_BYTES)
            read_breakdown(s.bytes, &m->op.memory);
        else if (is_num(&s))
            has_program |= take_num(m, what, s.num) && what == PROGRAM_ID;
        else if (what && !take_text(r, m, what, meta_stat_text(b->part, r->pl, &s)))
            return op_busy(b);
    }
    m->counted = has_program && m->symbol;
    m->kind = op_kind_of(m->op.category);
    m->category = xp_strpool_add(&r->categories, m->op.category);
    return m->category == XP_STRPOOL_FULL ? op_busy(b) : XP_OK;
}

enum xp_status op_metas_read(struct op_build *b, uint32_t plane, struct op_metas *out)
{
    struct reading *r = xp_arena_zalloc(b->core, sizeof *r);
    enum xp_status st = XP_OK;
    if (!r || !xp_strpool_init(&r->categories, b->core))
        return op_busy(b);
    r->b = b;
    r->pl = &b->part->planes[plane];
    note_ids(r);
    out->n = r->pl->nevmeta;
    out->v = xp_arena_zalloc(b->core, ((size_t)out->n + 1) * sizeof *out->v);
    if (!out->v)
        return op_busy(b);
    meta_reader_init(&r->reader, b->part);
    for (uint32_t i = 0; st == XP_OK && i < out->n; i++)
        st = read_one(r, &r->pl->evmeta[i], &out->v[i]);
    meta_reader_fini(&r->reader);
    out->categories = r->categories.strs;
    out->ncategories = r->categories.n;
    return st;
}
