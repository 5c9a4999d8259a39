/* loadtest/decode_bench.c - how fast a profile becomes a part, beside what the machine can do.
 *
 *   decode_bench FILE [rounds]
 *
 * Prints, for the best of so many rounds: our load on one and on two threads (wall and CPU), a
 * plain wire walk that decodes every event and stores nothing, the decoder without a store,
 * reading the file, and memcpy; then bytes kept an event and resident memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/pb_wire.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/part_open.h"

static uint64_t cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000u;
}

/* From /proc/self/status, KiB. */
static long status_kib(const char *what)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, what, strlen(what)))
            kib = strtol(line + strlen(what), NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

struct took {
    double wall, cpu;
};

static struct took best(struct took a, struct took b)
{
    return (struct took){a.wall && a.wall < b.wall ? a.wall : b.wall,
                         a.cpu && a.cpu < b.cpu ? a.cpu : b.cpu};
}

#define TIME(out, code)                                                                            \
    do {                                                                                           \
        uint64_t wall_ = xp_now_ns(), cpu_ = cpu_ns();                                             \
        code;                                                                                      \
        struct took t_ = {(double)(xp_now_ns() - wall_) / 1e9, (double)(cpu_ns() - cpu_) / 1e9};   \
        out = best(out, t_);                                                                       \
    } while (0)

/* --- a plain walk --- */

static uint64_t walk_line(const uint8_t *p, const uint8_t *end, uint64_t *sum)
{
    uint64_t n = 0, tag, v;
    while (p < end) {
        p = xp_varint_read(p, end, &tag);
        if (!p || !(p = xp_varint_read(p, end, &v)))
            return n;
        if ((tag & 7) != 2)
            continue;
        const uint8_t *q = p;
        p += v;
        if (tag != 0x22)
            continue;
        n++;
        while (q < p) {
            q = xp_varint_read(q, p, &tag);
            if (!q || !(q = xp_varint_read(q, p, &v)))
                return n;
            if ((tag & 7) == 2)
                q += v;
            else
                *sum += v;
        }
    }
    return n;
}

static uint64_t walk_plane(const uint8_t *p, const uint8_t *end, uint64_t *sum)
{
    uint64_t n = 0, tag, v;
    while (p < end) {
        p = xp_varint_read(p, end, &tag);
        if (!p || !(p = xp_varint_read(p, end, &v)))
            return n;
        if ((tag & 7) != 2)
            continue;
        if (tag == 0x1a)
            n += walk_line(p, p + v, sum);
        p += v;
    }
    return n;
}

static uint64_t walk(struct xp_span in, uint64_t *sum)
{
    struct xp_pb r = xp_pb_open(in);
    struct xp_pb_field f;
    uint64_t n = 0;
    while (xp_pb_next(&r, &f))
        if (f.num == 1 && f.type == XP_PB_LEN)
            n += walk_plane(f.bytes.p, f.bytes.p + f.bytes.n, sum);
    return n;
}

/* --- the decoder alone --- */

static enum xp_status count_events(void *ctx, const struct xspace_event *ev, size_t n)
{
    uint64_t *sum = ctx;
    for (size_t i = 0; i < n; i++)
        *sum += (uint64_t)ev[i].offset_ps;
    return XP_OK;
}

static void decode_only(struct xp_span in, uint64_t *sum)
{
    static struct xspace_decoder d;
    static const struct xspace_sink sink = {.on_events = count_events};
    struct xp_error err;
    xspace_decoder_init(&d, &sink, sum, XSPACE_AT_SPACE, 0, in.n);
    while (in.n) {
        size_t n = in.n < 1 << 20 ? in.n : 1 << 20;
        if (xspace_decoder_push(&d, xp_span_of(in.p, n), &err) != XP_OK)
            break;
        in = xp_span_of(in.p + n, in.n - n);
    }
}

/* --- our load --- */

static uint64_t events_of(const struct part *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->nplanes; i++)
        n += p->planes[i].nevents;
    return n;
}

static void print(const char *what, struct took t, uint64_t bytes, uint64_t events)
{
    printf("%-22s wall %7.3f s  cpu %7.3f s  %6.2f GB/s  %6.1f ns/event\n", what, t.wall, t.cpu,
           (double)bytes / 1e9 / t.wall, t.cpu * 1e9 / (double)(events ? events : 1));
}

static struct took load(const char *path, struct xp_workers *w, struct part_file **f)
{
    struct took t = {0};
    struct xp_error err;
    enum xp_status st;
    TIME(t, st = part_open_file(path, w, NULL, f, &err));
    if (st != XP_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    return t;
}

static struct took load_rounds(const char *path, int threads, int rounds)
{
    struct took t = {0};
    for (int i = 0; i < rounds; i++) {
        struct part_file *f;
        struct xp_workers *w = threads > 1 ? xp_workers_new(threads, 16) : NULL;
        t = best(t, load(path, w, &f));
        part_close(f);
        if (w)
            xp_workers_free(w);
    }
    return t;
}

static void compare(const char *path, int rounds, uint64_t events)
{
    int fd = open(path, O_RDONLY);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0)
        exit(1);
    size_t n = (size_t)sb.st_size;
    uint8_t *in = malloc(n), *copy = malloc(n);
    struct took reading = {0}, copying = {0}, walking = {0}, decoding = {0};
    uint64_t sum = 0;
    for (int i = 0; i < rounds && in && copy; i++) {
        TIME(
            reading, for (size_t at = 0; at < n;) {
                ssize_t k = pread(fd, in + at, n - at < 1 << 20 ? n - at : 1 << 20, (off_t)at);
                if (k <= 0)
                    exit(1);
                at += (size_t)k;
            });
        TIME(copying, memcpy(copy, in, n));
        TIME(walking, sum += walk(xp_span_of(in, n), &sum));
        TIME(decoding, decode_only(xp_span_of(in, n), &sum));
    }
    print("decoder, no store", decoding, n, events);
    print("wire walk", walking, n, events);
    print("read", reading, n, events);
    print("memcpy", copying, n, events);
    fprintf(stderr, "(%llu)\n", (unsigned long long)sum);
    free(in);
    free(copy);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: decode_bench FILE [rounds]\n");
        return 2;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    long idle = status_kib("VmRSS:");
    struct part_file *f;
    struct took first = load(argv[1], NULL, &f);
    struct part *p = part_file_part(f);
    uint64_t events = events_of(p), kept = xp_arena_bytes(p->arena), bytes = p->size;
    long now = status_kib("VmRSS:") - idle, peak = status_kib("VmHWM:") - idle;
    printf("%s: %llu bytes, %llu events, %u planes, %u lines%s\n", argv[1],
           (unsigned long long)bytes, (unsigned long long)events, p->nplanes, p->nlines,
           p->partial ? ", partial" : "");
    printf("kept %.1f MB, %.2f B/event, %.3f x file; RSS above idle: now %.1f MB, peak %.1f MB "
           "(%.3f x file)\n",
           (double)kept / 1e6, (double)kept / (double)(events ? events : 1),
           (double)kept / (double)bytes, (double)now / 1e3, (double)peak / 1e3,
           (double)peak * 1024 / (double)bytes);
    part_close(f);
    print("load, first", first, bytes, events);
    print("load, 1 thread", load_rounds(argv[1], 1, rounds), bytes, events);
    print("load, 2 threads", load_rounds(argv[1], 2, rounds), bytes, events);
    compare(argv[1], rounds, events);
    return 0;
}
