/* Lines that are not in the file: their numbers, the ids of their events, and the names of all. */
#include <stdlib.h>

#include "shard/query/query_int.h"

/* Marks ids of derive->strings; those of part->strings are below. */
#define DERIVED_STR (UINT32_C(1) << 31)

/* A file of more planes is not a profile, but an attempt. */
#define PLANES_MAX 16384

static uint32_t count_made(const struct derive *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->nlines; i++)
        n += d->lines[i].line->derived;
    return n;
}

enum xp_status query_derive(struct query_book *b, struct xp_arena *a, struct xp_error *err)
{
    if (b->d)
        return XP_OK;
    if (!part_ready(b->p))
        return xp_fail(err, XP_BUSY, 0,
                       "derived lines are made once the whole profile is loaded; try again");
    if (b->p->nplanes > PLANES_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "no lines are derived from a profile of %u planes",
                       b->p->nplanes);
    const struct derive *d;
    XP_TRY(derive_get((struct part *)b->p, &d, err)); /* what is kept beside the part */
    b->made = xp_arena_alloc(a, ((size_t)count_made(d) + 1) * sizeof *b->made);
    if (!b->made)
        return xp_fail(err, XP_BUSY, 0, "no memory left for a list of derived lines");
    uint64_t id = QUERY_DERIVED_ID;
    b->nmade = 0;
    for (uint32_t i = 0; i < d->nlines; i++) {
        const struct derive_line *l = &d->lines[i];
        if (!l->line->derived)
            continue;
        b->made[b->nmade] = (struct query_line){l->line, b->p->nlines + b->nmade, l, id};
        b->nmade++;
        id += l->line->nevents;
    }
    b->end_id = id;
    b->d = d;
    return XP_OK;
}

uint64_t query_id(const struct query_line *l, uint32_t lane, const struct lane_event *ev)
{
    if (!l->made)
        return ev->at;
    uint64_t id = l->first_id + ev->ord;
    for (uint32_t i = 0; i < lane; i++)
        id += lane_count(l->line->lanes[i]);
    return id;
}

struct xp_span query_line_name(const struct query_book *b, const struct query_line *l)
{
    return l->made ? l->made->name : part_line_name(b->p, l->line);
}

/* --- names --- */

uint32_t query_table_size(const struct query_book *b, uint32_t table)
{
    if (table < b->p->nplanes)
        return b->p->planes[table].nevmeta;
    return b->d ? b->d->nnames : 0;
}

/* Events that are called by their group carry its number as a name. */
static uint32_t group_name(const struct derive *d, uint32_t str)
{
    struct xp_span s = xp_strpool_get(&d->strings, str);
    uint64_t group = 0;
    for (size_t i = 0; i < s.n && i < 12; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        group = group * 10 + (uint64_t)(s.p[i] - '0');
    }
    return s.n && s.n < 12 && group < d->ngroups ? d->group_names[group] : 0;
}

uint32_t query_name(const struct query_book *b, uint32_t table, uint32_t name)
{
    if (name >= query_table_size(b, table))
        return 0;
    if (table < b->p->nplanes) {
        const struct part_evmeta *m = &b->p->planes[table].evmeta[name];
        return m->display_name ? m->display_name : m->name;
    }
    const struct derive_name *n = &b->d->names[name];
    uint32_t str = n->display ? n->display : n->name;
    if (table > b->p->nplanes) {
        uint32_t group = group_name(b->d, n->name);
        str = group ? group : str;
    }
    return str ? str | DERIVED_STR : 0;
}

struct xp_span query_text(const struct query_book *b, uint32_t id)
{
    return id & DERIVED_STR ? xp_strpool_get(&b->d->strings, id & ~DERIVED_STR)
                            : part_str(b->p, id);
}
