#include "shard/stats/op_stats.h"

#define IDLE OP_KIND_IDLE
#define INNER OP_KIND_INNER
#define OFF OP_KIND_OFF_DUTY
#define XFER (OP_KIND_HOST_XFER | OP_KIND_OFF_DUTY)

static const struct {
    const char *category;
    uint32_t kind;
} kinds[] = {
    {"IDLE", IDLE},
    {"call", INNER},
    {"conditional", INNER},
    {"while", INNER},
    {"megacore fusion", INNER | OFF},
    {"infeed", OFF},
    {"outfeed", OFF},
    {"host send", XFER},
    {"host send-done", XFER},
    {"host recv", XFER},
    {"host recv-done", XFER},
    {"async-done", OFF},
    {"all-reduce", OP_KIND_ALL_REDUCE},
    {"all-reduce fusion", OP_KIND_ALL_REDUCE},
    {"all-to-all", OP_KIND_ALL_REDUCE},
    {"custom-call", OP_KIND_CUSTOM_CALL},
};

static bool contains(struct xp_span s, struct xp_span what)
{
    return xp_span_has(s, what);
}

uint32_t op_kind_of(struct xp_span category)
{
    uint32_t kind = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (xp_span_eq(category, xp_span_str(kinds[i].category)))
            kind = kinds[i].kind;
    if (contains(category, XP_SPAN_LIT("infeed")))
        kind |= OP_KIND_INFEED;
    if (contains(category, XP_SPAN_LIT("outfeed")))
        kind |= OP_KIND_OUTFEED;
    if (xp_span_ends(category, XP_SPAN_LIT(" fusion")))
        kind |= OP_KIND_FUSION;
    return kind;
}
