#include <stdio.h>
#include <stdlib.h>

#include "shard/report/report_int.h"

/* A row while its place is sought. */
struct key {
    struct xp_span text;
    double num;
    uint64_t i;
    bool none;
};

struct sum {
    uint64_t whole;
    double real;
    bool fraction; /* some value was no whole number, or they do not fit */
    bool any;
};

struct view {
    struct report *r;
    const struct report_rows *t;
    struct report_cell *cells;
    struct key *keys;
    uint64_t nkeys;
    struct sum *all, *shown;
    uint32_t sort; /* column, or ncolumns */
    bool descending, by_text;
    bool aside; /* what is asked of rows is not asked of these */
};

static void add(struct sum *s, const struct report_cell *c)
{
    uint64_t v = c->kind == REPORT_U64 ? c->u : (uint64_t)c->i;
    if (!report_is_number(c))
        return;
    s->any = true;
    s->real += report_value(c);
    if (c->kind == REPORT_DOUBLE || (c->kind == REPORT_I64 && c->i < 0) ||
        __builtin_add_overflow(s->whole, v, &s->whole))
        s->fraction = true;
}

static void sum_row(const struct view *v, struct sum *sums)
{
    for (uint32_t c = 0; c < v->t->ncolumns; c++)
        if (v->t->columns[c].sum)
            add(&sums[c], &v->cells[c]);
}

static void fill(struct view *v, uint64_t i)
{
    for (uint32_t c = 0; c < v->t->ncolumns; c++)
        v->cells[c] = report_none();
    v->t->row(v->t->ctx, i, v->cells);
}

/* --- filter --- */

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

static bool holds(struct xp_span s, struct xp_span what)
{
    for (size_t i = 0; i + what.n <= s.n; i++) {
        size_t k = 0;
        while (k < what.n && lower(s.p[i + k]) == lower(what.p[k]))
            k++;
        if (k == what.n)
            return true;
    }
    return false;
}

static bool fits(const struct report *r, struct xp_span s)
{
    return r->pattern ? xp_regex_find(r->pattern, s) : holds(s, r->filter);
}

static bool matches(const struct view *v)
{
    char id[24];
    if (!v->r->filter.n || v->aside)
        return true;
    for (uint32_t c = 0; c < v->t->ncolumns; c++) {
        struct xp_span s = v->cells[c].s;
        if (v->cells[c].kind == REPORT_ID) {
            snprintf(id, sizeof id, "%llu", (unsigned long long)v->cells[c].u);
            s = xp_span_str(id);
        } else if (v->cells[c].kind != REPORT_TEXT) {
            continue;
        }
        if (fits(v->r, s))
            return true;
    }
    return false;
}

/* --- order --- */

static int compare(const void *a, const void *b, void *ctx)
{
    const struct key *x = a, *y = b;
    const struct view *v = ctx;
    int c;
    if (x->none != y->none) /* n/a comes last, either way */
        return x->none ? 1 : -1;
    c = v->by_text ? xp_span_cmp(x->text, y->text) : 0;
    c = c ? c : (x->num > y->num) - (x->num < y->num);
    c = v->descending ? -c : c;
    return c ? c : (x->i > y->i) - (x->i < y->i);
}

static bool find_column(struct view *v, struct xp_span id)
{
    for (uint32_t c = 0; c < v->t->ncolumns; c++)
        if (xp_span_eq(id, xp_span_str(v->t->columns[c].id))) {
            v->sort = c;
            v->by_text =
                v->t->columns[c].type == REPORT_COL_TEXT || v->t->columns[c].type == REPORT_COL_OP;
            return true;
        }
    return false;
}

/* sort=column or sort=-column, where the table has it; else its own order. */
static void choose_order(struct view *v)
{
    struct xp_span s = v->aside ? (struct xp_span){0} : v->r->sort;
    bool down = s.n && s.p[0] == '-';
    v->sort = v->t->ncolumns;
    if (s.n && find_column(v, down ? xp_span_of(s.p + 1, s.n - 1) : s)) {
        v->descending = down;
        return;
    }
    if (v->t->sort)
        XP_ASSERT(find_column(v, xp_span_str(v->t->sort)));
    v->descending = v->t->descending;
}

/* All rows once: sums, and a key of each that matches. */
static void gather(struct view *v)
{
    for (uint64_t i = 0; i < v->t->n; i++) {
        if (!(i & 1023) && out_cancelled(v->r->out))
            return;
        fill(v, i);
        sum_row(v, v->all);
        if (!matches(v))
            continue;
        struct key *k = &v->keys[v->nkeys++];
        *k = (struct key){.i = i};
        if (v->sort == v->t->ncolumns)
            continue;
        const struct report_cell *c = &v->cells[v->sort];
        k->none = c->kind == REPORT_NONE || (c->kind == REPORT_DOUBLE && !report_is_number(c));
        if (c->kind == REPORT_TEXT)
            k->text = c->s;
        else
            k->num = report_value(c);
    }
    if (v->sort < v->t->ncolumns && v->nkeys)
        qsort_r(v->keys, v->nkeys, sizeof *v->keys, compare, v);
}

/* --- JSON --- */

static const char *const types[] = {"number", "text", "bool", "op", "bytes"};

void report_write_columns(struct xp_json *j, const struct report_column *c, uint32_t n)
{
    xp_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        xp_json_obj(j);
        report_write_key(j, "id", c[i].id);
        report_write_key(j, "label", c[i].label);
        report_write_key(j, "unit", c[i].unit ? c[i].unit : "");
        report_write_key(j, "type", types[c[i].type]);
        report_write_key(j, "definition", c[i].definition);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

static uint64_t write_rows(struct view *v, struct xp_json *j)
{
    struct report *r = v->r;
    size_t room = report_room(r), begin = j->b->n;
    uint64_t limit = v->aside ? UINT64_MAX : r->limit, skip = v->aside ? 0 : r->skip;
    uint64_t first = skip < v->nkeys ? skip : v->nkeys, n = 0;
    if (!r->table.n && room > REPORT_TABLE_MAX)
        room = REPORT_TABLE_MAX;
    room = room > 32768 ? room - 32768 : 0; /* for what follows the rows */
    for (uint64_t k = first; k < v->nkeys && n < limit; k++, n++) {
        size_t before = j->b->n;
        if (before - begin >= room)
            break;
        fill(v, v->keys[k].i);
        sum_row(v, v->shown);
        xp_json_arr(j);
        for (uint32_t c = 0; c < v->t->ncolumns; c++)
            report_write_cell(j, &v->cells[c]);
        xp_json_arr_end(j);
    }
    return n;
}

static void write_rest(struct view *v, struct xp_json *j, uint64_t shown)
{
    xp_json_key(j, "rest");
    if (shown == v->t->n) {
        xp_json_null(j);
        return;
    }
    xp_json_obj(j);
    xp_json_key(j, "rows"), xp_json_u64(j, v->t->n - shown);
    for (uint32_t c = 0; c < v->t->ncolumns; c++) {
        if (!v->t->columns[c].sum || !v->all[c].any)
            continue;
        xp_json_key(j, v->t->columns[c].id);
        if (v->all[c].fraction)
            xp_json_double(j, v->all[c].real - v->shown[c].real);
        else
            xp_json_u64(j, v->all[c].whole - v->shown[c].whole);
    }
    xp_json_obj_end(j);
}

static void write_totals(struct view *v, struct xp_json *j)
{
    xp_json_key(j, "totals");
    xp_json_obj(j);
    for (uint32_t c = 0; c < v->t->ncolumns; c++) {
        if (!v->t->columns[c].sum || !v->all[c].any)
            continue;
        xp_json_key(j, v->t->columns[c].id);
        if (v->all[c].fraction)
            xp_json_double(j, v->all[c].real);
        else
            xp_json_u64(j, v->all[c].whole);
    }
    xp_json_obj_end(j);
}

static void write_json(struct view *v)
{
    const struct report_rows *t = v->t;
    struct xp_json *j = &v->r->tables.j;
    xp_json_obj(j);
    report_write_key(j, "id", t->id);
    report_write_key(j, "title", t->title);
    report_write_key(j, "note", t->note);
    xp_json_key(j, "columns");
    report_write_columns(j, t->columns, t->ncolumns);
    xp_json_key(j, "rows");
    xp_json_arr(j);
    uint64_t shown = write_rows(v, j);
    xp_json_arr_end(j);
    xp_json_key(j, "total_rows"), xp_json_u64(j, t->n);
    xp_json_key(j, "matched_rows"), xp_json_u64(j, v->nkeys);
    write_totals(v, j);
    write_rest(v, j, shown);
    xp_json_key(j, "sort");
    if (v->sort < t->ncolumns) {
        xp_json_obj(j);
        report_write_key(j, "column", t->columns[v->sort].id);
        xp_json_key(j, "descending"), xp_json_bool(j, v->descending);
        xp_json_obj_end(j);
    } else {
        xp_json_null(j);
    }
    xp_json_obj_end(j);
}

/* --- CSV --- */

static void quote(struct xp_buf *b, struct xp_span s)
{
    xp_buf_byte(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            xp_buf_byte(b, '"');
        xp_buf_byte(b, s.p[i]);
    }
    xp_buf_byte(b, '"');
}

static void csv_row(const struct view *v, struct xp_buf *b)
{
    for (uint32_t c = 0; c < v->t->ncolumns; c++) {
        const struct report_cell *cell = &v->cells[c];
        struct xp_json j;
        if (c)
            xp_buf_byte(b, ',');
        if (cell->kind == REPORT_TEXT) {
            quote(b, cell->s);
        } else if (report_is_number(cell) || cell->kind == REPORT_BOOL || cell->kind == REPORT_ID) {
            xp_json_init(&j, b);
            report_write_cell(&j, cell);
        }
    }
    xp_buf_str(b, "\r\n");
}

/* A download: the whole table, unless a limit was asked for. The header is id, or id (unit). */
static void write_csv(struct view *v)
{
    struct xp_buf *b = &v->r->out->text;
    uint64_t n = 0;
    for (uint32_t c = 0; c < v->t->ncolumns; c++) {
        const struct report_column *col = &v->t->columns[c];
        bool unit = col->unit && col->unit[0];
        xp_buf_fmt(b, "%s\"%s%s%s%s\"", c ? "," : "", col->id, unit ? " (" : "",
                   unit ? col->unit : "", unit ? ")" : "");
    }
    xp_buf_str(b, "\r\n");
    for (uint64_t k = v->r->skip; k < v->nkeys && n < v->r->limit; k++, n++) {
        fill(v, v->keys[k].i);
        csv_row(v, b);
        out_flush(v->r->out);
    }
    v->r->csv_done = true;
}

void report_table(struct report *r, const struct report_rows *t)
{
    struct view v = {.r = r, .t = t, .aside = t->aside && !r->table.n};
    xp_buf_fmt(&r->table_ids, "%s,", t->id);
    if (r->table.n ? !xp_span_eq(r->table, xp_span_str(t->id)) : r->csv && r->csv_done)
        return;
    XP_ASSERT(t->ncolumns <= REPORT_COLUMNS_MAX);
    v.cells = xp_arena_zalloc(r->a, (t->ncolumns + 1) * sizeof *v.cells);
    v.all = xp_arena_zalloc(r->a, (t->ncolumns + 1) * sizeof *v.all);
    v.shown = xp_arena_zalloc(r->a, (t->ncolumns + 1) * sizeof *v.shown);
    v.keys = t->n < SIZE_MAX / sizeof *v.keys ? malloc((t->n + 1) * sizeof *v.keys) : NULL;
    if (!v.cells || !v.all || !v.shown || !v.keys) {
        r->busy = true;
        free(v.keys);
        return;
    }
    choose_order(&v);
    gather(&v);
    if (r->csv)
        write_csv(&v);
    else
        write_json(&v);
    free(v.keys);
}
