/* shard/store/body.h - the messages of many events, read ahead.
 *
 * part_event_body reads one message at a time; a tool that wants them of every memory event reads
 * the file in pieces. Asked for in about ascending order most come out of a piece that was read
 * already; pieces grow from 4 KiB to 1 MiB while that is so.
 *
 * Scratch comes from an arena, about twice the largest message asked for. A span handed out dies
 * at the next call.
 */
#ifndef SHARD_BODY_H
#define SHARD_BODY_H

#include "shard/store/part.h"

#define BODY_EVENT_MAX ((uint64_t)16 << 20) /* larger events are not read: XP_TOO_LARGE */

struct body_reader {
    const struct part *part;
    struct xp_arena *arena;
    uint8_t *buf;
    size_t n, cap, piece;
    uint64_t at;
};

void body_open(struct body_reader *r, const struct part *part, struct xp_arena *a);

/* `at` comes from a lane; see part_event_body. */
enum xp_status body_event(struct body_reader *r, uint64_t at, struct xp_span *body,
                          struct xp_error *err);
enum xp_status body_evmeta(struct body_reader *r, const struct part_evmeta *m, struct xp_span *body,
                           struct xp_error *err);

#endif
