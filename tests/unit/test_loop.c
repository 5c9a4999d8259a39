#include "lib/run/loop.h"

#include <pthread.h>

#include "tests/unit/unit.h"

enum { THREADS = 4, POSTS = 5000 };

struct arrivals {
    struct xp_loop *loop;
    pthread_t loop_thread;
    int next[THREADS]; /* what is due from each thread */
    int total, out_of_order, elsewhere;
};

struct note {
    struct arrivals *all;
    int thread, number;
};

static void on_note(void *ctx)
{
    struct note *n = ctx;
    struct arrivals *all = n->all;
    if (all->next[n->thread] != n->number)
        all->out_of_order++;
    if (!pthread_equal(pthread_self(), all->loop_thread))
        all->elsewhere++;
    all->next[n->thread] = n->number + 1;
    if (++all->total == THREADS * POSTS)
        xp_loop_stop(all->loop);
}

struct sender {
    pthread_t id;
    struct xp_loop *loop;
    struct note notes[POSTS];
};

static void *send_all(void *arg)
{
    struct sender *s = arg;
    for (int i = 0; i < POSTS; i++)
        xp_loop_post(s->loop, on_note, &s->notes[i]);
    return NULL;
}

static void posts_from_many_threads_all_arrive_in_order(void **state)
{
    (void)state;
    static struct sender senders[THREADS];
    struct arrivals all = {.loop = xp_loop_new(), .loop_thread = pthread_self()};
    for (int t = 0; t < THREADS; t++) {
        senders[t].loop = all.loop;
        for (int i = 0; i < POSTS; i++)
            senders[t].notes[i] = (struct note){&all, t, i};
        assert_int_equal(pthread_create(&senders[t].id, NULL, send_all, &senders[t]), 0);
    }
    xp_loop_run(all.loop);
    for (int t = 0; t < THREADS; t++)
        pthread_join(senders[t].id, NULL);
    assert_int_equal(all.total, THREADS * POSTS);
    assert_int_equal(all.out_of_order, 0);
    assert_int_equal(all.elsewhere, 0);
    xp_loop_free(all.loop);
}

struct chain {
    struct xp_loop *loop;
    int left;
};

static void post_again(void *ctx)
{
    struct chain *c = ctx;
    if (--c->left > 0)
        xp_loop_post(c->loop, post_again, c);
}

static void posts_made_before_the_end_run_even_after_stop(void **state)
{
    (void)state;
    struct chain c = {xp_loop_new(), 10};
    xp_loop_stop(c.loop);
    xp_loop_post(c.loop, post_again, &c);
    xp_loop_run(c.loop);
    assert_int_equal(c.left, 0);

    c.left = 3;
    xp_loop_post(c.loop, post_again, &c);
    xp_loop_free(c.loop);
    assert_int_equal(c.left, 0);
}

static void on_timer(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
    uv_close((uv_handle_t *)timer, NULL);
}

static void run_waits_for_live_handles_after_stop(void **state)
{
    (void)state;
    struct xp_loop *l = xp_loop_new();
    bool fired = false;
    uv_timer_t timer;
    assert_int_equal(uv_timer_init(xp_loop_uv(l), &timer), 0);
    timer.data = &fired;
    uv_timer_start(&timer, on_timer, 30, 0);
    xp_loop_stop(l);
    xp_loop_run(l);
    assert_true(fired);
    xp_loop_free(l);
}

static void *stop_later(void *arg)
{
    uv_sleep(20);
    xp_loop_stop(arg);
    return NULL;
}

static void another_thread_may_stop_an_idle_loop(void **state)
{
    (void)state;
    struct xp_loop *l = xp_loop_new();
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, stop_later, l), 0);
    xp_loop_run(l);
    pthread_join(t, NULL);
    xp_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_from_many_threads_all_arrive_in_order),
        cmocka_unit_test(posts_made_before_the_end_run_even_after_stop),
        cmocka_unit_test(run_waits_for_live_handles_after_stop),
        cmocka_unit_test(another_thread_may_stop_an_idle_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
