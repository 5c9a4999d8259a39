#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_inference.h"

/* Prefill and decode, told apart by the rules of inference_phases.c. */

#define NAMES_MAX 300
#define SHARED "a program ran for other models, too: its runs for these count"

static const char *const phase_words[INFERENCE_PHASES] = {
    [INFERENCE_OTHER] = "other", [INFERENCE_DECODE] = "decode", [INFERENCE_PREFILL] = "prefill"};

static int64_t add_name(char *to, size_t room, int64_t n, struct xp_span name)
{
    if (n < 0 || (size_t)n >= room - 1)
        return n;
    int more = snprintf(to + n, room - (size_t)n, "%s%.*s", n ? ", " : "",
                        (int)(name.n < 100 ? name.n : 100), (const char *)name.p);
    return more > 0 ? n + more : n;
}

/* The programs of a phase, or of any; each name once, as far as there is room. False: memory. */
static bool list_programs(const struct inference_view *v, int phase, char to[NAMES_MAX])
{
    int64_t n = 0;
    bool *seen = xp_arena_zalloc(v->a, v->inf.programs.n);
    to[0] = '\0';
    for (size_t i = 0; seen && i < v->nran && n < NAMES_MAX - 1; i++) {
        const struct inference_program *p = v->ran[i];
        if ((phase >= 0 && p->phase != phase) || seen[p->name])
            continue;
        seen[p->name] = true;
        n = add_name(to, NAMES_MAX, n, xp_strpool_get(&v->inf.programs, p->name));
    }
    return seen != NULL;
}

static const char *rule_of(const struct inference_view *v, int phase)
{
    for (size_t i = 0; i < v->nran; i++)
        if (v->ran[i]->phase == phase && v->ran[i]->rule == INFERENCE_BY_NAME)
            return "by name";
        else if (v->ran[i]->phase == phase && v->ran[i]->rule == INFERENCE_BY_REPETITION)
            return "by repetition";
    return NULL;
}

/* --- of a request --- */

struct phase_view {
    const struct inference_view *v;
    struct phase {
        uint64_t *ps; /* of requests that have it, in order */
        size_t n;
        uint64_t sum;
        char names[NAMES_MAX];
    } of[INFERENCE_PHASES];
    uint64_t all_ps;
};

static int by_ps(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool gather(struct phase_view *p)
{
    const struct inference_view *v = p->v;
    for (int k = 0; k < INFERENCE_PHASES; k++) {
        struct phase *to = &p->of[k];
        to->ps = xp_arena_alloc(v->a, (v->nrequests + 1) * sizeof *to->ps);
        if (!to->ps)
            return false;
        for (size_t i = 0; i < v->nrequests; i++) {
            uint64_t ps = v->requests[i]->phase_ps[k];
            if (ps)
                to->ps[to->n++] = ps;
            to->sum += ps;
        }
        if (to->n)
            qsort(to->ps, to->n, sizeof *to->ps, by_ps);
        p->all_ps += to->sum;
        if (!list_programs(v, k, to->names))
            return false;
    }
    return true;
}

static const uint8_t shown[] = {INFERENCE_PREFILL, INFERENCE_DECODE, INFERENCE_OTHER};

static const struct report_column phase_columns[] = {
    {"phase", "Phase", "", REPORT_COL_TEXT, false, "of the device's work for a request"},
    {"requests", "Requests", "count", REPORT_COL_NUMBER, false, "that have it"},
    {"mean", "Mean", "ps", REPORT_COL_NUMBER, false, "of a request, on the device"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false, "half of the requests took no longer"},
    {"p90", "p90", "ps", REPORT_COL_NUMBER, false, "90 % took no longer"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % took no longer"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "of all requests"},
    {"share", "Share", "fraction", REPORT_COL_NUMBER, true, "of the requests' time on devices"},
    {"rule", "Told", "", REPORT_COL_TEXT, false,
     "by name: its programs are called prefill, decode or generate. By repetition: decode is what "
     "one core ran most often in a request, three times or more; prefill the longest of what ran "
     "once before"},
    {"programs", "Programs", "", REPORT_COL_TEXT, false, "that are of it"},
};

static void phase_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct phase_view *p = ctx;
    const struct phase *of = &p->of[shown[i]];
    const char *rule = rule_of(p->v, shown[i]);
    c[0] = report_of_text(xp_span_str(phase_words[shown[i]]));
    c[1] = report_of_u64(of->n);
    c[2] = of->n ? report_of_u64(of->sum / of->n) : report_none();
    c[3] = of->n ? report_of_u64(of->ps[inference_place(of->n, 50)]) : report_none();
    c[4] = of->n ? report_of_u64(of->ps[inference_place(of->n, 90)]) : report_none();
    c[5] = of->n ? report_of_u64(of->ps[inference_place(of->n, 99)]) : report_none();
    c[6] = report_of_u64(of->sum);
    c[7] = report_ratio((double)of->sum, (double)p->all_ps);
    c[8] = rule ? report_of_text(xp_span_str(rule)) : report_none();
    c[9] = of->names[0] ? report_of_text(xp_span_str(of->names)) : report_none();
}

static const char *const phase_metrics[] = {"prefill_time", "decode_time", "first_token_time",
                                            "decode_run_time"};

static void not_known(struct report *r, const struct inference_view *v)
{
    char names[NAMES_MAX];
    if (!list_programs(v, -1, names)) {
        r->busy = true;
        return;
    }
    for (size_t i = 0; i < sizeof phase_metrics / sizeof *phase_metrics; i++)
        if (!v->nrequests)
            report_na(r, phase_metrics[i], "%s",
                      v->one ? inference_no_requests(v) : "the profile has no requests");
        else if (!names[0] && v->inf.ran.n)
            report_na(r, phase_metrics[i], "no program of a TPU ran for a request of this model");
        else if (!names[0])
            report_na(r, phase_metrics[i],
                      "no program of a TPU is in the profile: capture the devices, too");
        else
            report_na(r, phase_metrics[i],
                      "of the programs that ran (%s) none is called prefill, decode or generate, "
                      "and in most requests none runs three times or more",
                      names);
}

static void phase_metric(struct report *r, const struct phase_view *p, const char *id, int phase)
{
    char note[NAMES_MAX + 60];
    const struct phase *of = &p->of[phase];
    if (!of->n) {
        report_na(r, id, "no program of this phase ran for a request");
        return;
    }
    const char *rule = rule_of(p->v, phase);
    snprintf(note, sizeof note, "told %s: %s", rule ? rule : "", of->names);
    report_u64(r, id, of->sum / of->n, note);
}

static void token_metrics(struct report *r, const struct inference_view *v)
{
    uint64_t sum = 0, n = 0, runs_ps = 0, runs = 0;
    for (size_t i = 0; i < v->nrequests; i++)
        if (v->requests[i]->prefilled_ps != INFERENCE_NEVER) {
            sum += (uint64_t)v->requests[i]->prefilled_ps;
            n++;
        }
    for (size_t i = 0; i < v->nran; i++)
        if (v->ran[i]->phase == INFERENCE_DECODE) {
            runs_ps += v->ran[i]->total_ps;
            runs += v->ran[i]->runs;
        }
    if (n)
        report_u64(r, "first_token_time", sum / n, NULL);
    else
        report_na(r, "first_token_time", "no prefill ran for a request");
    if (runs)
        report_u64(r, "decode_run_time", runs_ps / runs, v->shared ? SHARED : NULL);
    else
        report_na(r, "decode_run_time", "no decode ran");
}

void report_inference_phases(struct report *r, struct inference_view *v)
{
    struct phase_view *p = xp_arena_zalloc(v->a, sizeof *p);
    if (!v->phases || !v->nrequests) {
        not_known(r, v);
        return;
    }
    if (!p) {
        r->busy = true;
        return;
    }
    p->v = v;
    if (!gather(p)) {
        r->busy = true;
        return;
    }
    phase_metric(r, p, "prefill_time", INFERENCE_PREFILL);
    phase_metric(r, p, "decode_time", INFERENCE_DECODE);
    token_metrics(r, v);
    report_table(r, &(struct report_rows){.id = "phases",
                                          .title = "Prefill and decode",
                                          .columns = phase_columns,
                                          .ncolumns = sizeof phase_columns / sizeof *phase_columns,
                                          .n = sizeof shown,
                                          .row = phase_row,
                                          .ctx = p});
}

/* --- programs --- */

static const struct report_column program_columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"program", "Program", "", REPORT_COL_TEXT, false, "with its id"},
    {"phase", "Phase", "", REPORT_COL_TEXT, false, "prefill, decode, or neither that is known"},
    {"runs", "Runs", "count", REPORT_COL_NUMBER, true, "on one core"},
    {"mean", "Mean", "ps", REPORT_COL_NUMBER, false, "of a run, over all cores"},
    {"p50", "p50", "ps", REPORT_COL_NUMBER, false, "half of the runs on one core took no longer"},
    {"p99", "p99", "ps", REPORT_COL_NUMBER, false, "99 % took no longer"},
    {"duration", "Longest", "ps", REPORT_COL_NUMBER, false, "run, of all cores"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "of all runs, over all cores"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, "of the longest run"},
};

struct program_view {
    const struct inference_view *v;
    const struct inference_program **of; /* those that ran, and not just for a request */
    const uint64_t **sorted;             /* durations, by program */
    size_t n;
};

static void program_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct program_view *p = ctx;
    const struct inference_program *of = p->of[i];
    c[0] = inference_host_cell(p->v, of->host);
    c[1] = report_of_text(xp_strpool_get(&p->v->inf.programs, of->name));
    c[2] = of->phase ? report_of_text(xp_span_str(phase_words[of->phase])) : report_none();
    c[3] = report_of_u64(of->core_runs);
    c[4] = of->runs ? report_of_u64(of->total_ps / of->runs) : report_none();
    c[5] = of->nps ? report_of_u64(p->sorted[i][inference_place(of->nps, 50)]) : report_none();
    c[6] = of->nps ? report_of_u64(p->sorted[i][inference_place(of->nps, 99)]) : report_none();
    c[7] = report_of_u64(of->longest_ps);
    c[8] = report_of_u64(of->total_ps);
    c[9] = report_of_i64(of->longest_begin_ps);
}

static bool sort_programs(struct program_view *p)
{
    const struct inference_view *v = p->v;
    p->of = xp_arena_alloc(v->a, (v->nran + 1) * sizeof *p->of);
    p->sorted = xp_arena_alloc(v->a, (v->nran + 1) * sizeof *p->sorted);
    for (size_t i = 0; p->of && p->sorted && i < v->nran; i++) {
        const struct inference_program *of = v->ran[i];
        uint64_t *ps = of->runs ? xp_arena_alloc(v->a, (of->nps + 1) * sizeof *ps) : NULL;
        if (!of->runs)
            continue;
        if (!ps)
            return false;
        if (of->nps) {
            memcpy(ps, of->ps, of->nps * sizeof *ps);
            qsort(ps, of->nps, sizeof *ps, by_ps);
        }
        p->of[p->n] = of;
        p->sorted[p->n++] = ps;
    }
    return p->of && p->sorted;
}

void report_inference_programs(struct report *r, struct inference_view *v)
{
    struct program_view p = {.v = v};
    if (!sort_programs(&p)) {
        r->busy = true;
        return;
    }
    report_table(r,
                 &(struct report_rows){.id = "programs",
                                       .title = "Programs",
                                       .note = v->shared ? SHARED : NULL,
                                       .columns = program_columns,
                                       .ncolumns = sizeof program_columns / sizeof *program_columns,
                                       .n = p.n,
                                       .row = program_row,
                                       .ctx = &p,
                                       .sort = "total",
                                       .descending = true});
    report_link(r, "programs", "program");
}
