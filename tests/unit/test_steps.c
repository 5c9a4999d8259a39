#include "shard/stats/steps.h"

#include <unistd.h>

#include "shard/part_open.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define US INT64_C(1000000)

/* Stats of every plane made here. */
enum { ROOT = 1, STEP_NO, CORRELATION, STAGE_ID, STAGE_CATEGORY, SHAPE_OF };

static void add_stats_meta(struct xp_buf *plane)
{
    make_add_meta(plane, 5, ROOT, "_r");
    make_add_meta(plane, 5, STEP_NO, "step_num");
    make_add_meta(plane, 5, CORRELATION, "correlation_id");
    make_add_meta(plane, 5, STAGE_ID, "_ipl_stage_id");
    make_add_meta(plane, 5, STAGE_CATEGORY, "_ipl_stage_cat");
    make_add_meta(plane, 5, SHAPE_OF, "shape");
}

/* Event with up to two statistics (id 0: none). */
static void add(struct xp_buf *line, int64_t name, int64_t begin, int64_t end, int64_t stat1,
                int64_t v1, int64_t stat2, int64_t v2)
{
    struct xp_buf ev = make_event(name, begin, end - begin);
    if (stat1) {
        struct xp_buf s = make_stat_i64(stat1, v1);
        make_put(&ev, 4, &s);
    }
    if (stat2) {
        struct xp_buf s = make_stat_i64(stat2, v2);
        make_put(&ev, 4, &s);
    }
    make_put(line, 4, &ev);
}

static struct part_file *open_space(struct xp_buf *space)
{
    struct part_file *f;
    struct xp_error err = {0};
    char *path = make_file(xp_buf_all(space)), *named = NULL;
    assert_true(asprintf(&named, "%s.xplane.pb", path) > 0);
    assert_int_equal(rename(path, named), 0);
    assert_int_equal(part_open_file(named, NULL, NULL, &f, &err), XP_OK);
    unlink(named);
    free(path);
    free(named);
    xp_buf_fini(space);
    return f;
}

static const struct steps_host *host_of(struct part_file *f)
{
    const struct steps *s;
    struct xp_error err = {0};
    enum xp_status st = steps_get(part_file_part(f), &s, &err);
    if (st != XP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s->nhosts, 1);
    return &s->hosts[0];
}

/* --- CPU --- */

enum { TRAIN = 1, WORK, ITERATOR, COPY, STAGE, OTHER };

static void add_host_names(struct xp_buf *plane)
{
    make_add_meta(plane, 4, TRAIN, "train");
    make_add_meta(plane, 4, WORK, "work");
    make_add_meta(plane, 4, ITERATOR, "IteratorGetNext");
    make_add_meta(plane, 4, COPY, "MemcpyHToD");
    make_add_meta(plane, 4, STAGE, "Iterator::Root");
    make_add_meta(plane, 4, OTHER, "dispatch");
    add_stats_meta(plane);
}

/* Two steps of 100 us. The first: 40 us of work, of which 10 wait for input and 5 copy. The second:
 * a stage of 30 us with another inside, which is work. */
static struct part_file *cpu_profile(void)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    struct xp_buf line = make_line(7, "main", 1000);
    add(&line, TRAIN, 0, 100 * US, ROOT, 1, STEP_NO, 41);
    add(&line, WORK, 10 * US, 50 * US, 0, 0, 0, 0);
    add(&line, ITERATOR, 20 * US, 30 * US, 0, 0, 0, 0);
    add(&line, COPY, 40 * US, 45 * US, 0, 0, 0, 0);
    add(&line, OTHER, 110 * US, 120 * US, 0, 0, 0, 0);
    add(&line, TRAIN, 200 * US, 300 * US, ROOT, 1, STEP_NO, 42);
    add(&line, STAGE, 210 * US, 240 * US, STAGE_ID, 1, STAGE_CATEGORY, 1);
    add(&line, STAGE, 215 * US, 220 * US, STAGE_ID, 2, STAGE_CATEGORY, 1);
    add(&line, OTHER, 250 * US, 260 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &line);
    add_host_names(&plane);
    make_put(&space, 1, &plane);
    return open_space(&space);
}

static void a_cpu_step_is_what_its_thread_did(void **state)
{
    (void)state;
    struct part_file *f = cpu_profile();
    const struct steps_host *h = host_of(f);
    assert_int_equal(h->nsteps, 2);
    const struct host_step *s = &h->steps[0];
    assert_true(xp_span_eq(s->name, XP_SPAN_LIT("train 41")));
    assert_int_equal(s->duration_ps, 100 * US);
    assert_int_equal(s->type_ps[STEP_HOST_COMPUTE], 25 * US);
    assert_int_equal(s->type_ps[STEP_WAIT_INPUT], 10 * US);
    assert_int_equal(s->type_ps[STEP_HOST_TO_DEVICE], 5 * US);
    assert_int_equal(s->type_ps[STEP_UNKNOWN], 60 * US);
    part_close(f);
}

static void only_the_outermost_stage_waits_for_input(void **state)
{
    (void)state;
    struct part_file *f = cpu_profile();
    const struct host_step *s = &host_of(f)->steps[1];
    assert_int_equal(s->type_ps[STEP_WAIT_INPUT], 30 * US);
    assert_int_equal(s->type_ps[STEP_HOST_COMPUTE], 10 * US);
    part_close(f);
}

static void a_step_without_work_is_none(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    struct xp_buf line = make_line(7, "main", 1000);
    add(&line, TRAIN, 0, 100 * US, ROOT, 1, STEP_NO, 1);
    add(&line, ITERATOR, 20 * US, 30 * US, 0, 0, 0, 0);
    make_put(&plane, 3, &line);
    add_host_names(&plane);
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    assert_int_equal(host_of(f)->nsteps, 0);
    part_close(f);
}

static void an_empty_profile_has_no_steps(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    make_put(&space, 1, &plane);
    struct part_file *f = open_space(&space);
    assert_int_equal(host_of(f)->nsteps, 0);
    assert_int_equal(host_of(f)->ninputs, 0);
    part_close(f);
}

/* --- GPU --- */

enum { LAUNCH = 10, KERNEL = 1, HALF, TO_HOST };

/* One step on the host launches two kernels and a copy; a third kernel belongs to none. */
static struct part_file *gpu_profile(void)
{
    struct xp_buf space = make_message();
    struct xp_buf host = make_plane(1, "/host:CPU"), gpu = make_plane(2, "/device:GPU:0");
    struct xp_buf line = make_line(7, "main", 1000), stream = make_line(20, "Stream #20", 1000);
    add(&line, TRAIN, 0, 100 * US, ROOT, 1, STEP_NO, 5);
    add(&line, LAUNCH, 10 * US, 12 * US, CORRELATION, 1, 0, 0);
    add(&line, LAUNCH, 20 * US, 22 * US, CORRELATION, 2, 0, 0);
    add(&line, LAUNCH, 30 * US, 32 * US, CORRELATION, 3, 0, 0);
    make_put(&host, 3, &line);
    add_host_names(&host);
    make_add_meta(&host, 4, LAUNCH, "cuLaunchKernel");
    add(&stream, KERNEL, 40 * US, 60 * US, CORRELATION, 1, 0, 0);
    add(&stream, HALF, 65 * US, 75 * US, CORRELATION, 2, 0, 0);
    add(&stream, TO_HOST, 80 * US, 84 * US, CORRELATION, 3, 0, 0);
    make_put(&gpu, 3, &stream);
    make_add_meta(&gpu, 4, KERNEL, "gemm");
    make_add_meta(&gpu, 4, HALF, "gemm_fp16");
    make_add_meta(&gpu, 4, TO_HOST, "MemcpyDToH");
    add_stats_meta(&gpu);
    make_put(&space, 1, &gpu);
    make_put(&space, 1, &host);
    return open_space(&space);
}

static void a_gpu_step_spans_its_kernels(void **state)
{
    (void)state;
    struct part_file *f = gpu_profile();
    const struct steps_host *h = host_of(f);
    assert_int_equal(h->nsteps, 1);
    const struct host_step *s = &h->steps[0];
    assert_int_equal(s->duration_ps, 44 * US);
    assert_int_equal(s->type_ps[STEP_COMPUTE_32], 20 * US);
    assert_int_equal(s->type_ps[STEP_COMPUTE_16], 10 * US);
    assert_int_equal(s->type_ps[STEP_DEVICE_TO_HOST], 4 * US);
    assert_int_equal(s->type_ps[STEP_UNKNOWN], 10 * US);
    assert_int_equal(h->compute_16_ps, 10 * US);
    assert_int_equal(h->compute_32_ps, 20 * US);
    part_close(f);
}

/* --- bytes, and joining them --- */

static struct xp_buf packed(const struct steps *s, uint32_t index)
{
    struct xp_buf b = make_message();
    steps_pack(s, index, &b);
    assert_false(b.failed);
    return b;
}

static void make_steps(uint64_t *rng, struct steps *s, struct steps_host *h, struct host_step *v,
                       struct host_input *in)
{
    *h = (struct steps_host){.steps = v, .inputs = in};
    h->nsteps = (uint32_t)(make_rng(rng) % 5);
    h->ninputs = (uint32_t)(make_rng(rng) % 3);
    h->compute_16_ps = make_rng(rng);
    h->compute_32_ps = make_rng(rng);
    for (uint32_t i = 0; i < h->nsteps; i++) {
        v[i] = (struct host_step){.group = (int64_t)(make_rng(rng) % 1000) - 3,
                                  .name = XP_SPAN_LIT("train 1"),
                                  .begin_ps = make_rng(rng),
                                  .duration_ps = make_rng(rng)};
        v[i].type_ps[make_rng(rng) % STEP_TYPES] = make_rng(rng);
    }
    for (uint32_t i = 0; i < h->ninputs; i++)
        in[i] = (struct host_input){(int64_t)i - 1, make_rng(rng)};
    *s = (struct steps){h, 1};
}

/* Merged bytes of a list of packed steps, in the order given. */
static struct xp_buf merged(struct xp_arena *a, const struct xp_buf *all, const int *order, int n)
{
    struct steps sum = {0}, one;
    struct xp_error err;
    for (int i = 0; i < n; i++) {
        assert_int_equal(steps_unpack(xp_buf_all(&all[order[i]]), a, &one, &err), XP_OK);
        assert_int_equal(steps_merge(&sum, &one, a, &sum, &err), XP_OK);
    }
    return packed(&sum, sum.nhosts ? sum.hosts[0].index : 0);
}

static void assert_same(struct xp_buf *x, struct xp_buf *y)
{
    assert_true(xp_span_eq(xp_buf_all(x), xp_buf_all(y)));
    xp_buf_fini(x);
    xp_buf_fini(y);
}

static void steps_merge_in_any_order_and_grouping(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    uint64_t rng = 3;
    for (int round = 0; round < 50; round++) {
        struct xp_buf all[3];
        for (uint32_t i = 0; i < 3; i++) {
            struct steps s;
            struct steps_host h;
            struct host_step v[8];
            struct host_input in[8];
            make_steps(&rng, &s, &h, v, in);
            all[i] = packed(&s, i * 7);
        }
        struct xp_buf want = merged(a, all, (int[]){0, 1, 2}, 3);
        struct xp_buf other = merged(a, all, (int[]){2, 0, 1}, 3);
        struct xp_buf pair = merged(a, all, (int[]){2, 1}, 2);
        struct xp_buf grouped = merged(a, (struct xp_buf[]){all[0], pair}, (int[]){1, 0}, 2);
        assert_true(xp_span_eq(xp_buf_all(&want), xp_buf_all(&grouped)));
        assert_same(&want, &other);
        xp_buf_fini(&grouped);
        xp_buf_fini(&pair);
        for (int i = 0; i < 3; i++)
            xp_buf_fini(&all[i]);
    }
    xp_arena_free(a);
}

static void bytes_of_any_kind_are_refused_or_read(void **state)
{
    (void)state;
    struct part_file *f = cpu_profile();
    const struct steps *s;
    struct xp_error err;
    uint64_t rng = 9;
    assert_int_equal(steps_get(part_file_part(f), &s, &err), XP_OK);
    struct xp_buf b = packed(s, 1);
    for (int round = 0; round < 2000; round++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct steps out;
        uint8_t *copy = malloc(b.n);
        memcpy(copy, b.p, b.n);
        size_t n = make_rng(&rng) % (b.n + 1);
        if (n)
            copy[make_rng(&rng) % n] ^= (uint8_t)(1 + make_rng(&rng) % 255);
        enum xp_status st = steps_unpack(xp_span_of(copy, n), a, &out, &err);
        assert_true(st == XP_OK || st == XP_CORRUPT);
        free(copy);
        xp_arena_free(a);
    }
    xp_buf_fini(&b);
    part_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cpu_step_is_what_its_thread_did),
        cmocka_unit_test(only_the_outermost_stage_waits_for_input),
        cmocka_unit_test(a_step_without_work_is_none),
        cmocka_unit_test(an_empty_profile_has_no_steps),
        cmocka_unit_test(a_gpu_step_spans_its_kernels),
        cmocka_unit_test(steps_merge_in_any_order_and_grouping),
        cmocka_unit_test(bytes_of_any_kind_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
