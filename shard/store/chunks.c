#include "shard/store/chunks.h"

uint8_t *chunks_room(struct chunks *l, uint32_t most, uint32_t size, struct xp_bump *out)
{
    struct chunk *c = l->last;
    if (c && c->n + most <= size)
        return c->data + c->n;
    c = xp_bump_alloc(out, sizeof *c + size, 16);
    if (!c)
        return NULL;
    *c = (struct chunk){0};
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    return c->data;
}
