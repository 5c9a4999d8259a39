#include "server/runs_query.h"

#include <math.h>
#include <strings.h>

#include "server/runs_int.h"

/* --- columns --- */

enum type { NUMBER, TEXT };

static const struct {
    const char *id;
    enum type type;
} columns[RUN_COLUMNS_N] = {
#define X(symbol, id, type) {id, type},
    RUN_COLUMNS(X)
#undef X
};

enum run_column run_column_named(struct xp_span id)
{
    int c = 0;
    while (c < RUN_COLUMNS_N && !xp_span_eq(id, xp_span_str(columns[c].id)))
        c++;
    return (enum run_column)c;
}

bool run_column_is_text(enum run_column c)
{
    return columns[c].type == TEXT;
}

const char *run_state_of(const struct run *r, const struct run_facts *f)
{
    size_t unreadable = run_unreadable_hosts(r, NULL, NULL);
    if (!r->n_hosts)
        return r->unreadable ? "unreadable" : "empty";
    return unreadable == r->n_hosts || (f && f->problem) ? "unreadable" : "ready";
}

static struct run_value text_value(const char *text)
{
    return (struct run_value){.known = text != NULL, .text = text};
}

static struct run_value number_value(double v)
{
    return (struct run_value){.known = true, .number = v};
}

static struct run_value fact_value(const struct run_facts *f, enum run_fact fact)
{
    struct run_value none = {0};
    if (!f || !f->v[fact].known)
        return none;
    return (struct run_value){.known = true, .number = f->v[fact].number, .text = f->v[fact].text};
}

/* By the most urgent first. */
static struct run_value findings_value(const struct run_facts *f)
{
    struct run_value p0 = fact_value(f, FACT_P0), p1 = fact_value(f, FACT_P1);
    struct run_value p2 = fact_value(f, FACT_P2);
    if (!p0.known || !p1.known || !p2.known)
        return (struct run_value){0};
    return number_value(p0.number * 1e6 + p1.number * 1e3 + p2.number);
}

struct run_value run_column_value(enum run_column c, const struct run *r, const struct run_facts *f)
{
    static const enum run_fact facts[RUN_COLUMNS_N] = {
        [RUN_COLUMN_DEVICE] = FACT_DEVICE,   [RUN_COLUMN_STEP] = FACT_STEP,
        [RUN_COLUMN_MFU] = FACT_MFU,         [RUN_COLUMN_MEMORY] = FACT_MEMORY,
        [RUN_COLUMN_DROPPED] = FACT_DROPPED, [RUN_COLUMN_CORES] = FACT_CORES,
        [RUN_COLUMN_DEVICES] = FACT_DEVICES, [RUN_COLUMN_PROGRAM] = FACT_PROGRAM,
        [RUN_COLUMN_WORK] = FACT_WORK,       [RUN_COLUMN_P0] = FACT_P0,
        [RUN_COLUMN_P1] = FACT_P1,           [RUN_COLUMN_P2] = FACT_P2,
    };
    switch (c) {
    case RUN_COLUMN_NAME:
        return text_value(r->name);
    case RUN_COLUMN_CAPTURED:
        return r->captured_ms ? number_value((double)r->captured_ms) : (struct run_value){0};
    case RUN_COLUMN_HOSTS:
        return number_value((double)r->n_hosts);
    case RUN_COLUMN_SIZE:
        return number_value((double)r->bytes);
    case RUN_COLUMN_STATE:
        return text_value(run_state_of(r, f));
    case RUN_COLUMN_KIND:
        return text_value(run_capture_kind(r, f));
    case RUN_COLUMN_FINDINGS:
        return findings_value(f);
    default:
        return fact_value(f, facts[c]);
    }
}

/* --- words --- */

static bool read_number(const char *s, double *v)
{
    static const struct {
        const char *unit;
        double scale;
    } units[] = {{"", 1},         {"ps", 1},    {"ns", 1e3},     {"us", 1e6},     {"ms", 1e9},
                 {"s", 1e12},     {"%", 0.01},  {"B", 1},        {"kB", 1e3},     {"MB", 1e6},
                 {"GB", 1e9},     {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                 {"TiB", 0x1p40}, {"k", 1e3},   {"M", 1e6},      {"G", 1e9}};
    char *end;
    if (!((s[0] >= '0' && s[0] <= '9') || s[0] == '.'))
        return false;
    *v = strtod(s, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].unit) == 0 && (end[0] != 'm' || strcmp(end, "m") != 0)) {
            *v *= units[i].scale;
            return isfinite(*v);
        }
    return false;
}

/* "column>=value" of a column that there is; else false. */
static bool read_comparison(const char *word, struct run_term *t)
{
    size_t n = strcspn(word, ":<>=");
    enum run_column c = run_column_named(xp_span_of(word, n));
    const char *value = word + n + 1;
    if (!word[n] || c == RUN_COLUMNS_N || (c == RUN_COLUMN_CAPTURED))
        return false;
    t->column = c;
    t->op = word[n];
    if ((t->op == '>' || t->op == '<') && *value == '=') {
        t->op = t->op == '>' ? 'g' : 'l';
        value++;
    }
    if (!*value)
        return false;
    if (run_column_is_text(c)) {
        t->text = must(strdup(value));
        return t->op == ':' || t->op == '=';
    }
    if (t->op == ':')
        t->op = '=';
    return read_number(value, &t->number);
}

static void take_word(const char *word, bool quoted, struct run_term *t)
{
    if (!quoted && *word == '-' && word[1]) {
        t->negated = true;
        word++;
    }
    if (!quoted && read_comparison(word, t))
        return;
    free(t->text);
    t->column = RUN_COLUMN_NAME;
    t->op = ':';
    t->text = must(strdup(word));
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The next word without its quotes, or NULL. `column:"two words"` is one. */
static char *next_word(struct xp_span *q, bool *quoted)
{
    size_t i = 0, n = 0;
    bool in = false;
    while (i < q->n && is_space(q->p[i]))
        i++;
    if (i == q->n)
        return NULL;
    char *word = must(malloc(q->n - i + 1));
    *quoted = q->p[i] == '"';
    for (; i < q->n && (in || !is_space(q->p[i])); i++) {
        if (q->p[i] == '"')
            in = !in;
        else
            word[n++] = (char)q->p[i];
    }
    word[n] = 0;
    *q = xp_span_of(q->p + i, q->n - i);
    return word;
}

enum xp_status run_terms_parse(struct xp_span q, struct run_terms *t, struct xp_error *err)
{
    char *word;
    bool quoted;
    *t = (struct run_terms){.only_names = true};
    if (q.n && memchr(q.p, 0, q.n))
        return xp_fail(err, XP_BAD_REQUEST, 0, "a name cannot hold a NUL byte");
    while ((word = next_word(&q, &quoted))) {
        if (t->n == RUN_TERMS_MAX) {
            free(word);
            return xp_fail(err, XP_BAD_REQUEST, 0, "q has more than %d words", RUN_TERMS_MAX);
        }
        take_word(word, quoted, &t->v[t->n]);
        t->only_names &= t->v[t->n].column == RUN_COLUMN_NAME;
        t->n++;
        free(word);
    }
    return XP_OK;
}

void run_terms_fini(struct run_terms *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i].text);
    t->n = 0;
}

/* --- whether they hold --- */

static bool text_holds(const struct run_term *t, const char *text)
{
    return t->op == '=' ? strcasecmp(text, t->text) == 0 : strcasestr(text, t->text) != NULL;
}

static bool number_holds(const struct run_term *t, double v)
{
    switch (t->op) {
    case '>':
        return v > t->number;
    case '<':
        return v < t->number;
    case 'g':
        return v >= t->number;
    case 'l':
        return v <= t->number;
    default:
        return v == t->number;
    }
}

/* All of them, whatever their priority. */
static double findings(const struct run_facts *f)
{
    return f->v[FACT_P0].number + f->v[FACT_P1].number + f->v[FACT_P2].number;
}

static bool term_holds(const struct run_term *t, const struct run *r, const struct run_facts *f)
{
    struct run_value v = run_column_value(t->column, r, f);
    if (!v.known)
        return false;
    if (run_column_is_text(t->column))
        return text_holds(t, v.text);
    return number_holds(t, t->column == RUN_COLUMN_FINDINGS ? findings(f) : v.number);
}

bool run_terms_hold_name(const struct run_terms *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].column == RUN_COLUMN_NAME && text_holds(&t->v[i], name) == t->v[i].negated)
            return false;
    return true;
}

bool run_terms_hold(const struct run_terms *t, const struct run *r, const struct run_facts *f)
{
    for (size_t i = 0; i < t->n; i++)
        if (term_holds(&t->v[i], r, f) == t->v[i].negated)
            return false;
    return true;
}
