#include "shard/query/query.h"
#include "tests/unit/query_support.h"

static const char *const names[] = {"all-reduce.1", "fusion.2", "copy", "All-Reduce.9"};

struct truth { /* an event, as search should find it */
    int64_t begin;
    uint64_t id;
    uint32_t name, line;
    int64_t dur;
};

struct world {
    struct fixture *f;
    struct truth *all;
    size_t n;
};

static int by_begin(const void *x, const void *y)
{
    const struct truth *a = x, *b = y;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static struct world world_new(uint64_t seed, size_t n)
{
    struct world w = {.f = fixture_new()};
    w.all = calloc(n * 3, sizeof *w.all);
    for (uint32_t l = 0; l < 3; l++) {
        struct fixture_event *ev = fixture_random_events(&seed, n, 10, 4);
        int64_t base = (int64_t)l * 17;
        if (l != 1)
            fixture_plane(w.f, l ? "/host:CPU" : "/device:TPU:0", names, 4);
        fixture_line(w.f, l == 1 ? "XLA Ops" : "other", base, ev, n);
        for (size_t i = 0; i < n; i++)
            w.all[w.n++] = (struct truth){ev[i].begin_ps + base, ev[i].at, ev[i].name, l,
                                          ev[i].end_ps - ev[i].begin_ps};
        free(ev);
    }
    fixture_done(w.f);
    qsort(w.all, w.n, sizeof *w.all, by_begin);
    return w;
}

static void world_free(struct world *w)
{
    fixture_free(w->f);
    free(w->all);
}

static enum xp_status try_search(struct fixture *f, const struct query_search *q, json_t **j,
                                 struct xp_error *err)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    out_init(&out, NULL);
    enum xp_status status = query_search(&f->part, q, a, &out, err);
    if (status == XP_OK) {
        uint8_t *body;
        size_t n;
        bool encoded;
        if (out.gz) { /* read it through the answer's own way */
            assert_int_equal(out_finish(&out, &body, &n, &encoded, err), XP_OK);
            static uint8_t text[1 << 20];
            size_t got = 0, more = 1;
            struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
            for (; more; got += more)
                assert_int_equal(xp_gunzip_read(g, text + got, sizeof text - got, &more), XP_OK);
            xp_gunzip_free(g);
            free(body);
            *j = json_loadb((const char *)text, got, 0, NULL);
            assert_non_null(*j);
        } else {
            *j = fixture_json(&out);
        }
    }
    out_fini(&out);
    xp_arena_free(a);
    return status;
}

static json_t *search(struct fixture *f, const struct query_search *q)
{
    struct xp_error err;
    json_t *j = NULL;
    if (try_search(f, q, &j, &err) != XP_OK)
        fail_msg("%s", err.text);
    return j;
}

static bool wanted(const struct truth *t)
{
    return t->name == 0 || t->name == 3;
}

/* Steps through all hits `limit` at a time, and compares with the truth. */
static void walk_hits(struct world *w, int dir, uint32_t limit)
{
    struct query_search q = {.q = XP_SPAN_LIT("all-reduce"), .limit = limit, .dir = dir};
    q.after_ps = dir > 0 ? INT64_MIN : INT64_MAX;
    size_t at = dir > 0 ? 0 : w->n - 1, seen = 0, total = 0;
    for (size_t i = 0; i < w->n; i++)
        total += wanted(&w->all[i]);
    for (bool more = true; more;) {
        json_t *j = search(w->f, &q), *hits = json_object_get(j, "hits");
        assert_int_equal(fixture_int(j, "total"), total);
        more = json_is_true(json_object_get(j, "more"));
        assert_true(!more || json_array_size(hits) == limit);
        for (size_t i = 0; i < json_array_size(hits); i++, seen++, at += (size_t)dir) {
            json_t *h = json_array_get(hits, i);
            while (!wanted(&w->all[at]))
                at += (size_t)dir;
            const struct truth *t = &w->all[at];
            assert_int_equal(fixture_int(h, "id"), t->id);
            assert_int_equal(fixture_int(h, "begin_ps"), t->begin);
            assert_int_equal(fixture_int(h, "duration_ps"), t->dur);
            assert_int_equal(fixture_int(h, "line"), t->line);
            assert_string_equal(json_string_value(json_object_get(h, "name")), names[t->name]);
            q.after_ps = t->begin;
            q.after_id = t->id;
        }
        json_decref(j);
    }
    assert_int_equal(seen, total);
}

static void hits_come_in_order_of_time_either_way(void **state)
{
    (void)state;
    struct world w = world_new(77, 700);
    walk_hits(&w, 1, 1000);
    walk_hits(&w, 1, 7);
    walk_hits(&w, -1, 1000);
    walk_hits(&w, -1, 10);
    walk_hits(&w, -1, 1);
    world_free(&w);
}

static void counts_are_those_of_a_plain_scan(void **state)
{
    (void)state;
    struct world w = world_new(5, 3000);
    for (int round = 0; round < 20; round++) {
        int64_t t0 = round * 700, t1 = t0 + 1 + round * 991, total = 0, ops = 0;
        struct query_search q = {.q = XP_SPAN_LIT("dur>4ps -copy -plane:host"), .limit = 5};
        q.dir = 1;
        q.t0_ps = t0;
        q.t1_ps = t1;
        for (size_t i = 0; i < w.n; i++) {
            const struct truth *t = &w.all[i];
            if (t->name == 2 || t->dur <= 4 || t->line == 2 || t->begin >= t1 ||
                t->begin + t->dur <= t0)
                continue;
            total++;
            ops += t->line == 1;
        }
        json_t *j = search(w.f, &q), *lines = json_object_get(j, "lines");
        assert_int_equal(fixture_int(j, "total"), total);
        for (size_t i = 0; i < json_array_size(lines); i++) {
            json_t *l = json_array_get(lines, i);
            if (fixture_int(l, "line") == 1)
                assert_int_equal(fixture_int(l, "count"), ops);
            assert_int_not_equal(fixture_int(l, "line"), 2);
        }
        json_decref(j);
    }
    world_free(&w);
}

static void rows_and_line_words_restrict_the_search(void **state)
{
    (void)state;
    struct world w = world_new(9, 100);
    uint32_t row = 2;
    struct query_search q = {.q = XP_SPAN_LIT("-nothing"), .limit = 1, .dir = 1, .rows = {&row, 1}};
    q.after_ps = INT64_MIN;
    json_t *j = search(w.f, &q);
    assert_int_equal(fixture_int(j, "total"), 100);
    json_decref(j);
    q.q = XP_SPAN_LIT("line:xla");
    j = search(w.f, &q);
    assert_int_equal(fixture_int(j, "total"), 0);
    json_decref(j);
    q.rows.n = 0;
    j = search(w.f, &q);
    assert_int_equal(fixture_int(j, "total"), 100);
    assert_true(json_is_true(json_object_get(j, "more")));
    json_decref(j);
    world_free(&w);
}

static void bad_arguments_get_a_sentence(void **state)
{
    (void)state;
    struct world w = world_new(9, 10);
    uint32_t row = 3;
    struct query_search bad[] = {
        {.q = XP_SPAN_LIT("a"), .limit = 0, .dir = 1},
        {.q = XP_SPAN_LIT("a"), .limit = 1001, .dir = 1},
        {.q = XP_SPAN_LIT("a"), .limit = 1, .dir = 0},
        {.q = XP_SPAN_LIT(""), .limit = 1, .dir = 1},
        {.q = XP_SPAN_LIT("\""), .limit = 1, .dir = 1},
        {.q = XP_SPAN_LIT("a"), .limit = 1, .dir = 1, .t0_ps = 5, .t1_ps = 4},
        {.q = XP_SPAN_LIT("a"), .limit = 1, .dir = 1, .rows = {&row, 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xp_error err = {0};
        json_t *j;
        assert_int_equal(try_search(w.f, &bad[i], &j, &err), XP_BAD_REQUEST);
        assert_true(strlen(err.text) > 5);
    }
    world_free(&w);
}

static void what_is_loading_is_said(void **state)
{
    (void)state;
    struct world w = world_new(9, 10);
    struct query_search q = {.q = XP_SPAN_LIT("-nothing"), .limit = 1, .dir = 1};
    q.after_ps = INT64_MIN;
    atomic_store(&w.f->part.state, PART_LOADING);
    atomic_store(&w.f->planes[1].state, PART_WAITING);
    w.f->planes[1].evmeta = NULL;
    json_t *j = search(w.f, &q);
    assert_int_equal(fixture_int(j, "total"), 20);
    assert_true(json_is_true(json_object_get(j, "loading")));
    json_decref(j);
    world_free(&w);
}

static void a_cancelled_search_stops(void **state)
{
    (void)state;
    struct world w = world_new(9, 10);
    struct query_search q = {.q = XP_SPAN_LIT("copy"), .limit = 1, .dir = 1};
    struct xp_arena *a = xp_arena_new(NULL);
    atomic_bool cancel = true;
    struct xp_error err;
    struct out out;
    out_init(&out, &cancel);
    assert_int_equal(query_search(&w.f->part, &q, a, &out, &err), XP_CANCELLED);
    out_fini(&out);
    xp_arena_free(a);
    world_free(&w);
}

static void extreme_places_are_safe(void **state)
{
    (void)state;
    struct world w = world_new(9, 200);
    int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < 5; i++)
        for (int dir = -1; dir < 2; dir += 2)
            for (size_t b = 0; b < 5; b++) {
                struct query_search q = {.q = XP_SPAN_LIT("copy"), .limit = 3, .dir = dir};
                q.after_ps = times[i];
                w.f->lines[0].base_ps = times[b];
                json_decref(search(w.f, &q));
            }
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_come_in_order_of_time_either_way),
        cmocka_unit_test(counts_are_those_of_a_plain_scan),
        cmocka_unit_test(rows_and_line_words_restrict_the_search),
        cmocka_unit_test(bad_arguments_get_a_sentence),
        cmocka_unit_test(what_is_loading_is_said),
        cmocka_unit_test(a_cancelled_search_stops),
        cmocka_unit_test(extreme_places_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
