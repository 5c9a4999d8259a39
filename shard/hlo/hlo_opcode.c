#include "shard/hlo/hlo.h"

static const struct xp_span texts[] = {
    {(const uint8_t *)"unknown", 7},
#define X(name, text) {(const uint8_t *)text, sizeof text - 1},
#include "shard/hlo/opcodes.def"
#undef X
};

enum hlo_opcode hlo_opcode_of(struct xp_span text)
{
    uint32_t lo = 1, hi = HLO_OP_COUNT;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = xp_span_cmp(texts[mid], text);
        if (c == 0)
            return (enum hlo_opcode)mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return HLO_OP_UNKNOWN;
}

const char *hlo_opcode_text(enum hlo_opcode op)
{
    return (const char *)texts[(uint32_t)op < HLO_OP_COUNT ? op : HLO_OP_UNKNOWN].p;
}

static const bool elementwise[HLO_OP_COUNT] = {
    [HLO_OP_ABS] = true,
    [HLO_OP_ACOS] = true,
    [HLO_OP_ACOSH] = true,
    [HLO_OP_ADD] = true,
    [HLO_OP_AND] = true,
    [HLO_OP_ASIN] = true,
    [HLO_OP_ASINH] = true,
    [HLO_OP_ATAN2] = true,
    [HLO_OP_ATANH] = true,
    [HLO_OP_BITCAST_CONVERT] = true,
    [HLO_OP_CBRT] = true,
    [HLO_OP_CEIL] = true,
    [HLO_OP_CLAMP] = true,
    [HLO_OP_CLZ] = true,
    [HLO_OP_COMPARE] = true,
    [HLO_OP_COMPLEX] = true,
    [HLO_OP_CONVERT] = true,
    [HLO_OP_COSH] = true,
    [HLO_OP_COSINE] = true,
    [HLO_OP_DIVIDE] = true,
    [HLO_OP_ERF] = true,
    [HLO_OP_EXPONENTIAL] = true,
    [HLO_OP_EXPM1] = true,
    [HLO_OP_FLOOR] = true,
    [HLO_OP_IMAG] = true,
    [HLO_OP_IS_FINITE] = true,
    [HLO_OP_LOG] = true,
    [HLO_OP_LOG1P] = true,
    [HLO_OP_LOGISTIC] = true,
    [HLO_OP_MAXIMUM] = true,
    [HLO_OP_MINIMUM] = true,
    [HLO_OP_MULTIPLY] = true,
    [HLO_OP_NEGATE] = true,
    [HLO_OP_NOT] = true,
    [HLO_OP_OR] = true,
    [HLO_OP_POPCNT] = true,
    [HLO_OP_POWER] = true,
    [HLO_OP_REAL] = true,
    [HLO_OP_REDUCE_PRECISION] = true,
    [HLO_OP_REMAINDER] = true,
    [HLO_OP_ROUND_NEAREST_AFZ] = true,
    [HLO_OP_ROUND_NEAREST_EVEN] = true,
    [HLO_OP_RSQRT] = true,
    [HLO_OP_SELECT] = true,
    [HLO_OP_SHIFT_LEFT] = true,
    [HLO_OP_SHIFT_RIGHT_ARITHMETIC] = true,
    [HLO_OP_SHIFT_RIGHT_LOGICAL] = true,
    [HLO_OP_SIGN] = true,
    [HLO_OP_SINE] = true,
    [HLO_OP_SINH] = true,
    [HLO_OP_SQRT] = true,
    [HLO_OP_STOCHASTIC_CONVERT] = true,
    [HLO_OP_SUBTRACT] = true,
    [HLO_OP_TAN] = true,
    [HLO_OP_TANH] = true,
    [HLO_OP_XOR] = true,
};

bool hlo_opcode_elementwise(enum hlo_opcode op)
{
    return (uint32_t)op < HLO_OP_COUNT && elementwise[op];
}
