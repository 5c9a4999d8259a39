/* loadtest/lib/gen_hostile.c - profiles that try a reader: damaged, enormous, misleading. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadtest/lib/gen.h"

#define US INT64_C(1000000)

static uint64_t count_of(const struct gen_options *o, uint64_t otherwise)
{
    return o->events ? o->events : otherwise;
}

static void name(struct xp_buf *meta, int64_t id, const char *s)
{
    xs_event_meta(meta, id, xp_span_str(s), (struct xp_span){0}, (struct xp_span){0});
}

static void plain(struct xs *x, int64_t id, int64_t at, int64_t length)
{
    xs_event(x, id, at, length);
    xs_event_end(x);
}

/* A plane with one line. */
static void one_line(struct xs *x, void (*events)(struct xs *, const void *, int64_t),
                     const struct gen_options *o, struct xp_span meta)
{
    struct xs_line l = {1, "XLA Ops", 0, events, o, 0, false};
    xs_plane(x, 1, "/device:TPU:0", &l, 1, meta);
}

static void sound(struct xs *x, const struct gen_options *o)
{
    gen_profile(x, o, 0, gen_steps(o));
}

static uint64_t sound_size(const struct gen_options *o)
{
    struct xs count;
    xs_counter(&count);
    sound(&count, o);
    uint64_t n = xs_bytes(&count);
    xs_close(&count);
    return n;
}

static void truncated(struct xs *x, const struct gen_options *o)
{
    x->stop_at = sound_size(o) * 6 / 10;
    sound(x, o);
}

/* The first bytes stay whole: damage that begins after something could be read. */
static void bitflip(struct xs *x, const struct gen_options *o)
{
    uint64_t size = sound_size(o), at = size / 3;
    struct rng r = rng_for(o->seed, 1, 1);
    for (x->nflips = 0; x->nflips < XS_FLIPS_MAX; x->nflips++) {
        at += 1 + rng_below(&r, (uint32_t)(size / 100) + 1);
        x->flips[x->nflips] = at;
    }
    sound(x, o);
}

static void many_planes(struct xs *x, const struct gen_options *o)
{
    uint64_t n = count_of(o, 1000000);
    char s[48];
    for (uint64_t i = 0; i < n; i++) {
        snprintf(s, sizeof s, "/device:TPU:%llu", (unsigned long long)i);
        xs_plane(x, (int64_t)i, s, NULL, 0, (struct xp_span){0});
    }
}

/* Lines of one event are written without counting first: their length is known. */
static void many_lines(struct xs *x, const struct gen_options *o)
{
    uint64_t n = count_of(o, 1000000);
    struct xp_buf body, line, meta;
    xp_buf_init(&body, SIZE_MAX / 2);
    xp_buf_init(&line, 1 << 16);
    xp_buf_init(&meta, 1 << 16);
    xp_pb_put_u64(&body, 1, 1);
    xp_pb_put_bytes(&body, 2, xp_span_str("/host:CPU"));
    for (uint64_t i = 0; i < n; i++) {
        static const uint8_t event[] = {0x08, 1, 0x10, 100, 0x18, 50};
        line.n = 0;
        xp_pb_put_u64(&line, 1, i + 1);
        xp_pb_put_bytes(&line, 2, xp_span_str("thread"));
        xp_pb_put_bytes(&line, 4, xp_span_of(event, sizeof event));
        xp_pb_put_bytes(&body, 3, xp_buf_all(&line));
    }
    name(&meta, 1, "work");
    xp_buf_span(&body, xp_buf_all(&meta));
    xs_room(x);
    xs_put(x, 0x0a, body.n);
    xs_raw(x, xp_buf_all(&body));
    xp_buf_fini(&body);
    xp_buf_fini(&line);
    xp_buf_fini(&meta);
}

static void nested_events(struct xs *x, const void *ctx, int64_t arg)
{
    (void)ctx;
    (void)arg;
    for (int64_t i = 0; i < 1000; i++) {
        plain(x, i % 7 + 1, i * US, US * 9 / 10);
        plain(x, i % 5 + 8, i * US + US / 10, US / 2);
    }
}

static void no_metadata(struct xs *x, const struct gen_options *o)
{
    one_line(x, nested_events, o, (struct xp_span){0});
}

static void overflow_events(struct xs *x, const void *ctx, int64_t arg)
{
    static const int64_t t[] = {0,
                                1,
                                -1,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MAX - 1,
                                INT64_C(1) << 62,
                                INT64_C(1) << 31,
                                INT64_C(1) << 32,
                                (INT64_C(1) << 31) - 1};
    (void)ctx;
    (void)arg;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        for (size_t k = 0; k < sizeof t / sizeof t[0]; k++)
            plain(x, 1, t[i], t[k]);
    }
}

static void overflow(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 16);
    name(&meta, 1, "far away");
    struct xs_line l[] = {{1, "zero", 0, overflow_events, o, 0, false},
                          {2, "far", INT64_MAX / 1000, overflow_events, o, 0, false},
                          {3, "farthest", INT64_MAX, overflow_events, o, 0, false},
                          {4, "before", INT64_MIN, overflow_events, o, 0, false},
                          {5, "sound", 0, nested_events, o, 0, false}};
    xs_plane(x, 1, "/device:TPU:0", l, sizeof l / sizeof l[0], xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void twelve_names(struct xs *x, const struct gen_options *o, const struct xp_span *names,
                         size_t n)
{
    struct xp_buf meta, stats;
    xp_buf_init(&meta, 1 << 20);
    for (int64_t i = 1; i <= 12; i++) {
        struct xp_span s = names[(size_t)i % n];
        xp_buf_init(&stats, 1 << 20);
        xs_put_str(&stats, 5, 1, s);
        xs_put_str(&stats, 5, 2, s);
        xs_event_meta(&meta, i, s, i % 2 ? s : (struct xp_span){0}, xp_buf_all(&stats));
        xp_buf_fini(&stats);
    }
    xs_stat_meta(&meta, 1, names[0]);
    xs_stat_meta(&meta, 2, names[n - 1]);
    one_line(x, nested_events, o, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void html_names(struct xs *x, const struct gen_options *o)
{
    static const struct xp_span names[] = {
        {(const uint8_t *)"<script>alert(1)</script>", 25},
        {(const uint8_t *)"\"><img src=x onerror=alert(1)>", 30},
        {(const uint8_t *)"</script><b>&amp;&lt;", 21},
        {(const uint8_t *)"a\0b\r\n\t\x1b[31m\x7f", 12},
        {(const uint8_t *)"\xe2\x80\xa8line\xe2\x80\xa9separators", 21},
    };
    twelve_names(x, o, names, sizeof names / sizeof names[0]);
}

static void bad_utf8(struct xs *x, const struct gen_options *o)
{
    static const struct xp_span names[] = {
        {(const uint8_t *)"\xff\xfe", 2},         {(const uint8_t *)"cut \xe2\x82", 6},
        {(const uint8_t *)"\xc0\xaf long", 7},    {(const uint8_t *)"\xed\xa0\x80 half", 8},
        {(const uint8_t *)"\xf5\x80\x80\x80", 4},
    };
    twelve_names(x, o, names, sizeof names / sizeof names[0]);
}

static void disorder_events(struct xs *x, const void *ctx, int64_t arg)
{
    const struct gen_options *o = ctx;
    struct rng r = rng_for(o->seed, 2, 2);
    (void)arg;
    for (uint64_t i = 0, n = count_of(o, 20000); i < n; i++)
        plain(x, 1, (int64_t)rng_below(&r, 1000000) * 1000, (int64_t)rng_below(&r, 5000) * 1000);
}

static void disorder(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 16);
    name(&meta, 1, "somewhere");
    one_line(x, disorder_events, o, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

/* Each begins inside all before it and ends after them. */
static void overlap_events(struct xs *x, const void *ctx, int64_t arg)
{
    int64_t n = (int64_t)count_of(ctx, 5000);
    (void)arg;
    for (int64_t i = 0; i < n; i++)
        plain(x, 1, i * 1000, n * 1000);
}

/* Each lies inside the one before it. */
static void deep_events(struct xs *x, const void *ctx, int64_t arg)
{
    int64_t n = (int64_t)count_of(ctx, 5000);
    (void)arg;
    for (int64_t i = 0; i < n; i++)
        plain(x, 1, i * 1000, (2 * n - 2 * i) * 1000);
}

static void deep_overlap(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 16);
    name(&meta, 1, "stairs");
    struct xs_line l[] = {{1, "overlapping", 0, overlap_events, o, 0, false},
                          {2, "nested", 0, deep_events, o, 0, false}};
    xs_plane(x, 1, "/host:CPU", l, 2, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void huge_stat_events(struct xs *x, const void *ctx, int64_t arg)
{
    const struct gen_options *o = ctx;
    struct xp_buf stat, event;
    size_t n = o->size ? (size_t)o->size : (size_t)64 << 20;
    (void)arg;
    plain(x, 1, US, US);
    xp_buf_init(&stat, SIZE_MAX / 2);
    xp_buf_init(&event, SIZE_MAX / 2);
    uint8_t *text = malloc(n);
    if (!text)
        abort();
    memset(text, 'x', n);
    xp_pb_put_u64(&event, 1, 2);
    xp_pb_put_u64(&event, 2, 3 * (uint64_t)US);
    xp_pb_put_u64(&event, 3, (uint64_t)US);
    xs_put_str(&event, 4, 1, xp_span_of(text, n));
    xs_put_u64(&event, 4, 2, 7);
    xs_room(x);
    xs_put(x, 0x22, event.n);
    xs_raw(x, xp_buf_all(&event));
    x->events++;
    free(text);
    xp_buf_fini(&stat);
    xp_buf_fini(&event);
    plain(x, 1, 5 * US, US);
}

static void huge_stat(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 16);
    name(&meta, 1, "small");
    name(&meta, 2, "huge");
    xs_stat_meta(&meta, 1, xp_span_str("text"));
    xs_stat_meta(&meta, 2, xp_span_str("after"));
    one_line(x, huge_stat_events, o, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void empty(struct xs *x, const struct gen_options *o)
{
    (void)x;
    (void)o;
}

/* Names given twice (the later counts), planes and lines that share name and id. */
static void dup_metadata(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    char s[48];
    xp_buf_init(&meta, 1 << 20);
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 1; i <= 12; i++) {
            snprintf(s, sizeof s, "%s %lld", round ? "later" : "earlier", (long long)i);
            name(&meta, i, s);
        }
    }
    struct xs_line l[] = {{1, "XLA Ops", 0, nested_events, o, 0, false},
                          {1, "XLA Ops", 0, nested_events, o, 0, false}};
    for (int i = 0; i < 2; i++)
        xs_plane(x, 1, "/device:TPU:0", l, 2, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void wall_clock_mixed(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    char s[48];
    xp_buf_init(&meta, 1 << 20);
    for (int64_t i = 1; i <= 12; i++) {
        snprintf(s, sizeof s, "work %lld", (long long)i);
        name(&meta, i, s);
    }
    struct xs_line l[] = {{1, "near zero", 0, nested_events, o, 0, false},
                          {2, "wall clock", GEN_WALL_NS, nested_events, o, 0, false},
                          {3, "wall clock later", GEN_WALL_NS + 500000, nested_events, o, 0, false},
                          {4, "near zero later", 400000, nested_events, o, 0, false}};
    xs_plane(x, 1, "/host:CPU", l, sizeof l / sizeof l[0], xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static void late_timestamp(struct xs *x, const struct gen_options *o)
{
    struct xp_buf meta;
    xp_buf_init(&meta, 1 << 16);
    name(&meta, 1, "early");
    struct xs_line l[] = {{1, "late", 7000, nested_events, o, 0, true},
                          {2, "usual", 7000, nested_events, o, 0, false}};
    xs_plane(x, 1, "/device:TPU:0", l, 2, xp_buf_all(&meta));
    xp_buf_fini(&meta);
}

static const struct {
    const char *name;
    void (*write)(struct xs *x, const struct gen_options *o);
} kinds[] = {{"truncated", truncated},
             {"bitflip", bitflip},
             {"many-planes", many_planes},
             {"many-lines", many_lines},
             {"no-metadata", no_metadata},
             {"overflow", overflow},
             {"html-names", html_names},
             {"bad-utf8", bad_utf8},
             {"disorder", disorder},
             {"deep-overlap", deep_overlap},
             {"huge-stat", huge_stat},
             {"empty", empty},
             {"dup-metadata", dup_metadata},
             {"wall-clock-mixed", wall_clock_mixed},
             {"late-timestamp", late_timestamp}};
#define KINDS (sizeof kinds / sizeof kinds[0])

const char *const gen_hostile_kinds[] = {
    "truncated",    "bitflip",          "many-planes",    "many-lines",
    "no-metadata",  "overflow",         "html-names",     "bad-utf8",
    "disorder",     "deep-overlap",     "huge-stat",      "empty",
    "dup-metadata", "wall-clock-mixed", "late-timestamp", NULL};

bool gen_hostile(const char *path, const struct gen_options *o, bool *written)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].name, o->hostile) != 0)
            continue;
        struct xs x;
        *written = xs_open(&x, path, o->gz);
        if (*written) {
            kinds[i].write(&x, o);
            *written = xs_close(&x);
        }
        return true;
    }
    return false;
}
