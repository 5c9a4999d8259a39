#include "shard/tools/topology.h"

/* The largest divisor of n whose power `times` is no more than n. */
static uint32_t side(uint32_t n, unsigned times)
{
    uint32_t best = 1;
    for (uint64_t d = 1; d <= n; d++) {
        uint64_t all = d * d * (times == 3 ? d : 1);
        if (all > n)
            break;
        if (n % d == 0)
            best = (uint32_t)d;
    }
    return best;
}

static bool is_flat(struct xp_span device)
{
    static const char *const flat[] = {"v2", "v3", "v5e", "v6e", "Lite", "lite"};
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
        if (xp_span_has(device, xp_span_str(flat[i])))
            return true;
    return false;
}

struct topology topology_of(struct xp_span device, uint32_t chips)
{
    struct topology t = {{1, 1, 1}, !is_flat(device)};
    chips = chips ? chips : 1;
    if (t.solid && chips == 4) { /* one host */
        t.dims[0] = t.dims[1] = 2;
        return t;
    }
    uint32_t left = chips;
    if (t.solid) {
        t.dims[0] = side(left, 3);
        left /= t.dims[0];
    }
    uint32_t shorter = side(left, 2);
    t.dims[t.solid ? 1 : 0] = shorter;
    t.dims[t.solid ? 2 : 1] = left / shorter;
    return t;
}

uint32_t topology_whole(struct xp_span device, uint32_t chips)
{
    const uint32_t cube = 64; /* 4 x 4 x 4, of which larger ones are made */
    uint32_t n = 1;
    if (chips > TOPOLOGY_LARGEST)
        return 0;
    if (!is_flat(device) && chips > cube)
        return (chips + cube - 1) / cube * cube;
    while (n < chips)
        n *= 2;
    return n;
}

enum xp_status topology_parse(struct xp_span text, uint32_t chips, struct topology *t,
                              struct xp_error *err)
{
    uint64_t v[3] = {0, 1, 1}, all = 1;
    size_t n = 0, digits = 0;
    bool fine = true;
    v[0] = 0;
    for (size_t i = 0; i < text.n && fine; i++) {
        uint8_t c = text.p[i];
        if (c == 'x' && digits && n < 2) {
            v[++n] = 0;
            digits = 0;
        } else if (c >= '0' && c <= '9' && v[n] < TOPOLOGY_CHIPS) {
            v[n] = v[n] * 10 + (uint64_t)(c - '0');
            digits++;
        } else {
            fine = false;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        fine = fine && v[i] > 0 && v[i] <= TOPOLOGY_CHIPS;
        all *= fine ? v[i] : 0;
        fine = fine && all <= TOPOLOGY_CHIPS;
    }
    if (!fine || !digits || !n)
        return xp_fail(err, XP_BAD_REQUEST, 0, "topology is the size of a slice: 4x8 or 2x2x4");
    if (all < chips)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "topology has room for %llu chips, a slice has %u: give its full size",
                       (unsigned long long)all, chips);
    *t = (struct topology){{(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]}, n == 2};
    return XP_OK;
}

void topology_place(const struct topology *t, uint32_t chip, uint32_t xyz[3])
{
    for (int i = 0; i < 3; i++) {
        uint32_t size = t->dims[i] ? t->dims[i] : 1;
        xyz[i] = i < 2 ? chip % size : chip;
        chip /= size;
    }
}
