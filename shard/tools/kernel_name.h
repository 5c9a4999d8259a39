/* shard/tools/kernel_name.h - what people call a GPU kernel: its name without what the compiler
 * wrote around it.
 *
 *     void at::native::gemm<float, 4>(float*, int)           at::native::gemm
 *     _ZN2at6native4gemmIfLi4EEEvPfi                          at::native::gemm
 *     void cutlass::Kernel2<cutlass_80_tensorop_s1688>(...)   cutlass_80_tensorop_s1688
 *     void ck_tile::kentry<gfx950, 2, ck_tile::Fwd<...> >()   ck_tile::Fwd
 *     ns::run(int)::{lambda(float*)#1}::operator()(float*)    ns::run::{lambda#1}::operator()
 *     loop_fusion_3.kd                                        loop_fusion_3
 *     ampere_sgemm_128x64_nn                                  the same
 *
 * Mangled names are read by demangle.h; of one that it refuses the leading names are taken, and
 * it stays as it is where they are not plain. Results live in the arena, or are the name itself.
 */
#ifndef SHARD_KERNEL_NAME_H
#define SHARD_KERNEL_NAME_H

#include "lib/base/arena.h"
#include "lib/base/span.h"

#define KERNEL_NAME_MAX 16384 /* bytes; longer names stay as they are */

struct xp_span kernel_short_name(struct xp_span name, struct xp_bump *b);

/* All of it as people write it; the name itself where it is not mangled, or cannot be read. */
struct xp_span kernel_full_name(struct xp_span name, struct xp_bump *b);

#endif
