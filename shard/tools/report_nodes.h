/* shard/tools/report_nodes.h - ops rolled up in a tree: by scope, by category, by program.
 *
 *   op_nodes_init(&t, a);
 *   uint32_t at = op_nodes_get(&t, 0, name);     a child of the root, made if it is new
 *   at = op_nodes_get(&t, at, name);             and its child
 *   op_nodes_add(&t, at, op);                    counts the op there and in all above
 *
 * Node 0 is the root. Parents have lower numbers than their children. At most OP_NODES_MAX; what
 * finds no place counts with its parent. Memory from the arena, and from malloc until
 * op_nodes_fini. One thread.
 */
#ifndef SHARD_REPORT_NODES_H
#define SHARD_REPORT_NODES_H

#include "shard/derive/vec.h"
#include "shard/tools/report_ops.h"

#define OP_NODES_MAX 400000

struct op_node {
    struct xp_span name;
    uint32_t parent;
    uint32_t ops;
    bool idle; /* no op: what cores did nothing */
    uint64_t self_ps, occurrences;
    double flops, hbm_bytes, time_ps; /* of ops that have none inside */
    const struct op_metrics *op;      /* the only one below it; NULL: none, or several */
};

struct op_nodes {
    const struct figures *f;
    struct vec v; /* struct op_node */
    uint32_t *slots;
    size_t mask;
    bool failed;
};

void op_nodes_init(struct op_nodes *t, const struct figures *f);
void op_nodes_fini(struct op_nodes *t);
uint32_t op_nodes_get(struct op_nodes *t, uint32_t parent, struct xp_span name);
/* "jit(f)/a/b": a chain below parent; the last one. */
uint32_t op_nodes_path(struct op_nodes *t, uint32_t parent, struct xp_span path);
void op_nodes_add(struct op_nodes *t, uint32_t at, const struct op_metrics *m);
/* Of each node's children keeps those of most self time that make up `percent` of it, in the order
 * they came; how many nodes go, and the time of those whose parent stays. Nothing can be added
 * after that. */
uint32_t op_nodes_keep_top(struct op_nodes *t, uint32_t percent, uint64_t *ps);
/* As the report's tree. */
void op_nodes_write(struct report *r, struct op_nodes *t, const char *id);

#endif
