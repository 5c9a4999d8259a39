/* Queries beside a load: they see published planes only, and in the end all of them. */
#include "shard/load.h"
#include "shard/query/query.h"
#include "tests/unit/query_support.h"
#include "tests/unit/xspace_make.h"
#include "window.pb-c.h"

enum { PLANES = 12, LINES = 4, EVENTS = 3000, TOTAL = PLANES * LINES * EVENTS };

struct loading {
    _Atomic int indexed, done;
    enum xp_status status;
};

static void on_indexed(void *ctx)
{
    struct loading *l = ctx;
    atomic_store(&l->indexed, 1);
}

static void on_done(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct loading *l = ctx;
    (void)err;
    l->status = status;
    atomic_store(&l->done, 1);
}

static struct xp_buf profile(void)
{
    struct xp_buf space = make_message();
    for (int p = 0; p < PLANES; p++) {
        char name[32];
        snprintf(name, sizeof name, "/device:TPU:%d", p);
        struct xp_buf plane = make_plane(p, name);
        for (int l = 0; l < LINES; l++) {
            struct xp_buf line = make_line(l, "ops", 0);
            for (int i = 0; i < EVENTS; i++)
                make_add_event(&line, 1 + i % 7, i * 1000, 900);
            make_put(&plane, 3, &line);
        }
        for (int i = 1; i <= 7; i++) {
            snprintf(name, sizeof name, "op.%d", i);
            make_add_meta(&plane, 4, i, name);
        }
        make_put(&space, 1, &plane);
    }
    return space;
}

static uint64_t window_events(const struct part *p, bool *loading)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct query_window q = {.px = 1500};
    struct xp_error err;
    struct out out;
    out_init(&out, NULL);
    assert_int_equal(query_window(p, &q, a, &out, &err), XP_OK);
    Xprofd__Window *w = xprofd__window__unpack(NULL, out.text.n, out.text.p);
    assert_non_null(w);
    uint64_t events = w->events;
    *loading = w->loading;
    xprofd__window__free_unpacked(w, NULL);
    out_fini(&out);
    xp_arena_free(a);
    return events;
}

enum question { TRACKS, SEARCH, AGGREGATE };

static uint64_t json_number(const struct part *p, enum question question, const char *key)
{
    static const char *const keys[] = {"events", "total", "events"};
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err;
    struct out out;
    struct query_search s = {.q = XP_SPAN_LIT("op"), .limit = 1, .dir = 1, .after_ps = -1};
    struct query_aggregate g = {.limit = 5};
    struct query_tracks t = {.limit = 100};
    enum xp_status status = XP_OK;
    out_init(&out, NULL);
    if (question == TRACKS)
        status = query_tracks(p, &t, a, &out, &err);
    else if (question == SEARCH)
        status = query_search(p, &s, a, &out, &err);
    else
        status = query_aggregate(p, &g, a, &out, &err);
    assert_int_equal(status, XP_OK);
    json_t *j = fixture_json(&out);
    uint64_t n = (uint64_t)fixture_int(j, key ? key : keys[question]);
    json_decref(j);
    out_fini(&out);
    xp_arena_free(a);
    return n;
}

static void queries_see_published_planes_while_others_load(void **state)
{
    (void)state;
    struct xp_buf bytes = profile();
    char *path = make_file(xp_buf_all(&bytes));
    struct xp_store *store;
    struct xp_store_page page;
    struct xp_error err;
    struct loading l = {0};
    struct load_hooks hooks = {.ctx = &l, .indexed = on_indexed, .done = on_done};
    assert_int_equal(xp_store_open_file(path, &store, &err), XP_OK);
    assert_int_equal(xp_store_list(store, "", true, NULL, 1, &page, &err), XP_OK);
    struct load_source src = {
        store, page.items[0].key, page.items[0].generation, page.items[0].size, false, false};
    struct xp_workers *w = xp_workers_new(2, 10);
    struct load *load = load_new(&src, NULL, &hooks);
    assert_int_equal(load_start(load, w), XP_OK);
    while (!atomic_load(&l.indexed) && !atomic_load(&l.done))
        ;
    struct part *p = load_part(load);
    assert_non_null(p);
    uint64_t last[4] = {0};
    for (bool loading = true; loading;) {
        uint64_t now[4] = {json_number(p, TRACKS, NULL), window_events(p, &loading),
                           json_number(p, SEARCH, NULL), json_number(p, AGGREGATE, NULL)};
        for (int i = 0; i < 4; i++) {
            assert_true(now[i] >= last[i] && now[i] % (LINES * EVENTS) == 0);
            last[i] = now[i];
        }
    }
    assert_int_equal(json_number(p, TRACKS, NULL), TOTAL);
    assert_int_equal(json_number(p, AGGREGATE, "names"), 7 * PLANES);
    while (!atomic_load(&l.done))
        ;
    assert_int_equal(l.status, XP_OK);
    xp_workers_free(w);
    load_free(load);
    xp_store_page_fini(&page);
    xp_store_free(store);
    remove(path);
    free(path);
    xp_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_see_published_planes_while_others_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
