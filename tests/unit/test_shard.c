#include <pthread.h>
#include <stdio.h>

#include "shard/shard.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define HOSTS 12
#define ASKS_MAX 200
#define QUEUE_MAX 64

/* Holds every worker until it is opened. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int inside;
    bool open;
};

/* A folder of profiles and a shard that is asked for them. */
struct fixture {
    struct gate gate; /* workers may be on their way out of it until they are gone */
    struct tree tree;
    struct xp_store *store;
    struct xp_workers *workers;
    struct shard *shard;
    struct shard_object objects[HOSTS];
    char names[HOSTS][32];
};

static struct xp_buf profile(int planes, int events)
{
    struct xp_buf space = make_message();
    for (int p = 0; p < planes; p++) {
        struct xp_buf plane = make_plane(p, "/device:TPU:0");
        struct xp_buf line = make_line(1, "XLA Ops", 0);
        make_add_meta(&plane, 4, 1, "work");
        for (int i = 0; i < events; i++)
            make_add_event(&line, 1, i * 1000L, 500 + i % 97);
        make_put(&plane, 3, &line);
        make_put(&space, 1, &plane);
    }
    return space;
}

static void set_up(struct fixture *f, struct xp_span bytes, uint64_t budget)
{
    struct xp_error err;
    *f = (struct fixture){.gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, true}};
    tree_init(&f->tree);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(f->names[i], sizeof f->names[i], "%d.xplane.pb", i);
        tree_bytes(&f->tree, f->names[i], bytes);
    }
    assert_int_equal(xp_store_open_dir(f->tree.root, &f->store, &err), XP_OK);
    for (int i = 0; i < HOSTS; i++) {
        struct xp_object o;
        assert_int_equal(xp_store_stat(f->store, f->names[i], &o, &err), XP_OK);
        f->objects[i] =
            (struct shard_object){f->store, f->names[i], f->names[i], o.generation, o.size, false};
        free(o.key);
    }
    f->workers = xp_workers_new(2, QUEUE_MAX);
    f->shard = shard_new(f->workers, budget);
}

static void tear_down(struct fixture *f)
{
    shard_free(f->shard);
    xp_workers_free(f->workers);
    xp_store_free(f->store);
    tree_fini(&f->tree);
}

struct reply {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool there;
    struct shard_answer answer;
};

static void on_answer(void *ctx, struct shard_answer *a)
{
    struct reply *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->answer = *a;
    r->there = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

static void wait_for(struct reply *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->there)
        pthread_cond_wait(&r->wake, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static struct shard_answer ask(struct fixture *f, const struct shard_request *req)
{
    struct reply r = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    shard_call(f->shard, req, on_answer, &r);
    wait_for(&r);
    return r.answer;
}

static uint64_t known(struct fixture *f)
{
    struct shard_stats s;
    shard_stats(f->shard, &s);
    return s.known;
}

static void a_partial_that_was_kept_says_that_its_host_is_damaged(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(2, 20000);
    struct shard_answer made, kept;
    set_up(&f, xp_span_of(bytes.p, bytes.n / 5 * 3), 64 << 20);
    static const struct shard_arg range[] = {{XP_SPAN_LIT("t0"), XP_SPAN_LIT("0")},
                                             {XP_SPAN_LIT("t1"), XP_SPAN_LIT("10000000")}};
    struct shard_request req = {.op = SHARD_MAP_REPORT,
                                .tool = "op_profile",
                                .objects = f.objects,
                                .nobjects = 1,
                                .args = range, /* so that it takes some work each time */
                                .nargs = 2};
    made = ask(&f, &req);
    assert_int_equal(made.error.status, XP_OK);
    assert_int_equal(made.damage.status, XP_CORRUPT);
    for (int i = 0; i < ASKS_MAX && !known(&f); i++) { /* one that took little is kept later */
        kept = ask(&f, &req);
        assert_int_equal(kept.damage.status, XP_CORRUPT);
        assert_string_equal(kept.damage.text, made.damage.text);
        assert_int_equal(kept.damage.offset, made.damage.offset);
        xp_blob_unref(kept.body);
    }
    assert_true(shard_known(f.shard, &req, &kept));
    assert_int_equal(kept.damage.status, XP_CORRUPT);
    assert_string_equal(kept.damage.text, made.damage.text);
    assert_int_equal(kept.version, made.version);
    assert_int_equal(kept.version, shard_version(f.objects, 1));
    xp_blob_unref(kept.body);
    xp_blob_unref(made.body);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

/* Of those asked for at once most find no room; alone each has enough. */
static void a_glance_at_many_hosts_needs_the_room_of_one(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes = profile(2, 20000);
    set_up(&f, xp_buf_all(&bytes), 3 << 20);
    struct shard_request req = {.op = SHARD_RUN_TOOLS, .objects = f.objects, .nobjects = HOSTS};
    struct shard_answer a = ask(&f, &req);
    assert_int_equal(a.error.status, XP_OK);
    xp_blob_unref(a.body);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static enum xp_work_next stand(void *ctx)
{
    struct gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->inside++;
    pthread_cond_broadcast(&g->wake);
    while (!g->open)
        pthread_cond_wait(&g->wake, &g->lock);
    g->inside--;
    pthread_cond_broadcast(&g->wake);
    pthread_mutex_unlock(&g->lock);
    return XP_WORK_DONE;
}

static void until_inside(struct gate *g, int n)
{
    while (g->inside != n)
        pthread_cond_wait(&g->wake, &g->lock);
}

static void gate_close(struct fixture *f)
{
    int n = xp_workers_threads(f->workers);
    pthread_mutex_lock(&f->gate.lock);
    f->gate.open = false;
    for (int i = 0; i < n; i++)
        assert_int_equal(xp_workers_post(f->workers, XP_WORK_QUERY, stand, &f->gate), XP_OK);
    until_inside(&f->gate, n);
    pthread_mutex_unlock(&f->gate.lock);
}

static void gate_open(struct fixture *f)
{
    pthread_mutex_lock(&f->gate.lock);
    f->gate.open = true;
    pthread_cond_broadcast(&f->gate.wake);
    until_inside(&f->gate, 0);
    pthread_mutex_unlock(&f->gate.lock);
}

#define MANY 8

static const struct shard_arg narrow[] = {{XP_SPAN_LIT("px"), XP_SPAN_LIT("700")},
                                          {XP_SPAN_LIT("wait"), XP_SPAN_LIT("all")}};
static const struct shard_arg wide[] = {{XP_SPAN_LIT("px"), XP_SPAN_LIT("800")},
                                        {XP_SPAN_LIT("wait"), XP_SPAN_LIT("all")}};

/* MANY ask the same, of whom those below `gone` leave before anything was made; how often it was.
 */
static uint64_t ask_at_once(struct fixture *f, struct shard_request req, int gone,
                            struct shard_answer *answers)
{
    struct shard_stats before, after;
    struct reply replies[MANY];
    atomic_bool left[MANY] = {false};
    shard_stats(f->shard, &before);
    gate_close(f);
    for (int i = 0; i < MANY; i++) {
        replies[i] =
            (struct reply){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
        req.cancel = &left[i];
        shard_call(f->shard, &req, on_answer, &replies[i]);
    }
    for (int i = 0; i < gone; i++)
        atomic_store(&left[i], true);
    gate_open(f);
    for (int i = 0; i < MANY; i++) {
        wait_for(&replies[i]);
        answers[i] = replies[i].answer;
    }
    shard_stats(f->shard, &after);
    return after.made - before.made;
}

static void loaded(struct fixture *f, struct xp_buf *bytes, size_t nobjects)
{
    *bytes = profile(2, 2000);
    set_up(f, xp_buf_all(bytes), 64 << 20);
    struct shard_request req = {.op = SHARD_RUN_TOOLS, .objects = f->objects, .nobjects = nobjects};
    struct shard_answer a = ask(f, &req);
    assert_int_equal(a.error.status, XP_OK);
    xp_blob_unref(a.body);
    for (size_t i = 0; i < nobjects; i++) {
        req = (struct shard_request){
            .op = SHARD_WINDOW, .objects = &f->objects[i], .nobjects = 1, .args = wide, .nargs = 2};
        a = ask(f, &req);
        assert_int_equal(a.error.status, XP_OK);
        xp_blob_unref(a.body);
    }
}

static void the_same_that_is_asked_while_it_is_made_is_made_once(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes;
    struct shard_answer answers[MANY];
    struct shard_stats st;
    loaded(&f, &bytes, 2);
    const struct shard_request asks[] = {
        {.op = SHARD_WINDOW, .objects = f.objects, .nobjects = 1, .args = narrow, .nargs = 2},
        {.op = SHARD_REPORT, .tool = "op_profile", .objects = f.objects, .nobjects = 1},
        {.op = SHARD_REPORT, .tool = "op_profile", .objects = f.objects, .nobjects = 2},
    };
    for (size_t k = 0; k < sizeof asks / sizeof *asks; k++) {
        assert_int_equal(ask_at_once(&f, asks[k], 0, answers), 1);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(answers[i].error.status, XP_OK);
            assert_ptr_equal(answers[i].body, answers[0].body);
            assert_int_equal(answers[i].version, answers[0].version);
            xp_blob_unref(answers[i].body);
        }
        shard_stats(f.shard, &st);
        assert_int_equal(st.shared, (k + 1) * (MANY - 1));
    }
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void who_leaves_first_takes_nobodys_answer_along(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes;
    struct shard_answer answers[MANY];
    loaded(&f, &bytes, 2);
    const struct shard_request asks[] = {
        {.op = SHARD_WINDOW, .objects = f.objects, .nobjects = 1, .args = narrow, .nargs = 2},
        {.op = SHARD_REPORT, .tool = "op_profile", .objects = f.objects, .nobjects = 1},
        {.op = SHARD_REPORT, .tool = "op_profile", .objects = f.objects, .nobjects = 2},
    };
    for (size_t k = 0; k < sizeof asks / sizeof *asks; k++) {
        assert_int_equal(ask_at_once(&f, asks[k], 3, answers), 1);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(answers[i].error.status, i < 3 ? XP_CANCELLED : XP_OK);
            xp_blob_unref(answers[i].body);
        }
    }
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void what_nobody_waits_for_any_more_is_not_made(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes;
    struct shard_answer answers[MANY];
    loaded(&f, &bytes, 1);
    struct shard_request req = {
        .op = SHARD_WINDOW, .objects = f.objects, .nobjects = 1, .args = narrow, .nargs = 2};
    assert_int_equal(ask_at_once(&f, req, MANY, answers), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(answers[i].error.status, XP_CANCELLED);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static void a_failure_is_everybodys(void **state)
{
    (void)state;
    struct fixture f;
    struct xp_buf bytes;
    struct shard_answer answers[MANY];
    loaded(&f, &bytes, 1);
    static const struct shard_arg none[] = {{XP_SPAN_LIT("px"), XP_SPAN_LIT("none")}};
    struct shard_request req = {
        .op = SHARD_WINDOW, .objects = f.objects, .nobjects = 1, .args = none, .nargs = 1};
    assert_int_equal(ask_at_once(&f, req, 0, answers), 1);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(answers[i].error.status, XP_BAD_REQUEST);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

static bool is_there(struct reply *r)
{
    pthread_mutex_lock(&r->lock);
    bool there = r->there;
    pthread_mutex_unlock(&r->lock);
    return there;
}

/* While workers are busy: one that makes it, as many as may wait for that, more, and, once all but
 * the first have left, another; not each that is refused has all looked through. */
static void as_many_wait_for_one_answer_as_for_a_worker_and_who_left_waits_no_more(void **state)
{
    enum { WAIT = QUEUE_MAX, MORE = WAIT + 1, LATE = MORE + 64, ALL };
    (void)state;
    struct fixture f;
    struct xp_buf bytes;
    static struct reply replies[ALL];
    static atomic_bool left[ALL];
    loaded(&f, &bytes, 2);
    struct shard_request req = {
        .op = SHARD_REPORT, .tool = "op_profile", .objects = f.objects, .nobjects = 2};
    gate_close(&f);
    for (int i = 0; i < ALL; i++) {
        replies[i] =
            (struct reply){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
        for (int k = 1; i == LATE && k <= WAIT; k++) {
            assert_false(is_there(&replies[k]));
            atomic_store(&left[k], true);
        }
        req.cancel = &left[i];
        shard_call(f.shard, &req, on_answer, &replies[i]);
    }
    assert_false(is_there(&replies[0]));
    assert_false(is_there(&replies[LATE]));
    for (int i = 1; i < LATE; i++) {
        assert_true(is_there(&replies[i]));
        assert_int_equal(replies[i].answer.error.status, i >= MORE ? XP_BUSY : XP_CANCELLED);
    }
    assert_int_equal(replies[MORE].answer.error.retry_s, 1);
    gate_open(&f);
    wait_for(&replies[0]);
    wait_for(&replies[LATE]);
    assert_int_equal(replies[0].answer.error.status, XP_OK);
    assert_ptr_equal(replies[LATE].answer.body, replies[0].answer.body);
    xp_blob_unref(replies[0].answer.body);
    xp_blob_unref(replies[LATE].answer.body);
    tear_down(&f);
    xp_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partial_that_was_kept_says_that_its_host_is_damaged),
        cmocka_unit_test(a_glance_at_many_hosts_needs_the_room_of_one),
        cmocka_unit_test(the_same_that_is_asked_while_it_is_made_is_made_once),
        cmocka_unit_test(who_leaves_first_takes_nobodys_answer_along),
        cmocka_unit_test(what_nobody_waits_for_any_more_is_not_made),
        cmocka_unit_test(a_failure_is_everybodys),
        cmocka_unit_test(as_many_wait_for_one_answer_as_for_a_worker_and_who_left_waits_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
