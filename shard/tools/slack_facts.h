/* shard/tools/slack_facts.h - a host's transfers between slices (slack.h) as facts (facts.h). */
#ifndef SHARD_SLACK_FACTS_H
#define SHARD_SLACK_FACTS_H

#include "shard/tools/facts.h"
#include "shard/tools/slack.h"

enum xp_status slack_facts_map(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* The same of a file that XProf would not read, as far as it goes: for reports. */
enum xp_status slack_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                   struct xp_arena *a, struct xp_span *partial,
                                   struct xp_error *err);
/* Adds the host's; *any: its threads have events of the transfers' library at all. */
enum xp_status slack_facts_add(struct slack *s, struct facts *f, bool *any, struct xp_error *err);

#endif
