/* memory_viewer: what memory one HLO module holds over its run. */
#include "shard/tools/memory_view.h"
#include "shard/tools/modules.h"
#include "shard/tools/reports_more.h"

#define SPACE_DIGITS 9

/* A colour; what is no number is 0, as XProf has it. */
static int64_t memory_space(const struct tool_args *args)
{
    struct xp_span s = {0};
    int64_t v = 0;

    tool_arg(args, "memory_space", &s);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || s.n > SPACE_DIGITS)
            return 0;
        v = v * 10 + s.p[i] - '0';
    }
    return v;
}

static enum xp_status memory_viewer(const struct tool_host *hosts, size_t n,
                                    const struct tool_args *args, struct xp_arena *scratch,
                                    struct out *out, struct xp_error *err)
{
    struct xp_span proto, timeline = {0};
    struct hlo_module *m;
    struct memory_view v;

    if (args->csv)
        return tool_no_csv(err);
    XP_TRY(modules_find(hosts, n, args, scratch, &proto, err));
    XP_TRY(hlo_decode(proto, scratch, &m, err));
    XP_TRY(memory_view_make(m, memory_space(args), scratch, &v, err));
    tool_arg(args, "view_memory_allocation_timeline", &timeline);
    if (timeline.n == 0)
        return memory_json(&v, scratch, out, err);
    out->content_type = "text/html";
    memory_page(&v, out);
    return XP_OK;
}

const struct tool tool_memory_viewer = {.id = "memory_viewer",
                                        .index_only = true,
                                        .tolerant = true,
                                        .answer = memory_viewer,
                                        .report = &report_memory_viewer};
