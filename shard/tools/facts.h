/* shard/tools/facts.h - the partial of tools that keep their hosts apart: what each host's profile
 * said, as numbers and texts in the order in which they were put.
 *
 * map:    facts_begin, then facts_u64, facts_text, ... in an order of the tool's own, facts_end
 * merge:  facts_merge is the row's; hosts are kept in the order of the request
 * render: facts_open, then of each host the same values with facts_get_*, in the same order
 *
 * Texts are kept once. Reading past the end, or bytes that are no facts, gives zeros and sets
 * `bad`; facts_ok says so at the end. Loops over a count that was read take facts_get_count, which
 * is never more than the bytes that are left.
 */
#ifndef SHARD_FACTS_H
#define SHARD_FACTS_H

#include "lib/base/strpool.h"
#include "shard/tools/tool.h"

#define FACTS_MAX ((size_t)512 << 20) /* bytes of a host; XP_TOO_LARGE above */

struct facts_out {
    struct xp_strpool texts;
    struct xp_buf body;
    bool full; /* no memory for texts */
};

enum xp_status facts_begin(struct facts_out *f, struct xp_arena *a, struct xp_error *err);
void facts_u64(struct facts_out *f, uint64_t v);
void facts_i64(struct facts_out *f, int64_t v);
void facts_double(struct facts_out *f, double v);
void facts_text(struct facts_out *f, struct xp_span s);
/* Frees f's buffer in any case; the partial lives in the arena. */
enum xp_status facts_end(struct facts_out *f, const struct tool_host *host, struct xp_arena *a,
                         struct xp_span *partial, struct xp_error *err);
void facts_drop(struct facts_out *f); /* instead of facts_end */

/* The same facts, of this host: for those that are kept with a part, which has no place in a
 * request. */
enum xp_status facts_of(struct xp_span partial, const struct tool_host *host, struct xp_arena *a,
                        struct xp_span *out, struct xp_error *err);

/* Of a host whose file could not be read: there, but not readable. */
enum xp_status facts_unreadable(const struct tool_host *host, struct xp_arena *a,
                                struct xp_span *partial, struct xp_error *err);

enum xp_status facts_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                           struct xp_span *both, struct xp_error *err);

struct facts {
    uint32_t index; /* in the request */
    struct xp_span host;
    bool readable;
    const uint8_t *p, *end;
    const struct xp_span *texts;
    size_t ntexts;
    bool bad;
};

/* Texts point into `merged`. */
enum xp_status facts_open(struct xp_span merged, struct xp_arena *a, struct facts **hosts,
                          size_t *n, struct xp_error *err);
uint64_t facts_get_u64(struct facts *f);
int64_t facts_get_i64(struct facts *f);
double facts_get_double(struct facts *f);
struct xp_span facts_get_text(struct facts *f);
size_t facts_get_count(struct facts *f);
/* XP_NOT_FOUND, XProf's "No Data", of a host that could not be read. */
enum xp_status facts_need_readable(const struct facts *f, struct xp_error *err);
enum xp_status facts_ok(const struct facts *f, struct xp_error *err);

#endif
