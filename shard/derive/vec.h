/* shard/derive/vec.h - a growing array of scratch.
 *
 * Elements are plain structs of one size; pointers to them die at the next push. The owner frees it
 * with vec_free. One thread. A large one is mapped: it grows without being copied, so that what it
 * held before takes no memory beside it, and gives all back at once.
 */
#ifndef SHARD_VEC_H
#define SHARD_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct vec {
    void *p;
    size_t n, cap;
    size_t mapped; /* bytes; 0: from malloc */
};

void *vec_grow(struct vec *v, size_t size);

/* Room for one more element of `size` bytes, counted; NULL when memory is out. */
static inline void *vec_push(struct vec *v, size_t size)
{
    if (v->n == v->cap && !vec_grow(v, size))
        return NULL;
    return (uint8_t *)v->p + size * v->n++;
}

/* Gives back the room of a large one that nothing is in. */
void vec_trim(struct vec *v, size_t size);
void vec_unmap(struct vec *v);

static inline void vec_free(struct vec *v)
{
    if (v->mapped)
        vec_unmap(v);
    else
        free(v->p);
    *v = (struct vec){0};
}

#define VEC(v, type) ((type *)(v).p)

#endif
