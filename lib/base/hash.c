#include "lib/base/hash.h"

#include <sys/random.h>
#include <time.h>

/* Odd constants with about half of their bits set; the seed is mixed into them. */
static uint64_t key0 = UINT64_C(0x9e3779b97f4a7c15);
static uint64_t key1 = UINT64_C(0xd1b54a32d192ed03);
static uint64_t key2 = UINT64_C(0x8bb84b93962eacc9);

/* Before main, so that the hot path need not ask whether it was done. */
__attribute__((constructor)) static void seed(void)
{
    uint64_t s[3];
    if (getrandom(s, sizeof s, GRND_NONBLOCK) != (ssize_t)sizeof s) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        s[0] = (uint64_t)t.tv_nsec * key1;
        s[1] = (uint64_t)(uintptr_t)&t * key2;
        s[2] = s[0] ^ s[1];
    }
    key0 ^= s[0];
    key1 ^= s[1];
    key2 ^= s[2];
}

/* Both halves of the 128-bit product, folded: every input bit reaches every output bit. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t load8(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t load4(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

uint64_t xp_hash(struct xp_span s)
{
    const uint8_t *p = s.p;
    size_t n = s.n;
    uint64_t h = key0, a = 0, b = 0;

    for (; n > 16; p += 16, n -= 16)
        h = fold(load8(p) ^ key1, load8(p + 8) ^ h);
    if (n >= 8) {
        a = load8(p);
        b = load8(p + n - 8);
    } else if (n >= 4) {
        a = load4(p);
        b = load4(p + n - 4);
    } else if (n > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
    }
    return fold(key2 ^ s.n, fold(a ^ key1, b ^ h));
}

uint64_t xp_hash_u64(uint64_t v)
{
    return fold(v ^ key1, fold(v ^ key2, key0));
}

uint64_t xp_fnv(uint64_t h, struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * UINT64_C(0x100000001b3);
    return h;
}
