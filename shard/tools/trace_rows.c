#include "lib/base/hash.h"
#include "shard/tools/trace.h"

/* XProf's numbers for processes. */
#define DEVICE_FIRST 1
#define DEVICE_LAST 500
#define CUSTOM_FIRST 501
#define HOST_FIRST 701

const int64_t trace_resolution_ps[TRACE_LAYERS] = {
    INT64_C(1000000000000),
    INT64_C(100000000000),
    INT64_C(10000000000),
    INT64_C(1000000000),
    INT64_C(100000000),
    INT64_C(10000000),
    INT64_C(1000000),
    INT64_C(100000),
    INT64_C(10000),
    INT64_C(1000),
    INT64_C(100),
    INT64_C(10),
    INT64_C(1),
};

enum xp_status trace_busy(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the trace");
}

void trace_host_fini(struct trace_host *h)
{
    vec_free(&h->devices);
    vec_free(&h->threads);
    vec_free(&h->rows);
    vec_free(&h->lanes);
    vec_free(&h->tracks);
    free(h->track_table);
    vec_free(&h->events);
    vec_free(&h->moved);
}

bool trace_hidden(const struct trace_host *h, const struct derive_line *l, uint32_t name)
{
    return !l->own_names && name < h->part->planes[l->plane].nevmeta &&
           h->d->planes[l->plane].evflags[name] & EV_INTERNAL;
}

static bool contains(struct xp_span s, const char *word)
{
    return s.n && memmem(s.p, s.n, word, strlen(word));
}

static bool is_tpu(struct xp_span name)
{
    return contains(name, "/device:TPU:") || contains(name, "TensorNode") ||
           contains(name, "TPU Core") ||
           (contains(name, "#Chip") && (contains(name, "Host Interface") || contains(name, "HBM") ||
                                        contains(name, "ICI Router")));
}

static bool is_core(struct xp_span name)
{
    return contains(name, "/device:TPU:") || contains(name, "TensorNode") ||
           contains(name, "TPU Core");
}

/* --- planes become devices --- */

struct shown {
    uint32_t plane, id;
};

static int by_plane_name(const void *a, const void *b)
{
    const struct trace_device *x = a, *y = b;
    int c = xp_span_cmp(x->name, y->name);
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

static bool add_shown(struct vec *v, uint32_t plane, uint32_t id)
{
    struct shown *s = vec_push(v, sizeof *s);
    if (s)
        *s = (struct shown){plane, id};
    return s;
}

static bool show_hosts(const struct trace_host *h, struct vec *out)
{
    struct vec hosts = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < h->part->nplanes; i++) {
        if (!xp_span_starts(h->d->planes[i].name, XP_SPAN_LIT("/host:CPU")))
            continue;
        struct trace_device *x = vec_push(&hosts, sizeof *x);
        ok = x;
        if (x)
            *x = (struct trace_device){.id = i, .name = h->d->planes[i].name};
    }
    if (hosts.n)
        qsort(hosts.p, hosts.n, sizeof(struct trace_device), by_plane_name);
    for (uint32_t i = 0; ok && i < hosts.n; i++)
        ok = add_shown(out, VEC(hosts, struct trace_device)[i].id, HOST_FIRST + i);
    vec_free(&hosts);
    return ok;
}

static bool show_planes(const struct trace_host *h, struct vec *out)
{
    bool gpu = false, ok = show_hosts(h, out);
    for (uint32_t i = 0; i < h->part->nplanes; i++)
        gpu |= h->d->planes[i].gpu;
    for (uint32_t i = 0; ok && i < h->part->nplanes; i++) {
        const struct derive_plane *dp = &h->d->planes[i];
        uint32_t id = (uint32_t)h->part->planes[i].id;
        if (gpu ? dp->gpu : dp->tpu) {
            uint32_t pid = DEVICE_FIRST + id;
            ok = add_shown(out, i, pid > DEVICE_LAST ? DEVICE_FIRST : pid);
        } else if (xp_span_starts(dp->name, XP_SPAN_LIT("/device:CUSTOM:"))) {
            ok = add_shown(out, i, CUSTOM_FIRST + id);
        }
    }
    return ok;
}

/* --- lines become rows --- */

struct shown_line {
    uint32_t device; /* id */
    uint32_t tid;
    bool counter;
    uint32_t line;
};

static int line_order(const void *a, const void *b)
{
    const struct shown_line *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->counter != y->counter)
        return x->counter ? 1 : -1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static struct xp_span raw_name(const struct trace_host *h, const struct derive_line *l)
{
    return l->own_names ? l->name : part_str(h->part, l->line->name);
}

static bool pick_lines(const struct trace_host *h, const struct shown *s, struct vec *out)
{
    const struct derive_plane *dp = &h->d->planes[s->plane];
    for (uint32_t i = dp->first_line; i < dp->first_line + dp->nlines; i++) {
        const struct derive_line *l = &h->d->lines[i];
        if (l->hidden || !l->line->nevents)
            continue;
        struct shown_line *x = vec_push(out, sizeof *x);
        if (!x)
            return false;
        bool counter = xp_span_eq(raw_name(h, l), XP_SPAN_LIT("_counters_"));
        *x = (struct shown_line){s->id, counter ? 0 : (uint32_t)l->tid, counter, i};
    }
    return true;
}

/* The events that XProf shows and counts: all but those it never shows. */
struct seen {
    uint64_t n;
    int64_t begin_ps, end_ps;
};

static void see(struct seen *s, int64_t begin_ps, int64_t end_ps)
{
    if (!s->n || begin_ps < s->begin_ps)
        s->begin_ps = begin_ps;
    if (!s->n || end_ps > s->end_ps)
        s->end_ps = end_ps;
}

/* The first and the last event that a lane shows, and how many it does. */
struct shown_lane {
    uint64_t n, first, last;
};

static struct shown_lane look_at_names(const struct trace_host *h, const struct derive_line *l,
                                       const struct lane *lane)
{
    struct shown_lane s = {0};
    uint32_t names[LANE_BLOCK];
    for (uint64_t b = 0, n; (n = lane_names(lane, b, names)); b++)
        for (uint64_t i = 0; i < n; i++) {
            if (trace_hidden(h, l, names[i]))
                continue;
            s.last = b * LANE_BLOCK + i;
            if (!s.n++)
                s.first = s.last;
        }
    return s;
}

static void see_event(struct seen *s, const struct derive_line *l, const struct lane *lane,
                      uint64_t ord)
{
    struct lane_cursor c;
    struct lane_event ev;
    lane_seek_ord(&c, lane, ord);
    if (lane_next(&c, &ev))
        see(s, l->line->base_ps + ev.begin_ps, l->line->base_ps + ev.end_ps);
}

static void see_all(struct seen *s, const struct trace_host *h, const struct derive_line *l,
                    const struct lane *lane)
{
    struct lane_event ev[LANE_BLOCK];
    struct lane_cursor c;
    lane_seek_ord(&c, lane, 0);
    for (size_t n; (n = lane_next_block(&c, ev));)
        for (size_t i = 0; i < n; i++) {
            if (trace_hidden(h, l, ev[i].name))
                continue;
            see(s, l->line->base_ps + ev[i].begin_ps, l->line->base_ps + ev[i].end_ps);
            s->n++;
        }
}

/* Events of a lane do not overlap, so that its first and last one span it; but for those that
 * found no lane of their own. */
static struct seen shown_events(const struct trace_host *h, const struct derive_line *l, bool hides)
{
    struct seen s = {l->line->nevents, l->line->begin_ps, l->line->end_ps};
    if (!hides)
        return s;
    s.n = 0;
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        const struct lane *lane = l->line->lanes[k];
        if (l->line->overflow && k == l->line->nlanes - 1) {
            see_all(&s, h, l, lane);
            continue;
        }
        struct shown_lane x = look_at_names(h, l, lane);
        if (!x.n)
            continue;
        see_event(&s, l, lane, x.first);
        s.n += x.n;
        see_event(&s, l, lane, x.last);
    }
    return s;
}

static void widen(struct trace_host *h, const struct seen *s)
{
    struct seen all = {h->nevents, h->begin_ps, h->end_ps};
    if (!s->n)
        return;
    see(&all, s->begin_ps, s->end_ps);
    h->begin_ps = all.begin_ps;
    h->end_ps = all.end_ps;
    h->nevents += s->n;
}

static bool add_lanes(struct trace_host *h, struct trace_row *row, uint32_t line)
{
    const struct derive_line *l = &h->d->lines[line];
    const struct derive_plane *dp = &h->d->planes[l->plane];
    for (uint32_t k = 0; k < l->line->nlanes; k++) {
        struct trace_lane *x = vec_push(&h->lanes, sizeof *x);
        if (!x)
            return false;
        *x = (struct trace_lane){l->line->lanes[k], l->line->base_ps, line};
        row->nlanes++;
    }
    uint64_t flows = UINT64_C(1) << STAT_FLOW | UINT64_C(1) << STAT_CORRELATION_ID |
                     UINT64_C(1) << STAT_PRODUCER_ID | UINT64_C(1) << STAT_CONSUMER_ID |
                     UINT64_C(1) << STAT_RUN_ID | UINT64_C(1) << STAT_REQUEST_ID |
                     UINT64_C(1) << STAT_STEP_ID;
    row->may_flow |= side_kinds(l->side) & flows;
    row->may_async |= side_kinds(l->side) >> STAT_IS_ASYNC & 1;
    struct seen seen = shown_events(h, l, dp->hides && !l->own_names);
    row->may_hide |= seen.n != l->line->nevents;
    widen(h, &seen);
    return true;
}

static struct trace_device *device_of(struct trace_host *h, uint32_t id)
{
    size_t lo = 0, hi = h->devices.n;
    struct trace_device *v = h->devices.p;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &v[lo];
}

static bool add_row(struct trace_host *h, const struct shown_line *lines, size_t n)
{
    struct trace_device *dev = device_of(h, lines[0].device);
    struct trace_row *row = vec_push(&h->rows, sizeof *row);
    if (!row)
        return false;
    *row = (struct trace_row){
        .device = (uint32_t)(dev - VEC(h->devices, struct trace_device)),
        .tid = lines[0].tid,
        .counter = lines[0].counter,
        .first_lane = (uint32_t)h->lanes.n,
    };
    for (size_t i = 0; i < n; i++)
        if (!add_lanes(h, row, lines[i].line))
            return false;
    if (row->counter)
        return true;
    struct trace_thread *th = vec_push(&h->threads, sizeof *th);
    if (!th)
        return false;
    *th = (struct trace_thread){row->tid, h->d->lines[lines[n - 1].line].name};
    if (!dev->nthreads++)
        dev->first_thread = (uint32_t)h->threads.n - 1;
    return true;
}

static int device_order(const void *a, const void *b)
{
    const struct trace_device *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->first_thread > y->first_thread) - (x->first_thread < y->first_thread);
}

static bool add_device(struct trace_host *h, const struct shown *s)
{
    struct xp_span name = h->d->planes[s->plane].name;
    struct trace_device *dev = vec_push(&h->devices, sizeof *dev);
    if (dev)
        *dev = (struct trace_device){s->id, name, is_tpu(name), (uint32_t)h->devices.n, 0};
    h->tpu |= is_core(name);
    return dev;
}

/* By number; of several planes that share one, the last gives the name. */
static void settle_devices(struct trace_host *h)
{
    struct trace_device *v = h->devices.p;
    size_t n = 0;
    if (!h->devices.n)
        return;
    qsort(v, h->devices.n, sizeof *v, device_order);
    for (size_t i = 0; i < h->devices.n; i++) {
        if (n && v[n - 1].id == v[i].id)
            n--;
        v[n] = v[i];
        v[n++].first_thread = 0;
    }
    h->devices.n = n;
}

static bool host_init(struct trace_host *h, struct vec *planes, struct vec *lines)
{
    if (!show_planes(h, planes))
        return false;
    for (size_t i = 0; i < planes->n; i++) {
        const struct shown *s = &VEC(*planes, struct shown)[i];
        if (!h->part->planes[s->plane].nlines)
            continue;
        if (!add_device(h, s) || !pick_lines(h, s, lines))
            return false;
    }
    settle_devices(h);
    if (lines->n)
        qsort(lines->p, lines->n, sizeof(struct shown_line), line_order);
    const struct shown_line *x = lines->p;
    for (size_t i = 0, k; i < lines->n; i = k) {
        for (k = i + 1; k < lines->n && x[k].device == x[i].device && x[k].tid == x[i].tid &&
                        x[k].counter == x[i].counter;
             k++)
            ;
        if (!add_row(h, x + i, k - i))
            return false;
    }
    return true;
}

enum xp_status trace_host_init(struct trace_host *h, struct xp_error *err)
{
    struct vec planes = {0}, lines = {0};
    bool ok = host_init(h, &planes, &lines);
    vec_free(&planes);
    vec_free(&lines);
    return ok ? XP_OK : trace_busy(err);
}

static size_t track_slot(const struct trace_host *h, const struct trace_track *key)
{
    size_t i = (xp_hash(key->name) ^ xp_hash_u64(key->device * 4 + key->kind)) & h->track_mask;
    for (; h->track_table[i]; i = (i + 1) & h->track_mask) {
        const struct trace_track *t = &VEC(h->tracks, struct trace_track)[h->track_table[i] - 1];
        if (t->device == key->device && t->kind == key->kind && xp_span_eq(t->name, key->name))
            break;
    }
    return i;
}

static bool track_room(struct trace_host *h)
{
    if (h->track_table && h->tracks.n * 2 <= h->track_mask)
        return true;
    size_t size = h->track_table ? (h->track_mask + 1) * 2 : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(h->track_table);
    h->track_table = table;
    h->track_mask = size - 1;
    for (uint32_t i = 0; i < h->tracks.n; i++)
        table[track_slot(h, &VEC(h->tracks, struct trace_track)[i])] = i + 1;
    return true;
}

uint32_t trace_track_of(struct trace_host *h, uint32_t device, enum trace_kind kind,
                        struct xp_span name)
{
    struct trace_track key = {device, (uint8_t)kind, name};
    if (!track_room(h))
        return UINT32_MAX;
    size_t slot = track_slot(h, &key);
    if (h->track_table[slot])
        return h->track_table[slot] - 1;
    struct trace_track *t = vec_push(&h->tracks, sizeof *t);
    if (!t)
        return UINT32_MAX;
    *t = key;
    h->track_table[slot] = (uint32_t)h->tracks.n;
    return (uint32_t)h->tracks.n - 1;
}

/* --- what an answer says of its hosts --- */

struct trace_sum trace_sum_of(const struct trace_host *h)
{
    return (struct trace_sum){h->begin_ps, h->end_ps, h->events.n, h->tpu, h->nevents > 0};
}

void trace_sum_add(struct trace_sum *sum, struct trace_sum one)
{
    if (one.any && (!sum->any || one.begin_ps < sum->begin_ps))
        sum->begin_ps = one.begin_ps;
    if (one.any && (!sum->any || one.end_ps > sum->end_ps))
        sum->end_ps = one.end_ps;
    sum->any |= one.any;
    sum->tpu |= one.tpu;
    sum->shown += one.shown;
}
