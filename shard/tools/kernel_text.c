#include "shard/tools/kernel_text.h"

#include "shard/hlo/mlir_text.h"

#define TEXT_MAX ((size_t)32 << 20)

/* What is behind the first `what`; empty when there is none. */
static struct xp_span after(struct xp_span s, struct xp_span what)
{
    const uint8_t *at = s.n ? memmem(s.p, s.n, what.p, what.n) : NULL;
    size_t skip = at ? (size_t)(at - s.p) + what.n : s.n;
    return xp_span_of(s.p + skip, s.n - skip);
}

static int digit(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

/* Base64 in a JSON string, up to the quote or the first character that is none of it; a slash may
 * be written with a backslash. */
static enum xp_status body_of(struct xp_span s, struct xp_arena *scratch, struct xp_span *body,
                              struct xp_error *err)
{
    uint8_t *to = xp_arena_alloc(scratch, s.n + 1);
    uint32_t bits = 0, nbits = 0;
    size_t n = 0;
    if (!to)
        return xp_fail(err, XP_BUSY, 0, "no memory for a kernel");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] == '/')
            continue;
        int d = digit(s.p[i]);
        if (d < 0)
            break;
        bits = bits << 6 | (uint32_t)d;
        nbits += 6;
        if (nbits >= 8)
            to[n++] = (uint8_t)(bits >> (nbits -= 8));
    }
    *body = xp_span_of(to, n);
    return XP_OK;
}

enum xp_status kernel_text(struct xp_span config, bool as_xprof, struct xp_arena *scratch,
                           struct xp_buf *out, struct xp_error *err)
{
    const struct mlir_options opt = {.plain_memory = as_xprof};
    struct xp_span call = after(config, XP_SPAN_LIT("\"custom_call_config\""));
    struct xp_span s = after(call, XP_SPAN_LIT("\"body\"")), body;
    if (call.n == 0)
        return xp_fail(err, XP_NOT_FOUND, 0, "Custom call config not found");
    while (s.n && (s.p[0] == ':' || s.p[0] == ' '))
        s = xp_span_of(s.p + 1, s.n - 1);
    if (s.n == 0 || s.p[0] != '"')
        return xp_fail(err, XP_NOT_FOUND, 0, "the custom call has no program");
    XP_TRY(body_of(xp_span_of(s.p + 1, s.n - 1), scratch, &body, err));
    struct xp_buf text; /* limited: attributes may hold one another again and again */
    xp_buf_init(&text, TEXT_MAX);
    enum xp_status status = mlir_text(body, &opt, scratch, &text, err);
    if (status == XP_OK)
        xp_buf_span(out, xp_buf_all(&text));
    xp_buf_fini(&text);
    return status;
}
