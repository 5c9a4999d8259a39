#include "shard/tools/op_words.h"

#include <stdio.h>
#include <stdlib.h>

#define DIMENSIONS 8

static struct xp_span skip(struct xp_span s, size_t n)
{
    return n < s.n ? xp_span_of(s.p + n, s.n - n) : (struct xp_span){0};
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* A number at the begin of *s, which moves behind it. */
static bool number(struct xp_span *s, int64_t *v)
{
    size_t n = 0;
    *v = 0;
    while (n < s->n && is_digit(s->p[n]))
        if (__builtin_mul_overflow(*v, INT64_C(10), v) ||
            __builtin_add_overflow(*v, (int64_t)(s->p[n++] - '0'), v))
            return false;
    *s = skip(*s, n);
    return n > 0;
}

static bool take(struct xp_span *s, char c)
{
    if (!s->n || s->p[0] != (uint8_t)c)
        return false;
    *s = skip(*s, 1);
    return true;
}

/* What follows a word, up to the comma that is in no bracket. */
static struct xp_span attribute(struct xp_span s, struct xp_span word)
{
    const uint8_t *at = s.n ? memmem(s.p, s.n, word.p, word.n) : NULL;
    if (!at)
        return (struct xp_span){0};
    struct xp_span v = skip(s, (size_t)(at - s.p) + word.n);
    size_t depth = 0, n = 0;
    for (; n < v.n; n++) {
        uint8_t c = v.p[n];
        if (c == '{' || c == '[' || c == '(')
            depth++;
        else if ((c == '}' || c == ']' || c == ')') && depth)
            depth--;
        else if (!depth && (c == ',' || c == ' ' || c == '}'))
            break;
    }
    return xp_span_of(v.p, n);
}

/* --- shapes --- */

static uint64_t bits_of(struct xp_span type)
{
    static const struct {
        const char *name;
        uint64_t bits;
    } odd[] = {{"pred", 8}, {"token", 0}, {"opaque", 0}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (xp_span_eq(type, xp_span_str(odd[i].name)))
            return odd[i].bits;
    /* The first number is the width: bf16, f8e4m3fn, s32, c64. */
    size_t n = 0;
    while (n < type.n && !is_digit(type.p[n]))
        n++;
    int64_t bits;
    struct xp_span rest = skip(type, n);
    return number(&rest, &bits) && bits <= 128 ? (uint64_t)bits : 0;
}

/* One array at the begin of *s: "bf16[4,8]{...}". False: there is none. */
static bool array(struct xp_span *s, uint64_t *bytes)
{
    size_t n = 0;
    while (n < s->n && s->p[n] != '[' && s->p[n] != ' ' && s->p[n] != '(')
        n++;
    if (!n || n == s->n || s->p[n] != '[')
        return false;
    uint64_t bits = bits_of(xp_span_of(s->p, n)), all = bits;
    *s = skip(*s, n + 1);
    int64_t d;
    do {
        (void)take(s, '<'); /* a bound, not a size */
        (void)take(s, '=');
        if (number(s, &d) && __builtin_mul_overflow(all, (uint64_t)d, &all))
            all = 0;
    } while (take(s, ','));
    if (!take(s, ']'))
        return false;
    size_t depth = 0, k = 0;
    for (; k < s->n && (depth || s->p[k] == '{'); k++)
        depth += s->p[k] == '{' ? 1 : 0, depth -= s->p[k] == '}' ? 1 : 0;
    *s = skip(*s, k);
    *bytes = all / 8 + (all % 8 != 0);
    return true;
}

/* The result's shape at the begin of *s, which moves behind it. */
static void shape(struct xp_span *s, uint64_t *first, uint64_t *all)
{
    uint64_t one = 0;
    *first = *all = 0;
    bool tuple = take(s, '('), any = false;
    do {
        while (take(s, ' '))
            ;
        if (!array(s, &one))
            break;
        if (!any)
            *first = one;
        any = true;
        if (__builtin_add_overflow(*all, one, all))
            *all = 0;
    } while (tuple && take(s, ','));
    if (tuple) {
        const uint8_t *end = s->n ? memmem(s->p, s->n, ") ", 2) : NULL;
        *s = end ? skip(*s, (size_t)(end - s->p) + 1) : (struct xp_span){0};
    }
}

/* --- the text --- */

static struct xp_span name_at(struct xp_span s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] != ' ' && s.p[n] != ',' && s.p[n] != ')')
        n++;
    return xp_span_of(s.p, n);
}

/* The last operand of a -done is its start. */
static struct xp_span operand_of(struct xp_span s)
{
    const uint8_t *at = s.n ? memchr(s.p, '%', s.n) : NULL;
    return at ? name_at(skip(s, (size_t)(at - s.p) + 1)) : (struct xp_span){0};
}

struct op_words op_words_read(struct xp_span text)
{
    struct op_words w = {.channel = -1};
    uint64_t first, all;
    const uint8_t *equals = text.n ? memmem(text.p, text.n, " = ", 3) : NULL;
    struct xp_span s = equals ? skip(text, (size_t)(equals - text.p) + 3) : (struct xp_span){0};
    shape(&s, &first, &all);
    while (take(&s, ' '))
        ;
    const uint8_t *open = s.n ? memchr(s.p, '(', s.n) : NULL;
    if (!open)
        return w;
    w.opcode = xp_span_of(s.p, (size_t)(open - s.p));
    s = skip(s, w.opcode.n);
    if (xp_span_ends(w.opcode, XP_SPAN_LIT("-done")))
        w.operand = operand_of(s);
    w.groups = attribute(s, XP_SPAN_LIT(", replica_groups="));
    w.pairs = attribute(s, XP_SPAN_LIT("source_target_pairs="));
    if (w.pairs.n && w.pairs.p[0] == '"') /* of a send that came from a permute */
        w.pairs = skip(w.pairs, 1);
    struct xp_span id = attribute(s, XP_SPAN_LIT(", channel_id="));
    if (!number(&id, &w.channel))
        w.channel = -1;
    bool sent = xp_span_ends(w.opcode, XP_SPAN_LIT("-start")) ||
                xp_span_eq(w.opcode, XP_SPAN_LIT("send")) ||
                xp_span_eq(w.opcode, XP_SPAN_LIT("recv"));
    w.bytes = sent ? first : all;
    return w;
}

/* --- groups --- */

struct label {
    char *to;
    size_t cap, n;
    int64_t base, members;
    bool full;
};

static void add_member(struct label *l, int64_t member)
{
    char one[24];
    const char *comma = l->members++ ? "," : "";
    if (l->full)
        return;
    long long which = l->base + member;
    int n = snprintf(one, sizeof one, "%s%lld", comma, which);
    if (l->n + (size_t)n + 24 > l->cap) { /* room for what says how many */
        l->full = true;
        return;
    }
    memcpy(l->to + l->n, one, (size_t)n + 1);
    l->n += (size_t)n;
}

static size_t end_label(struct label *l)
{
    if (l->full)
        l->n +=
            (size_t)snprintf(l->to + l->n, l->cap - l->n, ",... of %lld", (long long)l->members);
    return l->n;
}

/* {{0,1},{2,3}} */
static size_t listed_group(struct xp_span s, int64_t member, int64_t base, char *to, size_t cap)
{
    if (!take(&s, '{'))
        return 0;
    while (take(&s, '{')) {
        struct label l = {to, cap, 0, base, 0, false};
        bool mine = false;
        int64_t v;
        while (number(&s, &v)) {
            mine |= v == member;
            add_member(&l, v);
            if (!take(&s, ','))
                break;
        }
        if (!take(&s, '}'))
            return 0;
        if (mine)
            return end_label(&l);
        (void)take(&s, ',');
    }
    return 0;
}

struct iota {
    int64_t groups, size;     /* [groups,size]<= */
    int64_t dims[DIMENSIONS]; /* ... [dims] */
    int64_t perm[DIMENSIONS]; /* ... T(perm) */
    size_t n;
};

static size_t list(struct xp_span *s, char open, char close, int64_t *v)
{
    size_t n = 0;
    if (!take(s, open))
        return 0;
    while (n < DIMENSIONS && number(s, &v[n])) {
        n++;
        if (!take(s, ','))
            break;
    }
    return take(s, close) ? n : 0;
}

static bool read_iota(struct xp_span s, struct iota *v)
{
    int64_t shape_of[DIMENSIONS], all = 1;
    if (list(&s, '[', ']', shape_of) != 2 || !take(&s, '<') || !take(&s, '='))
        return false;
    v->groups = shape_of[0];
    v->size = shape_of[1];
    v->n = list(&s, '[', ']', v->dims);
    for (size_t i = 0; i < v->n; i++) {
        v->perm[i] = (int64_t)i;
        if (__builtin_mul_overflow(all, v->dims[i], &all))
            return false;
    }
    if (take(&s, 'T') && list(&s, '(', ')', v->perm) != v->n)
        return false;
    unsigned seen = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->perm[i] < 0 || v->perm[i] >= (int64_t)v->n || seen & 1u << v->perm[i])
            return false;
        seen |= 1u << v->perm[i];
    }
    int64_t wanted;
    return v->n && all > 0 && all <= OP_WORDS_MEMBERS &&
           !__builtin_mul_overflow(v->groups, v->size, &wanted) && wanted == all;
}

/* Which number stands at a place of the list. */
static int64_t iota_at(const struct iota *v, int64_t place)
{
    int64_t stride[DIMENSIONS], at = 0, step = 1;
    for (size_t i = v->n; i-- > 0; step *= v->dims[i])
        stride[i] = step;
    for (size_t i = v->n; i-- > 0;) {
        int64_t d = v->dims[v->perm[i]];
        at += place % d * stride[v->perm[i]];
        place /= d;
    }
    return at;
}

/* At which place a number of the list stands. */
static int64_t iota_place(const struct iota *v, int64_t number)
{
    int64_t at[DIMENSIONS], place = 0;
    for (size_t i = v->n; i-- > 0; number /= v->dims[i])
        at[i] = number % v->dims[i];
    for (size_t i = 0; i < v->n; i++)
        place = place * v->dims[v->perm[i]] + at[v->perm[i]];
    return place;
}

/* However large the groups are, no more than what the label has room for is looked at: every op of
 * every core asks. */
static size_t iota_group(struct xp_span s, int64_t member, int64_t base, char *to, size_t cap)
{
    struct iota v;
    if (!read_iota(s, &v) || member < 0 || member >= v.groups * v.size)
        return 0;
    int64_t first = iota_place(&v, member) / v.size * v.size;
    struct label l = {to, cap, 0, base, 0, false};
    for (int64_t k = 0; k < v.size && !l.full; k++)
        add_member(&l, iota_at(&v, first + k));
    l.members = v.size;
    return end_label(&l);
}

size_t op_words_group(struct xp_span groups, int64_t member, int64_t base, char *to, size_t cap)
{
    if (cap < 32 || !groups.n)
        return 0;
    return groups.p[0] == '{' ? listed_group(groups, member, base, to, cap)
                              : iota_group(groups, member, base, to, cap);
}

bool op_words_pair(struct xp_span *pairs, int64_t *from, int64_t *to)
{
    while (pairs->n && !is_digit(pairs->p[0]))
        *pairs = skip(*pairs, 1);
    return number(pairs, from) && take(pairs, ',') && number(pairs, to);
}

int64_t op_words_highest(const struct op_words *w)
{
    struct iota v;
    if (w->groups.n && w->groups.p[0] == '[')
        return read_iota(w->groups, &v) ? v.groups * v.size - 1 : -1;
    struct xp_span s = w->groups.n ? w->groups : w->pairs;
    int64_t most = -1, one;
    while (s.n) {
        if (!is_digit(s.p[0]))
            s = skip(s, 1);
        else if (!number(&s, &one))
            return -1;
        else if (one > most)
            most = one;
    }
    return most;
}
