/* shard/tools/op_layer.h - which layer of the model an op belongs to, by its name in the framework.
 *
 *     jit(step)/jit(main)/layer_3/attention/dot_general           layer_3
 *     jit(step)/transpose(jvp(decoder))/layers/3/mlp/dot_general  layers/3
 *     jit(step)/while/body/decoder/layers/mlp/dot_general         layers/mlp: all in one loop
 *     jit(step)/Dense_0/dot_general                               Dense_0
 *
 * The outermost scope that is called layer or block, with its number; else such a one without a
 * number, and what is next in it; else the outermost with a number. The last part is the operation
 * itself; names of jitted functions are no scopes, nor are loops and calls (while, body,
 * checkpoint). An op forward and its gradient are of one layer.
 */
#ifndef SHARD_OP_LAYER_H
#define SHARD_OP_LAYER_H

#include "lib/base/arena.h"
#include "lib/base/span.h"

/* Empty: the name says none. Points into `name`, or is of the arena. */
struct xp_span op_layer_of(struct xp_span name, struct xp_arena *a);

/* It is of the backward pass: some scope of it was transposed, or TensorFlow calls it a gradient
 * (framework_is_gradient). */
bool op_is_backward(struct xp_span name);

#endif
