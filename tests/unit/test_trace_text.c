#include "shard/tools/trace_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/unit.h"

#define DRAWN 20000

static void is_text(const uint8_t *from, const uint8_t *to, const char *wanted)
{
    assert_int_equal(to - from, strlen(wanted));
    assert_memory_equal(from, wanted, strlen(wanted));
}

static void is_number(uint64_t v)
{
    uint8_t text[64];
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%" PRIu64, v);
    is_text(text, trace_put_u64(text, v), wanted);
    is_text(text, trace_put_small(text, v), wanted);
    snprintf(wanted, sizeof wanted, "%" PRId64, (int64_t)v);
    is_text(text, trace_put_i64(text, (int64_t)v), wanted);
}

/* The same by the C library: six digits of fraction, without zeros at the end. */
static void is_time(int64_t ps)
{
    uint8_t text[64];
    char wanted[64];
    uint64_t v = ps < 0 ? -(uint64_t)ps : (uint64_t)ps;
    int n = snprintf(wanted, sizeof wanted, "%s%" PRIu64 ".%06u", ps < 0 ? "-" : "", v / 1000000,
                     (unsigned)(v % 1000000));
    while (wanted[n - 1] == '0')
        n--;
    wanted[wanted[n - 1] == '.' ? n - 1 : n] = 0;
    is_text(text, trace_put_us(text, ps), wanted);
}

static void is_both(uint64_t v)
{
    is_number(v);
    is_time((int64_t)v);
    is_time(-(int64_t)(v & INT64_MAX));
}

static void numbers_of_every_length_are_what_the_c_library_writes(void **state)
{
    (void)state;
    uint64_t power = 1;
    for (int n = 0; n < 20; n++, power *= 10)
        for (uint64_t k = 0; k < 3; k++) {
            is_both(power + k - 1);
            is_both(power * 9 + k - 1);
        }
    is_both(UINT64_MAX);
    is_both((uint64_t)INT64_MAX);
    is_both((uint64_t)INT64_MAX + 1);
    for (uint64_t v = 0; v < 20000; v++)
        is_both(v);
}

static void numbers_drawn_are_what_the_c_library_writes(void **state)
{
    (void)state;
    uint64_t rng = 1;
    for (int i = 0; i < DRAWN; i++) {
        rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        is_both(rng >> (rng >> 3 & 63));
        is_both((rng >> 20) / 1000 * 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_length_are_what_the_c_library_writes),
        cmocka_unit_test(numbers_drawn_are_what_the_c_library_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
