/* shard/tools/counter_samples.h - the samples of hardware counters in a profile.
 *
 * A line of a TPU plane that has counter events is a sample: XProf numbers it by the line.
 */
#ifndef SHARD_COUNTER_SAMPLES_H
#define SHARD_COUNTER_SAMPLES_H

#include "shard/tools/profile.h"
#include "shard/tools/tpu_counters.h"

struct counter_device {
    const struct part *part;
    const struct part_plane *plane;
    int64_t id;          /* -1: the plane does not tell */
    struct xp_span type; /* "TPU v6 Lite"; lives as long as the part */
    struct values_eye eye;
    struct xp_arena *a;
    uint64_t *meta_ids; /* by event name: number of the counter */
};

struct counter_sample {
    struct tpu_counter_values values; /* n == 0: no sample */
    int64_t duration_ps;              /* of its longest event */
};

/* plane is a TPU's. */
enum xp_status counter_device_open(struct counter_device *d, const struct part *part,
                                   const struct part_plane *plane, struct xp_arena *a,
                                   struct xp_error *err);
enum xp_status counter_sample_read(struct counter_device *d, const struct part_line *line,
                                   struct counter_sample *s, struct xp_error *err);

#endif
