/* How busy each unit of a TPU was, from its hardware counters. */
#include "shard/tools/counter_samples.h"
#include "shard/tools/table.h"

static void put_columns(struct tables *t)
{
    table_col(t, "host", TABLE_NUMBER, "Host");
    table_col(t, "device", TABLE_NUMBER, "Device");
    table_col(t, "sample", TABLE_NUMBER, "Sample");
    table_col(t, "node", TABLE_NUMBER, "Node");
    table_col(t, "name", TABLE_STRING, "Name");
    table_col(t, "achieved", TABLE_NUMBER, "Achieved");
    table_col(t, "peak", TABLE_NUMBER, "Peak");
    table_col(t, "unit", TABLE_STRING, "Unit");
}

static void put_metric(struct tables *t, int64_t device, int64_t sample, const struct tpu_metric *m)
{
    table_row(t);
    table_num(t, 0); /* XProf knows no host here */
    table_num(t, (double)device);
    table_num(t, (double)(int32_t)sample); /* kept as an int there */
    table_num(t, m->node);
    table_cstr(t, m->name);
    table_num(t, m->achieved);
    table_num(t, m->peak);
    table_cstr(t, m->unit);
}

static enum xp_status put_plane(struct tables *t, const struct part *p, const struct part_plane *pl,
                                struct xp_arena *a, struct xp_error *err)
{
    struct tpu_metric metrics[TPU_METRICS_MAX];
    struct counter_device d;
    enum tpu_chip chip;
    XP_TRY(counter_device_open(&d, p, pl, a, err));
    if (d.id == -1 || !tpu_chip_of(d.type, &chip))
        return XP_OK;
    for (uint32_t i = pl->first_line; i < pl->first_line + pl->nlines; i++) {
        struct counter_sample s;
        XP_TRY(counter_sample_read(&d, &p->lines[i], &s, err));
        size_t n = s.values.n ? tpu_metrics(chip, &s.values, metrics) : 0;
        for (size_t k = 0; k < n; k++)
            put_metric(t, (int32_t)d.id, p->lines[i].id, &metrics[k]);
    }
    return XP_OK;
}

static enum xp_status answer(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct tables t;
    /* XProf looks at the first host alone, and minds only its file. */
    XP_TRY(profile_all_readable(hosts, n ? 1 : 0, err));
    tables_begin(&t, out, args->csv, false);
    table_begin(&t);
    put_columns(&t);
    for (uint32_t k = 0; n && k < hosts[0].part->nplanes; k++) {
        const struct part *p = hosts[0].part;
        if (profile_is_tpu(profile_plane_name(p, &p->planes[k])))
            XP_TRY(put_plane(&t, p, &p->planes[k], scratch, err));
    }
    table_end(&t);
    tables_end(&t);
    return XP_OK;
}

const struct tool tool_utilization_viewer = {
    .id = "utilization_viewer",
    .tolerant = true,
    .answer = answer,
};
