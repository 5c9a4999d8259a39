/* loadtest/lib/gen_program.c - the device side: one training step as a tree of ops.
 *
 * The rows below are the compiled program in order; a row belongs to the nearest row above
 * that is less deep. A while loop runs its body `trips` times. Eight variants of the step are
 * timed once; a step of the capture is one of them, moved to its begin, so that writing an
 * event costs no more than its bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "loadtest/lib/gen.h"

#define VARIANTS 8
#define US INT64_C(1000000) /* ps */

struct op {
    const char *name, *opcode, *category, *shape, *tf_op, *source;
    int us; /* typical; of a loop or a call: what it adds around its body */
    int depth, trips;
};

#define ACT "bf16[8,2048,4096]{2,1,0:T(8,128)(2,1)}"
#define MLP "bf16[8,2048,14336]{2,1,0:T(8,128)(2,1)}"
#define KV "bf16[8,8,2048,128]{3,2,1,0:T(8,128)(2,1)}"
#define W "bf16[4096,14336]{1,0:T(8,128)(2,1)}"
#define LOGITS "f32[8,2048,128256]{2,1,0:T(8,128)}"
#define F "jit(train_step)/jvp(Transformer)/"
#define B "jit(train_step)/transpose(jvp(Transformer))/"
#define LAYER "layers/while/body/"

static const struct op ops[] = {
    {"copy.14", "copy", "data formatting", ACT, NULL, NULL, 38, 0, 0},
    {"fusion.1", "fusion", "loop fusion", ACT, F "embed/gather:", "model/embed.py:41", 120, 0, 0},
    {"while.1", "while", "while", "(s32[], " ACT ", " W ")", F "layers/while:", "model/stack.py:88",
     3, 0, 12},
    {"fusion.20", "fusion", "loop fusion", ACT, F LAYER "norm1/mul:", "model/norm.py:27", 44, 1, 0},
    {"fusion.21", "fusion", "convolution fusion", KV,
     F LAYER "attention/qkv/dot_general:", "model/attention.py:112", 410, 1, 0},
    {"fusion.22", "fusion", "loop fusion", KV,
     F LAYER "attention/rope/concatenate:", "model/rope.py:33", 61, 1, 0},
    {"flash_attention.3", "custom-call", "custom-call", KV,
     F LAYER "attention/flash_attention/pallas_call:", "kernels/flash_attention.py:254", 690, 1, 0},
    {"fusion.23", "fusion", "convolution fusion", ACT,
     F LAYER "attention/out/dot_general:", "model/attention.py:131", 265, 1, 0},
    {"all-reduce.7", "all-reduce", "all-reduce", ACT,
     F LAYER "attention/out/psum:", "model/attention.py:133", 330, 1, 0},
    {"fusion.24", "fusion", "loop fusion", ACT, F LAYER "norm2/mul:", "model/norm.py:27", 47, 1, 0},
    {"fusion.25", "fusion", "convolution fusion", MLP,
     F LAYER "mlp/gate/dot_general:", "model/mlp.py:58", 905, 1, 0},
    {"fusion.26", "fusion", "convolution fusion", MLP,
     F LAYER "mlp/up/dot_general:", "model/mlp.py:59", 880, 1, 0},
    {"fusion.27", "fusion", "loop fusion", MLP, F LAYER "mlp/silu/mul:", "model/mlp.py:61", 118, 1,
     0},
    {"fusion.28", "fusion", "convolution fusion", ACT,
     F LAYER "mlp/down/dot_general:", "model/mlp.py:63", 930, 1, 0},
    {"all-reduce.9", "all-reduce", "all-reduce", ACT, F LAYER "mlp/down/psum:", "model/mlp.py:64",
     340, 1, 0},
    {"fusion.29", "fusion", "loop fusion", ACT, F LAYER "add:", "model/stack.py:97", 40, 1, 0},
    {"fusion.30", "fusion", "loop fusion", ACT, F "final_norm/mul:", "model/norm.py:27", 45, 0, 0},
    {"fusion.31", "fusion", "convolution fusion", LOGITS,
     F "logits/dot_general:", "model/head.py:22", 2650, 0, 0},
    {"fusion.32", "fusion", "input fusion", "f32[8,2048]{1,0:T(8,128)}",
     F "loss/log_softmax/reduce_sum:", "train/loss.py:19", 540, 0, 0},
    {"fusion.33", "fusion", "output fusion", LOGITS, B "loss/log_softmax/mul:", "train/loss.py:19",
     760, 0, 0},
    {"fusion.34", "fusion", "convolution fusion", ACT, B "logits/dot_general:", "model/head.py:22",
     2720, 0, 0},
    {"while.2", "while", "while", "(s32[], " ACT ", " W ", " W ")",
     B "layers/while:", "model/stack.py:88", 3, 0, 12},
    {"call.5", "call", "call", ACT, B LAYER "checkpoint/remat:", "model/stack.py:91", 2, 1, 0},
    {"fusion.50", "fusion", "loop fusion", ACT, B LAYER "checkpoint/norm1/mul:", "model/norm.py:27",
     44, 2, 0},
    {"fusion.51", "fusion", "convolution fusion", KV,
     B LAYER "checkpoint/attention/qkv/dot_general:", "model/attention.py:112", 415, 2, 0},
    {"conditional.6", "conditional", "conditional", KV,
     B LAYER "checkpoint/attention/cond:", "model/attention.py:118", 2, 2, 0},
    {"fusion.52", "fusion", "loop fusion", KV,
     B LAYER "checkpoint/attention/rope/concatenate:", "model/rope.py:33", 60, 3, 0},
    {"copy.61", "copy", "data formatting", KV,
     B LAYER "checkpoint/attention/transpose:", "model/attention.py:121", 22, 3, 0},
    {"fusion.53", "fusion", "convolution fusion", MLP,
     B LAYER "checkpoint/mlp/gate/dot_general:", "model/mlp.py:58", 910, 2, 0},
    {"fusion.54", "fusion", "convolution fusion", MLP,
     B LAYER "mlp/down/dot_general:", "model/mlp.py:63", 940, 1, 0},
    {"fusion.55", "fusion", "convolution fusion", W,
     B LAYER "mlp/down/dot_general/wgrad:", "model/mlp.py:63", 960, 1, 0},
    {"fusion.56", "fusion", "loop fusion", MLP, B LAYER "mlp/silu/mul:", "model/mlp.py:61", 150, 1,
     0},
    {"fusion.57", "fusion", "convolution fusion", ACT,
     B LAYER "mlp/gate/dot_general:", "model/mlp.py:58", 900, 1, 0},
    {"fusion.58", "fusion", "convolution fusion", W,
     B LAYER "mlp/gate/dot_general/wgrad:", "model/mlp.py:58", 955, 1, 0},
    {"all-reduce.11", "all-reduce", "all-reduce", ACT, B LAYER "mlp/psum:", "model/mlp.py:64", 350,
     1, 0},
    {"flash_attention_bwd.4", "custom-call", "custom-call", KV,
     B LAYER "attention/flash_attention/pallas_call:", "kernels/flash_attention.py:611", 1480, 1,
     0},
    {"fusion.59", "fusion", "loop fusion", KV, B LAYER "attention/rope/mul:", "model/rope.py:33",
     72, 1, 0},
    {"fusion.60", "fusion", "convolution fusion", ACT,
     B LAYER "attention/qkv/dot_general:", "model/attention.py:112", 425, 1, 0},
    {"fusion.61", "fusion", "convolution fusion", W,
     B LAYER "attention/qkv/dot_general/wgrad:", "model/attention.py:112", 430, 1, 0},
    {"reduce-scatter.13", "reduce-scatter", "reduce-scatter", W,
     B LAYER "psum_scatter:", "train/sharding.py:74", 390, 1, 0},
    {"fusion.62", "fusion", "loop fusion", ACT, B LAYER "add:", "model/stack.py:97", 43, 1, 0},
    {"fusion.70", "fusion", "loop fusion", W, B "embed/scatter-add:", "model/embed.py:41", 310, 0,
     0},
    {"all-reduce.15", "all-reduce", "all-reduce", "f32[]{:T(128)}",
     "jit(train_step)/global_norm/psum:", "train/optimizer.py:52", 58, 0, 0},
    {"fusion.71", "fusion", "loop fusion", W, "jit(train_step)/adamw/mul:", "train/optimizer.py:66",
     620, 0, 0},
    {"fusion.72", "fusion", "loop fusion", W,
     "jit(train_step)/adamw/sqrt:", "train/optimizer.py:68", 605, 0, 0},
    {"fusion.73", "fusion", "loop fusion", W, "jit(train_step)/adamw/sub:", "train/optimizer.py:71",
     590, 0, 0},
    {"copy-done.80", "copy-done", "data formatting", W, NULL, NULL, 12, 0, 0},
};
#define NOPS (sizeof ops / sizeof ops[0])

/* What runs beside a layer: from and for how much of it, in percent. Two copies overlap. */
static const struct {
    const char *name, *opcode, *done;
    int from, length;
} asyncs[] = {
    {"all-gather-start.2", "all-gather-start", "all-gather-done.2", 2, 71},
    {"copy-start.80", "copy-start", "copy-done.80", 18, 55},
    {"copy-start.81", "copy-start", "copy-done.81", 31, 60},
};
#define NASYNCS (sizeof asyncs / sizeof asyncs[0])

struct placed {
    int64_t at, length; /* from the step's begin */
    int op;
};

struct variant {
    struct placed *ops, *asyncs;
    size_t nops, nasyncs;
    int64_t length;
};
static struct variant variants[VARIANTS];

/* Ids of event metadata: ops 1.., asyncs 200.., the rest 300..; steps are named one by one. */
enum { META_ASYNC = 200, META_MODULE = 300, META_WAIT, META_BARRIER, META_STEP = 1000 };

static bool is_collective(const struct op *op)
{
    return strstr(op->opcode, "reduce") != NULL;
}

static int64_t op_time(const struct op *op, struct rng *r, bool slow)
{
    int64_t ps = op->us * US;
    ps += ps * ((int64_t)rng_below(r, 80) - 40) / 1000 + (int64_t)rng_below(r, 100000);
    if (slow && is_collective(op))
        ps *= 4;
    return ps;
}

static void place(struct variant *v, int op, int64_t at)
{
    v->ops[v->nops++] = (struct placed){at, 0, op};
}

static void place_asyncs(struct variant *v, int64_t at, int64_t length)
{
    for (size_t i = 0; i < NASYNCS; i++)
        v->asyncs[v->nasyncs++] = (struct placed){at + length * asyncs[i].from / 100,
                                                  length * asyncs[i].length / 100, (int)i};
}

/* Places rows [i, end) of one depth one after another; as deep as the table above. */
static int64_t place_rows(struct variant *v, size_t i, size_t end, int64_t t, struct rng *r,
                          bool slow)
{
    while (i < end) {
        size_t body = i + 1, next = body;
        while (next < end && ops[next].depth > ops[i].depth)
            next++;
        size_t mine = v->nops;
        int64_t begin = t;
        place(v, (int)i, t);
        t += next == body ? op_time(&ops[i], r, slow) : US;
        for (int trip = 0; next > body && trip < (ops[i].trips ? ops[i].trips : 1); trip++) {
            int64_t from = t;
            t = place_rows(v, body, next, t, r, slow) + ops[i].us * US / 4;
            if (ops[i].trips)
                place_asyncs(v, from, t - from);
        }
        v->ops[mine].length = t - begin;
        t += 1250 * (int64_t)(1 + rng_below(r, 8));
        i = next;
    }
    return t;
}

void gen_program_init(uint64_t seed)
{
    size_t most = NOPS * 12;
    for (int k = 0; k < VARIANTS; k++) {
        struct variant *v = &variants[k];
        struct rng r = rng_for(seed, 77, (uint64_t)k);
        v->ops = calloc(most, sizeof *v->ops);
        v->asyncs = calloc(most, sizeof *v->asyncs);
        if (!v->ops || !v->asyncs)
            abort();
        v->nops = v->nasyncs = 0;
        v->length = place_rows(v, 0, NOPS, 2 * US, &r, k == VARIANTS - 1) + 2 * US;
    }
}

void gen_program_fini(void)
{
    for (int k = 0; k < VARIANTS; k++) {
        free(variants[k].ops);
        free(variants[k].asyncs);
        memset(&variants[k], 0, sizeof variants[k]);
    }
}

int gen_program_variants(void)
{
    return VARIANTS;
}

int64_t gen_program_length(int variant)
{
    return variants[variant].length;
}

int64_t gen_launch_id(int host, int core, int64_t step)
{
    struct rng r = rng_for(31, (uint64_t)host * 64 + (uint64_t)core, (uint64_t)step);
    return (int64_t)(rng_next(&r) >> 2);
}

/* --- lines of a core --- */

struct core {
    const struct gen_host *h;
    int core;
};

/* Cores begin a step within 30 us of each other. */
static int64_t step_begin(const struct core *c, int64_t step)
{
    struct rng r = rng_for(c->h->o->seed, 500 + (uint64_t)c->core, (uint64_t)step);
    return c->h->steps[step].begin_ps + (int64_t)rng_below(&r, 30 * US);
}

static void steps_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct core *c = ctx;
    (void)arg;
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        xs_event(x, META_STEP + s, step_begin(c, s) - US / 5,
                 c->h->steps[s].length_ps + 2 * US / 5);
        xs_stat_i64(x, GEN_GROUP_ID, s + 1);
        xs_event_end(x);
    }
}

static void modules_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct core *c = ctx;
    (void)arg;
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        xs_event(x, META_MODULE, step_begin(c, s), c->h->steps[s].length_ps);
        xs_stat_u64(x, GEN_RUN_ID, (uint64_t)s + 1);
        xs_stat_i64(x, GEN_REPLICA_ID, 0);
        xs_stat_u64(x, GEN_QUEUE_ID, 0);
        xs_stat_u64(x, GEN_CORE_TYPE, 0);
        xs_stat_i64(x, GEN_CONSUMER_TYPE, 12);
        xs_stat_i64(x, GEN_CONSUMER_ID, gen_launch_id(c->h->host, c->core, s));
        xs_event_end(x);
    }
}

static void ops_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct core *c = ctx;
    /* The device's own clock runs a little beside the host's. */
    int64_t skew = 40 * US + c->core * 8750;
    (void)arg;
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        const struct variant *v = &variants[c->h->steps[s].variant];
        int64_t begin = step_begin(c, s);
        for (size_t i = 0; i < v->nops; i++) {
            const struct placed *p = &v->ops[i];
            xs_event(x, p->op + 1, begin + p->at, p->length);
            xs_stat_u64(x, GEN_DEVICE_OFFSET, (uint64_t)(begin + p->at - skew));
            xs_stat_u64(x, GEN_DEVICE_DURATION, (uint64_t)(p->length / 1250 * 1250));
            if (is_collective(&ops[p->op]))
                xs_stat_u64(x, GEN_ALL_REDUCE_ID, (uint64_t)s << 16 | (uint64_t)p->op);
            xs_event_end(x);
        }
    }
}

static void async_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct core *c = ctx;
    (void)arg;
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        const struct variant *v = &variants[c->h->steps[s].variant];
        int64_t begin = step_begin(c, s);
        for (size_t i = 0; i < v->nasyncs; i++) {
            const struct placed *p = &v->asyncs[i];
            uint64_t flow = (uint64_t)(c->core + 1) << 40 | (uint64_t)s << 12 | i;
            xs_event(x, META_ASYNC + p->op, begin + p->at, p->length);
            xs_stat_ref(x, GEN_HLO_OP, 100 + (uint64_t)p->op);
            xs_stat_i64(x, GEN_IS_ASYNC, 1);
            xs_stat_u64(x, GEN_FLOW, flow << 2 | 3);
            xs_stat_u64(x, GEN_STEP_ID, i);
            xs_event_end(x);
        }
    }
}

static void traceme_line(struct xs *x, const void *ctx, int64_t arg)
{
    const struct core *c = ctx;
    (void)arg;
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        struct rng r = rng_for(c->h->o->seed, 600 + (uint64_t)c->core, (uint64_t)s);
        int64_t begin = step_begin(c, s);
        xs_event(x, META_WAIT, begin + 78, 1094 + (int64_t)rng_below(&r, 9) * 78);
        xs_event_end(x);
        xs_event(x, META_BARRIER, begin + 90 * US, US + (int64_t)rng_below(&r, 30 * US));
        xs_event_end(x);
    }
}

/* --- metadata of a core --- */

static struct xp_span text(struct xp_buf *b, const char *fmt, const char *a, const char *c,
                           const char *d, const char *e)
{
    b->n = 0;
    xp_buf_fmt(b, fmt, a, c, d, e);
    return xp_buf_all(b);
}

static void op_cost(const struct op *op, uint64_t *flops, uint64_t *bytes)
{
    bool matmul = strstr(op->category, "convolution") || strstr(op->category, "custom");
    *flops = (uint64_t)op->us * (matmul ? UINT64_C(610000000) : UINT64_C(9000000));
    *bytes = (uint64_t)op->us * (matmul ? UINT64_C(420000) : UINT64_C(1280000));
    if (op->trips || op->us < 5)
        *flops = *bytes = 0;
}

static void op_breakdown(struct xp_buf *out, uint64_t bytes)
{
    struct xp_buf one;
    xp_buf_init(&one, 256);
    for (unsigned operation = 1; operation <= 2; operation++) {
        one.n = 0;
        xp_pb_put_u64(&one, 1, operation);
        xp_pb_put_u64(&one, 2, 1);
        xp_pb_put_u64(&one, 3, operation == 1 ? bytes - bytes / 3 : bytes / 3);
        xp_pb_put_bytes(out, 1, xp_buf_all(&one));
    }
    xp_buf_fini(&one);
}

static void op_meta(struct xp_buf *meta, size_t i)
{
    const struct op *op = &ops[i];
    struct xp_buf stats, t, breakdown;
    uint64_t flops, bytes;
    xp_buf_init(&stats, 1 << 20);
    xp_buf_init(&t, 1 << 20);
    xp_buf_init(&breakdown, 1 << 20);
    op_cost(op, &flops, &bytes);
    op_breakdown(&breakdown, bytes);
    xs_put_str(&stats, 5, GEN_HLO_CATEGORY, xp_span_str(op->category));
    xs_put_u64(&stats, 5, GEN_PROGRAM_ID, GEN_PROGRAM);
    xs_put_u64(&stats, 5, GEN_SYMBOL_ID, i + 1);
    xs_put_i64(&stats, 5, GEN_FLOPS, (int64_t)flops);
    xs_put_i64(&stats, 5, GEN_MODEL_FLOPS, (int64_t)flops);
    xs_put_i64(&stats, 5, GEN_BYTES_ACCESSED, (int64_t)bytes);
    xs_put_i64(&stats, 5, GEN_RAW_BYTES_ACCESSED, (int64_t)bytes);
    xs_put_bytes(&stats, 5, GEN_MEMORY_BREAKDOWN, xp_buf_all(&breakdown));
    xs_put_str(&stats, 5, GEN_SHAPE, xp_span_str(op->shape));
    if (op->tf_op)
        xs_put_str(&stats, 5, GEN_TF_OP, xp_span_str(op->tf_op));
    if (op->source) {
        xs_put_str(&stats, 5, GEN_SOURCE, xp_span_str(op->source));
        xs_put_str(
            &stats, 5, GEN_SOURCE_STACK,
            text(&t, "train.py:88:4\ntrain/loop.py:41:8\n%s:12\n%s%s%s", op->source, "", "", ""));
    }
    xs_event_meta(
        meta, (int64_t)i + 1,
        text(&t, "%%%s = %s %s(" ACT " %%param.%s)", op->name, op->shape, op->opcode, "1"),
        xp_span_str(op->name), xp_buf_all(&stats));
    xp_buf_fini(&stats);
    xp_buf_fini(&t);
    xp_buf_fini(&breakdown);
}

static void async_meta(struct xp_buf *meta, size_t i)
{
    struct xp_buf stats, t;
    xp_buf_init(&stats, 1 << 20);
    xp_buf_init(&t, 1 << 20);
    xs_put_str(&stats, 5, GEN_HLO_CATEGORY, xp_span_str("async-start"));
    xs_put_u64(&stats, 5, GEN_PROGRAM_ID, GEN_PROGRAM);
    xs_put_u64(&stats, 5, GEN_SYMBOL_ID, 1000 + i);
    xs_put_str(&stats, 5, GEN_SHAPE, xp_span_str(W));
    xs_event_meta(meta, META_ASYNC + (int64_t)i,
                  text(&t, "%%%s = (" W ", " W "{S(5)}, u32[]{:S(2)}) %s(" W " %%param.2)%s%s",
                       asyncs[i].name, asyncs[i].opcode, "", ""),
                  xp_span_str(i ? "async-copy" : "async-all-gather"), xp_buf_all(&stats));
    xs_stat_meta(meta, 100 + (int64_t)i, xp_span_str(asyncs[i].done));
    xp_buf_fini(&stats);
    xp_buf_fini(&t);
}

static void core_meta(struct xp_buf *meta, const struct core *c)
{
    struct xp_span none = {0};
    char name[24];
    for (size_t i = 0; i < NOPS; i++)
        op_meta(meta, i);
    for (size_t i = 0; i < NASYNCS; i++)
        async_meta(meta, i);
    xs_event_meta(meta, META_MODULE, xp_span_str(GEN_MODULE), none, none);
    xs_event_meta(meta, META_WAIT, xp_span_str("dependency-wait"), none, none);
    xs_event_meta(meta, META_BARRIER, xp_span_str("barrier-cores"), none, none);
    for (int64_t s = 0; s < c->h->nsteps; s++) {
        snprintf(name, sizeof name, "%lld", (long long)s);
        xs_event_meta(meta, META_STEP + s, xp_span_str(name), none, none);
    }
    gen_stat_names(meta);
    xs_put_str(meta, 6, GEN_DEVICE_TYPE, xp_span_str("TPU v6 Lite"));
    xs_put_double(meta, 6, GEN_PEAK_TERAFLOPS, 918.0);
    xs_put_double(meta, 6, GEN_PEAK_HBM, 1637.993152512);
}

void gen_device_plane(struct xs *x, const struct gen_host *h, int core)
{
    struct core c = {h, core};
    int64_t ts = h->device_ts_ns;
    struct xs_line lines[] = {
        {1, "Steps", ts, steps_line, &c, 0, false},
        {2, "XLA Modules", ts, modules_line, &c, 0, false},
        {3, "XLA Ops", ts, ops_line, &c, 0, false},
        {4, "Async XLA Ops", ts, async_line, &c, 0, false},
        {6, "XLA TraceMe", ts, traceme_line, &c, 0, false},
    };
    char name[32];
    struct xp_buf meta;
    snprintf(name, sizeof name, "/device:TPU:%d", core);
    xp_buf_init(&meta, SIZE_MAX / 2);
    core_meta(&meta, &c);
    xs_plane(x, 2 + 8 * core, name, lines, sizeof lines / sizeof lines[0], xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

/* --- /host:metadata: the program, as an HloProto with one flat computation --- */

static void hlo_instruction(struct xp_buf *comp, size_t i)
{
    struct xp_buf b;
    xp_buf_init(&b, 1 << 16);
    xp_pb_put_bytes(&b, 1, xp_span_str(ops[i].name));
    xp_pb_put_bytes(&b, 2, xp_span_str(ops[i].opcode));
    xp_pb_put_u64(&b, 35, i + 1);
    xp_pb_put_bytes(comp, 2, xp_buf_all(&b));
    xp_buf_fini(&b);
}

void gen_metadata_plane(struct xs *x)
{
    struct xp_buf comp, module, proto, stats, meta;
    struct xp_buf *all[] = {&comp, &module, &proto, &stats, &meta};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        xp_buf_init(all[i], 1 << 24);
    xp_pb_put_bytes(&comp, 1, xp_span_str("main"));
    for (size_t i = 0; i < NOPS; i++)
        hlo_instruction(&comp, i);
    xp_pb_put_u64(&comp, 5, 1);
    xp_pb_put_u64(&comp, 6, NOPS);
    xp_pb_put_bytes(&module, 1, xp_span_str("jit_train_step"));
    xp_pb_put_bytes(&module, 2, xp_span_str("main"));
    xp_pb_put_bytes(&module, 3, xp_buf_all(&comp));
    xp_pb_put_u64(&module, 5, GEN_PROGRAM);
    xp_pb_put_u64(&module, 6, 1);
    xp_pb_put_bytes(&proto, 1, xp_buf_all(&module));
    xs_put_bytes(&stats, 5, GEN_HLO_PROTO, xp_buf_all(&proto));
    xs_put_u64(&stats, 5, GEN_PROGRAM_ID, GEN_PROGRAM);
    xs_event_meta(&meta, 1, xp_span_str(GEN_MODULE), xp_span_str(GEN_MODULE), xp_buf_all(&stats));
    gen_stat_names(&meta);
    xs_put_str(&meta, 6, GEN_SOFTWARE, xp_span_str("0.10.0"));
    xs_plane(x, 0, "/host:metadata", NULL, 0, xp_buf_all(&meta));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        xp_buf_fini(all[i]);
}
