/* shard/tools/kernel_name.h - what people call a GPU kernel: its name without what the compiler
 * wrote around it.
 *
 *     void at::native::gemm<float, 4>(float*, int)          at::native::gemm
 *     _ZN2at6native4gemmIfLi4EEEvPfi                         at::native::gemm
 *     void cutlass::Kernel2<cutlass_80_tensorop_s1688>(...)  cutlass_80_tensorop_s1688
 *     ampere_sgemm_128x64_nn                                 the same
 *
 * Not a demangler: of a mangled name the leading names are read, and it stays as it is where they
 * are not plain. The result lives in the arena, or is the name itself.
 */
#ifndef SHARD_KERNEL_NAME_H
#define SHARD_KERNEL_NAME_H

#include "lib/base/arena.h"
#include "lib/base/span.h"

#define KERNEL_NAME_MAX 4096 /* bytes; longer names stay as they are */

struct xp_span kernel_short_name(struct xp_span name, struct xp_bump *b);

#endif
