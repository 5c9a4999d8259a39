/* loadtest/xprof_tool - asks one of XProf's tools about profiles, without a server.
 *
 *     xprof_tool FILE[,FILE...] TOOL [name=value...]
 *
 * The answer goes to standard output, gzip undone; the exit code is the class of the HTTP
 * status: 0 for 200, 4 for 4xx, 5 for 5xx. TOOL may also be run_tools and module_list. With
 * -t before FILE: nothing but CPU times, of opening and of each of several answers; with -c: CSV.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/gzip.h"
#include "shard/out.h"
#include "shard/part_open.h"
#include "shard/tools/tool.h"

#define HOSTS_MAX 256
#define ARGS_MAX 64

static int fail(const struct xp_error *err)
{
    fprintf(stderr, "%d %s: %s (at %llu)\n", xp_status_http(err->status),
            xp_status_code(err->status), err->text, (unsigned long long)err->offset);
    return xp_status_http(err->status) / 100;
}

static enum xp_status answer(const char *tool, const struct tool_host *hosts, size_t n,
                             const struct tool_args *args, struct out *out, struct xp_error *err)
{
    struct xp_arena *scratch = xp_arena_new(NULL);
    const struct tool *t = tool_find(xp_span_str(tool));
    enum xp_status st;
    if (t)
        st = tool_run(t, hosts, n, args, scratch, out, err);
    else
        st = xp_fail(err, XP_NOT_FOUND, 0, "no such tool");
    xp_arena_free(scratch);
    return st;
}

static void print(const uint8_t *body, size_t n, bool encoded)
{
    if (!encoded) {
        fwrite(body, 1, n, stdout);
        return;
    }
    struct xp_gunzip *g = xp_gunzip_new(xp_span_of(body, n));
    static uint8_t piece[1 << 16];
    size_t got;
    while (xp_gunzip_read(g, piece, sizeof piece, &got) == XP_OK && got)
        fwrite(piece, 1, got, stdout);
    xp_gunzip_free(g);
}

static struct xp_span host_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strstr(name, ".xplane.pb");
    return xp_span_of(name, dot ? (size_t)(dot - name) : strlen(name));
}

int main(int argc, char **argv)
{
    static struct tool_host hosts[HOSTS_MAX];
    static struct tool_arg args[ARGS_MAX];
    struct tool_args list = {.args = args, .n = 0};
    struct xp_error err = {0};
    bool times = argc > 1 && strcmp(argv[1], "-t") == 0;
    list.csv = argc > 1 && strcmp(argv[1], "-c") == 0;
    if (times || list.csv)
        argc--, argv++;
    if (argc < 3) {
        fprintf(stderr, "usage: xprof_tool [-t | -c] FILE[,FILE...] TOOL [name=value...]\n");
        return 2;
    }
    uint64_t t0 = xp_thread_cpu_ns();
    size_t n = 0;
    struct part_file *files[HOSTS_MAX];
    for (char *rest = argv[1], *path; n < HOSTS_MAX && (path = strsep(&rest, ",")); n++) {
        if (part_open_file(path, NULL, NULL, &files[n], &err) != XP_OK)
            return fail(&err);
        hosts[n] = (struct tool_host){part_file_part(files[n]), host_of(path), (uint32_t)n};
    }
    for (int i = 3; i < argc && list.n < ARGS_MAX; i++) {
        char *eq = strchr(argv[i], '=');
        if (eq)
            args[list.n++] =
                (struct tool_arg){xp_span_of(argv[i], (size_t)(eq - argv[i])), xp_span_str(eq + 1)};
    }
    if (times)
        printf("open %.1f ms\n", (double)(xp_thread_cpu_ns() - t0) / 1e6);
    int failed = 0;
    for (int round = 0; round < (times ? 3 : 1) && !failed; round++) {
        struct out out;
        uint8_t *body;
        size_t bytes;
        bool encoded;
        t0 = xp_thread_cpu_ns();
        out_init(&out, NULL);
        if (answer(argv[2], hosts, n, &list, &out, &err) != XP_OK ||
            out_finish(&out, &body, &bytes, &encoded, &err) != XP_OK) {
            failed = fail(&err);
        } else {
            if (times)
                printf("answer %.1f ms, %zu bytes\n", (double)(xp_thread_cpu_ns() - t0) / 1e6,
                       bytes);
            else
                print(body, bytes, encoded);
            free(body);
        }
        out_fini(&out);
    }
    for (size_t i = 0; times && i < n; i++)
        printf("held %.1f MB of %.1f\n", (double)xp_arena_bytes(hosts[i].part->arena) / 1e6,
               (double)hosts[i].part->size / 1e6);
    for (size_t i = 0; i < n; i++)
        part_close(files[i]);
    return failed;
}
