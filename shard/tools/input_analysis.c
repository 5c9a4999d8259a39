#include "shard/tools/input_analysis.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

static enum xp_status busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left to analyze the input pipeline");
}

/* --- means --- */

void input_stat_add(struct input_stat *s, double v)
{
    if (!s->n) {
        s->min = DBL_MAX;
        s->max = DBL_MIN; /* as in XProf: the maximum of zeros is not quite 0 */
    }
    s->n++;
    s->sum += v;
    s->squares += v * v;
    s->min = v < s->min ? v : s->min;
    s->max = v > s->max ? v : s->max;
}

void input_stat_sum_up(const struct input_stat *s, struct input_summary *out)
{
    *out = (struct input_summary){0};
    if (!s->n)
        return;
    double n = (double)s->n;
    out->mean = s->sum / n;
    out->min = s->min;
    out->max = s->max;
    if (s->min != s->max)
        out->deviation = sqrt((s->squares - s->sum * s->sum / n) / (n - 1));
}

/* --- steps --- */

static const struct step_core *first_core(const struct step *s)
{
    for (uint32_t i = 0; i < s->ncores; i++)
        if (s->cores[i].key == 1)
            return &s->cores[i];
    return NULL;
}

static void times_of(const struct step_core *c, struct input_step *out)
{
    const uint64_t *ps = c->type_ps;
    double ms[STEP_TYPES];
    for (int t = 0; t < STEP_TYPES; t++)
        ms[t] = (double)ps[t] / 1e9;
    out->ms = (double)c->duration_ps / 1e9;
    out->of[INPUT_UNKNOWN] = ms[STEP_UNKNOWN];
    out->of[INPUT_WAIT] = ms[STEP_WAIT_INPUT];
    out->of[INPUT_TRANSFER] = ms[STEP_HOST_TO_DEVICE] + ms[STEP_WAIT_HOST];
    out->of[INPUT_OUTPUT] = ms[STEP_DEVICE_TO_HOST];
    out->of[INPUT_COMPUTE] = ms[STEP_COMPUTE_16] + ms[STEP_COMPUTE_32];
    out->of[INPUT_TO_DEVICE] = ms[STEP_DEVICE_TO_DEVICE] + ms[STEP_WAIT_DEVICE];
    out->of[INPUT_COLLECTIVES] = ms[STEP_COLLECTIVES];
    out->of[INPUT_HOST_COMPUTE] = ms[STEP_HOST_COMPUTE];
    out->of[INPUT_LAUNCH] = ms[STEP_PREPARE];
    out->of[INPUT_COMPILE] = ms[STEP_COMPILE];
}

static enum xp_status event_steps(struct input_analysis *in, struct xp_arena *a,
                                  struct xp_error *err)
{
    struct xp_bump bump;
    xp_bump_init(&bump, a);
    in->steps = xp_arena_alloc(a, ((size_t)in->db->n + 1) * sizeof *in->steps);
    if (!in->steps)
        return busy(err);
    for (uint32_t i = 0; i < in->db->n; i++) {
        const struct step *s = &in->db->steps[i];
        const struct step_core *c = first_core(s);
        if (!c)
            continue;
        struct input_step *out = &in->steps[in->n++];
        char num[16];
        times_of(c, out);
        out->name = s->name;
        if (s->name.n)
            continue;
        int n = snprintf(num, sizeof num, "%u", s->num);
        out->name = xp_bump_span(&bump, xp_span_of(num, (size_t)n));
        if (!out->name.p)
            return busy(err);
    }
    return XP_OK;
}

static enum xp_status tpu_steps(struct input_analysis *in, struct xp_arena *a, struct xp_error *err)
{
    in->details = xp_arena_alloc(a, ((size_t)in->db->n + 1) * sizeof *in->details);
    if (!in->details)
        return busy(err);
    for (; in->n < in->db->n; in->n++)
        XP_TRY(step_details_of(&in->db->steps[in->n], &in->details[in->n], err));
    for (uint32_t i = 0; i < in->session->stats->nhosts; i++) {
        const struct op_host *h = &in->session->stats->hosts[i];
        for (uint32_t k = 0; k < h->ncores; k++)
            in->sparse |= h->cores[k].sparse && h->cores[k].has_details;
    }
    return XP_OK;
}

/* Each step takes as long as its slowest core. */
static void step_times(struct input_analysis *in)
{
    struct input_stat stat = {0};
    for (uint32_t i = 0; i < in->db->n; i++) {
        const struct step *s = &in->db->steps[i];
        double most = 0;
        for (uint32_t k = 0; k < s->ncores; k++) {
            double ms = (double)s->cores[k].duration_ps / 1e9;
            if (!s->cores[k].sparse && ms > most)
                most = ms;
        }
        input_stat_add(&stat, most);
    }
    input_stat_sum_up(&stat, &in->step_ms);
}

/* --- the host's input ops --- */

static bool is_any_case(struct xp_span s, const char *word)
{
    return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

static enum input_op_kind kind_of_dataset(struct xp_span name)
{
    static const char *const readers[] = {"::TFRecord", "::TextLine", "::FixedLengthRecord",
                                          "::SSTable",  "::RecordIO", "::ArrayRecord"};
    static const char *const ahead[] = {"::MemoryReader", "::MemoryWriter", "::Interleave",
                                        "::Prefetch", "::ParallelMap"};
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (!xp_span_ends(name, xp_span_str(readers[i])))
            continue;
        for (size_t k = 0; k < sizeof ahead / sizeof ahead[0]; k++)
            if (contains(name, ahead[k]))
                return INPUT_OP_ADVANCE;
        return INPUT_OP_DEMAND;
    }
    return INPUT_OP_PREPROCESS;
}

static bool kind_of(const struct op_metrics *m, enum input_op_kind *kind)
{
    if (is_any_case(m->category, "enqueue") ||
        xp_span_starts(m->category, XP_SPAN_LIT("InfeedEnqueue")) ||
        xp_span_eq(m->category, XP_SPAN_LIT("MemcpyHToD")))
        *kind = INPUT_OP_ENQUEUE;
    else if (is_any_case(m->category, "read"))
        *kind = INPUT_OP_DEMAND;
    else if (is_any_case(m->category, "preprocessing"))
        *kind = INPUT_OP_PREPROCESS;
    else if (is_any_case(m->category, "unknown"))
        *kind = INPUT_OP_UNKNOWN;
    else if (xp_span_eq(m->category, XP_SPAN_LIT("Dataset")))
        *kind = kind_of_dataset(m->name);
    else
        return false;
    return true;
}

/* Part of a step in which data goes to the device. */
static double enqueue_ratio(const struct input_analysis *in)
{
    const struct op_db *host = &in->session->stats->host;
    if (host->infeed_enq_starts_ps)
        return op_divide((double)host->infeed_enq_ps, (double)host->infeed_enq_starts_ps);
    if (in->tpu || in->step_ms.mean <= 0 || !in->n)
        return 0;
    double sum = 0;
    for (uint32_t i = 0; i < in->n; i++)
        sum += in->steps[i].of[INPUT_TRANSFER];
    return op_divide(sum / in->n, in->step_ms.mean);
}

/* What is not sending gets the time that sending leaves of a step, shared by kind. */
static void scale(struct input_analysis *in)
{
    double *us = in->kind_us, q = enqueue_ratio(in);
    double sum = us[INPUT_OP_DEMAND] + us[INPUT_OP_ADVANCE] + us[INPUT_OP_PREPROCESS];
    q = q < 1 ? q : 1;
    double rest = q != 0 ? us[INPUT_OP_ENQUEUE] * (1 - q) / q : sum;
    in->unclassified_us = rest;
    for (int k = INPUT_OP_DEMAND; k <= INPUT_OP_PREPROCESS; k++) {
        us[k] = op_divide(rest * us[k], sum);
        in->unclassified_us -= us[k];
    }
    if (in->unclassified_us < 0)
        in->unclassified_us = 0;
}

static enum xp_status host_ops(struct input_analysis *in, struct xp_arena *a, struct xp_error *err)
{
    const struct op_db *host = &in->session->stats->host;
    const struct op_metrics **sorted = op_db_sorted(host, a);
    in->ops = xp_arena_alloc(a, ((size_t)host->n + 1) * sizeof *in->ops);
    if (!in->ops || !sorted)
        return busy(err);
    for (uint32_t i = 0; i < host->n; i++) {
        enum input_op_kind kind;
        if (!kind_of(sorted[i], &kind))
            continue;
        in->ops[in->nops++] = (struct input_op){sorted[i], kind};
        in->ops_self_ps += sorted[i]->self_ps;
        in->kind_us[kind] += (double)sorted[i]->self_ps / 1e6;
    }
    if (in->nops)
        scale(in);
    return XP_OK;
}

enum xp_status input_analyze(const struct session *s, const struct step_db *db, struct xp_arena *a,
                             struct input_analysis *out, struct xp_error *err)
{
    *out = (struct input_analysis){.session = s, .db = db, .tpu = s->all.hardware == OP_HW_TPU};
    XP_TRY(out->tpu ? tpu_steps(out, a, err) : event_steps(out, a, err));
    step_times(out);
    XP_TRY(host_ops(out, a, err));
    if (out->tpu)
        verdict_tpu(out, &out->verdict);
    else
        verdict_generic(out, &out->verdict);
    verdict_generic(out, &out->generic);
    return XP_OK;
}
