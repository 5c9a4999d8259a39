/* shard/tools/xprof_lists.h - XProf's lists about a run: which tools make sense, which HLO
 * modules it has.
 *
 * Parts are pinned and wholly loaded, but for the list of tools only the first: of the others the
 * index is enough. A file that XProf's parser would refuse gives the empty
 * list, as XProf does.
 */
#ifndef SHARD_XPROF_LISTS_H
#define SHARD_XPROF_LISTS_H

#include "shard/tools/tool.h"

/* JSON list of tool names, from the first host alone; out->content_type is set. */
enum xp_status xprof_run_tools(const struct tool_host *hosts, size_t n, struct out *out,
                               struct xp_error *err);

/* Module names joined by commas, text/plain. */
enum xp_status xprof_module_list(const struct tool_host *hosts, size_t n, struct xp_arena *scratch,
                                 struct out *out, struct xp_error *err);

#endif
