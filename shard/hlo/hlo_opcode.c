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
