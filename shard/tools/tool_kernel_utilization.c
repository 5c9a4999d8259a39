/* Hardware counters as shares of what each unit could have done, one kernel a sample. */
#include <math.h>

#include "shard/tools/counter_facts.h"
#include "shard/tools/reports_more.h"

struct sums {
    double achieved, peak;
};

/* What a unit did that could do nothing, as its cycles were not counted, does not count. */

static struct sums sum_of(const struct tpu_metric *m, size_t n, const char *name)
{
    struct sums s = {0};
    for (size_t i = 0; i < n; i++)
        if (strcmp(m[i].name, name) == 0 && m[i].peak != 0) {
            s.achieved += m[i].achieved;
            s.peak += m[i].peak;
        }
    return s;
}

static double percent(double part, double whole)
{
    return whole == 0 ? 0 : round(part / whole * 1e4) / 1e2;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The average and the shares by type have fields of their own. */
static bool is_other(const char *name)
{
    return strcmp(name, "Avg MXU Busy") != 0 && strcmp(name, "MXU BF16") != 0 &&
           strcmp(name, "MXU I8") != 0 && strcmp(name, "MXU I4") != 0 &&
           strcmp(name, "MXU E4M3 + E5M2") != 0;
}

static void put_capped(struct xp_json *j, const char *key, double achieved, double peak)
{
    double v = percent(achieved, peak);
    if (peak == 0)
        return;
    xp_json_key(j, key);
    xp_json_double(j, v < 100 ? v : 100);
}

static void put_others(struct xp_json *j, const struct tpu_metric *m, size_t n)
{
    struct sums hbm = {0};
    xp_json_key(j, "other_metrics");
    xp_json_obj(j);
    for (size_t i = 0; i < n; i++) {
        if (has_prefix(m[i].name, "HBM Rd+Wr")) {
            hbm.achieved += m[i].achieved;
            hbm.peak += m[i].peak;
            continue;
        }
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first &= strcmp(m[k].name, m[i].name) != 0;
        struct sums s = sum_of(m, n, m[i].name);
        if (first && is_other(m[i].name))
            put_capped(j, m[i].name, s.achieved, s.peak);
    }
    put_capped(j, "HBM Bandwidth Utilization", hbm.achieved, hbm.peak);
    xp_json_obj_end(j);
}

static void put_breakdown(struct xp_json *j, const struct tpu_metric *m, size_t n)
{
    static const char *const keys[] = {"BF16", "FP8", "Int4", "Int8"};
    static const char *const names[] = {"MXU BF16", "MXU E4M3 + E5M2", "MXU I4", "MXU I8"};
    double cycles[4], all = 0;
    for (int i = 0; i < 4; i++)
        all += cycles[i] = sum_of(m, n, names[i]).achieved;
    xp_json_key(j, "mxu_cycles_breakdown");
    xp_json_obj(j);
    for (int i = 0; i < 4; i++)
        xp_json_key(j, keys[i]), xp_json_double(j, percent(cycles[i], all));
    xp_json_obj_end(j);
}

static void put_kernel(struct xp_json *j, enum tpu_chip chip, const struct counter_facts_sample *s)
{
    struct tpu_metric m[TPU_METRICS_MAX];
    size_t n = tpu_metrics(chip, &s->values, m);
    struct sums mxu = sum_of(m, n, "Avg MXU Busy");
    double busy = percent(mxu.achieved, mxu.peak);
    int64_t ps = s->duration_ps ? s->duration_ps : s->kernel_ps;
    xp_json_obj(j);
    xp_json_key(j, "kernel_name"), xp_json_span(j, s->kernel);
    xp_json_key(j, "duration_us"), xp_json_double(j, (double)ps / 1e6);
    xp_json_key(j, "mxu_utilization"), xp_json_double(j, busy);
    xp_json_key(j, "mxu_is_anomaly"), xp_json_bool(j, busy > 100);
    put_breakdown(j, m, n);
    put_others(j, m, n);
    xp_json_obj_end(j);
}

static void put_device(struct xp_json *j, struct facts *f, const struct counter_facts_device *d,
                       struct xp_arena *a)
{
    struct counter_facts_sample s;
    xp_json_obj(j);
    xp_json_key(j, "device_id"), xp_json_i64(j, d->id);
    xp_json_key(j, "device_type"), xp_json_span(j, d->type);
    xp_json_key(j, "kernels");
    xp_json_arr(j);
    while (counter_facts_sample(f, a, &s))
        put_kernel(j, d->chip, &s);
    xp_json_arr_end(j);
    xp_json_obj_end(j);
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (args->csv)
        return tool_no_csv(err);
    return counter_facts_map(host, args, a, partial, err);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct counter_facts_device d;
    struct facts *hosts;
    struct xp_json j;
    size_t n;
    (void)args;
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    if (n != 1)
        return xp_fail(err, XP_NOT_FOUND, 0, "kernel utilization is of one host at a time");
    XP_TRY(facts_need_readable(hosts, err));
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "status"), xp_json_str(&j, "SUCCESS");
    xp_json_key(&j, "devices");
    xp_json_arr(&j);
    while (counter_facts_device(hosts, &d)) {
        put_device(&j, hosts, &d, scratch);
        out_flush(out);
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    return facts_ok(hosts, err);
}

const struct tool tool_kernel_utilization = {.id = "kernel_utilization",
                                             .map = map,
                                             .merge = facts_merge,
                                             .render = render,
                                             .report = &report_kernel_utilization};
