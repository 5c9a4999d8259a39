/* shard/derive/pick.h - the few events of a line that have statistics of some kinds, or a name of
 * some kind. Where the line is in the file's order of time, blocks without any are not unpacked: it
 * costs a pass over the names, or, without names, next to nothing. Else a pass over the events.
 */
#ifndef SHARD_PICK_H
#define SHARD_PICK_H

#include "shard/derive/derive.h"
#include "shard/derive/vec.h"

/* An event, in session time, and its line's number. */
struct plane_event {
    int64_t begin_ps, end_ps;
    uint64_t at;
    uint32_t name;
    uint32_t line;
};

/* Appends to out (struct plane_event), lane by lane. evflags (may be NULL): of the names. False
 * when memory is out. */
bool derive_pick(const struct derive_line *l, uint32_t line, uint64_t kinds,
                 const uint16_t *evflags, uint32_t nevmeta, uint16_t special, struct vec *out);

/* For qsort: (begin, longer first, file order). */
int plane_event_order(const void *a, const void *b);

#endif
