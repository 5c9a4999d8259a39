/* shard/hlo/hlo_text.h - a module, or a piece of it, in XLA's text syntax.
 *
 * The rules are those of XLA's printer (HloModule::ToString, HloInstruction::ToString), byte by
 * byte: what it makes of a module that it cannot load is ours to say, in plain words, by
 * hlo_text_check.
 *
 * Output     Appended to `out`, whose limit counts; `flush`, if any, is called between
 *            instructions, so that the owner of the buffer may move it on.
 * Scratch    Orders and literals are laid out in `scratch`; nothing of it is needed afterwards.
 *            A literal that does not fit is printed as {...}.
 */
#ifndef SHARD_HLO_TEXT_H
#define SHARD_HLO_TEXT_H

#include "shard/hlo/hlo.h"

struct hlo_text_options {
    bool percent;         /* %name */
    bool program_shape;   /* signature after a computation's name */
    bool large_constants; /* of more than 10 elements */
    bool metadata;        /* metadata={...}, the module's table of stack frames */
    bool operand_shapes;
    bool backend_config;
    bool infeed_config;     /* infeed_config and outfeed_config */
    bool called;            /* names of called computations */
    bool controls;          /* control-predecessors */
    uint32_t operand_index; /* a comment with the index before each so many operands; 0: none */
};

/* XLA's HloPrintOptions() and HloPrintOptions::ShortParsable(). */
extern const struct hlo_text_options hlo_text_default, hlo_text_short;

struct hlo_text {
    const struct hlo_module *m;
    struct hlo_text_options opt;
    struct xp_arena *scratch;
    struct xp_buf *out;
    void (*flush)(void *ctx); /* may be NULL */
    void *ctx;
    /* Numbers that stack frames go by in the text, by (file's number - 1); NULL: the file's own.
     * hlo_text_module sets it for itself: XLA keeps only the frames in use, in order of first use.
     */
    const uint32_t *frame_numbers;
};

/* XP_INTERNAL with a sentence when XLA could not make a module of it. */
enum xp_status hlo_text_check(const struct hlo_module *m, struct xp_error *err);

/* The whole module. XP_BUSY when scratch is spent. */
enum xp_status hlo_text_module(const struct hlo_text *t, struct xp_error *err);
/* name = shape opcode(operands), attributes; without a line end. */
void hlo_text_instr(const struct hlo_text *t, const struct hlo_instr *in);

/* The attributes of an instruction, each on its own: attribute i is the text from start[i] to
 * start[i + 1] of out. At most HLO_ATTRS_MAX; what would follow is part of the last. */
#define HLO_ATTRS_MAX 48
struct hlo_attrs {
    size_t start[HLO_ATTRS_MAX + 1];
    uint32_t n;
    const char *separator; /* written before each; "" */
};
void hlo_text_attrs(const struct hlo_text *t, const struct hlo_instr *in, struct hlo_attrs *attrs);

/* A literal without its shape on one line; {...} when it is not what its shape says. */
void hlo_text_literal(const struct hlo_text *t, struct xp_span literal);
void hlo_text_literal_lines(const struct hlo_text *t, struct xp_span literal); /* a row a line */

/* The order in which XLA prints computations: callees first. Room for m->ncomps; the count is
 * returned, HLO_NONE when scratch is spent. */
uint32_t hlo_comp_order(const struct hlo_module *m, struct xp_arena *scratch, uint32_t *order);
/* The same for the instructions of a computation: its schedule, or operands first. */
uint32_t hlo_instr_order(const struct hlo_module *m, const struct hlo_comp *c,
                         struct xp_arena *scratch, uint32_t **order);

/* The root of an async operation's computation if parameters are all that is beside it, so that
 * XLA prints `dot-start(...)` for async-start; NULL otherwise. */
const struct hlo_instr *hlo_async_wrapped(const struct hlo_module *m, const struct hlo_instr *in);

/* absl::CEscape. */
void hlo_text_escape(struct xp_buf *out, struct xp_span s);
/* "f32" or "loop fusion": HloInstruction::ToCategory. */
void hlo_text_category(const struct hlo_module *m, const struct hlo_instr *in, struct xp_buf *out);
/* OpMetadata as it stands between the braces. */
void hlo_text_metadata(const struct hlo_meta *meta, struct xp_buf *out);
/* A name as XLA makes it its own: other characters than [A-Za-z0-9_.-] become _, and a name that is
 * a type's gets one more. */
void hlo_text_name(struct xp_buf *out, struct xp_span name);
/* The bytes of backend_config, also when the module keeps them in a table. */
struct xp_span hlo_backend_config(const struct hlo_module *m, const struct hlo_instr *in);
/* The same as XLA prints it: without a member that it takes out when it loads a GPU module. */
void hlo_text_backend_config(struct xp_buf *out, struct xp_span config);
/* Braces balance and close at the end: XLA prints such a text without quotes. */
bool hlo_lexes_as_dict(struct xp_span s);

#endif
