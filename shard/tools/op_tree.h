/* shard/tools/op_tree.h - the tree of the op profile: where device time went, by program, category,
 * or the framework's names.
 *
 * Ops are added one by one and sum up in the nodes above them; op_tree_finish puts children in
 * order, cuts them, and names the groups of duplicates. All of it lives in the arena.
 */
#ifndef SHARD_OP_TREE_H
#define SHARD_OP_TREE_H

#include "shard/stats/op_stats.h"

enum op_grouping { OP_BY_PROGRAM, OP_BY_CATEGORY, OP_BY_PROVENANCE };

struct op_node {
    struct xp_span name;
    const struct op_metrics *op; /* of an instruction; NULL: a group */
    bool duplicates;             /* a group of one op's duplicates, told by op, the first child */
    struct op_metrics sum;       /* numbers only */
    struct op_node **children;
    uint32_t nchildren, cap;
    uint32_t all_children; /* before cutting */
};

struct op_tree {
    struct xp_arena *a;
    enum op_grouping by;
    const struct op_stats *stats;
    struct op_node *root;
    struct op_tree_slot *slots; /* groups by (parent, kind, name) */
    size_t mask, n;
};

enum xp_status op_tree_build(struct op_tree *t, const struct op_stats *s, enum op_grouping by,
                             bool idle, struct xp_arena *a, struct xp_error *err);

#endif
