#include "lib/base/pb_wire.h"
#include "shard/stats/figures_int.h"

/* Bytes: protobuf's wire format, one field a host. */

enum { FIGURES_HOST = 1 };
enum {
    HOST_INDEX = 1,
    HOST_NAME,
    HOST_CHIP,
    HOST_START,
    HOST_BASIS,
    HOST_FLAGS,
    HOST_MARKER,
    HOST_RUNS,
    HOST_CORE,
    HOST_MODULE,
    HOST_SYNC
};
enum {
    CORE_NAME = 1,
    CORE_KIND,
    CORE_ORDINAL,
    CORE_BEGIN,
    CORE_END,
    CORE_BUSY,
    CORE_INPUT,
    CORE_WAIT,
    CORE_EVENTS,
    CORE_LOOSE,
    CORE_STEP,
    CORE_PAUSE,
    CORE_BARRIER
};
enum {
    STEP_NUMBER = 1,
    STEP_NAME,
    STEP_BEGIN,
    STEP_END,
    STEP_UNTIL,
    STEP_BUSY,
    STEP_INPUT,
    STEP_WAIT,
    STEP_BARRIER,
    STEP_WHOLE
};
enum { PAUSE_BEGIN = 1, PAUSE_END, PAUSE_INPUT };
enum { MODULE_NAME = 1, MODULE_RUNS, MODULE_TOTAL, MODULE_MIN, MODULE_MAX };
enum { SYNC_KEY = 1, SYNC_END };

static void put(struct xp_buf *out, uint32_t num, struct xp_buf *message)
{
    xp_pb_put_bytes(out, num, xp_buf_all(message));
    out->failed |= message->failed;
    message->n = 0;
}

static void pack_step(const struct figure_step *s, struct xp_buf *b)
{
    xp_pb_put_u64(b, STEP_NUMBER, (uint64_t)s->number);
    xp_pb_put_bytes(b, STEP_NAME, s->name);
    xp_pb_put_u64(b, STEP_BEGIN, (uint64_t)s->begin_ps);
    xp_pb_put_u64(b, STEP_END, (uint64_t)s->end_ps);
    xp_pb_put_u64(b, STEP_UNTIL, (uint64_t)s->until_ps);
    xp_pb_put_u64(b, STEP_BUSY, s->busy_ps);
    xp_pb_put_u64(b, STEP_INPUT, s->input_ps);
    xp_pb_put_u64(b, STEP_WAIT, s->wait_ps);
    xp_pb_put_u64(b, STEP_BARRIER, s->barrier_ps);
    xp_pb_put_u64(b, STEP_WHOLE, (uint64_t)s->whole | (uint64_t)s->last << 1);
}

static void pack_core(const struct figure_core *c, struct xp_buf *b)
{
    struct xp_buf one;
    xp_buf_init(&one, b->max);
    xp_pb_put_bytes(b, CORE_NAME, c->name);
    xp_pb_put_u64(b, CORE_KIND, c->kind);
    xp_pb_put_u64(b, CORE_ORDINAL, c->ordinal);
    xp_pb_put_u64(b, CORE_BEGIN, (uint64_t)c->begin_ps);
    xp_pb_put_u64(b, CORE_END, (uint64_t)c->end_ps);
    xp_pb_put_u64(b, CORE_BUSY, c->busy_ps);
    xp_pb_put_u64(b, CORE_INPUT, c->input_ps);
    xp_pb_put_u64(b, CORE_WAIT, c->wait_ps);
    xp_pb_put_u64(b, CORE_BARRIER, c->barrier_ps);
    xp_pb_put_u64(b, CORE_EVENTS, c->event_ps);
    xp_pb_put_u64(b, CORE_LOOSE, c->loose_ps);
    for (uint32_t i = 0; i < c->nsteps; i++) {
        pack_step(&c->steps[i], &one);
        put(b, CORE_STEP, &one);
    }
    for (uint32_t i = 0; i < c->npauses; i++) {
        xp_pb_put_u64(&one, PAUSE_BEGIN, (uint64_t)c->pauses[i].begin_ps);
        xp_pb_put_u64(&one, PAUSE_END, (uint64_t)c->pauses[i].end_ps);
        xp_pb_put_u64(&one, PAUSE_INPUT, c->pauses[i].input);
        put(b, CORE_PAUSE, &one);
    }
    xp_buf_fini(&one);
}

static void pack_lists(const struct figure_host *h, struct xp_buf *b)
{
    struct xp_buf one;
    xp_buf_init(&one, b->max);
    for (uint32_t i = 0; i < h->nmodules; i++) {
        const struct figure_module *m = &h->modules[i];
        xp_pb_put_bytes(&one, MODULE_NAME, m->name);
        xp_pb_put_u64(&one, MODULE_RUNS, m->runs);
        xp_pb_put_u64(&one, MODULE_TOTAL, m->total_ps);
        xp_pb_put_u64(&one, MODULE_MIN, m->min_ps);
        xp_pb_put_u64(&one, MODULE_MAX, m->max_ps);
        put(b, HOST_MODULE, &one);
    }
    for (uint32_t i = 0; i < h->nsyncs; i++) {
        xp_pb_put_u64(&one, SYNC_KEY, h->syncs[i].key);
        xp_pb_put_u64(&one, SYNC_END, (uint64_t)h->syncs[i].end_ps);
        put(b, HOST_SYNC, &one);
    }
    xp_buf_fini(&one);
}

void figures_pack(const struct figure_host *h, uint32_t index, struct xp_buf *out)
{
    struct xp_buf b, one;
    xp_buf_init(&b, out->max);
    xp_buf_init(&one, out->max);
    xp_pb_put_u64(&b, HOST_INDEX, index);
    xp_pb_put_bytes(&b, HOST_NAME, h->name);
    xp_pb_put_bytes(&b, HOST_CHIP, h->chip);
    xp_pb_put_u64(&b, HOST_START, (uint64_t)h->start_wall_ns);
    xp_pb_put_u64(&b, HOST_BASIS, h->basis);
    xp_pb_put_u64(&b, HOST_FLAGS, (uint64_t)h->steps_cut | (uint64_t)h->has_input << 1);
    xp_pb_put_bytes(&b, HOST_MARKER, h->marker);
    xp_pb_put_u64(&b, HOST_RUNS, h->marker_runs);
    for (uint32_t i = 0; i < h->ncores; i++) {
        pack_core(&h->cores[i], &one);
        put(&b, HOST_CORE, &one);
    }
    pack_lists(h, &b);
    put(out, FIGURES_HOST, &b);
    xp_buf_fini(&one);
    xp_buf_fini(&b);
}

/* --- back --- */

struct reader {
    struct xp_arena *a;
    bool bad, busy;
};

static void *array(struct reader *r, struct xp_span bytes, uint32_t num, size_t size)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    size_t n = 1;
    while (xp_pb_next(&p, &f))
        n += f.num == num && f.type == XP_PB_LEN;
    void *v = xp_arena_zalloc(r->a, n * size);
    r->busy |= !v;
    return v;
}

static void unpack_step(struct reader *r, struct xp_span bytes, struct figure_step *s)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    int64_t signed_of[STEP_WHOLE + 1] = {0};
    while (xp_pb_next(&p, &f)) {
        if (f.num == STEP_NAME)
            s->name = f.bytes;
        else if (f.num <= STEP_WHOLE)
            signed_of[f.num] = (int64_t)f.value;
    }
    s->number = signed_of[STEP_NUMBER];
    s->begin_ps = signed_of[STEP_BEGIN];
    s->end_ps = signed_of[STEP_END];
    s->until_ps = signed_of[STEP_UNTIL];
    s->busy_ps = (uint64_t)signed_of[STEP_BUSY];
    s->input_ps = (uint64_t)signed_of[STEP_INPUT];
    s->wait_ps = (uint64_t)signed_of[STEP_WAIT];
    s->barrier_ps = (uint64_t)signed_of[STEP_BARRIER];
    s->whole = signed_of[STEP_WHOLE] & 1;
    s->last = signed_of[STEP_WHOLE] & 2;
    r->bad |= p.bad;
}

static void unpack_pause(struct reader *r, struct xp_span bytes, struct figure_core *c)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    if (c->npauses == FIGURE_PAUSES_MAX) {
        r->bad = true;
        return;
    }
    struct figure_pause *to = &c->pauses[c->npauses++];
    while (xp_pb_next(&p, &f)) {
        if (f.num == PAUSE_BEGIN)
            to->begin_ps = (int64_t)f.value;
        else if (f.num == PAUSE_END)
            to->end_ps = (int64_t)f.value;
        else if (f.num == PAUSE_INPUT)
            to->input = f.value;
    }
    r->bad |= p.bad;
}

static void unpack_core(struct reader *r, struct xp_span bytes, struct figure_core *c)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    int64_t of[CORE_BARRIER + 1] = {0};
    c->steps = array(r, bytes, CORE_STEP, sizeof *c->steps);
    while (!r->busy && xp_pb_next(&p, &f)) {
        if (f.num == CORE_NAME)
            c->name = f.bytes;
        else if (f.num == CORE_STEP && f.type == XP_PB_LEN)
            unpack_step(r, f.bytes, &c->steps[c->nsteps++]);
        else if (f.num == CORE_PAUSE && f.type == XP_PB_LEN)
            unpack_pause(r, f.bytes, c);
        else if (f.num <= CORE_BARRIER)
            of[f.num] = (int64_t)f.value;
    }
    c->kind = (uint8_t)of[CORE_KIND];
    c->ordinal = (uint32_t)of[CORE_ORDINAL];
    c->begin_ps = of[CORE_BEGIN];
    c->end_ps = of[CORE_END];
    c->busy_ps = (uint64_t)of[CORE_BUSY];
    c->input_ps = (uint64_t)of[CORE_INPUT];
    c->wait_ps = (uint64_t)of[CORE_WAIT];
    c->barrier_ps = (uint64_t)of[CORE_BARRIER];
    c->event_ps = (uint64_t)of[CORE_EVENTS];
    c->loose_ps = (uint64_t)of[CORE_LOOSE];
    r->bad |= p.bad;
}

static void unpack_module(struct reader *r, struct xp_span bytes, struct figure_module *m)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    while (xp_pb_next(&p, &f)) {
        if (f.num == MODULE_NAME)
            m->name = f.bytes;
        else if (f.num == MODULE_RUNS)
            m->runs = f.value;
        else if (f.num == MODULE_TOTAL)
            m->total_ps = f.value;
        else if (f.num == MODULE_MIN)
            m->min_ps = f.value;
        else if (f.num == MODULE_MAX)
            m->max_ps = f.value;
    }
    r->bad |= p.bad;
}

static void unpack_sync(struct reader *r, struct xp_span bytes, struct figure_sync *s)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    while (xp_pb_next(&p, &f)) {
        if (f.num == SYNC_KEY)
            s->key = f.value;
        else if (f.num == SYNC_END)
            s->end_ps = (int64_t)f.value;
    }
    r->bad |= p.bad;
}

static void unpack_text(struct figure_host *h, const struct xp_pb_field *f)
{
    if (f->num == HOST_NAME)
        h->name = f->bytes;
    else if (f->num == HOST_CHIP)
        h->chip = f->bytes;
    else if (f->num == HOST_MARKER)
        h->marker = f->bytes;
}

static void unpack_number(struct figure_host *h, const struct xp_pb_field *f)
{
    if (f->num == HOST_INDEX)
        h->index = (uint32_t)f->value;
    else if (f->num == HOST_START)
        h->start_wall_ns = (int64_t)f->value;
    else if (f->num == HOST_BASIS)
        h->basis = (uint8_t)f->value;
    else if (f->num == HOST_RUNS)
        h->marker_runs = f->value;
    else if (f->num == HOST_FLAGS) {
        h->steps_cut = f->value & 1;
        h->has_input = f->value & 2;
    }
}

static void unpack_host(struct reader *r, struct xp_span bytes, struct figure_host *h)
{
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    h->cores = array(r, bytes, HOST_CORE, sizeof *h->cores);
    h->modules = array(r, bytes, HOST_MODULE, sizeof *h->modules);
    h->syncs = array(r, bytes, HOST_SYNC, sizeof *h->syncs);
    while (!r->busy && xp_pb_next(&p, &f)) {
        if (f.type == XP_PB_LEN && f.num == HOST_CORE)
            unpack_core(r, f.bytes, &h->cores[h->ncores++]);
        else if (f.type == XP_PB_LEN && f.num == HOST_MODULE)
            unpack_module(r, f.bytes, &h->modules[h->nmodules++]);
        else if (f.type == XP_PB_LEN && f.num == HOST_SYNC)
            unpack_sync(r, f.bytes, &h->syncs[h->nsyncs++]);
        else if (f.type == XP_PB_LEN)
            unpack_text(h, &f);
        else
            unpack_number(h, &f);
    }
    r->bad |= p.bad;
}

static int by_index(const void *a, const void *b)
{
    const struct figure_host *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

enum xp_status figures_unpack(struct xp_span bytes, struct xp_arena *a, struct figure_host **hosts,
                              uint32_t *n, struct xp_error *err)
{
    struct reader r = {.a = a};
    struct xp_pb p = xp_pb_open(bytes);
    struct xp_pb_field f;
    *n = 0;
    *hosts = array(&r, bytes, FIGURES_HOST, sizeof **hosts);
    while (!r.busy && xp_pb_next(&p, &f))
        if (f.num == FIGURES_HOST && f.type == XP_PB_LEN)
            unpack_host(&r, f.bytes, &(*hosts)[(*n)++]);
    if (r.busy)
        return figure_busy(err);
    if (r.bad || p.bad)
        return xp_fail(err, XP_CORRUPT, 0, "figures of another server cannot be read");
    qsort(*hosts, *n, sizeof **hosts, by_index);
    return XP_OK;
}
