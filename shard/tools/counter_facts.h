/* shard/tools/counter_facts.h - the partial of the tools about TPU counters: each host's samples
 * (counter_samples.h) of the chips that we know, as facts (facts.h).
 *
 *     while (counter_facts_device(f, &d))
 *         while (counter_facts_sample(f, a, &s))
 *             ...
 */
#ifndef SHARD_COUNTER_FACTS_H
#define SHARD_COUNTER_FACTS_H

#include "shard/tools/facts.h"
#include "shard/tools/tpu_counters.h"

enum xp_status counter_facts_map(const struct tool_host *host, const struct tool_args *args,
                                 struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* The same of a file that XProf would not read, as far as it goes: for reports. */
enum xp_status counter_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                     struct xp_arena *a, struct xp_span *partial,
                                     struct xp_error *err);

/* The facts alone, for a tool that has more to say. */
enum xp_status counter_facts_put(struct facts_out *f, const struct part *p, struct xp_arena *a,
                                 struct xp_error *err);

struct counter_facts_device {
    int64_t id; /* told by the plane, or the number in its name */
    bool id_told;
    struct xp_span type;
    enum tpu_chip chip;
};

/* Samples are lines "counters_<kernel>"; "counters_0" is of no kernel in particular: XProf takes
 * the first op. Other lines have no names for it. */
struct counter_facts_sample {
    int64_t id; /* of the line */
    struct xp_span kernel;
    int64_t kernel_ps;   /* of the op that it is named by; 0: it is not */
    int64_t duration_ps; /* of the longest event */
    struct tpu_counter_values values;
};

bool counter_facts_device(struct facts *f, struct counter_facts_device *d);
bool counter_facts_sample(struct facts *f, struct xp_arena *a, struct counter_facts_sample *s);

#endif
