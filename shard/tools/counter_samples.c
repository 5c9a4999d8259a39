#include "shard/tools/counter_samples.h"

enum { DEVICE_ID, DEVICE_TYPE, COUNTER_ID, COUNTER_VALUE, NAMES };
static const char *const names[NAMES] = {"device_id", "device_type_string",
                                         "performance_counter_id", "counter_value"};

static bool plane_counts(const struct part_plane *pl)
{
    for (uint32_t i = 0; i < pl->nstatmeta; i++)
        if (pl->statmeta[i].kind == STAT_COUNTER_VALUE)
            return true;
    return false;
}

/* The number of each event name that tells one. */
static enum xp_status read_meta_ids(struct counter_device *d, struct xp_error *err)
{
    struct value v;
    d->meta_ids = xp_arena_zalloc(d->a, ((size_t)d->plane->nevmeta + 1) * sizeof *d->meta_ids);
    if (!d->meta_ids)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the counters' numbers");
    for (uint32_t i = 0; i < d->plane->nevmeta; i++) {
        XP_TRY(values_of_evmeta(&d->eye, i, err));
        if (values_find(&d->eye, COUNTER_ID, &v))
            d->meta_ids[i] = value_u64(&v);
    }
    return XP_OK;
}

enum xp_status counter_device_open(struct counter_device *d, const struct part *part,
                                   const struct part_plane *plane, struct xp_arena *a,
                                   struct xp_error *err)
{
    struct value v;
    *d = (struct counter_device){.part = part, .plane = plane, .id = -1, .a = a};
    values_open(&d->eye, part, plane, names, NAMES, a);
    values_of_plane(&d->eye);
    while (values_next(&d->eye, &v)) {
        if (v.which == DEVICE_ID)
            d->id = (int64_t)value_u64(&v);
        else if (v.which == DEVICE_TYPE)
            d->type = v.type == VALUE_TEXT ? v.text : (struct xp_span){0};
    }
    return plane_counts(plane) ? read_meta_ids(d, err) : XP_OK;
}

static uint64_t whole(const struct value *v)
{
    double d = value_double(v);
    if (d == 0)
        return value_u64(v);
    if (!(d > 0))
        return 0;
    return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

/* False: the event has no value, or no number. */
static bool read_event(struct counter_device *d, const struct lane_event *ev,
                       struct tpu_counter_value *c)
{
    struct value v, id = {0}, value = {0};
    while (values_next(&d->eye, &v)) {
        if (v.which == COUNTER_ID && !id.type)
            id = v;
        else if (v.which == COUNTER_VALUE && !value.type)
            value = v;
    }
    bool known = ev->name < d->plane->nevmeta;
    c->id = id.type ? value_u64(&id) : known ? d->meta_ids[ev->name] : 0;
    if (!c->id && known)
        c->id = (uint64_t)d->plane->evmeta[ev->name].id;
    c->value = whole(&value);
    return value.type != VALUE_NONE && c->id;
}

static int by_id(const void *a, const void *b)
{
    const struct tpu_counter_value *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Of events with equal numbers the last one counts. */
static size_t last_of_each(struct tpu_counter_value *v, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && v[kept - 1].id == v[i].id)
            kept--;
        v[kept++] = v[i];
    }
    return kept;
}

/* A stable sort by number: merge sort from the bottom. */
static void sort_stable(struct tpu_counter_value *v, struct tpu_counter_value *tmp, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width;
            size_t i = lo, j = mid, k = lo;
            hi = hi < n ? hi : n;
            while (i < mid || j < hi)
                tmp[k++] = j == hi || (i < mid && by_id(&v[i], &v[j]) <= 0) ? v[i++] : v[j++];
        }
        memcpy(v, tmp, n * sizeof *v);
    }
}

enum xp_status counter_sample_read(struct counter_device *d, const struct part_line *line,
                                   struct counter_sample *s, struct xp_error *err)
{
    struct lane_event *events;
    size_t n, got = 0;
    *s = (struct counter_sample){0};
    if (!d->meta_ids) /* the plane has no counters */
        return XP_OK;
    XP_TRY(profile_events_with(line, STAT_COUNTER_VALUE, d->a, &events, &n, err));
    if (!n)
        return XP_OK;
    struct tpu_counter_value *v = xp_arena_alloc(d->a, 2 * n * sizeof *v);
    if (!v)
        return xp_fail(err, XP_BUSY, 0, "no memory left for %zu counters", n);
    for (size_t i = 0; i < n; i++) {
        XP_TRY(values_of_event(&d->eye, events[i].at, err));
        if (read_event(d, &events[i], &v[got])) {
            int64_t took = events[i].end_ps - events[i].begin_ps;
            got++;
            s->duration_ps = took > s->duration_ps ? took : s->duration_ps;
        }
    }
    sort_stable(v, v + n, got);
    s->values = (struct tpu_counter_values){v, last_of_each(v, got)};
    return XP_OK;
}
