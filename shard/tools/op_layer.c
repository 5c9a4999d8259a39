#include "shard/tools/op_layer.h"

#include <strings.h>

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

struct xp_span op_layer_of(struct xp_span name)
{
    struct xp_span rest = name, numbered = {0}, plain = {0};
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
        struct xp_span after = rest, number = next_part(&after);
        if (word && number.n && digits_at_end(number) == number.n && after.n)
            return xp_span_of(s.p, (size_t)(number.p + number.n - s.p));
        if (word && !plain.n && s.n > 1)
            plain = after.n ? xp_span_of(s.p, (size_t)(number.p + number.n - s.p)) : s;
        if (digits && digits < s.n && !numbered.n)
            numbered = s;
    }
    return plain.n ? plain : numbered;
}

bool op_is_backward(struct xp_span name)
{
    return xp_span_has(name, XP_SPAN_LIT("transpose("));
}
