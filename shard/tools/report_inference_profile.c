#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_inference.h"
#include "shard/tools/reports_more.h"

/* Where does the time of a request go, and how well are requests put into batches? */

#define NO_REQUESTS                                                                                \
    "the profile has no requests: it is not of a model server, or was captured without the "       \
    "host's "                                                                                      \
    "events (host_tracer_level=2)"

static const double percents[] = {0, 10, 25, 50, 75, 90, 95, 99, 99.9, 100};
#define PERCENTS (sizeof percents / sizeof *percents)

struct report_cell inference_host_cell(const struct inference_view *v, uint32_t index)
{
    for (size_t i = 0; i < v->nhosts; i++)
        if (v->hosts[i].index == index)
            return report_of_text(v->hosts[i].host);
    return report_none();
}

struct report_cell inference_model_cell(const struct inference_view *v, int32_t model)
{
    return model < 0 ? report_none()
                     : report_of_text(xp_strpool_get(&v->inf.models, (uint32_t)model + 1));
}

const char *inference_no_requests(const struct inference_view *v)
{
    return v->one || v->inf.requests.n ? "no request was for this model" : NO_REQUESTS;
}

/* --- requests --- */

#define PARTS                                                                                      \
    {"preprocess", "Host, before", "ps", REPORT_COL_NUMBER, true, "work on the host before"},      \
        {"formation", "Batching", "ps", REPORT_COL_NUMBER, true, "being put into a batch"},        \
        {"runtime", "Runtime", "ps", REPORT_COL_NUMBER, true, "launching programs"},               \
        {"to_device", "To device", "ps", REPORT_COL_NUMBER, true, "copies to the device"},         \
        {"compute", "Device", "ps", REPORT_COL_NUMBER, true, "programs ran"},                      \
        {"prefill", "Prefill", "ps", REPORT_COL_NUMBER, true, "of it, reading the prompt"},        \
        {"decode", "Decode", "ps", REPORT_COL_NUMBER, true, "of it, making tokens"},               \
        {"to_host", "To host", "ps", REPORT_COL_NUMBER, true, "copies back"},                      \
        {"postprocess", "Host, after", "ps", REPORT_COL_NUMBER, true, "work on the host after"},   \
    {                                                                                              \
        "idle", "Nothing", "ps", REPORT_COL_NUMBER, true, "no event tells what it waited for"      \
    }

static const uint8_t before[] = {INFERENCE_PREPROCESS, INFERENCE_FORMATION, INFERENCE_RUNTIME,
                                 INFERENCE_TO_DEVICE, INFERENCE_COMPUTE};
static const uint8_t after[] = {INFERENCE_TO_HOST, INFERENCE_POSTPROCESS, INFERENCE_IDLE};
#define NPARTS (sizeof before + 2 + sizeof after)

static const struct report_column request_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"request", "Request", "", REPORT_COL_NUMBER, false, "its group"},
    {"model", "Model", "", REPORT_COL_TEXT, false, "as the server names it"},
    {"latency", "Latency", "ps", REPORT_COL_NUMBER, true, "from its begin to its end"},
    {"size", "Size", "count", REPORT_COL_NUMBER, true, "of its input, where batches are made"},
    {"delay", "Delay", "ps", REPORT_COL_NUMBER, true, "until its first batch began"},
    PARTS,
    {"decodes", "Decode runs", "count", REPORT_COL_NUMBER, true, "on one core"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "in the profile"},
};

/* What no other part explains is nothing that an event tells of. */
static uint64_t part_of(const struct inference_request *q, uint8_t part)
{
    uint64_t all = inference_latency(q), told = 0;
    if (part != INFERENCE_IDLE)
        return q->part_ps[part];
    for (int k = INFERENCE_IDLE + 1; k < INFERENCE_PARTS; k++)
        told += q->part_ps[k];
    return all > told ? all - told : 0;
}

static void put_parts(const struct inference_view *v, const struct inference_request *q,
                      struct report_cell *c)
{
    for (size_t k = 0; k < sizeof before; k++)
        *c++ = report_of_u64(part_of(q, before[k]));
    *c++ = v->phases ? report_of_u64(q->phase_ps[INFERENCE_PREFILL]) : report_none();
    *c++ = v->phases ? report_of_u64(q->phase_ps[INFERENCE_DECODE]) : report_none();
    for (size_t k = 0; k < sizeof after; k++)
        *c++ = report_of_u64(part_of(q, after[k]));
}

static void request_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct inference_view *v = ctx;
    const struct inference_request *q = v->requests[i];
    c[0] = inference_host_cell(v, q->host);
    c[1] = report_of_i64(q->group);
    c[2] = inference_model_cell(v, q->model);
    c[3] = report_of_u64(inference_latency(q));
    c[4] = q->size > 0 ? report_of_i64(q->size) : report_none();
    c[5] = q->nbatches ? report_of_i64(q->delay_ps) : report_none();
    put_parts(v, q, c + 6);
    c[6 + NPARTS] = v->phases ? report_of_u64(q->decodes) : report_none();
    c[7 + NPARTS] = report_of_i64(q->begin_ps);
}

/* --- percentiles --- */

/* What percentiles may be of; by=. As in amounts[]; the parts are before[], then after[]. */
enum { BY_LATENCY, BY_SIZE, BY_DELAY, BY_PREFILL, BY_DECODE, BY_PARTS };

static uint64_t amount(const struct inference_request *q, size_t by)
{
    switch (by) {
    case BY_LATENCY:
        return inference_latency(q);
    case BY_SIZE:
        return q->size > 0 ? (uint64_t)q->size : 0;
    case BY_DELAY:
        return q->delay_ps > 0 ? (uint64_t)q->delay_ps : 0;
    case BY_PREFILL:
        return q->phase_ps[INFERENCE_PREFILL];
    case BY_DECODE:
        return q->phase_ps[INFERENCE_DECODE];
    default:
        by -= BY_PARTS;
        return by < sizeof before ? part_of(q, before[by]) : part_of(q, after[by - sizeof before]);
    }
}

static const struct {
    const char *id, *title;
} amounts[] = {{"latency", "Latency"},
               {"size", "Percentiles by size"},
               {"delay", "Percentiles by delay"},
               {"prefill", "Percentiles by time of prefill"},
               {"decode", "Percentiles by time of decode"},
               {"preprocess", "Percentiles by time on the host before"},
               {"formation", "Percentiles by time of batching"},
               {"runtime", "Percentiles by time of launching"},
               {"to_device", "Percentiles by time of copies to the device"},
               {"compute", "Percentiles by time on the device"},
               {"to_host", "Percentiles by time of copies to the host"},
               {"postprocess", "Percentiles by time on the host after"},
               {"idle", "Percentiles by time that no event tells of"}};
#define AMOUNTS (sizeof amounts / sizeof *amounts)

static int by_amount(const void *a, const void *b, void *ctx)
{
    const struct inference_request *x = *(const struct inference_request *const *)a,
                                   *y = *(const struct inference_request *const *)b;
    uint64_t p = amount(x, *(const size_t *)ctx), q = amount(y, *(const size_t *)ctx);
    if (p != q)
        return p < q ? -1 : 1;
    return (x > y) - (x < y); /* they come by latency */
}

/* Is it known how much of it the request has? */
static bool has_amount(const struct inference_view *v, const struct inference_request *q, size_t by)
{
    switch (by) {
    case BY_SIZE:
        return q->size > 0;
    case BY_DELAY:
        return q->nbatches > 0;
    case BY_PREFILL:
    case BY_DECODE:
        return v->phases;
    default:
        return true;
    }
}

/* Why no request has any; NULL: some do, or there are none. */
static const char *no_amounts(const struct inference_view *v, size_t by)
{
    if (!v->nrequests || v->nchosen)
        return NULL;
    if (by == BY_SIZE)
        return "no request tells the size of its input: it does where the server makes batches";
    if (by == BY_DELAY)
        return "no request was put into a batch";
    return "no program is known to be prefill or decode: the metrics of them say why";
}

static enum xp_status choose_percentiles(struct inference_view *v, const struct tool_args *args,
                                         size_t *by, struct xp_error *err)
{
    struct xp_span asked = {0};
    *by = 0;
    if (!tool_arg(args, "by", &asked))
        asked.n = 0;
    for (; asked.n && *by < AMOUNTS && !xp_span_eq(asked, xp_span_str(amounts[*by].id)); ++*by)
        ;
    if (*by == AMOUNTS)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "percentiles can be by latency, size, delay, prefill, decode, preprocess, "
                       "formation, runtime, to_device, compute, to_host, postprocess or idle");
    for (size_t i = 0; i < v->nrequests; i++)
        if (has_amount(v, v->requests[i], *by))
            v->chosen[v->nchosen++] = v->requests[i];
    if (v->nchosen)
        qsort_r(v->chosen, v->nchosen, sizeof *v->chosen, by_amount, by);
    return XP_OK;
}

/* The request at which so many percent took no longer. */
static const struct inference_request *at_percent(const struct inference_view *v, double percent)
{
    return v->chosen[inference_place(v->nchosen, percent)];
}

static const struct report_column percent_columns[] = {
    {"percentile", "Percentile", "", REPORT_COL_NUMBER, false,
     "percent of all requests took no longer, or, of those that tell it, had no more of what was "
     "chosen"},
    {"latency", "Latency", "ps", REPORT_COL_NUMBER, false, "of the request there"},
    PARTS,
    {"request", "Request", "", REPORT_COL_NUMBER, false, "its group"},
};

static void percent_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct inference_request *q = at_percent(ctx, percents[i]);
    c[0] = report_of_double(percents[i]);
    c[1] = report_of_u64(inference_latency(q));
    put_parts(ctx, q, c + 2);
    c[2 + NPARTS] = report_of_i64(q->group);
}

/* Device time as one, or as its phases and the rest of it. */
static void percent_point(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y)
{
    const struct inference_view *v = ctx;
    const struct inference_request *q = at_percent(v, percents[i]);
    *x = report_of_double(percents[i]);
    for (size_t k = 0; k + 1 < sizeof before; k++)
        *y++ = report_of_u64(part_of(q, before[k]));
    if (v->phases) {
        *y++ = report_of_u64(q->phase_ps[INFERENCE_PREFILL]);
        *y++ = report_of_u64(q->phase_ps[INFERENCE_DECODE]);
        *y++ = report_of_u64(q->phase_ps[INFERENCE_OTHER]);
    } else {
        *y++ = report_of_u64(part_of(q, INFERENCE_COMPUTE));
    }
    for (size_t k = 0; k < sizeof after; k++)
        *y++ = report_of_u64(part_of(q, after[k]));
}

static void draw_percentiles(struct report *r, const struct inference_view *v)
{
    static const char *const whole[] = {"before", "batching", "runtime", "to device",
                                        "device", "to host",  "after",   "nothing"};
    static const char *const apart[] = {"before",  "batching", "runtime",          "to device",
                                        "prefill", "decode",   "unnamed programs", "to host",
                                        "after",   "nothing"};
    report_series(r, &(struct report_points){.id = "breakdown",
                                             .title = "What requests spend their time on",
                                             .x_label = "percentile",
                                             .x_unit = "",
                                             .y_label = "Time",
                                             .y_unit = "ps",
                                             .kind = "stack",
                                             .names = v->phases ? apart : whole,
                                             .nnames = v->phases ? sizeof apart / sizeof *apart
                                                                 : sizeof whole / sizeof *whole,
                                             .n = v->nchosen ? PERCENTS : 0,
                                             .point = percent_point,
                                             .ctx = (void *)v});
}

/* --- batches --- */

static const struct report_column batch_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"batch", "Batch", "", REPORT_COL_NUMBER, false, "its group"},
    {"model", "Model", "", REPORT_COL_TEXT, false, "as the server names it"},
    {"latency", "Latency", "ps", REPORT_COL_NUMBER, true, "from its begin to its end"},
    {"size", "Size", "count", REPORT_COL_NUMBER, true, "with padding"},
    {"padding", "Padding", "count", REPORT_COL_NUMBER, true, "of it, empty"},
    {"used", "Used", "fraction", REPORT_COL_NUMBER, false, "1 - padding / size"},
    {"delay", "Delay", "ps", REPORT_COL_NUMBER, true, "since its first request began"},
    {"compute", "Device", "ps", REPORT_COL_NUMBER, true, "programs ran"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "in the profile"},
};

static void batch_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct inference_view *v = ctx;
    const struct inference_batch *b = v->batches[i];
    c[0] = inference_host_cell(v, b->host);
    c[1] = report_of_i64(b->group);
    c[2] = inference_model_cell(v, b->model);
    c[3] = report_of_u64(inference_lasted(b->begin_ps, b->end_ps));
    c[4] = b->size > 0 ? report_of_i64(b->size) : report_none();
    c[5] = b->size > 0 ? report_of_i64(b->padding) : report_none();
    c[6] = report_ratio((double)b->size - (double)b->padding, (double)b->size);
    c[7] = report_of_i64(b->delay_ps);
    c[8] = report_of_u64(b->device_ps);
    c[9] = report_of_i64(b->begin_ps);
}

/* --- how batches are to be made --- */

#define NO_PARAMS                                                                                  \
    "the profile has no counters of the server's batching: they come with TensorFlow Serving "     \
    "that "                                                                                        \
    "puts requests into batches (--enable_batching), in the plane /host:tfstreamz"

static const struct report_column param_columns[] = {
    {"model", "Model", "", REPORT_COL_TEXT, false, "as the server names it"},
    {"max_size", "Largest batch", "count", REPORT_COL_NUMBER, false, "max_batch_size"},
    {"timeout", "Timeout", "ps", REPORT_COL_NUMBER, false,
     "how long a batch waits for more requests: batch_timeout_micros"},
    {"threads", "Threads", "count", REPORT_COL_NUMBER, false,
     "that run batches: num_batch_threads"},
    {"max_enqueued", "Queue", "count", REPORT_COL_NUMBER, false,
     "batches that may wait: max_enqueued_batches"},
    {"sizes", "Sizes", "", REPORT_COL_TEXT, false,
     "a batch is padded to one of these: allowed_batch_sizes"},
};

static struct report_cell told(const struct inference_params *p, int which, int64_t v)
{
    return p->told >> which & 1 ? report_of_i64(v) : report_none();
}

static struct report_cell timeout_of(const struct inference_params *p)
{
    int64_t ps;
    return __builtin_mul_overflow(p->timeout_us, INT64_C(1000000), &ps)
               ? report_none()
               : told(p, INFERENCE_TIMEOUT, ps);
}

static void param_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct inference_view *v = ctx;
    const struct inference_params *p = &v->params[i];
    c[0] = inference_model_cell(v, p->model);
    c[1] = told(p, INFERENCE_MAX_SIZE, p->max_size);
    c[2] = timeout_of(p);
    c[3] = told(p, INFERENCE_THREADS, p->threads);
    c[4] = told(p, INFERENCE_MAX_ENQUEUED, p->max_enqueued);
    c[5] = p->told >> INFERENCE_SIZES & 1 && p->sizes.n ? report_of_text(p->sizes) : report_none();
}

/* --- metrics --- */

static void request_metrics(struct report *r, const struct inference_view *v)
{
    static const char *const ids[] = {"requests",    "latency_mean", "latency_p50",
                                      "latency_p90", "latency_p99",  "request_rate"};
    static const double at[] = {0, 0, 50, 90, 99};
    uint64_t sum = 0;
    int64_t first = INT64_MAX, last = INT64_MIN;
    if (!v->nrequests) {
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
            report_na(r, ids[i], "%s", inference_no_requests(v));
        return;
    }
    for (size_t i = 0; i < v->nrequests; i++) {
        const struct inference_request *q = v->requests[i];
        sum += inference_latency(q);
        first = q->begin_ps < first ? q->begin_ps : first;
        last = q->end_ps > last ? q->end_ps : last;
    }
    report_u64(r, ids[0], v->nrequests, NULL);
    report_u64(r, ids[1], sum / v->nrequests, NULL);
    for (int i = 2; i < 5; i++)
        report_u64(r, ids[i], inference_latency(v->requests[inference_place(v->nrequests, at[i])]),
                   NULL);
    report_metric(r, ids[5],
                  report_ratio((double)v->nrequests * 1e12, (double)inference_lasted(first, last)),
                  "the requests take no time", NULL, NULL);
}

static void batch_metrics(struct report *r, const struct inference_view *v)
{
    double size = 0, padding = 0;
    for (size_t i = 0; i < v->nbatches; i++) {
        size += v->batches[i]->size > 0 ? (double)v->batches[i]->size : 0;
        padding += v->batches[i]->size > 0 ? (double)v->batches[i]->padding : 0;
    }
    if (v->nbatches)
        report_u64(r, "batches", v->nbatches, NULL);
    else
        report_na(r, "batches", "the server puts no requests into batches, or does not say so");
    report_metric(r, "padding_fraction", report_ratio(padding, size),
                  "no batch tells its size and padding", NULL, NULL);
}

static void param_metrics(struct report *r, const struct inference_view *v)
{
    int64_t most = 0;
    bool any = false;
    for (size_t i = 0; i < v->nparams; i++)
        if (v->params[i].told >> INFERENCE_MAX_SIZE & 1) {
            most = !any || v->params[i].max_size > most ? v->params[i].max_size : most;
            any = true;
        }
    if (any)
        report_metric(r, "max_batch_size", report_of_i64(most), NULL,
                      v->nparams > 1 ? "the largest of all models" : NULL, NULL);
    else
        report_na(r, "max_batch_size", NO_PARAMS);
}

static void verdict(struct report *r, const struct inference_view *v)
{
    static const char *const words[INFERENCE_PARTS] = {
        [INFERENCE_IDLE] = "waiting for what no event tells",
        [INFERENCE_PREPROCESS] = "the host's work before",
        [INFERENCE_POSTPROCESS] = "the host's work after",
        [INFERENCE_FORMATION] = "being put into batches",
        [INFERENCE_RUNTIME] = "launching programs",
        [INFERENCE_TO_DEVICE] = "copies to the device",
        [INFERENCE_TO_HOST] = "copies to the host",
        [INFERENCE_COMPUTE] = "the device's work"};
    double sum[INFERENCE_PARTS] = {0}, all = 0;
    int most = 0;
    for (size_t i = 0; i < v->nrequests; i++)
        for (int k = 0; k < INFERENCE_PARTS; k++)
            sum[k] += (double)part_of(v->requests[i], (uint8_t)k);
    for (int k = 0; k < INFERENCE_PARTS; k++) {
        all += sum[k];
        most = sum[k] > sum[most] ? k : most;
    }
    if (!(all > 0))
        return;
    double decode = 0, prefill = 0;
    for (size_t i = 0; i < v->nrequests; i++) {
        decode += (double)v->requests[i]->phase_ps[INFERENCE_DECODE];
        prefill += (double)v->requests[i]->phase_ps[INFERENCE_PREFILL];
    }
    if (v->phases && most == INFERENCE_COMPUTE)
        report_verdict(r, "%.1f %% of the requests' time is %s: %.1f %% prefill, %.1f %% decode.",
                       100 * sum[most] / all, words[most], 100 * prefill / all, 100 * decode / all);
    else
        report_verdict(r, "%.1f %% of the requests' time is %s.", 100 * sum[most] / all,
                       words[most]);
}

static void tables(struct report *r, struct inference_view *v, size_t by)
{
    report_table(r,
                 &(struct report_rows){.id = "percentiles",
                                       .title = amounts[by].title,
                                       .note = no_amounts(v, by),
                                       .columns = percent_columns,
                                       .ncolumns = sizeof percent_columns / sizeof *percent_columns,
                                       .n = v->nchosen ? PERCENTS : 0,
                                       .row = percent_row,
                                       .ctx = v});
    report_table(r,
                 &(struct report_rows){.id = "requests",
                                       .title = "Requests",
                                       .columns = request_columns,
                                       .ncolumns = sizeof request_columns / sizeof *request_columns,
                                       .n = v->nrequests,
                                       .row = request_row,
                                       .ctx = v,
                                       .sort = "latency",
                                       .descending = true});
    report_link(r, "requests", "request");
    report_table(r, &(struct report_rows){.id = "batches",
                                          .title = "Batches",
                                          .columns = batch_columns,
                                          .ncolumns = sizeof batch_columns / sizeof *batch_columns,
                                          .n = v->nbatches,
                                          .row = batch_row,
                                          .ctx = v,
                                          .sort = "latency",
                                          .descending = true});
    report_link(r, "batches", "batch");
    report_table(r, &(struct report_rows){.id = "batching",
                                          .title = "How batches are to be made",
                                          .note = v->nparams ? NULL : NO_PARAMS,
                                          .columns = param_columns,
                                          .ncolumns = sizeof param_columns / sizeof *param_columns,
                                          .n = v->nparams,
                                          .row = param_row,
                                          .ctx = v,
                                          .sort = "model"});
}

static enum xp_status write_view(struct inference_view *v, const struct tool_args *args,
                                 struct report *r, struct xp_error *err)
{
    struct xp_span model = {0};
    size_t by;
    inference_sort(&v->inf);
    tool_arg(args, "model", &model);
    XP_TRY(inference_view_choose(v, model, err));
    XP_TRY(choose_percentiles(v, args, &by, err));
    v->params = v->inf.params.p;
    v->nparams = v->inf.params.n;
    verdict(r, v);
    request_metrics(r, v);
    batch_metrics(r, v);
    param_metrics(r, v);
    report_inference_phases(r, v);
    tables(r, v, by);
    report_inference_programs(r, v);
    report_inference_tensors(r, v);
    report_inference_models(r, v);
    report_inference_distribution(r, v);
    draw_percentiles(r, v);
    report_inference_sizes(r, v);
    return XP_OK;
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct inference_view v = {.a = r->a};
    XP_TRY(facts_open(merged, r->a, &v.hosts, &v.nhosts, err));
    if (!inference_init(&v.inf, r->a))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the requests");
    enum xp_status st = XP_OK;
    for (size_t i = 0; i < v.nhosts && st == XP_OK; i++)
        st = inference_facts_add(&v.inf, &v.hosts[i], err);
    if (st == XP_OK)
        st = write_view(&v, args, r, err);
    inference_fini(&v.inf);
    return st;
}

const struct tool_report report_inference_profile = {
    .question = "Where does the time of a request go, and how well are requests batched?",
    .map = inference_facts_map_any,
    .merge = facts_merge,
    .write = write_report,
};
