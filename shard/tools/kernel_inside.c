#include "shard/tools/kernel_inside_int.h"

const char *const kernel_stat_names[KERNEL_STATS] = {
    "bundle_number",    "details", "source_info", "llo_scopes",
    "pallas_primitive", "% util",  "long_name"};

enum xp_status kernel_no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the inside of a kernel");
}

struct xp_span kernel_event_name(const struct kernel_reader *r, uint32_t name)
{
    return name < r->plane->nevmeta ? part_event_name(r->part, r->plane, name)
                                    : (struct xp_span){0};
}

static uint32_t kind_of_name(struct xp_span name)
{
    if (xp_span_ends(name, XP_SPAN_LIT(" Instructions")))
        return KERNEL_HAS_INSTRUCTIONS;
    if (xp_span_eq(name, XP_SPAN_LIT("Pallas Primitives")) ||
        xp_span_eq(name, XP_SPAN_LIT("XLA TraceMe")))
        return KERNEL_HAS_REGIONS;
    if (xp_span_eq(name, XP_SPAN_LIT("_counters_")))
        return KERNEL_HAS_SCHEDULE;
    if (xp_span_eq(name, XP_SPAN_LIT("Tensor Core")))
        return KERNEL_HAS_POINTS;
    return xp_span_has(name, XP_SPAN_LIT("Sync Flag")) ? KERNEL_HAS_FLAGS : 0;
}

uint32_t kernel_line_kind(const struct part *p, const struct part_line *l)
{
    return l->derived ? 0 : kind_of_name(part_line_name(p, l));
}

int kernel_worth(uint32_t has)
{
    if (has & KERNEL_HAS_INSTRUCTIONS)
        return 3;
    return has & (KERNEL_HAS_REGIONS | KERNEL_HAS_POINTS) ? 2 : (has & KERNEL_HAS_SCHEDULE) != 0;
}

/* Events of the schedule have a length; other counters are moments, and no matter here. */
static bool lane_in(const struct lane *l, int64_t base_ps, int64_t begin_ps, int64_t end_ps,
                    bool lasting)
{
    struct lane_cursor c;
    struct lane_event ev;
    lane_seek(&c, l, begin_ps - base_ps);
    while (lane_next(&c, &ev) && ev.begin_ps + base_ps < end_ps)
        if (!lasting || ev.end_ps > ev.begin_ps)
            return true;
    return false;
}

static bool line_in(const struct part_line *l, int64_t begin_ps, int64_t end_ps, bool lasting)
{
    if (!l->nevents || l->begin_ps >= end_ps || l->end_ps < begin_ps)
        return false;
    for (uint32_t i = 0; i < l->nlanes; i++)
        if (lane_in(l->lanes[i], l->base_ps, begin_ps, end_ps, lasting))
            return true;
    return false;
}

uint32_t kernel_inside_has(const struct part *p, const struct part_plane *pl, int64_t begin_ps,
                           int64_t end_ps)
{
    uint32_t has = 0;
    for (uint32_t i = 0; i < pl->nlines; i++) {
        const struct part_line *l = &p->lines[pl->first_line + i];
        uint32_t kind = kernel_line_kind(p, l);
        if (kind && !(has & kind) && line_in(l, begin_ps, end_ps, kind == KERNEL_HAS_SCHEDULE))
            has |= kind;
    }
    return has;
}

bool kernel_next(struct line_cursor *c, const struct kernel_inside *k, struct kernel_event *e)
{
    struct lane_event ev;
    int64_t base = c->line->base_ps;
    while (line_next(c, &ev, NULL)) {
        int64_t begin = ev.begin_ps + base, end = ev.end_ps + base;
        if (begin >= k->end_ps)
            return false;
        if (end < k->begin_ps || (end == k->begin_ps && begin < k->begin_ps))
            continue;
        *e = (struct kernel_event){.begin_ps = begin > k->begin_ps ? begin : k->begin_ps,
                                   .end_ps = end < k->end_ps ? end : k->end_ps,
                                   .name = ev.name,
                                   .at = ev.at,
                                   .begins = begin >= k->begin_ps};
        return true;
    }
    return false;
}

void kernel_line_sees(struct kernel_line *l, const struct kernel_event *e)
{
    l->events += e->begins;
    l->first_ps = e->begin_ps < l->first_ps ? e->begin_ps : l->first_ps;
    l->last_ps = e->end_ps > l->last_ps ? e->end_ps : l->last_ps;
}

/* --- how far it is recorded --- */

/* The end of the last event that begins before the run ends. */
static int64_t last_end(const struct part_line *l, const struct kernel_inside *k)
{
    int64_t last = INT64_MIN;
    for (uint32_t i = 0; i < l->nlanes; i++) {
        struct lane_cursor c;
        struct lane_event ev;
        lane_seek(&c, l->lanes[i], k->end_ps - l->base_ps);
        if (lane_next(&c, &ev) && ev.begin_ps + l->base_ps < k->end_ps)
            return k->end_ps;
        uint64_t ord = c.ord ? c.ord - 1 : 0;
        for (int tries = 0; tries < 2; tries++, ord--) {
            lane_seek_ord(&c, l->lanes[i], ord);
            if (lane_next(&c, &ev) && ev.begin_ps + l->base_ps < k->end_ps) {
                last = ev.end_ps + l->base_ps > last ? ev.end_ps + l->base_ps : last;
                break;
            }
            if (ord == 0)
                break;
        }
    }
    return last;
}

static enum xp_status extent(const struct part_line *l, const struct kernel_inside *k,
                             struct xp_arena *a, int64_t *from, int64_t *to, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    if (line_seek(&c, l, k->begin_ps - l->base_ps, a) != XP_OK)
        return kernel_no_memory(err);
    if (!kernel_next(&c, k, &e))
        return XP_OK;
    int64_t last = last_end(l, k);
    *from = e.begin_ps < *from ? e.begin_ps : *from;
    *to = last > *to ? last : *to;
    return XP_OK;
}

/* Of what is best: instructions, else all there is. */
static enum xp_status choose_bins(struct kernel_reader *r, struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    int64_t from = k->end_ps, to = k->begin_ps;
    for (uint32_t i = 0; i < r->plane->nlines; i++) {
        const struct part_line *l = &r->part->lines[r->plane->first_line + i];
        uint32_t kind = kernel_line_kind(r->part, l);
        if (kind == KERNEL_HAS_INSTRUCTIONS)
            XP_TRY(extent(l, k, k->a, &from, &to, err));
    }
    k->record_ps = from;
    k->recorded_ps = to < k->end_ps ? to : k->end_ps;
    if (from >= to || (k->has & (KERNEL_HAS_REGIONS | KERNEL_HAS_SCHEDULE) &&
                       to - from > (k->end_ps - k->begin_ps) / 2)) {
        from = k->begin_ps;
        to = k->end_ps;
    }
    k->bins = (struct kernel_bins){from, to, 0};
    if (k->has && to > from)
        k->bins.n = to - from < KERNEL_BINS ? (uint32_t)(to - from) : KERNEL_BINS;
    return XP_OK;
}

/* --- all of it --- */

static enum xp_status read_line(struct kernel_reader *r, const struct part_line *l, uint32_t kind,
                                struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    struct kernel_line told = {.name = part_line_name(r->part, l),
                               .kind = kind,
                               .first_ps = INT64_MAX,
                               .last_ps = INT64_MIN};
    enum xp_status st = XP_OK;
    if (kind == KERNEL_HAS_INSTRUCTIONS)
        st = kernel_read_instructions(r, l, &told, err);
    else if (kind == KERNEL_HAS_REGIONS || kind == KERNEL_HAS_FLAGS)
        st = kernel_read_regions(r, l, &told, err);
    else if (kind == KERNEL_HAS_SCHEDULE)
        st = kernel_read_schedule(r, l, &told, err);
    else
        st = kernel_read_points(r, l, &told, err);
    if (st == XP_OK && told.first_ps != INT64_MAX && k->nlines < KERNEL_LINES)
        k->lines[k->nlines++] = told;
    return st;
}

static enum xp_status read_lines(struct kernel_reader *r, struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    for (uint32_t i = 0; i < r->plane->nlines; i++) {
        const struct part_line *l = &r->part->lines[r->plane->first_line + i];
        uint32_t kind = kernel_line_kind(r->part, l);
        if (kind && line_in(l, k->begin_ps, k->end_ps, kind == KERNEL_HAS_SCHEDULE))
            XP_TRY(read_line(r, l, kind, err));
    }
    return XP_OK;
}

static bool make_tallies(struct kernel_inside *k)
{
    return xp_strpool_init(&k->texts, k->a) && kernel_tally_init(&k->opcodes, k->a) &&
           kernel_tally_init(&k->sources, k->a) && kernel_tally_init(&k->regions, k->a) &&
           kernel_tally_init(&k->codes, k->a);
}

enum xp_status kernel_inside_read(const struct part *p, const struct part_plane *pl,
                                  int64_t begin_ps, int64_t end_ps, struct xp_arena *a,
                                  struct kernel_inside **out, struct xp_error *err)
{
    struct kernel_inside *k = xp_arena_zalloc(a, sizeof *k);
    struct kernel_reader r = {.k = k, .part = p, .plane = pl};
    if (!k)
        return kernel_no_memory(err);
    k->a = a;
    k->begin_ps = begin_ps;
    k->end_ps = end_ps;
    k->has = kernel_inside_has(p, pl, begin_ps, end_ps);
    if (!make_tallies(k))
        return kernel_no_memory(err);
    kernel_spans_init(&k->spans, a);
    XP_TRY(choose_bins(&r, err));
    k->bundle_bins = xp_arena_zalloc(a, (k->bins.n + 1) * sizeof *k->bundle_bins);
    k->causes.bins =
        xp_arena_zalloc(a, ((size_t)k->bins.n * KERNEL_CAUSES + 1) * sizeof *k->causes.bins);
    if (!k->bundle_bins || !k->causes.bins)
        return kernel_no_memory(err);
    values_open(&r.eye, p, pl, kernel_stat_names, KERNEL_STATS, a);
    XP_TRY(read_lines(&r, err));
    XP_TRY(kernel_make_bundles(&r, err));
    struct kernel_window w = {.begin_ps = begin_ps,
                              .end_ps = end_ps,
                              .has_record = k->has & KERNEL_HAS_INSTRUCTIONS,
                              .record_ps = k->record_ps,
                              .recorded_ps = k->recorded_ps,
                              .bins = k->bins};
    XP_TRY(kernel_causes(&k->spans, &w, &k->causes, err));
    *out = k;
    return XP_OK;
}

uint32_t kernel_source_of(const struct kernel_inside *k, uint32_t primitive)
{
    uint64_t most = 0;
    uint32_t source = 0;
    for (uint32_t i = 1; i < k->sources.n; i++) {
        const struct kernel_tally_row *r = &k->sources.rows[i];
        if (r->key[1] == primitive && r->key[0] && r->count > most) {
            most = r->count;
            source = r->key[0];
        }
    }
    return source;
}
