#include "shard/tools/demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBS_MAX 512
#define ARGS_MAX 64
#define ITEMS_MAX 256
#define POOL_MAX ((size_t)4 * DEMANGLE_OUT_MAX)
#define NO_HOLE SIZE_MAX

/* Text that can be referred to. hole: where "(*)" goes in a function or an array; NO_HOLE: none. */
struct piece {
    size_t at, n, hole;
    bool in_round; /* the hole is within brackets already */
};

/* A template argument; a pack has several, one after the other in `items`. */
struct arg {
    struct piece whole;
    uint32_t first, n;
    bool pack;
};

struct reader {
    const char *p, *end;
    struct xp_buf out, pool;
    struct piece subs[SUBS_MAX], items[ITEMS_MAX];
    struct arg args[ARGS_MAX]; /* T_ T0_ … */
    uint32_t nsubs, nargs, nitems;
    uint32_t in_pack, pack_n; /* which of a pack is told now, from 1 on; how many the pack has */
    bool pack_seen;
    int depth;
    bool bad;
    size_t hole; /* of the type that was read last */
    bool in_round;
    bool templated;     /* the name that was read last ends with template arguments */
    bool no_return;     /* it is a constructor, a destructor, a conversion */
    const char *behind; /* what stands behind a member function's parameters */
};

static bool type(struct reader *r);
static bool encoding(struct reader *r, bool returns);
static bool name(struct reader *r, bool keep_args);

static bool fail(struct reader *r)
{
    r->bad = true;
    return false;
}

static char peek(const struct reader *r)
{
    return r->p < r->end ? *r->p : 0;
}

static char after(const struct reader *r)
{
    return r->end - r->p > 1 ? r->p[1] : 0;
}

static bool eat(struct reader *r, const char *s)
{
    size_t n = strlen(s);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, s, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool put(struct reader *r, const char *s)
{
    xp_buf_str(&r->out, s);
    return !r->out.failed || fail(r);
}

static bool put_n(struct reader *r, const char *s, size_t n)
{
    xp_buf_add(&r->out, s, n);
    return !r->out.failed || fail(r);
}

static bool insert(struct reader *r, size_t at, const char *s)
{
    size_t n = strlen(s), tail = r->out.n - at;
    if (at > r->out.n)
        return fail(r);
    if (!put_n(r, s, n))
        return false;
    memmove(r->out.p + at + n, r->out.p + at, tail);
    memcpy(r->out.p + at, s, n);
    return true;
}

static bool enter(struct reader *r)
{
    return ++r->depth <= DEMANGLE_DEPTH_MAX || fail(r);
}

static bool leave(struct reader *r, bool ok)
{
    r->depth--;
    return ok && !r->bad;
}

/* --- what can be referred to --- */

static bool keep(struct reader *r, size_t from, struct piece *to)
{
    bool within = r->hole != NO_HOLE && r->hole >= from && r->hole < r->out.n;
    *to = (struct piece){r->pool.n, r->out.n - from, within ? r->hole - from : NO_HOLE,
                         within && r->in_round};
    xp_buf_add(&r->pool, r->out.p + from, r->out.n - from);
    return !r->pool.failed || fail(r);
}

static bool keep_sub(struct reader *r, size_t from)
{
    if (r->nsubs == SUBS_MAX || r->out.n < from)
        return fail(r);
    return keep(r, from, &r->subs[r->nsubs++]);
}

static bool put_piece(struct reader *r, const struct piece *p)
{
    size_t from = r->out.n;
    if (!put_n(r, (const char *)r->pool.p + p->at, p->n))
        return false;
    r->hole = p->hole == NO_HOLE ? NO_HOLE : from + p->hole;
    r->in_round = p->in_round;
    return true;
}

/* _ is 0, 0_ is 1, … to the base. */
static bool sequence(struct reader *r, uint32_t base, uint32_t *n)
{
    uint32_t v = 0;
    bool some = false;
    for (; r->p < r->end && *r->p != '_'; r->p++) {
        char c = *r->p;
        uint32_t d = is_digit(c)                          ? (uint32_t)(c - '0')
                     : base == 36 && c >= 'A' && c <= 'Z' ? (uint32_t)(c - 'A') + 10
                                                          : base;
        if (d >= base || v > 100000)
            return fail(r);
        v = v * base + d;
        some = true;
    }
    if (!eat(r, "_"))
        return fail(r);
    *n = some ? v + 1 : 0;
    return true;
}

static bool param(struct reader *r)
{
    uint32_t n;
    if (!eat(r, "T") || !sequence(r, 10, &n))
        return fail(r);
    if (n >= r->nargs)
        return put(r, "auto"); /* of a generic lambda, or told later */
    const struct arg *a = &r->args[n];
    if (!a->pack || !r->in_pack)
        return put_piece(r, &a->whole);
    r->pack_seen = true;
    r->pack_n = a->n;
    return r->in_pack > a->n || put_piece(r, &r->items[a->first + r->in_pack - 1]);
}

/* S_ and the like; S t is the caller's. */
static bool substitution(struct reader *r)
{
    static const char *const known[][2] = {{"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
                                           {"Ss", "std::string"},    {"Si", "std::istream"},
                                           {"So", "std::ostream"},   {"Sd", "std::iostream"}};
    uint32_t n;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (eat(r, known[i][0]))
            return put(r, known[i][1]);
    if (!eat(r, "S") || !sequence(r, 36, &n) || n >= r->nsubs)
        return fail(r);
    return put_piece(r, &r->subs[n]);
}

/* --- names --- */

static const char operators[][2][12] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"ps", "+"},
    {"ng", "-"},    {"ad", "&"},      {"de", "*"},       {"co", "~"},         {"pl", "+"},
    {"mi", "-"},    {"ml", "*"},      {"dv", "/"},       {"rm", "%"},         {"an", "&"},
    {"or", "|"},    {"eo", "^"},      {"aS", "="},       {"pL", "+="},        {"mI", "-="},
    {"mL", "*="},   {"dV", "/="},     {"rM", "%="},      {"aN", "&="},        {"oR", "|="},
    {"eO", "^="},   {"ls", "<<"},     {"rs", ">>"},      {"lS", "<<="},       {"rS", ">>="},
    {"eq", "=="},   {"ne", "!="},     {"lt", "<"},       {"gt", ">"},         {"le", "<="},
    {"ge", ">="},   {"ss", "<=>"},    {"nt", "!"},       {"aa", "&&"},        {"oo", "||"},
    {"pp", "++"},   {"mm", "--"},     {"cm", ","},       {"pm", "->*"},       {"pt", "->"},
    {"cl", "()"},   {"ix", "[]"},     {"qu", "?"},
};

static bool number(struct reader *r, size_t *n)
{
    size_t v = 0;
    if (!is_digit(peek(r)))
        return fail(r);
    for (; is_digit(peek(r)); r->p++)
        if ((v = v * 10 + (size_t)(*r->p - '0')) > DEMANGLE_IN_MAX * 16)
            return fail(r);
    *n = v;
    return true;
}

static bool source_name(struct reader *r, struct xp_span *s)
{
    size_t n;
    if (!number(r, &n) || !n || n > (size_t)(r->end - r->p))
        return fail(r);
    *s = xp_span_of((const uint8_t *)r->p, n);
    r->p += n;
    return true;
}

static bool plain_name(struct reader *r)
{
    struct xp_span s;
    if (!source_name(r, &s))
        return false;
    return xp_span_starts(s, XP_SPAN_LIT("_GLOBAL__N_")) ? put(r, "(anonymous namespace)")
                                                         : put_n(r, (const char *)s.p, s.n);
}

/* Types up to E or the end, between commas; a single void is none. */
static bool params(struct reader *r)
{
    bool first = true;
    if (peek(r) == 'v' && (after(r) == 'E' || after(r) == 0 || after(r) == '.')) {
        r->p++;
        return true;
    }
    while (r->p < r->end && *r->p != 'E' && *r->p != '.') {
        size_t from = r->out.n;
        if ((!first && !put(r, ", ")) || !type(r))
            return false;
        if (!first && r->out.n == from + 2)
            r->out.n = from; /* an empty pack */
        first = first && r->out.n == from;
    }
    return true;
}

static bool counted(struct reader *r, const char *what)
{
    char text[24];
    size_t n = 0;
    bool some = is_digit(peek(r));
    if ((some && !number(r, &n)) || !eat(r, "_"))
        return fail(r);
    snprintf(text, sizeof text, "#%zu}", some ? n + 2 : 1);
    return put(r, what) && put(r, text);
}

/* Ul…E_ and Ut_ */
static bool unnamed(struct reader *r)
{
    if (eat(r, "Ut"))
        return counted(r, "{unnamed type");
    if (!eat(r, "Ul") || !put(r, "{lambda(") || !params(r) || !eat(r, "E"))
        return fail(r);
    return counted(r, ")");
}

static bool operator_name(struct reader *r)
{
    if (eat(r, "cv")) {
        r->no_return = true;
        return put(r, "operator ") && type(r);
    }
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (eat(r, operators[i][0]))
            return put(r, "operator") && put(r, operators[i][1]);
    return fail(r);
}

static bool unqualified(struct reader *r)
{
    struct xp_span tag;
    bool ok;
    r->no_return = false;
    eat(r, "L"); /* not seen outside of its file */
    if (is_digit(peek(r)))
        ok = plain_name(r);
    else
        ok = peek(r) == 'U' ? unnamed(r) : operator_name(r);
    while (ok && eat(r, "B"))
        ok = source_name(r, &tag) && put(r, "[abi:") && put_n(r, (const char *)tag.p, tag.n) &&
             put(r, "]");
    return ok;
}

/* The last name of what stands from there, without its template arguments. */
static struct xp_span last_name(const struct reader *r, size_t from)
{
    size_t end = r->out.n, begin;
    int depth = 0;
    if (end > from && r->out.p[end - 1] == '>') {
        while (end > from) {
            uint8_t c = r->out.p[--end];
            depth += (c == '>') - (c == '<');
            if (!depth)
                break;
        }
    }
    begin = end;
    while (begin > from && r->out.p[begin - 1] != ':')
        begin--;
    return end > begin ? xp_span_of(r->out.p + begin, end - begin) : (struct xp_span){0};
}

/* C1 or D1: called as its class. */
static bool structor(struct reader *r, size_t from)
{
    char text[256];
    struct xp_span s = last_name(r, from);
    bool down = peek(r) == 'D';
    if (!s.n || s.n >= sizeof text || !is_digit(after(r)))
        return fail(r);
    r->p += 2;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    r->no_return = true;
    return put(r, down ? "::~" : "::") && put(r, text);
}

/* --- template arguments --- */

static const char *suffix_of(char c)
{
    static const char kinds[] = "jlmxy";
    static const char *const suffixes[] = {"u", "l", "ul", "ll", "ull"};
    const char *at = c ? strchr(kinds, c) : NULL;
    return at ? suffixes[at - kinds] : "";
}

static bool value(struct reader *r)
{
    const char *from;
    if (eat(r, "n") && !put(r, "-"))
        return false;
    for (from = r->p; r->p < r->end && *r->p != 'E'; r->p++)
        if (!is_digit(*r->p) && !(*r->p >= 'a' && *r->p <= 'f'))
            return fail(r);
    return put_n(r, from, (size_t)(r->p - from)) && (eat(r, "E") || fail(r));
}

static bool literal(struct reader *r)
{
    char kind;
    if (eat(r, "_Z"))
        return encoding(r, false) && (eat(r, "E") || fail(r));
    if (eat(r, "b0E"))
        return put(r, "false");
    if (eat(r, "b1E"))
        return put(r, "true");
    if (eat(r, "DnE") || eat(r, "Dn0E"))
        return put(r, "nullptr");
    kind = peek(r);
    if (kind && strchr("ijlmxyst", kind)) {
        r->p++;
        return value(r) && put(r, suffix_of(kind));
    }
    return put(r, "(") && type(r) && put(r, ")") && value(r);
}

static bool arguments(struct reader *r, bool keep_args);

static bool argument(struct reader *r)
{
    if (eat(r, "L"))
        return literal(r);
    if (peek(r) == 'X')
        return fail(r); /* an expression */
    return type(r);
}

/* Those up to E, between commas; of a pack those within it. How many: *n; of each what is kept. */
static bool argument_list(struct reader *r, bool keep_args, bool within);

static bool keep_argument(struct reader *r, size_t begin, bool pack, uint32_t first, bool within)
{
    if (within) {
        struct piece one;
        if (!keep(r, begin, &one))
            return false;
        if (r->nitems < ITEMS_MAX)
            r->items[r->nitems++] = one;
        return true;
    }
    if (r->nargs == ARGS_MAX)
        return true;
    struct arg *a = &r->args[r->nargs++];
    *a = (struct arg){.pack = pack, .first = first, .n = r->nitems - first};
    return keep(r, begin, &a->whole);
}

static bool argument_list(struct reader *r, bool keep_args, bool within)
{
    bool some = false;
    if (!enter(r))
        return false;
    while (!eat(r, "E")) {
        size_t from = r->out.n, begin;
        uint32_t first = r->nitems;
        bool pack;
        if (r->p >= r->end || (some && !put(r, ", ")))
            return leave(r, fail(r));
        begin = r->out.n;
        r->hole = NO_HOLE;
        pack = !within && eat(r, "J");
        if (pack ? !argument_list(r, keep_args, true) : !argument(r))
            return leave(r, false);
        if (keep_args && !keep_argument(r, begin, pack, first, within))
            return leave(r, false);
        if (r->out.n == begin)
            r->out.n = from; /* an empty pack */
        else
            some = true;
    }
    return leave(r, true);
}

static bool arguments(struct reader *r, bool keep_args)
{
    bool angle = r->out.n && r->out.p[r->out.n - 1] == '<'; /* operator<< <int> */
    if (keep_args)
        r->nargs = 0;
    if (!eat(r, "I") || !put(r, angle ? " <" : "<") || !argument_list(r, keep_args, false))
        return fail(r);
    r->hole = NO_HOLE;
    return put(r, r->out.p[r->out.n - 1] == '>' ? " >" : ">");
}

/* --- longer names --- */

/* One part of a nested name; from: where the name begins. */
static bool part(struct reader *r, size_t from, bool keep_args)
{
    char c = peek(r);
    bool first = r->out.n == from;
    r->templated = false;
    if (c == 'I') {
        r->templated = true;
        return !first && arguments(r, keep_args);
    }
    if (c == 'S' && first)
        return after(r) == 't' ? eat(r, "St") && put(r, "std") : substitution(r);
    if (c == 'T' && first)
        return param(r);
    if ((c == 'C' || c == 'D') && is_digit(after(r)))
        return structor(r, from);
    return (first || put(r, "::")) && unqualified(r);
}

static bool nested(struct reader *r, bool keep_args)
{
    size_t from = r->out.n;
    const char *behind = "";
    bool fresh = false;
    if (!eat(r, "N"))
        return fail(r);
    while (peek(r) && strchr("rVK", peek(r)))
        if (*r->p++ == 'K')
            behind = " const";
    if (peek(r) == 'R' || peek(r) == 'O')
        behind =
            *behind ? (*r->p++ == 'R' ? " const &" : " const &&") : (*r->p++ == 'R' ? " &" : " &&");
    while (!eat(r, "E")) {
        if (r->p >= r->end || (fresh && !keep_sub(r, from)))
            return fail(r);
        bool old = r->out.n == from && peek(r) == 'S';
        if (!part(r, from, keep_args))
            return false;
        if (eat(r, "M")) /* what a lambda initialises */
            continue;
        fresh = !old;
    }
    r->behind = behind;
    return r->out.n > from || fail(r);
}

static bool discriminator(struct reader *r)
{
    size_t n;
    if (!eat(r, "_"))
        return true;
    if (eat(r, "_"))
        return number(r, &n) && (eat(r, "_") || fail(r));
    if (!is_digit(peek(r)))
        return fail(r);
    r->p++;
    return true;
}

/* In a function. What T_ is within does not reach out. */
static bool local(struct reader *r, bool keep_args)
{
    struct arg args[ARGS_MAX];
    uint32_t n = r->nargs;
    bool ok;
    memcpy(args, r->args, n * sizeof *args);
    ok = eat(r, "Z") && encoding(r, false) && eat(r, "E");
    memcpy(r->args, args, n * sizeof *args);
    r->nargs = n;
    r->templated = false;
    if (!ok)
        return fail(r);
    if (eat(r, "s"))
        return put(r, "::string literal") && discriminator(r);
    if (eat(r, "d") && is_digit(peek(r)) && !number(r, &(size_t){0}))
        return false;
    return put(r, "::") && name(r, keep_args) && discriminator(r);
}

static bool name(struct reader *r, bool keep_args)
{
    size_t from = r->out.n;
    bool old = false, ok;
    if (!enter(r))
        return false;
    r->templated = false;
    if (peek(r) == 'N')
        return leave(r, nested(r, keep_args));
    if (peek(r) == 'Z')
        return leave(r, local(r, keep_args));
    if (eat(r, "St")) {
        ok = put(r, "std::") && unqualified(r);
    } else if (peek(r) == 'S') {
        old = true;
        ok = substitution(r);
    } else {
        ok = unqualified(r);
    }
    if (ok && peek(r) == 'I') {
        ok = (old || keep_sub(r, from)) && arguments(r, keep_args);
        r->templated = true;
    }
    return leave(r, ok);
}

/* --- types --- */

static const char *builtin(char c)
{
    static const char *const of[26] = {
        ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
        ['b' - 'a'] = "bool",        ['c' - 'a'] = "char",
        ['a' - 'a'] = "signed char", ['h' - 'a'] = "unsigned char",
        ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
        ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
        ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
        ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
        ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
        ['f' - 'a'] = "float",       ['d' - 'a'] = "double",
        ['e' - 'a'] = "long double", ['g' - 'a'] = "__float128",
        ['z' - 'a'] = "...",
    };
    return c >= 'a' && c <= 'z' ? of[c - 'a'] : NULL;
}

/* What begins with D, but for functions and vectors. */
static const char *long_builtin(struct reader *r)
{
    static const char *const of[][2] = {
        {"DF16b", "std::bfloat16_t"},
        {"DF16_", "_Float16"},
        {"DF32_", "_Float32"},
        {"DF64_", "_Float64"},
        {"DF128_", "_Float128"},
        {"Dh", "half"},
        {"Di", "char32_t"},
        {"Ds", "char16_t"},
        {"Du", "char8_t"},
        {"Da", "auto"},
        {"Dc", "decltype(auto)"},
        {"Dn", "decltype(nullptr)"},
        {"Dd", "decimal64"},
        {"De", "decimal128"},
        {"Df", "decimal32"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (eat(r, of[i][0]))
            return of[i][1];
    return NULL;
}

/* A reference to a reference is the shorter of both. */
static bool collapsed(struct reader *r, const char *sign, size_t end)
{
    if (*sign != '&' || !end || r->out.p[end - 1] != '&')
        return false;
    if (sign[1] || end < 2 || r->out.p[end - 2] != '&')
        return true;
    memmove(r->out.p + end - 1, r->out.p + end, r->out.n - end);
    r->out.n--;
    r->hole -= r->hole == end;
    return true;
}

static bool pointed(struct reader *r, const char *sign)
{
    char text[8];
    if (r->hole == NO_HOLE)
        return collapsed(r, sign, r->out.n) || put(r, sign);
    if (r->in_round && collapsed(r, sign, r->hole))
        return true;
    bool array = r->out.p[r->hole] == '[';
    snprintf(text, sizeof text, r->in_round ? "%s" : array ? "(%s) " : "(%s)", sign);
    if (!insert(r, r->hole, text))
        return false;
    r->hole += strlen(sign) + !r->in_round;
    r->in_round = true;
    return true;
}

static bool function(struct reader *r)
{
    size_t hole;
    eat(r, "Y"); /* extern "C" */
    if (!type(r) || !put(r, " "))
        return false;
    hole = r->out.n;
    if (!put(r, "(") || !params(r) || !put(r, ")"))
        return false;
    if ((peek(r) == 'R' || peek(r) == 'O') && after(r) == 'E')
        r->p++;
    r->hole = hole;
    r->in_round = false;
    return eat(r, "E") || fail(r);
}

static bool array(struct reader *r)
{
    const char *from = r->p;
    size_t n, hole;
    if (is_digit(peek(r)) && !number(r, &n))
        return false;
    n = (size_t)(r->p - from);
    if (!eat(r, "_") || !type(r) || !put(r, " "))
        return fail(r);
    hole = r->out.n;
    r->hole = hole;
    r->in_round = false;
    return put(r, "[") && put_n(r, from, n) && put(r, "]");
}

/* int C::* and void (C::*)(int). */
static bool member(struct reader *r)
{
    char text[512];
    size_t from = r->out.n, n;
    if (!type(r))
        return false;
    n = r->out.n - from;
    if (n + 4 > sizeof text)
        return fail(r);
    memcpy(text, r->out.p + from, n);
    memcpy(text + n, "::*", 4);
    r->out.n = from;
    if (!type(r))
        return false;
    if (r->hole == NO_HOLE)
        return put(r, " ") && put(r, text);
    size_t hole = r->hole;
    if (!insert(r, hole, ")") || !insert(r, hole, text) || !insert(r, hole, "("))
        return false;
    r->hole = hole + 1 + n + 3;
    r->in_round = true;
    return true;
}

static bool qualified(struct reader *r)
{
    bool constant = false, is_volatile = false;
    for (; peek(r) && strchr("rVK", peek(r)); r->p++) {
        constant |= *r->p == 'K';
        is_volatile |= *r->p == 'V';
    }
    if (!type(r))
        return false;
    if (r->hole != NO_HOLE && r->out.p[r->hole] != '[')
        return true;          /* of a member function */
    if (r->hole != NO_HOLE) { /* const are an array's elements */
        size_t n = r->out.n, hole = r->hole;
        bool ok = (!is_volatile || insert(r, hole - 1, " volatile")) &&
                  (!constant || insert(r, hole - 1, " const"));
        r->hole = hole + r->out.n - n;
        return ok;
    }
    return (!is_volatile || put(r, " volatile")) && (!constant || put(r, " const"));
}

/* Dp: the type for each of the pack's. What it refers back to is counted once. */
static bool expansion(struct reader *r)
{
    const char *begin = r->p;
    uint32_t outer = r->in_pack, nsubs = 0;
    bool ok = true;
    r->pack_seen = false;
    r->pack_n = 1;
    for (uint32_t i = 1; ok && i <= (r->pack_n ? r->pack_n : 1); i++) {
        size_t from = r->out.n;
        r->p = begin;
        r->in_pack = i;
        ok = (i == 1 || put(r, ", ")) && type(r);
        if (i == 1)
            nsubs = r->nsubs;
        r->nsubs = nsubs;
        if (ok && r->pack_seen && !r->pack_n) {
            r->out.n = from;
            r->hole = NO_HOLE; /* it was in what is no more */
        }
    }
    r->in_pack = outer;
    return ok;
}

/* half __vector(4), address spaces, …: what is written around a type. */
static bool extended(struct reader *r, size_t from, bool *sub)
{
    char text[48];
    struct xp_span vendor;
    size_t n;
    const char *b;
    if (eat(r, "Dp")) {
        *sub = false;
        return expansion(r) && keep_sub(r, from);
    }
    if (eat(r, "Do"))
        return eat(r, "F") ? function(r) : fail(r);
    if (eat(r, "Dv")) {
        if (!number(r, &n) || !eat(r, "_") || !type(r))
            return fail(r);
        snprintf(text, sizeof text, " __vector(%zu)", n);
        return put(r, text);
    }
    if (eat(r, "u")) {
        *sub = true;
        return plain_name(r);
    }
    if (eat(r, "U")) {
        if (!source_name(r, &vendor))
            return false;
        return type(r) && put(r, " ") && put_n(r, (const char *)vendor.p, vendor.n);
    }
    *sub = false;
    b = long_builtin(r);
    return b ? put(r, b) : fail(r);
}

/* T_ and S_, which template arguments may follow. */
static bool referred(struct reader *r, size_t from, bool *sub)
{
    bool is_param = peek(r) == 'T';
    if (!(is_param ? param(r) : substitution(r)))
        return false;
    *sub = is_param;
    if (peek(r) != 'I')
        return true;
    if (is_param && !keep_sub(r, from))
        return false;
    *sub = true;
    return arguments(r, false);
}

static bool compound(struct reader *r, size_t from, bool *sub)
{
    switch (peek(r)) {
    case 'P':
        r->p++;
        return type(r) && pointed(r, "*");
    case 'R':
        r->p++;
        return type(r) && pointed(r, "&");
    case 'O':
        r->p++;
        return type(r) && pointed(r, "&&");
    case 'K':
    case 'V':
    case 'r':
        return qualified(r);
    case 'F':
        r->p++;
        return function(r);
    case 'A':
        r->p++;
        return array(r);
    case 'M':
        r->p++;
        return member(r);
    case 'C':
        r->p++;
        return type(r) && put(r, " _Complex");
    case 'D':
    case 'U':
    case 'u':
        return extended(r, from, sub);
    case 'T':
        return referred(r, from, sub);
    case 'S':
        if (after(r) != 't')
            return referred(r, from, sub);
        break;
    default:
        break;
    }
    return name(r, false);
}

static bool type(struct reader *r)
{
    size_t from = r->out.n;
    const char *b = builtin(peek(r));
    bool sub = true, templated = r->templated, no_return = r->no_return;
    if (!enter(r))
        return false;
    r->hole = NO_HOLE;
    if (b && peek(r) != 'r') {
        r->p++;
        return leave(r, put(r, b));
    }
    bool named = peek(r) == 'N' || peek(r) == 'Z' || is_digit(peek(r));
    bool ok = compound(r, from, &sub);
    if (named)
        r->hole = NO_HOLE;
    r->templated = templated;
    r->no_return = no_return;
    return leave(r, ok && (!sub || keep_sub(r, from)));
}

/* --- a function --- */

/* Of void f<int>(int): what stands last comes first. */
static bool rotate(struct reader *r, size_t from, size_t middle)
{
    size_t n = r->out.n - middle;
    char *tail = malloc(n + 1);
    if (!tail)
        return fail(r);
    memcpy(tail, r->out.p + middle, n);
    memmove(r->out.p + from + n, r->out.p + from, middle - from);
    memcpy(r->out.p + from, tail, n);
    free(tail);
    return true;
}

/* returns: what it returns is told, too. */
static bool encoding(struct reader *r, bool returns)
{
    size_t from = r->out.n, middle;
    const char *behind;
    bool ok = enter(r);
    if (!ok || peek(r) == 'T' || peek(r) == 'G') /* tables and guards */
        return leave(r, fail(r));
    r->behind = "";
    if (!name(r, true))
        return leave(r, false);
    behind = r->behind;
    if (r->p >= r->end || *r->p == 'E' || *r->p == '.')
        return leave(r, true); /* no function */
    middle = r->out.n;
    if (r->templated && !r->no_return)
        ok = type(r) && put(r, " ");
    if (!returns)
        r->out.n = middle < r->out.n ? middle : r->out.n;
    else if (r->out.n > middle)
        ok = ok && rotate(r, from, middle);
    r->hole = NO_HOLE;
    return leave(r, ok && put(r, "(") && params(r) && put(r, ")") && put(r, behind));
}

/* f.kd, f.isra.0: made by the compiler from f. */
static bool clone_of(struct reader *r)
{
    if (r->p == r->end)
        return true;
    return *r->p == '.' && put(r, " [clone ") && put_n(r, r->p, (size_t)(r->end - r->p)) &&
           put(r, "]");
}

bool demangle(struct xp_span s, struct xp_buf *out)
{
    struct reader *r;
    bool ok;
    if (s.n > DEMANGLE_IN_MAX || !xp_span_starts(s, XP_SPAN_LIT("_Z")) || !(r = malloc(sizeof *r)))
        return false;
    *r = (struct reader){
        .p = (const char *)s.p + 2, .end = (const char *)s.p + s.n, .hole = NO_HOLE};
    xp_buf_init(&r->out, DEMANGLE_OUT_MAX);
    xp_buf_init(&r->pool, POOL_MAX);
    ok = encoding(r, true) && clone_of(r) && !r->out.failed;
    if (ok)
        xp_buf_span(out, xp_buf_all(&r->out));
    xp_buf_fini(&r->out);
    xp_buf_fini(&r->pool);
    free(r);
    return ok && !out->failed;
}
