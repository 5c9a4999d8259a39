/* Hardware counters as shares of what each unit could have done, one kernel a sample. */
#include <math.h>

#include "shard/tools/counter_samples.h"

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

struct kernel {
    struct xp_span name;
    int64_t duration_ps; /* of the op that it is named by; 0: it is not */
};

/* The plane's op that begins first. */
static void first_op(const struct counter_device *d, struct kernel *k)
{
    const struct part *p = d->part;
    int64_t begin = INT64_MAX;
    for (uint32_t i = d->plane->first_line; i < d->plane->first_line + d->plane->nlines; i++) {
        const struct part_line *l = &p->lines[i];
        if (!xp_span_eq(part_str(p, l->name), XP_SPAN_LIT("XLA Ops")))
            continue;
        for (uint32_t n = 0; n < l->nlanes; n++) {
            struct lane_cursor c;
            struct lane_event ev;
            lane_seek(&c, l->lanes[n], INT64_MIN);
            if (!lane_next(&c, &ev) || ev.name >= d->plane->nevmeta || ev.begin_ps > begin ||
                (ev.begin_ps == begin && ev.end_ps - ev.begin_ps <= k->duration_ps))
                continue;
            begin = ev.begin_ps;
            *k = (struct kernel){part_str(p, d->plane->evmeta[ev.name].name),
                                 ev.end_ps - ev.begin_ps};
        }
    }
}

/* Samples are lines "counters_<kernel>"; "counters_0" is of no kernel in particular: XProf takes
 * the first op. Other lines have no names for it. */
static struct kernel kernel_of(const struct counter_device *d, const struct part_line *line)
{
    static const struct xp_span prefix = {(const uint8_t *)"counters_", 9};
    struct xp_span name = part_str(d->part, line->name);
    struct kernel k = {XP_SPAN_LIT("default_kernel"), 0};
    if (!xp_span_starts(name, prefix) || name.n == prefix.n)
        return k;
    name = xp_span_of(name.p + prefix.n, name.n - prefix.n);
    if (xp_span_eq(name, XP_SPAN_LIT("0")))
        first_op(d, &k);
    else
        k.name = name;
    return k;
}

static void put_kernel(struct xp_json *j, enum tpu_chip chip, const struct kernel *k,
                       const struct counter_sample *s)
{
    struct tpu_metric m[TPU_METRICS_MAX];
    size_t n = tpu_metrics(chip, &s->values, m);
    struct sums mxu = sum_of(m, n, "Avg MXU Busy");
    double busy = percent(mxu.achieved, mxu.peak);
    int64_t ps = s->duration_ps ? s->duration_ps : k->duration_ps;
    xp_json_obj(j);
    xp_json_key(j, "kernel_name"), xp_json_span(j, k->name);
    xp_json_key(j, "duration_us"), xp_json_double(j, (double)ps / 1e6);
    xp_json_key(j, "mxu_utilization"), xp_json_double(j, busy);
    xp_json_key(j, "mxu_is_anomaly"), xp_json_bool(j, busy > 100);
    put_breakdown(j, m, n);
    put_others(j, m, n);
    xp_json_obj_end(j);
}

static enum xp_status put_device(struct xp_json *j, struct counter_device *d, enum tpu_chip chip,
                                 struct xp_error *err)
{
    xp_json_obj(j);
    xp_json_key(j, "device_id"), xp_json_i64(j, d->id);
    xp_json_key(j, "device_type"), xp_json_span(j, d->type);
    xp_json_key(j, "kernels");
    xp_json_arr(j);
    for (uint32_t i = 0; i < d->plane->nlines; i++) {
        const struct part_line *line = &d->part->lines[d->plane->first_line + i];
        struct counter_sample s;
        XP_TRY(counter_sample_read(d, line, &s, err));
        struct kernel k = kernel_of(d, line);
        if (s.values.n)
            put_kernel(j, chip, &k, &s);
    }
    xp_json_arr_end(j);
    xp_json_obj_end(j);
    return XP_OK;
}

static enum xp_status answer(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct xp_json j;
    if (args->csv)
        return tool_no_csv(err);
    if (n != 1)
        return xp_fail(err, XP_NOT_FOUND, 0, "kernel utilization is of one host at a time");
    XP_TRY(profile_all_readable(hosts, n, err));
    const struct part *p = hosts[0].part;
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "status"), xp_json_str(&j, "SUCCESS");
    xp_json_key(&j, "devices");
    xp_json_arr(&j);
    for (uint32_t i = 0; i < p->nplanes; i++) {
        struct xp_span name = profile_plane_name(p, &p->planes[i]);
        struct counter_device d;
        enum tpu_chip chip;
        uint32_t ordinal;
        if (!profile_is_tpu(name))
            continue;
        XP_TRY(counter_device_open(&d, p, &p->planes[i], scratch, err));
        if (d.id == -1 && profile_ordinal(name, &ordinal))
            d.id = ordinal;
        if (d.id != -1 && tpu_chip_of(d.type, &chip))
            XP_TRY(put_device(&j, &d, chip, err));
        out_flush(out);
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    return XP_OK;
}

const struct tool tool_kernel_utilization = {.id = "kernel_utilization", .answer = answer};
