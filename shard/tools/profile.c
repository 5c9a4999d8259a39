#include "shard/tools/profile.h"

#include <stdlib.h>

bool profile_readable(const struct part *p)
{
    return p && p->damage.status == XP_OK && !p->partial && !p->utf8_bad;
}

enum xp_status profile_all_readable(const struct tool_host *hosts, size_t n, struct xp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!profile_readable(hosts[i].part))
            return xp_fail(err, XP_NOT_FOUND, 0, "the profile of host %.*s is damaged",
                           (int)(hosts[i].name.n < 80 ? hosts[i].name.n : 80),
                           (const char *)hosts[i].name.p);
    return XP_OK;
}

struct xp_span profile_plane_name(const struct part *p, const struct part_plane *pl)
{
    return part_str(p, pl->name);
}

bool profile_is_tpu(struct xp_span plane_name)
{
    return xp_span_starts(plane_name, XP_SPAN_LIT("/device:TPU:"));
}

bool profile_is_gpu(struct xp_span plane_name)
{
    return xp_span_starts(plane_name, XP_SPAN_LIT("/device:GPU:"));
}

const struct part_plane *profile_plane(const struct part *p, const char *name)
{
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (xp_span_eq(profile_plane_name(p, &p->planes[i]), xp_span_str(name)))
            return &p->planes[i];
    return NULL;
}

static int by_at(const void *a, const void *b)
{
    uint64_t x = ((const struct lane_event *)a)->at, y = ((const struct lane_event *)b)->at;
    return (x > y) - (x < y);
}

/* Counts when `out` is NULL. */
static size_t walk(const struct part_line *line, profile_keep_fn keep, void *ctx,
                   struct lane_event *out)
{
    struct lane_event block[LANE_BLOCK];
    size_t n = 0, got;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        lane_seek(&c, line->lanes[i], INT64_MIN);
        while ((got = lane_next_block(&c, block)))
            for (size_t k = 0; k < got; k++)
                if (keep(ctx, &block[k])) {
                    if (out)
                        out[n] = block[k];
                    n++;
                }
    }
    return n;
}

enum xp_status profile_events(const struct part_line *line, profile_keep_fn keep, void *ctx,
                              struct xp_arena *a, struct lane_event **events, size_t *n,
                              struct xp_error *err)
{
    *events = NULL;
    *n = walk(line, keep, ctx, NULL);
    if (!*n)
        return XP_OK;
    *events = xp_arena_alloc(a, *n * sizeof **events);
    if (!*events)
        return xp_fail(err, XP_BUSY, 0, "no memory left for %zu events", *n);
    walk(line, keep, ctx, *events);
    qsort(*events, *n, sizeof **events, by_at);
    return XP_OK;
}

struct named {
    const bool *wanted;
    uint32_t n;
};

static bool has_name(void *ctx, const struct lane_event *ev)
{
    const struct named *w = ctx;
    return ev->name < w->n && w->wanted[ev->name];
}

size_t profile_count_named(const struct part_line *line, const bool *wanted, uint32_t nnames)
{
    uint32_t names[LANE_BLOCK];
    size_t n = 0, got;
    for (uint32_t i = 0; i < line->nlanes; i++)
        for (uint64_t block = 0; (got = lane_names(line->lanes[i], block, names)); block++)
            for (size_t k = 0; k < got; k++)
                n += names[k] < nnames && wanted[names[k]];
    return n;
}

enum xp_status profile_events_named(const struct part_line *line, const bool *wanted,
                                    uint32_t nnames, struct xp_arena *a, struct lane_event **events,
                                    size_t *n, struct xp_error *err)
{
    struct named w = {wanted, nnames};
    *events = NULL;
    *n = 0;
    if (!profile_count_named(line, wanted, nnames))
        return XP_OK;
    return profile_events(line, has_name, &w, a, events, n, err);
}

struct with {
    struct side_cursor side;
    enum stat_kind kind;
};

static bool has_stat(void *ctx, const struct lane_event *ev)
{
    struct with *w = ctx;
    return side_find(&w->side, ev->at) && side_get(&w->side, w->kind);
}

enum xp_status profile_events_with(const struct part_line *line, enum stat_kind kind,
                                   struct xp_arena *a, struct lane_event **events, size_t *n,
                                   struct xp_error *err)
{
    struct with w = {.kind = kind};
    *events = NULL;
    *n = 0;
    if (!line->side)
        return XP_OK;
    side_open(&w.side, line->side);
    return profile_events(line, has_stat, &w, a, events, n, err);
}

bool profile_ordinal(struct xp_span plane_name, uint32_t *n)
{
    size_t i = sizeof "/device:TPU:" - 1;
    uint32_t v = 0;
    if (plane_name.n <= i)
        return false;
    for (; i < plane_name.n && plane_name.p[i] >= '0' && plane_name.p[i] <= '9' && v < 100000000;
         i++)
        v = v * 10 + (uint32_t)(plane_name.p[i] - '0');
    *n = v;
    return i == plane_name.n;
}
