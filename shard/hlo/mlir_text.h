/* shard/hlo/mlir_text.h - MLIR bytecode as text: the kernel that a TPU custom call carries.
 *
 * The text is what MLIR prints for dialects that it does not know (operations in their generic
 * form); that is what XProf shows. Read are files of version 0 of the format, which is what JAX
 * writes into programs, with regions of one block: kernels branch by operations that hold regions.
 * Anything else is XP_CORRUPT or XP_TOO_LARGE with a sentence, never a guess.
 *
 * Bounds: memory is some 150 times the bytes, from the arena; the text is as long as `out` allows;
 * types and attributes nest MLIR_DEPTH_MAX deep, regions as deep as they like.
 */
#ifndef SHARD_HLO_MLIR_TEXT_H
#define SHARD_HLO_MLIR_TEXT_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/status.h"

#define MLIR_DEPTH_MAX 24

struct mlir_options {
    /* Memory of elements that only their dialect knows (semaphores) is refused, as MLIR refuses it
     * where it does not know the dialect. */
    bool plain_memory;
};

enum xp_status mlir_text(struct xp_span bytecode, const struct mlir_options *opt,
                         struct xp_arena *scratch, struct xp_buf *out, struct xp_error *err);

#endif
