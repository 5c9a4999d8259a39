#include "shard/tools/trace_sieve.h"

#define LANES_MAX 64    /* of a row: each takes 20 KB while it is made */
#define EVENTS_MIN 4096 /* of a lane, or it is not worth it */
#define SHARE 5         /* at most that part of the lane's events is kept twice */
#define CHECK 1024      /* ... which is looked at once in so many */
/* Windows of this part of the trace and somewhat less are those it is for. */
#define WINDOW 32
#define PIXELS 8000

struct sieve_lane {
    const struct lane *lane;
    struct line_builder *builder; /* NULL: there will be none */
    struct vec ords;              /* uint32_t */
    struct vec layers;            /* uint8_t */
};

static bool worth_it(const struct lane *lane)
{
    uint64_t n = lane_count(lane);
    return n >= EVENTS_MIN && n <= UINT32_MAX;
}

void trace_sieves_open(struct trace_sieves *s, const struct trace_host *h,
                       const struct trace_row *row, struct trace_index *x, struct xp_bump *out)
{
    *s = (struct trace_sieves){.x = x, .row = row, .out = out, .layer = -1};
    bool any = false;
    for (uint32_t i = 0; i < row->nlanes && row->nlanes <= LANES_MAX; i++)
        any |= worth_it(VEC(h->lanes, struct trace_lane)[row->first_lane + i].lane);
    s->scratch = any ? xp_arena_new(NULL) : NULL;
    s->lanes = s->scratch ? calloc(row->nlanes, sizeof *s->lanes) : NULL;
    for (uint32_t i = 0; s->lanes && i < row->nlanes; i++) {
        s->lanes[i].lane = VEC(h->lanes, struct trace_lane)[row->first_lane + i].lane;
        if (worth_it(s->lanes[i].lane))
            s->lanes[i].builder = line_builder_on(s->scratch, out);
    }
    if (s->lanes)
        s->layer = trace_layer_of((h->end_ps - h->begin_ps) / WINDOW / PIXELS);
}

void trace_sieves_add(struct trace_sieves *s, uint32_t i, const struct lane_event *ev, unsigned z)
{
    struct sieve_lane *l = &s->lanes[i];
    if (!l->builder)
        return;
    uint32_t *ord = vec_push(&l->ords, sizeof *ord);
    uint8_t *layer = vec_push(&l->layers, sizeof *layer);
    bool few = l->ords.n % CHECK || l->ords.n * SHARE <= ev->ord + CHECK;
    if (!ord || !layer || !few ||
        line_builder_add(l->builder, ev->begin_ps, ev->end_ps, ev->name, ev->at) != XP_OK) {
        l->builder = NULL;
        return;
    }
    *ord = (uint32_t)ev->ord;
    *layer = (uint8_t)z;
}

static bool take_layers(const struct sieve_lane *l, struct trace_sieve *to, struct xp_arena *arena)
{
    size_t n = l->ords.n, blocks = (n + LANE_BLOCK - 1) / LANE_BLOCK;
    uint8_t *p = xp_arena_zalloc(arena, blocks * (LANE_BLOCK / 2 + 1));
    uint32_t *ords = xp_arena_alloc(arena, n * sizeof *ords);
    if (!p || !ords)
        return false;
    memcpy(ords, l->ords.p, n * sizeof *ords);
    to->ords = ords;
    to->index.layers = p;
    to->index.least = p + blocks * (LANE_BLOCK / 2);
    memset(to->index.least, TRACE_LAYER_NONE, blocks);
    for (size_t i = 0; i < n; i++)
        trace_index_note(&to->index, i, VEC(l->layers, uint8_t)[i]);
    return true;
}

static void end_lane(struct trace_sieves *s, uint32_t i)
{
    struct sieve_lane *l = &s->lanes[i];
    struct part_line line = {0};
    if (!l->builder || !l->ords.n || l->ords.n * SHARE > lane_count(l->lane) ||
        line_builder_end(l->builder, &line) != XP_OK || line.nlanes != 1)
        return;
    struct trace_sieve *sieve = xp_arena_zalloc(s->out->arena, sizeof *sieve);
    if (!sieve || !take_layers(l, sieve, s->out->arena))
        return;
    sieve->lane = line.lanes[0];
    sieve->layer = s->layer;
    s->x->lanes[s->row->first_lane + i].sieve = sieve;
}

void trace_sieves_close(struct trace_sieves *s)
{
    for (uint32_t i = 0; s->lanes && i < s->row->nlanes; i++) {
        end_lane(s, i);
        vec_free(&s->lanes[i].ords);
        vec_free(&s->lanes[i].layers);
    }
    free(s->lanes);
    xp_arena_free(s->scratch);
}
