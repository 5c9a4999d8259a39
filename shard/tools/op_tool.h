/* shard/tools/op_tool.h - map and merge of the tools that are views of op statistics.
 *
 * Their partial is a packed struct op_stats (stats/op_stats.h); what differs is render.
 */
#ifndef SHARD_OP_TOOL_H
#define SHARD_OP_TOOL_H

#include "shard/stats/op_stats.h"
#include "shard/tools/table.h"
#include "shard/tools/tool.h"

#define OP_PARTIAL_MAX ((size_t)512 << 20)

enum xp_status op_tool_map(const struct tool_host *host, const struct tool_args *args,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
/* With the ops inside fusions. */
enum xp_status op_tool_map_children(const struct tool_host *host, const struct tool_args *args,
                                    struct xp_arena *a, struct xp_span *partial,
                                    struct xp_error *err);
enum xp_status op_tool_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err);

/* Moves what the buffer holds to the arena. */
enum xp_status op_tool_bytes(struct xp_buf *b, struct xp_arena *a, struct xp_span *out,
                             struct xp_error *err);

/* A cell of a source position, as XProf writes it in HTML. */
void op_table_source(struct tables *t, const struct op_source *s);

static inline double op_us(uint64_t ps)
{
    return (double)ps / 1e6;
}

#endif
