/* How busy each device was over time, at a glance: 256 hosts of 8 devices in one answer.
 *
 * Of each device COLUMNS shares of its host's time: what its ops cover, or a GPU's streams, time
 * that several do once: `busy` of stats/figures.h. Where all of that is in one lane its pyramid
 * (shard/lod) says it: the work is that of a picture so wide, whatever the number of events.
 * Joined, all devices get one scale from the first begin to the last end. A report of our own;
 * XProf has no such tool.
 */
#include "shard/lod/lod.h"
#include "shard/stats/figures.h"
#include "shard/tools/facts.h"
#include "shard/tools/profile.h"
#include "shard/tools/reports.h"

#define COLUMNS 256 /* of a host's time */
#define SHOWN 128   /* of all hosts' time */
#define LEVELS 35   /* 0 is idle */

/* --- a host --- */

struct busy {
    int64_t begin_ps, end_ps;
    double column[COLUMNS]; /* ps that are busy */
};

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static bool is_device(struct xp_span name)
{
    return xp_span_starts(name, XP_SPAN_LIT("/device:")) &&
           !xp_span_starts(name, XP_SPAN_LIT("/device:CUSTOM:"));
}

/* Of other devices nobody knows which lines are work: all count. */
static bool is_known(const struct part *p, const struct part_plane *pl)
{
    struct xp_span name = part_str(p, pl->name);
    return xp_span_starts(name, XP_SPAN_LIT("/device:TPU:")) ||
           xp_span_starts(name, XP_SPAN_LIT("/device:GPU:"));
}

static void add_rect(struct busy *b, int64_t begin_ps, int64_t end_ps, int64_t busy_ps)
{
    double wide = ((double)b->end_ps - (double)b->begin_ps) / COLUMNS;
    double from = ((double)begin_ps - (double)b->begin_ps) / wide;
    double to = ((double)end_ps - (double)b->begin_ps) / wide;
    from = from > 0 ? from : 0;
    to = to < COLUMNS ? to : COLUMNS;
    if (!(to > from))
        return;
    double share = (double)busy_ps / ((double)end_ps - (double)begin_ps) * wide;
    for (int c = (int)from; c < to; c++) {
        double low = from > c ? from : c, high = to < c + 1 ? to : c + 1;
        b->column[c] += (high - low) * share;
    }
}

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the devices' activity");
}

static enum xp_status add_lane(struct busy *b, const struct part_line *l, struct xp_arena *a,
                               struct xp_error *err)
{
    struct lod_rects rects = {.a = a};
    struct lod_scale s = {.cell_ps = ((uint64_t)b->end_ps - (uint64_t)b->begin_ps) / COLUMNS + 1};
    s.pixel_ps = s.cell_ps;
    if (!lod_walk(l->lanes[0], 0, lane_count(l->lanes[0]), &s, &rects))
        return no_memory(err);
    for (size_t i = 0; i < rects.n; i++) {
        const struct lod_rect *r = &rects.v[i];
        if (r->end_ps > r->begin_ps)
            add_rect(b, l->base_ps + r->begin_ps, l->base_ps + r->end_ps, r->busy_ps);
    }
    return XP_OK;
}

static void add_spans(struct busy *b, struct figure_span *v, size_t n)
{
    n = figure_unite(v, n);
    for (size_t i = 0; i < n; i++)
        add_rect(b, v[i].begin_ps, v[i].end_ps, (int64_t)figure_length(v[i].begin_ps, v[i].end_ps));
}

static bool counts(const struct part *p, const struct part_line *l, bool only_ops)
{
    return l->nlanes && (!only_ops || figure_is_busy(p, l));
}

/* Streams run at once, and events of a line that is no stack end outside of those around them. */
static enum xp_status add_plane(struct busy *b, const struct part *p, const struct part_plane *pl,
                                struct xp_arena *a, struct xp_error *err)
{
    const struct part_line *lines = &p->lines[pl->first_line], *of = NULL;
    bool only_ops = is_known(p, pl), ok = true;
    uint32_t lanes = 0;
    struct vec spans = {0};
    for (uint32_t i = 0; i < pl->nlines; i++)
        if (counts(p, &lines[i], only_ops)) {
            of = &lines[i];
            lanes += of->nlanes;
        }
    if (lanes == 1)
        return add_lane(b, of, a, err);
    for (uint32_t i = 0; ok && i < pl->nlines; i++)
        if (counts(p, &lines[i], only_ops))
            ok = figure_line_busy(&lines[i], &spans);
    add_spans(b, spans.p, spans.n);
    vec_free(&spans);
    return ok ? XP_OK : no_memory(err);
}

/* 0 where nothing ran, LEVELS where something always did. */
static struct xp_span levels_of(const struct busy *b, char text[COLUMNS])
{
    double wide = ((double)b->end_ps - (double)b->begin_ps) / COLUMNS;
    for (int c = 0; c < COLUMNS; c++) {
        double share = b->column[c] / wide;
        int level = share > 0 ? 1 + (int)(share * (LEVELS - 1)) : 0;
        text[c] = digits[level < LEVELS ? level : LEVELS];
    }
    return xp_span_of((const uint8_t *)text, COLUMNS);
}

static enum xp_status map_plane(const struct part *p, const struct part_plane *pl,
                                const struct busy *span, struct facts_out *f, struct xp_arena *a,
                                struct xp_error *err)
{
    struct busy b = {.begin_ps = span->begin_ps, .end_ps = span->end_ps};
    char text[COLUMNS];
    XP_TRY(add_plane(&b, p, pl, a, err));
    double sum = 0;
    for (int c = 0; c < COLUMNS; c++)
        sum += b.column[c];
    facts_text(f, part_str(p, pl->name));
    facts_double(f, sum);
    facts_text(f, levels_of(&b, text));
    return XP_OK;
}

/* When the host's devices did anything; false: they did nothing. */
static bool device_span(const struct part *p, struct busy *span, uint32_t *planes)
{
    *span = (struct busy){.begin_ps = INT64_MAX, .end_ps = INT64_MIN};
    *planes = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        if (!is_device(part_str(p, pl->name)))
            continue;
        ++*planes;
        for (uint32_t k = 0; k < pl->nlines; k++) {
            const struct part_line *l = &p->lines[pl->first_line + k];
            if (!l->nevents)
                continue;
            span->begin_ps = l->begin_ps < span->begin_ps ? l->begin_ps : span->begin_ps;
            span->end_ps = l->end_ps > span->end_ps ? l->end_ps : span->end_ps;
        }
    }
    return span->begin_ps < span->end_ps;
}

static enum xp_status map_host(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    (void)args;
    const struct part *p = host->part;
    struct facts_out f;
    struct busy span;
    uint32_t planes;
    bool any = device_span(p, &span, &planes);
    XP_TRY(facts_begin(&f, a, err));
    facts_u64(&f, any ? planes : 0);
    facts_i64(&f, any ? span.begin_ps : 0);
    facts_i64(&f, any ? span.end_ps : 0);
    for (uint32_t i = 0; any && i < p->nplanes; i++) {
        enum xp_status st = XP_OK;
        if (is_device(part_str(p, p->planes[i].name)))
            st = map_plane(p, &p->planes[i], &span, &f, a, err);
        if (st != XP_OK) {
            facts_drop(&f);
            return st;
        }
    }
    return facts_end(&f, host, a, partial, err);
}

/* --- all hosts --- */

struct device {
    struct xp_span host, name, levels;
    int64_t begin_ps, end_ps;
    double busy_ps;
};

struct view {
    struct device *v;
    size_t n, cap;
    int64_t begin_ps, end_ps; /* of all hosts */
    struct xp_arena *a;
};

static bool add_device(struct view *v, const struct device *d)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 64;
        struct device *more = xp_arena_alloc(v->a, cap * sizeof *more);
        if (!more)
            return false;
        if (v->n)
            memcpy(more, v->v, v->n * sizeof *more);
        v->v = more;
        v->cap = cap;
    }
    v->v[v->n++] = *d;
    return true;
}

static enum xp_status read_host(struct view *v, struct facts *f, struct xp_error *err)
{
    struct device d = {.host = f->host};
    size_t n = facts_get_count(f);
    d.begin_ps = facts_get_i64(f);
    d.end_ps = facts_get_i64(f);
    if (n && d.begin_ps < d.end_ps) {
        v->begin_ps = d.begin_ps < v->begin_ps ? d.begin_ps : v->begin_ps;
        v->end_ps = d.end_ps > v->end_ps ? d.end_ps : v->end_ps;
    }
    for (size_t i = 0; i < n; i++) {
        d.name = facts_get_text(f);
        d.busy_ps = facts_get_double(f);
        d.levels = facts_get_text(f);
        if (d.levels.n == COLUMNS && d.begin_ps < d.end_ps && !add_device(v, &d))
            return xp_fail(err, XP_BUSY, 0, "no memory left for the devices' activity");
    }
    return facts_ok(f, err);
}

static int level_at(const struct device *d, double t)
{
    double at =
        (t - (double)d->begin_ps) / ((double)d->end_ps - (double)d->begin_ps) * (double)COLUMNS;
    if (!(at >= 0) || at >= COLUMNS)
        return -1;
    uint8_t c = d->levels.p[(int)at];
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1; /* none that a host of ours says */
}

/* The host's columns brought to the scale of all: the mean of those that lie in a column. '.': the
 * host was not watched then. */
static struct xp_span rescaled(const struct view *v, const struct device *d)
{
    enum { PROBES = 4 };
    uint8_t *text = xp_arena_alloc(v->a, SHOWN);
    double wide = ((double)v->end_ps - (double)v->begin_ps) / SHOWN / PROBES;
    if (!text)
        return (struct xp_span){0};
    for (int c = 0; c < SHOWN; c++) {
        int sum = 0, n = 0;
        for (int k = 0; k < PROBES; k++) {
            int level = level_at(d, (double)v->begin_ps + (c * PROBES + k + 0.5) * wide);
            sum += level > 0 ? level : 0;
            n += level >= 0;
        }
        text[c] = n ? (uint8_t)digits[(sum + n / 2) / n] : '.';
    }
    return xp_span_of(text, SHOWN);
}

static const struct report_column columns[] = {
    {"host", "Host", "", REPORT_COL_TEXT, false, "name of the profile's file"},
    {"device", "Device", "", REPORT_COL_TEXT, false, "its plane"},
    {"busy", "Busy", "fraction", REPORT_COL_NUMBER, false,
     "of the time in which the host's devices did anything"},
    {"activity", "Activity", "", REPORT_COL_TEXT, false,
     "128 equal parts of the time from the first begin to the last end of all hosts: 0 (idle), 1 "
     "to 9, a to z (busy all the time), a dot where the host was not watched"},
};

static double busy_share(const struct device *d)
{
    return d->busy_ps / ((double)d->end_ps - (double)d->begin_ps);
}

static void device_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct device *d = &v->v[i];
    c[0] = report_of_text(d->host);
    c[1] = report_of_text(d->name);
    c[2] = report_of_double(busy_share(d));
    c[3] = report_of_text(rescaled(v, d));
}

static void write_times(struct report *r, const struct view *v)
{
    if (v->n == 0) {
        const char *why = "the profile has no events of a device: it was taken without an "
                          "accelerator, or with the device tracer off";
        report_na(r, "activity_begin", "%s", why);
        report_na(r, "activity_end", "%s", why);
        report_verdict(r, "No device did anything.");
        return;
    }
    report_metric(r, "activity_begin", report_of_i64(v->begin_ps), NULL, NULL, NULL);
    report_metric(r, "activity_end", report_of_i64(v->end_ps), NULL, NULL, NULL);
    const struct device *least = v->v;
    for (size_t i = 1; i < v->n; i++)
        least = busy_share(&v->v[i]) < busy_share(least) ? &v->v[i] : least;
    report_verdict(r, "The least busy of %zu devices is %.*s of %.*s: %.1f %%.", v->n,
                   least->name.n > 80 ? 80 : (int)least->name.n, (const char *)least->name.p,
                   least->host.n > 80 ? 80 : (int)least->host.n, (const char *)least->host.p,
                   100 * busy_share(least));
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    (void)args;
    struct view v = {.begin_ps = INT64_MAX, .end_ps = INT64_MIN, .a = r->a};
    struct facts *hosts;
    size_t n;
    XP_TRY(facts_open(merged, r->a, &hosts, &n, err));
    for (size_t i = 0; i < n; i++)
        XP_TRY(read_host(&v, &hosts[i], err));
    write_times(r, &v);
    report_table(r, &(struct report_rows){.id = "devices",
                                          .title = "Devices",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = v.n,
                                          .row = device_row,
                                          .ctx = &v});
    return XP_OK;
}

static const struct tool_report report_device_activity = {
    .question = "Which device was idle when?",
    .whole = true,
    .map = map_host,
    .merge = facts_merge,
    .write = write_report,
};

const struct tool tool_device_activity = {
    .id = "device_activity", .answer = tool_no_data, .report = &report_device_activity};
