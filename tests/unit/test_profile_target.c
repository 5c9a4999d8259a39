#include "lib/base/pb_wire.h"
#include "server/capture/profile_target.h"
#include "tests/unit/unit.h"

/* --- addresses --- */

static void a_target_is_a_name_and_an_address(void **state)
{
    static const struct {
        const char *text, *name, *address;
    } good[] = {
        {"worker-0=10.0.0.1:9999", "worker-0", "10.0.0.1:9999"},
        {"host.example:1", "host.example", "host.example:1"},
        {"10.0.0.1:65535", "10.0.0.1", "10.0.0.1:65535"},
        {"six=[fd00::1]:9999", "six", "[fd00::1]:9999"},
    };
    struct target t;
    struct xp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(target_parse(good[i].text, &t, &err), XP_OK);
        assert_string_equal(t.name, good[i].name);
        assert_string_equal(t.address, good[i].address);
    }
}

static void what_is_no_target_is_refused_by_a_sentence_that_names_the_flag(void **state)
{
    static const char *const bad[] = {"",
                                      "host",
                                      ":9999",
                                      "host:",
                                      "host:0",
                                      "host:65536",
                                      "host:9x",
                                      "host:999999",
                                      "=host:1",
                                      "a/b=host:1",
                                      "..=host:1",
                                      ".x=host:1",
                                      "a b=h:1",
                                      "x=ho st:1",
                                      "x=h/p:1",
                                      "x=u@h:1",
                                      "x=h:1/p",
                                      "x=-h:1",
                                      "[fd00::1]:1",
                                      "x=[::1:1",
                                      "x=fd00::1:1",
                                      "x=h?:1",
                                      "x=h#:1",
                                      "a\n=h:1"};
    struct target t;
    struct xp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(target_parse(bad[i], &t, &err), XP_BAD_REQUEST);
        assert_non_null(strstr(err.text, "--target"));
    }
}

static void two_targets_do_not_share_a_name(void **state)
{
    static const char *const twice[] = {"a=h:1", "b=h:2", "a=h:3", NULL}, *const three[] = {
                                                                              "a:1", "b:1", "c:1",
                                                                              NULL};
    struct target *v = NULL;
    size_t n;
    struct xp_error err;
    (void)state;
    assert_int_equal(target_parse_all(twice, 9, &v, &n, &err), XP_BAD_REQUEST);
    assert_non_null(strstr(err.text, "another target"));
    free(v);
    assert_int_equal(target_parse_all(three, 2, &v, &n, &err), XP_BAD_REQUEST);
    free(v);
    assert_int_equal(target_parse_all(three, 3, &v, &n, &err), XP_OK);
    assert_int_equal(n, 3);
    free(v);
}

static void names_that_lead_elsewhere_are_none(void **state)
{
    (void)state;
    assert_true(target_name_ok(XP_SPAN_LIT("worker-0.example_1")));
    assert_false(target_name_ok(XP_SPAN_LIT("")));
    assert_false(target_name_ok(XP_SPAN_LIT("..")));
    assert_false(target_name_ok(XP_SPAN_LIT("a/b")));
    assert_false(target_name_ok(xp_span_of("a\0b", 3)));
    assert_true(target_run_ok(XP_SPAN_LIT("2026_11_30-a")));
    assert_false(target_run_ok(XP_SPAN_LIT("a.b")));
    assert_false(target_run_ok(XP_SPAN_LIT("../x")));
    assert_false(target_run_ok(XP_SPAN_LIT("")));
    char longest[TARGET_RUN_MAX + 1];
    memset(longest, 'a', sizeof longest);
    assert_true(target_run_ok(xp_span_of(longest, TARGET_RUN_MAX)));
    assert_false(target_run_ok(xp_span_of(longest, sizeof longest)));
}

/* --- messages --- */

/* The field's value, or its bytes as text, of the first of that number. */
static bool field_of(struct xp_span message, uint32_t number, struct xp_pb_field *f)
{
    struct xp_pb r = xp_pb_open(message);
    while (xp_pb_next(&r, f))
        if (f->num == number)
            return true;
    assert_false(r.bad);
    return false;
}

static uint64_t value_of(struct xp_span message, uint32_t number)
{
    struct xp_pb_field f = {0};
    assert_true(field_of(message, number, &f));
    return f.value;
}

static struct xp_span bytes_of(struct xp_span message, uint32_t number)
{
    struct xp_pb_field f = {0};
    assert_true(field_of(message, number, &f));
    return f.bytes;
}

#define assert_text(s, text) assert_true(xp_span_eq(s, XP_SPAN_LIT(text)))

static struct target_profile wish(void)
{
    return (struct target_profile){.host = "worker-0",
                                   .session = "run",
                                   .repository = "/logs/plugins/profile",
                                   .pull = true,
                                   .start_ns = UINT64_C(1800000000123456789),
                                   .duration_ms = 2000,
                                   .levels = {3, 0, 1}};
}

static void a_profile_request_says_all_that_counts(void **state)
{
    static const struct target_option options[] = {
        {"tpu_trace_mode", OPTION_STRING, "TRACE_COMPUTE", 0},
        {"on", OPTION_BOOL, "", 1},
        {"n", OPTION_INTEGER, "", -7},
    };
    struct target_profile p = wish();
    struct xp_buf b;
    (void)state;
    p.options = options;
    p.n_options = 3;
    xp_buf_init(&b, 1 << 16);
    target_put_profile(&b, &p);
    struct xp_span m = xp_buf_all(&b), o = bytes_of(m, 4);
    assert_text(bytes_of(m, 5), "/logs/plugins/profile");
    assert_text(bytes_of(m, 6), "run");
    assert_text(bytes_of(m, 7), "worker-0");
    assert_int_equal(value_of(m, 9), 1);
    assert_int_equal(value_of(o, 2), 3);
    assert_int_equal(value_of(o, 3), 0);
    assert_int_equal(value_of(o, 4), 1);
    assert_int_equal(value_of(o, 5), 1);
    assert_int_equal(value_of(o, 8), p.start_ns);
    assert_int_equal(value_of(o, 9), 2000);
    assert_text(bytes_of(o, 15), "worker-0");
    struct xp_pb r = xp_pb_open(o);
    struct xp_pb_field f;
    size_t n = 0;
    while (xp_pb_next(&r, &f)) {
        if (f.num != 12)
            continue;
        assert_true(xp_span_eq(bytes_of(f.bytes, 1), xp_span_str(options[n].name)));
        struct xp_span v = bytes_of(f.bytes, 2);
        if (n == 0)
            assert_text(bytes_of(v, 1), "TRACE_COMPUTE");
        else
            assert_int_equal(value_of(v, n == 1 ? 2 : 3), (uint64_t)options[n].number);
        n++;
    }
    assert_int_equal(n, 3);
    xp_buf_fini(&b);
}

static void a_target_that_writes_itself_is_not_asked_for_the_profile(void **state)
{
    struct target_profile p = wish();
    struct xp_pb_field f;
    struct xp_buf b;
    (void)state;
    p.pull = false;
    xp_buf_init(&b, 1 << 16);
    target_put_profile(&b, &p);
    assert_false(field_of(xp_buf_all(&b), 9, &f));
    assert_text(bytes_of(xp_buf_all(&b), 5), "/logs/plugins/profile");
    xp_buf_fini(&b);
}

static void continuous_profiling_never_records_host_or_python(void **state)
{
    struct target_profile p = wish();
    struct xp_buf b;
    (void)state;
    p.levels = (struct target_levels){3, 1, 1};
    xp_buf_init(&b, 1 << 16);
    target_put_start(&b, &p);
    struct xp_span o = bytes_of(xp_buf_all(&b), 4), ring = bytes_of(o, 12);
    assert_int_equal(value_of(o, 2), 0);
    assert_int_equal(value_of(o, 3), 1);
    assert_int_equal(value_of(o, 4), 0);
    assert_text(bytes_of(ring, 1), "tpu_circular_buffer_tracing");
    assert_int_equal(value_of(bytes_of(ring, 2), 2), 1);
    assert_text(bytes_of(xp_buf_all(&b), 5), "/logs/plugins/profile");
    xp_buf_fini(&b);
}

/* --- outcomes --- */

static struct grpc_reply answer(int status, const char *text)
{
    struct grpc_reply r = {.transport = XP_OK, .stage = NET_TALKING, .status = status};
    r.whole = status == 0;
    snprintf(r.text, sizeof r.text, "%s", text);
    return r;
}

static struct grpc_reply broken(enum xp_status transport, enum net_stage stage)
{
    return (struct grpc_reply){.transport = transport, .stage = stage, .status = -1, .text = "why"};
}

static struct target_facts facts_of(enum target_call call, const struct grpc_reply *r)
{
    return (struct target_facts){.call = call, .reply = r, .pull = true};
}

static void expect(const struct target_facts *f, enum outcome o, const char *words)
{
    struct target_verdict v;
    target_judge(f, &v);
    assert_string_equal(outcome_text(v.outcome), outcome_text(o));
    assert_non_null(strstr(v.message, words));
    assert_non_null(v.hint);
    /* Whatever is not well says what to do, unless somebody ended it. */
    assert_true(o == OUTCOME_SUCCEEDED || o == OUTCOME_CANCELLED || v.message[0]);
}

static void expect_status(enum target_call call, int status, const char *text, enum outcome o)
{
    struct grpc_reply r = answer(status, text);
    struct target_facts f = facts_of(call, &r);
    expect(&f, o, "");
}

static void statuses_are_told_apart(void **state)
{
    (void)state;
    expect_status(CALL_PROFILE, 13, "Another profiling session active.", OUTCOME_BUSY);
    expect_status(CALL_START, 13,
                  "Failed to create profiler session: Another profiling session active.",
                  OUTCOME_BUSY);
    expect_status(CALL_START, 6, "A profiling session is already running.", OUTCOME_BUSY);
    expect_status(CALL_PROFILE, 6, "", OUTCOME_BUSY);
    expect_status(CALL_PROFILE, 13, "out of disk", OUTCOME_FAILED);
    expect_status(CALL_PROFILE, 4, "", OUTCOME_TIMEOUT);
    expect_status(CALL_PROFILE, 14, "", OUTCOME_UNREACHABLE);
    expect_status(CALL_START, 12, "", OUTCOME_UNSUPPORTED);
    expect_status(CALL_SNAPSHOT, 12, "", OUTCOME_UNSUPPORTED);
    expect_status(CALL_PROFILE, 12, "", OUTCOME_FAILED);
    expect_status(CALL_SNAPSHOT, 5, "No continuous profiling session found.", OUTCOME_FAILED);
    expect_status(CALL_START, 0, "", OUTCOME_SUCCEEDED);
    expect_status(CALL_STOP, 0, "", OUTCOME_SUCCEEDED);
    expect_status(CALL_PROFILE, 7, "no", OUTCOME_FAILED);
}

static void where_a_call_broke_tells_what_is_wrong(void **state)
{
    struct grpc_reply r = broken(XP_IO, NET_CONNECTING);
    struct target_facts f = facts_of(CALL_PROFILE, &r);
    (void)state;
    expect(&f, OUTCOME_UNREACHABLE, "no profiler server");
    r = broken(XP_IO, NET_RESOLVING);
    expect(&f, OUTCOME_UNREACHABLE, "name of the host");
    r = broken(XP_TIMEOUT, NET_CONNECTING);
    expect(&f, OUTCOME_TIMEOUT, "nothing answers");
    r = broken(XP_TIMEOUT, NET_TALKING);
    expect(&f, OUTCOME_TIMEOUT, "no answer came");
    r = broken(XP_TIMEOUT, NET_RESOLVING);
    expect(&f, OUTCOME_TIMEOUT, "name of the host");
    r = broken(XP_CANCELLED, NET_TALKING);
    expect(&f, OUTCOME_CANCELLED, "");
    r = broken(XP_CANCELLED, NET_CONNECTING); /* by us: that says nothing of the address */
    expect(&f, OUTCOME_CANCELLED, "");
    r = broken(XP_IO, NET_TALKING);
    expect(&f, OUTCOME_FAILED, "why");
}

static void a_connection_lost_after_the_window_means_more_than_2_gib_when_pulled(void **state)
{
    struct grpc_reply r = broken(XP_IO, NET_TALKING);
    struct target_facts f = facts_of(CALL_PROFILE, &r);
    (void)state;
    f.window_over = true;
    expect(&f, OUTCOME_TOO_LARGE, "2 GiB");
    f.pull = false;
    expect(&f, OUTCOME_FAILED, "");
    f.pull = true;
    r.profile_n = 17; /* it was on its way */
    expect(&f, OUTCOME_FAILED, "");
}

static void success_takes_a_profile_that_is_there(void **state)
{
    struct grpc_reply r = answer(0, "");
    struct target_facts f = facts_of(CALL_PROFILE, &r);
    (void)state;
    expect(&f, OUTCOME_FAILED, "could not be told");
    f.looked = true;
    expect(&f, OUTCOME_FAILED, "there is none");
    f.found = true;
    expect(&f, OUTCOME_TOO_LARGE, "2 GiB");
    f.size = 1;
    expect(&f, OUTCOME_SUCCEEDED, "");
    r.whole = false;
    expect(&f, OUTCOME_FAILED, "broke off");
    r.whole = true;
    r.profile = true;
    expect(&f, OUTCOME_EMPTY, "nothing happened");
    r.profile_n = 5;
    expect(&f, OUTCOME_SUCCEEDED, "");
    r.empty = true; /* metadata is no profile */
    expect(&f, OUTCOME_EMPTY, "nothing happened");
}

static void an_empty_snapshot_says_whether_there_was_one_before(void **state)
{
    struct grpc_reply r = answer(0, "");
    struct target_facts f = facts_of(CALL_SNAPSHOT, &r);
    (void)state;
    r.empty = true;
    expect(&f, OUTCOME_EMPTY, "yet");
    f.again = true;
    expect(&f, OUTCOME_EMPTY, "since the last snapshot");
}

static void a_capture_succeeds_when_all_its_targets_do(void **state)
{
    static const struct {
        enum outcome v[3];
        bool cancelled;
        enum outcome all;
    } cases[] = {
        {{OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED}, false, OUTCOME_SUCCEEDED},
        {{OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED}, true, OUTCOME_SUCCEEDED},
        {{OUTCOME_SUCCEEDED, OUTCOME_EMPTY, OUTCOME_SUCCEEDED}, false, OUTCOME_PARTIAL},
        {{OUTCOME_EMPTY, OUTCOME_EMPTY, OUTCOME_BUSY}, false, OUTCOME_FAILED},
        {{OUTCOME_CANCELLED, OUTCOME_CANCELLED, OUTCOME_EMPTY}, true, OUTCOME_CANCELLED},
        {{OUTCOME_SUCCEEDED, OUTCOME_CANCELLED, OUTCOME_CANCELLED}, true, OUTCOME_PARTIAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(outcome_of_all(cases[i].v, 3, cases[i].cancelled), cases[i].all);
    assert_int_equal(outcome_of_all(NULL, 0, false), OUTCOME_FAILED);
}

static void the_window_that_fits_leaves_out_what_every_profile_has(void **state)
{
    (void)state;
    const uint32_t one[2] = {150, 0}, two[2] = {150, 450};
    /* 1000 bytes in 150 ms: all of it events, 6.67 bytes a ms. */
    assert_int_equal(target_window_for(one, (uint64_t[2]){1000, 0}, 100000), 15000);
    /* 400 bytes are of events in 300 ms more, so 800 are there always. */
    assert_int_equal(target_window_for(two, (uint64_t[2]){1000, 1400}, 100000), 74400);
    /* It does not grow: any window. */
    assert_int_equal(target_window_for(two, (uint64_t[2]){1000, 900}, 100000), UINT32_MAX);
    /* What is there always is too much. */
    assert_int_equal(target_window_for(two, (uint64_t[2]){1000, 1000}, 900), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_is_a_name_and_an_address),
        cmocka_unit_test(what_is_no_target_is_refused_by_a_sentence_that_names_the_flag),
        cmocka_unit_test(two_targets_do_not_share_a_name),
        cmocka_unit_test(names_that_lead_elsewhere_are_none),
        cmocka_unit_test(a_profile_request_says_all_that_counts),
        cmocka_unit_test(a_target_that_writes_itself_is_not_asked_for_the_profile),
        cmocka_unit_test(continuous_profiling_never_records_host_or_python),
        cmocka_unit_test(statuses_are_told_apart),
        cmocka_unit_test(where_a_call_broke_tells_what_is_wrong),
        cmocka_unit_test(a_connection_lost_after_the_window_means_more_than_2_gib_when_pulled),
        cmocka_unit_test(success_takes_a_profile_that_is_there),
        cmocka_unit_test(an_empty_snapshot_says_whether_there_was_one_before),
        cmocka_unit_test(a_capture_succeeds_when_all_its_targets_do),
        cmocka_unit_test(the_window_that_fits_leaves_out_what_every_profile_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
