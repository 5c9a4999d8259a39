#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/counter_facts.h"
#include "shard/tools/report_beside.h"
#include "shard/tools/reports_more.h"

/* Values of hardware counters: one a row; the chips side by side (beside=chips), of one sample or
 * as what changed from another (sample=, against=); and one counter everywhere (counter=). */

struct counter {
    struct xp_span host, kernel, name, words, set;
    int64_t chip, sample;
    uint64_t value;
};

struct counters {
    struct counter *v;
    uint32_t n, zeros;
};

struct ask {
    struct beside_samples samples;
    struct xp_span counter;
    bool zeros, beside;
};

/* Some of them, in some order. */
struct list {
    const struct counters *all;
    uint32_t *at;
    uint32_t n;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the counters");
}

static enum xp_status read_ask(const struct tool_args *args, struct ask *ask, struct xp_error *err)
{
    struct xp_span s = {0};
    *ask = (struct ask){.zeros = tool_arg(args, "zeros", &s) && xp_span_eq(s, XP_SPAN_LIT("1"))};
    XP_TRY(beside_samples_of(args, &ask->samples, err));
    ask->beside = ask->samples.has_against;
    if (tool_arg(args, "beside", &s) && s.n) {
        if (!xp_span_eq(s, XP_SPAN_LIT("chips")))
            return xp_fail(err, XP_BAD_REQUEST, 0, "beside is chips, or absent");
        ask->beside = true;
    }
    tool_arg(args, "counter", &ask->counter);
    return XP_OK;
}

/* --- reading --- */

static bool read_host(struct facts *f, struct counters *c, size_t max)
{
    while (c->n < max && facts_get_u64(f) == PERF_COUNTERS_ROW) {
        struct counter *v = &c->v[c->n++];
        *v = (struct counter){.host = f->host, .chip = facts_get_i64(f)};
        v->kernel = facts_get_text(f);
        v->sample = facts_get_i64(f);
        v->name = facts_get_text(f);
        v->value = facts_get_u64(f);
        v->words = facts_get_text(f);
        v->set = facts_get_text(f);
        c->zeros += !v->value;
    }
    return !f->bad;
}

static enum xp_status read_all(struct xp_span merged, struct xp_arena *a, struct counters *c,
                               struct xp_error *err)
{
    struct facts *hosts;
    size_t n, max = merged.n / 7 + 1; /* a row is 7 values at least */
    XP_TRY(facts_open(merged, a, &hosts, &n, err));
    c->v = max < UINT32_MAX ? xp_arena_alloc(a, max * sizeof *c->v) : NULL;
    if (!c->v)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (!read_host(&hosts[i], c, max - 1))
            return facts_ok(&hosts[i], err);
    return XP_OK;
}

static bool in_sample(const struct counter *v, const struct ask *ask)
{
    const struct beside_samples *s = &ask->samples;
    return !s->has_sample || v->sample == s->sample ||
           (ask->beside && s->has_against && v->sample == s->against);
}

/* --- one a row --- */

static const struct report_column value_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"chip", "Chip", "", REPORT_COL_NUMBER, false, "its number in the slice, else of the host"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "line that holds the sample"},
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of that line"},
    {"counter", "Counter", "", REPORT_COL_TEXT, false, "name"},
    {"value", "Value", "count", REPORT_COL_NUMBER, false, "as it was read"},
    {"set", "Set", "", REPORT_COL_TEXT, false, "what it belongs to"},
    {"words", "Meaning", "", REPORT_COL_TEXT, false, "what it counts"},
};

static void value_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct list *l = ctx;
    const struct counter *v = &l->all->v[l->at[i]];
    c[0] = report_of_text(v->host);
    c[1] = report_of_i64(v->chip);
    c[2] = report_text_or_none(v->kernel);
    c[3] = report_of_i64(v->sample);
    c[4] = report_of_text(v->name);
    c[5] = report_of_u64(v->value);
    c[6] = report_text_or_none(v->set);
    c[7] = report_text_or_none(v->words);
}

static void table_values(struct report *r, struct list *l, const struct ask *ask)
{
    uint32_t hidden = 0;
    for (uint32_t i = 0; i < l->all->n; i++) {
        if (!in_sample(&l->all->v[i], ask))
            continue;
        if (ask->zeros || l->all->v[i].value)
            l->at[l->n++] = i;
        else
            hidden++;
    }
    if (hidden)
        report_note(r, REPORT_INFO, "zeros_hidden",
                    "%u counters that are 0 are not shown; zeros=1 shows them.", hidden);
    report_table(r, &(struct report_rows){.id = "counters",
                                          .title = "Counters",
                                          .columns = value_columns,
                                          .ncolumns = sizeof value_columns / sizeof *value_columns,
                                          .n = l->n,
                                          .row = value_row,
                                          .ctx = l});
}

/* --- chips side by side --- */

struct chips {
    struct list list; /* by name; then as they came */
    struct ask *ask;
    struct beside devices;
    uint32_t *rows; /* where each name begins in the list, and where the last one ends */
    uint32_t nrows;
    const struct report_column *columns;
};

enum { CHIP_COUNTER, CHIP_BEFORE };
static const struct report_column chip_before[CHIP_BEFORE] = {
    {"counter", "Counter", "", REPORT_COL_TEXT, false, "name"},
};
static const struct report_column chip_each = {
    NULL,    "chip",
    "count", REPORT_COL_NUMBER,
    false,   "value on this chip; where a sample has several, the last"};
static const struct report_column chip_change = {
    NULL,    "chip",
    "count", REPORT_COL_NUMBER,
    false,   "value in sample= less that in against=, on this chip"};
enum { CHIP_SPREAD, CHIP_SET, CHIP_WORDS, CHIP_AFTER };
static const struct report_column chip_after[CHIP_AFTER] = {
    {"spread", "Differ by", "fraction", REPORT_COL_NUMBER, false,
     "(largest - least) / the one farther from 0, over the chips shown"},
    {"set", "Set", "", REPORT_COL_TEXT, false, "what it belongs to"},
    {"words", "Meaning", "", REPORT_COL_TEXT, false, "what it counts"},
};

static int by_name(const void *a, const void *b, void *ctx)
{
    const struct counter *v = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int c = xp_span_cmp(v[x].name, v[y].name);
    return c ? c : (x > y) - (x < y);
}

static struct report_cell change(uint64_t now, uint64_t before)
{
    uint64_t by = now > before ? now - before : before - now;
    if (by > INT64_MAX)
        return report_of_double((double)now - (double)before);
    return report_of_i64(now > before ? (int64_t)by : -(int64_t)by);
}

static double value_of(const struct report_cell *c)
{
    return c->kind == REPORT_U64 ? (double)c->u : c->kind == REPORT_I64 ? (double)c->i : c->d;
}

static struct report_cell spread(const struct report_cell *c, uint32_t n)
{
    double least = 0, most = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!c[i].kind)
            continue;
        double v = value_of(&c[i]);
        least = seen && least < v ? least : v;
        most = seen && most > v ? most : v;
        seen++;
    }
    double whole = most > -least ? most : -least;
    return seen > 1 ? report_ratio(most - least, whole) : report_none();
}

static void chip_row(void *ctx, uint64_t i, struct report_cell *c)
{
    struct chips *x = ctx;
    const struct beside_samples *s = &x->ask->samples;
    struct report_cell *each = c + CHIP_BEFORE, before[BESIDE_MAX] = {{0}};
    const struct counter *v = NULL;
    for (uint32_t k = x->rows[i]; k < x->rows[i + 1]; k++) {
        v = &x->list.all->v[x->list.at[k]];
        uint32_t at = beside_place(&x->devices, v->host, v->chip);
        if (at == BESIDE_MAX)
            continue;
        if (s->has_against && v->sample == s->against)
            before[at] = report_of_u64(v->value);
        else
            each[at] = report_of_u64(v->value);
    }
    for (uint32_t k = 0; s->has_against && k < x->devices.n; k++)
        each[k] = each[k].kind && before[k].kind ? change(each[k].u, before[k].u) : report_none();
    struct report_cell *after = each + x->devices.n;
    c[CHIP_COUNTER] = report_of_text(v->name);
    after[CHIP_SPREAD] = spread(each, x->devices.n);
    after[CHIP_SET] = report_text_or_none(v->set);
    after[CHIP_WORDS] = report_text_or_none(v->words);
}

/* Names that are 0 everywhere leave the list, unless they are asked for. */
static uint32_t choose_rows(struct chips *x)
{
    const struct counter *v = x->list.all->v;
    uint32_t *at = x->list.at, kept = 0, hidden = 0;
    for (uint32_t i = 0, end; i < x->list.n; i = end) {
        bool any = x->ask->zeros;
        for (end = i; end < x->list.n && xp_span_eq(v[at[end]].name, v[at[i]].name); end++)
            any |= v[at[end]].value != 0;
        hidden += !any;
        if (!any)
            continue;
        x->rows[x->nrows++] = kept;
        memmove(at + kept, at + i, (end - i) * sizeof *at);
        kept += end - i;
    }
    x->rows[x->nrows] = kept;
    return hidden;
}

static enum xp_status table_chips(struct report *r, struct chips *x, struct xp_error *err)
{
    const struct counters *all = x->list.all;
    struct beside_samples *s = &x->ask->samples;
    char title[96];
    if (!s->has_sample && all->n) { /* the first, not a mixture of all */
        s->has_sample = true;
        s->sample = all->v[0].sample;
        for (uint32_t i = 1; i < all->n; i++)
            s->sample = all->v[i].sample < s->sample ? all->v[i].sample : s->sample;
    }
    for (uint32_t i = 0; i < all->n; i++)
        if (in_sample(&all->v[i], x->ask)) {
            x->list.at[x->list.n++] = i;
            beside_place(&x->devices, all->v[i].host, all->v[i].chip);
        }
    x->rows = xp_arena_alloc(r->a, (x->list.n + (size_t)1) * sizeof *x->rows);
    x->columns =
        beside_columns(&x->devices, chip_before, CHIP_BEFORE,
                       s->has_against ? &chip_change : &chip_each, chip_after, CHIP_AFTER, r->a);
    if (!x->rows || !x->columns)
        return no_memory(err);
    if (x->list.n)
        qsort_r(x->list.at, x->list.n, sizeof *x->list.at, by_name, all->v);
    uint32_t hidden = choose_rows(x);
    if (hidden)
        report_note(r, REPORT_INFO, "zeros_hidden",
                    "%u counters that are 0 on all chips are not shown; zeros=1 shows them.",
                    hidden);
    beside_note(r, &x->devices);
    if (s->has_against)
        snprintf(title, sizeof title, "Chips: sample %lld less sample %lld", (long long)s->sample,
                 (long long)s->against);
    else
        snprintf(title, sizeof title, "Chips side by side: sample %lld", (long long)s->sample);
    report_table(r, &(struct report_rows){.id = "chips",
                                          .title = title,
                                          .columns = x->columns,
                                          .ncolumns = CHIP_BEFORE + x->devices.n + CHIP_AFTER,
                                          .n = x->nrows,
                                          .row = chip_row,
                                          .ctx = x});
    return XP_OK;
}

/* --- one counter --- */

static const struct report_column one_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"chip", "Chip", "", REPORT_COL_NUMBER, false, "its number in the slice, else of the host"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "line that holds the sample"},
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of that line"},
    {"value", "Value", "count", REPORT_COL_NUMBER, false, "as it was read"},
    {"hex", "Hexadecimal", "", REPORT_COL_TEXT, false, "the same"},
    {"change", "Change", "count", REPORT_COL_NUMBER, false,
     "value less that of the chip's sample before"},
};

struct one {
    struct list list;
    char (*hex)[20];
};

static int by_chip(const void *a, const void *b, void *ctx)
{
    const struct counter *v = ctx, *x = &v[*(const uint32_t *)a], *y = &v[*(const uint32_t *)b];
    int c = xp_span_cmp(x->host, y->host);
    c = c ? c : (x->chip > y->chip) - (x->chip < y->chip);
    c = c ? c : (x->sample > y->sample) - (x->sample < y->sample);
    return c ? c : (x > y) - (x < y);
}

static void one_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct one *o = ctx;
    const struct counter *v = &o->list.all->v[o->list.at[i]];
    const struct counter *last = i ? &o->list.all->v[o->list.at[i - 1]] : NULL;
    c[0] = report_of_text(v->host);
    c[1] = report_of_i64(v->chip);
    c[2] = report_text_or_none(v->kernel);
    c[3] = report_of_i64(v->sample);
    c[4] = report_of_u64(v->value);
    c[5] = report_of_text(xp_span_str(o->hex[i]));
    if (last && last->chip == v->chip && xp_span_eq(last->host, v->host))
        c[6] = change(v->value, last->value);
}

static enum xp_status table_one(struct report *r, const struct counters *all, struct xp_span name,
                                struct xp_error *err)
{
    struct one o = {.list = {.all = all}};
    char title[320];
    for (uint32_t i = 0; i < all->n; i++)
        o.list.n += xp_span_eq(all->v[i].name, name);
    o.list.at = xp_arena_alloc(r->a, (o.list.n + (size_t)1) * sizeof *o.list.at);
    o.hex = xp_arena_alloc(r->a, (o.list.n + (size_t)1) * sizeof *o.hex);
    if (!o.list.at || !o.hex)
        return no_memory(err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        if (xp_span_eq(all->v[i].name, name))
            o.list.at[n++] = i;
    if (!n) {
        report_note(r, REPORT_WARNING, "no_such_counter", "No counter is called as counter= says.");
        return XP_OK;
    }
    qsort_r(o.list.at, n, sizeof *o.list.at, by_chip, all->v);
    for (uint32_t i = 0; i < n; i++)
        snprintf(o.hex[i], sizeof o.hex[i], "0x%llx",
                 (unsigned long long)all->v[o.list.at[i]].value);
    struct xp_span words = all->v[o.list.at[0]].words;
    snprintf(title, sizeof title, "%.*s", (int)(words.n < 300 ? words.n : 300),
             words.n ? (const char *)words.p : "");
    report_table(r, &(struct report_rows){.id = "counter",
                                          .title = "One counter, everywhere",
                                          .note = title[0] ? title : NULL,
                                          .columns = one_columns,
                                          .ncolumns = sizeof one_columns / sizeof *one_columns,
                                          .n = n,
                                          .row = one_row,
                                          .ctx = &o,
                                          .aside = true});
    return XP_OK;
}

/* --- samples --- */

/* A device's counters of one sample come together. */
static struct beside_sample *list_samples(const struct counters *all, struct xp_arena *a,
                                          uint32_t *count)
{
    uint32_t n = 0;
    const struct counter *last = NULL;
    struct beside_sample *v = xp_arena_alloc(a, (all->n + (size_t)1) * sizeof *v);
    if (!v)
        return NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct counter *c = &all->v[i];
        if (!last || last->sample != c->sample || last->chip != c->chip ||
            !xp_span_eq(last->kernel, c->kernel) || !xp_span_eq(last->host, c->host))
            v[n++] = (struct beside_sample){c->sample, c->kernel, 1};
        last = c;
    }
    *count = n;
    return v;
}

static enum xp_status write_values(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct counters c = {0};
    struct ask ask;
    uint32_t nsamples;
    XP_TRY(read_ask(args, &ask, err));
    XP_TRY(read_all(merged, r->a, &c, err));
    struct beside_sample *samples = list_samples(&c, r->a, &nsamples);
    if (!samples)
        return no_memory(err);
    XP_TRY(beside_samples_exist(&ask.samples, samples, nsamples, err));
    if (c.n)
        report_u64(r, "counters", c.n, NULL);
    else
        report_na(r, "counters", COUNTERS_NONE);
    struct list list = {&c, xp_arena_alloc(r->a, (c.n + (size_t)1) * sizeof(uint32_t)), 0};
    if (!list.at)
        return no_memory(err);
    if (ask.beside) {
        struct chips x = {.list = list, .ask = &ask};
        XP_TRY(table_chips(r, &x, err));
    } else {
        table_values(r, &list, &ask);
    }
    if (ask.counter.n)
        XP_TRY(table_one(r, &c, ask.counter, err));
    beside_table_samples(r, samples, nsamples);
    return XP_OK;
}

const struct tool_report report_perf_counters = {
    .question = "What is the value of a hardware counter?",
    .map = perf_counters_map_any,
    .merge = facts_merge,
    .write = write_values,
};
