#include "lib/base/highway.h"

static uint64_t halves_swapped(uint64_t x)
{
    return x >> 32 | x << 32;
}

void xp_highway_init(struct xp_highway *h, const uint64_t key[4])
{
    static const uint64_t mul0[4] = {0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
                                     0x243f6a8885a308d3};
    static const uint64_t mul1[4] = {0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c,
                                     0x452821e638d01377};
    for (int i = 0; i < 4; i++) {
        h->mul0[i] = mul0[i];
        h->mul1[i] = mul1[i];
        h->v0[i] = mul0[i] ^ key[i];
        h->v1[i] = mul1[i] ^ halves_swapped(key[i]);
    }
    h->rest_n = 0;
}

/* Byte i of the 128 bits (hi, lo), put at byte `to` of a word. */
#define BYTE(hi, lo, i, to)                                                                        \
    (((((i) < 8 ? (lo) : (hi)) >> (8 * ((i)&7))) & UINT64_C(0xff)) << (8 * (to)))

/* Adds the bytes of (hi, lo) in the order that spreads what a product left in its middle. */
static void add_zipped(uint64_t hi, uint64_t lo, uint64_t *to_hi, uint64_t *to_lo)
{
    *to_lo += BYTE(hi, lo, 3, 0) | BYTE(hi, lo, 12, 1) | BYTE(hi, lo, 2, 2) | BYTE(hi, lo, 5, 3) |
              BYTE(hi, lo, 14, 4) | BYTE(hi, lo, 1, 5) | BYTE(hi, lo, 15, 6) | BYTE(hi, lo, 0, 7);
    *to_hi += BYTE(hi, lo, 11, 0) | BYTE(hi, lo, 4, 1) | BYTE(hi, lo, 10, 2) | BYTE(hi, lo, 13, 3) |
              BYTE(hi, lo, 9, 4) | BYTE(hi, lo, 6, 5) | BYTE(hi, lo, 8, 6) | BYTE(hi, lo, 7, 7);
}

static void mix(struct xp_highway *h, const uint64_t lanes[4])
{
    for (int i = 0; i < 4; i++) {
        h->v1[i] += h->mul0[i] + lanes[i];
        h->mul0[i] ^= (h->v1[i] & UINT32_MAX) * (h->v0[i] >> 32);
        h->v0[i] += h->mul1[i];
        h->mul1[i] ^= (h->v0[i] & UINT32_MAX) * (h->v1[i] >> 32);
    }
    add_zipped(h->v1[1], h->v1[0], &h->v0[1], &h->v0[0]);
    add_zipped(h->v1[3], h->v1[2], &h->v0[3], &h->v0[2]);
    add_zipped(h->v0[1], h->v0[0], &h->v1[1], &h->v1[0]);
    add_zipped(h->v0[3], h->v0[2], &h->v1[3], &h->v1[2]);
}

static void mix_packet(struct xp_highway *h, const uint8_t *packet)
{
    uint64_t lanes[4];
    memcpy(lanes, packet, sizeof lanes); /* little-endian */
    mix(h, lanes);
}

void xp_highway_add(struct xp_highway *h, struct xp_span s)
{
    if (h->rest_n) {
        size_t n = XP_HIGHWAY_PACKET - h->rest_n;
        n = n < s.n ? n : s.n;
        if (n)
            memcpy(h->rest + h->rest_n, s.p, n);
        h->rest_n += n;
        if (h->rest_n < XP_HIGHWAY_PACKET)
            return;
        mix_packet(h, h->rest);
        h->rest_n = 0;
        s = xp_span_of(s.p + n, s.n - n);
    }
    for (; s.n >= XP_HIGHWAY_PACKET; s.p += XP_HIGHWAY_PACKET, s.n -= XP_HIGHWAY_PACKET)
        mix_packet(h, s.p);
    if (s.n)
        memcpy(h->rest, s.p, s.n);
    h->rest_n = s.n;
}

static uint64_t halves_rotated(uint64_t x, unsigned by)
{
    uint32_t lo = (uint32_t)x, hi = (uint32_t)(x >> 32);
    lo = lo << by | lo >> (32 - by); /* 0 < by < 32 */
    hi = hi << by | hi >> (32 - by);
    return (uint64_t)hi << 32 | lo;
}

/* The last bytes, fewer than a packet: their number goes in as well, and of the words that do not
 * fill four bytes three are taken, some twice. */
static void mix_rest(struct xp_highway *h)
{
    uint8_t packet[XP_HIGHWAY_PACKET] = {0};
    size_t n = h->rest_n, whole = n & ~(size_t)3, odd = n & 3;
    for (int i = 0; i < 4; i++) {
        h->v0[i] += ((uint64_t)n << 32) + n;
        h->v1[i] = halves_rotated(h->v1[i], (unsigned)n);
    }
    memcpy(packet, h->rest, whole);
    if (n & 16) {
        memcpy(packet + 28, h->rest + n - 4, 4);
    } else if (odd) {
        packet[16] = h->rest[whole];
        packet[17] = h->rest[whole + (odd >> 1)];
        packet[18] = h->rest[n - 1];
    }
    mix_packet(h, packet);
}

uint64_t xp_highway_end(struct xp_highway *h)
{
    if (h->rest_n)
        mix_rest(h);
    for (int i = 0; i < 4; i++) {
        uint64_t lanes[4] = {halves_swapped(h->v0[2]), halves_swapped(h->v0[3]),
                             halves_swapped(h->v0[0]), halves_swapped(h->v0[1])};
        mix(h, lanes);
    }
    return h->v0[0] + h->v1[0] + h->mul0[0] + h->mul1[0];
}
