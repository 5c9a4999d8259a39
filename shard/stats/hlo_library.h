/* shard/stats/hlo_library.h - flops of matrix products and of convolutions, also where a library
 * does them in a custom call.
 *
 * The rules are XLA's: two flops for each product that is added; a convolution's products are
 * those where the kernel lies on elements of the input, not on padding or on the holes of a
 * dilation. */
#ifndef SHARD_HLO_LIBRARY_H
#define SHARD_HLO_LIBRARY_H

#include "shard/hlo/hlo.h"

/* Result elements times the lengths of the dimensions that go; dims: DotDimensionNumbers. */
double hlo_dot_flops(const struct hlo_module *m, uint32_t lhs_shape, uint32_t out_shape,
                     struct xp_span dims);

/* A custom call to cuDNN, or to what stands for it on AMD. */
bool hlo_is_library_conv(const struct hlo_instr *in);
/* Of a convolution or such a call; 0 when it does not say what would be needed. */
double hlo_conv_flops(const struct hlo_module *m, const struct hlo_instr *in);

/* A custom call to cuBLAS, or to what stands for it on AMD, for one matrix product. */
bool hlo_is_library_dot(const struct hlo_instr *in);
/* Of such a call, by what its configuration says is summed; 0 when that is not to be read. */
double hlo_library_dot_flops(const struct hlo_module *m, const struct hlo_instr *in);

/* The first part of a result that is a tuple: library calls return their scratch memory too. */
uint32_t hlo_library_result(const struct hlo_module *m, const struct hlo_instr *in);

#endif
