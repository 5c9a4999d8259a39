#include "shard/tools/tool.h"

#define TOOL(symbol, id, title, view, hosts) extern const struct tool tool_##symbol;
#include "shard/tools/tools.def"
#undef TOOL

static const struct tool *const tools[] = {
#define TOOL(symbol, id, title, view, hosts) &tool_##symbol,
#include "shard/tools/tools.def"
#undef TOOL
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
    if (t->answer)
        return t->answer(hosts, n, args, scratch, out, err);
    XP_TRY(map_and_merge(t, hosts, n, args, scratch, &merged, err));
    return t->render(merged, args, scratch, out, err);
}
