#include <pthread.h>
#include <unistd.h>

#include "lib/base/gzip.h"
#include "lib/base/hash.h"
#include "shard/part_open.h"
#include "shard/tools/trace.h"

#include "tests/unit/tool_support.h"

#define US INT64_C(1000000)

/* Statistics of every plane made here; one that knows GROUP was grouped by its writer. */
enum { PRODUCER = 1, PRODUCER_ID, CONSUMER, CONSUMER_ID, SIZE, GROUP };
static const char *const stats[] = {"_pt", "_p", "_ct", "_c", "bytes", "group_id"};

static struct xp_buf host_plane(bool grouped)
{
    struct xp_buf plane = make_plane(1, "/host:CPU");
    put_stat_names(&plane, stats, grouped ? GROUP : SIZE);
    make_add_meta(&plane, 4, 1, "alpha");
    make_add_meta(&plane, 4, 2, "beta");
    make_add_meta(&plane, 4, 3, "alphabet");
    return plane;
}

static struct tool_file host_file(struct xp_buf *plane)
{
    struct xp_buf space = make_message();
    make_put(&space, 1, plane);
    return (struct tool_file){"h", space};
}

/* A profile of one thread; the line is freed. */
static struct tool_file one_line(struct xp_buf *line)
{
    struct xp_buf plane = host_plane(false);
    make_put(&plane, 3, line);
    return host_file(&plane);
}

static json_t *ask(struct tool_file f, const char *const *args)
{
    return tool_ask("trace_viewer@", &f, 1, args);
}

/* The i-th complete event. */
static json_t *complete(json_t *j, size_t i)
{
    json_t *events = json_object_get(j, "traceEvents");
    for (size_t k = 0; k < json_array_size(events); k++) {
        json_t *e = json_array_get(events, k), *ph = json_object_get(e, "ph");
        if (ph && strcmp(json_string_value(ph), "X") == 0 && i-- == 0)
            return e;
    }
    return NULL;
}

static size_t completes(json_t *j)
{
    size_t n = 0;
    while (complete(j, n) && n < 1000)
        n++;
    return n;
}

static double number(json_t *e, const char *name)
{
    return json_number_value(json_object_get(e, name));
}

static void times_are_microseconds_with_all_digits(void **state)
{
    (void)state;
    struct xp_buf line = make_line(5, "main", 1000);
    make_add_event(&line, 1, 0, 1);
    make_add_event(&line, 2, 2 * US + 7, 3 * US + 250000);
    json_t *j = ask(one_line(&line), NULL), *a = complete(j, 0), *b = complete(j, 1);
    assert_int_equal(completes(j), 2);
    assert_string_equal(json_string_value(json_object_get(a, "name")), "alpha");
    assert_int_equal(number(a, "pid"), 1701);
    assert_int_equal(number(a, "tid"), 5);
    assert_true(number(a, "dur") == 0.000001);
    assert_true(number(b, "dur") == 3.25);
    assert_true(number(b, "ts") - number(a, "ts") - 2.000007 < 1e-9);
    json_decref(j);
}

static void events_that_begin_together_have_serials_longest_first(void **state)
{
    (void)state;
    struct xp_buf line = make_line(5, "main", 1000);
    make_add_event(&line, 1, 0, 10 * US);
    make_add_event(&line, 2, 0, 5 * US);
    make_add_event(&line, 3, 6 * US, 1 * US);
    json_t *j = ask(one_line(&line), NULL);
    assert_int_equal(completes(j), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *e = complete(j, i);
        bool second = strcmp(json_string_value(json_object_get(e, "name")), "beta") == 0;
        assert_int_equal(number(e, "z"), second);
        assert_int_equal(number(json_object_get(e, "args"), "uid"), second);
    }
    json_decref(j);
}

static void beyond_256_events_of_one_begin_are_lost(void **state)
{
    (void)state;
    struct xp_buf line = make_line(5, "main", 1000);
    for (int i = 0; i < 300; i++)
        make_add_event(&line, 1, 0, 1000 * (300 - i));
    json_t *j = ask(one_line(&line), NULL);
    assert_int_equal(completes(j), 256);
    json_decref(j);
}

static void a_search_finds_names_by_their_begin(void **state)
{
    (void)state;
    const char *const args[] = {"search_prefix=alpha", NULL};
    struct xp_buf line = make_line(5, "main", 1000);
    for (int i = 1; i <= 3; i++)
        make_add_event(&line, i, i * US, 100);
    json_t *j = ask(one_line(&line), args);
    assert_int_equal(completes(j), 2);
    json_decref(j);
}

static void a_search_goes_through_lines_strung_together(void **state)
{
    (void)state;
    const char *const args[] = {"search_prefix=alpha", "search_metadata=true", NULL};
    struct xp_buf plane = host_plane(false);
    for (int k = 0; k < 2; k++) { /* the second begins before the first ends */
        struct xp_buf line = make_line(5, "main", 1000);
        for (int i = 0; i < 40; i++)
            make_add_event(&line, 1 + i % 2, (2 * i + k) * US, 100);
        make_put(&plane, 3, &line);
    }
    json_t *j = ask(host_file(&plane), args);
    assert_int_equal(completes(j), 40);
    json_decref(j);
}

static void one_event_is_asked_for_by_name_begin_and_duration(void **state)
{
    (void)state;
    const char *const all[] = {"resolution=0", NULL};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct xp_buf line[2];
        struct tool_file f[2];
        for (int i = 0; i < 2; i++) {
            line[i] = make_line(5, "main", 1000);
            struct xp_buf ev = make_event(1, 2 * US, 3 * US);
            put_i64(&ev, 4, SIZE, 4711);
            make_put(&line[i], 4, &ev);
            f[i] = one_line(&line[i]);
        }
        json_t *j = ask(f[0], all);
        char begin[64], dur[64];
        snprintf(begin, sizeof begin, "start_time_ms=%.9f", number(complete(j, 0), "ts") / 1000);
        snprintf(dur, sizeof dur, "duration_ms=%.9f", wrong ? 0.004 : 0.003);
        json_decref(j);
        const char *const args[] = {"event_name=alpha", begin, dur, "unique_id=0", NULL};
        if (wrong) {
            assert_int_equal(tool_refuses("trace_viewer@", &f[1], 1, args), XP_NOT_FOUND);
            continue;
        }
        j = ask(f[1], args);
        assert_int_equal(completes(j), 1);
        assert_int_equal(number(json_object_get(complete(j, 0), "args"), "bytes"), 4711);
        json_decref(j);
    }
}

static void add_flow(struct xp_buf *line, int64_t name, int64_t begin, bool out, bool in)
{
    struct xp_buf ev = make_event(name, begin, US);
    if (out) {
        put_i64(&ev, 4, PRODUCER, 1);
        put_i64(&ev, 4, PRODUCER_ID, 99);
    }
    if (in) {
        put_i64(&ev, 4, CONSUMER, 1);
        put_i64(&ev, 4, CONSUMER_ID, 99);
    }
    make_put(line, 4, &ev);
}

static void an_arrow_binds_producer_and_consumer(void **state)
{
    (void)state;
    struct xp_buf plane = host_plane(false), one = make_line(5, "one", 1000),
                  two = make_line(6, "two", 1000);
    add_flow(&one, 1, 0, true, false);
    add_flow(&two, 2, 3 * US, false, true);
    make_put(&plane, 3, &one);
    make_put(&plane, 3, &two);
    json_t *j = ask(host_file(&plane), NULL), *a = complete(j, 0), *b = complete(j, 1);
    assert_true(number(a, "bind_id") != 0);
    assert_true(number(a, "bind_id") == number(b, "bind_id"));
    assert_true(json_is_true(json_object_get(a, "flow_out")));
    assert_null(json_object_get(a, "flow_in"));
    assert_true(json_is_true(json_object_get(b, "flow_in")));
    json_decref(j);
}

static void arrows_in_a_circle_do_no_harm(void **state)
{
    (void)state;
    struct xp_buf line = make_line(5, "one", 1000);
    for (int i = 0; i < 100; i++)
        add_flow(&line, 1, i * 2 * US, true, true);
    json_t *j = ask(one_line(&line), NULL);
    assert_int_equal(completes(j), 100);
    json_decref(j);
}

static void group_numbers_have_no_bound(void **state)
{
    (void)state;
    const int64_t groups[] = {INT64_MIN + 1, INT64_MAX, -1, 0};
    struct xp_buf line = make_line(5, "main", 1000);
    for (size_t i = 0; i < 4; i++) {
        struct xp_buf ev = make_event(1, (int64_t)i * 2 * US, US);
        put_i64(&ev, 4, GROUP, groups[i]);
        make_put(&line, 4, &ev);
    }
    struct xp_buf plane = host_plane(true);
    make_put(&plane, 3, &line);
    json_t *j = ask(host_file(&plane), NULL);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(json_integer_value(
                             json_object_get(json_object_get(complete(j, i), "args"), "group_id")),
                         groups[i]);
    json_decref(j);
}

static void a_profile_without_names_or_events_is_answered(void **state)
{
    (void)state;
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(5, "main", 1000);
    make_add_event(&line, 77, 0, US);
    make_put(&plane, 3, &line);
    json_t *j = ask(host_file(&plane), NULL);
    assert_int_equal(completes(j), 1);
    json_decref(j);
    plane = make_plane(1, "/host:CPU");
    j = ask(host_file(&plane), NULL);
    assert_int_equal(completes(j), 0);
    json_decref(j);
}

static void the_old_viewer_has_arguments_at_once(void **state)
{
    (void)state;
    struct xp_buf line = make_line(5, "main", 1000), ev = make_event(1, 2 * US, 3 * US);
    put_i64(&ev, 4, SIZE, 4711);
    make_put(&line, 4, &ev);
    struct tool_file f = one_line(&line);
    json_t *j = tool_ask("trace_viewer", &f, 1, NULL), *e = complete(j, 0);
    json_t *bytes = json_object_get(json_object_get(e, "args"), "bytes");
    assert_string_equal(json_string_value(bytes), "4711");
    json_decref(j);
}

/* --- a host that is filtered --- */

#define MANY 520000

struct simple {
    int64_t begin, end;
};

struct stack {
    int64_t end[8];
    size_t n;
};

static size_t depth_at(const struct stack *s, int64_t begin)
{
    size_t d = 0;
    while (d < s->n && s->end[d] > begin)
        d++;
    return d;
}

static bool shown(const struct stack *s, const struct simple *e, int64_t res)
{
    size_t d = depth_at(s, e->begin);
    return e->end - e->begin >= res || d == s->n || e->begin - s->end[d] >= res;
}

static void show(struct stack *s, const struct simple *e)
{
    size_t d = depth_at(s, e->begin);
    s->end[d] = e->end;
    s->n = d + 1;
}

/* How many events XProf's two filters leave, one event after the other. */
static size_t by_hand(const struct simple *ev, size_t n, int64_t begin, int64_t end, int64_t res)
{
    static struct stack layers[TRACE_LAYERS];
    struct stack last = {{0}, 0};
    size_t count = 0;
    int layer = TRACE_LAST_LAYER;
    memset(layers, 0, sizeof layers);
    for (int z = TRACE_LAST_LAYER; z >= 0; z--)
        if (res >= trace_resolution_ps[z])
            layer = z;
    for (size_t i = 0; i < n; i++) {
        int z = 0;
        while (z < TRACE_LAST_LAYER && !shown(&layers[z], &ev[i], trace_resolution_ps[z]))
            z++;
        for (int k = z; k < TRACE_LAST_LAYER; k++)
            show(&layers[k], &ev[i]);
        if (z > layer || ev[i].begin > end || ev[i].end < begin || !shown(&last, &ev[i], res))
            continue;
        show(&last, &ev[i]);
        count++;
    }
    return count;
}

/* Events of 1 to 60 ns with pauses, some in others, and now and then a long pause. */
/* pause_ps: from time to time, so long that few of the events between two can be told apart. */
static size_t make_many(struct simple *ev, int64_t pause_ps, int64_t *end)
{
    uint64_t rng = 7;
    size_t n = 0;
    int64_t t = 0;
    while (n < MANY) {
        uint64_t r = make_rng(&rng);
        int64_t dur = 1000 * (1 + (int64_t)(r % 60));
        t += 1000 * (int64_t)(r >> 8 & 31);
        if (r >> 16 % 5000 == 0 || (r >> 20 & 8191) == 0)
            t += 1000 * (int64_t)(r >> 40 & 0xffff);
        if ((r >> 56 & 127) == 0)
            t += pause_ps;
        ev[n++] = (struct simple){t, t + dur};
        if ((r >> 32 & 3) == 0 && dur > 4000 && n < MANY)
            ev[n++] = (struct simple){t + 1000, t + dur - 1000};
        t += dur;
    }
    *end = t;
    return n;
}

static void check_windows(int64_t pause_ps)
{
    static struct simple ev[MANY + 1];
    int64_t end;
    size_t n = make_many(ev, pause_ps, &end);
    const double windows[][2] = {{0, 1}, {0.5, 0.51}, {0.9, 0.9005}, {0.3, 0.7}, {0.25, 0.2502}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct xp_buf line = make_line(5, "main", 0);
        for (size_t k = 0; k < n; k++)
            make_add_event(&line, 1, ev[k].begin, ev[k].end - ev[k].begin);
        /* whole nanoseconds, so that times in ms are exact enough */
        int64_t from = (int64_t)((double)end * windows[i][0]) / 1000000 * 1000000;
        int64_t to = (int64_t)((double)end * windows[i][1]) / 1000000 * 1000000;
        char start[64], stop[64];
        snprintf(start, sizeof start, "start_time_ms=%.9f", (double)from / 1e9);
        snprintf(stop, sizeof stop, "end_time_ms=%.9f", (double)to / 1e9);
        const char *const args[] = {start, stop, "resolution=700", NULL};
        json_t *j = ask(one_line(&line), args);
        double span[] = {(double)from, (double)to};
        int64_t res = (int64_t)((span[1] - span[0]) / 700 + 0.5);
        assert_int_equal(number(j, "returnedEventsSize"), by_hand(ev, n, from, to, res));
        json_decref(j);
    }
}

static void windows_show_what_one_walk_over_all_events_would(void **state)
{
    (void)state;
    check_windows(0);
}

static void windows_of_lanes_that_show_little_do_so_too(void **state)
{
    (void)state;
    check_windows(200 * US);
}

/* --- serials of a host that is filtered --- */

#define THREADS 26

struct threaded {
    int64_t begin, end;
    int thread;
    int serial;
};

static int serial_order(const void *a, const void *b)
{
    const struct threaded *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->thread - y->thread;
}

/* Threads whose events begin at whole microseconds, so that many begin together: at times all. */
static struct tool_file make_threads(struct threaded *ev)
{
    uint64_t rng = 3;
    struct xp_buf plane = host_plane(false);
    for (int t = 0; t < THREADS; t++) {
        struct xp_buf line = make_line(5 + t, "main", 0);
        int64_t begin = 0;
        for (int i = 0; i < MANY / THREADS; i++) {
            uint64_t r = make_rng(&rng);
            begin = i % 64 ? begin + (1 + (int64_t)(r % 7)) * US : i * 8 * US;
            int64_t dur = (1 + (int64_t)(r >> 8 & 3)) * US / 4;
            *ev++ = (struct threaded){begin, begin + dur, t, 0};
            make_add_event(&line, 1 + r % 3, begin, dur);
        }
        make_put(&plane, 3, &line);
    }
    return host_file(&plane);
}

static void serials_of_a_window_count_all_events_of_their_begin(void **state)
{
    (void)state;
    enum { N = MANY / THREADS * THREADS };
    static struct threaded ev[N];
    const char *const args[] = {"start_time_ms=40", "end_time_ms=41.5", "resolution=4000", NULL};
    int large = 0;
    json_t *j = ask(make_threads(ev), args), *events = json_object_get(j, "traceEvents");
    qsort(ev, N, sizeof *ev, serial_order);
    for (size_t i = 1; i < N; i++)
        ev[i].serial = ev[i].begin == ev[i - 1].begin ? ev[i - 1].serial + 1 : 0;
    assert_true(json_array_size(events) > 2000);
    for (size_t i = 0; i < json_array_size(events); i++) {
        json_t *e = json_array_get(events, i);
        if (!json_object_get(e, "ts"))
            continue;
        int64_t begin = (int64_t)(number(e, "ts") + 0.5) * US;
        struct threaded key = {begin, begin + (int64_t)(number(e, "dur") * US + 0.5),
                               (int)number(e, "tid") - 5, 0};
        const struct threaded *is = bsearch(&key, ev, N, sizeof *ev, serial_order);
        assert_non_null(is);
        assert_int_equal(number(e, "z"), is->serial);
        assert_int_equal(number(json_object_get(e, "args"), "uid"), is->serial);
        large += is->serial > 16;
    }
    assert_true(large > 10);
    json_decref(j);
}

/* Threads of events with all that an event's text may have. */
/* --- windows of one part --- */

#define WINDOWS 12

struct asker {
    struct tool_host host;
    int first, step; /* of the order in which the windows are asked for */
    uint64_t texts[WINDOWS];
};

static uint64_t text_hash(const uint8_t *body, size_t n)
{
    uint8_t piece[4096];
    uint64_t hash = XP_FNV_INIT;
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
    size_t got;
    while (xp_gunzip_read(g, piece, sizeof piece, &got) == XP_OK && got)
        hash = xp_fnv(hash, xp_span_of(piece, got));
    xp_gunzip_free(g);
    return hash;
}

static uint64_t ask_window(const struct tool_host *host, int i)
{
    char from[32], to[32];
    struct tool_arg args[] = {{XP_SPAN_LIT("start_time_ms"), {0}},
                              {XP_SPAN_LIT("end_time_ms"), {0}},
                              {XP_SPAN_LIT("resolution"), XP_SPAN_LIT("4000")}};
    struct tool_args list = {.args = args, .n = 3};
    struct xp_error err = {0};
    struct out out;
    uint8_t *body;
    size_t n;
    bool encoded;
    snprintf(from, sizeof from, "%d", 30 + 3 * i);
    snprintf(to, sizeof to, "%d", 34 + 4 * i);
    args[0].value = xp_span_str(from);
    args[1].value = xp_span_str(to);
    struct xp_arena *scratch = xp_arena_new(NULL);
    out_init(&out, NULL);
    bool ok = tool_run(tool_find(XP_SPAN_LIT("trace_viewer@")), host, 1, &list, scratch, &out,
                       &err) == XP_OK;
    xp_arena_free(scratch);
    ok = ok && out_finish(&out, &body, &n, &encoded, &err) == XP_OK && encoded;
    uint64_t hash = ok ? text_hash(body, n) : 0;
    if (ok)
        free(body);
    out_fini(&out);
    return hash;
}

static void *ask_windows(void *ctx)
{
    struct asker *a = ctx;
    for (int k = 0, i = a->first; k < WINDOWS; k++, i = (i + a->step) % WINDOWS)
        a->texts[i] = ask_window(&a->host, i);
    return NULL;
}

static void windows_are_the_same_in_any_order_and_for_several_who_ask_at_once(void **state)
{
    (void)state;
    static struct threaded ev[MANY / THREADS * THREADS];
    struct tool_file file = make_threads(ev);
    char *path = make_file(xp_buf_all(&file.space));
    struct part_file *f[2];
    struct xp_error err = {0};
    for (int i = 0; i < 2; i++)
        assert_int_equal(part_open_file(path, NULL, NULL, &f[i], &err), XP_OK);
    struct asker alone = {{part_file_part(f[0]), XP_SPAN_LIT("h"), 0}, 0, 1, {0}};
    struct asker several[3];
    pthread_t threads[3];
    ask_windows(&alone);
    for (int i = 0; i < 3; i++) {
        several[i] = (struct asker){{part_file_part(f[1]), XP_SPAN_LIT("h"), 0}, 3 * i, 5, {0}};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_windows, &several[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WINDOWS; i++) {
        assert_true(alone.texts[i] != 0);
        for (int k = 0; k < 3; k++)
            assert_int_equal(several[k].texts[i], alone.texts[i]);
    }
    for (int i = 0; i < 2; i++)
        part_close(f[i]);
    unlink(path);
    free(path);
    xp_buf_fini(&file.space);
}

static struct tool_file motley(int n)
{
    struct xp_buf plane = host_plane(false);
    for (int thread = 0; thread < 3; thread++) {
        struct xp_buf line = make_line(5 + thread, "main", 1000);
        for (int i = thread; i < n; i += 3) {
            int64_t begin = i / 3 * 2 * US + (i % 5 ? 0 : 123457 * (i % 4));
            if (i % 4 == 1)
                add_flow(&line, 1 + i % 3, begin, i % 8 == 1, i % 8 != 1);
            else
                make_add_event(&line, 1 + i % 3, begin, 1000 * (i % 11));
        }
        make_put(&plane, 3, &line);
    }
    return host_file(&plane);
}

/* Large answers are written by the pen (gzip_pen.h), small ones as plain text. */
static void large_answers_say_what_small_ones_do(void **state)
{
    (void)state;
    enum { N = 600, STEP = 30 };
    json_t *whole = ask(motley(N), NULL);
    size_t at = 0;
    assert_int_equal(completes(whole), N);
    json_t *events = json_object_get(whole, "traceEvents");
    for (int from = 0; from < N; from += STEP) {
        char start[64], stop[64];
        /* events of one number begin 2 us after those of the last */
        snprintf(start, sizeof start, "start_time_ms=%.9f", (1 + 2.0 * from / 3 - 0.5) / 1e3);
        snprintf(stop, sizeof stop, "end_time_ms=%.9f", (1 + 2.0 * (from + STEP) / 3 - 0.5) / 1e3);
        const char *const args[] = {start, stop, NULL};
        json_t *part = ask(motley(N), args), *few = json_object_get(part, "traceEvents");
        for (size_t i = 0; i < json_array_size(few); i++) {
            json_t *e = json_array_get(few, i);
            bool found = false;
            for (size_t k = 0; !found && k < json_array_size(events); k++)
                found = json_equal(e, json_array_get(events, k));
            assert_true(found);
            at++;
        }
        json_decref(part);
    }
    assert_true(at >= N);
    json_decref(whole);
}

/* A device whose ops have long names, which frames hold, some of them those of other hosts. */
static struct tool_file framed(int k)
{
    static const char *const names[] = {"hlo_text", "flops", "counter_value"};
    struct xp_buf plane = make_plane(1, "/device:TPU:0"), line = make_line(3, "XLA Ops", 1000);
    char text[200];
    put_stat_names(&plane, names, 3);
    for (int i = 1; i <= 5; i++) {
        snprintf(text, sizeof text, "%%fusion.%d = bf16[128,%d]{1,0} fusion(%%p.%d), kind=kLoop", i,
                 i % 2 ? 7 : k, i);
        put_meta(&plane, i, text, i % 2 ? "alpha" : "beta", NULL);
    }
    for (int i = 0; i < 200; i++) {
        struct xp_buf ev = make_event(1 + i % 5, i * US, 500 * 1000);
        snprintf(text, sizeof text, "text of op %d, known to %s", i % 7,
                 i % 2 ? "all"
                 : k   ? "k"
                       : "0");
        put_text(&ev, 4, 1, text);
        put_i64(&ev, 4, 2, i);
        make_put(&line, 4, &ev);
    }
    make_put(&plane, 3, &line);
    return host_file(&plane);
}

static struct tool_file counted(void)
{
    static const char *const names[] = {"counter_value", "bytes"};
    struct xp_buf plane = make_plane(1, "/host:CPU"), line = make_line(-1, "counters", 1000);
    put_stat_names(&plane, names, 2);
    make_add_meta(&plane, 4, 1, "alpha memory");
    for (int i = 0; i < 9; i++) {
        struct xp_buf ev = make_event(1, i * US, 0);
        put_u64(&ev, 4, 1, (uint64_t)i);
        make_put(&line, 4, &ev);
    }
    make_put(&plane, 3, &line);
    return host_file(&plane);
}

enum { SEVERAL = 6 };

static void make_several(struct tool_file f[SEVERAL])
{
    struct xp_buf nothing = make_line(5, "main", 0);
    f[0] = framed(0);
    f[1] = motley(600);
    f[2] = one_line(&nothing);
    f[3] = framed(3);
    f[4] = counted();
    f[5] = motley(30);
}

/* Looked at one by one, as shards do, hosts come to the same bytes as all at once. */
static void hosts_one_by_one_are_what_all_at_once_are(void **state)
{
    (void)state;
    static const char *const asked[][5] = {
        {NULL},
        {"resolution=0"},
        {"format=pb"},
        {"format=pb", "start_time_ms=0.05", "end_time_ms=0.07"},
        {"start_time_ms=0.05", "end_time_ms=0.07"},
        {"start_time_ms=7000"},
        {"search_prefix=al"},
        {"search_prefix=al", "search_metadata=true"},
        {"search_prefix=no such thing", "search_metadata=true"},
        {"format=pb", "search_prefix=bet"},
        {"event_name=alpha", "start_time_ms=0.003", "duration_ms=0.0005", "unique_id=0"},
        {"event_name=alpha", "start_time_ms=0.003", "duration_ms=0.0005", "unique_id=9"},
        {"resolution=many"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const char *args[6] = {NULL};
        memcpy(args, asked[i], sizeof asked[i]);
        struct tool_file once[SEVERAL], apart[SEVERAL];
        struct xp_buf x, y;
        make_several(once);
        make_several(apart);
        enum xp_status a = tool_text("trace_viewer@", true, once, SEVERAL, args, &x);
        enum xp_status b = tool_text("trace_viewer@", false, apart, SEVERAL, args, &y);
        assert_int_equal(a, b);
        assert_int_equal(a, i < 11 ? XP_OK : XP_NOT_FOUND);
        if (a != XP_OK)
            continue;
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.p, y.p, x.n);
        xp_buf_fini(&x);
        xp_buf_fini(&y);
    }
}

static void half_a_million_events_inside_of_each_other_are_answered(void **state)
{
    (void)state;
    const char *const args[] = {"resolution=100", NULL};
    struct xp_buf line = make_line(5, "main", 0);
    for (int64_t i = 0; i < MANY; i++)
        make_add_event(&line, 1, 1000 * i, 1000 * 2 * (MANY - i));
    json_t *j = ask(one_line(&line), args);
    assert_true(number(j, "returnedEventsSize") > 0);
    json_decref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_microseconds_with_all_digits),
        cmocka_unit_test(events_that_begin_together_have_serials_longest_first),
        cmocka_unit_test(beyond_256_events_of_one_begin_are_lost),
        cmocka_unit_test(a_search_finds_names_by_their_begin),
        cmocka_unit_test(a_search_goes_through_lines_strung_together),
        cmocka_unit_test(one_event_is_asked_for_by_name_begin_and_duration),
        cmocka_unit_test(an_arrow_binds_producer_and_consumer),
        cmocka_unit_test(arrows_in_a_circle_do_no_harm),
        cmocka_unit_test(group_numbers_have_no_bound),
        cmocka_unit_test(a_profile_without_names_or_events_is_answered),
        cmocka_unit_test(the_old_viewer_has_arguments_at_once),
        cmocka_unit_test(windows_show_what_one_walk_over_all_events_would),
        cmocka_unit_test(windows_of_lanes_that_show_little_do_so_too),
        cmocka_unit_test(serials_of_a_window_count_all_events_of_their_begin),
        cmocka_unit_test(windows_are_the_same_in_any_order_and_for_several_who_ask_at_once),
        cmocka_unit_test(large_answers_say_what_small_ones_do),
        cmocka_unit_test(hosts_one_by_one_are_what_all_at_once_are),
        cmocka_unit_test(half_a_million_events_inside_of_each_other_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
