/* How busy each unit of a TPU was, from its hardware counters. */
#include "shard/tools/counter_facts.h"
#include "shard/tools/reports_more.h"
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

static void put_host(struct tables *t, struct facts *f, struct xp_arena *a)
{
    struct tpu_metric metrics[TPU_METRICS_MAX];
    struct counter_facts_device d;
    struct counter_facts_sample s;
    while (counter_facts_device(f, &d))
        while (counter_facts_sample(f, a, &s)) {
            size_t n = d.id_told ? tpu_metrics(d.chip, &s.values, metrics) : 0;
            for (size_t k = 0; k < n; k++)
                put_metric(t, (int32_t)d.id, s.id, &metrics[k]);
        }
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct facts *hosts;
    struct tables t;
    size_t n;
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    /* XProf looks at the first host alone, and minds only its file. */
    if (n)
        XP_TRY(facts_need_readable(hosts, err));
    tables_begin(&t, out, args->csv, false);
    table_begin(&t);
    put_columns(&t);
    if (n)
        put_host(&t, hosts, scratch);
    table_end(&t);
    tables_end(&t);
    return n ? facts_ok(hosts, err) : XP_OK;
}

const struct tool tool_utilization_viewer = {.id = "utilization_viewer",
                                             .tolerant = true,
                                             .map = counter_facts_map,
                                             .merge = facts_merge,
                                             .render = render,
                                             .report = &report_utilization_viewer};
