#include <strings.h>

#include "shard/derive/framework_op.h"
#include "shard/stats/steps.h"

static bool starts(struct xp_span s, const char *prefix)
{
    return xp_span_starts(s, xp_span_str(prefix));
}

static bool starts_any_case(struct xp_span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && strncasecmp((const char *)s.p, prefix, n) == 0;
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

bool step_is_marker(struct xp_span name)
{
    return (starts(name, "train") || starts(name, "test") || starts(name, "TraceContext")) &&
           !memchr(name.p, '/', name.n);
}

static bool is_copy(const struct framework_op *op, const char *kind)
{
    return op->framework == FRAMEWORK_COPY && xp_span_eq(op->type, xp_span_str(kind));
}

/* STEP_UNKNOWN: it is the runtime's own bookkeeping around the work, not work. */
enum step_type step_type_of_host(struct xp_span name)
{
    static const char *const around[] = {"EagerExecute", "EagerLocalExecute", "EagerKernelExecute",
                                         "FunctionRun"};
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++)
        if (starts(name, around[i]))
            return STEP_UNKNOWN;
    struct framework_op op = framework_op_parse(name);
    if ((op.framework == FRAMEWORK_TF && starts(op.type, "InfeedEnqueue")) ||
        is_copy(&op, "MemcpyHToD"))
        return STEP_HOST_TO_DEVICE;
    if (is_copy(&op, "MemcpyHToH"))
        return STEP_HOST_TO_HOST;
    return starts_any_case(name, "IteratorGetNext") ? STEP_WAIT_INPUT : STEP_HOST_COMPUTE;
}

enum step_type step_type_of_gpu(struct xp_span name, struct xp_span shapes)
{
    struct framework_op op = framework_op_parse(name);
    if (is_copy(&op, "MemcpyHToD"))
        return STEP_HOST_TO_DEVICE;
    if (is_copy(&op, "MemcpyDToH"))
        return STEP_DEVICE_TO_HOST;
    if (is_copy(&op, "MemcpyDToD"))
        return STEP_DEVICE_TO_DEVICE;
    if (starts_any_case(name, "nccl"))
        return STEP_COLLECTIVES;
    bool half =
        shapes.n ? contains(shapes, "half") : contains(name, "half") || contains(name, "fp16");
    return half ? STEP_COMPUTE_16 : STEP_COMPUTE_32;
}
