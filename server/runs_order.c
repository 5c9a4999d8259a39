/* Pages of runs in any order. What they are ordered by is looked up of all runs, then sorted: 5,000
 * runs take some milliseconds, each time. */
#include <math.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "server/runs_int.h"
#include "server/runs_query.h"

struct row {
    struct run_entry *e;
    struct run_box *box; /* NULL: not looked into */
    const struct run_facts *facts;
    struct run_value key;
};

struct order {
    enum run_column column;
    bool descending;
};

struct rows {
    struct row *v;
    size_t n;
    bool some_unknown; /* that were not looked into were left out */
};

/* --- what is asked --- */

static enum xp_status read_order(struct xp_span sort, struct order *o, struct xp_error *err)
{
    struct xp_span id = sort;
    o->descending = id.n && id.p[0] == '-';
    if (o->descending)
        id = xp_span_of(id.p + 1, id.n - 1);
    o->column = run_column_named(id);
    if (sort.n && o->column == RUN_COLUMNS_N)
        return xp_fail(
            err, XP_BAD_REQUEST, 0,
            "runs are not ordered by \"%.*s\": sort is run, captured, hosts, size, "
            "state, device, kind, step, mfu, memory, findings, dropped, devices, cores, program "
            "or work, or one of these behind a -",
            (int)(sort.n < 60 ? sort.n : 60), (const char *)sort.p);
    if (!sort.n)
        *o = (struct order){RUN_COLUMN_CAPTURED, true};
    return XP_OK;
}

/* --- looking into runs --- */

/* Of a bucket: those from `i` on that are not known, several at once. */
static size_t look_ahead(struct run_index *ri, const struct rows *rows, size_t i, size_t *looks)
{
    struct run_entry *look[RUNS_AT_ONCE];
    struct xp_store *store = rows->v[i].e->store;
    size_t n = 0;
    pthread_mutex_lock(&ri->lock);
    for (; i < rows->n && n < RUNS_AT_ONCE && rows->v[i].e->store == store; i++) {
        struct run_entry *e = rows->v[i].e;
        if (e->box || e->filling || *looks == 0) /* what is known will do to order by */
            continue;
        e->filling = true;
        look[n++] = e;
        (*looks)--;
    }
    pthread_mutex_unlock(&ri->lock);
    run_entries_fill(ri, store, look, n);
    return i;
}

static struct run_box *known_box(struct run_index *ri, struct run_entry *e)
{
    pthread_mutex_lock(&ri->lock);
    struct run_box *box = e->box;
    if (box)
        run_ref(&box->run);
    pthread_mutex_unlock(&ri->lock);
    return box;
}

static void look_into_all(struct run_index *ri, struct rows *rows)
{
    size_t looked = 0, looks = RUNS_ORDER_LOOKS;
    uint64_t until = xp_now_ns() + RUNS_ORDER_NS;
    for (size_t i = 0; i < rows->n; i++) {
        struct row *row = &rows->v[i];
        bool remote = xp_store_is_remote(row->e->store);
        if (remote && i >= looked && xp_now_ns() < until)
            looked = look_ahead(ri, rows, i, &looks);
        row->box = !remote && xp_now_ns() < until ? run_entry_box(ri, row->e, true)
                                                  : known_box(ri, row->e);
    }
}

/* Names and times are known of runs that nobody looked into. */
static bool needs_no_look(const struct order *o, const struct run_terms *t)
{
    return t->only_names && (o->column == RUN_COLUMN_NAME || o->column == RUN_COLUMN_CAPTURED);
}

static struct run_value key_of(const struct row *row, const struct order *o)
{
    if (o->column == RUN_COLUMN_NAME)
        return (struct run_value){.known = true, .text = row->e->name};
    if (o->column == RUN_COLUMN_CAPTURED)
        return (struct run_value){.known = row->e->captured_ms != 0,
                                  .number = (double)row->e->captured_ms};
    return row->box ? run_column_value(o->column, &row->box->run, row->facts)
                    : (struct run_value){0};
}

static void know_all(struct run_index *ri, struct rows *rows, const struct order *o,
                     const struct run_terms *t, struct runfacts *facts)
{
    bool no_look = needs_no_look(o, t);
    if (!no_look)
        look_into_all(ri, rows);
    for (size_t i = 0; i < rows->n; i++) {
        struct row *row = &rows->v[i];
        if (no_look)
            row->box = known_box(ri, row->e);
        else if (row->box)
            row->facts = runfacts_get(facts, &row->box->run);
        row->key = key_of(row, o);
    }
}

static void rows_fini(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        run_unref(rows->v[i].box ? &rows->v[i].box->run : NULL);
        run_facts_unref(rows->v[i].facts);
    }
    free(rows->v);
}

/* Those of the listing that are meant; by names first, so that others need not be looked into. */
static void rows_take(struct rows *rows, struct run_listing *l, const struct run_terms *t)
{
    rows->v = must(calloc(l->n + 1, sizeof *rows->v));
    for (size_t i = 0; i < l->n; i++)
        if (!l->entries[i].hidden && run_terms_hold_name(t, l->entries[i].name))
            rows->v[rows->n++].e = &l->entries[i];
}

/* Of those that are not known nobody can say whether words hold. */
static void rows_filter(struct rows *rows, const struct run_terms *t)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        struct row *row = &rows->v[i];
        if (row->box ? run_terms_hold(t, &row->box->run, row->facts) : t->only_names) {
            rows->v[n++] = *row;
            continue;
        }
        rows->some_unknown |= !row->box;
        run_unref(row->box ? &row->box->run : NULL);
        run_facts_unref(row->facts);
    }
    rows->n = n;
}

/* --- order --- */

/* What is not known is last either way; equal ones are newest first. */
static int compare_keys(const struct run_value *x, const struct run_value *y, const struct order *o)
{
    int c;
    if (!x->known || !y->known)
        return x->known ? -1 : y->known ? 1 : 0;
    if (run_column_is_text(o->column))
        c = run_natural_cmp(x->text, y->text);
    else
        c = (x->number > y->number) - (x->number < y->number);
    return o->descending ? -c : c;
}

static int compare_rows(const void *a, const void *b, void *order)
{
    const struct row *x = a, *y = b;
    int c = compare_keys(&x->key, &y->key, order);
    if (c)
        return c;
    if (x->e->captured_ms != y->e->captured_ms)
        return x->e->captured_ms > y->e->captured_ms ? -1 : 1;
    return strcmp(x->e->name, y->e->name);
}

/* --- tokens: where a page ended --- */

/* o<column>,<a or d>,<n, d or t><key>,<time><hash of the name>; numbers and texts in hex. */
struct mark {
    struct order order;
    struct run_value key;
    char *text; /* key.text */
    int64_t captured_ms;
    uint64_t hash;
};

static uint64_t name_hash(const char *name)
{
    return xp_fnv(XP_FNV_INIT, xp_span_str(name));
}

static char *mark_write(const struct row *last, const struct order *o)
{
    struct xp_buf b;
    uint64_t bits;
    xp_buf_init(&b, (size_t)64 << 10);
    xp_buf_fmt(&b, "o%d,%c,", (int)o->column, o->descending ? 'd' : 'a');
    memcpy(&bits, &last->key.number, sizeof bits);
    if (!last->key.known) {
        xp_buf_byte(&b, 'n');
    } else if (run_column_is_text(o->column)) {
        xp_buf_byte(&b, 't');
        for (const char *p = last->key.text; *p; p++)
            xp_buf_fmt(&b, "%02x", (unsigned char)*p);
    } else {
        xp_buf_fmt(&b, "d%016llx", (unsigned long long)bits);
    }
    xp_buf_fmt(&b, ",%016llx%016llx", (unsigned long long)last->e->captured_ms,
               (unsigned long long)name_hash(last->e->name));
    char *token = b.failed ? NULL : run_span_dup(xp_buf_all(&b));
    xp_buf_fini(&b);
    return token;
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_u64(struct xp_span s, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < s.n; i++) {
        int d = hex_digit(s.p[i]);
        if (d < 0)
            return false;
        *v = *v << 4 | (uint64_t)d;
    }
    return s.n == 16;
}

static bool read_text(struct xp_span s, char **text)
{
    *text = must(calloc(1, s.n / 2 + 1));
    for (size_t i = 0; i + 1 < s.n; i += 2) {
        int hi = hex_digit(s.p[i]), lo = hex_digit(s.p[i + 1]);
        if (hi < 0 || lo < 0 || !(hi || lo))
            return false;
        (*text)[i / 2] = (char)(hi << 4 | lo);
    }
    return s.n % 2 == 0;
}

/* Cuts what is before the next ',' off. */
static struct xp_span cut_field(struct xp_span *s)
{
    const uint8_t *comma = s->n ? memchr(s->p, ',', s->n) : NULL;
    struct xp_span field = *s;
    if (!comma) {
        *s = (struct xp_span){0};
        return field;
    }
    field.n = (size_t)(comma - s->p);
    *s = xp_span_of(comma + 1, s->n - field.n - 1);
    return field;
}

static bool read_key(struct xp_span s, const struct order *o, struct mark *m)
{
    uint64_t bits;
    struct xp_span rest = s.n ? xp_span_of(s.p + 1, s.n - 1) : s;
    m->key.known = s.n && s.p[0] != 'n';
    if (!m->key.known)
        return s.n == 1;
    if (run_column_is_text(o->column) != (s.p[0] == 't'))
        return false;
    if (s.p[0] == 't') {
        bool ok = read_text(rest, &m->text);
        m->key.text = m->text;
        return ok;
    }
    bool ok = s.p[0] == 'd' && read_u64(rest, &bits);
    if (ok)
        memcpy(&m->key.number, &bits, sizeof bits);
    return ok && !isnan(m->key.number);
}

static bool mark_read(struct xp_span token, const struct order *o, struct mark *m)
{
    char head[16];
    uint64_t captured;
    int n = snprintf(head, sizeof head, "o%d", (int)o->column);
    struct xp_span column = cut_field(&token), way = cut_field(&token), key = cut_field(&token);
    *m = (struct mark){.order = *o};
    if (!xp_span_eq(column, xp_span_of(head, (size_t)n)) ||
        !xp_span_eq(way, o->descending ? XP_SPAN_LIT("d") : XP_SPAN_LIT("a")) || token.n != 32 ||
        !read_key(key, o, m) || !read_u64(xp_span_of(token.p, 16), &captured) ||
        !read_u64(xp_span_of(token.p + 16, 16), &m->hash))
        return false;
    m->captured_ms = (int64_t)captured;
    return true;
}

/* The first row behind the mark. If that run is gone, others that are equal to it come again. */
static size_t start_at(const struct rows *rows, const struct mark *m)
{
    size_t first = rows->n;
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *row = &rows->v[i];
        int c = compare_keys(&row->key, &m->key, &m->order);
        if (!c)
            c = (row->e->captured_ms < m->captured_ms) - (row->e->captured_ms > m->captured_ms);
        if (c < 0)
            continue;
        if (c == 0 && name_hash(row->e->name) == m->hash)
            return i + 1;
        first = i < first ? i : first;
        if (c > 0)
            break;
    }
    return first;
}

/* --- the page --- */

static void add_run(struct run_page *page, struct row *row, size_t limit, bool first)
{
    const struct run *r = &row->box->run;
    if (r->n_hosts && page->n < limit)
        page->runs[page->n++] = run_ref(r);
    else if (!r->n_hosts && first && page->n_empty < RUNS_EMPTY_MAX)
        page->empty[page->n_empty++] = run_ref(r);
}

static void fill_page(struct run_index *ri, struct rows *rows, size_t i, bool first,
                      const struct order *o, size_t limit, struct run_page *page)
{
    const struct row *last = NULL;
    size_t looked = i, looks = limit;
    for (; i < rows->n; i++) {
        struct row *row = &rows->v[i];
        if (!row->box && page->n < limit) { /* it is looked into as it is shown */
            if (xp_store_is_remote(row->e->store) && i >= looked)
                looked = look_ahead(ri, rows, i, &looks);
            row->box = run_entry_box(ri, row->e, true);
        }
        bool holds = row->box ? row->box->run.n_hosts > 0 : true;
        if (holds && page->n == limit) {
            page->next = mark_write(last, o);
            return;
        }
        add_run(page, row, limit, first);
        if (holds)
            last = row;
    }
}

static void count(const struct rows *rows, struct run_page *page)
{
    page->total_exact = !rows->some_unknown;
    for (size_t i = 0; i < rows->n; i++) {
        const struct run_box *box = rows->v[i].box;
        page->total += !box || box->run.n_hosts;
        page->looked += box && box->run.n_hosts;
        page->total_exact &= box != NULL;
    }
}

static enum xp_status order_page(struct run_index *ri, const struct run_query *q,
                                 const struct order *o, const struct run_terms *t,
                                 struct run_page *page, struct xp_error *err)
{
    struct mark mark = {0};
    struct rows rows = {0};
    if (q->token.n && !mark_read(q->token, o, &mark)) {
        free(mark.text);
        return xp_fail(err, XP_BAD_REQUEST, 0, "this is no page token of this order");
    }
    struct run_listing *l = run_index_listing(ri);
    page->runs = must(calloc(q->limit, sizeof *page->runs));
    page->empty = must(calloc(RUNS_EMPTY_MAX, sizeof *page->empty));
    rows_take(&rows, l, t);
    know_all(ri, &rows, o, t, q->facts);
    rows_filter(&rows, t);
    if (rows.n)
        qsort_r(rows.v, rows.n, sizeof *rows.v, compare_rows, (void *)o);
    count(&rows, page);
    fill_page(ri, &rows, q->token.n ? start_at(&rows, &mark) : 0, !q->token.n, o, q->limit, page);
    char *text = run_span_dup(q->q);
    run_page_tell(ri, l, text, !q->token.n, page);
    free(text);
    rows_fini(&rows);
    run_listing_unref(l);
    free(mark.text);
    return XP_OK;
}

/* One word without signs is looked for as it is, newest first: nothing more has to be known. */
static bool is_plain(const struct run_query *q, const struct order *o, const struct run_terms *t)
{
    return o->column == RUN_COLUMN_CAPTURED && o->descending &&
           (t->n == 0 || (t->n == 1 && t->only_names && !t->v[0].negated &&
                          xp_span_eq(q->q, xp_span_str(t->v[0].text))));
}

enum xp_status run_index_query(struct run_index *ri, const struct run_query *q,
                               struct run_page *page, struct xp_error *err)
{
    struct order o;
    struct run_terms t = {0};
    *page = (struct run_page){0};
    if (q->limit < 1 || q->limit > RUN_PAGE_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "limit must be from 1 to %d", RUN_PAGE_MAX);
    enum xp_status status = read_order(q->sort, &o, err);
    if (status == XP_OK)
        status = run_terms_parse(q->q, &t, err);
    if (status == XP_OK && is_plain(q, &o, &t))
        status =
            run_index_list(ri, t.n ? q->q : (struct xp_span){0}, q->token, q->limit, page, err);
    else if (status == XP_OK)
        status = order_page(ri, q, &o, &t, page, err);
    run_terms_fini(&t);
    return status;
}
