/* shard/tools/report_graph.h - the parts of the report graph_viewer: which ops of a module are
 * drawn, what is said of the edges between them, where layouts change, what bears on fusion.
 *
 * Walk       The neighbourhood of an op, operands and users by turns, within a budget of nodes. Ops
 *            that are expanded have their operands and users, too; ops that are opened (fusions,
 *            loops, branches, calls) what they call, in a cluster of their own. Each of these adds
 *            some nodes to the budget; there are never more than GRAPH_NODES_MAX.
 * Facts      What a map puts and a report reads has one order; each pair of functions stands
 *            beside the other in its file.
 */
#ifndef SHARD_REPORT_GRAPH_H
#define SHARD_REPORT_GRAPH_H

#include "shard/hlo/hlo_layout.h"
#include "shard/report/report.h"
#include "shard/tools/facts.h"

#define GRAPH_NODES 60
#define GRAPH_NODES_MAX 400
#define GRAPH_RADIUS 2
#define GRAPH_RADIUS_MAX 20
#define GRAPH_GROW 40   /* nodes that an op that is expanded may add */
#define GRAPH_INSIDE 60 /* that one that is opened may */
#define GRAPH_EDGES_MAX 10000
#define GRAPH_SHAPE_MAX 1024

enum graph_edge_kind { GRAPH_OPERAND, GRAPH_CONTROL, GRAPH_PARAMETER };

struct graph_node {
    uint32_t instr, distance;
    uint32_t within; /* node that calls the computation it is in; HLO_NONE: not drawn so */
    bool opened;     /* what it calls is drawn */
};

struct graph {
    const struct hlo_module *m;
    struct xp_arena *a;
    uint64_t *self_ps;        /* by instruction; 0: it did not run as an op of its own */
    uint32_t *place;          /* by instruction: its node + 1 */
    uint32_t *opened_by;      /* by computation: the node + 1 that it was opened for last */
    struct graph_node *nodes; /* the op in question first */
    uint32_t nnodes, limit, radius;
    struct hlo_layouts layouts;
};

/* False: no memory. */
bool graph_init(struct graph *g, const struct hlo_module *m, struct xp_arena *a);
/* radius= nodes= expand= inside= merge_fusion= */
void graph_walk(struct graph *g, uint32_t center, const struct tool_args *args);
/* Members of the run that are not drawn. */
uint32_t graph_missing(const struct graph *g, struct hlo_run run);
/* Instructions of the computations that it calls and that can be drawn inside of it. */
uint32_t graph_inner(const struct graph *g, const struct hlo_instr *in);

/* f32[8]{0:T(256)}; what is too long is left out. */
void graph_put_shape(struct facts_out *f, const struct graph *g, uint32_t shape, bool layout_only);
void graph_put_source(struct facts_out *f, const struct graph *g, const struct hlo_instr *in);

/* An op as tables have it. */
struct graph_op {
    struct xp_span name, opcode, shape, comp, framework, source;
    uint64_t self_ps;
};
void graph_put_op(struct facts_out *f, const struct graph *g, uint32_t instr);
void graph_get_op(struct facts *f, struct graph_op *o);
#define GRAPH_OP_CELLS 8
extern const struct report_column graph_op_columns[GRAPH_OP_CELLS];
void graph_op_cells(const struct graph_op *o, uint64_t program, struct report_cell *c);
struct report_cell graph_text(struct xp_span s); /* n/a when it is empty */
/* "order, tiles"; bits of enum hlo_layout_change. */
struct xp_span graph_changes_text(uint32_t changes);

/* Edges between nodes. */
struct graph_edges;
enum xp_status graph_put_edges(struct facts_out *f, struct graph *g, struct xp_error *err);
struct graph_edges *graph_get_edges(struct facts *f, uint64_t nnodes, struct xp_arena *a);
void graph_edges_table(struct report *r, const struct graph_edges *e, const struct graph_op *nodes,
                       uint64_t program);

/* Where layouts change in the whole module. */
struct graph_layouts;
enum xp_status graph_put_layouts(struct facts_out *f, struct graph *g, struct xp_error *err);
struct graph_layouts *graph_get_layouts(struct facts *f, struct xp_arena *a);
void graph_layouts_write(struct report *r, const struct graph_layouts *l, uint64_t program);

/* What can be told of an op and its neighbours that bears on fusion. */
struct graph_facts;
void graph_put_facts(struct facts_out *f, struct graph *g, uint32_t center);
struct graph_facts *graph_get_facts(struct facts *f, struct xp_arena *a);
void graph_facts_table(struct report *r, const struct graph_facts *v, uint64_t program);

/* All ops of the module, where ops=1 asks for them. */
struct graph_ops;
void graph_put_ops(struct facts_out *f, const struct graph *g, const struct tool_args *args);
struct graph_ops *graph_get_ops(struct facts *f, struct xp_arena *a);
void graph_ops_table(struct report *r, const struct graph_ops *v, uint64_t program);

/* All operands and users of the op in question, drawn or not. */
struct graph_near;
void graph_put_near(struct facts_out *f, const struct graph *g, uint32_t center);
struct graph_near *graph_get_near(struct facts *f, struct xp_arena *a);
void graph_near_table(struct report *r, const struct graph_near *v, uint64_t program);

#endif
