#include "shard/store/part.h"

#include "lib/base/pb_wire.h"

/* What an event or the metadata of one may be to be read whole: an HLO module of a large
 * program is some 100 MB. */
#define BODY_MAX ((uint64_t)512 << 20)

void part_free(struct part *p)
{
    if (!p)
        return;
    if (p->derived_free)
        p->derived_free(p->derived);
    xp_reader_close(p->reader);
    pthread_mutex_destroy(&p->strings_lock);
    pthread_mutex_destroy(&p->device_lock);
    xp_arena_free(p->arena); /* p lives there itself */
}

uint32_t part_intern(struct part *p, struct xp_span s)
{
    pthread_mutex_lock(&p->strings_lock);
    uint32_t id = xp_strpool_add(&p->strings, s);
    pthread_mutex_unlock(&p->strings_lock);
    return id;
}

struct xp_span part_str(const struct part *p, uint32_t id)
{
    return xp_strpool_get(&p->strings, id);
}

struct xp_span part_event_name(const struct part *p, const struct part_plane *pl, uint32_t name)
{
    if (name >= pl->nevmeta)
        return (struct xp_span){0};
    const struct part_evmeta *m = &pl->evmeta[name];
    return part_str(p, m->display_name ? m->display_name : m->name);
}

struct xp_span part_line_name(const struct part *p, const struct part_line *l)
{
    return part_str(p, l->display_name ? l->display_name : l->name);
}

const struct part_line *part_line_at(const struct part *p, uint64_t at)
{
    uint32_t lo = 0, hi = p->nlines;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->lines[mid].at <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    const struct part_line *l = &p->lines[lo - 1];
    return at - l->at < l->len ? l : NULL;
}

/* --- lanes merged --- */

static void sift_down(struct line_cursor *c, uint32_t i)
{
    uint32_t top = c->heap[i];
    for (uint32_t k; (k = 2 * i + 1) < c->n; i = k) {
        if (k + 1 < c->n && lane_event_before(&c->head[c->heap[k + 1]], &c->head[c->heap[k]]))
            k++;
        if (!lane_event_before(&c->head[c->heap[k]], &c->head[top]))
            break;
        c->heap[i] = c->heap[k];
    }
    c->heap[i] = top;
}

enum xp_status line_seek(struct line_cursor *c, const struct part_line *line, int64_t t_ps,
                         struct xp_arena *a)
{
    *c = (struct line_cursor){.line = line};
    if (!line->nlanes)
        return XP_OK;
    c->cur = xp_arena_alloc(a, line->nlanes * sizeof *c->cur);
    c->head = xp_arena_alloc(a, line->nlanes * sizeof *c->head);
    c->heap = xp_arena_alloc(a, line->nlanes * sizeof *c->heap);
    if (!c->cur || !c->head || !c->heap)
        return XP_BUSY;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        lane_seek(&c->cur[i], line->lanes[i], t_ps);
        if (lane_next(&c->cur[i], &c->head[i]))
            c->heap[c->n++] = i;
    }
    for (uint32_t i = c->n / 2; i-- > 0;)
        sift_down(c, i);
    return XP_OK;
}

bool line_next(struct line_cursor *c, struct lane_event *ev, uint32_t *lane)
{
    if (!c->n)
        return false;
    uint32_t i = c->heap[0];
    *ev = c->head[i];
    if (lane)
        *lane = i;
    if (!lane_next(&c->cur[i], &c->head[i])) {
        c->heap[0] = c->heap[--c->n];
        if (!c->n)
            return true;
    }
    sift_down(c, 0);
    return true;
}

bool part_carried(const struct part_range *r, uint64_t at)
{
    size_t lo = 0, hi = r->ncarried;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->carried[mid] == at)
            return true;
        if (r->carried[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

/* --- reading what stayed in the file --- */

enum xp_status part_read(const struct part *p, uint64_t at, uint64_t len, uint64_t max,
                         struct xp_arena *a, struct xp_span *out, struct xp_error *err)
{
    if (len > max)
        return xp_fail(err, XP_TOO_LARGE, at,
                       "%llu bytes are more than the %llu that are read whole",
                       (unsigned long long)len, (unsigned long long)max);
    if (at > p->size || len > p->size - at)
        return xp_fail(err, XP_CORRUPT, at, "the profile ends before the %llu bytes expected here",
                       (unsigned long long)len);
    uint8_t *buf = xp_arena_alloc(a, len ? len : 1);
    if (!buf)
        return xp_fail(err, XP_BUSY, at, "no memory left to read %llu bytes",
                       (unsigned long long)len);
    size_t got = 0;
    XP_TRY(xp_reader_read(p->reader, at, buf, len, &got, err));
    if (got < len)
        return xp_fail(err, XP_CORRUPT, at + got,
                       "the profile ends where %llu more bytes were "
                       "expected",
                       (unsigned long long)(len - got));
    *out = xp_span_of(buf, len);
    return XP_OK;
}

/* The length that stands right before a message is found by reading backwards from it: its last
 * byte has no continuation bit, those before it do. The tag in front ends without one too, so
 * that the read is unambiguous for the one-byte tags of XSpace; the line bounds it. */
static enum xp_status length_before(const struct part *p, uint64_t at, uint64_t *len,
                                    struct xp_error *err)
{
    uint8_t win[XP_VARINT_MAX];
    size_t n = at < sizeof win ? (size_t)at : sizeof win, got = 0;
    XP_TRY(xp_reader_read(p->reader, at - n, win, n, &got, err));
    size_t i = n;
    if (got == n && i && win[i - 1] < 0x80) {
        i--;
        while (i && win[i - 1] >= 0x80)
            i--;
        if (xp_varint_read(win + i, win + n, len))
            return XP_OK;
    }
    return xp_fail(err, XP_CORRUPT, at, "no length was found before this message");
}

enum xp_status part_event_body(const struct part *p, uint64_t at, struct xp_arena *a,
                               struct xp_span *out, struct xp_error *err)
{
    const struct part_line *l = part_line_at(p, at);
    if (!l)
        return xp_fail(err, XP_NOT_FOUND, at, "no line holds an event at this offset");
    uint64_t len = 0;
    XP_TRY(length_before(p, at, &len, err));
    if (len > l->at + l->len - at)
        return xp_fail(err, XP_NOT_FOUND, at, "no event begins at this offset");
    return part_read(p, at, len, BODY_MAX, a, out, err);
}

enum xp_status part_evmeta_body(const struct part *p, const struct part_evmeta *m,
                                struct xp_arena *a, struct xp_span *out, struct xp_error *err)
{
    if (!m->at) {
        *out = (struct xp_span){0};
        return XP_OK;
    }
    return part_read(p, m->at, m->len, BODY_MAX, a, out, err);
}

enum xp_status part_plane_stats(const struct part *p, const struct part_plane *pl,
                                struct xp_arena *a, struct xp_span *out, struct xp_error *err)
{
    (void)p, (void)a, (void)err;
    *out = pl->stats;
    return XP_OK;
}

const struct part_statmeta *part_statmeta(const struct part_plane *pl, int64_t id)
{
    uint32_t lo = 0, hi = pl->nstatmeta;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (pl->statmeta[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < pl->nstatmeta && pl->statmeta[lo].id == id ? &pl->statmeta[lo] : NULL;
}

struct xp_span part_stat_name(const struct part *p, const struct part_plane *pl, int64_t id)
{
    const struct part_statmeta *m = part_statmeta(pl, id);
    return m ? part_str(p, m->name) : (struct xp_span){0};
}
