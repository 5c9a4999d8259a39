#include "shard/derive/hlo.h"

#include "lib/base/hash.h"
#include "lib/base/pb_wire.h"
#include "shard/derive/meta_reader.h"

struct instruction {
    uint64_t program;
    struct xp_span name;
    struct hlo_symbol symbol;
};

struct hlo_map {
    struct vec list; /* struct instruction */
    uint32_t *table; /* index + 1 */
    size_t mask;
    struct xp_bump bump;
};

/* Fields of xla's messages. */
enum {
    HLO_PROTO_MODULE = 1,
    MODULE_COMPUTATIONS = 3,
    COMPUTATION_INSTRUCTIONS = 2,
    INSTRUCTION_NAME = 1,
    INSTRUCTION_METADATA = 7,
    METADATA_OP_TYPE = 1,
    METADATA_OP_NAME = 2,
    METADATA_SOURCE_FILE = 3,
    METADATA_SOURCE_LINE = 4
};

static struct xp_span join(struct hlo_map *m, struct xp_span a, struct xp_span b)
{
    uint8_t *p = xp_bump_alloc(&m->bump, a.n + b.n + 1, 1);
    if (!p)
        return (struct xp_span){0};
    if (a.n)
        memcpy(p, a.p, a.n);
    p[a.n] = ':';
    if (b.n)
        memcpy(p + a.n + 1, b.p, b.n);
    return xp_span_of(p, a.n + b.n + 1);
}

static struct xp_span basename_of(struct xp_span path)
{
    size_t i = path.n;
    while (i && path.p[i - 1] != '/')
        i--;
    return xp_span_of(path.p + i, path.n - i);
}

static bool read_metadata(struct hlo_map *m, struct xp_span msg, struct hlo_symbol *s)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    struct xp_span type = {0}, name = {0}, file = {0};
    int64_t line = 0;
    while (xp_pb_next(&r, &f)) {
        if (f.num == METADATA_OP_TYPE && f.type == XP_PB_LEN)
            type = f.bytes;
        else if (f.num == METADATA_OP_NAME && f.type == XP_PB_LEN)
            name = f.bytes;
        else if (f.num == METADATA_SOURCE_FILE && f.type == XP_PB_LEN)
            file = f.bytes;
        else if (f.num == METADATA_SOURCE_LINE)
            line = (int32_t)f.value;
    }
    s->op = join(m, name, type);
    if (file.n) {
        struct xp_buf b;
        xp_buf_init(&b, 32);
        xp_buf_fmt(&b, "%lld", (long long)line);
        s->source = join(m, basename_of(file), xp_buf_all(&b));
        xp_buf_fini(&b);
    }
    return s->op.p;
}

static bool add_instruction(struct hlo_map *m, uint64_t program, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    struct xp_span name = {0}, metadata = {0};
    while (xp_pb_next(&r, &f)) {
        if (f.num == INSTRUCTION_NAME && f.type == XP_PB_LEN)
            name = f.bytes;
        else if (f.num == INSTRUCTION_METADATA && f.type == XP_PB_LEN)
            metadata = f.bytes;
    }
    struct instruction *i = vec_push(&m->list, sizeof *i);
    if (!i)
        return false;
    *i = (struct instruction){.program = program, .name = xp_bump_span(&m->bump, name)};
    return i->name.p && read_metadata(m, metadata, &i->symbol);
}

static bool add_module(struct hlo_map *m, uint64_t program, struct xp_span proto)
{
    struct xp_pb r = xp_pb_open(proto);
    struct xp_pb_field f, c, in;
    while (xp_pb_next(&r, &f)) {
        if (f.num != HLO_PROTO_MODULE || f.type != XP_PB_LEN)
            continue;
        struct xp_pb module = xp_pb_open(f.bytes);
        while (xp_pb_next(&module, &c)) {
            if (c.num != MODULE_COMPUTATIONS || c.type != XP_PB_LEN)
                continue;
            struct xp_pb computation = xp_pb_open(c.bytes);
            while (xp_pb_next(&computation, &in))
                if (in.num == COMPUTATION_INSTRUCTIONS && in.type == XP_PB_LEN &&
                    !add_instruction(m, program, in.bytes))
                    return false;
        }
    }
    return true;
}

/* "module(123)": 123. */
static bool program_of_name(struct xp_span name, uint64_t *id)
{
    size_t i = name.n;
    uint64_t v = 0, scale = 1;
    unsigned digits = 0;
    if (i < 3 || name.p[--i] != ')')
        return false;
    for (; i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && digits < 20; i--, digits++) {
        v += scale * (uint64_t)(name.p[i - 1] - '0');
        scale *= 10;
    }
    *id = v;
    return digits && i && name.p[i - 1] == '(';
}

static bool add_metadata(struct hlo_map *m, struct derive_work *w, const struct part_plane *pl,
                         const struct part_evmeta *meta, struct xp_span body)
{
    struct xspace_stats it = xspace_stats_open(body, 5);
    struct xspace_stat s;
    struct xp_span proto = {0};
    uint64_t program = (uint64_t)meta->id, given;
    bool stated = false;
    while (xspace_stats_next(&it, &s)) {
        struct xp_span name = part_stat_name(w->part, pl, s.metadata_id);
        if (s.type == XSPACE_BYTES && (xp_span_eq(name, XP_SPAN_LIT("Hlo Proto")) ||
                                       xp_span_eq(name, XP_SPAN_LIT("HLO Proto"))))
            proto = s.bytes;
        else if (xp_span_eq(name, XP_SPAN_LIT("program_id"))) {
            program = s.num;
            stated = true;
        }
    }
    if (!proto.p)
        return true;
    if (!stated && program_of_name(part_str(w->part, meta->name), &given))
        program = given;
    return add_module(m, program, proto);
}

static size_t slot(const struct hlo_map *m, uint64_t program, struct xp_span name)
{
    size_t i = (xp_hash(name) ^ xp_hash_u64(program)) & m->mask;
    for (; m->table[i]; i = (i + 1) & m->mask) {
        const struct instruction *x = &VEC(m->list, struct instruction)[m->table[i] - 1];
        if (x->program == program && xp_span_eq(x->name, name))
            break;
    }
    return i;
}

static bool index_all(struct hlo_map *m)
{
    size_t size = 16;
    while (size < m->list.n * 2)
        size *= 2;
    m->table = calloc(size, sizeof *m->table);
    m->mask = size - 1;
    for (uint32_t i = 0; m->table && i < m->list.n; i++) {
        const struct instruction *x = &VEC(m->list, struct instruction)[i];
        size_t k = slot(m, x->program, x->name);
        if (!m->table[k])
            m->table[k] = i + 1;
    }
    return m->table;
}

static enum xp_status read_planes(struct hlo_map *m, struct derive_work *w)
{
    struct meta_reader r;
    enum xp_status st = XP_OK;
    meta_reader_init(&r, w->part);
    for (uint32_t p = 0; st == XP_OK && p < w->part->nplanes; p++) {
        const struct part_plane *pl = &w->part->planes[p];
        if (!xp_span_eq(w->d->planes[p].name, XP_SPAN_LIT("/host:metadata")))
            continue;
        for (uint32_t i = 0; st == XP_OK && i < pl->nevmeta; i++) {
            struct xp_span body;
            st = meta_reader_get(&r, &pl->evmeta[i], &body, w->err);
            if (st == XP_OK && !add_metadata(m, w, pl, &pl->evmeta[i], body))
                st = derive_busy(w);
        }
    }
    meta_reader_fini(&r);
    return st;
}

enum xp_status hlo_map_new(struct derive_work *w, struct hlo_map **out)
{
    struct hlo_map *m = calloc(1, sizeof *m);
    if (!m)
        return derive_busy(w);
    xp_bump_init(&m->bump, w->scratch);
    enum xp_status st = read_planes(m, w);
    if (st == XP_OK && !index_all(m))
        st = derive_busy(w);
    if (st != XP_OK) {
        hlo_map_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}

bool hlo_find(const struct hlo_map *m, uint64_t program, struct xp_span instruction,
              struct hlo_symbol *out)
{
    uint32_t i = m->table[slot(m, program, instruction)];
    if (i)
        *out = VEC(m->list, struct instruction)[i - 1].symbol;
    return i;
}

void hlo_map_free(struct hlo_map *m)
{
    if (!m)
        return;
    vec_free(&m->list);
    free(m->table);
    free(m);
}
