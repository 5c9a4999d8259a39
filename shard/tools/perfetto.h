/* shard/tools/perfetto.h - a profile's device lines and transfers between slices as a trace for
 * Perfetto (perfetto.dev), gzipped.
 *
 * Tracks: "2. TPUs" / a plane / a line, and "Megascale" / a host thread with its MegaScale events.
 * Names and times only: no arguments, flows or counters.
 */
#ifndef SHARD_PERFETTO_H
#define SHARD_PERFETTO_H

#include "shard/tools/profile.h"

#define PERFETTO_MAX ((size_t)256 << 20) /* gzipped; XP_TOO_LARGE above */

/* The bytes go to out->text; sets the content type. */
enum xp_status perfetto_write(const struct part *p, struct xp_arena *a, struct out *out,
                              struct xp_error *err);

#endif
