/* shard/tools/tpu_counters.h - names and numbers of the hardware counters of TPU chips, and what
 * they say about how busy each unit was.
 */
#ifndef SHARD_TPU_COUNTERS_H
#define SHARD_TPU_COUNTERS_H

#include "lib/base/buf.h"
#include "shard/out.h"

enum tpu_chip { TPU_V6E, TPU_V7X, TPU_CHIPS };

/* By the name that profiles give a device ("TPU v6 Lite", "TPU v7x"); false: another chip. */
bool tpu_chip_of(struct xp_span device_type, enum tpu_chip *chip);

/* All counters of the chip as [{"name","val"},...]; "v6e" or "v7x". XP_INTERNAL with XProf's words
 * for another or none. */
enum xp_status tpu_counter_names(struct xp_span chip, struct out *out, struct xp_error *err);

/* What the counter of this lower-case name counts, in XProf's words; false: it has none. */
bool tpu_counter_words(struct xp_span name, const char **set, const char **text);

/* Values by counter number, sorted by number; each number once. */
struct tpu_counter_value {
    uint64_t id, value;
};
struct tpu_counter_values {
    const struct tpu_counter_value *v;
    size_t n;
};

struct tpu_metric {
    const char *name, *unit;
    uint32_t node; /* core, die or SparseCore */
    double achieved, peak;
};

#define TPU_METRICS_MAX 192
/* In XProf's order; returns how many. Units whose cycles were not counted are left out. */
size_t tpu_metrics(enum tpu_chip chip, const struct tpu_counter_values *values,
                   struct tpu_metric out[TPU_METRICS_MAX]);

#endif
