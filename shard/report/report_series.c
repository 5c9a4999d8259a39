#include <stdlib.h>

#include "shard/report/report_int.h"

/* --- series --- */

struct view {
    struct report *r;
    const struct report_points *s;
    struct report_cell x, y[REPORT_NAMES_MAX];
};

static void fill(struct view *v, uint64_t i)
{
    v->x = report_none();
    for (uint32_t k = 0; k < v->s->nnames; k++)
        v->y[k] = report_none();
    v->s->point(v->s->ctx, i, &v->x, v->y);
}

static double height(const struct view *v)
{
    double sum = 0;
    for (uint32_t k = 0; k < v->s->nnames; k++)
        sum += report_value(&v->y[k]);
    return sum;
}

static void write_point(struct view *v, struct xp_json *j, uint64_t i)
{
    fill(v, i);
    xp_json_arr(j);
    report_write_cell(j, &v->x);
    for (uint32_t k = 0; k < v->s->nnames; k++)
        report_write_cell(j, &v->y[k]);
    xp_json_arr_end(j);
}

/* Of each stretch the lowest and the highest point, in their order. */
static void write_reduced(struct view *v, struct xp_json *j)
{
    uint64_t n = v->s->n, stretches = REPORT_POINTS / 2;
    for (uint64_t k = 0; k < stretches; k++) {
        uint64_t from = (uint64_t)((__uint128_t)n * k / stretches);
        uint64_t to = (uint64_t)((__uint128_t)n * (k + 1) / stretches), low = from, high = from;
        double least = 0, most = 0;
        if (out_cancelled(v->r->out))
            return;
        for (uint64_t i = from; i < to; i++) {
            fill(v, i);
            double h = height(v);
            if (i == from || h < least)
                least = h, low = i;
            if (i == from || h > most)
                most = h, high = i;
        }
        write_point(v, j, low < high ? low : high);
        if (low != high)
            write_point(v, j, low < high ? high : low);
    }
}

static void write_axis(struct xp_json *j, const char *key, const char *label, const char *unit,
                       const char *type)
{
    xp_json_key(j, key);
    xp_json_obj(j);
    report_write_key(j, "label", label);
    report_write_key(j, "unit", unit ? unit : "");
    if (type)
        report_write_key(j, "type", type);
    xp_json_obj_end(j);
}

void report_series(struct report *r, const struct report_points *s)
{
    struct view v = {.r = r, .s = s};
    struct xp_json *j = &r->series.j;
    bool reduced = s->n > REPORT_POINTS;

    XP_ASSERT(s->nnames <= REPORT_NAMES_MAX);
    if (r->csv || r->table.n || report_room(r) < (256 << 10))
        return;
    xp_json_obj(j);
    report_write_key(j, "id", s->id);
    report_write_key(j, "title", s->title);
    write_axis(j, "x", s->x_label, s->x_unit, s->x_text ? "text" : "number");
    write_axis(j, "y", s->y_label, s->y_unit, NULL);
    report_write_key(j, "kind", s->kind);
    xp_json_key(j, "names");
    xp_json_arr(j);
    for (uint32_t k = 0; k < s->nnames; k++)
        xp_json_str(j, s->names[k]);
    xp_json_arr_end(j);
    xp_json_key(j, "points");
    xp_json_arr(j);
    if (reduced)
        write_reduced(&v, j);
    for (uint64_t i = 0; !reduced && i < s->n; i++)
        write_point(&v, j, i);
    xp_json_arr_end(j);
    xp_json_key(j, "total_points"), xp_json_u64(j, s->total > s->n ? s->total : s->n);
    xp_json_key(j, "reduced"), xp_json_bool(j, reduced || s->total > s->n);
    xp_json_obj_end(j);
}

/* --- the tree --- */

struct pick {
    double weight;
    uint32_t i;
};

static int by_weight(const void *a, const void *b)
{
    const struct pick *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i); /* parents before children */
}

static void get(const struct report_nodes *t, uint64_t i, int64_t *parent, struct xp_span *name,
                struct report_cell *values)
{
    *parent = -1;
    *name = (struct xp_span){0};
    for (uint32_t c = 0; c < t->ncolumns; c++)
        values[c] = report_none();
    t->node(t->ctx, i, parent, name, values);
}

/* place[i]: 1 + the number that node i has in the answer; 0: it is left out. */
static uint32_t *choose(struct report *r, const struct report_nodes *t)
{
    struct report_cell values[REPORT_COLUMNS_MAX];
    uint32_t *place = calloc(t->n + 1, sizeof *place), n = 0;
    struct pick *v = malloc((t->n + 1) * sizeof *v);
    for (uint64_t i = 0; place && v && i < t->n; i++) {
        struct xp_span name;
        int64_t parent;
        v[i] = (struct pick){0, (uint32_t)i};
        if (t->weight && t->n > r->limit) {
            get(t, i, &parent, &name, values);
            v[i].weight = report_value(&values[t->weight - 1]);
        }
    }
    if (place && v && t->weight && t->n > r->limit)
        qsort(v, t->n, sizeof *v, by_weight);
    for (uint64_t i = 0; place && v && i < t->n && i < r->limit; i++)
        place[v[i].i] = 1;
    for (uint64_t i = 0; place && i < t->n; i++)
        place[i] = place[i] ? ++n : 0;
    r->busy |= !place || !v;
    free(v);
    return place;
}

static void write_node(struct xp_json *j, const struct report_nodes *t, uint64_t i,
                       const uint32_t *place)
{
    struct report_cell values[REPORT_COLUMNS_MAX];
    struct xp_span name;
    int64_t parent;
    get(t, i, &parent, &name, values);
    struct report_cell text = report_of_text(name);
    xp_json_obj(j);
    xp_json_key(j, "parent"), xp_json_i64(j, parent < 0 ? -1 : (int64_t)place[parent] - 1);
    xp_json_key(j, "name"), report_write_cell(j, &text);
    xp_json_key(j, "values");
    xp_json_arr(j);
    for (uint32_t c = 0; c < t->ncolumns; c++)
        report_write_cell(j, &values[c]);
    xp_json_arr_end(j);
    xp_json_obj_end(j);
}

void report_tree(struct report *r, const struct report_nodes *t)
{
    struct xp_json *j = &r->tree.j;
    size_t room = report_room(r);
    XP_ASSERT(t->ncolumns <= REPORT_COLUMNS_MAX && t->weight <= t->ncolumns && t->n < INT32_MAX);
    if (r->csv || r->table.n || r->tree.b.n)
        return;
    uint32_t *place = choose(r, t);
    room = room > (64 << 10) ? room - (64 << 10) : 0;
    xp_json_obj(j);
    report_write_key(j, "id", t->id);
    xp_json_key(j, "columns");
    report_write_columns(j, t->columns, t->ncolumns);
    xp_json_key(j, "nodes");
    xp_json_arr(j);
    for (uint64_t i = 0; place && i < t->n && j->b->n < room; i++)
        if (place[i])
            write_node(j, t, i, place);
    xp_json_arr_end(j);
    xp_json_key(j, "total_nodes"), xp_json_u64(j, t->n);
    xp_json_obj_end(j);
    free(place);
}
