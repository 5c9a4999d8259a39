/* shard/tools/op_traits.h - what an HLO op's text and its place in the model tell of it. */
#ifndef SHARD_OP_TRAITS_H
#define SHARD_OP_TRAITS_H

#include "shard/stats/op_stats.h"

/* Computed again to save memory. */
bool op_is_remat(const struct op_metrics *m);
/* XLA hands it back to the host's framework. */
bool op_is_outside(const struct op_metrics *m);
/* Who takes part in a collective, as its text says: "{{0,1},{2,3}}", "[2,4]<=[8]"; pairs of source
 * and target of a permute. Empty: not told. */
struct xp_span op_replica_groups(const struct op_metrics *m);

#endif
