#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shard/answers.h"

static void put(struct answers *a, const char *key, size_t n, uint8_t fill)
{
    uint8_t *p = malloc(n);
    memset(p, fill, n);
    struct answers_item item = {
        .body = xp_blob_new(p, n), .content_type = "application/json", .encoded = true};
    answers_put(a, xp_span_str(key), &item);
    xp_blob_unref(item.body);
}

static int first_byte(struct answers *a, const char *key)
{
    struct answers_item item;
    if (!answers_get(a, xp_span_str(key), &item))
        return -1;
    int c = item.body->p[0];
    xp_blob_unref(item.body);
    return c;
}

static void what_was_put_is_found_by_its_whole_key(void **state)
{
    struct answers *a = answers_new(100000);
    (void)state;
    put(a, "one", 10, 1);
    put(a, "two", 10, 2);
    assert_int_equal(first_byte(a, "one"), 1);
    assert_int_equal(first_byte(a, "two"), 2);
    assert_int_equal(first_byte(a, "tw"), -1);
    assert_int_equal(first_byte(a, ""), -1);
    answers_free(a);
}

static void the_one_asked_for_longest_ago_goes_first(void **state)
{
    struct answers *a = answers_new(5000);
    char key[16];
    (void)state;
    put(a, "keep", 500, 9);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "k%d", i);
        put(a, key, 500, (uint8_t)i);
        assert_int_equal(first_byte(a, "keep"), 9);
    }
    assert_int_equal(first_byte(a, "k49"), 49);
    assert_int_equal(first_byte(a, "k0"), -1);
    answers_free(a);
}

static void a_body_too_large_is_not_kept(void **state)
{
    struct answers *a = answers_new(8000);
    (void)state;
    put(a, "small", 900, 1);
    put(a, "large", 1001, 2);
    assert_int_equal(first_byte(a, "small"), 1);
    assert_int_equal(first_byte(a, "large"), -1);
    answers_free(a);
}

static void a_body_outlives_its_place_in_the_cache(void **state)
{
    struct answers *a = answers_new(2000);
    struct answers_item item;
    (void)state;
    put(a, "x", 200, 7);
    assert_true(answers_get(a, XP_SPAN_LIT("x"), &item));
    answers_free(a);
    assert_int_equal(item.body->p[199], 7);
    xp_blob_unref(item.body);
}

static void a_key_is_known_as_asked_again_the_second_time(void **state)
{
    struct answers *a = answers_new(2000);
    char key[16];
    int wrong = 0;
    (void)state;
    assert_false(answers_again(a, XP_SPAN_LIT("x")));
    assert_true(answers_again(a, XP_SPAN_LIT("x")));
    for (int i = 0; i < 10000; i++) {
        snprintf(key, sizeof key, "k%d", i);
        wrong += answers_again(a, xp_span_str(key));
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(first_byte(a, "x"), -1);
    answers_free(a);
}

static void damage_comes_back_with_the_answer_that_has_it(void **state)
{
    struct answers *a = answers_new(100000);
    struct answers_item item = {.body = xp_blob_new(calloc(1, 8), 8)}, got;
    (void)state;
    answers_put(a, XP_SPAN_LIT("whole"), &item);
    xp_fail(&item.damage, XP_CORRUPT, 77, "cut at %d", 77);
    answers_put(a, XP_SPAN_LIT("cut"), &item);
    xp_blob_unref(item.body);
    memset(&got, 0xff, sizeof got);
    assert_true(answers_get(a, XP_SPAN_LIT("whole"), &got));
    assert_int_equal(got.damage.status, XP_OK);
    xp_blob_unref(got.body);
    assert_true(answers_get(a, XP_SPAN_LIT("cut"), &got));
    answers_free(a);
    assert_int_equal(got.damage.status, XP_CORRUPT);
    assert_int_equal(got.damage.offset, 77);
    assert_string_equal(got.damage.text, "cut at 77");
    xp_blob_unref(got.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_by_its_whole_key),
        cmocka_unit_test(the_one_asked_for_longest_ago_goes_first),
        cmocka_unit_test(a_body_too_large_is_not_kept),
        cmocka_unit_test(a_body_outlives_its_place_in_the_cache),
        cmocka_unit_test(damage_comes_back_with_the_answer_that_has_it),
        cmocka_unit_test(a_key_is_known_as_asked_again_the_second_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
