/* Lines of named regions, of trace points between bundles, and of what the schedule says. */
#include "shard/tools/kernel_inside_int.h"

/* --- regions, which nest --- */

#define DEPTH_MAX 64

struct open_region {
    int64_t end_ps;
    uint32_t number; /* of its row */
    enum kernel_kind kind;
    bool inferred;
};

struct nest {
    struct kernel_inside *k;
    struct open_region open[DEPTH_MAX];
    uint32_t depth;
    int64_t at; /* up to here time is dealt out */
};

/* The time up to t is the innermost region's. */
static void deal(struct nest *n, int64_t t)
{
    struct open_region *o = n->depth ? &n->open[n->depth - 1] : NULL;
    if (o && t > n->at) {
        struct kernel_tally_row *row = &n->k->regions.rows[o->number];
        row->self_ps = kernel_sum(row->self_ps, t - n->at);
        kernel_spans_add(&n->k->spans, o->kind, n->at, t);
        n->k->finalize_waits |= o->inferred;
    }
    n->at = t > n->at ? t : n->at;
}

static void close_until(struct nest *n, int64_t t)
{
    while (n->depth && n->open[n->depth - 1].end_ps <= t) {
        deal(n, n->open[n->depth - 1].end_ps);
        n->depth--;
    }
    deal(n, t);
}

static enum xp_status open_one(struct nest *n, struct xp_span name, uint32_t line,
                               const struct kernel_event *e, struct xp_error *err)
{
    struct kernel_inside *k = n->k;
    /* What ends before this one is not around it, but over with its begin. */
    while (n->depth && n->open[n->depth - 1].end_ps < e->end_ps)
        n->depth--;
    const struct open_region *outer = n->depth ? &n->open[n->depth - 1] : NULL;
    uint32_t key[KERNEL_TALLY_KEYS] = {outer ? outer->number : 0, kernel_text_id(&k->texts, name),
                                       line};
    struct kernel_tally_row *row = kernel_tally_row(&k->regions, key);
    if (!row)
        return kernel_no_memory(err);
    kernel_tally_add(row, e->begin_ps, e->end_ps - e->begin_ps, e->begins);
    if (n->depth == DEPTH_MAX)
        return XP_OK;
    struct open_region *o = &n->open[n->depth++];
    *o = (struct open_region){.end_ps = e->end_ps, .number = (uint32_t)(row - k->regions.rows)};
    o->kind = kernel_region_kind(name, &o->inferred);
    return XP_OK;
}

/* Primitives that run at once overlap, and are not inside of each other. */
static enum xp_status flat_one(struct kernel_reader *r, uint32_t line, const struct kernel_event *e,
                               struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    bool inferred;
    struct xp_span name = kernel_event_name(r, e->name);
    struct kernel_tally_row *row = kernel_tally_row(
        &k->regions, (uint32_t[KERNEL_TALLY_KEYS]){0, kernel_text_id(&k->texts, name), line});
    if (!row)
        return kernel_no_memory(err);
    kernel_tally_add(row, e->begin_ps, e->end_ps - e->begin_ps, e->begins);
    row->self_ps = row->time_ps;
    kernel_spans_add(&k->spans, kernel_region_kind(name, &inferred), e->begin_ps, e->end_ps);
    return XP_OK;
}

enum xp_status kernel_read_regions(struct kernel_reader *r, const struct part_line *l,
                                   struct kernel_line *told, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    struct nest *n = xp_arena_zalloc(r->k->a, sizeof *n);
    uint32_t line = kernel_text_id(&r->k->texts, told->name);
    if (!n || line_seek(&c, l, r->k->begin_ps - l->base_ps, r->k->a) != XP_OK)
        return kernel_no_memory(err);
    n->k = r->k;
    n->at = r->k->begin_ps;
    while (kernel_next(&c, r->k, &e)) {
        kernel_line_sees(told, &e);
        if (told->kind != KERNEL_HAS_REGIONS)
            continue;
        if (xp_span_eq(told->name, XP_SPAN_LIT("Pallas Primitives"))) {
            XP_TRY(flat_one(r, line, &e, err));
            continue;
        }
        close_until(n, e.begin_ps);
        XP_TRY(open_one(n, kernel_event_name(r, e.name), line, &e, err));
    }
    close_until(n, r->k->end_ps);
    return XP_OK;
}

/* --- trace points: "[134217797]  0x220: bundle.134217797" --- */

/* The program counter in an event's long name; its name where there is none. */
static enum xp_status point_of(struct kernel_reader *r, const struct kernel_event *e,
                               uint32_t *text, struct xp_error *err)
{
    struct value v;
    struct xp_span name = kernel_event_name(r, e->name);
    XP_TRY(values_of_event(&r->eye, e->at, err));
    if (values_find(&r->eye, KERNEL_STAT_LONG_NAME, &v) && v.type == VALUE_TEXT) {
        const uint8_t *x = v.text.n ? memmem(v.text.p, v.text.n, "0x", 2) : NULL;
        size_t left = x ? (size_t)(v.text.p + v.text.n - x) : 0, n = 2;
        while (n < left && ((x[n] >= '0' && x[n] <= '9') || (x[n] >= 'a' && x[n] <= 'f')))
            n++;
        if (n > 2 && n < left)
            name = xp_span_of(x, n);
    }
    *text = kernel_text_id(&r->k->texts, name);
    return XP_OK;
}

static enum xp_status code_between(struct kernel_inside *k, uint32_t from, uint32_t to,
                                   int64_t begin_ps, int64_t end_ps, struct xp_error *err)
{
    struct kernel_tally_row *row =
        kernel_tally_row(&k->codes, (uint32_t[KERNEL_TALLY_KEYS]){from, to, 1});
    if (!row)
        return kernel_no_memory(err);
    kernel_tally_add(row, begin_ps, end_ps - begin_ps, true);
    return XP_OK;
}

enum xp_status kernel_read_points(struct kernel_reader *r, const struct part_line *l,
                                  struct kernel_line *told, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    struct kernel_inside *k = r->k;
    int64_t last = k->begin_ps;
    uint32_t from = kernel_text_id(&k->texts, XP_SPAN_LIT("begin")), to;
    if (line_seek(&c, l, k->begin_ps - l->base_ps, k->a) != XP_OK)
        return kernel_no_memory(err);
    while (kernel_next(&c, k, &e)) {
        if (!e.begins)
            continue;
        kernel_line_sees(told, &e);
        XP_TRY(point_of(r, &e, &to, err));
        XP_TRY(code_between(k, from, to, last, e.begin_ps, err));
        from = to;
        last = e.begin_ps;
    }
    return code_between(k, from, kernel_text_id(&k->texts, XP_SPAN_LIT("end")), last, k->end_ps,
                        err);
}

/* --- the schedule --- */

/* A share stands until the next is told; one that is told once more only when it is no longer 0
 * stands as 0 until then. */
struct share {
    double value;
    int64_t until_ps; /* counted up to here */
    bool told;
    bool named;  /* it has a unit, or there are too many */
    bool before; /* the run */
    int64_t before_ps;
    uint64_t before_at; /* the last event */
    struct kernel_unit *unit;
};

static struct kernel_unit *scheduled_unit(struct kernel_inside *k, struct xp_span name)
{
    if (k->nscheduled == KERNEL_UNITS) {
        k->units_cut++;
        return NULL;
    }
    struct kernel_unit *u = &k->scheduled[k->nscheduled];
    u->name = name;
    u->fill = xp_arena_zalloc(k->a, (k->bins.n + 1) * sizeof *u->fill);
    u->told = xp_arena_zalloc(k->a, (k->bins.n + 1) * sizeof *u->told);
    if (!u->fill || !u->told)
        return NULL;
    k->nscheduled++;
    return u;
}

static void add_share(struct kernel_inside *k, struct share *s, int64_t begin_ps, int64_t end_ps)
{
    const struct kernel_bins *b = &k->bins;
    struct kernel_unit *u = s->unit;
    int64_t at = begin_ps, stop;
    if (!u || end_ps <= begin_ps)
        return;
    u->told_ps = kernel_sum(u->told_ps, end_ps - begin_ps);
    u->fill_ps += s->value * (double)(end_ps - begin_ps);
    kernel_bins_add(b, begin_ps, end_ps, u->told, 1);
    at = at > b->from_ps ? at : b->from_ps;
    end_ps = end_ps < b->to_ps ? end_ps : b->to_ps;
    for (uint32_t i = b->n && at < end_ps ? kernel_bin_of(b, at) : b->n; i < b->n && at < end_ps;
         i++, at = stop) {
        stop = kernel_bin_begin(b, i + 1);
        stop = stop < end_ps ? stop : end_ps;
        u->fill[i] += s->value * (double)(stop - at);
    }
}

/* False: the event says nothing of that kind. */
static enum xp_status read_share(struct kernel_reader *r, uint64_t at, double *share, bool *told,
                                 struct xp_error *err)
{
    struct value v;
    XP_TRY(values_of_event(&r->eye, at, err));
    *told = values_find(&r->eye, KERNEL_STAT_SHARE, &v) && v.type != VALUE_TEXT;
    if (*told)
        *share = (v.type == VALUE_DOUBLE ? value_double(&v) : (double)value_u64(&v)) / 100;
    *told &= *share >= 0 && *share <= 1e6;
    return XP_OK;
}

static void note_before(const struct kernel_reader *r, struct share *shares,
                        const struct lane_event *ev)
{
    struct share *s = ev->name < r->plane->nevmeta ? &shares[ev->name] : NULL;
    if (!s || ev->end_ps <= ev->begin_ps || (s->before && ev->begin_ps < s->before_ps))
        return;
    s->before = true;
    s->before_ps = ev->begin_ps;
    s->before_at = ev->at;
}

/* What stood when the run began: of each name the last event before. */
static enum xp_status shares_before(struct kernel_reader *r, const struct part_line *l,
                                    struct share *shares, struct xp_error *err)
{
    struct kernel_inside *k = r->k;
    for (uint32_t i = 0; i < l->nlanes; i++) {
        struct lane_cursor c;
        struct lane_event ev;
        lane_seek(&c, l->lanes[i], INT64_MIN);
        while (lane_next(&c, &ev) && ev.begin_ps + l->base_ps < k->begin_ps)
            note_before(r, shares, &ev);
    }
    for (uint32_t i = 0; i < r->plane->nevmeta; i++) {
        double v = -1;
        bool told = false;
        if (!shares[i].before)
            continue;
        XP_TRY(read_share(r, shares[i].before_at, &v, &told, err));
        if (told && v == 0) {
            shares[i].told = true;
            shares[i].named = true;
            shares[i].unit = scheduled_unit(k, kernel_event_name(r, i));
        }
    }
    return XP_OK;
}

enum xp_status kernel_read_schedule(struct kernel_reader *r, const struct part_line *l,
                                    struct kernel_line *told, struct xp_error *err)
{
    struct line_cursor c;
    struct kernel_event e;
    struct kernel_inside *k = r->k;
    struct share *shares = xp_arena_zalloc(k->a, ((size_t)r->plane->nevmeta + 1) * sizeof *shares);
    if (!shares || line_seek(&c, l, k->begin_ps - l->base_ps, k->a) != XP_OK)
        return kernel_no_memory(err);
    for (uint32_t i = 0; i < r->plane->nevmeta; i++)
        shares[i].until_ps = k->begin_ps;
    XP_TRY(shares_before(r, l, shares, err));
    while (kernel_next(&c, k, &e)) {
        double v = -1;
        bool has = false;
        if (e.end_ps <= e.begin_ps || e.name >= r->plane->nevmeta)
            continue;
        kernel_line_sees(told, &e);
        XP_TRY(read_share(r, e.at, &v, &has, err));
        if (!has)
            continue;
        struct share *s = &shares[e.name];
        int64_t since = s->until_ps;
        if (!s->named)
            s->unit = scheduled_unit(k, kernel_event_name(r, e.name));
        s->named = true;
        if (s->told && s->value == 0)
            add_share(k, s, since, e.begin_ps);
        s->value = v;
        s->told = true;
        add_share(k, s, e.begin_ps > since ? e.begin_ps : since, e.end_ps);
        s->until_ps = e.end_ps;
    }
    for (uint32_t i = 0; i < r->plane->nevmeta; i++)
        if (shares[i].told && shares[i].value == 0)
            add_share(k, &shares[i], shares[i].until_ps, k->end_ps);
    return XP_OK;
}
