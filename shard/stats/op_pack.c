#include "lib/base/pb_wire.h"
#include "shard/stats/op_stats_int.h"

/* Bytes: protobuf's wire format. Texts once, in field TEXT of the outer message; all others name
 * them by their place. */

enum { TEXT = 1, HOST = 2, DEVICE = 3, HOST_OPS = 4, KERNEL = 5, PROGRAM = 6, KERNEL_SUMS = 7 };
enum { DB_OP = 1 };
enum { OP_MEMORY = 30, OP_CHILD = 31 };
enum { HOST_CORE = 30, HOST_GBS = 31, HOST_ERROR = 32, HOST_WARNING = 33 };
enum { CORE_STEP = 30 };
enum { KERNEL_BINS = 32 }; /* and OP_KERNEL_BINS - 1 more fields */
enum { STEP_CATEGORY = 30, STEP_COLLECTIVE = 31, STEP_MEMORY = 32, STEP_FEEDS = 33 };

#define DEPTH_MAX 8 /* of children */

enum kind { U64, U32, U8, BOOL, F64, F32, STR };

struct field {
    uint8_t num, kind;
    uint16_t at;
};

#define F(s, num, kind, member)                                                                    \
    {                                                                                              \
        num, kind, (uint16_t)offsetof(struct s, member)                                            \
    }

static const struct field op_fields[] = {
    F(op_metrics, 1, U64, program),        F(op_metrics, 2, STR, name),
    F(op_metrics, 3, STR, long_name),      F(op_metrics, 4, STR, category),
    F(op_metrics, 5, STR, provenance),     F(op_metrics, 6, STR, dedup_name),
    F(op_metrics, 7, STR, source.file),    F(op_metrics, 8, STR, source.stack),
    F(op_metrics, 9, U32, source.line),    F(op_metrics, 10, U64, occurrences),
    F(op_metrics, 11, U64, time_ps),       F(op_metrics, 12, U64, self_ps),
    F(op_metrics, 13, U64, normalized_ps), F(op_metrics, 14, U64, dma_stall_ps),
    F(op_metrics, 15, F64, flops),         F(op_metrics, 16, F64, model_flops),
    F(op_metrics, 17, F64, energy_j),      F(op_metrics, 18, U64, bytes),
    F(op_metrics, 19, U8, core_type),      F(op_metrics, 20, BOOL, eager),
    F(op_metrics, 21, U32, host),          F(op_metrics, 22, U64, children_total_ps),
    F(op_metrics, 23, F64, run_flops),     F(op_metrics, 24, F64, run_model_flops),
    F(op_metrics, 25, U64, run_bytes),     F(op_metrics, 26, U64, first_begin_ps),
    F(op_metrics, 27, STR, first_plane),
};

static const struct field db_fields[] = {
    F(op_db, 2, U64, total_ps),
    F(op_db, 3, U64, total_op_ps),
    F(op_db, 4, U64, total_op_norm_ps),
    F(op_db, 5, U64, infeed_enq_ps),
    F(op_db, 6, U64, infeed_enq_starts_ps),
};

static const struct field host_fields[] = {
    F(op_host, 1, U32, index),
    F(op_host, 2, STR, hostname),
    F(op_host, 3, STR, device_type),
    F(op_host, 4, U8, hardware),
    F(op_host, 5, U32, device_cores),
    F(op_host, 6, BOOL, training),
    F(op_host, 7, F64, limits.peak_tflops),
    F(op_host, 8, U32, limits.ngbs),
    F(op_host, 9, BOOL, limits.has_cmem),
    F(op_host, 10, BOOL, limits.has_merged_vmem),
    F(op_host, 11, BOOL, limits.has_megacore),
    F(op_host, 12, U64, busy_ps),
    F(op_host, 13, U64, idle_ps),
    F(op_host, 14, BOOL, has_mxu),
    F(op_host, 15, BOOL, has_hbm_util),
    F(op_host, 16, F64, mxu_percent),
    F(op_host, 17, F64, hbm_percent),
    F(op_host, 18, U64, busy_sure_ps),
    F(op_host, 19, U64, idle_sure_ps),
};

static const struct field core_fields[] = {
    F(op_core, 1, U32, key),
    F(op_core, 2, BOOL, sparse),
    F(op_core, 3, BOOL, has_details),
    F(op_core, 4, U32, device_ordinal),
    F(op_core, 5, U32, core_num),
    F(op_core, 6, U32, local_chip_id),
    F(op_core, 7, U32, global_chip_id),
    F(op_core, 8, U32, global_core_id),
};

static const struct field step_fields[] = {
    F(op_step, 1, U64, group),       F(op_step, 2, BOOL, marked),
    F(op_step, 3, STR, name),        F(op_step, 4, U64, begin_ps),
    F(op_step, 5, U64, end_ps),      F(op_step, 6, U64, op_self_ps),
    F(op_step, 7, F64, flops),       F(op_step, 8, F64, model_flops),
    F(op_step, 9, F64, feeds_flops), F(op_step, 10, F64, feeds_model_flops),
    F(op_step, 11, U64, bytes),      F(op_step, 12, U64, feeds_bytes),
    F(op_step, 13, U64, feeds_ps),   F(op_step, 14, F64, run_flops),
    F(op_step, 15, F64, hbm_bytes),
};

static const struct field category_fields[] = {
    F(op_category_time, 1, STR, category),
    F(op_category_time, 2, U64, self_ps),
};

static const struct field collective_fields[] = {
    F(op_collective, 1, U64, unique_id), F(op_collective, 2, U64, id),
    F(op_collective, 3, U64, begin_ps),  F(op_collective, 4, U64, end_ps),
    F(op_collective, 5, U64, bytes),
};

static const struct field kernel_fields[] = {
    F(op_kernel, 1, STR, name),           F(op_kernel, 2, STR, op_name),
    F(op_kernel, 3, U32, grid[0]),        F(op_kernel, 4, U32, grid[1]),
    F(op_kernel, 5, U32, grid[2]),        F(op_kernel, 6, U32, block[0]),
    F(op_kernel, 7, U32, block[1]),       F(op_kernel, 8, U32, block[2]),
    F(op_kernel, 9, U32, registers),      F(op_kernel, 10, U32, static_shmem),
    F(op_kernel, 11, U32, dynamic_shmem), F(op_kernel, 12, F32, occupancy),
    F(op_kernel, 13, BOOL, tensor_core),  F(op_kernel, 14, BOOL, eligible),
    F(op_kernel, 15, U64, occurrences),   F(op_kernel, 16, U64, total_ns),
    F(op_kernel, 17, U64, min_ns),        F(op_kernel, 18, U64, max_ns),
};

static const struct field kernel_sums_fields[] = {
    F(op_kernel_sums, 1, U64, total_ns),
    F(op_kernel_sums, 2, U64, tensor_ns),
    F(op_kernel_sums, 3, U64, unnamed_ns),
    F(op_kernel_sums, 4, U64, occurrences),
};

static const struct field program_fields[] = {
    F(op_program, 1, U64, id),
    F(op_program, 2, STR, name),
};

#define FIELDS(f) f, sizeof(f) / sizeof *(f)

/* --- writing --- */

struct pack {
    struct xp_strpool texts;
    bool children, failed;
};

static uint64_t value_of(struct pack *p, const void *at, uint8_t kind)
{
    uint32_t id;
    uint64_t v = 0;
    switch (kind) {
    case U64:
    case F64:
        memcpy(&v, at, 8);
        return v;
    case U32:
    case F32:
        memcpy(&v, at, 4);
        return v;
    case STR:
        id = xp_strpool_add(&p->texts, *(const struct xp_span *)at);
        p->failed |= id == XP_STRPOOL_FULL;
        return id;
    default:
        return *(const uint8_t *)at;
    }
}

static void put(struct pack *p, struct xp_buf *b, const void *base, const struct field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = value_of(p, (const uint8_t *)base + f[i].at, f[i].kind);
        if (!v)
            continue;
        if (f[i].kind == F64)
            xp_pb_put_double(b, f[i].num, xp_pb_double(v));
        else
            xp_pb_put_u64(b, f[i].num, v);
    }
}

/* A message inside: what was written to `in` since it was begun. */
static void put_message(struct xp_buf *b, uint32_t num, struct xp_buf *in)
{
    if (in->failed)
        b->failed = true;
    else
        xp_pb_put_bytes(b, num, xp_buf_all(in));
    xp_buf_fini(in);
}

static void put_memory(struct xp_buf *b, uint32_t num, const struct op_memory *m)
{
    struct xp_buf in;
    if (!m->known)
        return;
    xp_buf_init(&in, 1024);
    for (int s = 0; s < OP_MEM_SPACES; s++)
        for (int a = 0; a < OP_MEM_ACCESSES; a++)
            if (m->bytes[s][a])
                xp_pb_put_u64(&in, (uint32_t)(1 + s * OP_MEM_ACCESSES + a), m->bytes[s][a]);
    put_message(b, num, &in);
}

static void put_op(struct pack *p, struct xp_buf *b, uint32_t num, const struct op_metrics *m,
                   int depth)
{
    struct xp_buf in;
    xp_buf_init(&in, b->max);
    put(p, &in, m, FIELDS(op_fields));
    put_memory(&in, OP_MEMORY, &m->memory);
    /* Ops on SparseCores are rows of their own, those in fusions are only shown inside. */
    bool wanted = p->children || m->children_total_ps;
    for (uint32_t i = 0; wanted && depth && i < m->nchildren; i++)
        put_op(p, &in, OP_CHILD, &m->children[i], depth - 1);
    put_message(b, num, &in);
}

static void put_db(struct pack *p, struct xp_buf *b, uint32_t num, const struct op_db *db)
{
    struct xp_buf in;
    xp_buf_init(&in, b->max);
    put(p, &in, db, FIELDS(db_fields));
    for (uint32_t i = 0; i < db->n; i++)
        put_op(p, &in, DB_OP, &db->ops[i], DEPTH_MAX);
    put_message(b, num, &in);
}

static void put_one(struct pack *p, struct xp_buf *b, uint32_t num, const void *base,
                    const struct field *f, size_t n)
{
    struct xp_buf in;
    xp_buf_init(&in, 4096);
    put(p, &in, base, f, n);
    put_message(b, num, &in);
}

static void put_kernel(struct pack *p, struct xp_buf *b, const struct op_kernel *k)
{
    struct xp_buf in;
    xp_buf_init(&in, 4096);
    put(p, &in, k, FIELDS(kernel_fields));
    for (uint32_t i = 0; i < OP_KERNEL_BINS; i++)
        if (k->bins[i])
            xp_pb_put_u64(&in, KERNEL_BINS + i, k->bins[i]);
    put_message(b, KERNEL, &in);
}

static void put_kernel_sums(struct pack *p, struct xp_buf *b, const struct op_kernel_sums *s)
{
    struct xp_buf in;
    if (!s->total_ns)
        return;
    xp_buf_init(&in, 4096);
    put(p, &in, s, FIELDS(kernel_sums_fields));
    for (uint32_t i = 0; i < OP_KERNEL_BINS; i++)
        if (s->bins[i])
            xp_pb_put_u64(&in, KERNEL_BINS + i, s->bins[i]);
    put_message(b, KERNEL_SUMS, &in);
}

static void put_step(struct pack *p, struct xp_buf *b, const struct op_step *s)
{
    struct xp_buf in;
    xp_buf_init(&in, b->max);
    put(p, &in, s, FIELDS(step_fields));
    put_memory(&in, STEP_MEMORY, &s->memory);
    put_memory(&in, STEP_FEEDS, &s->feeds_memory);
    for (uint32_t i = 0; i < s->ncategories; i++)
        put_one(p, &in, STEP_CATEGORY, &s->categories[i], FIELDS(category_fields));
    for (uint32_t i = 0; i < s->ncollectives; i++)
        put_one(p, &in, STEP_COLLECTIVE, &s->collectives[i], FIELDS(collective_fields));
    put_message(b, CORE_STEP, &in);
}

static void put_core(struct pack *p, struct xp_buf *b, const struct op_core *c)
{
    struct xp_buf in;
    xp_buf_init(&in, b->max);
    put(p, &in, c, FIELDS(core_fields));
    for (uint32_t i = 0; i < c->nsteps; i++)
        put_step(p, &in, &c->steps[i]);
    put_message(b, HOST_CORE, &in);
}

static void put_texts(struct pack *p, struct xp_buf *b, uint32_t num, const struct xp_span *v,
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        xp_pb_put_u64(b, num, value_of(p, &v[i], STR));
}

static void put_host(struct pack *p, struct xp_buf *b, const struct op_host *h)
{
    struct xp_buf in;
    xp_buf_init(&in, b->max);
    put(p, &in, h, FIELDS(host_fields));
    for (uint32_t i = 0; i < OP_BW_COUNT; i++)
        xp_pb_put_double(&in, HOST_GBS, h->limits.gbs[i]);
    put_texts(p, &in, HOST_ERROR, h->errors, h->nerrors);
    put_texts(p, &in, HOST_WARNING, h->warnings, h->nwarnings);
    for (uint32_t i = 0; i < h->ncores; i++)
        put_core(p, &in, &h->cores[i]);
    put_message(b, HOST, &in);
}

static void put_all(struct pack *p, const struct op_stats *s, struct xp_buf *b)
{
    for (uint32_t i = 0; i < s->nhosts; i++)
        put_host(p, b, &s->hosts[i]);
    put_db(p, b, DEVICE, &s->device);
    put_db(p, b, HOST_OPS, &s->host);
    for (uint32_t i = 0; i < s->nkernels; i++)
        put_kernel(p, b, &s->kernels[i]);
    put_kernel_sums(p, b, &s->kernel_sums);
    for (uint32_t i = 0; i < s->nprograms; i++)
        put_one(p, b, PROGRAM, &s->programs[i], FIELDS(program_fields));
}

/* A stats of one host under that host's index. */
static struct op_stats *renumber(const struct op_stats *s, uint32_t index, struct xp_arena *a)
{
    struct op_stats *out = xp_arena_alloc(a, sizeof *out);
    struct op_host *host = xp_arena_alloc(a, sizeof *host);
    if (!out || !host)
        return NULL;
    *out = *s;
    *host = s->hosts[0];
    host->index = index;
    out->hosts = host;
    for (int i = 0; i < 2; i++) {
        struct op_db *db = i ? &out->host : &out->device;
        struct op_metrics *ops = xp_arena_alloc(a, ((size_t)db->n + 1) * sizeof *ops);
        if (!ops)
            return NULL;
        if (db->n)
            memcpy(ops, db->ops, db->n * sizeof *ops);
        for (uint32_t k = 0; k < db->n; k++)
            ops[k].host = index;
        db->ops = ops;
    }
    return out;
}

void op_stats_pack(const struct op_stats *s, uint32_t index, bool children, struct xp_buf *out)
{
    struct pack p = {.children = children};
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_buf body;
    xp_buf_init(&body, out->max);
    if (a && s->nhosts == 1)
        s = renumber(s, index, a);
    if (a && s && xp_strpool_init(&p.texts, a)) {
        put_all(&p, s, &body);
        for (uint32_t i = 1; i < p.texts.n; i++)
            xp_pb_put_bytes(out, TEXT, xp_strpool_get(&p.texts, i));
        xp_buf_span(out, xp_buf_all(&body));
    } else {
        p.failed = true;
    }
    if (p.failed || body.failed)
        out->failed = true;
    xp_buf_fini(&body);
    xp_arena_free(a);
}

/* --- reading --- */

struct unpack {
    struct xp_arena *a;
    const struct xp_span *texts;
    uint32_t ntexts;
    bool bad, busy;
};

static struct xp_span text_at(struct unpack *u, uint64_t id)
{
    if (id >= u->ntexts) {
        u->bad = true;
        return (struct xp_span){0};
    }
    return u->texts[id];
}

static void take(struct unpack *u, void *at, uint8_t kind, uint64_t v)
{
    struct xp_span s;
    switch (kind) {
    case U64:
    case F64:
        memcpy(at, &v, 8);
        break;
    case U32:
    case F32:
        memcpy(at, &v, 4);
        break;
    case STR:
        s = text_at(u, v);
        memcpy(at, &s, sizeof s);
        break;
    case BOOL:
        *(bool *)at = v != 0;
        break;
    default:
        *(uint8_t *)at = (uint8_t)v;
    }
}

/* The plain fields of a message. */
static void get(struct unpack *u, struct xp_span bytes, void *base, const struct field *f, size_t n)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field x;
    while (xp_pb_next(&msg, &x)) {
        for (size_t i = 0; i < n; i++)
            if (f[i].num == x.num && x.type == (f[i].kind == F64 ? XP_PB_FIXED64 : XP_PB_VARINT))
                take(u, (uint8_t *)base + f[i].at, f[i].kind, x.value);
    }
    u->bad |= msg.bad;
}

/* Room for the messages of field num, zeroed. */
static void *room(struct unpack *u, struct xp_span bytes, uint32_t num, size_t size, uint32_t *n)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field x;
    *n = 0;
    while (xp_pb_next(&msg, &x))
        *n += x.num == num;
    u->bad |= msg.bad;
    void *p = xp_arena_zalloc(u->a, ((size_t)*n + 1) * size);
    if (!p) {
        u->busy = true;
        *n = 0;
    }
    return p;
}

/* Walks the messages of field num. */
struct each {
    struct xp_pb msg;
    uint32_t num, i;
    struct xp_pb_field x;
};

static bool each(struct unpack *u, struct each *e)
{
    while (xp_pb_next(&e->msg, &e->x))
        if (e->x.num == e->num) {
            e->i++;
            return !u->busy;
        }
    return false;
}

static struct each each_of(struct xp_span bytes, uint32_t num)
{
    return (struct each){.msg = xp_pb_open(bytes), .num = num, .i = UINT32_MAX};
}

static void get_memory(struct unpack *u, struct xp_span bytes, uint32_t num, struct op_memory *m)
{
    struct each e = each_of(bytes, num);
    while (each(u, &e)) {
        struct xp_pb in = xp_pb_open(e.x.bytes);
        struct xp_pb_field x;
        m->known = true;
        while (xp_pb_next(&in, &x))
            if (x.num >= 1 && x.num <= OP_MEM_SPACES * OP_MEM_ACCESSES && x.type == XP_PB_VARINT)
                m->bytes[(x.num - 1) / OP_MEM_ACCESSES][(x.num - 1) % OP_MEM_ACCESSES] = x.value;
    }
}

static void get_op(struct unpack *u, struct xp_span bytes, struct op_metrics *m, int depth)
{
    get(u, bytes, m, FIELDS(op_fields));
    get_memory(u, bytes, OP_MEMORY, &m->memory);
    if (!depth)
        return;
    struct each e = each_of(bytes, OP_CHILD);
    m->children = room(u, bytes, OP_CHILD, sizeof *m, &m->nchildren);
    while (each(u, &e))
        get_op(u, e.x.bytes, &m->children[e.i], depth - 1);
}

static int order(const struct op_metrics *x, const struct op_metrics *y)
{
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    return xp_span_cmp(x->name, y->name);
}

static void get_db(struct unpack *u, struct xp_span bytes, struct op_db *db)
{
    struct each e = each_of(bytes, DB_OP);
    get(u, bytes, db, FIELDS(db_fields));
    db->ops = room(u, bytes, DB_OP, sizeof *db->ops, &db->n);
    while (each(u, &e))
        get_op(u, e.x.bytes, &db->ops[e.i], DEPTH_MAX);
    for (uint32_t i = 1; i < db->n; i++) /* merging relies on it */
        u->bad |= order(&db->ops[i - 1], &db->ops[i]) >= 0;
}

static void get_step(struct unpack *u, struct xp_span bytes, struct op_step *s)
{
    struct each c = each_of(bytes, STEP_CATEGORY), k = each_of(bytes, STEP_COLLECTIVE);
    get(u, bytes, s, FIELDS(step_fields));
    get_memory(u, bytes, STEP_MEMORY, &s->memory);
    get_memory(u, bytes, STEP_FEEDS, &s->feeds_memory);
    s->categories = room(u, bytes, STEP_CATEGORY, sizeof *s->categories, &s->ncategories);
    while (each(u, &c))
        get(u, c.x.bytes, &s->categories[c.i], FIELDS(category_fields));
    s->collectives = room(u, bytes, STEP_COLLECTIVE, sizeof *s->collectives, &s->ncollectives);
    while (each(u, &k))
        get(u, k.x.bytes, &s->collectives[k.i], FIELDS(collective_fields));
}

static void get_core(struct unpack *u, struct xp_span bytes, struct op_core *c)
{
    struct each e = each_of(bytes, CORE_STEP);
    get(u, bytes, c, FIELDS(core_fields));
    c->steps = room(u, bytes, CORE_STEP, sizeof *c->steps, &c->nsteps);
    while (each(u, &e))
        get_step(u, e.x.bytes, &c->steps[e.i]);
}

static void get_texts(struct unpack *u, struct xp_span bytes, uint32_t num, struct xp_span **v,
                      uint32_t *n)
{
    struct each e = each_of(bytes, num);
    *v = room(u, bytes, num, sizeof **v, n);
    while (each(u, &e))
        (*v)[e.i] = text_at(u, e.x.value);
}

static void get_host(struct unpack *u, struct xp_span bytes, struct op_host *h)
{
    struct each g = each_of(bytes, HOST_GBS), c = each_of(bytes, HOST_CORE);
    get(u, bytes, h, FIELDS(host_fields));
    while (each(u, &g) && g.i < OP_BW_COUNT)
        h->limits.gbs[g.i] = xp_pb_double(g.x.value);
    if (h->limits.ngbs > OP_BW_COUNT)
        u->bad = true;
    get_texts(u, bytes, HOST_ERROR, &h->errors, &h->nerrors);
    get_texts(u, bytes, HOST_WARNING, &h->warnings, &h->nwarnings);
    h->cores = room(u, bytes, HOST_CORE, sizeof *h->cores, &h->ncores);
    while (each(u, &c))
        get_core(u, c.x.bytes, &h->cores[c.i]);
}

static void get_all_texts(struct unpack *u, struct xp_span bytes)
{
    struct each e = each_of(bytes, TEXT);
    uint32_t n;
    struct xp_span *v = room(u, bytes, TEXT, sizeof *v, &n);
    while (each(u, &e))
        v[e.i + 1 <= n ? e.i + 1 : 0] = e.x.bytes; /* place 0 is the empty text */
    if (v)
        v[0] = (struct xp_span){0};
    u->texts = v;
    u->ntexts = v ? n + 1 : 0;
}

static void get_bins(struct unpack *u, struct xp_span bytes, uint32_t *bins, uint64_t *sums)
{
    struct xp_pb msg = xp_pb_open(bytes);
    struct xp_pb_field x;
    while (xp_pb_next(&msg, &x)) {
        if (x.type != XP_PB_VARINT || x.num < KERNEL_BINS || x.num >= KERNEL_BINS + OP_KERNEL_BINS)
            continue;
        if (bins)
            bins[x.num - KERNEL_BINS] = (uint32_t)x.value;
        else
            sums[x.num - KERNEL_BINS] = x.value;
    }
    u->bad |= msg.bad;
}

static void get_kernels(struct unpack *u, struct xp_span bytes, struct op_stats *s)
{
    struct each k = each_of(bytes, KERNEL), sums = each_of(bytes, KERNEL_SUMS);
    s->kernels = room(u, bytes, KERNEL, sizeof *s->kernels, &s->nkernels);
    while (each(u, &k)) {
        get(u, k.x.bytes, &s->kernels[k.i], FIELDS(kernel_fields));
        get_bins(u, k.x.bytes, s->kernels[k.i].bins, NULL);
    }
    while (each(u, &sums)) {
        get(u, sums.x.bytes, &s->kernel_sums, FIELDS(kernel_sums_fields));
        get_bins(u, sums.x.bytes, NULL, s->kernel_sums.bins);
    }
}

static void get_all(struct unpack *u, struct xp_span bytes, struct op_stats *s)
{
    struct each h = each_of(bytes, HOST), p = each_of(bytes, PROGRAM);
    struct each d = each_of(bytes, DEVICE), o = each_of(bytes, HOST_OPS);
    get_all_texts(u, bytes);
    s->hosts = room(u, bytes, HOST, sizeof *s->hosts, &s->nhosts);
    while (each(u, &h))
        get_host(u, h.x.bytes, &s->hosts[h.i]);
    while (each(u, &d))
        get_db(u, d.x.bytes, &s->device);
    while (each(u, &o))
        get_db(u, o.x.bytes, &s->host);
    get_kernels(u, bytes, s);
    s->programs = room(u, bytes, PROGRAM, sizeof *s->programs, &s->nprograms);
    while (each(u, &p))
        get(u, p.x.bytes, &s->programs[p.i], FIELDS(program_fields));
}

enum xp_status op_stats_unpack(struct xp_span bytes, struct xp_arena *a, struct op_stats **out,
                               struct xp_error *err)
{
    struct unpack u = {.a = a};
    struct op_stats *s = xp_arena_zalloc(a, sizeof *s);
    if (s)
        get_all(&u, bytes, s);
    if (!s || u.busy)
        return xp_fail(err, XP_BUSY, 0, "no memory left to read op statistics");
    if (u.bad)
        return xp_fail(err, XP_CORRUPT, 0, "these are no op statistics");
    *out = s;
    return XP_OK;
}
