/* lib/objstore/bucket_reader.h - what bucket_read.c and bucket_ahead.c share: a reader as pieces.
 *
 * A piece is a run of bytes of the object in memory, being fetched by one call. Pieces of a reader
 * never overlap. All here is of the bucket's lock, except the bytes of a piece: [0, got) do not
 * change any more, what lies behind is the running call's.
 */
#ifndef XP_OBJSTORE_BUCKET_READER_H
#define XP_OBJSTORE_BUCKET_READER_H

#include "lib/objstore/bucket_int.h"

#define PIECE_MIN ((uint64_t)64 << 10)
#define PIECE_MAX ((uint64_t)4 << 20)
#define AHEAD_MAX ((uint64_t)32 << 20)
#define RUNNING_MAX 8 /* calls at once that a reader has for what was not asked for yet */
#define STREAMS 8
#define SPANS_MAX 24

enum piece_state {
    PIECE_NEW,   /* somebody is about to ask for it */
    PIECE_RUN,   /* its call runs */
    PIECE_WAIT,  /* its call failed, a timer runs */
    PIECE_RETRY, /* is to be asked for again by who needs it */
    PIECE_DONE,
    PIECE_FAILED
};

struct piece {
    struct piece *next; /* of the reader, by offset */
    struct bucket_reader *r;
    uint64_t at;
    uint32_t n, got, eaten;
    uint32_t have; /* the client's thread alone: got and what was not told yet */
    enum piece_state state;
    int pins; /* threads that copy from it */
    bool refreshed, judged;
    struct net_call *call;
    struct net_timer *timer;
    struct retry retry;
    uint64_t begun_ns, first_ns, used_ns;
    uint32_t begun_got;
    struct xp_error err;
    char said[512]; /* what the store said about an error */
    uint32_t said_n;
    uint8_t *buf;
};

/* Reads that go forward, by guess. */
struct stream {
    uint64_t pos, run, used_ns;
};

/* A range of the plan, and how far it was read. */
struct planned {
    struct xp_range range;
    uint64_t pos;
};

struct waiter {
    struct waiter *next;
    uint64_t off;
    size_t n;
    void (*wake)(void *ctx);
    void *ctx;
};

struct bucket_reader {
    struct xp_reader base;
    struct bucket *b;
    struct bucket_reader *next, **link;
    char *key, *name;
    struct piece *pieces;
    struct waiter *waiters;
    int running; /* pieces with a call, a timer or somebody about to ask */
    bool closed, cancelled;
    struct stream streams[STREAMS];
    struct planned *plan;
    uint32_t *by_from; /* indices of the plan, by offset */
    uint32_t n_plan;
};

/* What should be at hand or on its way after a read of [off, off + n), in order of need; the first
 * begins at off. piece: the size to ask in. Returns how many. */
size_t ahead_spans(struct bucket_reader *r, uint64_t off, size_t n,
                   struct xp_range spans[SPANS_MAX], uint64_t *piece);
/* Takes the ranges over; false when memory is short. */
bool ahead_plan(struct bucket_reader *r, const struct xp_range *ranges, size_t n);
/* Whether off lies in a range that is being read by plan: its bytes are needed once. */
bool ahead_is_planned(const struct bucket_reader *r, uint64_t off);

#endif
