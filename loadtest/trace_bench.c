/* loadtest/trace_bench.c - what windows of the trace viewer cost, without a server.
 *
 *     trace_bench FILE [windows [from [to]]]
 *
 * Asks trace_viewer@ for windows that were never asked before, each between 2^-from and 2^-to of
 * the trace (4 to 7, as loadtest/compare does), resolution 8000. Prints CPU time a window and that
 * of the first, bytes, what is held, and a checksum of all answers' texts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/clock.h"
#include "lib/base/gzip.h"
#include "loadtest/lib/xs.h"
#include "shard/out.h"
#include "shard/part_open.h"
#include "shard/tools/tool.h"

#define AGAIN 2 /* nothing of an answer is kept: the least of three counts */

struct bench {
    struct tool_host host;
    uint64_t cpu_ns, first_ns, bytes, plain;
    uint32_t crc;
};

static bool count_text(struct bench *b, const uint8_t *body, size_t n, bool encoded)
{
    static uint8_t piece[1 << 16];
    if (!encoded) {
        b->plain += n;
        b->crc = (uint32_t)crc32(b->crc, body, (uInt)n);
        return true;
    }
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)body, .avail_in = (uInt)n};
    if (inflateInit2(&z, 31) != Z_OK)
        return false;
    int rc;
    do {
        z.next_out = piece;
        z.avail_out = sizeof piece;
        rc = inflate(&z, Z_NO_FLUSH);
        size_t got = sizeof piece - z.avail_out;
        b->plain += got;
        b->crc = (uint32_t)crc32(b->crc, piece, (uInt)got);
    } while (rc == Z_OK);
    inflateEnd(&z);
    return rc == Z_STREAM_END && z.avail_in == 0;
}

/* One window; empty texts: the whole trace. Adds to *cpu_ns. */
static bool ask(struct bench *b, const char *from_ms, const char *to_ms, uint64_t *cpu_ns)
{
    struct tool_arg args[] = {{XP_SPAN_LIT("resolution"), XP_SPAN_LIT("8000")},
                              {XP_SPAN_LIT("start_time_ms"), xp_span_str(from_ms)},
                              {XP_SPAN_LIT("end_time_ms"), xp_span_str(to_ms)}};
    struct tool_args list = {.args = args, .n = *from_ms ? 3 : 1};
    struct xp_error err = {0};
    struct out out;
    uint8_t *body;
    size_t n;
    bool encoded;
    uint64_t t0 = xp_thread_cpu_ns();
    struct xp_arena *scratch = xp_arena_new(NULL);
    out_init(&out, NULL);
    bool ok = tool_run(tool_find(XP_SPAN_LIT("trace_viewer@")), &b->host, 1, &list, scratch, &out,
                       &err) == XP_OK;
    xp_arena_free(scratch);
    ok = ok && out_finish(&out, &body, &n, &encoded, &err) == XP_OK;
    if (ok) {
        *cpu_ns += xp_thread_cpu_ns() - t0;
        b->bytes += n;
        ok = count_text(b, body, n, encoded);
        free(body);
    }
    if (!ok)
        fprintf(stderr, "%s..%s: %s\n", from_ms, to_ms, err.status ? err.text : "no gzip");
    out_fini(&out);
    return ok;
}

static void windows(struct bench *b, int n, int from, int to)
{
    struct rng r = rng_for(1, 0, 0);
    const struct part *p = b->host.part;
    double lo = 0, hi = 0;
    for (uint32_t i = 0; i < p->nlines; i++) {
        const struct part_line *l = &p->lines[i];
        if (l->nevents && (hi == 0 || (double)l->begin_ps < lo))
            lo = (double)l->begin_ps;
        if (l->nevents && (double)l->end_ps > hi)
            hi = (double)l->end_ps;
    }
    for (int i = 0; i < n; i++) {
        char text[2][32];
        int zoom = from + (int)rng_below(&r, (uint32_t)(to - from) + 1);
        double width = (hi - lo) / (double)(1 << zoom) * (0.8 + rng_below(&r, 200) / 1000.0);
        double at = (double)(rng_next(&r) >> 11) / 9007199254740992.0;
        double begin = lo + (hi - lo - width) * at;
        snprintf(text[0], sizeof text[0], "%.9f", begin / 1e9);
        snprintf(text[1], sizeof text[1], "%.9f", (begin + width) / 1e9);
        struct bench again = *b;
        uint64_t best = 0;
        if (!ask(b, text[0], text[1], &best))
            return;
        if (i == 0)
            b->first_ns = best;
        for (int k = 0; k < AGAIN; k++, again = *b) {
            uint64_t ns = 0;
            if (ask(&again, text[0], text[1], &ns) && ns < best)
                best = ns;
        }
        b->cpu_ns += best;
    }
}

int main(int argc, char **argv)
{
    struct xp_error err = {0};
    struct part_file *f;
    int n = argc > 2 ? atoi(argv[2]) : 50, from = argc > 3 ? atoi(argv[3]) : 4;
    int to = argc > 4 ? atoi(argv[4]) : from > 7 ? from : 7;
    if (argc < 2 || part_open_file(argv[1], NULL, NULL, &f, &err) != XP_OK) {
        fprintf(stderr, "usage: trace_bench FILE [windows [from [to]]] %s\n", err.text);
        return 1;
    }
    struct bench whole = {.host = {part_file_part(f), XP_SPAN_LIT("host"), 0}}, b = whole;
    bool ok = ask(&whole, "", "", &whole.cpu_ns);
    printf("whole: %.1f ms CPU, %.1f kB, text %.1f kB, crc %08x; held %.1f MB\n",
           (double)whole.cpu_ns / 1e6, (double)whole.bytes / 1e3, (double)whole.plain / 1e3,
           whole.crc, (double)xp_arena_bytes(whole.host.part->arena) / 1e6);
    windows(&b, n, from, to);
    printf("window: %.3f ms CPU (first %.1f), %.1f kB, text %.1f kB, crc %08x; held %.1f MB\n",
           (double)b.cpu_ns / 1e6 / n, (double)b.first_ns / 1e6, (double)b.bytes / 1e3 / n,
           (double)b.plain / 1e3 / n, b.crc, (double)xp_arena_bytes(b.host.part->arena) / 1e6);
    part_close(f);
    return !ok;
}
