#include "server/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/objstore/count.h"
#include "server/capture/capture.h"
#include "server/links.h"

/* Upper ends of the buckets, in microseconds; the last is all. From what a kept answer takes to
 * what a cold tool over many hosts does. */
static const uint32_t bounds_us[] = {500,    1000,   2500,   5000,    10000,   25000,   50000,
                                     100000, 250000, 500000, 1000000, 2500000, 10000000};
#define BOUNDS (sizeof bounds_us / sizeof *bounds_us)

/* Statuses that handlers give; another is counted under its class. */
static const int statuses[] = {200, 201, 202, 204, 302, 303, 304, 400, 401, 403, 404, 405, 409,
                               410, 412, 413, 421, 422, 429, 499, 500, 501, 502, 503, 504};
#define STATUSES (sizeof statuses / sizeof *statuses)

struct route_counts {
    _Atomic uint64_t by_status[STATUSES];
    _Atomic uint64_t buckets[BOUNDS + 1];
    _Atomic uint64_t sum_us;
    size_t first; /* of the routes of that name, which differ by method: it counts for all */
};

struct metrics {
    const char *const *routes;
    size_t n;
    int64_t started_s;
    struct route_counts counts[];
};

struct metrics *metrics_new(const char *const *routes, size_t n)
{
    struct metrics *m = calloc(1, sizeof *m + n * sizeof m->counts[0]);
    XP_ASSERT(m);
    m->routes = routes;
    m->n = n;
    m->started_s = time(NULL);
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (strcmp(routes[first], routes[i]) != 0)
            first++;
        m->counts[i].first = first;
    }
    return m;
}

void metrics_free(struct metrics *m)
{
    free(m);
}

static size_t place_of_status(int status)
{
    size_t of_class = STATUSES;
    for (size_t i = 0; i < STATUSES; i++) {
        if (statuses[i] == status)
            return i;
        if (of_class == STATUSES && statuses[i] / 100 == status / 100)
            of_class = i;
    }
    return of_class < STATUSES ? of_class : 0;
}

void metrics_answer(struct metrics *m, size_t route, int status, uint64_t ns)
{
    struct route_counts *c = &m->counts[m->counts[route].first];
    uint64_t us = ns / 1000;
    size_t b = 0;
    while (b < BOUNDS && us > bounds_us[b])
        b++;
    atomic_fetch_add_explicit(&c->by_status[place_of_status(status)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->buckets[b], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->sum_us, us, memory_order_relaxed);
}

/* --- text --- */

static void head(struct xp_buf *b, const char *name, const char *type, const char *help)
{
    xp_buf_fmt(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(struct xp_buf *b, const char *name, uint64_t v, const char *help)
{
    head(b, name, "counter", help);
    xp_buf_fmt(b, "%s %" PRIu64 "\n", name, v);
}

static void gauge(struct xp_buf *b, const char *name, uint64_t v, const char *help)
{
    head(b, name, "gauge", help);
    xp_buf_fmt(b, "%s %" PRIu64 "\n", name, v);
}

static void write_answers(struct metrics *m, struct xp_buf *b)
{
    head(b, "xprofd_answers_total", "counter", "Answers of routes, by status.");
    for (size_t r = 0; r < m->n; r++)
        for (size_t s = 0; s < STATUSES; s++) {
            uint64_t n = atomic_load_explicit(&m->counts[r].by_status[s], memory_order_relaxed);
            if (n)
                xp_buf_fmt(b, "xprofd_answers_total{route=\"%s\",status=\"%d\"} %" PRIu64 "\n",
                           m->routes[r], statuses[s], n);
        }
}

/* A histogram's series of one label; each has n + 1 elements, the last of what is above all
 * bounds. Nothing where nothing was counted. */
struct series {
    const char *name, *label, *value;
    const uint32_t *bounds_us;
    size_t n;
};

static void write_series(struct xp_buf *b, const struct series *s, const uint64_t *each,
                         uint64_t sum_us)
{
    uint64_t so_far = 0;
    for (size_t i = 0; i <= s->n; i++)
        so_far += each[i];
    if (!so_far)
        return;
    so_far = 0;
    for (size_t i = 0; i < s->n; i++) {
        so_far += each[i];
        xp_buf_fmt(b, "%s_bucket{%s=\"%s\",le=\"%g\"} %" PRIu64 "\n", s->name, s->label, s->value,
                   s->bounds_us[i] / 1e6, so_far);
    }
    so_far += each[s->n];
    xp_buf_fmt(b, "%s_bucket{%s=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", s->name, s->label, s->value,
               so_far);
    xp_buf_fmt(b, "%s_sum{%s=\"%s\"} %.6f\n", s->name, s->label, s->value, (double)sum_us / 1e6);
    xp_buf_fmt(b, "%s_count{%s=\"%s\"} %" PRIu64 "\n", s->name, s->label, s->value, so_far);
}

static void write_durations(struct metrics *m, struct xp_buf *b)
{
    static const char name[] = "xprofd_answer_seconds";
    head(b, name, "histogram", "From the request to its answer, without sending it.");
    for (size_t r = 0; r < m->n; r++) {
        uint64_t each[BOUNDS + 1];
        for (size_t i = 0; i <= BOUNDS; i++)
            each[i] = atomic_load_explicit(&m->counts[r].buckets[i], memory_order_relaxed);
        write_series(b, &(struct series){name, "route", m->routes[r], bounds_us, BOUNDS}, each,
                     atomic_load(&m->counts[r].sum_us));
    }
}

static void write_store_calls(const struct xp_store_counts *c, struct xp_buf *b)
{
    head(b, "xprofd_store_calls_total", "counter", "Calls to buckets, by what came of them.");
    for (int k = 0; k < XP_CALLS; k++)
        for (int i = 0; i < XP_OUTCOMES; i++)
            if (c->calls[k].outcomes[i])
                xp_buf_fmt(b, "xprofd_store_calls_total{kind=\"%s\",status=\"%s\"} %" PRIu64 "\n",
                           xp_store_calls[k], xp_store_outcomes[i], c->calls[k].outcomes[i]);
    head(b, "xprofd_store_retries_total", "counter", "Calls made once more.");
    for (int k = 0; k < XP_CALLS; k++)
        xp_buf_fmt(b, "xprofd_store_retries_total{kind=\"%s\"} %" PRIu64 "\n", xp_store_calls[k],
                   c->calls[k].retries);
}

/* Of a process that reads no bucket all is 0. */
static void write_store(struct xp_buf *b)
{
    static const char seconds[] = "xprofd_store_call_seconds";
    struct xp_store_counts c;

    xp_store_counts(&c);
    write_store_calls(&c, b);
    counter(b, "xprofd_store_read_bytes_total", c.bytes_read, "Bytes that buckets answered.");
    counter(b, "xprofd_store_written_bytes_total", c.bytes_written, "Bytes that buckets took.");
    gauge(b, "xprofd_store_open_connections", c.connections, "Connections to buckets.");
    head(b, seconds, "histogram", "Of a call to a bucket, to its answer's last byte.");
    for (int k = 0; k < XP_CALLS; k++)
        write_series(b,
                     &(struct series){seconds, "kind", xp_store_calls[k], xp_store_bounds_us,
                                      XP_STORE_BOUNDS},
                     c.calls[k].buckets, c.calls[k].sum_us);
}

static void write_http(struct http_server *server, struct xp_buf *b)
{
    struct http_stats st;
    http_server_stats(server, &st);
    counter(b, "xprofd_http_connections_total", st.connections, "Connections accepted.");
    gauge(b, "xprofd_http_open_connections", st.open_connections, "Connections open now.");
    counter(b, "xprofd_http_requests_total", st.requests, "Requests, pages and assets too.");
    counter(b, "xprofd_http_aborted_total", st.aborted, "Requests whose client left.");
    counter(b, "xprofd_http_condemned_total", st.condemned, "Connections cut for resets.");
    counter(b, "xprofd_http_slow_closed_total", st.slow_closed, "Connections that did not read.");
}

static void write_access(const struct access *access, struct xp_buf *b)
{
    struct access_counts c;
    access_counts(access, &c);
    counter(b, "xprofd_access_lines_dropped_total", c.lines_dropped,
            "Lines the log had no room for.");
    counter(b, "xprofd_spans_sent_total", c.spans_sent, "Spans that the collector took.");
    counter(b, "xprofd_spans_dropped_total", c.spans_dropped, "Spans lost, or not taken.");
}

static void write_links(struct links *links, struct xp_buf *b)
{
    struct linkstore_stats st;
    links_stats(links, &st);
    gauge(b, "xprofd_links_revoked", st.revoked, "Share links, and runs, known to be revoked.");
    head(b, "xprofd_links_looked_seconds", "gauge", "Since revocations were last listed.");
    xp_buf_fmt(b, "xprofd_links_looked_seconds %.3f\n", st.since_s);
}

static void write_captures(struct captures *captures, struct xp_buf *b)
{
    struct captures_stats st;
    captures_stats(captures, &st);
    gauge(b, "xprofd_captures_running", st.running, "Captures under way.");
    gauge(b, "xprofd_captures_continuous", st.continuous, "Targets that profile continuously.");
    counter(b, "xprofd_capture_bytes_total", st.bytes, "Bytes of profiles that were captured.");
    head(b, "xprofd_captures_total", "counter", "Captures, by what came of them.");
    for (int i = OUTCOME_SUCCEEDED; i < OUTCOME_COUNT; i++)
        if (st.captures[i])
            xp_buf_fmt(b, "xprofd_captures_total{outcome=\"%s\"} %" PRIu64 "\n",
                       outcome_text((enum outcome)i), st.captures[i]);
    head(b, "xprofd_capture_targets_total", "counter", "Targets of captures, the same.");
    for (int i = OUTCOME_SUCCEEDED; i < OUTCOME_COUNT; i++)
        if (st.targets[i])
            xp_buf_fmt(b, "xprofd_capture_targets_total{outcome=\"%s\"} %" PRIu64 "\n",
                       outcome_text((enum outcome)i), st.targets[i]);
}

static void write_shard(struct shard *shard, struct xp_buf *b)
{
    struct shard_stats st;
    shard_stats(shard, &st);
    gauge(b, "xprofd_budget_bytes", st.budget, "Memory for profiles.");
    gauge(b, "xprofd_profile_bytes", st.bytes, "Memory that profiles take.");
    gauge(b, "xprofd_parts", st.parts, "Profiles in memory.");
    gauge(b, "xprofd_parts_pinned", st.pinned, "Profiles in use.");
    counter(b, "xprofd_part_hits_total", st.hits, "Asks for a profile that was there.");
    counter(b, "xprofd_part_loads_total", st.loads, "Profiles loaded.");
    counter(b, "xprofd_part_evictions_total", st.evictions, "Profiles dropped for others.");
    counter(b, "xprofd_part_refused_total", st.refused, "Asks refused for want of memory.");
    counter(b, "xprofd_part_cancelled_total", st.cancelled, "Loads that nobody waited for.");
    counter(b, "xprofd_answers_known_total", st.known, "Answers kept from an earlier ask.");
    counter(b, "xprofd_answers_made_total", st.made, "Answers made.");
    counter(b, "xprofd_answers_shared_total", st.shared,
            "Asks that another's answer was for, too.");
    counter(b, "xprofd_hosts_mapped_total", st.maps, "Hosts that a tool looked at here.");
    counter(b, "xprofd_hosts_gathered_total", st.gathered, "Hosts that peers looked at for us.");
    counter(b, "xprofd_hosts_regained_total", st.regained, "Hosts of peers that could not.");
}

static void write_upstream(struct upstream *upstream, bool frontend, struct xp_buf *b)
{
    struct upstream_stats st;
    upstream_stats(upstream, &st);
    if (frontend)
        gauge(b, "xprofd_shards", st.members, "Shards that are there.");
    gauge(b, "xprofd_shards_ill", st.ill, "Shards that failed and were not heard of since.");
    counter(b, "xprofd_asks_total", st.asks, "Requests for shards.");
    counter(b, "xprofd_ask_retries_total", st.retries, "Asks made again of another shard.");
    counter(b, "xprofd_asks_failed_total", st.failed, "Requests that no shard answered.");
    counter(b, "xprofd_asks_second_total", st.seconds, "Late asks made of a second shard too.");
    counter(b, "xprofd_asks_second_won_total", st.won, "Those that the second one answered first.");
    if (!frontend)
        return;
    counter(b, "xprofd_hot_copies_total", st.copies, "Copies of hot profiles that were made.");
    counter(b, "xprofd_hot_asks_total", st.copied, "Requests that went to such a copy.");
}

static uint64_t open_files(void)
{
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

uint64_t metrics_resident_bytes(void)
{
    long pages = 0, in_memory = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%ld %ld", &pages, &in_memory) != 2)
        in_memory = 0;
    if (f)
        fclose(f);
    return (uint64_t)in_memory * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_process(const struct metrics *m, struct xp_buf *b)
{
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    head(b, "process_cpu_seconds_total", "counter", "User and system time.");
    xp_buf_fmt(b, "process_cpu_seconds_total %.6f\n",
               (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
                   (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
    gauge(b, "process_resident_memory_bytes", metrics_resident_bytes(), "Resident memory.");
    gauge(b, "process_open_fds", open_files(), "Open files.");
    gauge(b, "process_start_time_seconds", (uint64_t)m->started_s, "Since the epoch.");
}

void metrics_write(struct metrics *m, const struct metrics_sources *from, struct xp_buf *out)
{
    head(out, "xprofd_build_info", "gauge", "Version and role.");
    xp_buf_fmt(out, "xprofd_build_info{version=\"%s\",role=\"%s\"} 1\n", from->version, from->role);
    write_answers(m, out);
    write_durations(m, out);
    if (from->server)
        write_http(from->server, out);
    if (from->workers)
        gauge(out, "xprofd_queue_waiting", (uint64_t)xp_workers_waiting(from->workers),
              "Tasks that wait for a thread.");
    if (from->shard)
        write_shard(from->shard, out);
    if (from->upstream)
        write_upstream(from->upstream, true, out);
    if (from->peers)
        write_upstream(from->peers, false, out);
    if (from->access)
        write_access(from->access, out);
    if (from->captures && captures_have_targets(from->captures))
        write_captures(from->captures, out);
    if (from->links)
        write_links(from->links, out);
    write_store(out);
    write_process(m, out);
}
