#include "lib/base/utf8.h"
#include "tests/unit/unit.h"

#define FFFD "\xef\xbf\xbd"

static void mended(const char *bytes, size_t n, const char *want)
{
    /* A copy of exactly n bytes, so that a read past the end is seen. */
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    struct xp_buf b;
    xp_buf_init(&b, 1000);
    xp_utf8_append(&b, xp_span_of(copy, n));
    assert_buf_is(&b, want);
    assert_true(xp_utf8_valid(xp_buf_all(&b)));
    bool same = b.n == n && memcmp(b.p, bytes, n) == 0;
    assert_int_equal(xp_utf8_valid(xp_span_of(copy, n)), same);
    xp_buf_fini(&b);
    free(copy);
}

#define MENDED(bytes, want) mended(bytes, sizeof(bytes) - 1, want)

static void valid_text_is_kept(void **state)
{
    (void)state;
    MENDED("a", "a");
    MENDED("plain ascii that is longer than eight", "plain ascii that is longer than eight");
    MENDED("\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf");
    MENDED("\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf",
           "\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf");
    MENDED("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf");
}

/* As browsers and Python's errors='replace' do. */
static void ill_formed_bytes_become_replacement_characters(void **state)
{
    (void)state;
    MENDED("\x80", FFFD);
    MENDED("a\xff"
           "b",
           "a" FFFD "b");
    MENDED("\xc0\xaf", FFFD FFFD);                   /* overlong */
    MENDED("\xe0\x80\xaf", FFFD FFFD FFFD);          /* overlong */
    MENDED("\xed\xa0\x80", FFFD FFFD FFFD);          /* surrogate */
    MENDED("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD); /* above U+10FFFF */
    MENDED("\xe2\x82", FFFD);                        /* cut off */
    MENDED("\xe2\x82"
           "x",
           FFFD "x");
    MENDED("\xf0\x9f\x98", FFFD);
    MENDED("\xf0\x9f\x98\xe2\x82\xac", FFFD "\xe2\x82\xac");
    MENDED("\xf5\x80", FFFD FFFD);
}

static void an_empty_span_is_valid(void **state)
{
    (void)state;
    assert_true(xp_utf8_valid((struct xp_span){0}));
}

static void every_step_moves_on_and_stays_inside(void **state)
{
    (void)state;
    uint8_t t[4];
    for (uint32_t v = 0; v < 1u << 16; v++) {
        for (size_t n = 1; n <= 4; n++) {
            uint8_t *copy = memcpy(
                malloc(n),
                (t[0] = (uint8_t)(v >> 8), t[1] = (uint8_t)v, t[2] = 0x80, t[3] = 0x80, t), n);
            bool ok;
            size_t step = xp_utf8_step(copy, copy + n, &ok);
            assert_true(step >= 1 && step <= n);
            free(copy);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_is_kept),
        cmocka_unit_test(ill_formed_bytes_become_replacement_characters),
        cmocka_unit_test(an_empty_span_is_valid),
        cmocka_unit_test(every_step_moves_on_and_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
