/* What a device did, as intervals: the one place that says which lines count and what overlaps. */
#include <stdlib.h>

#include "shard/stats/figures_int.h"
#include "shard/stats/op_tpu_int.h"

static int by_begin(const void *a, const void *b)
{
    const struct figure_span *x = a, *y = b;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

size_t figure_unite(struct figure_span *v, size_t n)
{
    size_t out = 0;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = v[i - 1].begin_ps <= v[i].begin_ps;
    if (!sorted)
        qsort(v, n, sizeof *v, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (v[i].end_ps <= v[i].begin_ps)
            continue;
        if (out && v[i].begin_ps <= v[out - 1].end_ps) {
            if (v[i].end_ps > v[out - 1].end_ps)
                v[out - 1].end_ps = v[i].end_ps;
        } else {
            v[out++] = v[i];
        }
    }
    return out;
}

uint64_t figure_covered(const struct figure_span *v, size_t n, size_t *at, int64_t begin_ps,
                        int64_t end_ps)
{
    uint64_t sum = 0;
    while (*at < n && v[*at].end_ps <= begin_ps)
        ++*at;
    for (size_t i = *at; i < n && v[i].begin_ps < end_ps; i++) {
        int64_t from = v[i].begin_ps > begin_ps ? v[i].begin_ps : begin_ps;
        int64_t to = v[i].end_ps < end_ps ? v[i].end_ps : end_ps;
        if (to > from)
            sum += figure_length(from, to);
    }
    return sum;
}

struct figure_join figure_join_lane(struct vec *spans, uint32_t lane)
{
    struct figure_join j = {.spans = spans, .deeper = lane > 0};
    if (lane == 1)
        spans->n = figure_unite(spans->p, spans->n);
    j.united = lane ? spans->n : 0;
    return j;
}

void figure_join_end(struct figure_join *j)
{
    if (j->deeper && j->spans->n > j->united)
        j->spans->n = figure_unite(j->spans->p, j->spans->n);
}

bool figure_is_busy(const struct part *p, const struct part_line *l)
{
    int32_t id = (int32_t)l->id;
    if (l->derived)
        return false;
    if (xp_span_starts(part_str(p, p->planes[l->plane].name), XP_SPAN_LIT("/device:GPU:")))
        return id < (int32_t)DERIVE_LINE_FIRST || id > (int32_t)DERIVE_LINE_GPU_LAST;
    return tpu_is_ops(part_line_name(p, l));
}

/* Blocks that lie within what is covered are not looked at; those of the last lane there can be may
 * end sooner than an event in them (store/lane.h). */
static bool join_lane(const struct part_line *l, uint32_t lane, struct vec *spans)
{
    struct figure_join j = figure_join_lane(spans, lane);
    struct lane_event e[LANE_BLOCK];
    struct lane_cursor c;
    struct lane_node node;
    uint64_t blocks = lane_levels(l->lanes[lane]) ? lane_nodes(l->lanes[lane], 0) : 0;
    for (uint64_t b = 0; b < blocks; b++) {
        lane_node_get(l->lanes[lane], 0, b, &node);
        if (lane < LANE_MAX - 1 &&
            figure_joined(&j, l->base_ps + node.begin_ps, l->base_ps + node.end_ps))
            continue;
        lane_seek_ord(&c, l->lanes[lane], b * LANE_BLOCK);
        size_t n = lane_next_block(&c, e);
        for (size_t i = 0; i < n; i++)
            if (!figure_join(&j, l->base_ps + e[i].begin_ps, l->base_ps + e[i].end_ps))
                return false;
    }
    figure_join_end(&j);
    return true;
}

bool figure_line_busy(const struct part_line *l, struct vec *spans)
{
    for (uint32_t k = 0; k < l->nlanes; k++)
        if (!join_lane(l, k, spans))
            return false;
    return true;
}
