#include "shard/tools/reports.h"
#include "shard/tools/session.h"

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    (void)args;
    XP_TRY(session_open(merged, r->a, &s, err));
    report_u64(r, "hosts", s.stats->nhosts, NULL);
    report_u64(r, "cores", s.all.device_cores, NULL);
    report_string(r, "device_type", s.all.device_type, NULL);
    return XP_OK;
}

const struct tool_report report_overview_page = {
    .question = "Is it fast enough, and if not, why?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
