/* hlo_tool FILE [N]: decodes an HloProto N times, says what is in it and what it takes.
 * hlo_tool FILE short|long|meta: prints it in XLA's syntax.
 * hlo_tool FILE dot NODE WIDTH: draws what is around an instruction. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "shard/hlo/hlo_dot.h"
#include "shard/hlo/hlo_text.h"

static struct xp_span read_file(const char *path)
{
    struct xp_buf b;
    xp_buf_init(&b, HLO_BYTES_MAX);
    FILE *f = fopen(path, "rb");
    uint8_t *to;

    while (f && !feof(f) && !ferror(f) && (to = xp_buf_room(&b, 65536)))
        b.n += fread(to, 1, 65536, f);
    if (f)
        fclose(f);
    return xp_buf_all(&b);
}

static int print(const struct hlo_module *m, const char *how)
{
    struct xp_buf out;
    struct xp_error err = {0};
    xp_buf_init(&out, HLO_BYTES_MAX);
    struct hlo_text t = {
        .m = m,
        .opt = strcmp(how, "short") ? hlo_text_default : hlo_text_short,
        .scratch = xp_arena_new(NULL),
        .out = &out,
    };
    t.opt.large_constants = strcmp(how, "short") != 0;
    t.opt.metadata = strcmp(how, "meta") == 0;
    enum xp_status status = hlo_text_check(m, &err);
    if (status == XP_OK)
        status = hlo_text_module(&t, &err);
    if (status == XP_OK)
        fwrite(out.p, 1, out.n, stdout);
    else
        fprintf(stderr, "%s\n", err.text);
    xp_buf_fini(&out);
    xp_arena_free(t.scratch);
    return status != XP_OK;
}

static int draw(const struct hlo_module *m, const char *node, const char *width)
{
    struct xp_buf out;
    struct xp_error err = {0};
    struct hlo_dot_options opt = {.backend_config = true, .fusions = true};
    struct hlo_dot_out to = {.scratch = xp_arena_new(NULL), .out = &out};
    uint32_t instr = hlo_instr_by_name(m, xp_span_str(node));

    xp_buf_init(&out, HLO_BYTES_MAX);
    enum xp_status status = hlo_text_check(m, &err);
    if (status == XP_OK && instr == HLO_NONE)
        status = xp_fail(&err, XP_NOT_FOUND, 0, "no instruction %s", node);
    if (status == XP_OK)
        status = hlo_dot_around(m, instr, (uint32_t)strtoul(width, NULL, 10), &opt, &to, &err);
    if (status == XP_OK)
        fwrite(out.p, 1, out.n, stdout);
    else
        fprintf(stderr, "%s\n", err.text);
    xp_buf_fini(&out);
    xp_arena_free(to.scratch);
    return status != XP_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE [N]\n", argv[0]);
        return 2;
    }
    struct xp_span bytes = read_file(argv[1]);
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    struct hlo_module *m = NULL;
    struct xp_arena *a = NULL;
    struct xp_error err = {0};
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < (n ? n : 1); i++) {
        xp_arena_free(a);
        a = xp_arena_new(NULL);
        uint64_t t = xp_now_ns();
        if (hlo_decode(bytes, a, &m, &err) != XP_OK) {
            fprintf(stderr, "%s: %s at byte %llu\n", argv[1], err.text,
                    (unsigned long long)err.offset);
            return 1;
        }
        t = xp_now_ns() - t;
        best = t < best ? t : best;
    }
    if (argc > 2 && n == 0) {
        int rc = argc > 4 ? draw(m, argv[3], argv[4]) : print(m, argv[2]);
        xp_arena_free(a);
        free((void *)bytes.p);
        return rc;
    }
    printf("%s: %zu bytes, %u computations, %u instructions, %u shapes, %u buffers, %u events, "
           "%u dangling; %llu KiB, %llu us\n",
           argv[1], bytes.n, m->ncomps, m->ninstrs, m->nshapes, m->nbuffers, m->nheap_events,
           m->dangling, (unsigned long long)xp_arena_bytes(a) >> 10,
           (unsigned long long)best / 1000);
    xp_arena_free(a);
    free((void *)bytes.p);
    return 0;
}
