/* Figures by hand: what is computed from a few events must be what a person computes from them. */
#include <stdlib.h>
#include <unistd.h>

#include "shard/part_open.h"
#include "shard/stats/figures.h"
#include "shard/stats/figures_int.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

#define US INT64_C(1000000)

/* --- intervals --- */

static void united_intervals_are_sorted_disjoint_and_cover_the_same(void **state)
{
    struct figure_span v[] = {{50, 60}, {0, 10}, {5, 8}, {10, 12}, {30, 30}, {55, 70}, {9, 11}};
    size_t at = 0;
    (void)state;
    assert_int_equal(figure_unite(v, 7), 2);
    assert_int_equal(v[0].begin_ps, 0);
    assert_int_equal(v[0].end_ps, 12);
    assert_int_equal(v[1].begin_ps, 50);
    assert_int_equal(v[1].end_ps, 70);
    assert_int_equal(figure_covered(v, 2, &at, -5, 6), 6);
    assert_int_equal(figure_covered(v, 2, &at, 11, 51), 2);
    assert_int_equal(figure_covered(v, 2, &at, 12, 50), 0);
    assert_int_equal(figure_covered(v, 2, &at, 49, 1000), 20);
    assert_int_equal(figure_unite(v, 0), 0);
}

static uint8_t bits(const char *name)
{
    return figure_name_of(xp_span_str(name));
}

static void ops_that_wait_are_known_by_name_or_opcode(void **state)
{
    (void)state;
    assert_int_equal(bits("all-reduce.1"), FIGURE_NAME_WAIT | FIGURE_NAME_SYNC);
    assert_int_equal(bits("barrier-cores"), FIGURE_NAME_WAIT | FIGURE_NAME_SYNC);
    assert_int_equal(
        bits("%psum.3 = (f32[8]{0}, f32[]) all-reduce(f32[8]{0} %x, f32[] %y), a={{0,1}}"),
        FIGURE_NAME_WAIT | FIGURE_NAME_SYNC);
    assert_int_equal(bits("%r = f32[8] all-gather-done(%s)"), FIGURE_NAME_WAIT);
    assert_int_equal(bits("recv-done.2"), FIGURE_NAME_WAIT);
    assert_int_equal(bits("all-gather-start.2"), 0);
    assert_int_equal(bits("%f = f32[8] fusion(%all-reduce.1)"), 0);
    assert_int_equal(bits("infeed.1"), FIGURE_NAME_INFEED);
    assert_int_equal(bits("ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                     FIGURE_NAME_WAIT | FIGURE_NAME_SYNC);
    assert_int_equal(bits(""), 0);
    assert_int_equal(bits("% = "), 0);
}

/* --- peaks --- */

static void a_peak_comes_from_the_request_then_the_table_then_the_profile(void **state)
{
    struct op_limits limits = {.peak_tflops = 100, .gbs = {[OP_BW_HBM] = 500}};
    struct peak_override o[2];
    struct device_peaks p;
    struct xp_error err = {0};
    (void)state;
    device_peaks_of(XP_SPAN_LIT("TPU v5 Lite"), &limits, NULL, 0, &p);
    assert_true(p.flops == 197e12 && p.hbm == 819e9 && strcmp(p.flops_from, "table") == 0);
    device_peaks_of(XP_SPAN_LIT("tpu v5"), &limits, NULL, 0, &p);
    assert_true(p.flops == 459e12);
    device_peaks_of(XP_SPAN_LIT("NVIDIA GB200"), &limits, NULL, 0, &p);
    assert_true(p.flops == 2500e12 && p.fp8 == 5000e12);
    device_peaks_of(XP_SPAN_LIT("Nobody's chip"), &limits, NULL, 0, &p);
    assert_true(p.flops == 100e12 && p.hbm == 500e9 && strcmp(p.hbm_from, "profile") == 0);
    device_peaks_of(XP_SPAN_LIT("Nobody's chip"), &(struct op_limits){0}, NULL, 0, &p);
    assert_true(p.flops == 0 && !p.flops_from && !p.name);
    assert_int_equal(peak_parse(XP_SPAN_LIT("flops=1e15"), &o[0], &err), XP_OK);
    assert_int_equal(peak_parse(XP_SPAN_LIT("flops=2e15"), &o[1], &err), XP_OK);
    device_peaks_of(XP_SPAN_LIT("TPU v5 Lite"), &limits, o, 2, &p);
    assert_true(p.flops == 1e15 && p.hbm == 819e9 && strcmp(p.flops_from, "--peak") == 0);
}

static void a_peak_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "flops",
                                      "flops=",
                                      "flops=x",
                                      "flops=-1",
                                      "flops=0",
                                      "=1",
                                      "clock=1",
                                      "flops=1e99",
                                      "hbm=1x",
                                      "hbm=nan",
                                      "hbm= 1",
                                      "flops=11111111111111111111111111111111111111111111"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct peak_override o;
        struct xp_error err = {0};
        assert_int_equal(peak_parse(xp_span_str(bad[i]), &o, &err), XP_BAD_REQUEST);
        assert_true(err.text[0]);
    }
}

/* --- a host --- */

enum { STEP_A = 1, STEP_B, JIT_STEP, JIT_INIT, FUSION, ADD, REDUCE, LOADER };

struct host {
    struct part_file *file;
    struct xp_arena *a;
    struct figure_host figures;
};

static void open_space(struct host *h, struct xp_buf *space, const char *marker)
{
    struct xp_error err = {0};
    char *path = make_file(xp_buf_all(space)), *named = NULL;
    assert_true(asprintf(&named, "%s.xplane.pb", path) > 0);
    assert_int_equal(rename(path, named), 0);
    assert_int_equal(part_open_file(named, NULL, NULL, &h->file, &err), XP_OK);
    unlink(named);
    free(path);
    free(named);
    xp_buf_fini(space);
    h->a = xp_arena_new(NULL);
    assert_int_equal(figures_of(part_file_part(h->file), XP_SPAN_LIT("h"), xp_span_str(marker),
                                h->a, &h->figures, &err),
                     XP_OK);
}

static void close_host(struct host *h)
{
    xp_arena_free(h->a);
    part_close(h->file);
}

static struct xp_buf device(void)
{
    struct xp_buf tpu = make_plane(2, "/device:TPU:0");
    make_add_meta(&tpu, 4, STEP_A, "7");
    make_add_meta(&tpu, 4, STEP_B, "8");
    make_add_meta(&tpu, 4, JIT_STEP, "jit_step(12)");
    make_add_meta(&tpu, 4, JIT_INIT, "jit_init(13)");
    make_add_meta(&tpu, 4, FUSION, "fusion.1");
    make_add_meta(&tpu, 4, ADD, "add.1");
    make_add_meta(&tpu, 4, REDUCE, "all-reduce.1");
    return tpu;
}

/* jit_step at 0, 20, 40 us for 10, 10, 15 us; jit_init at 60 for 40. Ops: nested ones, two that
 * overlap in part, and a collective. */
static void add_runs(struct xp_buf *tpu)
{
    struct xp_buf modules = make_line(3, "XLA Modules", 0), ops = make_line(4, "XLA Ops", 0);
    make_add_event(&modules, JIT_STEP, 0, 10 * US);
    make_add_event(&modules, JIT_STEP, 20 * US, 10 * US);
    make_add_event(&modules, JIT_STEP, 40 * US, 15 * US);
    make_add_event(&modules, JIT_INIT, 60 * US, 40 * US);
    make_add_event(&ops, FUSION, 0, 10 * US);
    make_add_event(&ops, ADD, 2 * US, 6 * US);
    make_add_event(&ops, FUSION, 20 * US, 5 * US);
    make_add_event(&ops, REDUCE, 25 * US, 5 * US);
    make_add_event(&ops, FUSION, 40 * US, 10 * US);
    make_add_event(&ops, ADD, 45 * US, 10 * US);
    make_put(tpu, 3, &modules);
    make_put(tpu, 3, &ops);
}

static void idle_is_the_window_less_the_union_of_what_ran(void **state)
{
    struct host h;
    struct xp_buf space = make_message(), tpu = device();
    (void)state;
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "");
    const struct figure_core *c = &h.figures.cores[0];
    assert_int_equal(h.figures.ncores, 1);
    assert_int_equal(c->kind, FIGURE_TENSOR_CORE);
    assert_int_equal(c->begin_ps, 0);
    assert_int_equal(c->end_ps, 100 * US);
    assert_int_equal(c->busy_ps, 35 * US); /* 10 + 10 + 15: nested and overlapping time once */
    assert_int_equal(c->wait_ps, 5 * US);
    assert_int_equal(c->input_ps, 0);
    assert_int_equal(c->npauses, 3); /* 55 to 100, 10 to 20, 30 to 40 */
    assert_int_equal(c->pauses[0].begin_ps, 55 * US);
    assert_int_equal(c->pauses[0].end_ps, 100 * US);
    assert_int_equal(c->pauses[1].begin_ps, 10 * US);
    close_host(&h);
}

static void steps_without_markers_are_the_runs_of_the_busiest_module_that_ran_twice(void **state)
{
    static const int64_t begin[] = {0, 20, 40}, end[] = {10, 30, 55}, until[] = {20, 40, 55};
    static const int64_t busy[] = {10, 10, 15}, wait[] = {0, 5, 0};
    struct host h;
    struct xp_buf space = make_message(), tpu = device();
    (void)state;
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "");
    assert_int_equal(h.figures.basis, FIGURE_MODULE_RUNS);
    assert_true(xp_span_eq(h.figures.marker, XP_SPAN_LIT("jit_step(12)")));
    assert_int_equal(h.figures.cores[0].nsteps, 3);
    for (int i = 0; i < 3; i++) {
        const struct figure_step *s = &h.figures.cores[0].steps[i];
        assert_int_equal(s->begin_ps, begin[i] * US);
        assert_int_equal(s->end_ps, end[i] * US);
        assert_int_equal(s->until_ps, until[i] * US);
        assert_int_equal(s->busy_ps, busy[i] * US);
        assert_int_equal(s->wait_ps, wait[i] * US);
        assert_true(s->whole);
    }
    close_host(&h);
}

static void the_user_may_name_another_module(void **state)
{
    struct host h;
    struct xp_buf space = make_message(), tpu = device();
    (void)state;
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "jit_init");
    assert_int_equal(h.figures.basis, FIGURE_MODULE_RUNS);
    assert_int_equal(h.figures.cores[0].nsteps, 1);
    close_host(&h);
}

/* Steps 7 and 8 tile the time: the second ends with the capture. */
static void markers_go_before_modules_and_the_last_one_is_not_whole(void **state)
{
    struct host h;
    struct xp_buf space = make_message(), tpu = device(), steps = make_line(1, "Steps", 0);
    (void)state;
    make_add_event(&steps, STEP_A, 0, 40 * US);
    make_add_event(&steps, STEP_B, 40 * US, 60 * US);
    make_put(&tpu, 3, &steps);
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "");
    const struct figure_core *c = &h.figures.cores[0];
    assert_int_equal(h.figures.basis, FIGURE_MARKERS);
    assert_int_equal(c->nsteps, 2);
    assert_int_equal(c->steps[0].number, 7);
    assert_true(c->steps[0].whole);
    assert_int_equal(c->steps[0].busy_ps, 20 * US);
    assert_int_equal(c->steps[1].number, 8);
    assert_false(c->steps[1].whole);
    close_host(&h);
}

/* From 10 to 20 us the loader is at work for 6 us, from 30 to 40 for 3. */
static void a_pause_is_input_when_the_host_waited_for_it_half_of_the_time(void **state)
{
    struct host h;
    struct xp_buf space = make_message(), tpu = device(), cpu = make_plane(1, "/host:CPU");
    struct xp_buf thread = make_line(9, "main", 0);
    (void)state;
    make_add_meta(&cpu, 4, LOADER, "DataLoader.__next__");
    make_add_event(&thread, LOADER, 12 * US, 6 * US);
    make_add_event(&thread, LOADER, 31 * US, 3 * US);
    make_put(&cpu, 3, &thread);
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    make_put(&space, 1, &cpu);
    open_space(&h, &space, "");
    const struct figure_core *c = &h.figures.cores[0];
    assert_true(h.figures.has_input);
    assert_int_equal(c->input_ps, 10 * US);
    assert_int_equal(c->steps[0].input_ps, 10 * US);
    assert_int_equal(c->steps[1].input_ps, 0);
    close_host(&h);
}

/* --- of a run --- */

static void open_run(struct host *h, struct figures *f)
{
    static struct op_stats none;
    struct xp_buf b;
    struct xp_error err = {0};
    xp_buf_init(&b, 1 << 20);
    figures_pack(&h->figures, 0, &b);
    uint8_t *p = xp_arena_alloc(h->a, b.n);
    memcpy(p, b.p, b.n);
    assert_int_equal(
        figures_open(xp_span_of(p, b.n), &none, &(struct figures_ask){0}, h->a, f, &err), XP_OK);
    xp_buf_fini(&b);
}

static void what_is_said_of_a_run_follows_from_its_cores(void **state)
{
    struct host h;
    struct figures f;
    struct xp_buf space = make_message(), tpu = device();
    (void)state;
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "");
    open_run(&h, &f);
    assert_true(f.idle.known && f.idle.v > 0.6499 && f.idle.v < 0.6501);
    assert_true(f.step_time_mean.known && f.step_time_mean.v > 11.66e6 &&
                f.step_time_mean.v < 11.67e6);
    assert_true(f.step_time_sd.known && f.step_time_sd.v > 2.88e6 && f.step_time_sd.v < 2.89e6);
    assert_string_equal(f.basis_text, "inferred from 3 runs of jit_step");
    assert_true(f.nsteps_figure.v == 3);
    assert_false(f.input.known); /* no loader was seen: it is not 0 */
    assert_true(strlen(f.input.reason) > 20);
    assert_false(f.mxu.known);
    assert_false(f.straggler.known);
    close_host(&h);
}

static void nothing_is_a_number_where_nothing_was_captured(void **state)
{
    struct host h;
    struct figures f;
    struct xp_buf space = make_message();
    (void)state;
    open_space(&h, &space, "");
    open_run(&h, &f);
    const struct figure *all[] = {&f.step_time_mean, &f.step_time_sd, &f.nsteps_figure,
                                  &f.idle,           &f.duty_cycle,   &f.input,
                                  &f.device_time,    &f.flop_rate,    &f.mxu,
                                  &f.hbm_rate,       &f.hbm,          &f.collective,
                                  &f.unattributed,   &f.clock,        &f.straggler};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_false(all[i]->known);
        assert_true(all[i]->reason[0]);
    }
    close_host(&h);
}

static void bytes_that_are_no_figures_are_refused(void **state)
{
    struct host h;
    struct xp_buf space = make_message(), tpu = device(), b;
    uint64_t rng = 1;
    (void)state;
    add_runs(&tpu);
    make_put(&space, 1, &tpu);
    open_space(&h, &space, "");
    xp_buf_init(&b, 1 << 20);
    figures_pack(&h.figures, 0, &b);
    for (int i = 0; i < 2000; i++) {
        struct figure_host *hosts;
        struct xp_error err = {0};
        uint32_t n;
        uint8_t *p = malloc(b.n);
        memcpy(p, b.p, b.n);
        p[make_rng(&rng) % b.n] = (uint8_t)make_rng(&rng);
        size_t len = i % 2 ? b.n : make_rng(&rng) % b.n;
        (void)figures_unpack(xp_span_of(p, len), h.a, &hosts, &n, &err);
        free(p);
    }
    xp_buf_fini(&b);
    close_host(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(united_intervals_are_sorted_disjoint_and_cover_the_same),
        cmocka_unit_test(ops_that_wait_are_known_by_name_or_opcode),
        cmocka_unit_test(a_peak_comes_from_the_request_then_the_table_then_the_profile),
        cmocka_unit_test(a_peak_that_is_none_is_refused),
        cmocka_unit_test(idle_is_the_window_less_the_union_of_what_ran),
        cmocka_unit_test(steps_without_markers_are_the_runs_of_the_busiest_module_that_ran_twice),
        cmocka_unit_test(the_user_may_name_another_module),
        cmocka_unit_test(markers_go_before_modules_and_the_last_one_is_not_whole),
        cmocka_unit_test(a_pause_is_input_when_the_host_waited_for_it_half_of_the_time),
        cmocka_unit_test(what_is_said_of_a_run_follows_from_its_cores),
        cmocka_unit_test(nothing_is_a_number_where_nothing_was_captured),
        cmocka_unit_test(bytes_that_are_no_figures_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
