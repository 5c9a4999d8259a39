#include <pthread.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "shard/cache.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define KEYS 8

/* A directory of equal profiles, workers, a budget and a cache. */
struct fixture {
    char dir[64];
    struct xp_store *store;
    struct xp_workers *workers;
    struct xp_budget budget;
    struct cache *cache;
    struct cache_key keys[KEYS];
    char names[KEYS][32];
};

static struct xp_buf profile(int lines, int events)
{
    struct xp_buf space = make_message();
    for (int p = 0; p < 3; p++) {
        struct xp_buf plane = make_plane(p, "p");
        for (int k = 0; k < lines; k++) {
            struct xp_buf line = make_line(k, "line", 0);
            for (int i = 0; i < events; i++)
                make_add_event(&line, i % 5, i * 1000L, 500 + i % 97);
            make_put(&plane, 3, &line);
        }
        make_put(&space, 1, &plane);
    }
    return space;
}

static void set_up(struct fixture *f, struct xp_span bytes, uint64_t limit)
{
    struct xp_error err;
    snprintf(f->dir, sizeof f->dir, "/tmp/cache-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    for (int i = 0; i < KEYS; i++) {
        char path[128];
        snprintf(f->names[i], sizeof f->names[i], "%d.xplane.pb", i);
        snprintf(path, sizeof path, "%s/%s", f->dir, f->names[i]);
        FILE *out = fopen(path, "w");
        assert_int_equal(fwrite(bytes.p, 1, bytes.n, out), bytes.n);
        fclose(out);
    }
    assert_int_equal(xp_store_open_dir(f->dir, &f->store, &err), XP_OK);
    for (int i = 0; i < KEYS; i++) {
        struct xp_object o;
        assert_int_equal(xp_store_stat(f->store, f->names[i], &o, &err), XP_OK);
        f->keys[i] =
            (struct cache_key){f->store, f->names[i], o.generation, o.size, false, false, false};
        free(o.key);
    }
    xp_budget_init(&f->budget, limit);
    f->workers = xp_workers_new(2, 64);
    f->cache = cache_new(f->workers, &f->budget);
    cache_set_linger(f->cache, 0);
}

static void tear_down(struct fixture *f)
{
    cache_free(f->cache);
    xp_workers_free(f->workers);
    assert_int_equal(f->budget.used, 0);
    assert_int_equal(f->budget.reserved, 0);
    xp_store_free(f->store);
    for (int i = 0; i < KEYS; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", f->dir, f->names[i]);
        unlink(path);
    }
    rmdir(f->dir);
}

struct answer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int called;
    enum xp_status status;
};

static void on_ready(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct answer *a = ctx;
    (void)err;
    pthread_mutex_lock(&a->lock);
    a->called++;
    a->status = status;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
}

static enum xp_status wait_for(struct cache_handle *h, enum cache_until until,
                               const atomic_bool *cancel)
{
    struct answer a = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    cache_when(h, until, cancel, on_ready, &a);
    pthread_mutex_lock(&a.lock);
    while (!a.called)
        pthread_cond_wait(&a.wake, &a.lock);
    pthread_mutex_unlock(&a.lock);
    assert_int_equal(a.called, 1);
    return a.status;
}

static struct cache_stats stats_of(struct fixture *f)
{
    struct cache_stats s;
    cache_stats(f->cache, &s);
    return s;
}

static void a_part_is_loaded_once_for_all_who_ask(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(4, 5000);
    struct xp_error err;
    struct cache_handle *h[5];
    set_up(&f, xp_buf_all(&bytes), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(cache_get(f.cache, &f.keys[0], &h[i], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_INDEXED, NULL), XP_OK);
    assert_int_equal(cache_part(h[0])->nplanes, 3);
    assert_int_equal(wait_for(h[1], CACHE_FIRST_PLANE, NULL), XP_OK);
    bool any = false;
    for (int i = 0; i < 3; i++)
        any |= plane_ready(&cache_part(h[1])->planes[i]);
    assert_true(any);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wait_for(h[i], CACHE_ALL, NULL), XP_OK);
        assert_true(part_ready(cache_part(h[i])));
        assert_ptr_equal(cache_part(h[i]), cache_part(h[0]));
    }
    struct cache_progress p;
    cache_progress(h[0], &p);
    assert_true(p.done && p.indexed);
    assert_int_equal(p.planes_done, 3);
    assert_int_equal(p.events_done, 60000);
    assert_int_equal(p.bytes_done, p.bytes_total);
    assert_int_equal(stats_of(&f).loads, 1);
    assert_int_equal(stats_of(&f).hits, 4);
    assert_int_equal(stats_of(&f).pinned, 1);
    for (int i = 0; i < 5; i++)
        cache_put(h[i]);
    assert_int_equal(stats_of(&f).pinned, 0);
    assert_int_equal(stats_of(&f).parts, 1); /* it stays */
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h[0], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_OK);
    assert_int_equal(stats_of(&f).loads, 1);
    cache_put(h[0]);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void unpinned_parts_make_room_and_pinned_ones_do_not(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(3, 50000);
    struct xp_error err;
    struct cache_handle *h[KEYS];
    set_up(&f, xp_buf_all(&bytes), 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h[0], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_OK);
    uint64_t one = stats_of(&f).bytes;
    cache_put(h[0]);
    f.budget.limit = one * 3 + (8 << 20); /* with what two hands take to decode */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < KEYS; i++) {
            assert_int_equal(cache_get(f.cache, &f.keys[i], &h[i], &err), XP_OK);
            assert_int_equal(wait_for(h[i], CACHE_ALL, NULL), XP_OK);
            cache_put(h[i]);
        }
    }
    struct cache_stats s = stats_of(&f);
    assert_true(s.evictions > KEYS);
    assert_true(f.budget.peak <= f.budget.limit);
    assert_true(s.parts >= 2);

    enum xp_status last = XP_OK; /* all pinned: sooner or later there is no room */
    int n = 0;
    while (n < KEYS && last == XP_OK) {
        assert_int_equal(cache_get(f.cache, &f.keys[n], &h[n], &err), XP_OK);
        last = wait_for(h[n++], CACHE_ALL, NULL);
    }
    assert_int_equal(last, XP_BUSY);
    assert_true(n > 2);
    for (int i = 0; i < n; i++)
        cache_put(h[i]);
    assert_int_equal(cache_get(f.cache, &f.keys[KEYS - 1], &h[0], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_OK);
    cache_put(h[0]);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_part_larger_than_the_budget_is_busy_and_can_be_asked_for_again(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(3, 100000);
    struct xp_error err;
    struct cache_handle *h;
    set_up(&f, xp_buf_all(&bytes), 5 << 20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
        assert_int_equal(wait_for(h, CACHE_ALL, NULL), XP_BUSY);
        cache_put(h);
    }
    assert_int_equal(stats_of(&f).loads, 3);
    assert_true(f.budget.peak <= f.budget.limit);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_load_nobody_waits_for_is_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(6, 50000);
    struct xp_error err;
    struct cache_handle *h;
    set_up(&f, xp_buf_all(&bytes), 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
    cache_put(h);
    assert_int_equal(stats_of(&f).cancelled, 1);
    assert_int_equal(stats_of(&f).parts, 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK); /* a new load */
    assert_int_equal(stats_of(&f).loads, 2);
    assert_int_equal(wait_for(h, CACHE_INDEXED, NULL), XP_OK);
    cache_put(h);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_load_lingers_for_those_who_come_back(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(6, 50000);
    struct xp_error err;
    struct cache_handle *h;
    set_up(&f, xp_buf_all(&bytes), 0);
    cache_set_linger(f.cache, 60000);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
    cache_put(h);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
    assert_int_equal(wait_for(h, CACHE_ALL, NULL), XP_OK);
    assert_int_equal(stats_of(&f).loads, 1);
    assert_int_equal(stats_of(&f).cancelled, 0);
    cache_put(h);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_waiter_that_gives_up_is_told_early(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(6, 50000);
    struct xp_error err;
    struct cache_handle *h;
    atomic_bool cancel = true;
    set_up(&f, xp_buf_all(&bytes), 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
    assert_int_equal(wait_for(h, CACHE_ALL, &cancel), XP_CANCELLED);
    cache_put(h);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void errors_of_the_load_reach_every_waiter(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_error err;
    struct cache_handle *h, *stale;
    set_up(&f, xp_span_str("no profile at all"), 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h, &err), XP_OK);
    assert_int_equal(wait_for(h, CACHE_INDEXED, NULL), XP_CORRUPT);
    assert_int_equal(wait_for(h, CACHE_ALL, NULL), XP_CORRUPT);
    cache_put(h);
    struct cache_key key = f.keys[1];
    key.generation++;
    assert_int_equal(cache_get(f.cache, &key, &stale, &err), XP_OK);
    assert_int_equal(wait_for(stale, CACHE_ALL, NULL), XP_STALE);
    cache_put(stale);
    tear_down(&f);
}

struct asker {
    struct fixture *f;
    uint64_t rng;
    pthread_t id;
};

static void *ask(void *ctx)
{
    struct asker *a = ctx;
    for (int i = 0; i < 40; i++) {
        struct cache_handle *h;
        struct xp_error err;
        uint64_t r = make_rng(&a->rng);
        if (cache_get(a->f->cache, &a->f->keys[r % KEYS], &h, &err) != XP_OK)
            continue;
        if (r / 8 % 4) {
            enum xp_status st = wait_for(h, (enum cache_until)(r / 64 % 3), NULL);
            assert_true(st == XP_OK || st == XP_BUSY);
            struct part *p = st == XP_OK ? cache_part(h) : NULL;
            for (uint32_t k = 0; p && k < p->nplanes; k++)
                if (plane_ready(&p->planes[k]))
                    assert_int_equal(p->planes[k].nevents, 6000);
        }
        cache_put(h);
    }
    return NULL;
}

static void many_askers_at_once_get_whole_parts(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(3, 2000);
    struct asker askers[6];
    set_up(&f, xp_buf_all(&bytes), 12 << 20);
    for (size_t i = 0; i < 6; i++) {
        askers[i] = (struct asker){.f = &f, .rng = 77 + i};
        pthread_create(&askers[i].id, NULL, ask, &askers[i]);
    }
    for (size_t i = 0; i < 6; i++)
        pthread_join(askers[i].id, NULL);
    assert_true(f.budget.peak <= f.budget.limit);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_part_for_one_look_is_dropped_unless_others_asked(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(2, 1000);
    struct xp_error err;
    struct cache_handle *h[3];
    set_up(&f, xp_buf_all(&bytes), 0);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h[0], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_OK);
    cache_put_once(h[0]);
    assert_int_equal(stats_of(&f).parts, 0);

    assert_int_equal(cache_get(f.cache, &f.keys[0], &h[1], &err), XP_OK);
    assert_int_equal(cache_get(f.cache, &f.keys[0], &h[2], &err), XP_OK);
    assert_int_equal(wait_for(h[1], CACHE_ALL, NULL), XP_OK);
    cache_put(h[2]);
    cache_put_once(h[1]);
    assert_int_equal(stats_of(&f).parts, 1);
    assert_int_equal(stats_of(&f).loads, 2);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_load_aside_evicts_nothing_and_becomes_one_like_others(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(3, 50000);
    struct xp_error err;
    struct cache_handle *h[2];
    set_up(&f, xp_buf_all(&bytes), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cache_get(f.cache, &f.keys[i], &h[0], &err), XP_OK);
        assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_OK);
        cache_put(h[0]);
    }
    f.budget.limit = stats_of(&f).bytes + (1 << 20); /* nothing more has room */
    struct cache_key aside = f.keys[2];
    aside.aside = true;
    assert_int_equal(cache_get(f.cache, &aside, &h[0], &err), XP_OK);
    assert_int_equal(wait_for(h[0], CACHE_ALL, NULL), XP_BUSY);
    cache_put_once(h[0]);
    assert_int_equal(stats_of(&f).parts, 2);
    assert_int_equal(stats_of(&f).evictions, 0);
    assert_int_equal(stats_of(&f).refused, 0);

    f.budget.limit = 0;
    assert_int_equal(cache_get(f.cache, &aside, &h[0], &err), XP_OK);
    assert_int_equal(cache_get(f.cache, &f.keys[2], &h[1], &err), XP_OK);
    assert_int_equal(wait_for(h[1], CACHE_ALL, NULL), XP_OK);
    cache_put_once(h[0]);
    cache_put(h[1]);
    assert_int_equal(stats_of(&f).parts, 3); /* somebody wanted it */
    tear_down(&f);
    xp_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_loaded_once_for_all_who_ask),
        cmocka_unit_test(unpinned_parts_make_room_and_pinned_ones_do_not),
        cmocka_unit_test(a_part_for_one_look_is_dropped_unless_others_asked),
        cmocka_unit_test(a_load_aside_evicts_nothing_and_becomes_one_like_others),
        cmocka_unit_test(a_part_larger_than_the_budget_is_busy_and_can_be_asked_for_again),
        cmocka_unit_test(a_load_nobody_waits_for_is_cancelled),
        cmocka_unit_test(a_load_lingers_for_those_who_come_back),
        cmocka_unit_test(a_waiter_that_gives_up_is_told_early),
        cmocka_unit_test(errors_of_the_load_reach_every_waiter),
        cmocka_unit_test(many_askers_at_once_get_whole_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
