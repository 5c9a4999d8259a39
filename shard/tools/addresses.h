/* shard/tools/addresses.h - what is alive at each address: a hash table from addresses to numbers
 * of allocations. What is freed is dropped, so that the table is as large as what is alive at once.
 */
#ifndef SHARD_ADDRESSES_H
#define SHARD_ADDRESSES_H

#include "lib/base/arena.h"

#define ADDRESS_FREE UINT32_MAX

struct addresses {
    struct address {
        uint64_t key;
        uint32_t index; /* of an allocation, or ADDRESS_FREE: the slot is */
    } * slots;
    size_t mask, n;
    struct xp_arena *a;
};

/* False when the arena is spent; so address_at's NULL. */
bool addresses_init(struct addresses *t, struct xp_arena *a);
void addresses_clear(struct addresses *t);
/* The slot of an address; ADDRESS_FREE, with its key set, if nothing is there. */
struct address *address_at(struct addresses *t, uint64_t address);
/* What was alive there, ADDRESS_FREE if nothing; it no longer is. */
uint32_t address_take(struct addresses *t, uint64_t address);

#endif
