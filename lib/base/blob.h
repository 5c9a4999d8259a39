/* lib/base/blob.h - bytes that several owners share; gone with the last of them.
 *
 * Made from malloc'd bytes, which it takes over. Immutable. Threads: any; the count is atomic.
 */
#ifndef XP_BASE_BLOB_H
#define XP_BASE_BLOB_H

#include <stdatomic.h>

#include "lib/base/span.h"

struct xp_blob {
    _Atomic int refs;
    uint8_t *p;
    size_t n;
};

/* One reference, the caller's. */
struct xp_blob *xp_blob_new(uint8_t *p, size_t n);
struct xp_blob *xp_blob_ref(struct xp_blob *b);
void xp_blob_unref(struct xp_blob *b); /* NULL is fine */

#endif
