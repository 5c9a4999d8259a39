/* Known values: the headers that begin every Riegeli file, and the published vectors' key. */
#include "lib/base/highway.h"
#include "tests/unit/unit.h"

static uint64_t hash(const uint64_t key[4], struct xp_span s, size_t piece)
{
    struct xp_highway h;
    xp_highway_init(&h, key);
    for (size_t at = 0; at < s.n; at += piece)
        xp_highway_add(&h, xp_span_of(s.p + at, s.n - at < piece ? s.n - at : piece));
    return xp_highway_end(&h);
}

static const uint64_t counting[4] = {0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110,
                                     0x1f1e1d1c1b1a1918};

static void hash_of_counting_bytes_is_the_published_one(void **state)
{
    static const struct {
        size_t n;
        uint64_t want;
    } known[] = {{0, 0x907a56de22c26e53}, {1, 0x7eab43aac7cddd78}, {2, 0xb8d0569ab0b53d62}};
    uint8_t bytes[8];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(hash(counting, xp_span_of(bytes, known[i].n), 8), known[i].want);
}

static void hash_does_not_depend_on_the_pieces(void **state)
{
    uint8_t bytes[200];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (size_t n = 0; n <= sizeof bytes; n++)
        for (size_t piece = 1; piece < 70; piece += 11)
            assert_int_equal(hash(counting, xp_span_of(bytes, n), piece),
                             hash(counting, xp_span_of(bytes, n), sizeof bytes));
}

static void headers_of_a_riegeli_file_have_their_hashes(void **state)
{
    static const uint64_t key[4] = {0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952,
                                    0x0a7364726f636572};
    static const uint8_t block[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0x40};
    static const uint8_t chunk[32] = {0,    0,    0,    0,    0,    0,    0,    0,   0xe1,
                                      0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72, 0x73};
    (void)state;
    assert_int_equal(hash(key, xp_span_of(block, sizeof block), 16), 0x3f4a880dd170af83);
    assert_int_equal(hash(key, xp_span_of(chunk, sizeof chunk), 32), 0xa9e187923cc2ba91);
    assert_int_equal(hash(key, xp_span_of(NULL, 0), 1), 0x72c3b1e9c0139fe1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_of_counting_bytes_is_the_published_one),
        cmocka_unit_test(hash_does_not_depend_on_the_pieces),
        cmocka_unit_test(headers_of_a_riegeli_file_have_their_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
