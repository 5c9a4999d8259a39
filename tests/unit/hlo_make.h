/* tests/unit/hlo_make.h - HloProtos made by hand, a message at a time.
 *
 * Messages are buffers; put_message appends one to another as a field and empties it. The makers
 * for instructions take what nearly all of them have; more fields may be added to `instr` before it
 * is put into its computation.
 */
#ifndef TESTS_HLO_MAKE_H
#define TESTS_HLO_MAKE_H

#include "shard/hlo/hlo.h"

struct hlo_make {
    struct xp_buf module, comp, instr, buffers;
};

void hlo_make_init(struct hlo_make *k);
void hlo_make_fini(struct hlo_make *k);

void put_text(struct xp_buf *b, uint32_t field, const char *text);
void put_message(struct xp_buf *b, uint32_t field, struct xp_buf *message);
/* An array with the layout that counts its dimensions down; dims ends with -1. */
void put_array(struct xp_buf *b, uint32_t field, uint32_t type, const int64_t *dims);

/* Begins an instruction in k->instr: id, name, opcode, an f32 array of dims, operands up to -1. */
void begin_instr(struct hlo_make *k, int64_t id, const char *name, const char *opcode,
                 const int64_t *dims, const int64_t *operands);
void end_instr(struct hlo_make *k);
/* Both. */
void add_instr(struct hlo_make *k, int64_t id, const char *name, const char *opcode,
               const int64_t *dims, const int64_t *operands);
void add_parameter(struct hlo_make *k, int64_t id, const char *name, int64_t number,
                   const int64_t *dims);
void end_comp(struct hlo_make *k, int64_t id, const char *name, int64_t root);
/* The whole HloProto, in memory of a. */
struct xp_span end_module(struct hlo_make *k, const char *name, int64_t entry, struct xp_arena *a);

#define DIMS(...) ((const int64_t[]){__VA_ARGS__, -1})
#define NO_DIMS ((const int64_t[]){-1})
#define OPS(...) ((const int64_t[]){__VA_ARGS__, -1})
#define NO_OPS ((const int64_t[]){-1})

#endif
