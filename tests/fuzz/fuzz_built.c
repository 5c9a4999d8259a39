/* tests/fuzz/fuzz_built.c - well-formed profiles of any content through the whole shard.
 *
 * Where fuzz_load spends its time on broken framing, here the input is a list of orders to a
 * writer: planes, lines, events, names and stats with times that meet, overlap, are far apart
 * or overflow, and with the stats that flows, groups and derived lines are made from.
 *
 * Input: two bytes that choose a window, then orders of 4 bytes: what, and three operands.
 */
#include "lib/base/pb_wire.h"
#include "tests/fuzz/shard_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ORDERS_MAX 2000

static const char *const plane_names[] = {
    "/device:TPU:0",   "/device:TPU:1",    "/host:CPU", "/device:GPU:0",
    "/host:metadata",  "Task Environment", "",          "/device:TPU:0 SparseCore 1",
    "/device:CUSTOM:x"};
static const char *const line_names[] = {
    "XLA Ops",    "XLA Modules",   "Steps",        "Async XLA Ops", "XLA TraceMe",
    "_counters_", "main/1",        "python",       "counters_x",    "Stream #7(Compute)",
    "",           "Framework Ops", "Launch Stats", "\xff\xfe"};
static const char *const event_names[] = {"fusion.1",
                                          "while.2",
                                          "train",
                                          "DoEnqueueProgram",
                                          "CompleteCallbacks",
                                          "ThreadpoolListener::StartRegion",
                                          "ThreadpoolListener::StopRegion",
                                          "Iterator::Prefetch",
                                          "a:Const",
                                          "",
                                          "<b>",
                                          "\xe2\x82",
                                          "MemoryAllocation",
                                          "all-reduce-start.1",
                                          "jit_f(7)",
                                          "5"};
static const char *const stat_names[] = {"group_id",
                                         "step_name",
                                         "step_num",
                                         "id",
                                         "iter_num",
                                         "graph_type",
                                         "_r",
                                         "_pt",
                                         "_p",
                                         "_ct",
                                         "_c",
                                         "_a",
                                         "flow",
                                         "correlation_id",
                                         "context_id",
                                         "device_id",
                                         "device_ordinal",
                                         "run_id",
                                         "queue_id",
                                         "queue_addr",
                                         "request_id",
                                         "core_type",
                                         "tf_op",
                                         "source",
                                         "hlo_op",
                                         "hlo_module",
                                         "program_id",
                                         "scope_range_id",
                                         "counter_value",
                                         "is_eager",
                                         "device_offset_ps",
                                         "device_duration_ps",
                                         "hlo_category",
                                         "Hlo Proto",
                                         "profile_start_time",
                                         "unknown stat",
                                         "HLO Proto",
                                         "core_details",
                                         "device_type_string",
                                         "kernel_details"};
#define NSTATS (sizeof stat_names / sizeof stat_names[0])

static const int64_t odd_times[] = {0,
                                    1,
                                    -1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_C(1) << 31,
                                    INT64_C(1) << 32,
                                    INT64_C(1) << 53,
                                    INT64_C(1) << 62,
                                    INT64_C(1000000000000),
                                    INT64_C(1767225600000000000),
                                    INT64_MAX / 1000,
                                    INT64_MIN / 1000};

struct writer {
    struct xp_buf space, plane, line, event;
    bool in_plane, in_line, in_event;
};

#define PICK(table, i) (table)[(i) % (sizeof(table) / sizeof((table)[0]))]

/* Mostly small numbers that meet each other, now and then one that tries the limits. */
static int64_t time_of(uint8_t a, uint8_t b)
{
    return b >= 240 ? PICK(odd_times, a) : (int64_t)a * (b < 120 ? 10 : 1000) + b % 3;
}

static void close_event(struct writer *w)
{
    if (w->in_event)
        xp_pb_put_bytes(&w->line, 4, xp_buf_all(&w->event));
    w->in_event = false;
    w->event.n = 0;
}

static void close_line(struct writer *w)
{
    close_event(w);
    if (w->in_line)
        xp_pb_put_bytes(&w->plane, 3, xp_buf_all(&w->line));
    w->in_line = false;
    w->line.n = 0;
}

static void close_plane(struct writer *w)
{
    close_line(w);
    if (w->in_plane)
        xp_pb_put_bytes(&w->space, 1, xp_buf_all(&w->plane));
    w->in_plane = false;
    w->plane.n = 0;
}

static void put_entry(struct xp_buf *out, uint32_t field, uint64_t id, const char *name,
                      const char *display, struct xp_span stats)
{
    struct xp_buf value, entry;
    xp_buf_init(&value, 1 << 16);
    xp_buf_init(&entry, 1 << 16);
    xp_pb_put_u64(&value, 1, id);
    xp_pb_put_bytes(&value, 2, xp_span_str(name));
    if (display)
        xp_pb_put_bytes(&value, 4, xp_span_str(display));
    xp_buf_span(&value, stats);
    xp_pb_put_u64(&entry, 1, id);
    xp_pb_put_bytes(&entry, 2, xp_buf_all(&value));
    xp_pb_put_bytes(out, field, xp_buf_all(&entry));
    xp_buf_fini(&value);
    xp_buf_fini(&entry);
}

static void put_stat(struct xp_buf *out, uint32_t field, uint8_t a, uint8_t b, uint8_t c)
{
    struct xp_buf s;
    xp_buf_init(&s, 1 << 16);
    xp_pb_put_u64(&s, 1, a % NSTATS + 1);
    switch (b % 6) {
    case 0:
        xp_pb_put_u64(&s, 3, c);
        break;
    case 1:
        xp_pb_put_u64(&s, 4, (uint64_t)PICK(odd_times, c));
        break;
    case 2:
        xp_pb_put_bytes(&s, 5, xp_span_str(PICK(event_names, c)));
        break;
    case 3:
        xp_pb_put_u64(&s, 7, c % (NSTATS + 4));
        break;
    case 4:
        xp_pb_put_double(&s, 2, (double)c / 7);
        break;
    default:
        xp_pb_put_u64(&s, 4, c % 4);
        break;
    }
    xp_pb_put_bytes(out, field, xp_buf_all(&s));
    xp_buf_fini(&s);
}

static void put_event_meta(struct writer *w, uint8_t a, uint8_t b, uint8_t c)
{
    struct xp_buf stats;
    xp_buf_init(&stats, 1 << 16);
    if (c & 1)
        put_stat(&stats, 5, c >> 1, b, a);
    put_entry(&w->plane, 4, a % 20, PICK(event_names, b), c & 2 ? PICK(event_names, c) : NULL,
              xp_buf_all(&stats));
    xp_buf_fini(&stats);
}

static void new_plane(struct writer *w, uint8_t a, uint8_t b)
{
    close_plane(w);
    w->in_plane = true;
    xp_pb_put_u64(&w->plane, 1, b);
    xp_pb_put_bytes(&w->plane, 2, xp_span_str(PICK(plane_names, a)));
    for (size_t i = 0; i < NSTATS; i++)
        put_entry(&w->plane, 5, i + 1, stat_names[i], NULL, (struct xp_span){0});
}

static void new_line(struct writer *w, uint8_t a, uint8_t b, uint8_t c)
{
    close_line(w);
    if (!w->in_plane)
        new_plane(w, c, 1);
    w->in_line = true;
    xp_pb_put_u64(&w->line, 1, a % 16);
    xp_pb_put_bytes(&w->line, 2, xp_span_str(PICK(line_names, b)));
    xp_pb_put_u64(&w->line, 3, (uint64_t)(c < 200 ? c : PICK(odd_times, c)));
}

static void order(struct writer *w, const uint8_t o[4])
{
    uint8_t what = o[0] % 16;
    if (what == 0) {
        new_plane(w, o[1], o[2]);
    } else if (what == 1) {
        new_line(w, o[1], o[2], o[3]);
    } else if (what <= 3 && w->in_plane) {
        put_event_meta(w, o[1], o[2], o[3]);
    } else if (what == 4 && w->in_plane) {
        put_stat(&w->plane, 6, o[1], o[2], o[3]);
    } else if (what <= 8 && w->in_event) {
        put_stat(&w->event, 4, o[1], o[2], o[3]);
    } else if (what == 9 && w->in_event) {
        xp_pb_put_u64(&w->event, 5, o[1]); /* occurrences */
    } else {
        close_event(w);
        if (!w->in_line)
            new_line(w, o[1], o[2], 0);
        w->in_event = true;
        xp_pb_put_u64(&w->event, 1, o[0] >> 4);
        xp_pb_put_u64(&w->event, 2, (uint64_t)time_of(o[1], o[3]));
        xp_pb_put_u64(&w->event, 3, (uint64_t)time_of(o[2], (uint8_t)(o[3] * 7)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct writer w = {0};
    if (size < 2)
        return 0;
    xp_buf_init(&w.space, 8 << 20);
    xp_buf_init(&w.plane, 8 << 20);
    xp_buf_init(&w.line, 4 << 20);
    xp_buf_init(&w.event, 1 << 20);
    for (size_t at = 2, n = 0; at + 4 <= size && n < ORDERS_MAX; at += 4, n++)
        order(&w, data + at);
    close_plane(&w);
    XP_ASSERT(!w.space.failed);
    struct totals t = load(w.space.p, w.space.n, false, data);
    XP_ASSERT(t.planes != UINT64_MAX); /* well formed: it loads */
    xp_buf_fini(&w.space);
    xp_buf_fini(&w.plane);
    xp_buf_fini(&w.line);
    xp_buf_fini(&w.event);
    return 0;
}
