/* shard/tools/modules.h - the HLO modules of profiles, as the tools for one module ask for them.
 *
 * A module is an event metadata of the plane /host:metadata with the stat "Hlo Proto"; it goes by
 * its own name and the number of its program: jit_f(123). Where there is none at all XProf knows
 * the empty module NO_MODULE. Hosts without a part are passed over.
 * Parts need not be loaded but for their index: a plane that is not ready is read from the file.
 */
#ifndef SHARD_MODULES_H
#define SHARD_MODULES_H

#include "shard/hlo/hlo.h"
#include "shard/tools/tool.h"

/* The HloProto that module_name or else program_id names, in memory of a. XP_NOT_FOUND with
 * XProf's words: neither is given, or there is no such module. */
enum xp_status modules_find(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                            struct xp_arena *a, struct xp_span *proto, struct xp_error *err);

/* The first module that has an instruction of that name. */
enum xp_status modules_find_node(const struct tool_host *hosts, size_t n, struct xp_span node,
                                 struct xp_arena *a, struct xp_span *proto, struct xp_error *err);

#endif
