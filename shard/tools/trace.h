/* shard/tools/trace.h - XProf's trace viewer, as far as its two tools share it.
 *
 * Row        One track of the viewer: a thread of a device, or one name of a device's counters or
 *            asynchronous events. A row's events come from the lanes of its lines.
 * Layers     XProf sorts events into 13 layers by the resolution at which they can be told apart,
 *            and loads layers until one is finer than a pixel. Which layer an event is in depends
 *            on the events before it in its row only, and can be known without looking at most
 *            of them: see trace_layers.c.
 * Filter     What was loaded is filtered once more, at the resolution of the request.
 * Serial     An event's place among those of its host that begin at the same instant.
 * Threads    One request, one thread. What is kept with the part is made under derive's lock.
 */
#ifndef SHARD_TRACE_H
#define SHARD_TRACE_H

#include "shard/derive/derive.h"
#include "shard/derive/vec.h"
#include "shard/out.h"
#include "shard/tools/tool.h"

#define TRACE_LAYERS 13
#define TRACE_LAST_LAYER (TRACE_LAYERS - 1) /* holds what no other does */
#define TRACE_STREAM_EVENTS 500000          /* a host with fewer is never filtered */
#define TRACE_COARSE 5
#define TRACE_SERIAL_MAX 255 /* XProf's key holds a byte; events beyond are lost */

extern const int64_t trace_resolution_ps[TRACE_LAYERS];

/* The finest layer that is loaded for that resolution. */
static inline int trace_layer_of(int64_t resolution_ps)
{
    int z = 0;
    while (z < TRACE_LAST_LAYER && resolution_ps < trace_resolution_ps[z])
        z++;
    return z;
}

struct trace_lane {
    const struct lane *lane;
    int64_t base_ps;
    uint32_t line; /* in derive->lines */
};

enum trace_kind { TRACE_THREAD, TRACE_COUNTER, TRACE_ASYNC };

struct trace_event {
    int64_t begin_ps, end_ps; /* session time */
    uint64_t at;
    uint32_t name;
    uint32_t line; /* in derive->lines */
    uint32_t serial;
    uint32_t track; /* TRACE_COUNTER, TRACE_ASYNC: in host->tracks, + 1 */
    uint32_t moved; /* in host->moved, + 1; 0: it is what it seems */
    bool middle;    /* of a flow on a TPU: not filtered any more */
    bool no_flow;   /* it is known to belong to none */
    bool ranked;    /* its serial is known */
};

/* A device's thread, with the lanes of all its lines. */
struct trace_row {
    uint32_t device; /* in host->devices */
    uint32_t tid;
    bool counter; /* events are counter samples, rows of their own by name */
    uint32_t first_lane, nlanes;
    bool may_async; /* some of its events may be asynchronous */
    bool may_hide;  /* some of its events are never shown */
    bool may_flow;
};

struct trace_thread {
    uint32_t tid;
    struct xp_span name;
};

struct trace_device {
    uint32_t id; /* in the host */
    struct xp_span name;
    bool tpu; /* TPU core, or a part of the chip */
    uint32_t first_thread, nthreads;
};

/* A name of a device's counters or asynchronous events. */
struct trace_track {
    uint32_t device;
    uint8_t kind;
    struct xp_span name;
};

/* An event that XProf shows in the place of another. */
struct trace_moved {
    int64_t begin_ps; /* shown as its begin */
    bool has_args;
    struct trace_event args; /* whose arguments are shown */
};

struct trace_flows; /* trace_flows.c */
struct trace_index; /* trace_index.c */

struct trace_host {
    const struct derive *d;
    struct part *part;
    struct xp_span name;
    uint32_t index; /* 1, 2, ... */
    struct vec devices, threads, rows, lanes, tracks;
    uint32_t *track_table;
    size_t track_mask;
    uint64_t nevents;
    int64_t begin_ps, end_ps;
    bool tpu;
    const struct trace_flows *flows;  /* hosts that are filtered */
    const struct trace_index *layers; /* hosts that are looked into closely; else NULL */
    struct vec events;                /* struct trace_event: the answer */
    struct vec moved;                 /* struct trace_moved */
};

struct trace_request {
    double start_ms, end_ms, duration_ms;
    uint64_t resolution, unique_id;
    struct xp_span event_name, search_prefix, format;
    bool search_metadata, full_dma;
};

struct trace {
    struct trace_request req;
    struct trace_host *hosts;
    size_t nhosts;
    struct xp_arena *scratch;
    struct out *out;
    struct xp_error *err;
    bool all_args; /* events are written with all their arguments */
    bool uid;      /* ... or with their serial */
};

static inline int64_t trace_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

enum xp_status trace_busy(struct xp_error *err);

/* --- trace_rows.c --- */
/* Devices, threads, rows, number of events and time span of one host. */
enum xp_status trace_host_init(struct trace_host *h, struct xp_error *err);
void trace_host_fini(struct trace_host *h);
/* The track of that device, kind and name, made if there is none; UINT32_MAX: out of memory. */
uint32_t trace_track_of(struct trace_host *h, uint32_t device, enum trace_kind kind,
                        struct xp_span name);
/* Is the event never shown? */
bool trace_hidden(const struct trace_host *h, const struct derive_line *l, uint32_t name);
static inline struct derive_event trace_derive_event(const struct trace_event *e)
{
    return (struct derive_event){e->begin_ps, e->end_ps, e->at, e->name};
}

/* --- trace_flows.c --- */
/* What a host that is filtered keeps: its flow events by row, and the layer of each. */
struct __attribute__((packed, aligned(4))) trace_flow_event { /* 36 bytes, not 40 */
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint32_t id; /* flows of the host are numbered */
    uint32_t name;
    uint32_t line : 25;
    uint32_t dir : 2;
    uint32_t layer : 4;
    uint32_t async : 1;
};
struct trace_flow_row {
    uint32_t first, n; /* in order of (begin, longer first, at) */
    int64_t longest_ps;
    uint64_t nasync;
    uint32_t first_coarse, ncoarse; /* those of the first TRACE_COARSE layers, in flows->coarse */
};
/* A row made of several lines of the file, or of one that is out of order. XProf does not sort it:
 * it strings the lines together, and decides in that order. */
struct trace_strung_event {
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint32_t name, line;
};
struct trace_strung {
    struct trace_strung_event *events; /* in XProf's order */
    uint8_t *layers;
    uint32_t n; /* 0: the row is in order of time */
};
static inline struct trace_event trace_strung_event(const struct trace_strung *s, uint32_t i)
{
    const struct trace_strung_event *e = &s->events[i];
    return (struct trace_event){.begin_ps = e->begin_ps,
                                .end_ps = e->end_ps,
                                .at = e->at,
                                .name = e->name,
                                .line = e->line};
}
struct trace_flows {
    struct trace_flow_event *events;
    struct trace_flow_row *rows; /* one a row of the host */
    uint32_t *coarse;            /* within the row */
    struct trace_strung *strung; /* likewise */
    uint32_t nrows, nevents;
};
enum xp_status trace_flows_get(struct trace_host *h, struct xp_error *err);
/* The first of a row's flow events that begins at or after `begin_ps`. */
static inline uint32_t trace_flow_at(const struct trace_flow_event *f, uint32_t n, int64_t begin_ps)
{
    uint32_t lo = 0;
    while (lo < n) {
        uint32_t mid = lo + (n - lo) / 2;
        if (f[mid].begin_ps < begin_ps)
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}
/* The flow event of a row that `e` is, or NULL. */
const struct trace_flow_event *trace_flow_find(const struct trace_flow_event *f, uint32_t n,
                                               const struct trace_event *e);

/* --- trace_layers.c --- */
struct trace_window {
    int64_t begin_ps, end_ps;
    bool instant;          /* shows everything that is loaded */
    int64_t resolution_ps; /* 0: everything */
    int layer;             /* the finest that is loaded */
    bool filtered;         /* the host is large enough to be filtered */
};
/* Appends the events of the row that are loaded and shown. */
enum xp_status trace_row_events(struct trace_host *h, uint32_t row, const struct trace_window *win,
                                const struct trace *t, struct vec *out, struct xp_error *err);

/* --- trace_index.c --- */
/* The layer of every event of the rows that are in order of time, half a byte each; and room for
 * the serial of every event likewise (trace_rank.h). */
#define TRACE_LAYER_NONE 15 /* never shown, or asynchronous */
struct trace_index_lane {
    uint8_t *layers; /* two events a byte, the even one low */
    uint8_t *least;  /* of each block */
    _Atomic uint8_t *serials;
    struct trace_sieve *sieve; /* trace_sieve.h, or NULL */
};
static inline void trace_index_note(struct trace_index_lane *x, uint64_t ord, unsigned z)
{
    uint8_t *least = &x->least[ord / LANE_BLOCK];
    x->layers[ord / 2] |= (uint8_t)(z << (ord & 1) * 4);
    if (z < *least)
        *least = (uint8_t)z;
}
struct trace_ranks; /* trace_rank.h */
struct trace_index {
    struct trace_index_lane *lanes; /* as the host's */
    struct trace_ranks *ranks;      /* NULL: no serials are kept */
};
enum xp_status trace_index_get(struct trace_host *h, struct xp_error *err);

/* Need the row's loaded events be no array? With the index, trace_filter reads the lanes itself. */
bool trace_row_streams(const struct trace_host *h, uint32_t row, bool full_dma);

/* --- trace_strung.c --- */
/* Finds out whether the row is strung, and if so what layers its events are in. */
enum xp_status trace_strung_make(struct trace_host *h, uint32_t row,
                                 const struct trace_flow_event *flows, uint32_t nflows,
                                 struct xp_arena *arena, struct trace_strung *s,
                                 struct xp_error *err);
bool trace_row_is_strung(const struct trace_host *h, const struct trace_row *row, uint64_t *n);
/* The same for a row in order of time. False when memory is out. */
bool trace_row_order(const struct trace_host *h, const struct trace_row *row,
                     const struct trace_flow_event *flows, uint32_t nflows, struct xp_arena *arena,
                     struct trace_strung *s);
/* The loaded events, in the order in which XProf filters them. False when memory is out. */
bool trace_strung_events(const struct trace_strung *s, const struct trace_window *win,
                         struct vec *out);

/* --- trace_filter.c --- */
/* Keeps what can be told apart; events[0..n) are those of each row in turn, bounds[row] their
 * begins. Rows that stream have none there. */
enum xp_status trace_filter(struct trace_host *h, const struct trace_window *win,
                            const struct trace *t, const uint32_t *bounds, struct xp_error *err);

/* --- trace_select.c --- */
enum xp_status trace_select_window(struct trace *t, struct trace_host *h);
enum xp_status trace_select_search(struct trace *t, struct trace_host *h);
/* XP_NOT_FOUND: no such event. */
enum xp_status trace_select_event(struct trace *t, struct trace_host *h);

/* The middle of a flow on a TPU, shown with full_dma only. */
bool trace_is_middle(const struct trace *t, const struct trace_host *h, struct derive_eye *eye,
                     const struct trace_event *e);

/* --- trace_table.c --- */
/* Is a row strung, and the host small enough for what follows? */
bool trace_is_strung(const struct trace_host *h);
enum xp_status trace_table_search(struct trace *t, struct trace_host *h);

/* --- trace_serial.c --- */
enum xp_status trace_serials(struct trace_host *h, const struct out *out, struct xp_error *err);
/* All events of the host that begin at that instant, in order of their serials. */
enum xp_status trace_events_at(struct trace_host *h, int64_t begin_ps, struct vec *out,
                               struct xp_error *err);

/* --- trace_args.c --- */
enum trace_arg_type {
    TRACE_ARG_STR,
    TRACE_ARG_I64,
    TRACE_ARG_U64,
    TRACE_ARG_DOUBLE,
    TRACE_ARG_BYTES
};
struct trace_arg {
    struct xp_span name, text;
    uint64_t num;
    uint8_t type;
    bool special; /* group_id, flow, _a: no argument in the streaming viewer */
};
/* All arguments of an event, in XProf's order. Memory: scratch. */
enum xp_status trace_args(struct trace_host *h, struct derive_eye *eye, const struct trace_event *e,
                          struct xp_arena *scratch, struct vec *args, struct xp_error *err);

/* --- trace_frames.c --- */
/* XProf's stack frames: long names and HLO texts, kept once for the whole answer. Numbers are ids
 * of the pool, from 1. */
struct trace_frames {
    struct xp_strpool pool;
};
enum xp_status trace_frames_init(struct trace_frames *f, struct xp_arena *scratch,
                                 struct xp_error *err);
/* All that the host's events may refer to. */
enum xp_status trace_frames_add_host(struct trace_frames *f, const struct trace_host *h,
                                     struct xp_error *err);
bool trace_is_frame(const struct trace_arg *a);
/* Number of the frame, added if new; UINT32_MAX when memory is out. */
uint32_t trace_frame_of(struct trace_frames *f, const struct trace_arg *a);

/* --- writers --- */
/* Process and thread of the events of each line of a host. */
struct trace_place {
    uint32_t pid, tid;
    bool strung; /* a window's events of the row are in XProf's order already */
};
struct trace_place *trace_places(const struct trace_host *h, struct xp_arena *scratch);
/* Indices of h->events in the order of (pid, tid, track, begin); threads, then tracks. Strung rows
 * keep their order in a window. */
uint32_t *trace_order(const struct trace_host *h, const struct trace_place *places,
                      struct xp_arena *scratch);
enum xp_status trace_write_json(struct trace *t);
/* What its head says of one host or several. */
struct trace_sum {
    int64_t begin_ps, end_ps; /* of hosts with events */
    uint64_t shown;
    bool tpu, any;
};
struct trace_sum trace_sum_of(const struct trace_host *h);
void trace_sum_add(struct trace_sum *sum, struct trace_sum one);
void trace_json_head(struct xp_buf *b, const struct trace_sum *sum, bool full_dma);
void trace_json_frames(struct out *out, const struct xp_strpool *frames);
void trace_json_end(struct xp_buf *b, uint64_t ncounters);

/* What one host is in an answer about several (trace_join.c). Its events' text goes to t->out. */
struct trace_ref {
    uint64_t at; /* in that text: here belongs the number of the frame */
    uint32_t frame, unused;
};
struct trace_piece {
    struct xp_buf devices;     /* the caller's */
    struct vec refs;           /* the caller's */
    struct xp_strpool strings; /* frames; those below nfirst come before the frames of events */
    uint32_t nfirst;
    uint64_t ncounters;
};
enum xp_status trace_json_piece(struct trace *t, struct trace_piece *p);
enum xp_status trace_write_pb(struct trace *t, bool details);

/* The same for the other format: its tracks, its series with ids of its own strings. */
enum xp_status trace_pb_piece(struct trace *t, struct trace_piece *p);
struct trace_pb_host {
    struct xp_span devices, series;
    struct xp_span ids; /* uint32_t, of its strings from id 1 on: where in `of` */
    const uint32_t *of; /* what they are called in the answer */
};
enum xp_status trace_pb_join(struct trace *t, const struct trace_sum *sum,
                             const struct trace_pb_host *hosts, size_t n,
                             const struct xp_strpool *strings);
bool trace_is_pb(const struct trace *t);

/* --- trace_join.c --- */
/* Hosts looked at one by one, wherever: t has one host, with its events, or none that has what was
 * asked for. */
enum xp_status trace_join_map(struct trace *t, uint32_t index, struct xp_span *partial);
enum xp_status trace_join_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                struct xp_span *both, struct xp_error *err);
enum xp_status trace_join_render(struct trace *t, struct xp_span merged);
enum xp_status trace_write_legacy(struct trace *t);

void trace_text_us(struct xp_buf *b, int64_t ps);

#endif
