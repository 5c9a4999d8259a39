#include "shard/tools/op_layer.h"

#include <strings.h>

#include "shard/derive/framework_op.h"

/* The next part of a path; *rest is what follows. Slashes within parentheses are the part's. */
static struct xp_span next_part(struct xp_span *rest)
{
    size_t i = 0;
    int round = 0;
    for (; i < rest->n && (rest->p[i] != '/' || round > 0); i++)
        round += (rest->p[i] == '(') - (rest->p[i] == ')');
    struct xp_span part = xp_span_of(rest->p, i);
    *rest = i < rest->n ? xp_span_of(rest->p + i + 1, rest->n - i - 1) : (struct xp_span){0};
    return part;
}

/* transpose(jvp(layer_1)) -> layer_1; nothing of jit(main) and its like. */
static struct xp_span unwrapped(struct xp_span s)
{
    const uint8_t *open;
    if (xp_span_starts(s, XP_SPAN_LIT("jit(")) || xp_span_starts(s, XP_SPAN_LIT("pjit(")) ||
        xp_span_starts(s, XP_SPAN_LIT("pmap(")))
        return (struct xp_span){0};
    while (s.n && s.p[s.n - 1] == ')' && (open = memchr(s.p, '(', s.n)))
        s = xp_span_of(open + 1, (size_t)(s.p + s.n - open) - 2);
    return s;
}

static size_t digits_at_end(struct xp_span s)
{
    size_t n = 0;
    while (n < s.n && s.p[s.n - 1 - n] >= '0' && s.p[s.n - 1 - n] <= '9')
        n++;
    return n;
}

/* layer, layers_, decoder_block, h (as GPT-2 calls its blocks) ... */
static bool is_layer_word(struct xp_span s)
{
    static const char *const words[] = {"layer", "layers", "block", "blocks"};
    while (s.n && (s.p[s.n - 1] == '_' || s.p[s.n - 1] == '.' || s.p[s.n - 1] == '-'))
        s.n--;
    if (s.n == 1 && *s.p == 'h')
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (s.n >= n && strncasecmp((const char *)s.p + s.n - n, words[i], n) == 0)
            return true;
    }
    return false;
}

/* How a program goes on there, and no part of the model. */
static bool is_control(struct xp_span s)
{
    static const char *const words[] = {
        "while",       "body",       "cond",  "scan",
        "closed_call", "checkpoint", "remat", "rematted_computation"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (xp_span_eq(s, xp_span_str(words[i])))
            return true;
    return s.n == 0;
}

/* What of the model is next on the path; the last part is the operation. */
static struct xp_span next_scope(struct xp_span rest)
{
    while (rest.n) {
        struct xp_span s = unwrapped(next_part(&rest));
        if (rest.n && !is_control(s))
            return s;
    }
    return (struct xp_span){0};
}

/* "layers/3"; where they are apart in the name it is made, and without memory `s` has to do. */
static struct xp_span joined(struct xp_span s, struct xp_span next, struct xp_arena *a)
{
    if (!next.n)
        return s;
    if (next.p == s.p + s.n + 1 && s.p[s.n] == '/')
        return xp_span_of(s.p, s.n + 1 + next.n);
    uint8_t *to = xp_arena_alloc(a, s.n + 1 + next.n);
    if (!to)
        return s;
    memcpy(to, s.p, s.n);
    to[s.n] = '/';
    memcpy(to + s.n + 1, next.p, next.n);
    return xp_span_of(to, s.n + 1 + next.n);
}

struct xp_span op_layer_of(struct xp_span name, struct xp_arena *a)
{
    struct xp_span rest = name, numbered = {0}, plain = {0}, after_plain = {0};
    while (rest.n) {
        if (*rest.p == '(') { /* names of several ops, put together: the first one */
            rest = xp_span_of(rest.p + 1, rest.n - 1);
            continue;
        }
        struct xp_span s = unwrapped(next_part(&rest));
        size_t digits = digits_at_end(s);
        if (!rest.n) /* the operation */
            break;
        if (!s.n)
            continue;
        bool word = is_layer_word(xp_span_of(s.p, s.n - digits));
        if (word && digits)
            return s;
        struct xp_span next = word ? next_scope(rest) : (struct xp_span){0};
        if (next.n && digits_at_end(next) == next.n)
            return joined(s, next, a);
        if (word && !plain.n && s.n > 1) {
            plain = s;
            after_plain = next;
        }
        if (digits && digits < s.n && !numbered.n)
            numbered = s;
    }
    return plain.n ? joined(plain, after_plain, a) : numbered;
}

/* transpose(jvp(...)) of JAX, within other transformations, too; but not conv_transpose(...). */
static bool is_transposed(struct xp_span name)
{
    struct xp_span word = XP_SPAN_LIT("transpose(");
    for (size_t i = 0; i + word.n <= name.n; i++)
        if (name.p[i] == 't' && (i == 0 || name.p[i - 1] == '/' || name.p[i - 1] == '(') &&
            xp_span_starts(xp_span_of(name.p + i, name.n - i), word))
            return true;
    return false;
}

bool op_is_backward(struct xp_span name)
{
    struct framework_op op = framework_op_parse(name);
    /* Compilers may leave the type away. */
    return is_transposed(name) ||
           framework_is_gradient(op.name, op.type.n ? op.type : XP_SPAN_LIT("Op"));
}
