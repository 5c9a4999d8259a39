#include "shard/tools/kernel_name.h"

#include <string.h>

#include "lib/base/buf.h"
#include "shard/tools/demangle.h"

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

/* Up to the bracket that ends what begins at i; s.n: none does. */
static size_t closing(struct xp_span s, size_t i, char open, char close)
{
    int depth = 0;
    for (; i < s.n; i++) {
        depth += (s.p[i] == (uint8_t)open) - (s.p[i] == (uint8_t)close);
        if (!depth)
            return i;
    }
    return s.n;
}

/* How long the sign of an operator is. */
static size_t sign_of(struct xp_span s)
{
    static const char *const signs[] = {"()", "[]", "<<=", ">>=", "<=>", "->*", "<<", ">>",
                                        "<=", ">=", "->",  "<",   ">",   "-",   " "};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (xp_span_starts(s, xp_span_str(signs[i])))
            return strlen(signs[i]);
    return 0;
}

/* Takes what is told whole, brackets and all; how many bytes, 0: it is nothing of the kind. */
static size_t special(struct xp_span s, const struct xp_buf *before, struct xp_buf *out)
{
    bool word = before->n && before->p[before->n - 1] != ':';
    size_t n;
    if (xp_span_starts(s, XP_SPAN_LIT(ANONYMOUS))) {
        xp_buf_str(out, ANONYMOUS);
        return sizeof ANONYMOUS - 1;
    }
    if (!word && xp_span_starts(s, XP_SPAN_LIT("operator"))) {
        n = 8 + sign_of(xp_span_of(s.p + 8, s.n - 8));
        xp_buf_add(out, s.p, n);
        return n;
    }
    if (xp_span_starts(s, XP_SPAN_LIT("{lambda("))) {
        size_t round = closing(s, 7, '(', ')'), end = closing(s, 0, '{', '}');
        if (end == s.n || round > end)
            return 0;
        xp_buf_str(out, "{lambda");
        xp_buf_add(out, s.p + round + 1, end - round);
        return end + 1;
    }
    return 0;
}

/* Behind the parameters of the function that something is local to; s.n: nothing is. */
static size_t local_to(struct xp_span s, size_t i)
{
    size_t end = closing(s, i, '(', ')');
    struct xp_span rest = xp_span_of(s.p + end, s.n - end);
    if (xp_span_starts(rest, XP_SPAN_LIT(") const::")))
        return end + 7;
    return xp_span_starts(rest, XP_SPAN_LIT(")::")) ? end + 1 : s.n;
}

/* Outside of < > what stands after the last blank and before the parameters. */
static void written(struct xp_span s, struct xp_buf *out)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        size_t n = depth ? 0 : special(xp_span_of(s.p + i, s.n - i), out, out);
        if (n) {
            i += n - 1;
        } else if (!depth && c == '(') {
            if ((i = local_to(s, i)) == s.n)
                return;
            i--;
        } else if (!depth && c == ' ') {
            bool template = i + 1 < s.n && s.p[i + 1] == '<'; /* operator< <int> */
            out->n = template ? out->n : 0;
        } else if (c == '>') {
            depth -= depth > 0;
        } else if (c == '<') {
            depth++;
        } else if (!depth) {
            xp_buf_byte(out, c);
        }
    }
}

/* --- kernels that are but the entry to what their template argument is called --- */

static bool is_entry(struct xp_span name)
{
    static const char *const entries[] = {"cutlass::Kernel", "cutlass::Kernel2",
                                          "cutlass::device_kernel", "ck_tile::kentry",
                                          "thrust::cuda_cub::core::_kernel_agent"};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (xp_span_eq(name, xp_span_str(entries[i])))
            return true;
    return false;
}

/* Of "Kernel2<int, inner<...>, ...>" the first argument with arguments of its own, or else the
 * first; empty: there is none. */
static struct xp_span inner_of(struct xp_span s)
{
    struct xp_span first = {0};
    size_t i, from, end;
    int depth = 0;
    for (i = 0; i < s.n && s.p[i] != '<'; i++)
        ;
    end = closing(s, i, '<', '>');
    bool nested = false;
    for (from = ++i; i <= end && i <= s.n; i++) {
        uint8_t c = i < end ? s.p[i] : ',';
        nested |= c == '<';
        depth += (c == '<' || c == '(') - (c == '>' || c == ')');
        if (c != ',' || depth > 0)
            continue;
        struct xp_span one = xp_span_of(s.p + from, i - from);
        while (one.n && *one.p == ' ')
            one = xp_span_of(one.p + 1, one.n - 1);
        while (one.n && one.p[one.n - 1] == ' ')
            one.n--;
        if (nested)
            return one;
        first = first.n ? first : one;
        from = i + 1;
    }
    return first;
}

/* --- both --- */

static struct xp_span without(struct xp_span s, struct xp_span end)
{
    return xp_span_ends(s, end) && s.n > end.n ? xp_span_of(s.p, s.n - end.n) : s;
}

static void shorten(struct xp_span text, struct xp_buf *out)
{
    const struct xp_span clone = XP_SPAN_LIT(" [clone .kd]"); /* a kernel's descriptor, on AMD's */
    text = without(text, clone);
    written(text, out);
    if (!is_entry(xp_buf_all(out)))
        return;
    struct xp_span inner = inner_of(text);
    if (!inner.n)
        return;
    out->n = 0;
    written(inner, out);
}

struct xp_span kernel_short_name(struct xp_span name, struct xp_bump *b)
{
    struct xp_buf out, text;
    struct xp_span s = {0};
    if (!name.n || name.n > KERNEL_NAME_MAX)
        return name;
    xp_buf_init(&out, KERNEL_NAME_MAX);
    xp_buf_init(&text, KERNEL_NAME_MAX);
    if (!xp_span_starts(name, XP_SPAN_LIT("_Z"))) {
        shorten(name, &out);
    } else if (demangle(name, &text)) {
        shorten(xp_buf_all(&text), &out);
    } else if (!mangled(name, &out)) {
        out.n = 0;
    }
    if (out.n && !out.failed) {
        s = without(xp_buf_all(&out), XP_SPAN_LIT(".kd"));
        s = xp_span_eq(s, name) ? name : xp_bump_span(b, s);
    }
    xp_buf_fini(&out);
    xp_buf_fini(&text);
    return s.n ? s : name;
}

struct xp_span kernel_full_name(struct xp_span name, struct xp_bump *b)
{
    struct xp_buf text;
    struct xp_span s = name;
    xp_buf_init(&text, KERNEL_NAME_MAX);
    if (name.n <= KERNEL_NAME_MAX && demangle(name, &text))
        s = xp_bump_span(b, xp_buf_all(&text));
    xp_buf_fini(&text);
    return s.n ? s : name;
}
