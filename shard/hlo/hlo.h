/* shard/hlo/hlo.h - one HLO module, as a profile carries it, decoded once.
 *
 * hlo_decode turns the bytes of an HloProto into tables: computations, instructions, shapes,
 * users, the schedule, stack frames, and the buffer assignment. Whatever is rare (windows, dot
 * dimensions, literals, shardings, ...) stays encoded in instr->raw and is read when asked for,
 * with hlo_get_int, hlo_get_span, hlo_ints_open and hlo_spans_open.
 *
 * Ids        Everything is named by its index in the table of its kind; HLO_NONE stands for "not
 *            there": an id in the file that nothing has, a computation without a root. Whoever
 *            follows an index that may be HLO_NONE checks it. Nothing here says that operands come
 *            before users, or that calls do not form a ring: walk with a mark or a depth limit.
 * Ownership  All of it lives in the arena given, immutable from then on; spans point into the
 *            bytes decoded, which must live as long.
 * Errors     XP_CORRUPT with the offset in the bytes, XP_TOO_LARGE, XP_BUSY (arena). Unknown
 *            opcodes and element types are no error: HLO_OP_UNKNOWN keeps its text.
 * Bounds     Memory is at most some 250 times the bytes (instructions without any field are the
 *            worst case), charged to the arena; tuples nest HLO_DEPTH_MAX deep; no recursion.
 * Threads    A decoded module may be read from any thread.
 */
#ifndef SHARD_HLO_H
#define SHARD_HLO_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/pb_wire.h"
#include "lib/base/status.h"

#define HLO_NONE UINT32_MAX
#define HLO_BYTES_MAX ((size_t)1 << 30)
#define HLO_DEPTH_MAX 100 /* of tuples; protobuf's own parsers stop there */

/* --- tables of names --- */

enum hlo_opcode {
    HLO_OP_UNKNOWN,
#define X(name, text) HLO_OP_##name,
#include "shard/hlo/opcodes.def"
#undef X
    HLO_OP_COUNT
};

enum hlo_opcode hlo_opcode_of(struct xp_span text);
/* Works on each element by itself, whoever asks; copies, constants, map and rng depend on who. */
bool hlo_opcode_elementwise(enum hlo_opcode op);
const char *hlo_opcode_text(enum hlo_opcode op); /* "unknown" for HLO_OP_UNKNOWN */

/* PrimitiveType, by its number in the file. */
enum hlo_type {
#define X(name, number, text, bits) HLO_TYPE_##name = number,
#include "shard/hlo/types.def"
#undef X
};

const char *hlo_type_text(uint32_t type); /* "f32"; "unknown" */
/* Bits of one element; 0 for tuples, tokens, opaque and unknown types. */
uint32_t hlo_type_bits(uint32_t type);

/* --- shapes --- */

struct hlo_run { /* n entries from at of a table */
    uint32_t at, n;
};

struct hlo_shape {
    uint32_t type;           /* enum hlo_type, or what the file says */
    uint32_t parent;         /* tuple that holds it, or HLO_NONE */
    struct hlo_run children; /* of a tuple, in module->shapes */
    struct hlo_run dims;     /* in module->ints */
    struct hlo_run dynamic;  /* in module->ints, 0 or 1 each; may be shorter than dims */
    struct hlo_run minor;    /* minor_to_major, in module->ints */
    struct xp_span layout;   /* LayoutProto: tiles and what else is rare */
    bool has_layout;
    int64_t memory_space; /* colour: 0 HBM, 1 VMEM, ... */
};

/* --- the module --- */

struct hlo_instr {
    int64_t id;
    struct xp_span raw; /* HloInstructionProto */
    struct xp_span name, opcode_text;
    struct xp_span metadata; /* OpMetadata: see hlo_meta_read */
    enum hlo_opcode opcode;
    uint32_t comp;            /* it belongs to */
    uint32_t shape;           /* in module->shapes */
    struct hlo_run operands;  /* module->refs: instructions */
    struct hlo_run controls;  /* module->refs: instructions that must run before */
    struct hlo_run called;    /* module->refs: computations */
    struct hlo_run users;     /* module->refs: instructions, each once, in file order */
    int64_t parameter_number; /* of a parameter */
    int64_t tuple_index;      /* of a get-tuple-element */
};

struct hlo_comp {
    int64_t id, root_id;
    struct xp_span raw, name, execution_thread;
    struct hlo_run instrs;   /* module->instrs */
    struct hlo_run schedule; /* module->refs: instructions in order; n == 0: none */
    uint32_t root;           /* instruction or HLO_NONE */
    uint32_t fused_by;       /* the fusion instruction that calls it, or HLO_NONE */
    bool scheduled;          /* the schedule names it (perhaps without instructions) */
    bool is_fusion;          /* is_fusion_computation, as the file says */
};

struct hlo_frame {             /* stack frame; ids count from 1 in metadata.stack_frame_id */
    uint32_t location, parent; /* as in the file: from 1, 0 is none */
};

struct hlo_location {
    uint32_t file, function; /* as in the file: from 1, 0 is none */
    int32_t line, end_line, column, end_column;
};

struct hlo_buffer { /* LogicalBufferProto */
    int64_t id, size, color, instr_id;
    struct xp_span instr_name;  /* of older writers */
    uint32_t instr;             /* defines it, by instr_id; HLO_NONE unknown */
    struct hlo_run shape_index; /* module->ints */
};

struct hlo_assigned {
    uint32_t buffer; /* module->buffers; HLO_NONE: an id nothing has */
    int64_t buffer_id, offset, size;
};

struct hlo_allocation {
    int64_t index, size, color, parameter_number;
    struct hlo_run parameter_shape_index; /* module->ints */
    struct hlo_run assigned;              /* module->assigned */
    bool is_thread_local, tuple, entry_parameter, constant, maybe_live_out, parameter_aliased;
};

enum hlo_heap_kind { HLO_HEAP_ALLOC, HLO_HEAP_FREE, HLO_HEAP_SHARE };

struct hlo_heap_event {
    uint32_t kind; /* enum hlo_heap_kind, or what the file says */
    int64_t buffer_id, share_with;
    struct xp_span comp_name, instr_name;
};

struct hlo_heap_trace {
    struct hlo_run events; /* module->heap_events */
    int64_t allocation_index;
    bool whole_module;
};

struct hlo_id { /* a row of an index sorted by (id, at) */
    int64_t id;
    uint32_t at;
};

struct hlo_module {
    struct xp_span bytes, raw; /* HloProto, HloModuleProto */
    struct xp_span name, entry_name;
    int64_t id;
    uint32_t entry; /* computation or HLO_NONE */
    bool has_module, has_schedule, has_buffer_assignment;
    uint32_t dangling; /* ids in the file that nothing has */
    struct hlo_comp *comps;
    struct hlo_instr *instrs;
    struct hlo_shape *shapes;
    int64_t *ints;
    uint32_t *refs;
    uint32_t ncomps, ninstrs, nshapes, nints, nrefs;
    struct hlo_id *comp_ids, *instr_ids, *buffer_ids;
    /* stack frames */
    struct xp_span *file_names, *function_names;
    struct hlo_location *locations;
    struct hlo_frame *frames;
    uint32_t nfile_names, nfunction_names, nlocations, nframes;
    /* buffer assignment */
    struct hlo_buffer *buffers;
    struct hlo_assigned *assigned;
    struct hlo_allocation *allocations;
    struct hlo_heap_trace *heap_traces;
    struct hlo_heap_event *heap_events;
    uint32_t nbuffers, nassigned, nallocations, nheap_traces, nheap_events;
};

/* bytes stay the caller's and must live as long as the arena. */
enum xp_status hlo_decode(struct xp_span bytes, struct xp_arena *a, struct hlo_module **out,
                          struct xp_error *err);

/* By id; HLO_NONE when there is none. The first in file order wins among equals. */
uint32_t hlo_instr_by_id(const struct hlo_module *m, int64_t id);
uint32_t hlo_comp_by_id(const struct hlo_module *m, int64_t id);
uint32_t hlo_buffer_by_id(const struct hlo_module *m, int64_t id);
/* By name, looking at all of them. */
uint32_t hlo_instr_by_name(const struct hlo_module *m, struct xp_span name);
uint32_t hlo_comp_by_name(const struct hlo_module *m, struct xp_span name);

static inline const struct hlo_instr *hlo_instr_at(const struct hlo_module *m, uint32_t i)
{
    return i < m->ninstrs ? &m->instrs[i] : NULL;
}

static inline const struct hlo_comp *hlo_comp_at(const struct hlo_module *m, uint32_t i)
{
    return i < m->ncomps ? &m->comps[i] : NULL;
}

/* The k-th operand, or NULL when it is not there. */
static inline const struct hlo_instr *hlo_operand(const struct hlo_module *m,
                                                  const struct hlo_instr *in, uint32_t k)
{
    return k < in->operands.n ? hlo_instr_at(m, m->refs[in->operands.at + k]) : NULL;
}

static inline uint32_t hlo_index_of(const struct hlo_module *m, const struct hlo_instr *in)
{
    return (uint32_t)(in - m->instrs);
}

/* --- shape arithmetic; a shape is an index in m->shapes --- */

/* Elements of an array; of a tuple the sum over its leaves. INT64_MAX when it overflows. */
int64_t hlo_shape_elements(const struct hlo_module *m, uint32_t shape);
/* Bytes without the padding of tiles, tuples summed over leaves plus pointer_bytes a member (XLA
 * counts a tuple as its table of pointers and 8 bytes each; give 0 to count data alone). */
int64_t hlo_shape_bytes(const struct hlo_module *m, uint32_t shape, int64_t pointer_bytes);
/* The part of a tuple that index names; HLO_NONE when there is no such part. */
uint32_t hlo_subshape(const struct hlo_module *m, uint32_t shape, const int64_t *index, size_t n);
/* f32[32,16]{1,0:T(8,128)S(1)}, tuples (f32[], s32[2]); without the braces unless layout. */
void hlo_shape_text(const struct hlo_module *m, uint32_t shape, bool layout, struct xp_buf *out);
/* An array of exactly one element. */
bool hlo_shape_is_scalar_like(const struct hlo_module *m, uint32_t shape);

/* --- what stays encoded --- */

struct hlo_meta { /* OpMetadata */
    struct xp_span op_type, op_name, source_file, deduplicated_name, scheduling_name;
    int32_t source_line, source_end_line, source_column, source_end_column, stack_frame_id;
};
struct hlo_meta hlo_meta_read(struct xp_span metadata);

/* The members of a repeated integer field of a message, packed or not. */
struct hlo_ints {
    struct xp_pb msg, packed;
    uint32_t field;
};
struct hlo_ints hlo_ints_open(struct xp_span msg, uint32_t field);
bool hlo_ints_next(struct hlo_ints *it, int64_t *v);

/* The next occurrence of a message or string field; false at the end. */
struct hlo_spans {
    struct xp_pb msg;
    uint32_t field;
};
struct hlo_spans hlo_spans_open(struct xp_span msg, uint32_t field);
bool hlo_spans_next(struct hlo_spans *it, struct xp_span *s);

/* The last occurrence of a field, which is the one that counts; false when absent. */
bool hlo_get_span(struct xp_span msg, uint32_t field, struct xp_span *s);
int64_t hlo_get_int(struct xp_span msg, uint32_t field, int64_t absent);

/* Field numbers of HloInstructionProto, for the readers above over instr->raw. */
enum hlo_field {
#define X(name, number) HLO_F_##name = number,
#include "shard/hlo/instr_fields.def"
#undef X
};

/* --- source positions --- */

/* The frames of a stack, innermost first, "file:line:column" each, joined by newlines; what is not
 * known is "" or -1. At most HLO_STACK_MAX frames, so that a ring ends. */
#define HLO_STACK_MAX 256
void hlo_stack_text(const struct hlo_module *m, int32_t stack_frame_id, struct xp_buf *out);

#endif
