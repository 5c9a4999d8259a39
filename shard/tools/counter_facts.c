#include "shard/tools/counter_facts.h"

#include "shard/tools/counter_samples.h"

enum { END, MORE };

/* The plane's op that begins first. */
static void first_op(const struct counter_device *d, struct counter_facts_sample *s)
{
    const struct part *p = d->part;
    int64_t begin = INT64_MAX;
    for (uint32_t i = d->plane->first_line; i < d->plane->first_line + d->plane->nlines; i++) {
        const struct part_line *l = &p->lines[i];
        if (!xp_span_eq(part_str(p, l->name), XP_SPAN_LIT("XLA Ops")))
            continue;
        for (uint32_t n = 0; n < l->nlanes; n++) {
            struct lane_cursor c;
            struct lane_event ev;
            lane_seek(&c, l->lanes[n], INT64_MIN);
            if (!lane_next(&c, &ev) || ev.name >= d->plane->nevmeta || ev.begin_ps > begin ||
                (ev.begin_ps == begin && ev.end_ps - ev.begin_ps <= s->kernel_ps))
                continue;
            begin = ev.begin_ps;
            s->kernel = part_str(p, d->plane->evmeta[ev.name].name);
            s->kernel_ps = ev.end_ps - ev.begin_ps;
        }
    }
}

static void name_kernel(const struct counter_device *d, const struct part_line *line,
                        struct counter_facts_sample *s)
{
    static const struct xp_span prefix = {(const uint8_t *)"counters_", 9};
    struct xp_span name = part_str(d->part, line->name);
    s->kernel = XP_SPAN_LIT("default_kernel");
    if (!xp_span_starts(name, prefix) || name.n == prefix.n)
        return;
    name = xp_span_of(name.p + prefix.n, name.n - prefix.n);
    if (xp_span_eq(name, XP_SPAN_LIT("0")))
        first_op(d, s);
    else
        s->kernel = name;
}

static void put_sample(struct facts_out *f, const struct counter_facts_sample *s)
{
    uint64_t last = 0;
    facts_u64(f, MORE);
    facts_i64(f, s->id);
    facts_text(f, s->kernel);
    facts_i64(f, s->kernel_ps);
    facts_i64(f, s->duration_ps);
    facts_u64(f, s->values.n);
    for (size_t i = 0; i < s->values.n; i++) {
        facts_u64(f, s->values.v[i].id - last); /* they ascend */
        facts_u64(f, s->values.v[i].value);
        last = s->values.v[i].id;
    }
}

static enum xp_status map_plane(struct facts_out *f, const struct part *p,
                                const struct part_plane *pl, struct xp_arena *a,
                                struct xp_error *err)
{
    struct counter_device d;
    enum tpu_chip chip;
    uint32_t ordinal;
    XP_TRY(counter_device_open(&d, p, pl, a, err));
    bool told = d.id != -1;
    if (!told && profile_ordinal(profile_plane_name(p, pl), &ordinal))
        d.id = ordinal;
    if (d.id == -1 || !tpu_chip_of(d.type, &chip))
        return XP_OK;
    facts_u64(f, MORE);
    facts_i64(f, d.id);
    facts_u64(f, told);
    facts_text(f, d.type);
    for (uint32_t i = pl->first_line; i < pl->first_line + pl->nlines; i++) {
        struct counter_sample sample;
        struct counter_facts_sample s = {.id = p->lines[i].id};
        XP_TRY(counter_sample_read(&d, &p->lines[i], &sample, err));
        if (!sample.values.n)
            continue;
        s.values = sample.values;
        s.duration_ps = sample.duration_ps;
        name_kernel(&d, &p->lines[i], &s);
        put_sample(f, &s);
    }
    facts_u64(f, END);
    return XP_OK;
}

enum xp_status counter_facts_put(struct facts_out *f, const struct part *p, struct xp_arena *a,
                                 struct xp_error *err)
{
    for (uint32_t i = 0; i < p->nplanes; i++)
        if (profile_is_tpu(profile_plane_name(p, &p->planes[i])))
            XP_TRY(map_plane(f, p, &p->planes[i], a, err));
    facts_u64(f, END);
    return XP_OK;
}

enum xp_status counter_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                     struct xp_arena *a, struct xp_span *partial,
                                     struct xp_error *err)
{
    struct facts_out f;
    (void)args;
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = counter_facts_put(&f, host->part, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

enum xp_status counter_facts_map(const struct tool_host *host, const struct tool_args *args,
                                 struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    return counter_facts_map_any(host, args, a, partial, err);
}

bool counter_facts_device(struct facts *f, struct counter_facts_device *d)
{
    if (!f->readable || facts_get_u64(f) != MORE)
        return false;
    d->id = facts_get_i64(f);
    d->id_told = facts_get_u64(f) != 0;
    d->type = facts_get_text(f);
    if (!tpu_chip_of(d->type, &d->chip))
        f->bad = true;
    return !f->bad;
}

bool counter_facts_sample(struct facts *f, struct xp_arena *a, struct counter_facts_sample *s)
{
    uint64_t last = 0;
    if (facts_get_u64(f) != MORE)
        return false;
    *s = (struct counter_facts_sample){.id = facts_get_i64(f)};
    s->kernel = facts_get_text(f);
    s->kernel_ps = facts_get_i64(f);
    s->duration_ps = facts_get_i64(f);
    size_t n = facts_get_count(f);
    struct tpu_counter_value *v = xp_arena_alloc(a, (n + 1) * sizeof *v);
    if (!v)
        return !(f->bad = true);
    for (size_t i = 0; i < n; i++) {
        v[i].id = last += facts_get_u64(f);
        v[i].value = facts_get_u64(f);
    }
    s->values = (struct tpu_counter_values){v, n};
    return !f->bad;
}
