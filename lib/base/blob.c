#include "lib/base/blob.h"

#include <stdlib.h>

#include "lib/base/status.h"

struct xp_blob *xp_blob_new(uint8_t *p, size_t n)
{
    struct xp_blob *b = malloc(sizeof *b);
    XP_ASSERT(b);
    atomic_init(&b->refs, 1);
    b->p = p;
    b->n = n;
    return b;
}

struct xp_blob *xp_blob_ref(struct xp_blob *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void xp_blob_unref(struct xp_blob *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(b->p);
    free(b);
}
