/* shard/tools/mega.h - collectives between slices, each time they happened: what ops and actions
 * of the Megascale runtime made it up. Facts of a host (facts.h).
 *
 *   op       send, send-done, recv, recv-done of a rendezvous, on every TPU core (slack.h)
 *   action   of the plane "/device:CUSTOM:Megascale Trace", or of the events "MegaScale: ..." of
 *            host threads where there is no such plane: copy to the host, network send and receive,
 *            reduction, copy to the device. The graph key names collective, device and launch:
 *            "device_200005_gid_all-reduce.1_0$3^i0".
 *   occurrence  the ops of a core from one send or recv to the recv-done, or the actions of one
 *            graph key and launch; both where the collective's name and the device are the same and
 *            the actions begin after the first op, and before the next occurrence's. Of ops there
            must be a begin (send, recv) and an end (a done).
 *
 * An action that is an event "... START" and an event "... END" is one; where only one of the two
 * was recorded, what is known of it. Devices of graph keys are TPU planes by local_device_id, else
 * in the order of their numbers.
 *
 * Bounds   Of a collective a host tells the MEGA_KEPT occurrences that took longest, and the items
 *          of the longest and of the one that occurrence= names, up to MEGA_ITEMS; sums are of all.
 */
#ifndef SHARD_MEGA_H
#define SHARD_MEGA_H

#include "shard/tools/mega_rate.h"
#include "shard/tools/slack.h"

#define MEGA_KEPT 32
#define MEGA_ITEMS 512
#define MEGA_COLLECTIVES ((size_t)2048) /* of a host */
#define MEGA_EVENTS ((size_t)1 << 20)   /* of a host: later ones are counted only */

enum mega_kind {
    MEGA_SEND,
    MEGA_SEND_DONE,
    MEGA_RECV,
    MEGA_RECV_DONE,
    MEGA_TO_HOST,
    MEGA_NET_SEND,
    MEGA_NET_RECV,
    MEGA_REDUCE,
    MEGA_TO_DEVICE,
    MEGA_GRAPH, /* the whole of it */
    MEGA_OTHER,
    MEGA_KINDS
};
const char *mega_kind_name(uint8_t kind); /* "copy to host" */
/* Of an event: "NetworkSend END", "MegaScale: Device to Host Action". *mark: 'S' or 'E', or 0. */
uint8_t mega_kind_of(struct xp_span event, char *mark);

struct mega_item {
    uint32_t occurrence;
    uint32_t name, plane, detail; /* strings; detail: what it says of sizes or ends */
    uint8_t kind;
    bool begun, ended; /* both are known; else it is a moment */
    int64_t index;     /* of the action, as recorded; -1: none */
    int64_t begin_ps, end_ps;
    uint64_t bytes;
};

struct mega_occurrence {
    uint32_t collective; /* in collectives */
    uint32_t host;
    int64_t device; /* n of the TPU plane; -1: not known */
    int64_t begin_ps, end_ps;
    uint32_t first_item, nitems; /* in items; 0: not kept */
    uint32_t ops, actions;
    uint32_t kinds; /* bit: enum mega_kind; while it is read */
    bool gone;      /* it is part of another, or only its begin or end is there */
};

struct mega_collective {
    uint32_t name;
    uint64_t occurrences, total_ps, longest_ps, with_ops, with_actions, actions;
};

enum mega_source { MEGA_NO_SOURCE, MEGA_BY_ACTIONS, MEGA_BY_MESSAGES, MEGA_BY_OPS, MEGA_SOURCES };

struct mega {
    struct xp_arena *a;
    struct xp_strpool strings;
    struct vec collectives, occurrences, items;
    struct idmap by_name;
    struct mega_rate rate;
    uint32_t sources[MEGA_CURVES]; /* bit: enum mega_source, of some host */
    uint64_t left, unnamed;        /* events beyond MEGA_EVENTS; actions without a graph key */
    bool traced;                   /* there are actions of the trace plane */
};

bool mega_init(struct mega *m, struct xp_arena *a);
void mega_fini(struct mega *m);

/* Which occurrence is asked for: by its id, or by when an op or action of it begins or ends, on
 * which device if that is told: several do the same at the same time. */
struct mega_wanted {
    struct xp_span id; /* empty: none */
    bool has_at, has_device;
    int64_t at_ps, device;
};
/* Of occurrence=, at=, device=. XP_BAD_REQUEST: at is no time, device no number. */
enum xp_status mega_wanted_of(const struct tool_args *args, struct mega_wanted *w,
                              struct xp_error *err);
/* Is it the wanted one? items: its own. */
bool mega_is_wanted(const struct mega *m, const struct mega_occurrence *o,
                    const struct mega_item *items, struct xp_span host,
                    const struct mega_wanted *w);

/* Reads a host and puts its facts. */
enum xp_status mega_map(const struct tool_host *host, const struct mega_wanted *w,
                        struct xp_arena *a, struct facts_out *f, struct xp_error *err);
/* Adds those of a host. */
enum xp_status mega_add(struct mega *m, struct facts *f, struct xp_error *err);

/* "worker-0/3/123456789/all-reduce.1": host, device, begin, collective; each cut at 512. The
 * length; 0: there is no room. */
#define MEGA_ID 1100
size_t mega_id(const struct mega *m, struct xp_span host, const struct mega_occurrence *o, char *to,
               size_t cap);

/* --- mega_read.c --- */

enum xp_status mega_read(struct mega *m, const struct tool_host *host, struct xp_error *err);
/* UINT32_MAX: memory is out, or (full) there are too many. */
uint32_t mega_collective_of(struct mega *m, uint32_t name);

#endif
