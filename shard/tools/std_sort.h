/* shard/tools/std_sort.h - the order in which XProf's sorts leave equal elements.
 *
 * XProf sorts with libstdc++'s std::sort, which is not stable, and some of its tables show what it
 * did: equal rows in an order that looks like chance. This is that algorithm: introsort to
 * runs of 16, then insertion.
 */
#ifndef SHARD_STD_SORT_H
#define SHARD_STD_SORT_H

#include <stddef.h>
#include <stdint.h>

struct std_sort_item {
    uint64_t key;
    uint32_t index; /* of what it stands for */
};

void std_sort(struct std_sort_item *v, size_t n);

#endif
