/* shard/tools/tpu_units.h - what the units are that tpu_metrics tells of, for people. */
#ifndef SHARD_TPU_UNITS_H
#define SHARD_TPU_UNITS_H

#include <stddef.h>

struct tpu_unit {
    const char *name, *meaning;
    const char *counters; /* pattern (lib/base/regex.h) of the names of the counters behind it */
};

/* NULL: no word about it. */
const struct tpu_unit *tpu_unit_of(const char *name);

#endif
