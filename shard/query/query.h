/* shard/query/query.h - the answers of our own API about one host's part (docs/api.md).
 *
 * All run on a worker, with the part pinned and at least indexed; they look at published
 * planes only and say in the answer what is still loading. Scratch memory is the task's arena.
 * Times are session picoseconds. Errors: XP_BAD_REQUEST with a sentence for arguments.
 */
#ifndef SHARD_QUERY_H
#define SHARD_QUERY_H

#include "shard/out.h"
#include "shard/store/part.h"

/* Which rows a request is about: NULL/0 means all. */
struct query_rows {
    const uint32_t *lines; /* numbers of lines, ascending */
    size_t n;
};

#define QUERY_TRACKS_MAX 10000

struct query_tracks {
    struct xp_span q; /* words as in a search, in the name of the plane or the line; empty: all */
    uint64_t first;   /* rows (planes and lines) that were on the pages before */
    uint32_t limit;   /* rows given, 1..QUERY_TRACKS_MAX */
    struct query_rows rows; /* only these lines, and their planes */
    bool derived;           /* the derived lines too, once the part is loaded */
    bool derived_only;      /* and no others */
};
/* A page of planes and lines with lanes and spans, and the totals of all, as JSON. */
enum xp_status query_tracks(const struct part *p, const struct query_tracks *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err);

struct query_window {
    int64_t t0_ps, t1_ps; /* t0 < t1; both 0: the whole profile */
    uint32_t px;          /* 1 .. 16384 */
    uint32_t max_bytes;   /* of the answer before compression; 4 KiB .. 4 MiB, 0: 65536 */
    struct query_rows rows;
};
/* proto/window.proto */
enum xp_status query_window(const struct part *p, const struct query_window *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err);

/* One event by id (its offset), with all its arguments and flow links, as JSON. */
enum xp_status query_event(const struct part *p, uint64_t id, struct xp_arena *scratch,
                           struct out *out, struct xp_error *err);
/* dir -1 / +1: the event before / after it on its line (any lane: in order of begin). */
enum xp_status query_neighbour(const struct part *p, uint64_t id, int dir, struct xp_arena *scratch,
                               struct out *out, struct xp_error *err);

struct query_search {
    struct xp_span q;     /* grammar: words are substrings (case folded, ASCII) of the name; name:x,
                             -x, line:x, plane:x, dur>10us, dur<1ms */
    int64_t after_ps;     /* hits beginning after this time come first... */
    uint64_t after_id;    /* ...or after this event among equal begins; 0: from the start */
    int dir;              /* +1 next, -1 previous */
    uint32_t limit;       /* hits returned, 1..1000 */
    int64_t t0_ps, t1_ps; /* both 0: whole profile */
    struct query_rows rows;
    bool derived; /* all rows: the derived ones too */
};
enum xp_status query_search(const struct part *p, const struct query_search *q,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err);

/* The values of a statistic along a line, thinned to px pixels, or, without one, the names of
 * those that its events have. As JSON. */
struct query_curve {
    int64_t t0_ps, t1_ps;   /* both 0: the whole profile */
    struct query_rows rows; /* one line of the file */
    struct xp_span stat;
    uint32_t px; /* 1 .. 4096 */
};
enum xp_status query_curve(const struct part *p, const struct query_curve *q,
                           struct xp_arena *scratch, struct out *out, struct xp_error *err);

struct query_aggregate {
    int64_t t0_ps, t1_ps;
    struct query_rows rows;
    uint32_t limit;    /* names returned, 1..1000; the rest is summed up in one row */
    bool by_name_only; /* same name on different planes is one row */
    bool derived;      /* all rows: the derived ones too */
};
/* By name: count, total, self, min, max, mean, p50, p99, as JSON. An event counts when it overlaps
 * the window; its times are clipped to the window. */
enum xp_status query_aggregate(const struct part *p, const struct query_aggregate *q,
                               struct xp_arena *scratch, struct out *out, struct xp_error *err);

#endif
