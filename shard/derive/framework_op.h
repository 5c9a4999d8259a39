/* shard/derive/framework_op.h - taking a framework's op name apart (TensorFlow, JAX, tf.data).
 *
 * A full name is "scope/scope/op:Type". Spans returned point into the name given.
 */
#ifndef SHARD_FRAMEWORK_OP_H
#define SHARD_FRAMEWORK_OP_H

#include "lib/base/span.h"

enum framework {
    FRAMEWORK_UNKNOWN,
    FRAMEWORK_TF,
    FRAMEWORK_TF_DATA,
    FRAMEWORK_JAX,
    FRAMEWORK_COPY
};

struct framework_op {
    enum framework framework;
    struct xp_span name, type;
};

struct framework_op framework_op_parse(struct xp_span full);

/* What an event of this op is called. For tf.data it is "Iterator::" and the last part: then *tail
 * is set, and the name is the two together. */
struct xp_span framework_op_label(const struct framework_op *op, bool *iterator);

/* The next scope of a name ("a/b/op" has a and b); false when only the op is left. */
bool framework_scope_next(struct xp_span *rest, struct xp_span *scope);

/* Whether an op of this name and type belongs to a backward pass: a run that has one is training.
 */
bool framework_is_gradient(struct xp_span name, struct xp_span type);

#endif
