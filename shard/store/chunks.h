/* shard/store/chunks.h - packed bytes that grow in an arena: a list of chunks, no entry of which
 * lies across two.
 *
 *     uint8_t *p = chunks_room(&list, ENTRY_MAX, SIZE, out);
 *     ... write at most ENTRY_MAX bytes at p ...
 *     chunks_end_entry(&list, p);
 *
 * Reading is walking the list; chunk_varint reads our own bytes, which are always whole.
 */
#ifndef SHARD_CHUNKS_H
#define SHARD_CHUNKS_H

#include "lib/base/arena.h"

struct chunk {
    struct chunk *next;
    uint32_t n;
    uint8_t data[];
};

struct chunks {
    struct chunk *first, *last; /* last is open */
};

/* Where the next entry goes, of at most `most` bytes; chunks are of `size`. NULL: no memory. */
uint8_t *chunks_room(struct chunks *l, uint32_t most, uint32_t size, struct xp_bump *out);

static inline void chunks_end_entry(struct chunks *l, const uint8_t *end)
{
    l->last->n = (uint32_t)(end - l->last->data);
}

struct chunk_cursor {
    const struct chunk *chunk;
    const uint8_t *p, *end;
};

static inline void chunk_open(struct chunk_cursor *c, const struct chunk *chunk)
{
    c->chunk = chunk;
    c->p = chunk ? chunk->data : NULL;
    c->end = chunk ? chunk->data + chunk->n : NULL;
}

/* Is there another entry? It begins at c->p. */
static inline bool chunk_more(struct chunk_cursor *c)
{
    if (c->p == c->end && c->chunk)
        chunk_open(c, c->chunk->next);
    return c->p != c->end;
}

static inline uint64_t chunk_varint(const uint8_t **pp)
{
    const uint8_t *p = *pp;
    uint64_t v = *p & 0x7f;
    for (unsigned shift = 7; *p++ & 0x80; shift += 7)
        v |= (uint64_t)(*p & 0x7f) << shift;
    *pp = p;
    return v;
}

#endif
