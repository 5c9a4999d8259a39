#include "shard/derive/derive_int.h"
#include "shard/derive/framework_op.h"

static const struct {
    const char *name;
    uint16_t flags;
} known[] = {
#define FLAG(name, flags) {name, flags},
#include "shard/derive/event_flags.def"
#undef FLAG
};

bool derive_is_loop(struct xp_span name)
{
    static const char *const loops[] = {"WhileOp-EvalCond", "WhileOp-StartBody", "ForOp",
                                        "ParallelForOp", "ForeverOp"};
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (xp_span_eq(name, xp_span_str(loops[i])))
            return true;
    return false;
}

uint16_t derive_event_flags(struct xp_span name)
{
    /* Names that XProf knows are short; those of ops hold a colon. */
    for (size_t i = 0; name.n < 64 && i < sizeof known / sizeof known[0]; i++)
        if (name.n && known[i].name[0] == (char)name.p[0] &&
            xp_span_eq(name, xp_span_str(known[i].name)))
            return known[i].flags;
    if (!name.n || !memchr(name.p, ':', name.n))
        return 0;
    switch (framework_op_parse(name).framework) {
    case FRAMEWORK_TF:
        return EV_TYPED | EV_TF_OP;
    case FRAMEWORK_TF_DATA:
        return EV_TYPED;
    default:
        return 0;
    }
}
