#include "shard/tools/range.h"

#include <stdio.h>

#include "shard/derive/cut.h"
#include "shard/stats/figures.h"

/* --- what is asked --- */

/* Takes a number of at most 15 digits off s. */
static bool take_number(struct xp_span *s, int64_t *v)
{
    size_t i = 0;
    *v = 0;
    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9' && i < 16; i++)
        *v = *v * 10 + (s->p[i] - '0');
    *s = xp_span_of(s->p + i, s->n - i);
    return i > 0 && *v <= RANGE_STEP_MAX;
}

static enum xp_status parse_steps(struct range *r, struct xp_span text, struct xp_error *err)
{
    struct xp_span s = text;
    bool ok = take_number(&s, &r->first);
    r->last = r->first;
    if (ok && s.n && s.p[0] == '-') {
        s = xp_span_of(s.p + 1, s.n - 1);
        ok = take_number(&s, &r->last);
    }
    int n = (int)(text.n < 60 ? text.n : 60);
    if (!ok || s.n)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "steps=%.*s is no step number such as 12, and no range of them such as "
                       "10-20",
                       n, (const char *)text.p);
    if (r->first > r->last)
        return xp_fail(err, XP_BAD_REQUEST, 0, "steps=%.*s ends before it begins", n,
                       (const char *)text.p);
    char *label = r->shown.label, *steps = r->shown.steps;
    if (r->first == r->last) {
        snprintf(steps, sizeof r->shown.steps, "%lld", (long long)r->first);
        snprintf(label, sizeof r->shown.label, "step %lld", (long long)r->first);
    } else {
        snprintf(steps, sizeof r->shown.steps, "%lld-%lld", (long long)r->first,
                 (long long)r->last);
        snprintf(label, sizeof r->shown.label, "steps %lld to %lld", (long long)r->first,
                 (long long)r->last);
    }
    r->any = r->by_steps = true;
    return XP_OK;
}

/* "1.25 ms" */
static void put_time(char *to, size_t n, int64_t ps)
{
    static const struct {
        double ps;
        const char *unit;
    } units[] = {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}};
    double v = (double)ps, size = v < 0 ? -v : v;
    size_t i = 0;
    while (i < 4 && size < units[i].ps)
        i++;
    snprintf(to, n, "%.6g %s", v / units[i].ps, units[i].unit);
}

enum xp_status range_parse(const struct args *args, struct range *r, struct xp_error *err)
{
    struct xp_span steps = args_get(args, "steps");
    char from[40], to[40];
    *r = (struct range){0};
    XP_TRY(args_window(args, &r->shown.t0_ps, &r->shown.t1_ps, err));
    bool times = args_get(args, "t0").n > 0;
    if (steps.n && times)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "steps and t0, t1 say the same in two ways: give one of them");
    if (steps.n)
        return parse_steps(r, steps, err);
    r->any = times;
    put_time(from, sizeof from, r->shown.t0_ps);
    put_time(to, sizeof to, r->shown.t1_ps);
    snprintf(r->shown.label, sizeof r->shown.label, "%s to %s", from, to);
    return XP_OK;
}

/* --- a host --- */

static void widen(bool any, int64_t *low, int64_t *high, int64_t from, int64_t to)
{
    *low = any && *low < from ? *low : from;
    *high = any && *high > to ? *high : to;
}

/* From the begin of the first of the steps to the end of the last, on any core. */
static enum xp_status find_steps(const struct range *r, const struct tool_host *host,
                                 const struct tool_args *args, struct xp_arena *a,
                                 struct range_seen *seen, struct xp_error *err)
{
    struct figure_host h;
    struct xp_span marker = {0};
    tool_arg(args, "step_marker", &marker);
    XP_TRY(figures_of(host->part, host->name, marker, a, &h, err));
    for (uint32_t c = 0; c < h.ncores; c++)
        for (uint32_t i = 0; h.cores[c].kind != FIGURE_SPARSE_CORE && i < h.cores[c].nsteps; i++) {
            const struct figure_step *s = &h.cores[c].steps[i];
            widen(seen->has_steps, &seen->low, &seen->high, s->number, s->number);
            seen->has_steps = true;
            if (s->number < r->first || s->number > r->last || s->end_ps <= s->begin_ps)
                continue;
            widen(seen->found, &seen->t0_ps, &seen->t1_ps, s->begin_ps, s->end_ps);
            seen->found = true;
        }
    return XP_OK;
}

static enum xp_status map_cut(const struct tool_report *report, const struct tool_host *host,
                              int64_t t0, int64_t t1, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct tool_host ranged = *host;
    struct part *cut = NULL;
    XP_TRY(cut_open(host->part, t0, t1, a, &cut, err));
    ranged.part = cut;
    enum xp_status st = report->map(&ranged, args, a, partial, err);
    cut_close(cut);
    return st;
}

enum xp_status range_map(const struct range *r, const struct tool_report *report,
                         const struct tool_host *host, const struct tool_args *args,
                         struct xp_arena *a, struct xp_span *partial, struct range_seen *seen,
                         struct xp_error *err)
{
    int64_t t0 = r->shown.t0_ps, t1 = r->shown.t1_ps;
    *seen = (struct range_seen){0};
    if (!r->any || report->whole || !host->part)
        return report->map(host, args, a, partial, err);
    seen->has_events = cut_extent(host->part, &seen->begin_ps, &seen->end_ps);
    seen->found = !r->by_steps && seen->has_events && t0 <= seen->end_ps && t1 > seen->begin_ps;
    if (r->by_steps) {
        XP_TRY(find_steps(r, host, args, a, seen, err));
        t0 = seen->found ? seen->t0_ps : INT64_MIN;
        t1 = seen->found ? seen->t1_ps : INT64_MIN + 1; /* nothing */
    }
    if (seen->has_events && t0 <= seen->begin_ps && t1 > seen->end_ps)
        return report->map(host, args, a, partial, err);
    return map_cut(report, host, t0, t1, args, a, partial, err);
}

/* --- all of them --- */

void range_see(struct range *r, const struct range_seen *one)
{
    struct range_seen *all = &r->seen;
    if (one->found)
        widen(all->found, &all->t0_ps, &all->t1_ps, one->t0_ps, one->t1_ps);
    if (one->has_steps)
        widen(all->has_steps, &all->low, &all->high, one->low, one->high);
    if (one->has_events)
        widen(all->has_events, &all->begin_ps, &all->end_ps, one->begin_ps, one->end_ps);
    all->found |= one->found;
    all->has_steps |= one->has_steps;
    all->has_events |= one->has_events;
}

/* What was seen, between processes: no bool, of which not every byte is one. */
struct wire {
    uint64_t flags;
    int64_t times[6];
};

enum { FOUND = 1, STEPS = 2, EVENTS = 4, ALL = 7 };

void range_put(const struct range *r, struct xp_buf *out)
{
    const struct range_seen *s = &r->seen;
    struct wire w = {
        .flags =
            (s->found ? FOUND : 0u) | (s->has_steps ? STEPS : 0u) | (s->has_events ? EVENTS : 0u),
        .times = {s->t0_ps, s->t1_ps, s->low, s->high, s->begin_ps, s->end_ps},
    };
    if (r->any)
        xp_buf_add(out, &w, sizeof w);
}

enum xp_status range_take(const struct range *r, struct xp_span *partial, struct range_seen *seen,
                          struct xp_error *err)
{
    struct wire w = {.flags = ALL + 1};
    *seen = (struct range_seen){0};
    if (!r->any)
        return XP_OK;
    if (partial->n >= sizeof w)
        memcpy(&w, partial->p, sizeof w);
    if (w.flags > ALL)
        return xp_fail(err, XP_CORRUPT, 0, "a range of another server cannot be read");
    *seen = (struct range_seen){
        .found = w.flags & FOUND,
        .has_steps = w.flags & STEPS,
        .has_events = w.flags & EVENTS,
        .t0_ps = w.times[0],
        .t1_ps = w.times[1],
        .low = w.times[2],
        .high = w.times[3],
        .begin_ps = w.times[4],
        .end_ps = w.times[5],
    };
    *partial = xp_span_of(partial->p + sizeof w, partial->n - sizeof w);
    return XP_OK;
}

enum xp_status range_close(struct range *r, const struct tool_report *report, struct xp_error *err)
{
    r->shown.ignored = report->whole;
    if (r->by_steps && r->seen.found) {
        r->shown.t0_ps = r->seen.t0_ps;
        r->shown.t1_ps = r->seen.t1_ps;
    }
    r->shown.cuts = r->any && !report->whole &&
                    (r->shown.t0_ps > r->seen.begin_ps || r->shown.t1_ps <= r->seen.end_ps);
    if (!r->any || r->seen.found || report->whole)
        return XP_OK;
    if (r->by_steps && r->seen.has_steps)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "there is no step from %lld to %lld: the profile has steps %lld to %lld",
                       (long long)r->first, (long long)r->last, (long long)r->seen.low,
                       (long long)r->seen.high);
    if (r->by_steps)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "the profile has no steps: give a range of time (t0, t1), or say with "
                       "step_marker= what a step is");
    if (!r->seen.has_events)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the profile has no events, so no range of it");
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "t0=%lld to t1=%lld lies outside of the profile, which goes from %lld to %lld",
                   (long long)r->shown.t0_ps, (long long)r->shown.t1_ps,
                   (long long)r->seen.begin_ps, (long long)r->seen.end_ps);
}
