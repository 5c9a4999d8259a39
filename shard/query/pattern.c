#include "shard/query/pattern.h"

static uint8_t fold(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* A token of the query: [prefix:]word, quoted or not. */
struct token {
    struct xp_span text; /* without quotes */
    bool negated, quoted;
    enum pattern_where where;
};

static bool take_prefix(struct xp_span *q, struct xp_span prefix)
{
    if (q->n <= prefix.n)
        return false;
    for (size_t i = 0; i < prefix.n; i++)
        if (fold(q->p[i]) != prefix.p[i])
            return false;
    *q = xp_span_of(q->p + prefix.n, q->n - prefix.n);
    return true;
}

static void skip_spaces(struct xp_span *q)
{
    while (q->n && (q->p[0] == ' ' || q->p[0] == '\t'))
        *q = xp_span_of(q->p + 1, q->n - 1);
}

static enum xp_status next_token(struct xp_span *q, struct token *t, struct xp_error *err)
{
    *t = (struct token){.where = PATTERN_NAME};
    if (q->n > 1 && q->p[0] == '-' && q->p[1] != ' ') {
        t->negated = true;
        *q = xp_span_of(q->p + 1, q->n - 1);
    }
    if (take_prefix(q, XP_SPAN_LIT("line:")))
        t->where = PATTERN_LINE;
    else if (take_prefix(q, XP_SPAN_LIT("plane:")))
        t->where = PATTERN_PLANE;
    else
        take_prefix(q, XP_SPAN_LIT("name:"));
    size_t n = 0;
    if (q->n && q->p[0] == '"') {
        const uint8_t *end = q->n > 1 ? memchr(q->p + 1, '"', q->n - 1) : NULL;
        if (!end)
            return xp_fail(err, XP_BAD_REQUEST, 0, "q: a quote is not closed");
        t->quoted = true;
        t->text = xp_span_of(q->p + 1, (size_t)(end - q->p) - 1);
        n = t->text.n + 2;
    } else {
        while (n < q->n && q->p[n] != ' ' && q->p[n] != '\t')
            n++;
        t->text = xp_span_of(q->p, n);
    }
    *q = xp_span_of(q->p + n, q->n - n);
    return XP_OK;
}

/* --- dur>10us --- */

static const struct unit {
    const char *name;
    int64_t ps;
    int digits; /* of ps */
} units[] = {{"ps", 1, 0},          {"ns", 1000, 3},
             {"us", 1000000, 6},    {"\xc2\xb5s", 1000000, 6},
             {"ms", 1000000000, 9}, {"s", INT64_C(1000000000000), 12}};

/* Decimal digits with at most one point, exact; what is finer than a ps is dropped. */
static bool parse_ps(struct xp_span s, int64_t *out)
{
    size_t n = 0;
    while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
        n++;
    const struct unit *u = NULL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (xp_span_eq(xp_span_of(s.p + n, s.n - n), xp_span_str(units[i].name)))
            u = &units[i];
    if (!u || n == 0 || (n == 1 && s.p[0] == '.'))
        return false;
    int64_t v = 0;
    int after = -1; /* digits after the point; -1: no point yet */
    for (size_t i = 0; i < n; i++) {
        if (s.p[i] == '.') {
            if (after >= 0)
                return false;
            after = 0;
        } else if (after < u->digits) {
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s.p[i] - '0', &v))
                return false;
            after += after >= 0;
        }
    }
    for (int i = after < 0 ? 0 : after; i < u->digits; i++)
        if (__builtin_mul_overflow(v, 10, &v))
            return false;
    *out = v;
    return true;
}

/* dur followed by a comparison; false when the token is something else. */
static bool is_duration(const struct token *t)
{
    struct xp_span s = t->text;
    return !t->quoted && !t->negated && t->where == PATTERN_NAME &&
           take_prefix(&s, XP_SPAN_LIT("dur")) && (s.p[0] == '<' || s.p[0] == '>');
}

static enum xp_status add_duration(struct pattern *p, struct xp_span text, struct xp_error *err)
{
    struct xp_span s = xp_span_of(text.p + 4, text.n - 4);
    bool less = text.p[3] == '<', equal = s.n && s.p[0] == '=';
    int64_t v;
    if (equal)
        s = xp_span_of(s.p + 1, s.n - 1);
    if (!parse_ps(s, &v))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "q: %.*s: a time such as 10us or 1.5ms is expected (ps ns us ms s)",
                       text.n > 60 ? 60 : (int)text.n, (const char *)text.p);
    p->timed = true;
    if (less) {
        v -= !equal;
        p->max_ps = v < p->max_ps ? v : p->max_ps;
    } else {
        v += !equal && v < INT64_MAX;
        p->min_ps = v > p->min_ps ? v : p->min_ps;
    }
    return XP_OK;
}

enum xp_status pattern_parse(struct pattern *p, struct xp_span q, struct xp_error *err)
{
    size_t used = 0;
    p->n = 0;
    p->min_ps = 0;
    p->max_ps = INT64_MAX;
    p->timed = false;
    if (q.n > PATTERN_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "q is longer than %d bytes", PATTERN_MAX);
    for (skip_spaces(&q); q.n; skip_spaces(&q)) {
        struct token t;
        XP_TRY(next_token(&q, &t, err));
        if (is_duration(&t)) {
            XP_TRY(add_duration(p, t.text, err));
            continue;
        }
        if (!t.text.n)
            continue;
        if (p->n == PATTERN_WORDS)
            return xp_fail(err, XP_BAD_REQUEST, 0, "q has more than %d words", PATTERN_WORDS);
        for (size_t i = 0; i < t.text.n; i++)
            p->text[used + i] = fold(t.text.p[i]);
        p->words[p->n++] =
            (struct pattern_word){t.where, t.negated, xp_span_of(p->text + used, t.text.n)};
        used += t.text.n;
    }
    if (!p->n && !p->timed)
        return xp_fail(err, XP_BAD_REQUEST, 0, "q: at least one word is expected");
    return XP_OK;
}

static bool holds_at(const uint8_t *p, struct xp_span word)
{
    for (size_t i = 0; i < word.n; i++)
        if (fold(p[i]) != word.p[i])
            return false;
    return true;
}

static bool holds(struct xp_span s, struct xp_span word)
{
    for (size_t i = 0; i + word.n <= s.n; i++)
        if (holds_at(s.p + i, word))
            return true;
    return false;
}

bool pattern_match(const struct pattern *p, enum pattern_where where, struct xp_span s)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->words[i].where == where && holds(s, p->words[i].text) == p->words[i].negated)
            return false;
    return true;
}

bool pattern_match_row(const struct pattern *p, struct xp_span plane, struct xp_span line)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pattern_word *w = &p->words[i];
        bool there = (w->where != PATTERN_LINE && holds(plane, w->text)) ||
                     (w->where != PATTERN_PLANE && holds(line, w->text));
        if (there == w->negated)
            return false;
    }
    return true;
}
