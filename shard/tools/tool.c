#include "shard/tools/tool.h"

#include "shard/tools/reports.h"
#include "shard/tools/xprof_lists.h"

#define TOOL(symbol, id, title, view, hosts) extern const struct tool tool_##symbol;
#include "shard/tools/tools.def"
#undef TOOL

static const struct tool *const tools[] = {
#define TOOL(symbol, id, title, view, hosts) &tool_##symbol,
#include "shard/tools/tools.def"
#undef TOOL
    &tool_tools,     &tool_device_activity, &tool_coverage,
    &tool_run_facts, &tool_run_tools,       &tool_module_list,
};

static const char *const titles[] = {
#define TOOL(symbol, id, title, view, hosts) title,
#include "shard/tools/tools.def"
#undef TOOL
    "Tools", "Device activity", "Coverage", "Run", "", "",
};

const struct tool *tool_find(struct xp_span id)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
        if (xp_span_eq(id, xp_span_str(tools[i]->id)))
            return tools[i];
    return NULL;
}

bool tool_arg(const struct tool_args *a, const char *name, struct xp_span *value)
{
    for (size_t i = 0; i < a->n; i++)
        if (xp_span_eq(a->args[i].name, xp_span_str(name))) {
            *value = a->args[i].value;
            return true;
        }
    return false;
}

enum xp_status tool_no_csv(struct xp_error *err)
{
    return xp_fail(err, XP_INTERNAL, 0, "Data format not suitable for CSV (missing 'cols')");
}

enum xp_status tool_no_data(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                            struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    (void)hosts, (void)n, (void)args, (void)scratch, (void)out;
    return xp_fail(err, XP_NOT_FOUND, 0, "No Data");
}

static enum xp_status map_and_merge(const struct tool *t, const struct tool_host *hosts, size_t n,
                                    const struct tool_args *args, struct xp_arena *scratch,
                                    struct xp_span *merged, struct xp_error *err)
{
    *merged = (struct xp_span){0};
    for (size_t i = 0; i < n; i++) {
        struct xp_span one = {0};
        XP_TRY(t->map(&hosts[i], args, scratch, &one, err));
        XP_TRY(t->merge(*merged, one, scratch, merged, err));
    }
    return XP_OK;
}

enum xp_status tool_run(const struct tool *t, const struct tool_host *hosts, size_t n,
                        const struct tool_args *args, struct xp_arena *scratch, struct out *out,
                        struct xp_error *err)
{
    struct xp_span merged;
    if (t->answer && !(t->map && n > 1))
        return t->answer(hosts, n, args, scratch, out, err);
    XP_TRY(map_and_merge(t, hosts, n, args, scratch, &merged, err));
    return t->render(merged, args, scratch, out, err);
}

/* --- reports --- */

struct tool_report tool_report_of(const struct tool *t)
{
    struct tool_report r = t->report ? *t->report : (struct tool_report){0};
    if (!r.map)
        r.map = t->map;
    if (!r.merge)
        r.merge = t->merge;
    return r;
}

static const char *title_of(const struct tool *t)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
        if (tools[i] == t)
            return titles[i];
    return t->id;
}

enum xp_status tool_report_run(const struct tool *t, const struct report_host *hosts, size_t n,
                               struct xp_span merged, const struct tool_args *args,
                               struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct report_ask ask = {.tool = t->id,
                             .title = title_of(t),
                             .question = t->report->question,
                             .csv = args->csv,
                             .range = args->range,
                             .hosts = hosts,
                             .nhosts = (uint32_t)n};
    struct report r;
    tool_arg(args, "limit", &ask.limit);
    tool_arg(args, "skip", &ask.skip);
    tool_arg(args, "sort", &ask.sort);
    tool_arg(args, "filter", &ask.filter);
    tool_arg(args, "table", &ask.table);
    XP_TRY(report_begin(&r, &ask, scratch, out, err));
    return report_end(&r, t->report->write(merged, args, &r, err), err);
}
