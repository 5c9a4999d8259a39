/* shard/tools/comm.h - what goes between devices: permutes, sends and receives by channel, and
 * collectives by who takes part, as the ops of TPU cores tell it. Facts of a host (facts.h).
 *
 *   latency   of a pair of a start and its done: from the begin of the start to the end of the
 *             done; of an op that is in one piece: what it takes. Of a send or receive likewise.
 *   wait      what the done takes (an op in one piece: all of it): the core does nothing else.
 *   group     who takes part in a collective together with the core, by the numbers of the
 *             program (op_words.h); partition i is taken for the core with the global id i.
 *
 * In a range those count that begin and end in it: a latency that is cut short is none.
 *
 * Bounds    Edges (who sends to whom, a row a core) are kept of one channel, that of channel=, or
 *           of the COMM_EDGED that take longest on the host; cells (group by step) up to
 *           COMM_CELLS a host, the others are counted.
 */
#ifndef SHARD_COMM_H
#define SHARD_COMM_H

#include "shard/derive/vec.h"
#include "shard/tools/facts.h"
#include "shard/tools/idmap.h"

#define COMM_EDGED 16
#define COMM_CELLS ((size_t)1 << 16)
#define COMM_CHANNELS ((size_t)1 << 14) /* of a host */

enum comm_kind {
    COMM_PERMUTE,
    COMM_SEND,
    COMM_RECV,
    COMM_ALL_REDUCE,
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_ALL_TO_ALL,
    COMM_BROADCAST,
    COMM_KINDS
};
const char *comm_kind_name(uint8_t kind); /* "all-reduce" */

struct comm_core {
    uint32_t host, plane; /* place among the run's hosts; name of the plane */
    uint32_t ordinal, core_num;
    int64_t id;     /* what the program calls it, as far as the profile says */
    int64_t chip;   /* unique within its slice; -1: not told */
    bool by_number; /* the plane's number stands for the id */
};

struct comm_sum {
    uint64_t count, total_ps, longest_ps;
    uint64_t waits, wait_ps; /* of so many it is known */
    int64_t longest_begin_ps;
    uint32_t longest_core; /* in cores */
};

struct comm_channel {
    uint32_t key, op; /* strings: "op:program", "op" */
    uint64_t program, bytes;
    int64_t channel; /* -1: none */
    uint8_t kind;
    struct comm_sum sum;
};

struct comm_edge {
    uint32_t channel, core;
    int64_t from, to; /* ids; -1: none. From whom the core gets it, and to whom it sends */
    struct comm_sum sum;
};

struct comm_group {
    uint32_t op, label; /* label 0: the op does not tell */
    uint64_t program, bytes;
    uint8_t kind;
    struct comm_sum sum;
};

/* A group's collectives of a kind in a step. */
struct comm_cell {
    uint32_t label;
    uint8_t kind;
    int64_t step;
    uint64_t count, total_ps, cores;
    uint32_t last_core; /* + 1; while they are counted */
};

struct comm {
    struct xp_arena *a;
    struct xp_strpool strings;
    struct vec cores, channels, edges, groups, cells;
    struct xp_strpool group_keys, cell_keys; /* by bytes of what they are */
    struct idmap channel_by, group_by, cell_by;
    uint64_t cells_left, channels_left, unpaired; /* unpaired: starts whose done was not seen */
    int64_t slices, per_slice; /* that the ops name, and devices of one; 0: none */
    int64_t partitions;        /* that the ops number, over all that are known; 0: none */
    uint32_t hosts;            /* that were added */
};

/* Does the program call the core by its id? Where no profile tells it, the plane's number stands
 * for it as long as there is one host, and no other can be among those that the ops name. */
bool comm_has_id(const struct comm *c, const struct comm_core *core);

bool comm_init(struct comm *c, struct xp_arena *a);
void comm_fini(struct comm *c);

/* args: channel=KEY. */
enum xp_status comm_map(const struct tool_host *host, const struct tool_args *args,
                        struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* Adds what a host's facts say; it is the run's host number `host`. */
enum xp_status comm_add(struct comm *c, struct facts *f, uint32_t host, struct xp_error *err);

/* --- comm_read.c, comm.c --- */

void comm_put(const struct comm *c, struct facts_out *f, struct xp_span wanted);
enum xp_status comm_read(struct comm *c, const struct tool_host *host, struct xp_span marker,
                         struct xp_error *err);
/* The place of a row by what it is; made if it is new. NULL: memory is out. */
struct comm_channel *comm_channel_of(struct comm *c, uint32_t key);
struct comm_group *comm_group_of(struct comm *c, uint32_t op, uint64_t program, uint32_t label,
                                 uint8_t kind);
struct comm_cell *comm_cell_of(struct comm *c, uint32_t label, uint8_t kind, int64_t step);
/* The same, of those that there are. NULL: none. */
struct comm_cell *comm_cell_find(const struct comm *c, uint32_t label, uint8_t kind, int64_t step);
void comm_sum_add(struct comm_sum *to, const struct comm_sum *from);

#endif
