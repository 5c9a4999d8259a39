/* shard/tools/kernel_text.h - the program of a TPU custom call, out of its backend config.
 *
 * The config is JSON; custom_call_config.body is the kernel in base64: MLIR bytecode. XP_NOT_FOUND
 * when there is none. as_xprof: what XProf cannot print (memory of semaphores) is refused. */
#ifndef SHARD_KERNEL_TEXT_H
#define SHARD_KERNEL_TEXT_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/status.h"

enum xp_status kernel_text(struct xp_span config, bool as_xprof, struct xp_arena *scratch,
                           struct xp_buf *out, struct xp_error *err);

#endif
