/* shard/hlo/hlo_dot.h - a computation, or what is around an instruction, as a graph in DOT.
 *
 * The graph is the one that XLA's hlo_graph_dumper draws: fusions as boxes round what they fuse,
 * constants, get-tuple-elements and the like inside the nodes that use them, colours by opcode.
 * Only the names of nodes and the rules for hovering are our own.
 *
 * The module must have passed hlo_text_check. flush, if any, is called between nodes.
 */
#ifndef SHARD_HLO_DOT_H
#define SHARD_HLO_DOT_H

#include "shard/hlo/hlo_text.h"

struct hlo_dot_options {
    bool backend_config;
    bool fusions; /* their bodies are drawn */
};

struct hlo_dot_out {
    struct xp_arena *scratch;
    struct xp_buf *out;
    void (*flush)(void *ctx); /* may be NULL */
    void *ctx;
};

/* All of a computation. */
enum xp_status hlo_dot_comp(const struct hlo_module *m, uint32_t comp,
                            const struct hlo_dot_options *opt, const struct hlo_dot_out *out,
                            struct xp_error *err);
/* The instructions at most `radius` steps from one. */
enum xp_status hlo_dot_around(const struct hlo_module *m, uint32_t instr, uint32_t radius,
                              const struct hlo_dot_options *opt, const struct hlo_dot_out *out,
                              struct xp_error *err);

#endif
