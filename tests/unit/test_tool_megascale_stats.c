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

/* --- each time it happened --- */

enum { KEY = 1, INDEX, SIZES, LATENCY, TOOK };
static const char *const trace_names[] = {"graph_key", "action_index", "buffer_sizes",
                                          "network_transport_latency_us", "action_duration_ns"};
enum { TO_HOST = 1, TO_HOST_END, SENT, RECEIVED, TO_DEVICE, TO_DEVICE_END };

static void put_action(struct xp_buf *line, int64_t name, int64_t begin_us, const char *sizes,
                       int64_t latency_us, int64_t took_ns)
{
    struct xp_buf ev = make_event(name, begin_us * US, 0);
    put_text(&ev, 4, KEY, "device_100000_gid_ar.1$1^i0");
    put_i64(&ev, 4, INDEX, 0);
    if (sizes)
        put_text(&ev, 4, SIZES, sizes);
    if (latency_us)
        put_u64(&ev, 4, LATENCY, (uint64_t)latency_us);
    if (took_ns)
        put_i64(&ev, 4, TOOK, took_ns);
    make_put(line, 4, &ev);
}

/* 4,000 bytes go from 1110 to 1150 us, 8,000 come from 1150 to 1200 us. */
static struct tool_file traced(void)
{
    static const char *const events[] = {"DeviceToHost START", "DeviceToHost END",
                                         "NetworkSend END",    "NetworkReceive END",
                                         "HostToDevice START", "HostToDevice END"};
    struct tool_file f = profile(0, true);
    struct xp_buf plane = make_plane(8, "/device:CUSTOM:Megascale Trace");
    struct xp_buf line = make_line(1, "Megascale", 0);
    put_action(&line, TO_HOST, 1030, NULL, 0, 0);
    put_action(&line, TO_HOST_END, 1090, "4000", 0, 0);
    put_action(&line, SENT, 1150, "s100000->200000d|$c0=4000", 0, 40000);
    put_action(&line, RECEIVED, 1200, "s200000->100000d|$c0=8000", 50, 0);
    put_action(&line, TO_DEVICE, 1210, NULL, 0, 0);
    put_action(&line, TO_DEVICE_END, 1290, "8000", 0, 0);
    make_put(&plane, 3, &line);
    for (int64_t i = 0; i < 6; i++)
        make_add_meta(&plane, 4, i + 1, events[i]);
    put_stat_names(&plane, trace_names, 5);
    make_put(&f.space, 1, &plane);
    return f;
}

static int64_t number_at(json_t *doc, const char *table, size_t row, const char *column)
{
    return json_integer_value(report_at(doc, table, row, column));
}

static void ops_and_actions_of_one_name_and_device_are_one(void **state)
{
    (void)state;
    struct tool_file f = traced();
    json_t *doc = report_ask("megascale_stats", &f, 1, NULL);
    assert_int_equal(report_rows(doc, "collectives"), 1);
    assert_int_equal(number_at(doc, "collectives", 0, "occurrences"), 1);
    assert_int_equal(number_at(doc, "occurrences", 0, "ops"), 4);
    assert_int_equal(number_at(doc, "occurrences", 0, "actions"), 4);
    assert_int_equal(number_at(doc, "occurrences", 0, "duration"), 330 * US);
    assert_string_equal(json_string_value(report_value(doc, "occurrence")), "h/0/1000000000/ar.1");
    json_decref(doc);
}

static void an_action_lasts_from_its_start_or_as_long_as_it_says(void **state)
{
    /* In order of begins. */
    static const struct {
        const char *kind;
        int64_t after_us, us, bytes;
    } want[] = {{"send", 0, 10, 0},
                {"recv", 10, 10, 0},
                {"copy to host", 30, 60, 4000},
                {"network send", 110, 40, 4000},
                {"network receive", 150, 50, 8000},
                {"send-done", 200, 20, 0},
                {"copy to device", 210, 80, 8000},
                {"recv-done", 300, 30, 1024}};
    (void)state;
    struct tool_file f = traced();
    json_t *doc = report_ask("megascale_stats", &f, 1, NULL);
    assert_int_equal(report_rows(doc, "actions"), 8);
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(json_string_value(report_at(doc, "actions", i, "kind")), want[i].kind);
        assert_int_equal(number_at(doc, "actions", i, "after"), want[i].after_us * US);
        assert_int_equal(number_at(doc, "actions", i, "duration"), want[i].us * US);
        assert_int_equal(number_at(doc, "actions", i, "bytes"), want[i].bytes);
    }
    json_decref(doc);
}

static void actions_lead_from_send_to_recv_done(void **state)
{
    static const int64_t want[][2] = {{0, 5}, {1, 7}, {0, 2}, {1, 6},
                                      {2, 5}, {6, 7}, {2, 3}, {4, 6}};
    (void)state;
    struct tool_file f = traced();
    json_t *doc = report_ask("megascale_stats", &f, 1, NULL);
    assert_int_equal(report_rows(doc, "action_links"), 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(number_at(doc, "action_links", i, "from"), want[i][0]);
        assert_int_equal(number_at(doc, "action_links", i, "to"), want[i][1]);
    }
    json_decref(doc);
}

static void rates_are_bytes_over_the_time_that_they_took(void **state)
{
    (void)state;
    struct tool_file f = traced();
    json_t *doc = report_ask("megascale_stats", &f, 1, NULL);
    assert_float_equal(json_number_value(report_value(doc, "network_tx_peak")), 1e8, 1);
    assert_float_equal(json_number_value(report_value(doc, "network_rx_peak")), 1.6e8, 1);
    assert_true(report_notes(doc, "network_computed"));
    json_decref(doc);
    f = profile(0, true); /* 1,024 bytes from send to the end of recv-done */
    doc = report_ask("megascale_stats", &f, 1, NULL);
    assert_float_equal(json_number_value(report_value(doc, "network_tx_peak")), 1024 / 330e-6, 1);
    json_decref(doc);
}

static void an_occurrence_is_found_by_when_a_part_of_it_begins_or_ends(void **state)
{
    static const char *const at[][3] = {{"at=1030000000", NULL, NULL},
                                        {"at=1290000000", NULL, NULL},
                                        {"at=1290000000", "device=0", NULL}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tool_file f = traced();
        json_t *doc = report_ask("megascale_stats", &f, 1, at[i]);
        assert_string_equal(json_string_value(report_value(doc, "occurrence")),
                            "h/0/1000000000/ar.1");
        json_decref(doc);
    }
}

static void what_is_not_there_is_said_and_the_usual_is_shown(void **state)
{
    static const char *const odd[][2] = {{"collective=nobody", NULL}, {"occurrence=h/0/7", NULL}};
    static const char *const codes[] = {"no_such_collective", "no_such_occurrence"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tool_file f = traced();
        json_t *doc = report_ask("megascale_stats", &f, 1, odd[i]);
        assert_true(report_notes(doc, codes[i]));
        assert_string_equal(json_string_value(report_value(doc, "occurrence")),
                            "h/0/1000000000/ar.1");
        json_decref(doc);
    }
}

static void times_without_a_part_cannot_be_asked_for(void **state)
{
    static const char *const odd[][3] = {{"at=1000000001", NULL, NULL},
                                         {"at=soon", NULL, NULL},
                                         {"at=1290000000", "device=1", NULL},
                                         {"at=1290000000", "device=x", NULL},
                                         {"at=99999999999999999999", NULL, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct tool_file f = traced();
        assert_int_equal(report_refuses("megascale_stats", &f, 1, odd[i]), XP_BAD_REQUEST);
    }
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
        cmocka_unit_test(ops_and_actions_of_one_name_and_device_are_one),
        cmocka_unit_test(an_action_lasts_from_its_start_or_as_long_as_it_says),
        cmocka_unit_test(actions_lead_from_send_to_recv_done),
        cmocka_unit_test(rates_are_bytes_over_the_time_that_they_took),
        cmocka_unit_test(an_occurrence_is_found_by_when_a_part_of_it_begins_or_ends),
        cmocka_unit_test(what_is_not_there_is_said_and_the_usual_is_shown),
        cmocka_unit_test(times_without_a_part_cannot_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
