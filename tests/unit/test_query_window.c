#include "shard/query/query.h"
#include "tests/unit/query_support.h"
#include "window.pb-c.h"

static const char *const names[] = {"alpha", "beta", "gamma", "delta"};

static struct fixture *two_lines(struct fixture_event *ev, size_t n, int64_t base)
{
    struct fixture *f = fixture_new();
    fixture_plane(f, "/device:TPU:0", names, 4);
    fixture_line(f, "ops", base, ev, n);
    fixture_plane(f, "/host:CPU", names, 4);
    struct fixture_event one = {.begin_ps = 3, .end_ps = 9, .name = 1};
    fixture_line(f, "main", 0, &one, 1);
    fixture_done(f);
    return f;
}

static enum xp_status try_window(struct fixture *f, const struct query_window *q,
                                 Xprofd__Window **w, struct xp_error *err)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct out out;
    out_init(&out, NULL);
    enum xp_status status = query_window(&f->part, q, a, &out, err);
    if (status == XP_OK) {
        assert_string_equal(out.content_type, "application/x-protobuf");
        assert_true(out.text.n <= (q->max_bytes ? q->max_bytes : 65536));
        *w = xprofd__window__unpack(NULL, out.text.n, out.text.p);
        assert_non_null(*w);
    }
    out_fini(&out);
    xp_arena_free(a);
    return status;
}

static Xprofd__Window *window(struct fixture *f, int64_t t0, int64_t t1, uint32_t px,
                              uint32_t max_bytes)
{
    struct query_window q = {.t0_ps = t0, .t1_ps = t1, .px = px, .max_bytes = max_bytes};
    struct xp_error err;
    Xprofd__Window *w = NULL;
    if (try_window(f, &q, &w, &err) != XP_OK)
        fail_msg("%s", err.text);
    return w;
}

struct rect {
    int64_t begin, end;
    uint64_t id, count, busy;
    uint32_t name;
};

/* The rectangles of a row as session times; checks what holds of every row. */
static size_t rects_of(const Xprofd__Window *w, const Xprofd__Row *row, struct rect *v)
{
    size_t n = row->n_begin, busy = 0;
    uint64_t id = 0, sum = 0;
    int64_t end = 0;
    assert_true(n > 0);
    assert_int_equal(row->n_duration, n);
    assert_int_equal(row->n_name, n);
    assert_int_equal(row->n_id, n);
    assert_true(row->n_count == n || row->n_count == 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t b = row->begin[i], d = row->id[i];
        v[i].begin = i ? end + (int64_t)b : w->t0_ps + ((int64_t)(b >> 1) ^ -(int64_t)(b & 1));
        v[i].end = end = v[i].begin + (int64_t)row->duration[i];
        id += (uint64_t)((int64_t)(d >> 1) ^ -(int64_t)(d & 1));
        v[i].id = id;
        v[i].name = row->name[i];
        v[i].count = row->n_count ? row->count[i] : 1;
        v[i].busy = v[i].count > 1 ? row->busy[busy++] : (uint64_t)(v[i].end - v[i].begin);
        assert_true(v[i].name < w->n_names);
        sum += v[i].count;
    }
    assert_int_equal(busy, row->n_busy);
    assert_int_equal(sum, row->events);
    assert_int_equal(row->events - n, row->hidden);
    return n;
}

static uint64_t brute_count(const struct fixture_event *ev, size_t n, int64_t base, int64_t t0,
                            int64_t t1)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t b = ev[i].begin_ps + base, e = ev[i].end_ps + base;
        count += b < t1 && (e > t0 || (b == e && b >= t0));
    }
    return count;
}

static void counts_are_exact_at_any_width(void **state)
{
    (void)state;
    uint64_t rng = 42;
    static struct rect v[40000];
    for (int round = 0; round < 6; round++) {
        size_t n = 1 + fixture_random(&rng) % 30000;
        struct fixture_event *ev = fixture_random_events(&rng, n, 1000, 4);
        struct fixture *f = two_lines(ev, n, -500);
        for (int i = 0; i < 40; i++) {
            int64_t t0 = (int64_t)(fixture_random(&rng) % (n * 1000)) - 700;
            int64_t t1 = t0 + 1 + (int64_t)(fixture_random(&rng) % (n * 1000) >> i % 20);
            uint32_t px = 1 + (uint32_t)(fixture_random(&rng) % (i % 2 ? 3000 : 16384));
            Xprofd__Window *w = window(f, t0, t1, px, i % 3 ? 0 : 4096);
            uint64_t events = 0, drawn = 0;
            for (size_t k = 0; k < w->n_rows; k++) {
                drawn += rects_of(w, w->rows[k], v);
                events += w->rows[k]->events;
            }
            if (!w->rows_cut) {
                assert_int_equal(events, w->events);
                assert_int_equal(w->events - drawn, w->hidden);
            }
            struct fixture_event main_ev = {.begin_ps = 3, .end_ps = 9};
            assert_int_equal(w->events, brute_count(ev, n, -500, t0, t1) +
                                            brute_count(&main_ev, 1, 0, t0, t1));
            xprofd__window__free_unpacked(w, NULL);
        }
        fixture_free(f);
        free(ev);
    }
}

static int by_u64(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static void zooming_in_shows_every_event_by_itself(void **state)
{
    (void)state;
    uint64_t rng = 4711;
    size_t n = 3000, have = 0;
    struct fixture_event *ev = fixture_random_events(&rng, n, 1000, 4);
    struct fixture *f = two_lines(ev, n, 0);
    static struct rect v[40000];
    uint64_t *ids = calloc(n * 4, sizeof *ids), *want = calloc(n, sizeof *want);
    /* A pixel is a tenth of a ps. */
    int64_t end = (int64_t)(n + 50) * 1000, step = 1600;
    for (int64_t t = -step; t < end; t += step) {
        struct query_window q = {t, t + step, 16000, 1 << 20, {(uint32_t[]){0}, 1}};
        struct xp_error err;
        Xprofd__Window *w = NULL;
        assert_int_equal(try_window(f, &q, &w, &err), XP_OK);
        assert_int_equal(w->hidden, 0);
        assert_int_equal(w->merge_px, 1);
        for (size_t k = 0; k < w->n_rows; k++) {
            size_t m = rects_of(w, w->rows[k], v);
            for (size_t i = 0; i < m; i++)
                if (v[i].begin >= t && v[i].begin < t + step)
                    ids[have++] = v[i].id;
        }
        xprofd__window__free_unpacked(w, NULL);
    }
    for (size_t i = 0; i < n; i++)
        want[i] = ev[i].at;
    qsort(ids, have, sizeof *ids, by_u64);
    qsort(want, n, sizeof *want, by_u64);
    assert_int_equal(have, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    free(ids);
    free(want);
    fixture_free(f);
    free(ev);
}

static void the_answer_is_exact_for_a_few_events(void **state)
{
    (void)state;
    struct fixture_event ev[] = {{.begin_ps = 100, .end_ps = 300, .name = 0},
                                 {.begin_ps = 150, .end_ps = 250, .name = 2}};
    struct fixture *f = two_lines(ev, 2, 1000);
    struct rect v[4];
    Xprofd__Window *w = window(f, 0, 2000, 2000, 0);
    assert_int_equal(w->n_rows, 3);
    assert_int_equal(w->events, 3);
    assert_int_equal(w->hidden, 0);
    assert_int_equal(w->px, 2000);
    assert_false(w->loading);
    assert_string_equal(w->names[0], "");
    assert_int_equal(rects_of(w, w->rows[1], v), 1);
    assert_int_equal(w->rows[1]->line, 0);
    assert_int_equal(w->rows[1]->lane, 1);
    assert_int_equal(w->rows[1]->busy_ps, 100);
    assert_int_equal(v[0].begin, 1150);
    assert_int_equal(v[0].end, 1250);
    assert_int_equal(v[0].id, ev[1].at);
    assert_string_equal(w->names[v[0].name], "gamma");
    xprofd__window__free_unpacked(w, NULL);

    uint32_t row = 1;
    struct query_window q = {.px = 10, .rows = {&row, 1}};
    struct xp_error err;
    assert_int_equal(try_window(f, &q, &w, &err), XP_OK);
    assert_int_equal(w->n_rows, 1);
    assert_int_equal(w->rows[0]->line, 1);
    assert_int_equal(w->t0_ps, 3);
    assert_int_equal(w->t1_ps, 1301);
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void an_answer_too_large_is_merged_wider(void **state)
{
    (void)state;
    uint64_t rng = 8;
    size_t n = 20000;
    struct fixture_event *ev = fixture_random_events(&rng, n, 1000, 4);
    struct fixture *f = two_lines(ev, n, 0);
    Xprofd__Window *small = window(f, 0, 0, 4000, 4096), *large = window(f, 0, 0, 4000, 4 << 20);
    assert_true(small->merge_px > 1);
    assert_int_equal(large->merge_px, 1);
    assert_int_equal(small->events, large->events);
    assert_true(small->hidden > large->hidden);
    xprofd__window__free_unpacked(small, NULL);
    xprofd__window__free_unpacked(large, NULL);
    fixture_free(f);
    free(ev);
}

static void rows_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", names, 4);
    for (int i = 0; i < 1000; i++) {
        struct fixture_event ev = {.begin_ps = i, .end_ps = i + 5};
        fixture_line(f, "thread", 0, &ev, 1);
    }
    fixture_done(f);
    Xprofd__Window *w = window(f, 0, 0, 100, 4096);
    assert_int_equal(w->events, 1000);
    assert_int_equal(w->rows_cut + w->n_rows, 1000);
    assert_int_equal(w->hidden, w->rows_cut);
    assert_true(w->n_rows > 50);
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void long_and_broken_names_arrive_as_text(void **state)
{
    (void)state;
    static char name[5000];
    memset(name, 0xc3, sizeof name - 1);
    const char *odd[] = {name, "ok"};
    struct fixture *f = fixture_new();
    fixture_plane(f, "/host:CPU", odd, 2);
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 5, .name = 0},
                                 {.begin_ps = 5, .end_ps = 9, .name = 1}};
    fixture_line(f, "thread", 0, ev, 2);
    fixture_done(f);
    Xprofd__Window *w = window(f, 0, 0, 100, 4096);
    assert_int_equal(w->n_names, 3);
    assert_true(strlen(w->names[1]) <= 3 * 120);
    assert_memory_equal(w->names[1], "\xef\xbf\xbd", 3);
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void bad_arguments_get_a_sentence(void **state)
{
    (void)state;
    struct fixture_event ev = {.begin_ps = 1, .end_ps = 2};
    struct fixture *f = two_lines(&ev, 1, 0);
    uint32_t row = 2;
    struct query_window bad[] = {
        {.px = 0},
        {.px = 16385},
        {.px = UINT32_MAX},
        {.px = 1, .t0_ps = 5, .t1_ps = 5},
        {.px = 1, .t0_ps = INT64_MAX, .t1_ps = INT64_MIN},
        {.px = 1, .max_bytes = 4095},
        {.px = 1, .max_bytes = (4 << 20) + 1},
        {.px = 1, .rows = {&row, 1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xp_error err = {0};
        Xprofd__Window *w;
        assert_int_equal(try_window(f, &bad[i], &w, &err), XP_BAD_REQUEST);
        assert_true(strlen(err.text) > 10);
    }
    fixture_free(f);
}

static void extreme_windows_are_safe(void **state)
{
    (void)state;
    struct fixture_event ev[] = {{.begin_ps = 0, .end_ps = 10},
                                 {.begin_ps = INT64_MIN / 2, .end_ps = INT64_MAX / 2}};
    int64_t bases[] = {0, INT64_MAX / 2, INT64_MIN / 2, INT64_MAX, INT64_MIN};
    int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        struct fixture *f = two_lines(ev, 2, bases[b]);
        for (size_t i = 0; i < 7; i++)
            for (size_t k = i + 1; k < 7; k++)
                for (uint32_t px = 1; px <= 16384; px *= 4)
                    xprofd__window__free_unpacked(window(f, times[i], times[k], px, 0), NULL);
        xprofd__window__free_unpacked(window(f, 0, 0, 16384, 0), NULL);
        fixture_free(f);
    }
}

static void an_empty_profile_has_a_window(void **state)
{
    (void)state;
    struct fixture *f = fixture_new();
    fixture_done(f);
    Xprofd__Window *w = window(f, 0, 0, 1500, 0);
    assert_int_equal(w->n_rows, 0);
    assert_int_equal(w->events, 0);
    assert_true(w->t0_ps < w->t1_ps);
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void planes_that_are_not_published_are_left_out(void **state)
{
    (void)state;
    struct fixture_event ev = {.begin_ps = 1, .end_ps = 2};
    struct fixture *f = two_lines(&ev, 1, 0);
    f->lines[0].lanes = (struct lane **)1; /* must not be looked at */
    atomic_store(&f->planes[0].state, PART_LOADING);
    atomic_store(&f->part.state, PART_LOADING);
    Xprofd__Window *w = window(f, 0, 0, 1500, 0);
    assert_int_equal(w->n_rows, 1);
    assert_int_equal(w->rows[0]->line, 1);
    assert_true(w->loading);
    assert_int_equal(w->planes_done, 1);
    assert_int_equal(w->planes_total, 2);
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void damage_is_told_once_all_is_loaded(void **state)
{
    (void)state;
    struct fixture_event ev = {.begin_ps = 1, .end_ps = 2};
    struct fixture *f = two_lines(&ev, 1, 0);
    f->part.partial = true;
    xp_fail(&f->part.damage, XP_CORRUPT, 77, "a tag was expected");
    Xprofd__Window *w = window(f, 0, 0, 1500, 0);
    assert_true(w->partial);
    assert_string_equal(w->damage, "byte 77: a tag was expected");
    xprofd__window__free_unpacked(w, NULL);
    fixture_free(f);
}

static void a_cancelled_window_stops(void **state)
{
    (void)state;
    struct fixture_event ev = {.begin_ps = 1, .end_ps = 2};
    struct fixture *f = two_lines(&ev, 1, 0);
    atomic_bool cancel = true;
    struct xp_arena *a = xp_arena_new(NULL);
    struct query_window q = {.px = 100};
    struct xp_error err;
    struct out out;
    out_init(&out, &cancel);
    assert_int_equal(query_window(&f->part, &q, a, &out, &err), XP_CANCELLED);
    out_fini(&out);
    xp_arena_free(a);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact_at_any_width),
        cmocka_unit_test(zooming_in_shows_every_event_by_itself),
        cmocka_unit_test(the_answer_is_exact_for_a_few_events),
        cmocka_unit_test(an_answer_too_large_is_merged_wider),
        cmocka_unit_test(rows_that_do_not_fit_are_counted),
        cmocka_unit_test(long_and_broken_names_arrive_as_text),
        cmocka_unit_test(bad_arguments_get_a_sentence),
        cmocka_unit_test(extreme_windows_are_safe),
        cmocka_unit_test(an_empty_profile_has_a_window),
        cmocka_unit_test(planes_that_are_not_published_are_left_out),
        cmocka_unit_test(damage_is_told_once_all_is_loaded),
        cmocka_unit_test(a_cancelled_window_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
