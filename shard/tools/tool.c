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
