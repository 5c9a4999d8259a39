/* loadtest/query_bench.c - what queries cost, without a server around them.
 *
 *     query_bench FILE [--windows N] [--px N] [--bytes N] [--zoom MAX] [--q QUERY] [--seed N]
 *
 * Loads one profile on this thread, then asks for N windows at random places and zooms (each
 * zoom from the whole profile down to 1/MAX equally likely in its logarithm), and some searches,
 * aggregates and event details. Prints p50, p99 and the mean of each in microseconds of this
 * thread's CPU, and the size of the answers.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "shard/part_open.h"
#include "shard/query/query.h"

struct options {
    const char *file, *q;
    uint32_t px, max_bytes;
    size_t windows;
    double zoom;
    uint64_t seed;
};

struct series {
    const char *name;
    double *us;
    size_t n;
    uint64_t bytes, most;
};

static uint64_t random64(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static double random01(uint64_t *s)
{
    return (double)(random64(s) >> 11) / 9007199254740992.0;
}

static int by_double(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static void print_series(struct series *s)
{
    double sum = 0;
    if (!s->n)
        return;
    for (size_t i = 0; i < s->n; i++)
        sum += s->us[i];
    qsort(s->us, s->n, sizeof *s->us, by_double);
    printf("%-22s n %5zu  p50 %9.0f us  p99 %9.0f us  mean %9.0f us  answers %7llu B, most %llu\n",
           s->name, s->n, s->us[s->n / 2], s->us[s->n * 99 / 100], sum / (double)s->n,
           (unsigned long long)(s->bytes / s->n), (unsigned long long)s->most);
    free(s->us);
}

/* --- one query, measured --- */

struct ask {
    const struct part *p;
    void *q;
};

typedef enum xp_status (*ask_fn)(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                 struct xp_error *err);

static enum xp_status ask_window(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                 struct xp_error *err)
{
    return query_window(a->p, a->q, scratch, out, err);
}

static enum xp_status ask_search(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                 struct xp_error *err)
{
    return query_search(a->p, a->q, scratch, out, err);
}

static enum xp_status ask_aggregate(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                    struct xp_error *err)
{
    return query_aggregate(a->p, a->q, scratch, out, err);
}

static enum xp_status ask_event(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                struct xp_error *err)
{
    return query_event(a->p, *(uint64_t *)a->q, scratch, out, err);
}

static enum xp_status ask_tracks(const struct ask *a, struct xp_arena *scratch, struct out *out,
                                 struct xp_error *err)
{
    struct query_tracks q = {.limit = 2000};
    return query_tracks(a->p, &q, scratch, out, err);
}

static void measure(struct series *s, ask_fn fn, const struct part *p, void *q)
{
    struct ask a = {p, q};
    struct xp_error err = {0};
    struct out out;
    uint8_t *body = NULL;
    size_t n = 0;
    bool encoded;
    uint64_t began = xp_thread_cpu_ns();
    struct xp_arena *scratch = xp_arena_new(NULL);
    out_init(&out, NULL);
    enum xp_status status = fn(&a, scratch, &out, &err);
    if (status == XP_OK)
        status = out_finish(&out, &body, &n, &encoded, &err);
    out_fini(&out);
    xp_arena_free(scratch);
    uint64_t spent = xp_thread_cpu_ns() - began;
    if (status != XP_OK)
        fprintf(stderr, "%s: %s\n", s->name, err.text);
    if (!s->us || !(s->n & (s->n - 1)))
        s->us = realloc(s->us, (s->n * 2 + 1) * sizeof *s->us);
    s->us[s->n++] = (double)spent / 1000;
    s->bytes += n;
    s->most = n > s->most ? n : s->most;
    free(body);
}

/* --- the series --- */

static void extent(const struct part *p, int64_t *t0, int64_t *t1)
{
    bool any = false;
    *t0 = 0;
    *t1 = 1;
    for (uint32_t i = 0; i < p->nlines; i++) {
        const struct part_line *l = &p->lines[i];
        if (!l->nevents)
            continue;
        *t0 = !any || l->begin_ps < *t0 ? l->begin_ps : *t0;
        *t1 = !any || l->end_ps > *t1 ? l->end_ps : *t1;
        any = true;
    }
}

static void windows(const struct part *p, const struct options *o)
{
    struct series whole = {.name = "window, whole"}, all = {.name = "windows, all zooms"};
    struct series by[12] = {0};
    char names[12][32];
    uint64_t rng = o->seed;
    int64_t t0, t1;
    struct query_window q = {.px = o->px, .max_bytes = o->max_bytes};
    extent(p, &t0, &t1);
    for (int i = 0; i < 20; i++)
        measure(&whole, ask_window, p, &q);
    for (size_t i = 0; i < o->windows; i++) {
        double log_zoom = random01(&rng) * log(o->zoom);
        double width = (double)(t1 - t0) / exp(log_zoom);
        q.t0_ps = t0 + (int64_t)(random01(&rng) * ((double)(t1 - t0) - width));
        q.t1_ps = q.t0_ps + (int64_t)width + 1;
        int b = (int)(log_zoom / log(4));
        b = b < 11 ? b : 11;
        snprintf(names[b], sizeof names[b], "  zoom %.0f to %.0f", pow(4, b), pow(4, b + 1));
        by[b].name = names[b];
        uint64_t bytes = all.bytes;
        measure(&all, ask_window, p, &q);
        by[b].us = realloc(by[b].us, (by[b].n + 1) * sizeof(double));
        by[b].us[by[b].n++] = all.us[all.n - 1];
        by[b].bytes += all.bytes - bytes;
        by[b].most = all.bytes - bytes > by[b].most ? all.bytes - bytes : by[b].most;
    }
    print_series(&whole);
    print_series(&all);
    for (int b = 0; b < 12; b++)
        print_series(&by[b]);
}

static void searches(const struct part *p, const struct options *o)
{
    static const char *const usual[] = {"fusion", "all-reduce", "zzz-none", "dur>1ms", "e", NULL};
    const char *one[] = {o->q, NULL};
    for (const char *const *text = o->q ? one : usual; *text; text++) {
        struct series s = {.name = *text};
        struct query_search q = {.q = xp_span_str(*text), .limit = 100, .dir = 1};
        q.after_ps = INT64_MIN;
        for (int i = 0; i < 10; i++) {
            measure(&s, ask_search, p, &q);
            q.after_ps = (int64_t)i * 1000000000;
        }
        print_series(&s);
    }
}

static void aggregates(const struct part *p, const struct options *o)
{
    struct series whole = {.name = "aggregate, whole"}, some = {.name = "aggregate, a tenth"};
    struct query_aggregate q = {.limit = 100};
    uint64_t rng = o->seed;
    int64_t t0, t1;
    extent(p, &t0, &t1);
    for (int i = 0; i < 5; i++)
        measure(&whole, ask_aggregate, p, &q);
    for (int i = 0; i < 20; i++) {
        q.t0_ps = t0 + (int64_t)(random01(&rng) * 0.9 * (double)(t1 - t0));
        q.t1_ps = q.t0_ps + (t1 - t0) / 10 + 1;
        measure(&some, ask_aggregate, p, &q);
    }
    print_series(&whole);
    print_series(&some);
}

static void events(const struct part *p, const struct options *o)
{
    struct series s = {.name = "event"}, t = {.name = "tracks"};
    uint64_t rng = o->seed;
    for (int i = 0; i < 100 && p->nlines; i++) {
        const struct part_line *l = &p->lines[random64(&rng) % p->nlines];
        if (!l->nlanes)
            continue;
        const struct lane *lane = l->lanes[random64(&rng) % l->nlanes];
        struct lane_cursor c;
        struct lane_event ev;
        lane_seek_ord(&c, lane, random64(&rng) % lane_count(lane));
        if (lane_next(&c, &ev))
            measure(&s, ask_event, p, &ev.at);
    }
    for (int i = 0; i < 10; i++)
        measure(&t, ask_tracks, p, NULL);
    print_series(&s);
    print_series(&t);
}

/* --- loading --- */

static struct part_file *load_file(const char *path)
{
    struct xp_error err;
    struct part_file *f;
    uint64_t began = xp_thread_cpu_ns(), events = 0, lanes = 0;
    if (part_open_file(path, NULL, NULL, &f, &err) != XP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return NULL;
    }
    const struct part *p = part_file_part(f);
    for (uint32_t i = 0; i < p->nlines; i++) {
        events += p->lines[i].nevents;
        lanes += p->lines[i].nlanes;
    }
    printf("loaded %llu events, %u planes, %u lines, %llu lanes, %.0f MB kept, %.2f CPU s\n",
           (unsigned long long)events, p->nplanes, p->nlines, (unsigned long long)lanes,
           (double)xp_arena_bytes(p->arena) / 1e6, (double)(xp_thread_cpu_ns() - began) / 1e9);
    return f;
}

static bool parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"windows", 1, NULL, 'n'}, {"px", 1, NULL, 'p'},
                                          {"bytes", 1, NULL, 'b'},   {"zoom", 1, NULL, 'z'},
                                          {"q", 1, NULL, 'q'},       {"seed", 1, NULL, 's'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct options){.px = 1500, .windows = 500, .zoom = 1e6, .seed = 1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 'n')
            o->windows = strtoul(optarg, NULL, 10);
        else if (c == 'p')
            o->px = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'b')
            o->max_bytes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'z')
            o->zoom = strtod(optarg, NULL);
        else if (c == 'q')
            o->q = optarg;
        else if (c == 's')
            o->seed = strtoul(optarg, NULL, 10) | 1;
        else
            return false;
    }
    o->file = argv[optind];
    return o->file && !argv[optind + 1];
}

int main(int argc, char **argv)
{
    struct options o;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: query_bench FILE [--windows N] [--px N] [--bytes N] [--zoom MAX] "
                        "[--q QUERY] [--seed N]\n");
        return 2;
    }
    struct part_file *f = load_file(o.file);
    if (!f)
        return 1;
    const struct part *p = part_file_part(f);
    windows(p, &o);
    events(p, &o);
    searches(p, &o);
    aggregates(p, &o);
    part_close(f);
    return 0;
}
