/* Advice. This build of XProf knows one rule: steps that wait much at barriers. */
#include <math.h>
#include <stdlib.h>

#include "shard/derive/derive.h"
#include "shard/tools/profile.h"

#define BARRIER_PERCENT 10.0
#define DUMMY_PS 1250 /* what an event that did not wait has */

/* How long a plane's core waited in one step, as a share of the step. */
struct share {
    int64_t group;
    uint32_t plane;
    int64_t step_ps;
    double share;
};

struct shares {
    struct share *v;
    size_t n, cap;
};

/* A host's mean over its steps. */
struct host_mean {
    struct xp_span name;
    double percent;
};

struct work {
    struct xp_arena *a;
    struct host_mean *hosts;
    size_t nhosts;
    double sum; /* over planes and steps of all hosts */
    uint64_t count;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for suggestions");
}

/* --- one host --- */

static bool add_share(struct work *w, struct shares *s, int64_t group, uint32_t plane,
                      int64_t step_ps, double share)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->v[i].group == group && s->v[i].plane == plane) {
            s->v[i].share += share;
            return true;
        }
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct share *v = xp_arena_alloc(w->a, cap * sizeof *v);
        if (!v)
            return false;
        if (s->n)
            memcpy(v, s->v, s->n * sizeof *v);
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = (struct share){group, plane, step_ps, share};
    return true;
}

static bool is_barrier(struct xp_span name)
{
    return memmem(name.p ? name.p : (const uint8_t *)"", name.n, "barrier-cores", 13) != NULL;
}

/* The event's time on the device; 0 if it does not tell. */
static enum xp_status device_ps(struct values_eye *eye, uint64_t at, uint64_t *ps,
                                struct xp_error *err)
{
    struct value v;
    *ps = 0;
    XP_TRY(values_of_event(eye, at, err));
    if (values_find(eye, 0, &v) && v.type == VALUE_U64)
        *ps = v.num;
    return XP_OK;
}

/* The longest step marker of the group on the plane; 0: there is none. */
static int64_t step_ps_of(const struct derive *d, const struct derive_plane *dp, int64_t group)
{
    int64_t longest = 0;
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &d->lines[i];
        struct derive_eye eye;
        struct lane_event ev;
        bool steps =
            xp_span_eq(part_str(d->part, dl->line->name), XP_SPAN_LIT("Steps")) ||
            xp_span_eq(part_str(d->part, dl->line->name), XP_SPAN_LIT("Sparse Core Steps"));
        derive_look(&eye, d, dl);
        for (uint32_t k = 0; steps && k < dl->line->nlanes; k++) {
            struct lane_cursor c;
            lane_seek(&c, dl->line->lanes[k], INT64_MIN);
            while (lane_next(&c, &ev)) {
                struct derive_event de = {dl->line->base_ps + ev.begin_ps,
                                          dl->line->base_ps + ev.end_ps, ev.at, ev.name};
                if (ev.end_ps - ev.begin_ps > longest && derive_group(&eye, &de) == group)
                    longest = ev.end_ps - ev.begin_ps;
            }
        }
    }
    return longest;
}

static enum xp_status add_event(struct work *w, const struct derive *d, uint32_t plane,
                                const struct derive_line *dl, struct derive_eye *eye,
                                const struct lane_event *ev, uint64_t ps, struct shares *s,
                                struct xp_error *err)
{
    struct derive_event de = {dl->line->base_ps + ev->begin_ps, dl->line->base_ps + ev->end_ps,
                              ev->at, ev->name};
    int64_t group = derive_group(eye, &de), step_ps = 0;
    if (group == DERIVE_NO_GROUP || ps == 0 || ps == DUMMY_PS)
        return XP_OK;
    for (size_t i = s->n; i-- > 0 && !step_ps;)
        if (s->v[i].group == group && s->v[i].plane == plane)
            step_ps = s->v[i].step_ps;
    if (!step_ps)
        step_ps = step_ps_of(d, &d->planes[plane], group);
    if (!step_ps)
        return XP_OK;
    float share = (float)((double)ps / (double)step_ps);
    return add_share(w, s, group, plane, step_ps, share) ? XP_OK : no_memory(err);
}

static enum xp_status look_at_plane(struct work *w, struct part *p, const struct derive *d,
                                    uint32_t plane, struct shares *s, struct xp_error *err)
{
    static const char *const names[] = {"device_duration_ps"};
    const struct part_plane *pl = &p->planes[plane];
    const struct derive_plane *dp = &d->planes[plane];
    bool *wanted = xp_arena_zalloc(w->a, (size_t)pl->nevmeta + 1), any = false;
    struct values_eye eye;
    if (!wanted)
        return no_memory(err);
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        any |= wanted[i] = is_barrier(part_str(p, pl->evmeta[i].name));
    if (!any)
        return XP_OK;
    values_open(&eye, p, pl, names, 1, w->a);
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &d->lines[i];
        struct derive_eye groups;
        struct lane_event *events;
        size_t n;
        if (dl->line->derived)
            continue;
        derive_look(&groups, d, dl);
        XP_TRY(profile_events_named(dl->line, wanted, pl->nevmeta, w->a, &events, &n, err));
        for (size_t k = 0; k < n; k++) {
            uint64_t ps;
            XP_TRY(device_ps(&eye, events[k].at, &ps, err));
            XP_TRY(add_event(w, d, plane, dl, &groups, &events[k], ps, s, err));
        }
    }
    return XP_OK;
}

static int by_group(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->plane > y->plane) - (x->plane < y->plane);
}

/* Steps at the ends are rarely whole: of three or more the outer two go, of two a much shorter. */
static void drop_ends(struct shares *s)
{
    int64_t first = s->v[0].group, last = s->v[s->n - 1].group;
    int64_t first_ps = s->v[0].step_ps, last_ps = s->v[s->n - 1].step_ps;
    size_t groups = 1, n = 0;
    for (size_t i = 1; i < s->n; i++)
        groups += s->v[i].group != s->v[i - 1].group;
    for (size_t i = 0; i < s->n; i++) {
        bool a = s->v[i].group == first, z = s->v[i].group == last;
        if (groups >= 3 && (a || z))
            continue;
        if (groups == 2 && ((z && (double)last_ps < 0.01 * (double)first_ps) ||
                            (a && (double)first_ps < 0.01 * (double)last_ps)))
            continue;
        s->v[n++] = s->v[i];
    }
    s->n = n;
}

static void add_host(struct work *w, const struct part *p, const struct shares *s)
{
    float sum = 0;
    size_t steps = 0;
    for (size_t i = 0, k; i < s->n; i = k) {
        double step = 0;
        for (k = i; k < s->n && s->v[k].group == s->v[i].group; k++) {
            step += s->v[k].share;
            w->sum += (float)s->v[k].share;
            w->count++;
        }
        sum += (float)(step / (double)(k - i));
        steps++;
    }
    if (steps && p->nhostnames)
        w->hosts[w->nhosts++] = (struct host_mean){p->hostnames[0], sum / (float)steps * 100.0};
}

static bool has_barriers(const struct part *p)
{
    for (uint32_t i = 0; i < p->nplanes; i++)
        for (uint32_t k = 0; k < p->planes[i].nevmeta; k++)
            if (is_barrier(part_str(p, p->planes[i].evmeta[k].name)) &&
                profile_is_tpu(profile_plane_name(p, &p->planes[i])))
                return true;
    return false;
}

static enum xp_status look_at_host(struct work *w, struct part *p, struct xp_error *err)
{
    const struct derive *d;
    struct shares s = {0};
    if (!has_barriers(p))
        return XP_OK; /* not worth deriving anything */
    XP_TRY(derive_get(p, &d, err));
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (profile_is_tpu(profile_plane_name(p, &p->planes[i])))
            XP_TRY(look_at_plane(w, p, d, i, &s, err));
    if (!s.n)
        return XP_OK;
    qsort(s.v, s.n, sizeof *s.v, by_group);
    drop_ends(&s);
    add_host(w, p, &s);
    return XP_OK;
}

/* --- hosts that stand out --- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As tsl::StatWithPercentiles: the element at n / 2. */
static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static void put_stragglers(struct work *w, struct xp_buf *text)
{
    double *v = xp_arena_alloc(w->a, (w->nhosts + 1) * sizeof *v);
    bool any = false;
    if (!v || w->nhosts < 3)
        return;
    for (size_t i = 0; i < w->nhosts; i++)
        v[i] = w->hosts[i].percent;
    double mid = median(v, w->nhosts);
    for (size_t i = 0; i < w->nhosts; i++)
        v[i] = fabs(w->hosts[i].percent - mid);
    double mad = median(v, w->nhosts);
    for (size_t i = 0; i < w->nhosts; i++) {
        const struct host_mean *h = &w->hosts[i];
        double off = h->percent - mid;
        bool out = mad == 0 ? fabs(off) > 1e-6 : fabs(0.6745 * off / fmax(mad, 0.1)) > 3.5;
        if (!out)
            continue;
        if (!any)
            xp_buf_str(text, "<li><b>Investigate Stragglers:</b> The following hosts are "
                             "identified as potential stragglers with significantly different "
                             "barrier time fraction compared to others:<ul>");
        any = true;
        xp_buf_fmt(text,
                   "<li>Host <b>%.*s</b> average barrier-cores time fraction: <b>%.1f%%</b></li>",
                   (int)(h->name.n < 1000 ? h->name.n : 1000), (const char *)h->name.p, h->percent);
    }
    if (any)
        xp_buf_str(text, "</ul></li>");
}

/* XProf's words: its page shows them as they are. */
static void put_barrier_text(struct work *w, struct xp_buf *text, double percent)
{
    xp_buf_fmt(
        text,
        "<p>Your program is likely bottlenecked by <b>TPU barrier-cores</b> operations: <b> "
        "an average of %.1f%% of each step time</b> is spent on these operations. This often "
        "indicates a synchronization issue between workers in a distributed training setup. "
        "Please consider the following optimizations:</p><ul>",
        percent);
    size_t before = text->n;
    put_stragglers(w, text);
    if (text->n == before)
        xp_buf_str(text, "<li><b>Investigate Workload Balance:</b> Check for stragglers, i.e., "
                         "workers that are significantly slower than others. Uneven workloads can "
                         "cause faster workers to wait at the barrier.</li>");
    xp_buf_str(text,
               "<li><b>Optimize Collective Operations:</b> Operations like AllReduce involve "
               "synchronization. Ensure they are used efficiently. Check the size of data being "
               "communicated.</li><li><b>Check Network:</b> Network latency or bandwidth can be a "
               "bottleneck for distributed operations, causing workers to wait longer at "
               "barriers.</li><li><b>Improve Data Input Pipeline:</b> Ensure your data loading and "
               "preprocessing pipeline is efficient and balanced across all workers. A slow input "
               "pipeline on one worker can stall all others.</li></ul>");
}

static enum xp_status answer(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct work w = {.a = scratch};
    struct xp_json j;
    bool whole = true;
    if (args->csv)
        return tool_no_csv(err);
    w.hosts = xp_arena_alloc(scratch, (n + 1) * sizeof *w.hosts);
    if (!w.hosts)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        whole &= profile_readable(hosts[i].part); /* one that is not leaves nothing to say */
    for (size_t i = 0; i < n && whole; i++)
        XP_TRY(look_at_host(&w, hosts[i].part, err));
    double percent = w.count ? w.sum / (double)w.count * 100.0 : 0;
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "suggestions");
    xp_json_arr(&j);
    if (percent >= BARRIER_PERCENT) {
        struct xp_buf text;
        xp_buf_init(&text, (size_t)16 << 20);
        put_barrier_text(&w, &text, percent);
        xp_json_obj(&j);
        xp_json_key(&j, "ruleName"), xp_json_str(&j, "BarrierCoresRule");
        xp_json_key(&j, "suggestionText"), xp_json_span(&j, xp_buf_all(&text));
        xp_json_obj_end(&j);
        xp_buf_fini(&text);
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    return XP_OK;
}

const struct tool tool_smart_suggestion = {
    .id = "smart_suggestion", .tolerant = true, .answer = answer};
