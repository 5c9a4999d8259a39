/* Planes and lines, in the order in which people want to see them. */
#include <stdio.h>
#include <stdlib.h>

#include "shard/query/query_int.h"

static const char *const kind_names[] = {"device", "device", "host", "other"};

struct plane_key {
    struct xp_span name;
    enum query_kind kind;
    uint32_t plane;
    bool ready;
};

static bool digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The run of digits at s[*i] without leading zeros; *i moves behind it. */
static struct xp_span number_at(struct xp_span s, size_t *i)
{
    while (*i + 1 < s.n && s.p[*i] == '0' && digit(s.p[*i + 1]))
        ++*i;
    size_t from = *i;
    while (*i < s.n && digit(s.p[*i]))
        ++*i;
    return xp_span_of(s.p + from, *i - from);
}

/* Byte order, but runs of digits by their value: TPU:2 before TPU:10. */
static int natural_cmp(struct xp_span a, struct xp_span b)
{
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n) {
        if (digit(a.p[i]) && digit(b.p[k])) {
            struct xp_span x = number_at(a, &i), y = number_at(b, &k);
            if (x.n != y.n)
                return x.n < y.n ? -1 : 1;
            int c = xp_span_cmp(x, y);
            if (c)
                return c;
        } else if (a.p[i] != b.p[k]) {
            return a.p[i] < b.p[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    return (i < a.n) - (k < b.n);
}

static int by_plane(const void *x, const void *y)
{
    const struct plane_key *a = x, *b = y;
    if (a->ready != b->ready)
        return a->ready ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int c = natural_cmp(a->name, b->name);
    return c ? c : a->plane < b->plane ? -1 : 1;
}

/* Threads by number, as XProf does: the main thread's is the lowest as a rule. */
static int by_line(const void *x, const void *y)
{
    const struct part_line *a = *(const struct part_line *const *)x;
    const struct part_line *b = *(const struct part_line *const *)y;
    int64_t i = a->display_id ? a->display_id : a->id, k = b->display_id ? b->display_id : b->id;
    if (i != k)
        return i < k ? -1 : 1;
    return a < b ? -1 : a > b;
}

static const char *state_name(const struct part_plane *pl)
{
    switch (atomic_load_explicit(&((struct part_plane *)pl)->state, memory_order_acquire)) {
    case PART_WAITING:
        return "waiting";
    case PART_LOADING:
        return "loading";
    case PART_READY:
        return "ready";
    default:
        return "failed";
    }
}

static void named_i64(struct xp_json *j, const char *key, int64_t v)
{
    xp_json_key(j, key);
    xp_json_i64(j, v);
}

static void named_u64(struct xp_json *j, const char *key, uint64_t v)
{
    xp_json_key(j, key);
    xp_json_u64(j, v);
}

static void named_bool(struct xp_json *j, const char *key, bool v)
{
    xp_json_key(j, key);
    xp_json_bool(j, v);
}

static void write_line(const struct part *p, const struct part_line *l, struct xp_json *j)
{
    xp_json_obj(j);
    named_u64(j, "line", (uint64_t)(l - p->lines));
    named_i64(j, "id", l->display_id ? l->display_id : l->id);
    xp_json_key(j, "name");
    xp_json_span(j, part_line_name(p, l));
    named_u64(j, "events", l->nevents);
    named_u64(j, "lanes", l->nlanes);
    named_i64(j, "begin_ps", l->begin_ps);
    named_i64(j, "end_ps", l->end_ps);
    named_bool(j, "derived", l->derived);
    named_u64(j, "odd", l->odd);
    named_u64(j, "overflow", l->overflow);
    xp_json_obj_end(j);
}

static enum xp_status write_lines(const struct part *p, const struct part_plane *pl,
                                  struct xp_json *j, struct out *out, struct xp_error *err)
{
    const struct part_line **sorted = malloc((pl->nlines + 1) * sizeof *sorted);
    if (!sorted)
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort %u lines", pl->nlines);
    for (uint32_t i = 0; i < pl->nlines; i++)
        sorted[i] = &p->lines[pl->first_line + i];
    qsort(sorted, pl->nlines, sizeof *sorted, by_line);
    for (uint32_t i = 0; i < pl->nlines && !out_cancelled(out); i++) {
        write_line(p, sorted[i], j);
        if (i % 64 == 0)
            out_flush(out);
    }
    free(sorted);
    return XP_OK;
}

static enum xp_status write_plane(const struct part *p, const struct plane_key *key,
                                  struct xp_json *j, struct out *out, struct xp_error *err)
{
    const struct part_plane *pl = &p->planes[key->plane];
    xp_json_obj(j);
    named_u64(j, "plane", key->plane);
    xp_json_key(j, "name");
    xp_json_span(j, key->name);
    xp_json_key(j, "state");
    xp_json_str(j, key->ready ? "ready" : state_name(pl));
    named_u64(j, "events", key->ready ? pl->nevents : 0);
    xp_json_key(j, "kind");
    xp_json_str(j, kind_names[key->kind]);
    xp_json_key(j, "lines");
    xp_json_arr(j);
    if (key->ready)
        XP_TRY(write_lines(p, pl, j, out, err));
    xp_json_arr_end(j);
    xp_json_obj_end(j);
    return XP_OK;
}

static void write_damage(const struct part *p, bool known, struct xp_json *j)
{
    xp_json_key(j, "damage");
    if (!known || p->damage.status == XP_OK) {
        xp_json_null(j);
        return;
    }
    xp_json_obj(j);
    named_u64(j, "offset", p->damage.offset);
    xp_json_key(j, "detail");
    xp_json_str(j, p->damage.text);
    xp_json_obj_end(j);
}

static void write_head(const struct part *p, const struct query_progress *pr,
                       const struct plane_key *planes, struct xp_json *j)
{
    struct query_span span;
    uint64_t events = 0;
    char wall[24];

    query_times(p, 0, 0, &span, NULL);
    for (uint32_t i = 0; i < p->nplanes; i++)
        events += planes[i].ready ? p->planes[planes[i].plane].nevents : 0;
    named_i64(j, "begin_ps", span.t0_ps);
    named_i64(j, "end_ps", span.t1_ps - 1);
    named_u64(j, "events", events);
    xp_json_key(j, "start_wall_ns");
    if (p->start_wall_ns) {
        snprintf(wall, sizeof wall, "%lld", (long long)p->start_wall_ns);
        xp_json_str(j, wall);
    } else {
        xp_json_null(j);
    }
    named_bool(j, "loading", pr->loading);
    named_u64(j, "bytes_done", pr->bytes_done);
    named_u64(j, "bytes_total", pr->bytes_total);
    named_u64(j, "planes_done", pr->planes_done);
    named_u64(j, "planes_total", pr->planes_total);
    named_bool(j, "partial", pr->partial);
    write_damage(p, pr->partial, j);
}

enum xp_status query_tracks(const struct part *p, struct out *out, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    struct xp_json j;
    struct query_progress pr;
    struct plane_key *keys = malloc((p->nplanes + 1) * sizeof *keys);
    if (!keys)
        return xp_fail(err, XP_BUSY, 0, "no memory left to sort %u planes", p->nplanes);
    query_progress(p, &pr); /* first: see query_int.h */
    for (uint32_t i = 0; i < p->nplanes; i++) {
        keys[i] = (struct plane_key){.plane = i, .kind = QUERY_OTHER};
        keys[i].ready = plane_ready(&p->planes[i]);
        if (keys[i].ready) {
            keys[i].name = part_str(p, p->planes[i].name);
            keys[i].kind = query_plane_kind(keys[i].name);
        }
    }
    qsort(keys, p->nplanes, sizeof *keys, by_plane);
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    write_head(p, &pr, keys, &j);
    xp_json_key(&j, "planes");
    xp_json_arr(&j);
    for (uint32_t i = 0; i < p->nplanes && status == XP_OK; i++) {
        status = write_plane(p, &keys[i], &j, out, err);
        if (out_cancelled(out))
            status = xp_fail(err, XP_CANCELLED, 0, "the list of tracks is not wanted any more");
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    free(keys);
    return status;
}
