/* shard/decode/xspace_merge.h - XSpaces that stand one after the other, made one.
 *
 * Messages that are written behind each other are read as one whose repeated fields hold those of
 * all: hosts, errors, warnings and planes of every record. What is left to do is to join planes of
 * one name, as a capture that is written in pieces has each device's again and again, and to drop
 * what a host, an error or a warning says twice.
 *
 * Planes     Metadata of a later plane that is already there (stats: by name; events: by all that
 *            is said but the id) is taken for the same; else it keeps its id, or gets a free one
 *            when another has that. Ids in events and stats follow. Lines of one id and name become
 * one, its times count from the earliest part with events; one that is more than a hundred days
 *            away from that stays apart. Of plane stats the first holds.
 *            The joined plane is added at the end; those that it is made of become fields that
 *            readers step over (number 15), in place.
 * Threads    None.
 * Memory     scratch, as much as the metadata of planes that are joined; besides, up to four
 *            buffers of at most piece_max bytes, each for one entry of metadata or one event.
 * Errors     XP_CORRUPT when a plane that is to be joined is malformed, XP_BUSY when scratch is
 *            spent or an entry is larger than piece_max, what `add` and `set` returned; what was
 * written then is of no use.
 */
#ifndef XSPACE_MERGE_H
#define XSPACE_MERGE_H

#include "lib/base/arena.h"
#include "lib/base/status.h"

struct xspace_merge_out {
    void *ctx;
    /* Behind what is there: first behind xspace. */
    enum xp_status (*add)(void *ctx, struct xp_span bytes, struct xp_error *err);
    /* Over what is there: of xspace, or added before. */
    enum xp_status (*set)(void *ctx, uint64_t at, struct xp_span bytes, struct xp_error *err);
};

/* xspace stays readable, and what is set may show in it. */
enum xp_status xspace_merge(struct xp_span xspace, struct xp_arena *scratch, size_t piece_max,
                            const struct xspace_merge_out *out, struct xp_error *err);

#endif
