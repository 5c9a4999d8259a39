/* tests/fuzz/fuzz_json.c - any bytes become well-formed JSON, and mended UTF-8 is UTF-8 that stays
 * as it is when it is mended again.
 */
#include <jansson.h>
#include <stdlib.h>

#include "lib/base/json_out.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOM(n) ((n)*8 + 64)

static void check_utf8(struct xp_span in, struct xp_buf *mended)
{
    struct xp_buf again;
    xp_buf_init(&again, ROOM(in.n));
    xp_utf8_append(mended, in);
    XP_ASSERT(!mended->failed && xp_utf8_valid(xp_buf_all(mended)));
    if (xp_utf8_valid(in))
        XP_ASSERT(xp_span_eq(in, xp_buf_all(mended)));
    xp_utf8_append(&again, xp_buf_all(mended));
    XP_ASSERT(xp_span_eq(xp_buf_all(&again), xp_buf_all(mended)));
    xp_buf_fini(&again);
}

/* What an independent parser reads is the mended text. */
static void check_string(struct xp_span in, const struct xp_buf *mended)
{
    struct xp_buf text;
    struct xp_json j;
    json_error_t why;
    xp_buf_init(&text, ROOM(in.n));
    xp_json_init(&j, &text);
    xp_json_arr(&j);
    xp_json_span(&j, in);
    xp_json_arr_end(&j);
    XP_ASSERT(!text.failed);
    XP_ASSERT(!memchr(text.p, '<', text.n));
    json_t *read = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, &why);
    XP_ASSERT(read);
    const json_t *s = json_array_get(read, 0);
    XP_ASSERT(json_is_string(s));
    XP_ASSERT(
        xp_span_eq(xp_span_of(json_string_value(s), json_string_length(s)), xp_buf_all(mended)));
    json_decref(read);
    xp_buf_fini(&text);
}

static void check_numbers(struct xp_span in)
{
    struct xp_buf text;
    struct xp_json j;
    uint64_t bits = 0;
    double d;
    memcpy(&bits, in.p, in.n < sizeof bits ? in.n : sizeof bits);
    memcpy(&d, &bits, sizeof d);
    xp_buf_init(&text, 512);
    xp_json_init(&j, &text);
    xp_json_arr(&j);
    xp_json_double(&j, d);
    xp_json_i64(&j, (int64_t)bits);
    xp_json_us_from_ps(&j, (int64_t)bits);
    xp_json_arr_end(&j);
    XP_ASSERT(!text.failed);
    json_t *read = json_loadb((const char *)text.p, text.n, 0, NULL);
    XP_ASSERT(read);
    const json_t *first = json_array_get(read, 0);
    if (json_is_real(first))
        XP_ASSERT(json_real_value(first) == d);
    XP_ASSERT(json_integer_value(json_array_get(read, 1)) == (int64_t)bits);
    json_decref(read);
    xp_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xp_span in = xp_span_of(data, size);
    struct xp_buf mended;
    if (!size)
        return 0;
    xp_buf_init(&mended, ROOM(size));
    check_utf8(in, &mended);
    check_string(in, &mended);
    check_numbers(in);
    xp_buf_fini(&mended);
    return 0;
}
