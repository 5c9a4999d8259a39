#include "shard/tools/report_beside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LISTED 8 /* samples in a sentence */

static bool same(const struct beside_device *d, struct xp_span host, int64_t id)
{
    return d->id == id && xp_span_eq(d->host, host);
}

uint32_t beside_place(struct beside *b, struct xp_span host, int64_t id)
{
    for (uint32_t i = b->n; i-- > 0;)
        if (same(&b->v[i], host, id))
            return i;
    if (b->n < BESIDE_MAX) {
        b->hosts |= b->n && !xp_span_eq(b->v[0].host, host);
        b->v[b->n] = (struct beside_device){host, id};
        return b->n++;
    }
    if (!b->left_out || !same(&b->last_out, host, id))
        b->left_out++;
    b->last_out = (struct beside_device){host, id};
    return BESIDE_MAX;
}

/* "<word> 3", or "host/3" where there are several; a word of NULL: 3 alone. */
static const char *name_of(const struct beside *b, const struct beside_device *d, const char *word,
                           struct xp_arena *a)
{
    size_t room = d->host.n + (word ? strlen(word) : 0) + 24;
    char *text = xp_arena_alloc(a, room);
    if (!text)
        return NULL;
    if (b->hosts)
        snprintf(text, room, "%.*s/%lld", (int)d->host.n, (const char *)d->host.p,
                 (long long)d->id);
    else
        snprintf(text, room, "%s%s%lld", word ? word : "", word ? " " : "", (long long)d->id);
    return text;
}

struct report_column *beside_columns(const struct beside *b, const struct report_column *before,
                                     uint32_t nbefore, const struct report_column *each,
                                     const struct report_column *after, uint32_t nafter,
                                     struct xp_arena *a)
{
    struct report_column *v = xp_arena_alloc(a, (nbefore + b->n + nafter) * sizeof *v);
    if (!v)
        return NULL;
    memcpy(v, before, nbefore * sizeof *v);
    for (uint32_t i = 0; i < b->n; i++) {
        struct report_column *c = &v[nbefore + i];
        *c = *each;
        c->id = name_of(b, &b->v[i], NULL, a);
        c->label = name_of(b, &b->v[i], each->label, a);
        if (!c->id || !c->label)
            return NULL;
    }
    for (uint32_t i = 0; i < nafter; i++)
        v[nbefore + b->n + i] = after[i];
    return v;
}

void beside_note(struct report *r, const struct beside *b)
{
    if (b->left_out)
        report_note(r, REPORT_WARNING, "devices_cut",
                    "%u devices do not fit beside the first %d: choose hosts with host=.",
                    b->left_out, BESIDE_MAX);
}

/* --- samples --- */

static enum xp_status number(const struct tool_args *args, const char *name, int64_t *v, bool *has,
                             struct xp_error *err)
{
    struct xp_span s = {0};
    char text[24];
    if (!tool_arg(args, name, &s) || !s.n)
        return XP_OK;
    if (s.n < sizeof text) {
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        size_t minus = text[0] == '-', digits = strspn(text + minus, "0123456789");
        errno = 0;
        *v = strtoll(text, NULL, 10);
        *has = digits && minus + digits == s.n && errno != ERANGE;
    }
    return *has ? XP_OK
                : xp_fail(err, XP_BAD_REQUEST, 0, "%s is the number of a sample, as in the table",
                          name);
}

enum xp_status beside_samples_of(const struct tool_args *args, struct beside_samples *s,
                                 struct xp_error *err)
{
    *s = (struct beside_samples){0};
    XP_TRY(number(args, "sample", &s->sample, &s->has_sample, err));
    XP_TRY(number(args, "against", &s->against, &s->has_against, err));
    if (s->has_against && !s->has_sample)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "against= compares with that sample: sample= names "
                       "the one that is compared");
    return XP_OK;
}

static bool exists(int64_t id, const struct beside_sample *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (v[i].id == id)
            return true;
    return false;
}

/* The least number that is more than *last, or the least of all. */
static bool next_id(const struct beside_sample *v, uint64_t n, bool first, int64_t *last)
{
    const struct beside_sample *least = NULL;
    for (uint64_t i = 0; i < n; i++)
        if ((first || v[i].id > *last) && (!least || v[i].id < least->id))
            least = &v[i];
    if (least)
        *last = least->id;
    return least;
}

static enum xp_status no_such(const char *name, int64_t id, const struct beside_sample *v,
                              uint64_t n, struct xp_error *err)
{
    char ids[LISTED * 24] = "";
    size_t at = 0;
    int64_t last = 0;
    int i = 0;
    for (; i < LISTED && next_id(v, n, !i, &last); i++)
        at += (size_t)snprintf(ids + at, sizeof ids - at, "%s%" PRId64, i ? ", " : "", last);
    bool more = i == LISTED && next_id(v, n, false, &last);
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "%s=%" PRId64 " is no sample of any device; there are %s%s", name, id, ids,
                   more ? ", \xe2\x80\xa6" : "");
}

enum xp_status beside_samples_exist(const struct beside_samples *s, const struct beside_sample *v,
                                    uint64_t n, struct xp_error *err)
{
    if (n && s->has_sample && !exists(s->sample, v, n))
        return no_such("sample", s->sample, v, n, err);
    if (n && s->has_against && !exists(s->against, v, n))
        return no_such("against", s->against, v, n, err);
    return XP_OK;
}

static const struct report_column sample_columns[] = {
    {"sample", "Sample", "", REPORT_COL_NUMBER, false, "number of its line"},
    {"kernel", "Kernel", "", REPORT_COL_TEXT, false, "that it is named by"},
    {"devices", "Devices", "count", REPORT_COL_NUMBER, false, "that have it"},
};

static int by_id(const void *a, const void *b)
{
    const struct beside_sample *x = a, *y = b;
    int c = (x->id > y->id) - (x->id < y->id);
    return c ? c : xp_span_cmp(x->kernel, y->kernel);
}

static void sample_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct beside_sample *s = &((const struct beside_sample *)ctx)[i];
    c[0] = report_of_i64(s->id);
    c[1] = s->kernel.n ? report_of_text(s->kernel) : report_none();
    c[2] = report_of_u64(s->devices);
}

void beside_table_samples(struct report *r, struct beside_sample *v, uint64_t n)
{
    uint64_t kept = 0;
    if (n)
        qsort(v, n, sizeof *v, by_id);
    for (uint64_t i = 0; i < n; i++)
        if (kept && !by_id(&v[kept - 1], &v[i]))
            v[kept - 1].devices += v[i].devices;
        else
            v[kept++] = v[i];
    if (kept > 1)
        report_table(
            r, &(struct report_rows){.id = "samples",
                                     .title = "Samples",
                                     .columns = sample_columns,
                                     .ncolumns = sizeof sample_columns / sizeof *sample_columns,
                                     .n = kept,
                                     .row = sample_row,
                                     .ctx = v,
                                     .aside = true});
}
