#include "lib/base/hash.h"
#include "tests/unit/unit.h"

static void equal_bytes_hash_equal_wherever_they_lie(void **state)
{
    (void)state;
    uint8_t text[80], moved[81];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = moved[i + 1] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof text; n++)
        assert_true(xp_hash(xp_span_of(text, n)) == xp_hash(xp_span_of(moved + 1, n)));
}

static void every_bit_and_the_length_change_the_hash(void **state)
{
    (void)state;
    uint8_t text[40] = {0};
    for (size_t n = 1; n <= sizeof text; n++) {
        uint64_t plain = xp_hash(xp_span_of(text, n));
        assert_true(plain != xp_hash(xp_span_of(text, n - 1)));
        for (size_t bit = 0; bit < n * 8; bit++) {
            text[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_true(plain != xp_hash(xp_span_of(text, n)));
            text[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

/* The most loaded of 4096 cells holding 4096 values: about 7 for a good hash; 20 is far off. */
static int fullest(uint64_t (*hash)(uint32_t))
{
    static int cells[4096];
    int most = 0;
    memset(cells, 0, sizeof cells);
    for (uint32_t i = 0; i < 4096; i++) {
        int n = ++cells[hash(i) & 4095];
        most = n > most ? n : most;
    }
    return most;
}

static uint64_t of_name(uint32_t i)
{
    char text[32];
    int n = snprintf(text, sizeof text, "fusion.%u", i);
    return xp_hash(xp_span_of(text, (size_t)n));
}

static uint64_t of_number(uint32_t i)
{
    return xp_hash_u64((uint64_t)i << 20);
}

static void similar_values_spread(void **state)
{
    (void)state;
    assert_true(fullest(of_name) < 20);
    assert_true(fullest(of_number) < 20);
}

static void fnv_is_the_published_function(void **state)
{
    (void)state;
    assert_true(xp_fnv(XP_FNV_INIT, XP_SPAN_LIT("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(xp_fnv(XP_FNV_INIT, XP_SPAN_LIT("foobar")) == UINT64_C(0x85944171f73967e8));
    uint64_t half = xp_fnv(XP_FNV_INIT, XP_SPAN_LIT("foo"));
    assert_true(xp_fnv(half, XP_SPAN_LIT("bar")) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_hash_equal_wherever_they_lie),
        cmocka_unit_test(every_bit_and_the_length_change_the_hash),
        cmocka_unit_test(similar_values_spread),
        cmocka_unit_test(fnv_is_the_published_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
