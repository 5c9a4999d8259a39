/* shard/tools/tpu_counters_int.h - the counters' tables; for tpu_counters.c and tpu_metrics.c. */
#ifndef SHARD_TPU_COUNTERS_INT_H
#define SHARD_TPU_COUNTERS_INT_H

#include "shard/tools/tpu_counters.h"

/* Places on the chip that have the counters of a list; see tpu_counters.def. */
struct tpu_block {
    enum tpu_chip chip;
    const char *prefix;
    int list;
    uint64_t base;
    uint32_t outer, ostride, inner, istride;
    bool by_name;
};

enum tpu_block_id {
#define BLOCK(id, chip, prefix, list, base, outer, ostride, inner, istride, by_name) BLOCK_##id,
#include "shard/tools/tpu_counters.def"
    BLOCK_COUNT
};

extern const struct tpu_block tpu_blocks[BLOCK_COUNT];

/* The number of a counter with this offset at place (o, i) of the block. */
static inline uint64_t tpu_counter_id(const struct tpu_block *k, uint32_t o, uint32_t i,
                                      int32_t offset)
{
    return k->base + (uint64_t)o * k->ostride + (uint64_t)i * k->istride +
           (uint64_t)(int64_t)offset;
}

#endif
