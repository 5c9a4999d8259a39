#include "shard/tools/kernel_name.h"

#include "lib/base/buf.h"

#define ANONYMOUS "(anonymous namespace)"

/* --- mangled: _ZN 2at 6native 4gemm I... or _Z 4gemm ... --- */

static bool digits(struct xp_span *s, size_t *n)
{
    size_t v = 0, i = 0;
    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9' && v <= KERNEL_NAME_MAX; i++)
        v = v * 10 + (size_t)(s->p[i] - '0');
    *s = xp_span_of(s->p + i, s->n - i);
    *n = v;
    return i > 0 && v > 0 && v <= s->n;
}

static bool mangled(struct xp_span s, struct xp_buf *out)
{
    bool nested = xp_span_starts(s, XP_SPAN_LIT("_ZN"));
    s = xp_span_of(s.p + (nested ? 3 : 2), s.n - (nested ? 3 : 2));
    while (nested && s.n && (*s.p == 'K' || *s.p == 'V' || *s.p == 'r' || *s.p == 'L'))
        s = xp_span_of(s.p + 1, s.n - 1);
    for (size_t n; s.n && *s.p >= '0' && *s.p <= '9';) {
        if (!digits(&s, &n))
            return false;
        struct xp_span part = xp_span_of(s.p, n);
        if (out->n)
            xp_buf_str(out, "::");
        xp_buf_span(out, xp_span_starts(part, XP_SPAN_LIT("_GLOBAL__N_")) ? XP_SPAN_LIT(ANONYMOUS)
                                                                          : part);
        s = xp_span_of(s.p + n, s.n - n);
        if (!nested)
            break;
    }
    return out->n > 0;
}

/* --- as people write it --- */

/* Of "Kernel2<inner, ...>" the inner name; empty: there is none. */
static struct xp_span inner_of(struct xp_span s)
{
    const uint8_t *open = memchr(s.p, '<', s.n);
    if (!open)
        return (struct xp_span){0};
    size_t n = 0, rest = s.n - (size_t)(open + 1 - s.p);
    while (n < rest && !memchr(",<>( ", open[1 + n], 5))
        n++;
    return xp_span_of(open + 1, n);
}

/* Outside of < > what stands after the last blank and before the parameters. */
static void written(struct xp_span s, struct xp_buf *out)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        struct xp_span rest = xp_span_of(s.p + i, s.n - i);
        if (!depth && xp_span_starts(rest, XP_SPAN_LIT(ANONYMOUS))) {
            xp_buf_str(out, ANONYMOUS);
            i += sizeof ANONYMOUS - 2;
            continue;
        }
        if (!depth && c == '(')
            return;
        if (!depth && c == ' ')
            out->n = 0;
        else if (c == '>')
            depth -= depth > 0;
        else if (c == '<')
            depth++;
        else if (!depth)
            xp_buf_byte(out, c);
    }
}

struct xp_span kernel_short_name(struct xp_span name, struct xp_bump *b)
{
    struct xp_buf out;
    struct xp_span s = name;
    if (!name.n || name.n > KERNEL_NAME_MAX)
        return name;
    xp_buf_init(&out, KERNEL_NAME_MAX);
    if (xp_span_starts(name, XP_SPAN_LIT("_Z"))) {
        if (!mangled(name, &out))
            out.n = 0;
    } else if (memchr(name.p, '<', name.n) || memchr(name.p, '(', name.n)) {
        written(name, &out);
    }
    if (xp_span_starts(xp_buf_all(&out), XP_SPAN_LIT("cutlass::Kernel")) && inner_of(name).n)
        s = inner_of(name);
    else if (out.n && !out.failed)
        s = xp_bump_span(b, xp_buf_all(&out));
    xp_buf_fini(&out);
    return s.n ? s : name;
}
