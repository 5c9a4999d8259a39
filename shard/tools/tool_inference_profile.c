/* Requests, batches and where their time went. */
#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/inference_facts.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/std_sort.h"
#include "shard/tools/table.h"

#define SHOWN_EACH 10 /* of each wanted percentile */

static const struct {
    double percent, width;
} wanted[] = {{50.0, 1}, {75.0, 1}, {90.0, 1}, {99.0, 0.5}, {99.9, 0.05}, {99.99, 0.005}};
#define NWANTED (sizeof wanted / sizeof wanted[0])

struct page {
    struct inference *inf;
    struct tables *t;
    bool batching;
    struct std_sort_item *order; /* of one model's requests or batches */
    struct std_sort_item *shown;
    size_t nshown;
};

static double ms(uint64_t ps)
{
    return (double)ps / 1e9;
}

/* All if they are few, else some about each wanted percentile. */
static void sample(struct page *p, size_t n)
{
    p->nshown = 0;
    if (n <= NWANTED * SHOWN_EACH) {
        for (size_t i = 0; i < n; i++)
            p->shown[p->nshown++] = (struct std_sort_item){i, p->order[i].index};
        return;
    }
    size_t from = 0;
    for (size_t w = 0; w < NWANTED; w++) {
        size_t got = 0;
        for (size_t k = from; k < n; k++) {
            double percent = 100.0 * (double)k / (double)n;
            if (percent >= wanted[w].percent + wanted[w].width) {
                from = k;
                break;
            }
            if (percent >= wanted[w].percent && got++ < SHOWN_EACH)
                p->shown[p->nshown++] = (struct std_sort_item){k, p->order[k].index};
        }
    }
}

static void prop_double(struct tables *t, const char *name, const char *format, double v)
{
    char text[64];
    int n = snprintf(text, sizeof text, format, v);
    table_prop(t, name, xp_span_of(text, (size_t)n));
}

static void cell_format(struct tables *t, const char *format, double v)
{
    char text[64];
    int n = snprintf(text, sizeof text, format, v);
    table_str(t, xp_span_of(text, (size_t)n));
}

static void cell_i64(struct tables *t, const char *format, int64_t v)
{
    char text[64];
    int n = snprintf(text, sizeof text, format, (long long)v);
    table_str(t, xp_span_of(text, (size_t)n));
}

/* --- requests --- */

static const struct inference_request *request_at(const struct page *p, size_t i)
{
    return &VEC(p->inf->requests, struct inference_request)[i];
}

static const struct inference_batch *batch_at(const struct page *p, size_t i)
{
    return &VEC(p->inf->batches, struct inference_batch)[i];
}

static uint64_t lasted(const struct inference_request *r)
{
    return (uint64_t)r->end_ps - (uint64_t)r->begin_ps;
}

/* Sums of several; the mean of all. XProf's are whole picoseconds. */
struct request_sum {
    uint64_t n, lasted_ps, delay_ps, part_ps[INFERENCE_PARTS];
    int64_t size;
};

static void sum_request(struct request_sum *s, const struct inference_request *r)
{
    s->n++;
    s->lasted_ps += lasted(r);
    s->delay_ps += (uint64_t)r->delay_ps;
    s->size += r->size;
    for (int i = 0; i < INFERENCE_PARTS; i++)
        s->part_ps[i] += r->part_ps[i];
}

static void put_request_cells(struct page *p, const struct request_sum *s, const char *throughput)
{
    static const uint8_t parts[] = {INFERENCE_PREPROCESS, INFERENCE_RUNTIME, INFERENCE_TO_DEVICE,
                                    INFERENCE_TO_HOST,    INFERENCE_COMPUTE, INFERENCE_POSTPROCESS,
                                    INFERENCE_IDLE};
    uint64_t n = s->n ? s->n : 1;
    table_num(p->t, ms(s->lasted_ps / n));
    if (p->batching) {
        int64_t mean = s->size / (int64_t)n; /* whole, as XProf has it */
        table_num(p->t, (double)mean);
        table_num(p->t, ms(s->delay_ps / n));
        table_cstr(p->t, throughput);
    }
    for (size_t i = 0; i < sizeof parts; i++)
        table_num(p->t, ms(s->part_ps[parts[i]] / n));
    table_cstr(p->t, ""); /* a link, which XProf leaves empty here */
}

static void put_request_columns(struct page *p)
{
    struct tables *t = p->t;
    table_col(t, "percentile", TABLE_STRING, "Percentile");
    table_col(t, "request_id", TABLE_STRING, "Request ID");
    table_col(t, "latency_ms", TABLE_NUMBER, "Latency");
    if (p->batching) {
        table_col(t, "batching_request_size", TABLE_NUMBER, "Request size");
        table_col(t, "host_batch_formation", TABLE_NUMBER, "Host batch formation");
        table_col(t, "throughput", TABLE_STRING, "Throughput");
    }
    table_col(t, "host_preprocessing", TABLE_NUMBER, "Host preprocess");
    table_col(t, "host_runtime", TABLE_NUMBER, "Host runtime");
    table_col(t, "data_transfer_h2d", TABLE_NUMBER, "Data transfer H2D");
    table_col(t, "data_transfer_d2h", TABLE_NUMBER, "Data transfer D2H");
    table_col(t, "device_compute", TABLE_NUMBER, "Device compute");
    table_col(t, "host_postprocess", TABLE_NUMBER, "Host postprocess");
    table_col(t, "idle time", TABLE_NUMBER, "Idle time");
    table_col(t, "trace_viewer_url", TABLE_STRING, "Trace Viewer URL");
}

/* Of a model: how many a second, and how long one took. */
struct rate {
    double per_s, mean_ms;
};

static struct rate rate_of(uint64_t n, uint64_t lasted_ps, int64_t first, int64_t last)
{
    struct rate r = {0, 0};
    if (n) {
        r.per_s = (double)n / ((double)((uint64_t)last - (uint64_t)first) / 1e12);
        r.mean_ms = (double)lasted_ps / 1e6 / (double)n / 1e3;
    }
    return r;
}

/* --- by batch size --- */

struct size_sum {
    int64_t size;
    struct request_sum requests;
    uint64_t n, lasted_ps, delay_ps, device_ps;
    int64_t padding, padded;
};

struct sizes {
    struct vec v; /* struct size_sum, ascending */
    struct size_sum all;
};

static struct size_sum *size_of(struct sizes *s, int64_t size)
{
    struct size_sum *v = s->v.p;
    size_t i = 0;
    while (i < s->v.n && v[i].size < size)
        i++;
    if (i < s->v.n && v[i].size == size)
        return &v[i];
    if (!vec_push(&s->v, sizeof *v))
        return NULL;
    v = s->v.p;
    memmove(v + i + 1, v + i, (s->v.n - 1 - i) * sizeof *v);
    v[i] = (struct size_sum){.size = size};
    return &v[i];
}

static void sum_batch(struct size_sum *s, const struct inference_batch *b)
{
    s->n++;
    s->lasted_ps += (uint64_t)b->end_ps - (uint64_t)b->begin_ps;
    s->delay_ps += (uint64_t)b->delay_ps;
    s->device_ps += b->device_ps;
    s->padding += b->padding;
    s->padded += b->size;
}

/* Batches of one model by group, so that requests find theirs; of equal groups on several hosts
 * the last counts, as XProf has it. */
struct by_group {
    int64_t group;
    uint32_t index;
};

static int group_order(const void *a, const void *b)
{
    const struct by_group *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static const struct inference_batch *batch_of(const struct page *p, const struct by_group *v,
                                              size_t n, int64_t group)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].group <= group)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && v[lo - 1].group == group ? batch_at(p, v[lo - 1].index) : NULL;
}

/* --- one model --- */

struct model {
    int32_t index; /* -1: the only one, of everything */
    struct sizes sizes;
    uint64_t nrequests, nbatches;
    struct rate requests, batches;
};

static bool is_of(const struct model *m, int32_t model)
{
    return m->index == -1 || m->index == model;
}

static bool sum_model(struct page *p, struct model *m, struct xp_arena *a)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    struct by_group *v = xp_arena_alloc(a, (p->inf->batches.n + 1) * sizeof *v);
    size_t n = 0;
    if (!v)
        return false;
    for (size_t i = 0; i < p->inf->batches.n; i++) {
        const struct inference_batch *b = batch_at(p, i);
        if (!is_of(m, b->model))
            continue;
        v[n++] = (struct by_group){b->group, (uint32_t)i};
        first = b->begin_ps < first ? b->begin_ps : first;
        last = b->end_ps > last ? b->end_ps : last;
        struct size_sum *s = size_of(&m->sizes, b->size);
        if (!s)
            return false;
        sum_batch(s, b);
        sum_batch(&m->sizes.all, b);
    }
    m->nbatches = n;
    m->batches = rate_of(n, m->sizes.all.lasted_ps, first, last);
    if (n)
        qsort(v, n, sizeof *v, group_order);
    first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < p->inf->requests.n; i++) {
        const struct inference_request *r = request_at(p, i);
        if (!is_of(m, r->model))
            continue;
        m->nrequests++;
        sum_request(&m->sizes.all.requests, r);
        first = r->begin_ps < first ? r->begin_ps : first;
        last = r->end_ps > last ? r->end_ps : last;
        for (uint32_t k = 0; k < r->nbatches; k++) {
            const struct inference_batch *b = batch_of(p, v, n, r->batches[k]);
            struct size_sum *s = b ? size_of(&m->sizes, b->size) : NULL;
            if (s)
                sum_request(&s->requests, r);
        }
    }
    m->requests = rate_of(m->nrequests, m->sizes.all.requests.lasted_ps, first, last);
    return true;
}

static void put_requests(struct page *p, const struct model *m)
{
    char text[64];
    size_t n = 0;
    for (size_t i = 0; i < p->inf->requests.n; i++)
        if (is_of(m, request_at(p, i)->model))
            p->order[n++] = (struct std_sort_item){lasted(request_at(p, i)), (uint32_t)i};
    std_sort(p->order, n);
    sample(p, n);
    table_begin(p->t);
    put_request_columns(p);
    for (size_t i = 0; i < p->nshown; i++) {
        struct request_sum one = {0};
        sum_request(&one, request_at(p, p->shown[i].index));
        table_row(p->t);
        cell_format(p->t, "%.3f", 100.0 * (double)p->shown[i].key / (double)n);
        cell_i64(p->t, "%lld", request_at(p, p->shown[i].index)->group);
        put_request_cells(p, &one, "N/A");
    }
    for (size_t i = 0; i < m->sizes.v.n; i++) {
        const struct size_sum *s = &VEC(m->sizes.v, struct size_sum)[i];
        snprintf(text, sizeof text, "%.1f",
                 (double)s->requests.n * m->requests.per_s / (double)m->nrequests);
        table_row(p->t);
        cell_i64(p->t, "Batch size %lld", s->size);
        table_cstr(p->t, "N/A");
        put_request_cells(p, &s->requests, text);
    }
    snprintf(text, sizeof text, "%.1f", m->requests.per_s);
    table_row(p->t);
    table_cstr(p->t, "Average");
    table_cstr(p->t, "N/A");
    put_request_cells(p, &m->sizes.all.requests, text);
    prop_double(p->t, "throughput", "%.1f", m->requests.per_s);
    prop_double(p->t, "averageLatencyMs", "%.3f", m->requests.mean_ms);
    table_end(p->t);
}

/* --- batches --- */

static void put_batch_columns(struct tables *t)
{
    table_col(t, "percentile", TABLE_STRING, "Percentile");
    table_col(t, "batch_id", TABLE_STRING, "Batch ID");
    table_col(t, "latency", TABLE_NUMBER, "Latency");
    table_col(t, "padding_amount", TABLE_NUMBER, "Padding amount");
    table_col(t, "batch_size_after_padding", TABLE_NUMBER, "Batch size after padding");
    table_col(t, "batching_efficiency", TABLE_NUMBER, "Batching efficiency");
    table_col(t, "batching_delay_us", TABLE_NUMBER, "Batching delay");
    table_col(t, "throughput", TABLE_STRING, "Throughput");
    table_col(t, "device_compute", TABLE_NUMBER, "Device compute");
    table_col(t, "program_id", TABLE_STRING, "Program ID(s)");
    table_col(t, "trace_viewer_url", TABLE_STRING, "Trace Viewer URL");
}

static void put_batch_cells(struct tables *t, const struct size_sum *s, const char *throughput,
                            const char *link)
{
    uint64_t n = s->n ? s->n : 1;
    int64_t padding = s->padding / (int64_t)n, padded = s->padded / (int64_t)n;
    table_num(t, ms(s->lasted_ps / n));
    table_num(t, (double)padding);
    table_num(t, (double)padded);
    table_num(t, padded ? (double)(padded - padding) / (double)padded : 0);
    table_num(t, ms(s->delay_ps / n));
    table_cstr(t, throughput);
    table_num(t, ms(s->device_ps / n));
    table_cstr(t, "N/A");
    table_cstr(t, link);
}

static void prop_i64(struct tables *t, const char *name, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)v);
    table_prop(t, name, xp_span_of(text, (size_t)n));
}

static void put_params(struct tables *t, const struct inference_params *p)
{
    bool known = p && p->pair;
    table_prop(t, "hasBatchingParam", known ? XP_SPAN_LIT("true") : XP_SPAN_LIT("false"));
    if (!known)
        return;
    prop_i64(t, "batchingParamNumBatchThreads", p->threads);
    prop_i64(t, "batchingParamMaxBatchSize", p->max_size);
    prop_i64(t, "batchingParamBatchTimeoutMicros", p->timeout_us);
    prop_i64(t, "batchingParamMaxEnqueuedBatches", p->max_enqueued);
    table_prop(t, "batchingParamAllowedBatchSizes", p->sizes);
}

static void put_batches(struct page *p, const struct model *m)
{
    char text[64];
    size_t n = 0;
    for (size_t i = 0; i < p->inf->batches.n; i++) {
        const struct inference_batch *b = batch_at(p, i);
        if (is_of(m, b->model))
            p->order[n++] =
                (struct std_sort_item){(uint64_t)b->end_ps - (uint64_t)b->begin_ps, (uint32_t)i};
    }
    std_sort(p->order, n);
    sample(p, n);
    table_begin(p->t);
    put_batch_columns(p->t);
    for (size_t i = 0; i < p->nshown; i++) {
        struct size_sum one = {0};
        sum_batch(&one, batch_at(p, p->shown[i].index));
        table_row(p->t);
        cell_format(p->t, "%.3f", 100.0 * (double)p->shown[i].key / (double)n);
        cell_i64(p->t, "%lld", batch_at(p, p->shown[i].index)->group);
        put_batch_cells(p->t, &one, "N/A", "");
    }
    for (size_t i = 0; i < m->sizes.v.n; i++) {
        const struct size_sum *s = &VEC(m->sizes.v, struct size_sum)[i];
        snprintf(text, sizeof text, "%.1f", (double)s->n * m->batches.per_s / (double)m->nbatches);
        table_row(p->t);
        cell_i64(p->t, "Batch size %lld", s->size);
        table_cstr(p->t, "N/A");
        put_batch_cells(p->t, s, text, "");
    }
    snprintf(text, sizeof text, "%.1f", m->batches.per_s);
    table_row(p->t);
    table_cstr(p->t, "Aggregated");
    table_cstr(p->t, "N/A");
    put_batch_cells(p->t, &m->sizes.all, text, "N/A");
    prop_double(p->t, "throughput", "%.1f", m->batches.per_s);
    prop_double(p->t, "averageLatencyMs", "%.3f", m->batches.mean_ms);
    put_params(p->t, inference_params_of(p->inf, m->index));
    table_end(p->t);
}

/* --- tensors --- */

static int tensor_order(const void *a, const void *b)
{
    const struct inference_tensor *x = a, *y = b;
    if (x->pattern != y->pattern)
        return x->pattern < y->pattern ? -1 : 1;
    return (x->ps > y->ps) - (x->ps < y->ps);
}

static void put_percentiles(struct page *p, const struct inference_tensor *v, size_t n)
{
    static const double percents[] = {50.0, 75.0, 90.0, 95.0, 99.0, 99.9};
    struct xp_buf text;
    xp_buf_init(&text, 1024);
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++)
        xp_buf_fmt(&text, "%s%.2f%%: %fms", i ? "<br>" : "", percents[i],
                   ms(v[(size_t)(percents[i] / 100.0 * (double)n)].ps));
    table_str(p->t, xp_buf_all(&text));
    xp_buf_fini(&text);
}

static bool put_tensors(struct page *p, const struct model *m, struct xp_arena *a)
{
    struct inference_tensor *v = xp_arena_alloc(a, (p->inf->tensors.n + 1) * sizeof *v);
    size_t n = 0, row = 0;
    if (!v)
        return false;
    for (size_t i = 0; i < p->inf->tensors.n; i++)
        if (is_of(m, VEC(p->inf->tensors, struct inference_tensor)[i].model))
            v[n++] = VEC(p->inf->tensors, struct inference_tensor)[i];
    if (n)
        qsort(v, n, sizeof *v, tensor_order);
    table_begin(p->t);
    table_col(p->t, "id", TABLE_NUMBER, "ID");
    table_col(p->t, "tensor_pattern", TABLE_STRING, "Tensor Pattern");
    table_col(p->t, "count", TABLE_NUMBER, "Number of Occurrence");
    table_col(p->t, "percentile", TABLE_STRING, "Linearize/Delinearize latency");
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && v[k].pattern == v[i].pattern; k++)
            ;
        table_row(p->t);
        table_num(p->t, (double)row++);
        table_str(p->t, xp_strpool_get(&p->inf->patterns, v[i].pattern));
        table_num(p->t, (double)(k - i));
        put_percentiles(p, v + i, k - i);
    }
    table_end(p->t);
    return true;
}

/* --- the page --- */

struct named {
    struct xp_span name;
    int32_t index;
};

static int name_order(const void *a, const void *b)
{
    return xp_span_cmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static void put_models(struct page *p, const struct named *models, size_t n)
{
    table_begin(p->t);
    table_col(p->t, "model_name", TABLE_STRING, "Model Name");
    for (size_t i = 0; i < n; i++) {
        table_row(p->t);
        table_str(p->t, models[i].name);
    }
    table_prop(p->t, "hasBatching", p->batching ? XP_SPAN_LIT("true") : XP_SPAN_LIT("false"));
    table_prop(p->t, "hasTensorPattern", XP_SPAN_LIT("false"));
    table_end(p->t);
}

static enum xp_status put_page(struct page *p, struct xp_arena *a, struct xp_error *err)
{
    struct inference *inf = p->inf;
    size_t n = inf->models.n > 1 ? inf->models.n - 1 : 1;
    struct named *models = xp_arena_alloc(a, n * sizeof *models);
    size_t most = inf->requests.n > inf->batches.n ? inf->requests.n : inf->batches.n;
    p->order = xp_arena_alloc(a, (most + 1) * sizeof *p->order);
    p->shown = xp_arena_alloc(a, (NWANTED * SHOWN_EACH + 1) * sizeof *p->shown);
    if (!models || !p->order || !p->shown)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
    models[0] = (struct named){XP_SPAN_LIT("ALL"), -1};
    for (uint32_t i = 1; i < inf->models.n; i++)
        models[i - 1] = (struct named){xp_strpool_get(&inf->models, i), (int32_t)i - 1};
    qsort(models, n, sizeof *models, name_order);
    put_models(p, models, n);
    for (size_t i = 0; i < n; i++) {
        struct model m = {.index = models[i].index};
        bool ok = sum_model(p, &m, a);
        if (ok)
            put_requests(p, &m);
        if (ok && p->batching)
            put_batches(p, &m);
        if (ok && inf->patterns.n > 1)
            ok = put_tensors(p, &m, a);
        vec_free(&m.sizes.v);
        if (!ok)
            return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
    }
    return XP_OK;
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct inference inf;
    struct facts *hosts;
    struct tables t;
    size_t n;
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    for (size_t i = 0; i < n; i++)
        XP_TRY(facts_need_readable(&hosts[i], err));
    if (!inference_init(&inf, scratch))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
    enum xp_status st = XP_OK;
    for (size_t i = 0; i < n && st == XP_OK; i++)
        st = inference_facts_add(&inf, &hosts[i], err);
    if (st == XP_OK) {
        struct page p = {.inf = &inf, .t = &t};
        inference_sort(&inf);
        for (size_t i = 0; i < inf.batches.n; i++)
            p.batching |= inf.models.n <= 1 || batch_at(&p, i)->model != -1;
        tables_begin(&t, out, args->csv, true);
        st = put_page(&p, scratch, err);
        tables_end(&t);
    }
    inference_fini(&inf);
    return st;
}

const struct tool tool_inference_profile = {.id = "inference_profile",
                                            .map = inference_facts_map,
                                            .merge = facts_merge,
                                            .render = render,
                                            .report = &report_inference_profile};
