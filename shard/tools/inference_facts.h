/* shard/tools/inference_facts.h - a host's requests and batches (inference.h) as facts (facts.h).
 */
#ifndef SHARD_INFERENCE_FACTS_H
#define SHARD_INFERENCE_FACTS_H

#include "shard/tools/facts.h"
#include "shard/tools/inference.h"

enum xp_status inference_facts_map(const struct tool_host *host, const struct tool_args *args,
                                   struct xp_arena *a, struct xp_span *partial,
                                   struct xp_error *err);
/* The same of a file that XProf would not read, as far as it goes: for reports. */
enum xp_status inference_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                       struct xp_arena *a, struct xp_span *partial,
                                       struct xp_error *err);
/* As if inference_read had read the host's profile. Hosts in the order of the request. */
enum xp_status inference_facts_add(struct inference *inf, struct facts *f, struct xp_error *err);

#endif
