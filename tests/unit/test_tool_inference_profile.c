#include "tests/unit/tool_support.h"

enum { ROOT = 1, PT, P, CT, C, TASK, PADDING, SIZE, MODEL, SHAPE, LAYOUT };
static const char *const stat_names[] = {"_r",
                                         "_pt",
                                         "_p",
                                         "_ct",
                                         "_c",
                                         "batching_input_task_size",
                                         "padding_amount",
                                         "batch_size_after_padding",
                                         "model_id",
                                         "shape",
                                         "layout"};
enum { RUN = 1, SCHEDULE, BATCH, CONCAT, TO_DEVICE, SESSION, LINEARIZE };

#define US INT64_C(1000000)

static struct tool_file finish(struct xp_buf *plane)
{
    struct tool_file f = {"h", make_message()};
    make_add_meta(plane, 4, RUN, "BatchingSessionRun");
    make_add_meta(plane, 4, SCHEDULE, "ScheduleWithoutSplit");
    make_add_meta(plane, 4, BATCH, "ProcessBatch");
    make_add_meta(plane, 4, CONCAT, "ConcatInputTensors");
    make_add_meta(plane, 4, TO_DEVICE, "TransferH2DRequest");
    make_add_meta(plane, 4, SESSION, "SessionRun");
    make_add_meta(plane, 4, LINEARIZE, "Linearize");
    put_stat_names(plane, stat_names, sizeof stat_names / sizeof stat_names[0]);
    make_put(&f.space, 1, plane);
    return f;
}

/* A request: begins at `at`, lasts `us`, hands `size` over to batch `batch`. */
static void put_request(struct xp_buf *line, int64_t at, int64_t us, int64_t size, int64_t batch)
{
    struct xp_buf e = make_event(RUN, at * US, us * US);
    put_i64(&e, 4, ROOT, 1);
    put_i64(&e, 4, PT, 3);
    put_i64(&e, 4, P, batch);
    make_put(line, 4, &e);
    struct xp_buf s = make_event(SCHEDULE, (at + 1) * US, US);
    put_i64(&s, 4, TASK, size);
    make_put(line, 4, &s);
}

static void put_batch(struct xp_buf *line, int64_t at, int64_t us, int64_t id, int64_t padding,
                      int64_t size)
{
    struct xp_buf e = make_event(BATCH, at * US, us * US);
    put_i64(&e, 4, ROOT, 2);
    put_i64(&e, 4, CT, 3);
    put_i64(&e, 4, C, id);
    make_put(line, 4, &e);
    struct xp_buf c = make_event(CONCAT, (at + 1) * US, US);
    put_i64(&c, 4, PADDING, padding);
    put_i64(&c, 4, SIZE, size);
    make_put(line, 4, &c);
    struct xp_buf t = make_event(TO_DEVICE, (at + 3) * US, 5 * US);
    make_put(line, 4, &t);
}

/* Two requests of 100 and 60 us share a batch of 50 us, size 8 with 2 of padding. */
static struct tool_file batched(void)
{
    struct xp_buf plane = make_plane(1, "/host:CPU");
    struct xp_buf a = make_line(1, "a", 0), b = make_line(2, "b", 0), t = make_line(3, "t", 0);
    put_request(&a, 1000, 100, 4, 77);
    put_request(&b, 1020, 60, 2, 77);
    put_batch(&t, 1025, 50, 77, 2, 8);
    make_put(&plane, 3, &a);
    make_put(&plane, 3, &b);
    make_put(&plane, 3, &t);
    return finish(&plane);
}

static void requests_wait_for_their_batch(void **state)
{
    (void)state;
    struct tool_file f = batched();
    json_t *j = tool_ask("inference_profile", &f, 1, NULL), *r = json_array_get(j, 1);
    assert_int_equal(json_array_size(j), 3);
    assert_int_equal(table_rows(r), 4); /* two requests, their batch size, the mean */
    assert_string_equal(cell_text(r, 0, "percentile"), "0.000");
    assert_float_equal(cell_num(r, 0, "latency_ms"), 0.060, 1e-12);
    assert_float_equal(cell_num(r, 0, "host_batch_formation"), 0.005, 1e-12);
    assert_true(cell_num(r, 0, "batching_request_size") == 2);
    assert_float_equal(cell_num(r, 1, "latency_ms"), 0.100, 1e-12);
    assert_float_equal(cell_num(r, 1, "host_batch_formation"), 0.025, 1e-12);
    assert_float_equal(cell_num(r, 1, "data_transfer_h2d"), 0.005, 1e-12);
    assert_string_equal(cell_text(r, 2, "percentile"), "Batch size 8");
    assert_string_equal(cell_text(r, 3, "percentile"), "Average");
    assert_float_equal(cell_num(r, 3, "latency_ms"), 0.080, 1e-12);
    /* Two in 100 us. */
    assert_string_equal(json_string_value(json_object_get(json_object_get(r, "p"), "throughput")),
                        "20000.0");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(r, "p"), "averageLatencyMs")), "0.080");
    json_decref(j);
}

static void a_batch_waits_since_its_first_request(void **state)
{
    (void)state;
    struct tool_file f = batched();
    json_t *j = tool_ask("inference_profile", &f, 1, NULL), *b = json_array_get(j, 2);
    assert_float_equal(cell_num(b, 0, "latency"), 0.050, 1e-12);
    assert_float_equal(cell_num(b, 0, "batching_delay_us"), 0.025, 1e-12);
    assert_float_equal(cell_num(b, 0, "batching_efficiency"), 0.75, 1e-12);
    assert_true(cell_num(b, 0, "padding_amount") == 2);
    json_decref(j);
}

static void models_are_told_apart_and_sorted(void **state)
{
    static const char *const models[] = {"zeta", "alpha", "zeta"};
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(1, "a", 0);
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct xp_buf e = make_event(SESSION, (100 + 50 * i) * US, (10 + i) * US);
        put_i64(&e, 4, ROOT, 1);
        put_text(&e, 4, MODEL, models[i]);
        make_put(&line, 4, &e);
        struct xp_buf t = make_event(LINEARIZE, (101 + 50 * i) * US, (2 + i) * US);
        put_text(&t, 4, SHAPE, "f32[8]");
        put_text(&t, 4, LAYOUT, "{0}");
        make_put(&line, 4, &t);
    }
    make_put(&plane, 3, &line);
    struct tool_file f = finish(&plane);
    json_t *j = tool_ask("inference_profile", &f, 1, NULL);
    assert_int_equal(json_array_size(j), 5); /* models; requests and tensors of two */
    assert_string_equal(cell_text(json_array_get(j, 0), 0, "model_name"), "alpha");
    assert_string_equal(cell_text(json_array_get(j, 0), 1, "model_name"), "zeta");
    assert_int_equal(table_rows(json_array_get(j, 1)), 2);
    assert_int_equal(table_rows(json_array_get(j, 3)), 3);
    json_t *tensors = json_array_get(j, 4);
    assert_string_equal(cell_text(tensors, 0, "tensor_pattern"), "Linearize f32[8] {0}");
    assert_true(cell_num(tensors, 0, "count") == 2);
    assert_non_null(strstr(cell_text(tensors, 0, "percentile"), "50.00%: 0.004000ms"));
    json_decref(j);
}

static void nothing_is_a_row_of_zeros(void **state)
{
    struct xp_buf plane = make_plane(1, "/host:CPU");
    (void)state;
    struct tool_file f = finish(&plane);
    json_t *j = tool_ask("inference_profile", &f, 1, NULL);
    assert_int_equal(json_array_size(j), 2);
    assert_string_equal(cell_text(json_array_get(j, 0), 0, "model_name"), "ALL");
    assert_int_equal(table_rows(json_array_get(j, 1)), 1);
    assert_true(cell_num(json_array_get(j, 1), 0, "latency_ms") == 0);
    json_decref(j);
}

static void of_many_requests_some_are_shown(void **state)
{
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(1, "a", 0);
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct xp_buf e = make_event(SESSION, (int64_t)(2000 * (i + 1)) * US, (1000 - i) * US);
        put_i64(&e, 4, ROOT, 1);
        make_put(&line, 4, &e);
    }
    make_put(&plane, 3, &line);
    struct tool_file f = finish(&plane);
    json_t *j = tool_ask("inference_profile", &f, 1, NULL), *r = json_array_get(j, 1);
    /* Ten each from 50, 75, 90 %, five from 99 % on, one from 99.9 %; and the mean. */
    assert_int_equal(table_rows(r), 10 + 10 + 10 + 5 + 1 + 1);
    assert_string_equal(cell_text(r, 0, "percentile"), "50.000");
    assert_float_equal(cell_num(r, 0, "latency_ms"), 0.501, 1e-12);
    assert_string_equal(cell_text(r, 35, "percentile"), "99.900");
    assert_float_equal(cell_num(r, 35, "latency_ms"), 1.0, 1e-12);
    json_decref(j);
}

static const char *prop(const json_t *table, const char *name)
{
    return json_string_value(json_object_get(json_object_get(table, "p"), name));
}

/* A server's counters: `n` snapshots, of which the k-th says k + 1 threads and so on. */
static void put_snapshots(struct xp_buf *space, int n)
{
    static const char *const names[] = {
        "/tensorflow/serving/batching/num_batch_threads{model_name=m, op_name=o}",
        "/tensorflow/serving/batching/batch_timeout_micros{op_name=o, model_name=m}",
        "/tensorflow/serving/batching/max_batch_size{model_name=m}",
        "/tensorflow/serving/batching/max_enqueued_batches{model_name=m}",
        "/tensorflow/serving/batching/allowed_batch_sizes{model_name=m}",
        "/tensorflow/serving/batching/max_batch_size{model_name=other}",
        "/tensorflow/serving/batching/max_batch_size{model_name=m=1}",
        "/tensorflow/serving/batching/max_batch_size",
    };
    struct xp_buf plane = make_plane(2, "/host:tfstreamz"), line = make_line(1, "", 0);
    for (int k = 0; k < n; k++) {
        struct xp_buf e = make_event(1, (1000 + 100 * k) * US, 0);
        for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
            if (i == 4)
                put_text(&e, 4, i + 1, k ? "2,4,8" : "1");
            else
                put_i64(&e, 4, i + 1, 10 * i + k + 1);
        make_put(&line, 4, &e);
    }
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "TFStreamz Snapshot");
    put_stat_names(&plane, names, sizeof names / sizeof *names);
    make_put(space, 1, &plane);
}

/* Requests of versions 1 and 2 of m, and of another that no counter names; all in batches. */
static struct tool_file of_versions(int snapshots)
{
    static const char *const models[] = {"m:1", "m:2", "m:x"};
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(1, "a", 0);
    for (int i = 0; i < 3; i++) {
        struct xp_buf e = make_event(RUN, (1000 + 200 * i) * US, 100 * US);
        put_i64(&e, 4, ROOT, 1);
        put_i64(&e, 4, PT, 3);
        put_i64(&e, 4, P, 70 + i);
        make_put(&line, 4, &e);
    }
    struct xp_buf t = make_line(2, "t", 0);
    for (int i = 0; i < 3; i++) {
        put_batch(&t, 1010 + 200 * i, 50, 70 + i, 2, 8);
        struct xp_buf e = make_event(SESSION, (1020 + 200 * i) * US, 10 * US);
        put_text(&e, 4, MODEL, models[i]);
        make_put(&t, 4, &e);
    }
    make_put(&plane, 3, &line);
    make_put(&plane, 3, &t);
    struct tool_file f = finish(&plane);
    put_snapshots(&f.space, snapshots);
    return f;
}

static void the_server_says_how_it_makes_batches(void **state)
{
    (void)state;
    struct tool_file f = of_versions(2);
    json_t *j = tool_ask("inference_profile", &f, 1, NULL);
    assert_int_equal(json_array_size(j), 7); /* models; requests and batches of three */
    for (size_t i = 2; i <= 4; i += 2) {
        json_t *batches = json_array_get(j, i);
        assert_string_equal(prop(batches, "hasBatchingParam"), "true");
        assert_string_equal(prop(batches, "batchingParamNumBatchThreads"), "2");
        assert_string_equal(prop(batches, "batchingParamBatchTimeoutMicros"), "12");
        assert_string_equal(prop(batches, "batchingParamMaxBatchSize"), "22");
        assert_string_equal(prop(batches, "batchingParamMaxEnqueuedBatches"), "32");
        assert_string_equal(prop(batches, "batchingParamAllowedBatchSizes"), "2,4,8");
    }
    assert_string_equal(prop(json_array_get(j, 6), "hasBatchingParam"), "false");
    json_decref(j);
}

static void one_snapshot_says_nothing_about_batches(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n += 2) {
        struct tool_file f = of_versions(n);
        json_t *j = tool_ask("inference_profile", &f, 1, NULL);
        assert_string_equal(prop(json_array_get(j, 2), "hasBatchingParam"), "false");
        json_decref(j);
    }
}

static void the_report_says_how_batches_are_to_be_made(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) { /* the last snapshot counts, whatever their number */
        struct tool_file f = of_versions(n);
        json_t *j = report_ask("inference_profile", &f, 1, NULL);
        assert_int_equal(report_rows(j, "batching"), 2);
        assert_int_equal(json_integer_value(report_value(j, "max_batch_size")), 20 + n);
        assert_string_equal(json_string_value(report_at(j, "batching", 0, "model")), "m:1");
        assert_int_equal(json_integer_value(report_at(j, "batching", 0, "max_size")), 20 + n);
        assert_int_equal(json_integer_value(report_at(j, "batching", 0, "timeout")), (10 + n) * US);
        assert_int_equal(json_integer_value(report_at(j, "batching", 0, "threads")), n);
        assert_int_equal(json_integer_value(report_at(j, "batching", 1, "max_enqueued")), 30 + n);
        assert_string_equal(json_string_value(report_at(j, "batching", 1, "sizes")),
                            n == 1 ? "1" : "2,4,8");
        json_decref(j);
    }
}

static void without_counters_of_the_server_batching_is_unknown(void **state)
{
    (void)state;
    struct tool_file f = batched();
    json_t *j = report_ask("inference_profile", &f, 1, NULL);
    assert_true(json_is_null(report_value(j, "max_batch_size")));
    assert_int_equal(report_rows(j, "batching"), 0);
    json_decref(j);
}

static const char *report_reason(json_t *doc, const char *metric)
{
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(doc, "metrics"), i,
                       m) if (strcmp(json_string_value(json_object_get(m, "id")), metric) ==
                              0) return json_string_value(json_object_get(m, "reason"));
    fail_msg("no metric %s", metric);
    return NULL;
}

/* Its batch names the model; the request that led to it was not captured. */
static void a_model_may_have_batches_only(void **state)
{
    static const char *const args[] = {"model=m:1", NULL};
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(1, "a", 0);
    (void)state;
    put_batch(&line, 1010, 50, 70, 2, 8);
    struct xp_buf e = make_event(SESSION, 1020 * US, 10 * US);
    put_text(&e, 4, MODEL, "m:1");
    make_put(&line, 4, &e);
    make_put(&plane, 3, &line);
    struct tool_file f = finish(&plane);
    json_t *j = report_ask("inference_profile", &f, 1, args);
    assert_int_equal(report_rows(j, "batches"), 1);
    assert_int_equal(report_rows(j, "percentiles"), 0);
    assert_string_equal(report_reason(j, "requests"), "no request was for this model");
    assert_string_equal(report_reason(j, "prefill_time"), "no request was for this model");
    json_decref(j);
}

static void percentiles_are_of_what_is_known(void **state)
{
    static const char *const by[][2] = {{"by=size", NULL}, {"by=prefill", NULL}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tool_file f = batched();
        json_t *j = report_ask("inference_profile", &f, 1, by[i]);
        assert_int_equal(report_rows(j, "percentiles"), i ? 0 : 10);
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_wait_for_their_batch),
        cmocka_unit_test(a_batch_waits_since_its_first_request),
        cmocka_unit_test(models_are_told_apart_and_sorted),
        cmocka_unit_test(nothing_is_a_row_of_zeros),
        cmocka_unit_test(of_many_requests_some_are_shown),
        cmocka_unit_test(the_server_says_how_it_makes_batches),
        cmocka_unit_test(one_snapshot_says_nothing_about_batches),
        cmocka_unit_test(the_report_says_how_batches_are_to_be_made),
        cmocka_unit_test(a_model_may_have_batches_only),
        cmocka_unit_test(percentiles_are_of_what_is_known),
        cmocka_unit_test(without_counters_of_the_server_batching_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
