/* shard/tools/topology.h - where in the torus a chip sits, as far as type and count tell.
 *
 * No profile records it. Slices come in shapes that are as near to a square (v2, v3, v5e, v6e: two
 * dimensions) or a cube (v4, v5p, TPU7x: three) as their number of chips lets them be, x being the
 * shortest side, and chips are numbered x first, then y, then z. Pages that draw this say that it
 * is assumed, and take topology=4x8 from who knows better.
 */
#ifndef SHARD_TOPOLOGY_H
#define SHARD_TOPOLOGY_H

#include "lib/base/span.h"
#include "lib/base/status.h"

#define TOPOLOGY_CHIPS (1u << 20)
#define TOPOLOGY_LARGEST (1u << 14) /* chips of a slice; the largest that are sold have 9,216 */

struct topology {
    uint32_t dims[3]; /* x, y, z; 1 where there is none */
    bool solid;       /* three dimensions */
};

/* device: "TPU v6 Lite". chips of one slice, 1 to TOPOLOGY_CHIPS. */
struct topology topology_of(struct xp_span device, uint32_t chips);
/* How many chips the smallest slice has that has so many; 0: no slice has. */
uint32_t topology_whole(struct xp_span device, uint32_t chips);
/* "4x8", "2x2x4". XP_BAD_REQUEST: it is not of that form, or has fewer chips. */
enum xp_status topology_parse(struct xp_span text, uint32_t chips, struct topology *t,
                              struct xp_error *err);
void topology_place(const struct topology *t, uint32_t chip, uint32_t xyz[3]);

#endif
