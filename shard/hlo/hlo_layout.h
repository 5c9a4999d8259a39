/* shard/hlo/hlo_layout.h - where the layout of data changes in a module, and which op calls what.
 *
 * A layout is the order of dimensions (minor to major), the tiles, and the memory space. Two arrays
 * are held against each other only where they hold the same data: operand and result of the same
 * dimensions, of a transpose through its permutation, of a reshape through its tiles, of what only
 * moves data by its memory; an operand and the parameter that it becomes in a computation that is
 * called. What computes anew has no change: its result is other data.
 * Bitcasts change nothing: they only say anew how the same bytes are to be read.
 *
 * Bounds     A look at an op takes time in its operands, results, the leaves of tuples and the
 *            bytes of layouts; what has more than 32 dimensions is not compared. All looks together
 * take HLO_LAYOUT_WORK of these, after which there are no changes any more and `spent` says so.
 */
#ifndef SHARD_HLO_LAYOUT_H
#define SHARD_HLO_LAYOUT_H

#include "shard/hlo/hlo.h"

enum hlo_layout_change {
    HLO_LAYOUT_ORDER = 1, /* of dimensions, minor to major */
    HLO_LAYOUT_TILES = 2,
    HLO_LAYOUT_SPACE = 4, /* the memory that it is in */
    HLO_LAYOUT_DIMS = 8   /* a reshape that puts the elements into other tiles */
};

/* Of two arrays of the same dimensions; 0 where one has no layout, or dimensions differ. Where
 * the types differ only the first tiles are compared: further ones pack what is small. */
uint32_t hlo_layout_compare(const struct hlo_module *m, uint32_t x, uint32_t y);

struct hlo_relayout {
    uint32_t changes;  /* enum hlo_layout_change; 0: none */
    uint32_t operand;  /* its number, or HLO_NONE: only what it calls changes a layout */
    uint32_t from, to; /* shapes, arrays both */
    uint32_t inside;   /* op of a fusion's computation that changes a layout, or HLO_NONE */
    bool boundary;     /* `to` is the parameter that the operand becomes */
};

#define HLO_LAYOUT_WORK ((int64_t)50 << 20)

struct hlo_layouts {
    const struct hlo_module *m;
    uint32_t *parameters; /* of a computation: number n is at instrs.at + n; HLO_NONE */
    uint32_t *movers;     /* by computation: its largest op that moves data into another order */
    int64_t work;         /* that is left */
    bool spent;
};

/* False: no memory. */
bool hlo_layouts_make(const struct hlo_module *m, struct xp_arena *a, struct hlo_layouts *l);

/* What the op does with the layout of operand k, seen from outside; `inside` is not looked for. */
struct hlo_relayout hlo_relayout_edge(struct hlo_layouts *l, const struct hlo_instr *in,
                                      uint32_t k);
/* The change of the op: that of the operand with the most bytes, or what happens inside of a
 * fusion. */
struct hlo_relayout hlo_relayout_op(struct hlo_layouts *l, const struct hlo_instr *in);

/* Does the op do nothing but move data? */
bool hlo_opcode_moves(enum hlo_opcode op);

/* --- what is called --- */

/* The parameter of that number; HLO_NONE. */
uint32_t hlo_parameter(const struct hlo_layouts *l, uint32_t comp, int64_t number);
/* The number of the parameter that operand k becomes in the c-th computation that is called; -1:
 * it becomes none (a reduction's elements, a conditional's predicate). */
int64_t hlo_operand_parameter(const struct hlo_instr *in, uint32_t k, uint32_t c);
/* Those c for which it may become one: the first, and how many. */
struct hlo_run hlo_operand_called(const struct hlo_instr *in, uint32_t k);

#endif
