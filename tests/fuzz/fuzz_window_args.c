/* tests/fuzz/fuzz_window_args.c - request arguments: whatever they say, a value in range or
 * XP_BAD_REQUEST with a sentence.
 *
 * Input: the text of one argument, given under every name at once.
 */
#include <stdlib.h>

#include "shard/args.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verdict(enum xp_status status, const struct xp_error *err)
{
    XP_ASSERT(status == XP_OK || (status == XP_BAD_REQUEST && err->text[0]));
}

static void check_numbers(const struct args *a)
{
    struct xp_error err = {0};
    int64_t i = 5;
    uint64_t u = 5;
    uint32_t px = 5;
    verdict(args_i64(a, "n", -100, 1000000, &i, &err), &err);
    XP_ASSERT(i >= -100 && i <= 1000000);
    verdict(args_u64(a, "n", 1000, &u, &err), &err);
    XP_ASSERT(u <= 1000);
    verdict(args_u32(a, "n", 1, 16384, &px, &err), &err);
    XP_ASSERT(px >= 1 && px <= 16384);
}

static void check_window(struct xp_span text)
{
    /* "t0&t1", or the same text for both. */
    const uint8_t *amp = text.n ? memchr(text.p, '&', text.n) : NULL;
    struct xp_span t0 = text, t1 = text;
    if (amp) {
        t0.n = (size_t)(amp - text.p);
        t1 = xp_span_of(amp + 1, text.n - t0.n - 1);
    }
    struct shard_arg v[] = {{xp_span_str("t0"), t0}, {xp_span_str("t1"), t1}};
    struct args a = {v, 2};
    struct xp_error err = {0};
    int64_t from = 0, to = 0;
    enum xp_status status = args_window(&a, &from, &to, &err);
    verdict(status, &err);
    XP_ASSERT(status != XP_OK || from < to || (from == 0 && to == 0));
}

static void check_rows(const struct args *a)
{
    struct xp_arena *arena = xp_arena_new(NULL);
    struct query_rows rows = {0};
    struct xp_error err = {0};
    XP_ASSERT(arena);
    enum xp_status status = args_rows(a, arena, &rows, &err);
    verdict(status, &err);
    if (status == XP_OK) {
        XP_ASSERT(rows.n <= ARGS_ROWS_MAX);
        for (size_t i = 1; i < rows.n; i++)
            XP_ASSERT(rows.lines[i] > rows.lines[i - 1]);
    }
    xp_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* of its own: a read past its end is seen */
    XP_ASSERT(copy);
    if (size)
        memcpy(copy, data, size);
    struct xp_span text = xp_span_of(copy, size);
    struct shard_arg v[] = {{xp_span_str("n"), text}, {xp_span_str("rows"), text}};
    struct args a = {v, 2};
    check_numbers(&a);
    check_rows(&a);
    check_window(text);
    free(copy);
    return 0;
}
