#include <stdlib.h>

#include "server/rpc.h"
#include "server/upstream_int.h"
#include "tests/unit/unit.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* --- health --- */

static void one_that_failed_is_due_for_a_hello_later_and_later(void **state)
{
    (void)state;
    struct healths *h = healths_new();
    char address[HEALTH_ADDRESS_MAX];
    uint64_t name, now = 100 * SECOND, waited = 0;
    assert_false(healths_is_ill(h, 7));
    healths_failed(h, 7, "a:1", now);
    assert_true(healths_is_ill(h, 7));
    assert_int_equal(healths_ill(h), 1);
    for (int i = 0; i < 8; i++) {
        uint64_t since = now;
        while (!healths_due(h, now, &name, address))
            now += MS;
        assert_int_equal(name, 7);
        assert_string_equal(address, "a:1");
        assert_false(healths_due(h, now + 60 * SECOND, &name, address)); /* one hello at a time */
        assert_int_equal(healths_wait_ms(h, name + 1, now), 0);
        assert_true(now - since >= HEALTH_FIRST_MS * MS && now - since <= 10 * SECOND);
        assert_true(now - since >= waited || now - since >= HEALTH_MOST_MS * MS);
        waited = now - since;
        healths_failed(h, 7, "a:1", now);
    }
    healths_well(h, 7);
    assert_false(healths_is_ill(h, 7));
    assert_int_equal(healths_ill(h), 0);
    healths_free(h);
}

static void asks_that_fail_meanwhile_do_not_put_the_hello_off(void **state)
{
    (void)state;
    struct healths *h = healths_new();
    char address[HEALTH_ADDRESS_MAX];
    uint64_t name, now = 100 * SECOND;
    for (int i = 0; i < 1000; i++)
        healths_failed(h, 7, "a:1", now + (uint64_t)i * MS);
    assert_true(healths_due(h, now + SECOND, &name, address));
    assert_int_equal(healths_ill(h), 1);
    healths_free(h);
}

static void many_asks_that_wait_make_one_hello_a_second(void **state)
{
    (void)state;
    struct healths *h = healths_new();
    int said = 0;
    for (int i = 0; i < 3500; i++)
        said += healths_may_say(h, 7, 100 * SECOND + (uint64_t)i * MS);
    assert_int_equal(said, 4);
    assert_true(healths_may_say(h, 8, 100 * SECOND));
    assert_false(healths_is_ill(h, 7));
    healths_free(h);
}

static void a_load_is_forgotten_after_a_second(void **state)
{
    (void)state;
    struct healths *h = healths_new();
    healths_set_load(h, 7, 350, 100 * SECOND);
    assert_int_equal(healths_load(h, 7, 100 * SECOND + 900 * MS), 350);
    assert_int_equal(healths_load(h, 7, 102 * SECOND), 0);
    assert_int_equal(healths_load(h, 8, 100 * SECOND), 0);
    healths_free(h);
}

/* --- hot profiles --- */

static const uint64_t ranks[] = {11, 12, 13, 14};

static struct hot_choice ask_often(struct hots *h, struct healths *he, int times, uint64_t *now)
{
    struct hot_choice c = {0};
    for (int i = 0; i < times; i++) {
        healths_set_load(he, ranks[0], HOT_LOAD + 100, *now);
        c = hots_choose(h, he, 5, ranks, 4, *now);
        if (c.copy || c.rank)
            break;
        *now += 2 * MS;
    }
    return c;
}

static void what_is_asked_for_seldom_or_of_an_idle_shard_gets_no_copy(void **state)
{
    (void)state;
    struct hots *h = hots_new();
    struct healths *he = healths_new();
    uint64_t now = 100 * SECOND;
    struct hot_choice c = ask_often(h, he, HOT_RATE - 1, &now);
    assert_true(c.rank == 0 && c.copy == 0);
    now += 5 * SECOND; /* the shard's load is forgotten */
    for (int i = 0; i < 1000; i++) {
        c = hots_choose(h, he, 5, ranks, 4, now + (uint64_t)i * 1000);
        assert_true(c.rank == 0 && c.copy == 0);
    }
    hots_free(h);
    healths_free(he);
}

static void a_hot_profile_gets_a_copy_that_is_used_once_it_is_there(void **state)
{
    (void)state;
    struct hots *h = hots_new();
    struct healths *he = healths_new();
    uint64_t now = 100 * SECOND;
    struct hot_choice c = ask_often(h, he, HOT_RATE + 1, &now);
    assert_int_equal(c.copy, 1);
    assert_int_equal(c.rank, 0);
    c = ask_often(h, he, 10, &now);
    assert_true(c.rank == 0 && c.copy == 0); /* it is being made */
    hots_copied(h, 5, ranks[1], true, now);
    assert_int_equal(ask_often(h, he, 1, &now).rank, 1);
    healths_set_load(he, ranks[1], HOT_LOAD + 500, now);
    assert_int_equal(ask_often(h, he, 1, &now).rank, 0); /* the owner has less to do */
    healths_set_load(he, ranks[1], 0, now);
    healths_failed(he, ranks[1], "b:1", now);
    assert_int_equal(ask_often(h, he, 1, &now).rank, 0); /* it is ill */
    hots_free(h);
    healths_free(he);
}

static void where_two_are_not_enough_there_are_four(void **state)
{
    (void)state;
    struct hots *h = hots_new();
    struct healths *he = healths_new();
    uint64_t now = 100 * SECOND;
    ask_often(h, he, HOT_RATE + 1, &now);
    hots_copied(h, 5, ranks[1], true, now);
    size_t made = 0;
    for (int i = 0; i < 3 * HOT_RATE_MORE; i++) {
        for (size_t k = 0; k < 4; k++)
            healths_set_load(he, ranks[k], HOT_LOAD + 100, now);
        struct hot_choice c = hots_choose(h, he, 5, ranks, 4, now);
        if (c.copy) {
            assert_int_equal(c.copy, 2 + made);
            hots_copied(h, 5, ranks[c.copy], true, now);
            made++;
        }
        now += MS;
    }
    assert_int_equal(made, 2);
    hots_free(h);
    healths_free(he);
}

static void a_profile_is_warm_where_it_was_answered_last(void **state)
{
    (void)state;
    struct hots *h = hots_new();
    hots_touch(h, 5, SECOND);
    assert_false(hots_is_warm(h, 5, 11));
    hots_set_warm(h, 5, 11);
    assert_true(hots_is_warm(h, 5, 11));
    assert_false(hots_is_warm(h, 5, 12));
    hots_set_warm(h, 6, 11); /* never asked for: not kept */
    assert_false(hots_is_warm(h, 6, 11));
    hots_free(h);
}

/* --- pace --- */

static void the_delay_is_what_nearly_all_stay_below(void **state)
{
    (void)state;
    struct paces *p = paces_new();
    assert_true(paces_delay_us(p, SHARD_WINDOW, true) == UINT64_MAX);
    for (int i = 0; i < 640; i++)
        paces_note(p, SHARD_WINDOW, true, i % 100 < 94 ? 20000 : i % 100 < 97 ? 50000 : 900000);
    uint64_t us = paces_delay_us(p, SHARD_WINDOW, true);
    assert_true(us >= 50000 && us < 70000);
    for (int i = 0; i < 640; i++)
        paces_note(p, SHARD_TRACKS, true, 100);
    assert_int_equal(paces_delay_us(p, SHARD_TRACKS, true), PACE_LEAST_US);
    assert_true(paces_delay_us(p, SHARD_TRACKS, false) == UINT64_MAX);
    paces_free(p);
}

static void old_times_are_forgotten(void **state)
{
    (void)state;
    struct paces *p = paces_new();
    for (int i = 0; i < 4096; i++)
        paces_note(p, SHARD_MAP, true, 3000000);
    for (int i = 0; i < 40000; i++)
        paces_note(p, SHARD_MAP, true, 30000);
    assert_true(paces_delay_us(p, SHARD_MAP, true) < 50000);
    paces_free(p);
}

static void second_asks_are_a_twentieth_at_most(void **state)
{
    (void)state;
    struct paces *p = paces_new();
    int seconds = 0;
    for (int i = 0; i < 10000; i++) {
        paces_earn(p);
        seconds += paces_spend(p);
    }
    assert_true(seconds > 450 && seconds <= 500);
    assert_false(paces_may(SHARD_TOOL, true));
    assert_false(paces_may(SHARD_WINDOW, false));
    assert_true(paces_may(SHARD_MAP, false));
    paces_free(p);
}

/* --- places --- */

#define HOSTS 8
#define MEMBERS 4

struct scene {
    struct run run;
    struct run_host hosts[HOSTS];
    struct shard_object objects[HOSTS];
    char keys[HOSTS][32];
    struct xp_ring *ring;
};

static void make_scene(struct scene *s, const char *root)
{
    struct xp_ring_member members[MEMBERS] = {
        {"a", "h:1"}, {"b", "h:2"}, {"c", "h:3"}, {"d", "h:4"}};
    struct xp_error err = {0};
    memset(s, 0, sizeof *s);
    s->run = (struct run){.prefix = "run/", .hosts = s->hosts, .n_hosts = HOSTS, .bytes = 100};
    assert_int_equal(xp_store_open_path(root, &s->run.store, &err), XP_OK);
    for (size_t i = 0; i < HOSTS; i++) {
        snprintf(s->keys[i], sizeof s->keys[i], "run/host-%zu.xplane.pb", i);
        s->hosts[i].key = s->keys[i];
        s->objects[i] = (struct shard_object){s->run.store, s->keys[i], "host", 1, 1, false};
    }
    assert_int_equal(xp_ring_new(members, MEMBERS, &s->ring, &err), XP_OK);
}

static void a_host_alone_goes_to_who_maps_it_in_the_session(void **state)
{
    (void)state;
    struct scene s;
    make_scene(&s, ".");
    struct places *p = places_new();
    struct healths *he = healths_new();
    struct shard_request req = {.op = SHARD_TOOL, .objects = s.objects, .nobjects = HOSTS};
    size_t load[MEMBERS] = {0};
    assert_true(places_share_out(p, he, s.ring, &s.run, &req));
    for (size_t i = 0; i < HOSTS; i++) {
        uint32_t r[UPSTREAM_TRIES];
        struct shard_request one = {.op = SHARD_WINDOW, .objects = &s.objects[i], .nobjects = 1};
        assert_int_equal(places_ranks(p, s.ring, &one, &s.run, r, UPSTREAM_TRIES), MEMBERS);
        for (size_t k = 1; k < MEMBERS; k++)
            assert_int_not_equal(r[k], r[0]);
        const struct shard_peer *owner = &req.peers[req.owners[i].first - 1];
        assert_string_equal(xp_ring_member(s.ring, r[0])->name, owner->name);
        assert_int_not_equal(req.owners[i].next, req.owners[i].first);
        load[r[0]]++;
    }
    for (size_t i = 0; i < MEMBERS; i++)
        assert_true(load[i] <= 3);
    free((void *)req.owners);
    free((void *)req.peers);
    xp_ring_unref(s.ring);
    xp_store_free(s.run.store);
    places_free(p);
    healths_free(he);
}

/* Alike in all but what they are joined of. */
static void joined_runs_have_owners_of_their_own(void **state)
{
    (void)state;
    struct scene s, t;
    make_scene(&s, ".");
    make_scene(&t, ".");
    s.run.name = "a//b";
    t.run.name = "a//c";
    struct places *p = places_new(), *fresh = places_new();
    for (size_t i = 0; i < HOSTS; i++)
        snprintf(t.keys[i], sizeof t.keys[i], "other/host-%zu.xplane.pb", i * 7);
    for (size_t i = 0; i < HOSTS; i++) {
        uint32_t r[UPSTREAM_TRIES], want[UPSTREAM_TRIES];
        struct shard_request one = {.op = SHARD_WINDOW, .objects = &s.objects[i], .nobjects = 1};
        places_ranks(p, s.ring, &one, &s.run, r, UPSTREAM_TRIES);
        one.objects = &t.objects[i];
        places_ranks(p, s.ring, &one, &t.run, r, UPSTREAM_TRIES);
        places_ranks(fresh, s.ring, &one, &t.run, want, UPSTREAM_TRIES);
        assert_int_equal(r[0], want[0]);
    }
    places_free(p);
    places_free(fresh);
    xp_ring_unref(s.ring);
    xp_ring_unref(t.ring);
    xp_store_free(s.run.store);
    xp_store_free(t.run.store);
}

static void an_owner_that_is_ill_comes_second(void **state)
{
    (void)state;
    struct scene s;
    make_scene(&s, ".");
    struct places *p = places_new();
    struct healths *he = healths_new();
    struct shard_request req = {.op = SHARD_REPORT, .objects = s.objects, .nobjects = HOSTS};
    healths_failed(he, place_name(s.ring, 2), "h:3", SECOND);
    assert_true(places_share_out(p, he, s.ring, &s.run, &req));
    for (size_t i = 0; i < HOSTS; i++)
        assert_string_not_equal(req.peers[req.owners[i].first - 1].name, "c");
    free((void *)req.owners);
    free((void *)req.peers);
    req = (struct shard_request){.op = SHARD_TRACKS, .objects = s.objects, .nobjects = HOSTS};
    assert_false(places_share_out(p, he, s.ring, &s.run, &req)); /* no partials of these */
    xp_ring_unref(s.ring);
    xp_store_free(s.run.store);
    places_free(p);
    healths_free(he);
}

/* --- sentences in headers --- */

static void a_sentence_comes_out_of_a_header_as_it_went_in(void **state)
{
    (void)state;
    static const char *const all[] = {"", "plain", "50 % \r\n\xc3\xa4\x01", "%41", "%", "%%4"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char there[200];
        rpc_escape(all[i], there);
        for (const char *p = there; *p; p++)
            assert_true(*p >= 0x20 && *p <= 0x7e);
        rpc_unescape(there);
        assert_string_equal(there, all[i]);
    }
    char odd[] = "%zz%4%00";
    rpc_unescape(odd);
    assert_string_equal(odd, "%zz%4%00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_failed_is_due_for_a_hello_later_and_later),
        cmocka_unit_test(asks_that_fail_meanwhile_do_not_put_the_hello_off),
        cmocka_unit_test(many_asks_that_wait_make_one_hello_a_second),
        cmocka_unit_test(a_load_is_forgotten_after_a_second),
        cmocka_unit_test(what_is_asked_for_seldom_or_of_an_idle_shard_gets_no_copy),
        cmocka_unit_test(a_hot_profile_gets_a_copy_that_is_used_once_it_is_there),
        cmocka_unit_test(where_two_are_not_enough_there_are_four),
        cmocka_unit_test(a_profile_is_warm_where_it_was_answered_last),
        cmocka_unit_test(the_delay_is_what_nearly_all_stay_below),
        cmocka_unit_test(old_times_are_forgotten),
        cmocka_unit_test(second_asks_are_a_twentieth_at_most),
        cmocka_unit_test(a_host_alone_goes_to_who_maps_it_in_the_session),
        cmocka_unit_test(joined_runs_have_owners_of_their_own),
        cmocka_unit_test(an_owner_that_is_ill_comes_second),
        cmocka_unit_test(a_sentence_comes_out_of_a_header_as_it_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
