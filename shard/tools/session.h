/* shard/tools/session.h - the partial of the pages about steps: op stats and steps of some hosts.
 *
 * session_map and session_merge are what such a tool puts in its row; session_open is the first
 * thing that its render does. session_map_requests is for a page that tells how long requests
 * took: of hosts that do not train.
 */
#ifndef SHARD_SESSION_H
#define SHARD_SESSION_H

#include "shard/stats/figures.h"
#include "shard/stats/steps.h"
#include "shard/tools/tool.h"

#define SESSION_MAX ((size_t)256 << 20) /* bytes of a partial */

struct session {
    const struct op_stats *stats;
    struct steps steps;
    struct op_session all;
    struct xp_span figures;  /* for session_open_report */
    struct xp_span requests; /* for requests_open; empty unless they were mapped */
};

enum xp_status session_map(const struct tool_host *host, const struct tool_args *args,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err);
enum xp_status session_map_requests(const struct tool_host *host, const struct tool_args *args,
                                    struct xp_arena *a, struct xp_span *partial,
                                    struct xp_error *err);
/* The same for reports: of any file, as far as it could be read, and with the figures that reports
 * take as given. */
enum xp_status session_map_report(const struct tool_host *host, const struct tool_args *args,
                                  struct xp_arena *a, struct xp_span *partial,
                                  struct xp_error *err);
enum xp_status session_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err);
enum xp_status session_open(struct xp_span merged, struct xp_arena *a, struct session *out,
                            struct xp_error *err);

/* For reports: the session, and the run's figures with the overrides that args ask for. */
enum xp_status session_open_report(struct xp_span merged, const struct tool_args *args,
                                   struct xp_arena *a, struct session *out, struct figures *f,
                                   struct xp_error *err);

/* What is wrong with the steps, in words; NULL: nothing. */
const char *session_step_warning(const struct step_db *db);

#endif
