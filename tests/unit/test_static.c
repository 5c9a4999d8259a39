#include "server/static.h"

#include "lib/base/gzip.h"
#include "tests/unit/unit.h"

static void the_first_page_is_always_there(void **state)
{
    (void)state;
    const struct static_asset *page = static_find(XP_SPAN_LIT("index.html"));
    assert_non_null(page);
    assert_string_equal(page->type, "text/html; charset=utf-8");
    assert_false(page->hashed);
}

static void every_asset_is_found_and_inflates_to_its_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < static_assets_n; i++) {
        const struct static_asset *a = &static_assets[i];
        assert_ptr_equal(static_find(xp_span_str(a->path)), a);
        struct xp_gunzip *g = xp_gunzip_new(xp_span_of(a->gz, a->gz_n));
        uint8_t *raw = malloc(a->raw_n + 1);
        size_t got;
        assert_int_equal(xp_gunzip_read(g, raw, a->raw_n + 1, &got), XP_OK);
        assert_int_equal(got, a->raw_n);
        xp_gunzip_free(g);
        free(raw);
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    (void)state;
    assert_null(static_find((struct xp_span){0}));
    assert_null(static_find(XP_SPAN_LIT("/index.html")));
    assert_null(static_find(XP_SPAN_LIT("index.htm")));
    assert_null(static_find(XP_SPAN_LIT("index.html\0")));
    assert_null(static_find(XP_SPAN_LIT("~")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_page_is_always_there),
        cmocka_unit_test(every_asset_is_found_and_inflates_to_its_size),
        cmocka_unit_test(what_is_not_there_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
