/* shard/merged.h - the partials of a call's hosts, joined as they come.
 *
 * Each joined one stands for hosts [k 2^i, (k + 1) 2^i), so that a host's partial is taken apart
 * and put together some log2(hosts) times and not once for each host after it, and that what is
 * joined with what does not depend on who came first: sums of fractions are the same to the last
 * digit, whichever shard was quick. Of more than MERGED_HELD that wait for others, neighbours are
 * joined all the same.
 *
 * A partial is copied in; scratch memory comes from the arena given. After a failure what was
 * there before is there still.
 */
#ifndef SHARD_MERGED_H
#define SHARD_MERGED_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/status.h"

#define MERGED_HELD 128
#define MERGED_MAX ((size_t)1 << 30) /* bytes of one */

typedef enum xp_status (*merged_fn)(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                    struct xp_span *both, struct xp_error *err);

struct merged_node;

struct merged {
    struct merged_node *v; /* by first host */
    size_t n;
};

/* one: of the host; each once. */
enum xp_status merged_add(struct merged *m, merged_fn merge, uint32_t host, struct xp_span one,
                          struct xp_arena *a, struct xp_error *err);
/* All in one; it lives as long as the arena and m. Empty if there was none. */
enum xp_status merged_all(const struct merged *m, merged_fn merge, struct xp_arena *a,
                          struct xp_span *all, struct xp_error *err);
void merged_fini(struct merged *m);

#endif
