/* shard/tools/xprof_lists.h - XProf's lists about a run: which tools make sense, which HLO
 * modules it has. Tools but for their names: each host is looked at alone.
 *
 * A file that XProf's parser would refuse gives the empty list, as XProf does.
 */
#ifndef SHARD_XPROF_LISTS_H
#define SHARD_XPROF_LISTS_H

#include "shard/tools/tool.h"

/* JSON list of tool names, from the first host alone. Of the others the index is enough. */
extern const struct tool tool_run_tools;
/* Module names joined by commas, text/plain. */
extern const struct tool tool_module_list;

#endif
