#include "shard/tools/inference_int.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000000)

struct fixture {
    struct xp_arena *a;
    struct inference inf;
    struct inf_host h;
};

static void open_host(struct fixture *f, uint32_t requests)
{
    *f = (struct fixture){0};
    f->a = xp_arena_new(NULL);
    assert_non_null(f->a);
    assert_true(inference_init(&f->inf, f->a));
    f->h.inf = &f->inf;
    for (uint32_t i = 0; i < requests; i++) {
        struct inference_request *r = vec_push(&f->h.requests, sizeof *r);
        *r = (struct inference_request){
            .group = i, .begin_ps = 100 * i * MS, .prefilled_ps = INFERENCE_NEVER};
        r->end_ps = r->begin_ps + 100 * MS;
    }
}

static void close_host(struct fixture *f)
{
    vec_free(&f->h.runs);
    vec_free(&f->h.requests);
    inference_fini(&f->inf);
    xp_arena_free(f->a);
}

static void add_program(struct fixture *f, const char *name)
{
    struct inference_program *p = vec_push(&f->inf.ran, sizeof *p);
    *p = (struct inference_program){.name = xp_strpool_add(&f->inf.programs, xp_span_str(name))};
}

/* On two cores; begin and length in ms, begin from that of the request. */
static void add_run(struct fixture *f, uint32_t request, uint32_t program, int64_t begin,
                    int64_t length)
{
    for (uint32_t core = 0; core < 2; core++) {
        struct inf_run *r = vec_push(&f->h.runs, sizeof *r);
        *r = (struct inf_run){request, (100 * request + begin) * MS,
                              (100 * request + begin + length) * MS, core, program};
    }
}

static const struct inference_program *program(const struct fixture *f, uint32_t i)
{
    return &VEC(f->inf.ran, struct inference_program)[i];
}

static const struct inference_request *request(const struct fixture *f, uint32_t i)
{
    return &VEC(f->h.requests, struct inference_request)[i];
}

static void names_tell_by_whole_words(void **state)
{
    static const struct {
        const char *name;
        uint8_t phase;
    } cases[] = {{"jit_prefill(17)", INFERENCE_PREFILL},
                 {"jit_Prefill_2(17)", INFERENCE_PREFILL},
                 {"jit__batch_prefill_fn", INFERENCE_PREFILL},
                 {"jit_decode(17)", INFERENCE_DECODE},
                 {"jit_generate", INFERENCE_DECODE},
                 {"generate", INFERENCE_DECODE},
                 {"JitDecodeStep", INFERENCE_DECODE},
                 {"XLAPrefill", INFERENCE_PREFILL},
                 {"jit_decode_jpeg", INFERENCE_OTHER},
                 {"DecoderEval", INFERENCE_OTHER},
                 {"jit_decoder_forward(3)", INFERENCE_OTHER},
                 {"jit_regenerate", INFERENCE_OTHER},
                 {"jit_prefill_and_decode(3)", INFERENCE_OTHER},
                 {"jit_train_step(3)", INFERENCE_OTHER},
                 {"", INFERENCE_OTHER}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(inference_phase_of_name(xp_span_str(cases[i].name)), cases[i].phase);
}

/* insert, prompt, then tokens: the longest of what ran once before is the prefill. */
static void what_repeats_in_requests_decodes_and_what_it_follows_is_prefill(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 2);
    add_program(&f, "jit_step(1)");
    add_program(&f, "jit_insert(2)");
    add_program(&f, "jit_step(3)");
    for (uint32_t i = 0; i < 2; i++) {
        add_run(&f, i, 0, 10, 20);
        add_run(&f, i, 1, 31, 1);
        for (int64_t k = 0; k < 4; k++)
            add_run(&f, i, 2, 40 + 10 * k, 5);
    }
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(program(&f, 0)->phase, INFERENCE_PREFILL);
    assert_int_equal(program(&f, 0)->rule, INFERENCE_BY_REPETITION);
    assert_int_equal(program(&f, 1)->phase, INFERENCE_OTHER);
    assert_int_equal(program(&f, 2)->phase, INFERENCE_DECODE);
    assert_int_equal(program(&f, 2)->runs, 16);
    assert_int_equal(program(&f, 2)->core_runs, 8);
    assert_int_equal(program(&f, 2)->nps, 8);
    for (uint32_t i = 0; i < 2; i++) {
        const struct inference_request *r = request(&f, i);
        assert_int_equal(r->phase_ps[INFERENCE_PREFILL], 20 * MS);
        assert_int_equal(r->phase_ps[INFERENCE_DECODE], 20 * MS);
        assert_int_equal(r->phase_ps[INFERENCE_OTHER], 1 * MS);
        assert_int_equal(r->prefilled_ps, 30 * MS);
        assert_int_equal(r->decodes, 4);
    }
    close_host(&f);
}

static void names_decide_where_any_program_has_one(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 1);
    add_program(&f, "jit_prefill(1)");
    add_program(&f, "jit_other(2)");
    add_run(&f, 0, 0, 0, 10);
    for (int64_t k = 0; k < 5; k++)
        add_run(&f, 0, 1, 20 + 10 * k, 5);
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(program(&f, 0)->phase, INFERENCE_PREFILL);
    assert_int_equal(program(&f, 0)->rule, INFERENCE_BY_NAME);
    assert_int_equal(program(&f, 1)->phase, INFERENCE_OTHER);
    assert_int_equal(request(&f, 0)->phase_ps[INFERENCE_DECODE], 0);
    assert_int_equal(request(&f, 0)->phase_ps[INFERENCE_OTHER], 25 * MS);
    close_host(&f);
}

static void two_runs_in_a_request_tell_nothing(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 1);
    add_program(&f, "jit_a(1)");
    add_program(&f, "jit_b(2)");
    add_run(&f, 0, 0, 0, 10);
    add_run(&f, 0, 1, 20, 5);
    add_run(&f, 0, 1, 30, 5);
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(program(&f, 0)->phase, INFERENCE_OTHER);
    assert_int_equal(program(&f, 1)->phase, INFERENCE_OTHER);
    assert_int_equal(program(&f, 1)->rule, INFERENCE_UNTOLD);
    assert_true(request(&f, 0)->prefilled_ps == INFERENCE_NEVER);
    close_host(&f);
}

/* Request 0 begins at 0, request 1 at 100 ms, each of its own model. */
static void a_range_has_what_begins_in_it_uncut(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 2);
    VEC(f.h.requests, struct inference_request)[1].model = 1;
    add_program(&f, "jit_prefill(1)");
    add_program(&f, "jit_prefill(2)");
    add_program(&f, "jit_decode(3)");
    add_run(&f, 0, 0, 0, 10);
    add_run(&f, 0, 2, 20, 100);
    add_run(&f, 1, 1, 0, 10);
    add_run(&f, 1, 2, 60, 30);
    f.h.ranged = true;
    f.h.t0_ps = 50 * MS;
    f.h.t1_ps = 150 * MS;
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(f.inf.ran.n, 2);
    assert_int_equal(program(&f, 0)->runs, 2);
    assert_int_equal(program(&f, 0)->total_ps, 20 * MS);
    assert_int_equal(program(&f, 0)->served, INFERENCE_ONE_MODEL);
    assert_int_equal(program(&f, 0)->model, 1);
    assert_int_equal(program(&f, 1)->runs, 0); /* it ran later, for a request that is there */
    assert_int_equal(program(&f, 1)->served, INFERENCE_ONE_MODEL);
    assert_int_equal(request(&f, 1)->phase_ps[INFERENCE_DECODE], 30 * MS);
    close_host(&f);
}

static void a_program_may_serve_several_models(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 2);
    VEC(f.h.requests, struct inference_request)[1].model = 1;
    add_program(&f, "jit_decode(1)");
    add_program(&f, "jit_other(2)");
    add_run(&f, 0, 0, 0, 10);
    add_run(&f, 1, 0, 0, 10);
    add_run(&f, 7, 1, 0, 10);
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(program(&f, 0)->served, INFERENCE_MODELS);
    assert_int_equal(program(&f, 1)->served, INFERENCE_NOBODY);
    close_host(&f);
}

static void durations_of_many_runs_are_thinned_evenly(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 0);
    add_program(&f, "jit_decode(1)");
    for (int64_t k = 0; k < 3 * INFERENCE_RUNS_MAX; k++)
        add_run(&f, 0, 0, 10 * k, 1 + k % 3);
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_int_equal(program(&f, 0)->core_runs, 3 * INFERENCE_RUNS_MAX);
    assert_int_equal(program(&f, 0)->nps, INFERENCE_RUNS_MAX);
    assert_int_equal(program(&f, 0)->longest_ps, 3 * MS);
    close_host(&f);
}

static void runs_of_times_that_cannot_be_subtracted_are_no_prefill_end(void **state)
{
    struct fixture f;
    struct xp_error err = {0};
    (void)state;
    open_host(&f, 1);
    VEC(f.h.requests, struct inference_request)[0].begin_ps = INT64_MIN + 2;
    add_program(&f, "jit_prefill(1)");
    struct inf_run *r = vec_push(&f.h.runs, sizeof *r);
    *r = (struct inf_run){0, INT64_MAX - 5, INT64_MAX - 1, 0, 0};
    assert_int_equal(inference_phases(&f.h, &err), XP_OK);
    assert_true(request(&f, 0)->prefilled_ps == INFERENCE_NEVER);
    close_host(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_by_whole_words),
        cmocka_unit_test(what_repeats_in_requests_decodes_and_what_it_follows_is_prefill),
        cmocka_unit_test(names_decide_where_any_program_has_one),
        cmocka_unit_test(two_runs_in_a_request_tell_nothing),
        cmocka_unit_test(a_range_has_what_begins_in_it_uncut),
        cmocka_unit_test(a_program_may_serve_several_models),
        cmocka_unit_test(durations_of_many_runs_are_thinned_evenly),
        cmocka_unit_test(runs_of_times_that_cannot_be_subtracted_are_no_prefill_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
