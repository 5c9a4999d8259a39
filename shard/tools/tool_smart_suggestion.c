/* Advice. This build of XProf knows one rule: steps that wait much at barriers. */
#include <math.h>
#include <stdlib.h>

#include "shard/derive/derive.h"
#include "shard/derive/vec.h"
#include "shard/tools/facts.h"
#include "shard/tools/profile.h"
#include "shard/tools/reports_more.h"

#define BARRIER_PERCENT 10.0
#define DUMMY_PS 1250 /* what an event that did not wait has */

/* How long a plane's core waited in one step, as a share of the step. */
struct share {
    int64_t group;
    uint32_t plane;
    int64_t step_ps;
    double share;
};

/* The longest step marker of a group on a plane. */
struct marker {
    int64_t group, longest_ps;
};

struct work {
    struct part *part;
    const struct derive *d;
    struct xp_arena *a;
    struct vec shares;  /* struct share */
    struct vec markers; /* struct marker of the plane that is looked at, by group */
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for suggestions");
}

/* --- one host --- */

static struct share *share_of(struct work *w, int64_t group, uint32_t plane)
{
    struct share *v = w->shares.p;
    for (size_t i = w->shares.n; i-- > 0 && v[i].plane == plane;)
        if (v[i].group == group)
            return &v[i];
    return NULL;
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

static int marker_order(const void *a, const void *b)
{
    const struct marker *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->longest_ps < y->longest_ps) - (x->longest_ps > y->longest_ps);
}

static bool add_markers(struct work *w, const struct derive_line *dl)
{
    struct derive_eye eye;
    struct lane_event ev;
    derive_look(&eye, w->d, dl);
    for (uint32_t k = 0; k < dl->line->nlanes; k++) {
        struct lane_cursor c;
        lane_seek(&c, dl->line->lanes[k], INT64_MIN);
        while (lane_next(&c, &ev)) {
            struct derive_event de = {dl->line->base_ps + ev.begin_ps,
                                      dl->line->base_ps + ev.end_ps, ev.at, ev.name};
            struct marker *m = vec_push(&w->markers, sizeof *m);
            if (!m)
                return false;
            *m = (struct marker){derive_group(&eye, &de), ev.end_ps - ev.begin_ps};
        }
    }
    return true;
}

static bool find_markers(struct work *w, const struct derive_plane *dp)
{
    w->markers.n = 0;
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        struct xp_span name = part_str(w->part, w->d->lines[i].line->name);
        if ((xp_span_eq(name, XP_SPAN_LIT("Steps")) ||
             xp_span_eq(name, XP_SPAN_LIT("Sparse Core Steps"))) &&
            !add_markers(w, &w->d->lines[i]))
            return false;
    }
    if (w->markers.n)
        qsort(w->markers.p, w->markers.n, sizeof(struct marker), marker_order);
    return true;
}

/* 0: there is none. */
static int64_t step_ps_of(const struct work *w, int64_t group)
{
    const struct marker *v = w->markers.p;
    size_t lo = 0, hi = w->markers.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].group < group)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < w->markers.n && v[lo].group == group && v[lo].longest_ps > 0 ? v[lo].longest_ps : 0;
}

static enum xp_status add_event(struct work *w, uint32_t plane, const struct derive_line *dl,
                                struct derive_eye *eye, const struct lane_event *ev, uint64_t ps,
                                struct xp_error *err)
{
    struct derive_event de = {dl->line->base_ps + ev->begin_ps, dl->line->base_ps + ev->end_ps,
                              ev->at, ev->name};
    int64_t group = derive_group(eye, &de);
    if (group == DERIVE_NO_GROUP || ps == 0 || ps == DUMMY_PS)
        return XP_OK;
    struct share *s = share_of(w, group, plane);
    int64_t step_ps = s ? s->step_ps : step_ps_of(w, group);
    if (!step_ps)
        return XP_OK;
    float share = (float)((double)ps / (double)step_ps);
    if (s) {
        s->share += share;
        return XP_OK;
    }
    s = vec_push(&w->shares, sizeof *s);
    if (!s)
        return no_memory(err);
    *s = (struct share){group, plane, step_ps, share};
    return XP_OK;
}

static enum xp_status look_at_plane(struct work *w, uint32_t plane, struct xp_error *err)
{
    static const char *const names[] = {"device_duration_ps"};
    const struct part_plane *pl = &w->part->planes[plane];
    const struct derive_plane *dp = &w->d->planes[plane];
    bool *wanted = xp_arena_zalloc(w->a, (size_t)pl->nevmeta + 1), any = false;
    struct values_eye eye;
    if (!wanted)
        return no_memory(err);
    for (uint32_t i = 0; i < pl->nevmeta; i++)
        any |= wanted[i] = is_barrier(part_str(w->part, pl->evmeta[i].name));
    if (!any)
        return XP_OK;
    if (!find_markers(w, dp))
        return no_memory(err);
    values_open(&eye, w->part, pl, names, 1, w->a);
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *dl = &w->d->lines[i];
        struct derive_eye groups;
        struct lane_event *events;
        size_t n;
        if (dl->line->derived)
            continue;
        derive_look(&groups, w->d, dl);
        XP_TRY(profile_events_named(dl->line, wanted, pl->nevmeta, w->a, &events, &n, err));
        for (size_t k = 0; k < n; k++) {
            uint64_t ps;
            XP_TRY(device_ps(&eye, events[k].at, &ps, err));
            XP_TRY(add_event(w, plane, dl, &groups, &events[k], ps, err));
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
static void drop_ends(struct vec *shares)
{
    struct share *v = shares->p;
    int64_t first = v[0].group, last = v[shares->n - 1].group;
    int64_t first_ps = v[0].step_ps, last_ps = v[shares->n - 1].step_ps;
    size_t groups = 1, n = 0;
    for (size_t i = 1; i < shares->n; i++)
        groups += v[i].group != v[i - 1].group;
    for (size_t i = 0; i < shares->n; i++) {
        bool a = v[i].group == first, z = v[i].group == last;
        if (groups >= 3 && (a || z))
            continue;
        if (groups == 2 && ((z && (double)last_ps < 0.01 * (double)first_ps) ||
                            (a && (double)first_ps < 0.01 * (double)last_ps)))
            continue;
        v[n++] = v[i];
    }
    shares->n = n;
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

static enum xp_status find_shares(struct work *w, struct xp_error *err)
{
    if (!has_barriers(w->part))
        return XP_OK; /* not worth deriving anything */
    XP_TRY(derive_groups_get(w->part, &w->d, err));
    for (uint32_t i = 0; i < w->part->nplanes; i++)
        if (profile_is_tpu(profile_plane_name(w->part, &w->part->planes[i])))
            XP_TRY(look_at_plane(w, i, err));
    if (w->shares.n) {
        qsort(w->shares.p, w->shares.n, sizeof(struct share), by_group);
        drop_ends(&w->shares);
    }
    return XP_OK;
}

/* The facts: whether the host has a name, its name; of each step and core the share. */
static void put_shares(struct facts_out *f, const struct work *w)
{
    facts_u64(f, w->part->nhostnames != 0);
    facts_text(f, w->part->nhostnames ? w->part->hostnames[0] : (struct xp_span){0});
    facts_u64(f, w->shares.n);
    for (size_t i = 0; i < w->shares.n; i++) {
        const struct share *s = &VEC(w->shares, struct share)[i];
        facts_i64(f, s->group);
        facts_double(f, s->share);
    }
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct work w = {.part = host->part, .a = a};
    struct facts_out f;
    if (args->csv)
        return tool_no_csv(err);
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    enum xp_status st = find_shares(&w, err);
    if (st == XP_OK)
        st = facts_begin(&f, a, err);
    if (st == XP_OK) {
        put_shares(&f, &w);
        st = facts_end(&f, host, a, partial, err);
    }
    vec_free(&w.shares);
    vec_free(&w.markers);
    return st;
}

/* --- all hosts --- */

/* A host's mean over its steps. */
struct host_mean {
    struct xp_span name;
    double percent;
};

struct summary {
    struct xp_arena *a;
    struct host_mean *hosts;
    size_t nhosts;
    double sum; /* over cores and steps of all hosts */
    uint64_t count;
};

/* In single precision, as XProf has it. */
static void add_host(struct summary *w, struct facts *f)
{
    bool named = facts_get_u64(f) != 0;
    struct xp_span name = facts_get_text(f);
    size_t n = facts_get_count(f), steps = 0, cores = 0;
    int64_t group = 0;
    double step = 0;
    float sum = 0;
    for (size_t i = 0; i < n && !f->bad; i++) {
        int64_t of = facts_get_i64(f);
        double share = facts_get_double(f);
        if (cores && of != group) {
            sum += (float)(step / (double)cores);
            steps++;
            step = 0, cores = 0;
        }
        group = of;
        step += share;
        cores++;
        w->sum += (float)share;
        w->count++;
    }
    if (cores) {
        sum += (float)(step / (double)cores);
        steps++;
    }
    if (steps && named)
        w->hosts[w->nhosts++] = (struct host_mean){name, sum / (float)steps * 100.0};
}

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

static void put_stragglers(struct summary *w, struct xp_buf *text)
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
static void put_barrier_text(struct summary *w, struct xp_buf *text, double percent)
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

static void put_suggestions(struct xp_json *j, struct summary *w)
{
    double percent = w->count ? w->sum / (double)w->count * 100.0 : 0;
    struct xp_buf text;
    if (!(percent >= BARRIER_PERCENT))
        return;
    xp_buf_init(&text, (size_t)16 << 20);
    put_barrier_text(w, &text, percent);
    xp_json_obj(j);
    xp_json_key(j, "ruleName"), xp_json_str(j, "BarrierCoresRule");
    xp_json_key(j, "suggestionText"), xp_json_span(j, xp_buf_all(&text));
    xp_json_obj_end(j);
    xp_buf_fini(&text);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct summary w = {.a = scratch};
    struct facts *hosts;
    struct xp_json j;
    bool whole = true;
    size_t n;
    if (args->csv)
        return tool_no_csv(err);
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    w.hosts = xp_arena_alloc(scratch, (n + 1) * sizeof *w.hosts);
    if (!w.hosts)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        whole &= hosts[i].readable; /* one that is not leaves nothing to say */
    for (size_t i = 0; i < n && whole; i++) {
        add_host(&w, &hosts[i]);
        XP_TRY(facts_ok(&hosts[i], err));
    }
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "suggestions");
    xp_json_arr(&j);
    put_suggestions(&j, &w);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    return XP_OK;
}

const struct tool tool_smart_suggestion = {.id = "smart_suggestion",
                                           .tolerant = true,
                                           .map = map,
                                           .merge = facts_merge,
                                           .render = render,
                                           .report = &report_smart_suggestion};
