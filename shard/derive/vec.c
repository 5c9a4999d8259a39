#include "shard/derive/vec.h"

#include <string.h>
#include <sys/mman.h>

#define MAPPED ((size_t)1 << 20) /* arrays of so many bytes are */

static void *map(struct vec *v, size_t used, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (used)
        memcpy(p, v->p, used);
    free(v->p);
    return p;
}

static void *grow(struct vec *v, size_t size, size_t bytes)
{
    if (bytes < MAPPED)
        return realloc(v->p, bytes);
    void *p =
        v->mapped ? mremap(v->p, v->mapped, bytes, MREMAP_MAYMOVE) : map(v, v->n * size, bytes);
    if (p == MAP_FAILED)
        return NULL;
    if (p)
        v->mapped = bytes;
    return p;
}

void *vec_grow(struct vec *v, size_t size)
{
    size_t cap = v->cap ? v->cap * 2 : 16, bytes;
    void *p = __builtin_mul_overflow(cap, size, &bytes) ? NULL : grow(v, size, bytes);
    if (p) {
        v->p = p;
        v->cap = cap;
    }
    return p;
}

void vec_trim(struct vec *v, size_t size)
{
    size_t bytes = (v->n ? v->n : 1) * size;
    if (!v->mapped || bytes >= v->mapped || mremap(v->p, v->mapped, bytes, 0) == MAP_FAILED)
        return;
    v->mapped = bytes;
    v->cap = bytes / size;
}

void vec_unmap(struct vec *v)
{
    munmap(v->p, v->mapped);
}
