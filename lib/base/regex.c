#include "lib/base/regex.h"

#include <string.h>

enum { BEGIN = 256, END = 257 };

/* A piece of the pattern: where it begins and ends, and whether it may be nothing. */
struct piece {
    uint64_t first, last;
    bool none;
};

static const struct piece nothing = {.none = true};

/* What is being read between two parentheses. */
struct group {
    struct piece others; /* alternatives before this one */
    struct piece before; /* this one, up to the last atom */
    struct piece atom;
    bool has_others, has_atom;
};

struct parser {
    struct xp_regex *r;
    struct xp_span in;
    size_t at;
    uint32_t places;
    uint64_t follow[XP_REGEX_PLACES];
    struct group groups[XP_REGEX_DEPTH];
    uint32_t depth;
    struct xp_error *err;
};

struct class
{
    bool has[256];
};

static enum xp_status refuse(struct parser *p, const char *why)
{
    return xp_fail(p->err, XP_BAD_REQUEST, 0, "regular expression, at %zu: %s", p->at, why);
}

/* --- pieces --- */

static struct piece joined(struct parser *p, struct piece a, struct piece b)
{
    for (uint32_t i = 0; i < p->places; i++)
        if (a.last >> i & 1)
            p->follow[i] |= b.first;
    return (struct piece){a.first | (a.none ? b.first : 0), b.last | (b.none ? a.last : 0),
                          a.none && b.none};
}

static void flush(struct parser *p, struct group *g)
{
    if (g->has_atom)
        g->before = joined(p, g->before, g->atom);
    g->has_atom = false;
}

static void add_atom(struct parser *p, struct piece x)
{
    struct group *g = &p->groups[p->depth];
    flush(p, g);
    g->atom = x;
    g->has_atom = true;
}

static void end_alternative(struct parser *p)
{
    struct group *g = &p->groups[p->depth];
    flush(p, g);
    if (g->has_others) {
        g->others.first |= g->before.first;
        g->others.last |= g->before.last;
        g->others.none |= g->before.none;
    } else {
        g->others = g->before;
    }
    g->has_others = true;
    g->before = nothing;
}

static enum xp_status new_place(struct parser *p, struct piece *out)
{
    if (p->places == XP_REGEX_PLACES)
        return refuse(p, "too long: 64 characters and classes at most");
    *out = (struct piece){(uint64_t)1 << p->places, (uint64_t)1 << p->places, false};
    p->places++;
    return XP_OK;
}

static enum xp_status add_sign(struct parser *p, int sign)
{
    struct piece x = nothing;
    XP_TRY(new_place(p, &x));
    p->r->on[sign] |= x.first;
    add_atom(p, x);
    return XP_OK;
}

static enum xp_status add_class(struct parser *p, const struct class *c)
{
    struct piece x = nothing;
    XP_TRY(new_place(p, &x));
    for (int i = 0; i < 256; i++)
        if (c->has[i])
            p->r->on[i] |= x.first;
    add_atom(p, x);
    return XP_OK;
}

/* --- characters --- */

static bool is_letter(int c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_word(int c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

static void take(struct class *c, int byte)
{
    c->has[byte] = true;
    if (is_letter(byte))
        c->has[byte ^ 0x20] = true;
}

/* \d \w \s and their contraries. */
static bool take_kind(struct class *c, int kind)
{
    int k = kind | 0x20;
    if (k != 'd' && k != 'w' && k != 's')
        return false;
    for (int i = 0; i < 256; i++) {
        bool is = k == 'd'   ? i >= '0' && i <= '9'
                  : k == 'w' ? is_word(i)
                             : i == ' ' || (i >= '\t' && i <= '\r');
        if (is == (kind == k))
            c->has[i] = true;
    }
    return true;
}

/* After a backslash, which is read. A kind goes to c and gives -1. */
static enum xp_status escaped(struct parser *p, struct class *c, int *byte)
{
    if (p->at == p->in.n)
        return refuse(p, "it ends with a backslash");
    *byte = p->in.p[p->at++];
    if (take_kind(c, *byte))
        *byte = -1;
    else if (*byte == 'n' || *byte == 't')
        *byte = *byte == 'n' ? '\n' : '\t';
    else if (is_word(*byte) || *byte >= 128)
        return refuse(p, "of letters only \\d \\w \\s \\D \\W \\S \\n \\t may follow a backslash");
    return XP_OK;
}

static enum xp_status class_end(struct parser *p, struct class *c, int from)
{
    int to = p->in.p[p->at++];
    if (to == '\\')
        XP_TRY(escaped(p, c, &to));
    if (to < from || to >= 128)
        return refuse(p, "a range in [ ] goes the wrong way");
    for (int i = from; i <= to; i++)
        take(c, i);
    return XP_OK;
}

static enum xp_status class_items(struct parser *p, struct class *c)
{
    for (bool any = false;; any = true) {
        if (p->at == p->in.n)
            return refuse(p, "a ] is missing");
        int from = p->in.p[p->at++];
        if (from == ']' && any)
            return XP_OK;
        if (from == '\\')
            XP_TRY(escaped(p, c, &from));
        if (from >= 128)
            return refuse(p, "in [ ] there may be ASCII only");
        if (from < 0)
            continue;
        if (p->at + 1 < p->in.n && p->in.p[p->at] == '-' && p->in.p[p->at + 1] != ']') {
            p->at++;
            XP_TRY(class_end(p, c, from));
        } else {
            take(c, from);
        }
    }
}

static enum xp_status class(struct parser *p) {
    struct class c = {0}; bool negated = p->at < p->in.n && p->in.p[p->at] == '^'; p->at += negated;
    XP_TRY(class_items(p, &c));
    for (int i = 0; negated && i < 256; i++) c.has[i] = !c.has[i];
    return add_class(p, &c);
}

/* One character; beyond ASCII all its bytes, so that what follows repeats the whole. */
static enum xp_status literal(struct parser *p, int byte)
{
    struct class c = {0};
    struct piece all = nothing, x = nothing;
    take(&c, byte);
    if (byte < 128)
        return add_class(p, &c);
    p->at--;
    do {
        XP_TRY(new_place(p, &x));
        p->r->on[p->in.p[p->at++]] |= x.first;
        all = joined(p, all, x);
    } while (p->at < p->in.n && (p->in.p[p->at] & 0xc0) == 0x80);
    add_atom(p, all);
    return XP_OK;
}

/* --- structure --- */

static enum xp_status repeat(struct parser *p, int how)
{
    struct group *g = &p->groups[p->depth];
    if (!g->has_atom)
        return refuse(p, "nothing stands before *, + or ?");
    if (how != '?')
        joined(p, g->atom, g->atom);
    g->atom.none |= how != '+';
    if (p->at < p->in.n && p->in.p[p->at] == '?') /* x+? finds what x+ finds */
        p->at++;
    return XP_OK;
}

static enum xp_status open_group(struct parser *p)
{
    if (p->at < p->in.n && p->in.p[p->at] == '?') {
        if (p->at + 1 == p->in.n || p->in.p[p->at + 1] != ':')
            return refuse(p, "of (?...) only (?:...) is known");
        p->at += 2;
    }
    if (p->depth + 1 == XP_REGEX_DEPTH)
        return refuse(p, "too many parentheses within each other");
    p->groups[++p->depth] = (struct group){.before = nothing};
    return XP_OK;
}

static enum xp_status close_group(struct parser *p)
{
    if (!p->depth)
        return refuse(p, "a ) has no (");
    end_alternative(p);
    struct piece x = p->groups[p->depth--].others;
    add_atom(p, x);
    return XP_OK;
}

static enum xp_status dot(struct parser *p)
{
    struct class c;
    memset(c.has, true, sizeof c.has);
    return add_class(p, &c);
}

static enum xp_status backslash(struct parser *p)
{
    struct class c = {0};
    int byte;
    XP_TRY(escaped(p, &c, &byte));
    return byte < 0 ? add_class(p, &c) : literal(p, byte);
}

static enum xp_status next(struct parser *p)
{
    int c = p->in.p[p->at++];
    switch (c) {
    case '*':
    case '+':
    case '?':
        return repeat(p, c);
    case '|':
        end_alternative(p);
        return XP_OK;
    case '(':
        return open_group(p);
    case ')':
        return close_group(p);
    case '[':
        return class(p);
    case '.':
        return dot(p);
    case '^':
        return add_sign(p, BEGIN);
    case '$':
        return add_sign(p, END);
    case '{':
        return refuse(p, "{ } is not known; \\{ is the character");
    case '\\':
        return backslash(p);
    default:
        return literal(p, c);
    }
}

/* What follows each of the 256 sets that a byte of the set of places can be. */
static void tabulate(struct xp_regex *r, const uint64_t *follow)
{
    for (int b = 0; b < 8; b++)
        for (int set = 1; set < 256; set++) {
            int low = __builtin_ctz((unsigned)set);
            r->after[b][set] = r->after[b][set & (set - 1)] | follow[b * 8 + low];
        }
}

enum xp_status xp_regex_parse(struct xp_regex *r, struct xp_span pattern, struct xp_error *err)
{
    struct parser p = {.r = r, .in = pattern, .err = err};
    memset(r, 0, sizeof *r);
    p.groups[0].before = nothing;
    while (p.at < pattern.n)
        XP_TRY(next(&p));
    if (p.depth)
        return refuse(&p, "a ) is missing");
    end_alternative(&p);
    r->first = p.groups[0].others.first;
    r->last = p.groups[0].others.last;
    r->always = p.groups[0].others.none;
    tabulate(r, p.follow);
    return XP_OK;
}

static uint64_t step(const struct xp_regex *r, uint64_t set, int sign)
{
    uint64_t to = r->first;
    for (int b = 0; set; b++, set >>= 8)
        to |= r->after[b][set & 255];
    return to & r->on[sign];
}

/* A sign takes no byte, so that one may follow another: until they lead nowhere new. */
static uint64_t pass(const struct xp_regex *r, uint64_t set, int sign)
{
    for (uint64_t to; (to = set | step(r, set, sign)) != set;)
        set = to;
    return set;
}

bool xp_regex_find(const struct xp_regex *r, struct xp_span text)
{
    if (r->always)
        return true;
    uint64_t set = pass(r, 0, BEGIN);
    for (size_t i = 0; i < text.n; i++) {
        if (set & r->last)
            return true;
        set = step(r, set, text.p[i]);
    }
    return pass(r, set, END) & r->last;
}
