#include "shard/tools/std_sort.h"

#include <stdbool.h>
#include <stdlib.h>

#define RUN 16

#define item struct std_sort_item

static inline bool less(const item *a, const item *b)
{
    return a->key < b->key;
}

static inline void swap(item *a, item *b)
{
    item t = *a;
    *a = *b;
    *b = t;
}

static void median_to_first(item *to, item *a, item *b, item *c)
{
    if (less(a, b))
        swap(to, less(b, c) ? b : less(a, c) ? c : a);
    else
        swap(to, less(a, c) ? a : less(b, c) ? c : b);
}

/* The median of three ends the scans from both sides. */
static item *partition(item *first, item *last)
{
    item *pivot = first;
    median_to_first(first, first + 1, first + (last - first) / 2, last - 1);
    for (first++;; first++) {
        while (less(first, pivot))
            first++;
        last--;
        while (less(pivot, last))
            last--;
        if (first >= last)
            return first;
        swap(first, last);
    }
}

static int by_key(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* As deep as twice the logarithm of n; what is not sorted by then is sorted in another way. */
static void introsort(item *first, item *last, int depth)
{
    while (last - first > RUN) {
        if (depth-- == 0) {
            qsort(first, (size_t)(last - first), sizeof *first, by_key);
            return;
        }
        item *cut = partition(first, last);
        introsort(cut, last, depth);
        last = cut;
    }
}

/* There is an element that is not larger before it. */
static void insert(item *at)
{
    item v = *at;
    for (; less(&v, at - 1); at--)
        *at = at[-1];
    *at = v;
}

static void insertion_sort(item *first, item *last)
{
    for (item *i = first + 1; i < last; i++) {
        if (!less(i, first)) {
            insert(i);
            continue;
        }
        item v = *i;
        for (item *k = i; k > first; k--)
            *k = k[-1];
        *first = v;
    }
}

void std_sort(struct std_sort_item *v, size_t n)
{
    int depth = 0;
    if (n < 2)
        return;
    for (size_t k = n; k > 1; k /= 2)
        depth += 2;
    introsort(v, v + n, depth);
    insertion_sort(v, v + (n < RUN ? n : RUN));
    for (size_t i = RUN; i < n; i++)
        insert(v + i);
}
