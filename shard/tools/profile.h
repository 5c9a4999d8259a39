/* shard/tools/profile.h - a part seen as XProf's converters see a profile: as one file, with planes
 * in order and the events of a line as they stand in it.
 */
#ifndef SHARD_PROFILE_H
#define SHARD_PROFILE_H

#include "shard/query/values.h"
#include "shard/tools/tool.h"

/* Whether XProf's parser would take the file: it wants the whole of it, in UTF-8. False for NULL,
 * which tolerant tools (tool.h) get for a file that could not be read at all. */
bool profile_readable(const struct part *p);
/* XP_NOT_FOUND, XProf's "No Data", if one host's file is not. */
enum xp_status profile_all_readable(const struct tool_host *hosts, size_t n, struct xp_error *err);

struct xp_span profile_plane_name(const struct part *p, const struct part_plane *pl);
bool profile_is_tpu(struct xp_span plane_name);
bool profile_is_gpu(struct xp_span plane_name);
/* The n of "/device:TPU:<n>" (or GPU), if nothing follows it. */
bool profile_ordinal(struct xp_span plane_name, uint32_t *n);
/* The first plane of that name, or NULL. */
const struct part_plane *profile_plane(const struct part *p, const char *name);

/* The events of a line that keep() wants, in file order, into an array of the arena. */
typedef bool (*profile_keep_fn)(void *ctx, const struct lane_event *ev);
enum xp_status profile_events(const struct part_line *line, profile_keep_fn keep, void *ctx,
                              struct xp_arena *a, struct lane_event **events, size_t *n,
                              struct xp_error *err);

/* Those whose name is wanted: a line without any costs half as much. */
enum xp_status profile_events_named(const struct part_line *line, const bool *wanted,
                                    uint32_t nnames, struct xp_arena *a, struct lane_event **events,
                                    size_t *n, struct xp_error *err);
/* How many. */
size_t profile_count_named(const struct part_line *line, const bool *wanted, uint32_t nnames);

/* Those that have a stat of a kind that is kept beside the events. */
enum xp_status profile_events_with(const struct part_line *line, enum stat_kind kind,
                                   struct xp_arena *a, struct lane_event **events, size_t *n,
                                   struct xp_error *err);

#endif
