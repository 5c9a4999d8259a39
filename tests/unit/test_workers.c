#include "lib/run/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Holds a worker until it is opened. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open, reached;
};

static void gate_init(struct gate *g)
{
    *g = (struct gate){0};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->moved, NULL);
}

static enum xp_work_next wait_at_gate(void *ctx)
{
    struct gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->reached = true;
    pthread_cond_broadcast(&g->moved);
    while (!g->open)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return XP_WORK_DONE;
}

/* A pool of one thread that is at the gate: what is posted now waits until gate_open. */
static struct xp_workers *held_pool(struct gate *g, int queue_max)
{
    struct xp_workers *w = xp_workers_new(1, queue_max);
    gate_init(g);
    assert_int_equal(xp_workers_post(w, XP_WORK_LOAD, wait_at_gate, g), XP_OK);
    pthread_mutex_lock(&g->lock);
    while (!g->reached)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return w;
}

static void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

/* Tasks write their letter; with one worker the text is the order they ran in. */
static char trail[64];
static atomic_int trail_n;

struct step {
    char letter;
    int slices;
};

static enum xp_work_next leave_letter(void *ctx)
{
    struct step *s = ctx;
    trail[atomic_fetch_add(&trail_n, 1)] = s->letter;
    return --s->slices > 0 ? XP_WORK_AGAIN : XP_WORK_DONE;
}

static void trail_is(const char *want)
{
    trail[atomic_load(&trail_n)] = 0;
    assert_string_equal(trail, want);
    atomic_store(&trail_n, 0);
}

static void queries_overtake_loads(void **state)
{
    (void)state;
    struct gate g;
    struct xp_workers *w = held_pool(&g, 10);
    struct step a = {'a', 1}, b = {'b', 1}, q = {'q', 1}, r = {'r', 1};
    xp_workers_post(w, XP_WORK_LOAD, leave_letter, &a);
    xp_workers_post(w, XP_WORK_LOAD, leave_letter, &b);
    xp_workers_post(w, XP_WORK_QUERY, leave_letter, &q);
    xp_workers_post(w, XP_WORK_QUERY, leave_letter, &r);
    assert_int_equal(xp_workers_waiting(w), 4);
    gate_open(&g);
    xp_workers_free(w);
    trail_is("qrab");
}

static void slices_of_long_tasks_take_turns(void **state)
{
    (void)state;
    struct gate g;
    struct xp_workers *w = held_pool(&g, 10);
    struct step a = {'a', 3}, b = {'b', 2}, q = {'q', 2};
    xp_workers_post(w, XP_WORK_LOAD, leave_letter, &a);
    xp_workers_post(w, XP_WORK_LOAD, leave_letter, &b);
    xp_workers_post(w, XP_WORK_QUERY, leave_letter, &q);
    gate_open(&g);
    xp_workers_free(w);
    trail_is("qqababa");
}

struct flood {
    int left; /* queries that may still come */
    atomic_bool loaded;
};

static enum xp_work_next query_again(void *ctx)
{
    struct flood *f = ctx;
    usleep(500);
    return --f->left > 0 && !atomic_load(&f->loaded) ? XP_WORK_AGAIN : XP_WORK_DONE;
}

static enum xp_work_next load_once(void *ctx)
{
    atomic_store(&((struct flood *)ctx)->loaded, true);
    return XP_WORK_DONE;
}

static void a_flood_of_queries_does_not_starve_a_load(void **state)
{
    (void)state;
    struct gate g;
    struct xp_workers *w = held_pool(&g, 10);
    struct flood f = {.left = 20000};
    xp_workers_post(w, XP_WORK_LOAD, load_once, &f);
    xp_workers_post(w, XP_WORK_QUERY, query_again, &f);
    gate_open(&g);
    xp_workers_free(w);
    assert_true(atomic_load(&f.loaded));
    assert_true(f.left > 0);
}

static void too_many_waiting_queries_are_busy_and_loads_are_not(void **state)
{
    (void)state;
    struct gate g;
    struct xp_workers *w = held_pool(&g, 2);
    struct step s[6];
    for (int i = 0; i < 6; i++)
        s[i] = (struct step){(char)('0' + i), 1};
    assert_int_equal(xp_workers_post(w, XP_WORK_QUERY, leave_letter, &s[0]), XP_OK);
    assert_int_equal(xp_workers_post(w, XP_WORK_QUERY, leave_letter, &s[1]), XP_OK);
    assert_int_equal(xp_workers_post(w, XP_WORK_QUERY, leave_letter, &s[2]), XP_BUSY);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    assert_true(xp_workers_wait_ms(w) >=
                3); /* as the first of them has, and not known to be less */
    assert_int_equal(xp_workers_post(w, XP_WORK_LOAD, leave_letter, &s[3]), XP_OK);
    assert_int_equal(xp_workers_post(w, XP_WORK_LOAD, leave_letter, &s[4]), XP_OK);
    assert_int_equal(xp_workers_post(w, XP_WORK_LOAD, leave_letter, &s[5]), XP_OK);
    gate_open(&g);
    xp_workers_free(w);
    trail_is("01345");
}

static enum xp_work_next count_slices(void *ctx)
{
    static _Thread_local int turn;
    atomic_fetch_add((atomic_int *)ctx, 1);
    return ++turn % 3 ? XP_WORK_AGAIN : XP_WORK_DONE;
}

static void free_runs_the_queue_out(void **state)
{
    (void)state;
    atomic_int done = 0;
    struct xp_workers *w = xp_workers_new(4, 1000000);
    assert_int_equal(xp_workers_threads(w), 4);
    for (int i = 0; i < 5000; i++)
        xp_workers_post(w, i % 2 ? XP_WORK_QUERY : XP_WORK_LOAD, count_slices, &done);
    xp_workers_free(w);
    /* Each task runs until its thread's turn is a multiple of 3: once or more. */
    assert_true(atomic_load(&done) >= 5000);
}

struct chain {
    struct xp_workers *w;
    int left;
    atomic_int ran;
};

static enum xp_work_next post_the_next(void *ctx)
{
    struct chain *c = ctx;
    atomic_fetch_add(&c->ran, 1);
    if (--c->left > 0)
        xp_workers_post(c->w, XP_WORK_LOAD, post_the_next, c);
    return XP_WORK_DONE;
}

static void what_a_task_posts_while_the_pool_ends_still_runs(void **state)
{
    (void)state;
    struct chain c = {xp_workers_new(2, 10), 100, 0};
    xp_workers_post(c.w, XP_WORK_LOAD, post_the_next, &c);
    xp_workers_free(c.w);
    assert_int_equal(c.ran, 100);
}

struct poster {
    struct xp_workers *w;
    atomic_int *ran;
};

static enum xp_work_next add_one(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    return XP_WORK_DONE;
}

static void *post_many(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < 2000; i++)
        xp_workers_post(p->w, XP_WORK_LOAD, add_one, p->ran);
    return NULL;
}

static void many_threads_may_post(void **state)
{
    (void)state;
    atomic_int ran = 0;
    struct poster p = {xp_workers_new(2, 10), &ran};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, post_many, &p), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    xp_workers_free(p.w);
    assert_int_equal(atomic_load(&ran), 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_overtake_loads),
        cmocka_unit_test(slices_of_long_tasks_take_turns),
        cmocka_unit_test(a_flood_of_queries_does_not_starve_a_load),
        cmocka_unit_test(too_many_waiting_queries_are_busy_and_loads_are_not),
        cmocka_unit_test(free_runs_the_queue_out),
        cmocka_unit_test(what_a_task_posts_while_the_pool_ends_still_runs),
        cmocka_unit_test(many_threads_may_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
