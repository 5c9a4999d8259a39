/* shard/merged.h - the partials of a call's hosts, joined as they come.
 *
 * Each joined one stands for a power of two of hosts, as the digits of a binary number do, so that
 * a host's partial is taken apart and put together some log2(hosts) times and not once for each
 * host after it. merge knows no order (tools/tool.h).
 *
 * A partial is copied in; scratch memory comes from the arena given. After a failure what was
 * there before is there still.
 */
#ifndef SHARD_MERGED_H
#define SHARD_MERGED_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/status.h"

#define MERGED_LEVELS 32
#define MERGED_MAX ((size_t)1 << 30) /* bytes of one */

typedef enum xp_status (*merged_fn)(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                    struct xp_span *both, struct xp_error *err);

struct merged {
    uint32_t n; /* partials: bit i says that level[i] is there */
    struct xp_buf level[MERGED_LEVELS];
};

enum xp_status merged_add(struct merged *m, merged_fn merge, struct xp_span one, struct xp_arena *a,
                          struct xp_error *err);
/* All in one; it lives as long as the arena and m. Empty if there was none. */
enum xp_status merged_all(const struct merged *m, merged_fn merge, struct xp_arena *a,
                          struct xp_span *all, struct xp_error *err);
void merged_fini(struct merged *m);

#endif
