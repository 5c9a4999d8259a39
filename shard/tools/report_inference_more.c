#include <stdlib.h>

#include "shard/tools/report_inference.h"

/* Which model is asked about; how latencies are distributed; models and tensors by their kinds. */

/* --- one model of several --- */

static int by_latency(const void *a, const void *b)
{
    const struct inference_request *x = *(const struct inference_request *const *)a,
                                   *y = *(const struct inference_request *const *)b;
    uint64_t p = inference_latency(x), q = inference_latency(y);
    if (p != q)
        return p < q ? -1 : 1;
    return (x > y) - (x < y); /* they come sorted */
}

static void choose_programs(struct inference_view *v)
{
    const struct inference_program *all = v->inf.ran.p;
    for (size_t i = 0; i < v->inf.ran.n; i++) {
        bool several = all[i].served == INFERENCE_MODELS;
        if (v->one && !several && (all[i].served == INFERENCE_NOBODY || all[i].model != v->model))
            continue;
        v->ran[v->nran++] = &all[i];
        v->phases |= all[i].phase != INFERENCE_OTHER;
        v->shared |= v->one && several;
    }
}

enum xp_status inference_view_choose(struct inference_view *v, struct xp_span model,
                                     struct xp_error *err)
{
    const struct inference_request *requests = v->inf.requests.p;
    const struct inference_batch *batches = v->inf.batches.p;
    v->one = model.n != 0;
    if (v->one) {
        uint32_t id = xp_strpool_find(&v->inf.models, model);
        if (id == XP_STRPOOL_FULL || !id)
            return xp_fail(err, XP_BAD_REQUEST, 0, "no request was for the model '%.*s'",
                           (int)(model.n < 100 ? model.n : 100), (const char *)model.p);
        v->model = (int32_t)id - 1;
    }
    v->requests = xp_arena_alloc(v->a, (v->inf.requests.n + 1) * sizeof *v->requests);
    v->chosen = xp_arena_alloc(v->a, (v->inf.requests.n + 1) * sizeof *v->chosen);
    v->batches = xp_arena_alloc(v->a, (v->inf.batches.n + 1) * sizeof *v->batches);
    v->ran = xp_arena_alloc(v->a, (v->inf.ran.n + 1) * sizeof *v->ran);
    if (!v->requests || !v->chosen || !v->batches || !v->ran)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
    for (size_t i = 0; i < v->inf.requests.n; i++)
        if (!v->one || requests[i].model == v->model)
            v->requests[v->nrequests++] = &requests[i];
    for (size_t i = 0; i < v->inf.batches.n; i++)
        if (!v->one || batches[i].model == v->model)
            v->batches[v->nbatches++] = &batches[i];
    if (v->nrequests)
        qsort(v->requests, v->nrequests, sizeof *v->requests, by_latency);
    choose_programs(v);
    return XP_OK;
}

/* --- how long they took --- */

#define BUCKETS 40 /* at most; few requests make few */

static uint64_t buckets_for(size_t requests)
{
    uint64_t n = 8;
    while (n < BUCKETS && n * n < 4 * (uint64_t)requests)
        n++;
    return n;
}

struct buckets {
    uint64_t from, wide, count[BUCKETS];
    uint32_t n;
};

static void bucket_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct buckets *b = ctx;
    *x = report_of_u64(b->from + i * b->wide);
    *y = report_of_u64(b->count[i]);
}

void report_inference_distribution(struct report *r, struct inference_view *v)
{
    static const char *const names[] = {"requests"};
    struct buckets b = {.wide = 1};
    if (v->nrequests) {
        uint64_t least = inference_latency(v->requests[0]);
        uint64_t most = inference_latency(v->requests[v->nrequests - 1]);
        b.from = least;
        b.wide = (most - least) / buckets_for(v->nrequests) + 1;
        b.n = (uint32_t)((most - least) / b.wide + 1);
    }
    for (size_t i = 0; i < v->nrequests; i++)
        b.count[(inference_latency(v->requests[i]) - b.from) / b.wide]++;
    report_series(r, &(struct report_points){.id = "latencies",
                                             .title = "How long requests took",
                                             .x_label = "from",
                                             .x_unit = "ps",
                                             .y_label = "Requests",
                                             .y_unit = "count",
                                             .kind = "bar",
                                             .names = names,
                                             .nnames = 1,
                                             .n = b.n,
                                             .point = bucket_point,
                                             .ctx = &b});
}

/* --- models --- */

static const struct report_column model_columns[] = {
    {"model", "Model", "", REPORT_COL_TEXT, false, "as the server names it"},
    {"requests", "Requests", "count", REPORT_COL_NUMBER, true, ""},
    {"latency", "Latency", "ps", REPORT_COL_NUMBER, false, "mean"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false, "half of the requests took no longer"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % took no longer"},
    {"batches", "Batches", "count", REPORT_COL_NUMBER, true, ""},
    {"padding", "Padding", "fraction", REPORT_COL_NUMBER, false, "padding / size of its batches"},
};

struct model_row {
    int32_t model;
    uint64_t requests, sum, p50, p99, batches;
    double size, padding;
};

struct model_view {
    const struct inference_view *v;
    struct model_row *rows; /* by model + 1 */
    size_t n;
};

static void model_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct model_view *m = ctx;
    const struct model_row *w = &m->rows[i];
    c[0] = inference_model_cell(m->v, w->model);
    c[1] = report_of_u64(w->requests);
    c[2] = w->requests ? report_of_u64(w->sum / w->requests) : report_none();
    c[3] = w->requests ? report_of_u64(w->p50) : report_none();
    c[4] = w->requests ? report_of_u64(w->p99) : report_none();
    c[5] = report_of_u64(w->batches);
    c[6] = report_ratio(w->padding, w->size);
}

/* Requests come by how long they took: so do those of one model. */
static void add_requests(struct model_view *m, const struct inference_request *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model_row *w = &m->rows[q[i].model + 1];
        w->requests++;
        w->sum += inference_latency(&q[i]);
    }
    uint64_t *seen = xp_arena_zalloc(m->v->a, (m->n + 1) * sizeof *seen);
    for (size_t i = 0; seen && i < n; i++) {
        struct model_row *w = &m->rows[q[i].model + 1];
        uint64_t at = seen[q[i].model + 1]++;
        if (at == inference_place(w->requests, 50))
            w->p50 = inference_latency(&q[i]);
        if (at == inference_place(w->requests, 99))
            w->p99 = inference_latency(&q[i]);
    }
}

static void add_batches(struct model_view *m, const struct inference_batch *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model_row *w = &m->rows[b[i].model + 1];
        w->batches++;
        w->size += b[i].size > 0 ? (double)b[i].size : 0;
        w->padding += b[i].size > 0 ? (double)b[i].padding : 0;
    }
}

/* All of them, whichever is asked about: it is what one chooses from. */
void report_inference_models(struct report *r, struct inference_view *v)
{
    size_t all = (size_t)v->inf.models.n + 1, n = 0;
    struct model_view m = {v, xp_arena_zalloc(v->a, all * sizeof *m.rows), all};
    if (v->inf.models.n < 3) /* none, and one */
        return;
    if (!m.rows) {
        r->busy = true;
        return;
    }
    add_requests(&m, v->inf.requests.p, v->inf.requests.n);
    add_batches(&m, v->inf.batches.p, v->inf.batches.n);
    for (size_t i = 0; i < all; i++) {
        m.rows[i].model = (int32_t)i - 1;
        if (m.rows[i].requests || m.rows[i].batches)
            m.rows[n++] = m.rows[i];
    }
    report_table(r, &(struct report_rows){.id = "models",
                                          .title = "Models",
                                          .columns = model_columns,
                                          .ncolumns = sizeof model_columns / sizeof *model_columns,
                                          .n = n,
                                          .row = model_row,
                                          .ctx = &m,
                                          .sort = "requests",
                                          .descending = true});
}

/* --- batches by size --- */

#define SIZES 64

struct sizes {
    struct size {
        int64_t size;
        uint64_t batches, used, padding;
    } of[SIZES];
    uint32_t n, all;
};

static int by_size(const void *a, const void *b)
{
    int64_t x = (*(const struct inference_batch *const *)a)->size;
    int64_t y = (*(const struct inference_batch *const *)b)->size;
    return (x > y) - (x < y);
}

static void size_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct sizes *s = ctx;
    *x = report_of_i64(s->of[i].size);
    y[0] = report_of_u64(s->of[i].used);
    y[1] = report_of_u64(s->of[i].padding);
}

static bool add_sizes(struct sizes *s, const struct inference_view *v)
{
    const struct inference_batch **b = xp_arena_alloc(v->a, (v->nbatches + 1) * sizeof *b);
    size_t n = 0;
    if (!b)
        return false;
    for (size_t i = 0; i < v->nbatches; i++)
        if (v->batches[i]->size > 0)
            b[n++] = v->batches[i];
    if (n)
        qsort(b, n, sizeof *b, by_size);
    for (size_t i = 0; i < n; i++) {
        int64_t padding = b[i]->padding < 0 ? 0 : b[i]->padding;
        padding = padding < b[i]->size ? padding : b[i]->size;
        bool fresh = !i || b[i]->size != b[i - 1]->size;
        s->all += fresh;
        if (fresh && s->n < SIZES)
            s->of[s->n++] = (struct size){.size = b[i]->size};
        struct size *to = &s->of[s->n - 1];
        if (to->size != b[i]->size)
            continue;
        to->batches++;
        to->used += (uint64_t)(b[i]->size - padding);
        to->padding += (uint64_t)padding;
    }
    return true;
}

/* What of the batches of each size was work, and what was padding. */
void report_inference_sizes(struct report *r, struct inference_view *v)
{
    static const char *const names[] = {"used", "padding"};
    struct sizes s = {.n = 0};
    if (!add_sizes(&s, v)) {
        r->busy = true;
        return;
    }
    if (s.n)
        report_series(r, &(struct report_points){.id = "batch_sizes",
                                                 .title = "Batches by size: used and padding",
                                                 .x_label = "size",
                                                 .x_unit = "",
                                                 .y_label = "Of all batches of the size",
                                                 .y_unit = "count",
                                                 .kind = "stack",
                                                 .names = names,
                                                 .nnames = 2,
                                                 .n = s.n,
                                                 .total = s.all > s.n ? s.all : 0,
                                                 .point = size_point,
                                                 .ctx = &s});
}

/* --- tensors --- */

static const struct report_column tensor_columns[] = {
    {"pattern", "Tensors", "", REPORT_COL_TEXT, false,
     "of one request or batch: event, shape and layout of each"},
    {"model", "Model", "", REPORT_COL_TEXT, false, "as the server names it"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "requests and batches"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of the occurrences"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "laying them out for the device, and back"},
    {"mean", "Mean", "ps", REPORT_COL_NUMBER, false, "each time"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false, "half took no longer"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % took no longer"},
};

struct tensor_view {
    const struct inference_view *v;
    const struct inference_tensor **all;
    size_t *first; /* of a row, and the end of the last */
    struct xp_span *patterns;
    size_t n, rows;
};

static int tensor_order(const void *a, const void *b)
{
    const struct inference_tensor *x = *(const struct inference_tensor *const *)a,
                                  *y = *(const struct inference_tensor *const *)b;
    if (x->pattern != y->pattern)
        return x->pattern < y->pattern ? -1 : 1;
    if (x->model != y->model)
        return x->model < y->model ? -1 : 1;
    return (x->ps > y->ps) - (x->ps < y->ps);
}

/* XProf's pages want markup between them. */
static struct xp_span plain(struct xp_span s, struct xp_arena *a)
{
    uint8_t *to = xp_arena_alloc(a, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; to && i < s.n; i++)
        if (s.n - i >= 4 && memcmp(s.p + i, "<br>", 4) == 0) {
            to[n++] = ',';
            to[n++] = ' ';
            i += 3;
        } else {
            to[n++] = s.p[i];
        }
    return xp_span_of(to, n);
}

static void tensor_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct tensor_view *t = ctx;
    const struct inference_tensor **of = t->all + t->first[i];
    size_t n = t->first[i + 1] - t->first[i];
    uint64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += of[k]->ps;
    c[0] = report_of_text(t->patterns[i]);
    c[1] = inference_model_cell(t->v, of[0]->model);
    c[2] = report_of_u64(n);
    c[3] = report_ratio((double)n, (double)t->n);
    c[4] = report_of_u64(sum);
    c[5] = report_of_u64(sum / n);
    c[6] = report_of_u64(of[inference_place(n, 50)]->ps);
    c[7] = report_of_u64(of[inference_place(n, 99)]->ps);
}

static bool group_tensors(struct tensor_view *t)
{
    const struct inference_tensor *all = t->v->inf.tensors.p;
    size_t most = t->v->inf.tensors.n;
    struct xp_arena *a = t->v->a;
    t->all = xp_arena_alloc(a, (most + 1) * sizeof *t->all);
    t->first = xp_arena_alloc(a, (most + 2) * sizeof *t->first);
    t->patterns = xp_arena_alloc(a, (most + 1) * sizeof *t->patterns);
    if (!t->all || !t->first || !t->patterns)
        return false;
    for (size_t i = 0; i < most; i++)
        if (!t->v->one || all[i].model == t->v->model)
            t->all[t->n++] = &all[i];
    if (t->n)
        qsort(t->all, t->n, sizeof *t->all, tensor_order);
    for (size_t i = 0; i < t->n; i++)
        if (!i || t->all[i]->pattern != t->all[i - 1]->pattern ||
            t->all[i]->model != t->all[i - 1]->model) {
            t->patterns[t->rows] =
                plain(xp_strpool_get(&t->v->inf.patterns, t->all[i]->pattern), a);
            t->first[t->rows++] = i;
        }
    t->first[t->rows] = t->n;
    return true;
}

void report_inference_tensors(struct report *r, struct inference_view *v)
{
    struct tensor_view t = {.v = v};
    if (!group_tensors(&t)) {
        r->busy = true;
        return;
    }
    report_table(r,
                 &(struct report_rows){.id = "tensors",
                                       .title = "Tensors handed to the device and back",
                                       .columns = tensor_columns,
                                       .ncolumns = sizeof tensor_columns / sizeof *tensor_columns,
                                       .n = t.rows,
                                       .row = tensor_row,
                                       .ctx = &t,
                                       .sort = "total",
                                       .descending = true});
}
