#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)

enum { CATEGORY = 1, COLLECTIVE };
static const char *const stat_names[] = {"hlo_category", "dcn_collective_info"};
enum { SEND = 1, RECV, SEND_DONE, RECV_DONE, MODULE };

static void put_pair(struct xp_buf *in, const char *key, const char *value)
{
    struct xp_buf entry = make_message();
    make_text(&entry, 1, key);
    make_text(&entry, 2, value);
    make_put(in, 1, &entry);
}

/* f32[256], channel 9; a rendezvous only where it is said. */
static void put_instr(struct xp_buf *comp, int64_t id, const char *name, const char *opcode,
                      bool named)
{
    struct xp_buf in = make_message(), shape = make_message();
    make_text(&in, 1, name);
    make_text(&in, 2, opcode);
    xp_pb_put_u64(&shape, 2, 11);
    xp_pb_put_u64(&shape, 3, 256);
    make_put(&in, 3, &shape);
    xp_pb_put_u64(&in, 26, 9);
    xp_pb_put_u64(&in, 35, (uint64_t)id);
    if (named) {
        struct xp_buf attributes = make_message();
        put_pair(&attributes, "_xla_host_transfer_rendezvous", "ar.1");
        put_pair(&attributes, "_xla_megascale_transfer_type", "ALL_REDUCE");
        make_put(&in, 68, &attributes);
    }
    make_put(comp, 2, &in);
}

static void put_module(struct xp_buf *space)
{
    struct xp_buf proto = make_message(), module = make_message(), comp = make_message();
    struct xp_buf plane = make_plane(9, "/host:metadata"), stats = make_message();
    make_text(&comp, 1, "main");
    put_instr(&comp, 1, "send.1", "send", true);
    put_instr(&comp, 2, "recv.1", "recv", true);
    put_instr(&comp, 3, "send-done.1", "send-done", false);
    put_instr(&comp, 4, "recv-done.1", "recv-done", false);
    make_text(&module, 1, "jit_s");
    make_put(&module, 3, &comp);
    make_put(&proto, 1, &module);
    put_blob(&stats, 5, 1, xp_buf_all(&proto));
    xp_buf_fini(&proto);
    put_meta(&plane, 5, "jit_s(5)", NULL, &stats);
    make_add_meta(&plane, 5, 1, "Hlo Proto");
    make_put(space, 1, &plane);
}

static void put_op_meta(struct xp_buf *plane, int64_t id, const char *name, const char *category)
{
    struct xp_buf stats = make_message(), info = make_message(), group = make_message();
    for (int i = 0; i < 2; i++) {
        struct xp_buf member = make_message();
        xp_pb_put_u64(&member, 1, (uint64_t)i);
        make_put(&group, 1, &member);
    }
    make_put(&info, 2, &group);
    put_text(&stats, 5, CATEGORY, category);
    put_blob(&stats, 5, COLLECTIVE, xp_buf_all(&info));
    xp_buf_fini(&info);
    put_meta(plane, id, "%long = name", name, &stats);
}

/* One transfer: recv-done waits from 1300 us on; `late` us later on the second host. */
static struct tool_file profile(int64_t late, bool with_host_events)
{
    struct tool_file f = {"h", make_message()};
    struct xp_buf plane = make_plane(1, "/device:TPU:0"), host = make_plane(2, "/host:CPU");
    struct xp_buf modules = make_line(1, "XLA Modules", 0), ops = make_line(2, "XLA Ops", 0);
    make_add_event(&modules, MODULE, 900 * US, 1000 * US);
    make_add_event(&ops, SEND, 1000 * US, 10 * US);
    make_add_event(&ops, RECV, 1010 * US, 10 * US);
    make_add_event(&ops, SEND_DONE, 1200 * US, 20 * US);
    make_add_event(&ops, RECV_DONE, (1300 + late) * US, 30 * US);
    make_put(&plane, 3, &modules);
    make_put(&plane, 3, &ops);
    put_op_meta(&plane, SEND, "send.1", "host send");
    put_op_meta(&plane, RECV, "recv.1", "host recv");
    put_op_meta(&plane, SEND_DONE, "send-done.1", "host send-done");
    put_op_meta(&plane, RECV_DONE, "recv-done.1", "host recv-done");
    make_add_meta(&plane, 4, MODULE, "jit_s(5)");
    put_stat_names(&plane, stat_names, 2);
    make_put(&f.space, 1, &plane);
    if (with_host_events)
        make_add_meta(&host, 4, 1, "MegaScale: Send");
    make_put(&f.space, 1, &host);
    put_module(&f.space);
    return f;
}

static const char *const all[] = {"host=ALL_HOSTS", NULL};

static void slack_is_what_no_op_took(void **state)
{
    (void)state;
    struct tool_file f = profile(0, true);
    json_t *j = tool_ask("megascale_stats", &f, 1, all), *t = json_array_get(j, 0);
    assert_int_equal(table_rows(t), 1);
    assert_string_equal(cell_text(t, 0, "rendezvous_name"), "ar.1");
    assert_string_equal(cell_text(t, 0, "send_op_name"), "send.1");
    assert_string_equal(cell_text(t, 0, "recv_op_name"), "recv-done.1");
    assert_string_equal(cell_text(t, 0, "transfer_type"), "ALL_REDUCE");
    assert_float_equal(cell_num(t, 0, "slack_time"), 0.3 - 0.04, 1e-9);
    assert_float_equal(cell_num(t, 0, "stall_duration"), 0.07, 1e-9);
    assert_float_equal(cell_num(t, 0, "observed_duration"), 0.33, 1e-9);
    assert_float_equal(cell_num(t, 0, "recv_stall"), 0, 0);
    assert_true(cell_num(t, 0, "net_tx_bytes") == 1024);
    assert_float_equal(cell_num(t, 0, "required_bandwidth"), 1024 / 260.0 * 0.008, 1e-9);
    json_decref(j);
}

static void hosts_are_weighted_by_how_often_it_happened(void **state)
{
    (void)state;
    struct tool_file f[2] = {profile(0, true), profile(100, true)};
    json_t *j = tool_ask("megascale_stats", f, 2, all), *t = json_array_get(j, 0);
    assert_int_equal(table_rows(t), 1);
    assert_true(cell_num(t, 0, "occurrences") == 2);
    assert_float_equal(cell_num(t, 0, "slack_time"), (0.26 + 0.36) / 2, 1e-9);
    assert_float_equal(cell_num(t, 0, "total_stall"), 0.14, 1e-9);
    json_decref(j);
}

static void a_host_without_transfers_empties_the_table(void **state)
{
    (void)state;
    struct tool_file f[2] = {profile(0, true), profile(0, false)};
    json_t *j = tool_ask("megascale_stats", f, 2, all);
    assert_int_equal(table_rows(json_array_get(j, 0)), 0);
    json_decref(j);
}

static void a_trace_is_of_one_host(void **state)
{
    static const char *const perfetto[] = {"perfetto=True", NULL};
    (void)state;
    struct tool_file f[2] = {profile(0, true), profile(0, true)};
    assert_int_equal(tool_refuses("megascale_stats", f, 2, perfetto), XP_NOT_FOUND);
}

static void the_report_has_the_time_of_recv_and_leaves_nobody_out(void **state)
{
    (void)state;
    struct tool_file f[2] = {profile(0, true), profile(0, false)};
    json_t *j = report_ask("megascale_stats", f, 2, NULL);
    assert_int_equal(json_integer_value(report_value(j, "transfers")), 1);
    assert_int_equal(json_integer_value(report_value(j, "transfer_stall")), 70000);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "recv_stall")), 10000);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "slack")), 260000);
    assert_float_equal(json_number_value(report_at(j, "transfers", 0, "required_rate")),
                       1024 / 260e-6, 1);
    assert_true(report_notes(j, "hosts_without_transfers"));
    json_decref(j);
}

static void transfers_are_told_one_by_one(void **state)
{
    (void)state;
    struct tool_file f[2] = {profile(0, true), profile(100, true)};
    json_t *j = report_ask("megascale_stats", f, 2, NULL);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "p50")), 330 * US);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "p99")), 430 * US);
    assert_float_equal(json_number_value(report_at(j, "transfers", 0, "tail")), 430. / 330, 1e-9);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "duration")), 430 * US);
    assert_int_equal(json_integer_value(report_at(j, "transfers", 0, "first_begin_ps")), 1000 * US);
    assert_string_equal(json_string_value(report_at(j, "transfers", 0, "slices")), "0, 1");
    assert_true(json_is_null(report_at(j, "transfers", 0, "slowest_from")));
    json_decref(j);
}

static const char *const message_stats[] = {"dcn_label",
                                            "dcn_source_slice_id",
                                            "dcn_source_per_slice_device_id",
                                            "dcn_destination_slice_id",
                                            "dcn_destination_per_slice_device_id",
                                            "payload_size_bytes",
                                            "duration_us"};

static void put_message(struct xp_buf *line, int64_t at, const char *label, int64_t from,
                        int64_t us)
{
    struct xp_buf e = make_event(1, at * US, US);
    if (label)
        put_text(&e, 4, 1, label);
    put_i64(&e, 4, 2, from);
    put_i64(&e, 4, 3, 7);
    put_i64(&e, 4, 4, 0);
    put_i64(&e, 4, 5, 7);
    put_i64(&e, 4, 6, 1000);
    put_i64(&e, 4, 7, us);
    make_put(line, 4, &e);
}

static void messages_are_told_by_who_sent_them(void **state)
{
    struct tool_file f = profile(0, false);
    struct xp_buf line = make_line(1, "dcn", 0), host = make_plane(2, "/host:CPU");
    (void)state;
    for (int i = 0; i < 3; i++)
        put_message(&line, 3000 + 1000 * i, "ar.1_0_5", 1, 100);
    put_message(&line, 8000, "ar.1_0_6", 2, 900);
    put_message(&line, 9000, NULL, 1, 5); /* of what? */
    put_message(&line, 9100, "ar.1", 1, 0);
    make_put(&host, 3, &line);
    put_stat_names(&host, message_stats, 7);
    make_add_meta(&host, 4, 1, "MegaScale: Communication Transport Receive");
    /* The first plane of that name counts: this one comes before. */
    struct tool_file g = {"h", make_message()};
    make_put(&g.space, 1, &host);
    xp_buf_span(&g.space, xp_buf_all(&f.space));
    xp_buf_fini(&f.space);
    json_t *j = report_ask("megascale_stats", &g, 1, NULL);
    assert_int_equal(json_integer_value(report_at(j, "peers", 0, "messages")), 1);
    assert_string_equal(json_string_value(report_at(j, "peers", 0, "from")), "slice 2, device 7");
    assert_int_equal(json_integer_value(report_at(j, "peers", 0, "p99")), 900 * US);
    assert_int_equal(json_integer_value(report_at(j, "peers", 0, "first_begin_ps")), 7100 * US);
    assert_int_equal(json_integer_value(report_at(j, "peers", 1, "messages")), 3);
    assert_int_equal(json_integer_value(report_at(j, "peers", 1, "mean")), 100 * US);
    assert_int_equal(json_integer_value(report_at(j, "peers", 1, "bytes")), 3000);
    assert_float_equal(json_number_value(report_at(j, "peers", 1, "tail")), 1, 1e-9);
    assert_string_equal(json_string_value(report_at(j, "transfers", 0, "slowest_from")),
                        "slice 2, device 7");
    assert_true(report_notes(j, "messages_unknown"));
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slack_is_what_no_op_took),
        cmocka_unit_test(hosts_are_weighted_by_how_often_it_happened),
        cmocka_unit_test(a_host_without_transfers_empties_the_table),
        cmocka_unit_test(a_trace_is_of_one_host),
        cmocka_unit_test(the_report_has_the_time_of_recv_and_leaves_nobody_out),
        cmocka_unit_test(transfers_are_told_one_by_one),
        cmocka_unit_test(messages_are_told_by_who_sent_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
