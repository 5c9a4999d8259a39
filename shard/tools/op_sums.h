/* shard/tools/op_sums.h - how often the ops of a table ran, how long, and how much of it eagerly.
 */
#ifndef SHARD_OP_SUMS_H
#define SHARD_OP_SUMS_H

#include "shard/stats/op_stats.h"

struct op_sums {
    uint64_t count, self_ps, eager_ps;
};

static inline struct op_sums op_sums_of(const struct op_db *db)
{
    struct op_sums s = {0};
    for (uint32_t i = 0; i < db->n; i++) {
        const struct op_metrics *m = &db->ops[i];
        s.count += m->occurrences;
        if (op_is_idle(m))
            continue;
        s.self_ps += m->self_ps;
        if (m->eager)
            s.eager_ps += m->self_ps;
    }
    return s;
}

#endif
