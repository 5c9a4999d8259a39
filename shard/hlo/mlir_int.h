/* shard/hlo/mlir_int.h - what the reader of MLIR bytecode and its printer share. */
#ifndef SHARD_HLO_MLIR_INT_H
#define SHARD_HLO_MLIR_INT_H

#include "shard/hlo/mlir_text.h"

#define MLIR_NONE UINT32_MAX

/* Reads and never past the end: what is not there is 0 and sets bad. */
struct mlir_in {
    const uint8_t *p, *end;
    bool bad;
};
uint64_t mlir_varint(struct mlir_in *in);
uint32_t mlir_index(struct mlir_in *in, uint32_t n); /* a varint below n; else bad, and 0 */
uint8_t mlir_byte(struct mlir_in *in);
struct xp_span mlir_bytes(struct mlir_in *in, uint64_t n);

struct mlir_entry { /* an attribute or a type */
    struct xp_span bytes;
    bool encoded; /* by the builtin dialect; else it is text that ends with a 0 */
};

struct mlir_value {
    uint32_t type;
    uint32_t label; /* %3, or %arg3 */
    bool argument;
};

struct mlir_op {
    uint32_t name, attrs;               /* attrs: MLIR_NONE for none */
    uint32_t first_result, nresults;    /* values */
    uint32_t operands, noperands;       /* in refs: values */
    uint32_t first_region, last_region; /* regions and operations are lists */
    uint32_t nregions, next;
};

struct mlir_region {
    uint32_t parent, first_op, last_op, next;
    uint32_t first_argument, narguments; /* values */
    bool has_block;
};

struct mlir {
    const struct mlir_options *opt;
    struct xp_span *strings, *dialects, *op_names; /* op_names: dialect and name, by ops[].name */
    uint32_t *op_dialects;
    struct mlir_entry *attrs, *types;
    struct mlir_value *values;
    struct mlir_op *ops;
    struct mlir_region *regions; /* the first one holds the whole */
    uint32_t *refs;
    uint32_t nstrings, ndialects, nop_names, nattrs, ntypes, nvalues, nops, nregions, nrefs;
};

enum xp_status mlir_read(struct xp_span bytecode, struct xp_arena *a, struct mlir *m,
                         struct xp_error *err);

/* Print an attribute or a type; false when it is of a kind that is not known. */
bool mlir_put_attr(const struct mlir *m, uint32_t attr, struct xp_buf *out, int depth);
bool mlir_put_type(const struct mlir *m, uint32_t type, struct xp_buf *out, int depth);
/* {a = 1, b}, after a space; nothing for no attribute. `but` is left out. */
bool mlir_put_dict(const struct mlir *m, uint32_t attr, const char *head, const char *but,
                   struct xp_buf *out);
/* The text of a string attribute of the dictionary. */
bool mlir_dict_string(const struct mlir *m, uint32_t dict, const char *name, struct xp_span *s);

#endif
