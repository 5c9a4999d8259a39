/* shard/tools/slack.h - transfers between slices: how long each could have taken without anyone
 * waiting for it.
 *
 * A transfer is a rendezvous of the HLO instructions send, recv, send-done and recv-done. Slack is
 * the time from the begin of send to the begin of recv-done, less what ops of transfers took in
 * between; stall is what the transfer's own ops took.
 *
 * Units are XProf's: whole microseconds, cut off at each step, as its messages hold them.
 */
#ifndef SHARD_SLACK_H
#define SHARD_SLACK_H

#include "lib/base/strpool.h"
#include "shard/derive/vec.h"
#include "shard/tools/idmap.h"
#include "shard/tools/profile.h"

struct slack_row {
    uint32_t rendezvous, transfer_type, send_op, recv_op; /* in slack->strings */
    uint32_t slices; /* that take part: "0, 1", or "0->1, 1->0" */
    uint64_t occurrences, bytes;
    /* Of one host: means over its occurrences. Of several: sums of these, weighted, until
     * slack_finish. */
    uint64_t slack_us, stall_us, observed_us, send_us, recv_us, send_done_us, recv_done_us;
    uint64_t own_recv_us; /* recv_us as it is: XProf divides its own once too often */
};

/* One transfer: slack_peers.h. */
struct slack_sample {
    uint32_t rendezvous, host; /* host: place in the request */
    int64_t begin_ps;          /* of its send */
    uint64_t observed_ps;      /* from there to the end of its recv-done */
    uint64_t done_ps;          /* what its recv-done took */
    bool slowest;              /* of its rendezvous on the host; besides the others */
};

/* An op of a transfer, as it ran on a core. */
enum slack_role { SLACK_SEND, SLACK_SEND_DONE, SLACK_RECV, SLACK_RECV_DONE };
struct slack_op {
    uint32_t ordinal; /* of the plane, "/device:TPU:<n>" */
    uint32_t rendezvous, name;
    uint8_t role;
    int64_t begin_ps, end_ps;
    uint64_t bytes; /* of a recv-done whose send was seen: what goes over the network */
};

struct slack {
    struct xp_arena *a;
    struct xp_strpool strings;
    struct vec rows; /* struct slack_row */
    struct idmap by_rendezvous;
    struct vec samples; /* struct slack_sample */
};

bool slack_init(struct slack *s, struct xp_arena *a);
/* Adds a host. */
enum xp_status slack_add(struct slack *s, const struct tool_host *host, struct out *out,
                         struct xp_error *err);
/* The ops of all cores of a host, core by core in order of time, struct slack_op; at most
 * SLACK_OPS. */
#define SLACK_OPS ((size_t)1 << 20)
enum xp_status slack_ops(struct slack *s, const struct tool_host *host, struct vec *ops,
                         struct out *out, struct xp_error *err);
/* Adds a row that slack_add made of another host, its texts in s; the later's texts and bytes
 * count. False when memory is out. */
bool slack_join(struct slack *s, const struct slack_row *row);
/* After the last host. */
void slack_finish(struct slack *s);
void slack_fini(struct slack *s);

#endif
