#include "shard/derive/device_time.h"

#include <stdlib.h>

#define READ ((size_t)1 << 20)
#define KINDS 16384 /* stat ids of one or two bytes */

bool device_time_wanted(struct xp_span line)
{
    static const char *const names[] = {"XLA Ops", "Steps", "Sparse Core Ops", "Sparse Core Steps",
                                        "Sparse Core Modules"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xp_span_eq(line, xp_span_str(names[i])))
            return true;
    return false;
}

/* --- a line that is read again --- */

struct device_read {
    const struct part_plane *pl;
    uint8_t *kinds;     /* KINDS entries by stat id */
    uint64_t own_shift; /* of an event that has none */
    struct device_pen pen;
    struct xp_bump out;
    struct xspace_decoder dec;
    uint8_t buf[READ];
};

static uint8_t kind_of(const struct device_read *r, int64_t id)
{
    if (id >= 0 && id < KINDS)
        return r->kinds[id];
    for (uint32_t i = 0; i < r->pl->nstatmeta; i++)
        if (r->pl->statmeta[i].id == id)
            return r->pl->statmeta[i].kind;
    return STAT_NOT_KEPT;
}

/* All stats, in whatever shape. */
static void read_stats(const struct device_read *r, const struct xspace_event *ev,
                       struct device_time *dev)
{
    const uint8_t *p = ev->body.p + ev->stats, *end = ev->body.p + ev->body.n;
    struct xspace_stats it = xspace_stats_open(xp_span_of(p, (size_t)(end - p)), 4);
    struct xspace_stat s;
    dev->has = 0;
    while (xspace_stats_next(&it, &s)) {
        uint8_t kind = kind_of(r, s.metadata_id);
        if (kind <= STAT_DEVICE_DURATION_PS && (s.type == XSPACE_U64 || s.type == XSPACE_I64))
            device_note(dev, kind, s.num);
    }
}

static enum xp_status on_events(void *ctx, const struct xspace_event *ev, size_t n)
{
    struct device_read *r = ctx;
    for (size_t i = 0; i < n; i++) {
        struct device_time dev;
        uint64_t shift = r->own_shift, longer = 0;
        if (!device_pair(&ev[i], r->kinds, &dev))
            read_stats(r, &ev[i], &dev);
        if (dev.has == 3) {
            shift = dev.value[STAT_DEVICE_OFFSET_PS] - (uint64_t)ev[i].offset_ps;
            longer = dev.value[STAT_DEVICE_DURATION_PS] - (uint64_t)ev[i].duration_ps;
        }
        if (!device_pen_add(&r->pen, &r->out, shift, longer))
            return XP_BUSY;
    }
    return XP_OK;
}

static const struct xspace_sink sink = {.on_events = on_events};

static enum xp_status decode_line(struct device_read *r, const struct part *p,
                                  const struct part_line *line, struct xp_error *err)
{
    uint64_t at = line->at, end = line->at + line->len;
    xspace_decoder_init(&r->dec, &sink, r, XSPACE_AT_LINE, line->at, line->len);
    while (at < end) {
        size_t got;
        at += xspace_decoder_hop(&r->dec);
        if (at >= end)
            break;
        XP_TRY(xp_reader_read(p->reader, at, r->buf, end - at < READ ? (size_t)(end - at) : READ,
                              &got, err));
        if (!got && p->partial)
            return XP_OK; /* the load came as far */
        if (!got)
            return xp_fail(err, XP_STALE, at, "the profile became shorter while it was read");
        enum xp_status st = xspace_decoder_push(&r->dec, xp_span_of(r->buf, got), err);
        if (st != XP_OK)
            return st == XP_CORRUPT ? XP_OK : st;
        at += got;
    }
    return XP_OK;
}

static enum xp_status read_line(struct device_read *r, const struct part *p, struct part_line *line,
                                struct xp_error *err)
{
    r->own_shift = (uint64_t)line->timestamp_ns * 1000;
    device_pen_reset(&r->pen);
    enum xp_status st = decode_line(r, p, line, err);
    if (st == XP_OK && !device_pen_end(&r->pen, &r->out, &line->device))
        st = XP_BUSY;
    return st;
}

/* --- all lines --- */

static bool plane_has_times(struct device_read *r, const struct part_plane *pl)
{
    bool any = false;
    r->pl = pl;
    memset(r->kinds, STAT_NOT_KEPT, KINDS);
    for (uint32_t i = 0; i < pl->nstatmeta; i++) {
        const struct part_statmeta *m = &pl->statmeta[i];
        if (m->id >= 0 && m->id < KINDS)
            r->kinds[m->id] = m->kind;
        any |= m->kind <= STAT_DEVICE_DURATION_PS;
    }
    return any;
}

static enum xp_status read_all(struct part *p, struct xp_error *err)
{
    struct device_read *r = malloc(sizeof *r);
    enum xp_status st = XP_OK;
    if (r && !(r->kinds = malloc(KINDS))) {
        free(r);
        r = NULL;
    }
    if (!r)
        return XP_BUSY;
    xp_bump_init(&r->out, p->arena);
    for (uint32_t i = 0; st == XP_OK && i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        bool has = plane_has_times(r, pl);
        for (uint32_t k = 0; has && st == XP_OK && k < pl->nlines; k++) {
            struct part_line *line = &p->lines[pl->first_line + k];
            if (line->nevents && device_time_wanted(part_str(p, line->name)))
                st = read_line(r, p, line, err);
        }
    }
    free(r->kinds);
    free(r);
    return st;
}

enum xp_status device_times_get(struct part *p, struct xp_error *err)
{
    enum xp_status st = XP_OK;
    if (!p->device_later || atomic_load_explicit(&p->device_known, memory_order_acquire))
        return XP_OK;
    pthread_mutex_lock(&p->device_lock);
    if (!atomic_load_explicit(&p->device_known, memory_order_relaxed)) {
        st = read_all(p, err);
        if (st == XP_BUSY)
            st = xp_fail(err, XP_BUSY, 0, "no memory left for the ops' times on the device");
        if (st == XP_OK)
            atomic_store_explicit(&p->device_known, true, memory_order_release);
    }
    pthread_mutex_unlock(&p->device_lock);
    return st;
}
