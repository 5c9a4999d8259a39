#include "lib/cluster/members.h"

#include <time.h>

#include "tests/unit/unit.h"

static struct xp_members *open_members(const struct xp_members_config *c)
{
    struct xp_members *m = NULL;
    struct xp_error err;
    assert_int_equal(xp_members_new(c, &m, &err), XP_OK);
    return m;
}

static void a_static_list_is_what_it_says(void **state)
{
    (void)state;
    struct xp_members *m =
        open_members(&(struct xp_members_config){.spec = "static:b=10.0.0.2:8792,a:1,[::1]:3"});
    struct xp_ring *r = xp_members_ring(m);
    assert_int_equal(xp_ring_size(r), 3);
    assert_string_equal(xp_ring_member(r, 0)->name, "[::1]:3");
    assert_string_equal(xp_ring_member(r, 1)->name, "a:1");
    assert_string_equal(xp_ring_member(r, 2)->name, "b");
    assert_string_equal(xp_ring_member(r, 2)->address, "10.0.0.2:8792");
    xp_ring_unref(r);
    xp_members_free(m);
}

static void what_is_no_spec_is_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "a:1",           "static:",     "static:a",
                                        "static:a:0", "dns:name",      "static:a:1,", "dns:n:99999",
                                        "static:::1", "static:a:1,a:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct xp_members *m = NULL;
        struct xp_error err = {0};
        assert_int_equal(xp_members_new(&(struct xp_members_config){.spec = wrong[i]}, &m, &err),
                         XP_BAD_REQUEST);
        assert_true(err.text[0]);
    }
}

struct asked {
    _Atomic int calls, answers;
};

/* Says who it is from the third time on. */
static bool shy(void *ctx, const char *address, char *name)
{
    struct asked *a = ctx;
    (void)address;
    if (++a->calls < 3)
        return false;
    a->answers++;
    snprintf(name, RING_NAME_MAX + 1, "shard-0");
    return true;
}

static void an_address_is_a_member_once_it_has_said_who_it_is(void **state)
{
    (void)state;
    struct asked asked = {0};
    struct xp_members *m = open_members(&(struct xp_members_config){
        .spec = "dns:127.0.0.1:8792", .poll_ms = 5, .identify = shy, .ctx = &asked});
    struct xp_ring *r = NULL;
    for (int i = 0; i < 2000; i++) {
        r = xp_members_ring(m);
        if (xp_ring_size(r) == 1)
            break;
        xp_ring_unref(r);
        r = NULL;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_non_null(r);
    assert_string_equal(xp_ring_member(r, 0)->name, "shard-0");
    assert_string_equal(xp_ring_member(r, 0)->address, "127.0.0.1:8792");
    xp_ring_unref(r);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(asked.answers, 1); /* asked once */
    xp_members_free(m);
}

static void a_name_that_does_not_resolve_is_no_members_yet(void **state)
{
    (void)state;
    struct xp_members *m = open_members(
        &(struct xp_members_config){.spec = "dns:no-such-name.invalid:8792", .poll_ms = 60000});
    struct xp_ring *r = xp_members_ring(m);
    assert_int_equal(xp_ring_size(r), 0);
    xp_ring_unref(r);
    xp_members_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_static_list_is_what_it_says),
        cmocka_unit_test(what_is_no_spec_is_named),
        cmocka_unit_test(an_address_is_a_member_once_it_has_said_who_it_is),
        cmocka_unit_test(a_name_that_does_not_resolve_is_no_members_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
