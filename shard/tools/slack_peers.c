#include "shard/tools/slack_peers.h"

#include <stdlib.h>

enum { LABEL, FROM_SLICE, FROM_DEVICE, TO_SLICE, TO_DEVICE, BYTES, DURATION, NAMES };
static const char *const names[NAMES] = {"dcn_label",
                                         "dcn_source_slice_id",
                                         "dcn_source_per_slice_device_id",
                                         "dcn_destination_slice_id",
                                         "dcn_destination_per_slice_device_id",
                                         "payload_size_bytes",
                                         "duration_us"};

struct message {
    uint32_t peer; /* place in peers */
    uint64_t us;
};

struct reader {
    struct slack_peers *p;
    struct slack *s;
    const struct tool_host *host;
    const struct part_plane *plane;
    struct vec messages; /* struct message */
    struct idmap by_key;
    struct xp_strpool keys;
    size_t first; /* of this host's peers */
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the messages between slices");
}

void slack_peers_free(struct slack_peers *p)
{
    vec_free(&p->peers);
}

/* --- one message --- */

/* A number of either kind that is none below 0. */
static bool whole(const struct value *v, int64_t *to)
{
    *to = (int64_t)v->num;
    return (v->type == VALUE_I64 || v->type == VALUE_U64) && *to >= 0;
}

static struct xp_span collective_of(struct xp_span label)
{
    const uint8_t *end = label.n ? memchr(label.p, '_', label.n) : NULL;
    return end ? xp_span_of(label.p, (size_t)(end - label.p)) : label;
}

/* NULL: memory is out. */
static struct slack_peer *peer_of(struct reader *r, uint32_t collective, const int64_t *ends,
                                  uint32_t *at)
{
    struct {
        int64_t ends[4];
        uint64_t collective;
    } key = {{ends[0], ends[1], ends[2], ends[3]}, collective};
    uint32_t n = r->keys.n;
    uint32_t id = xp_strpool_add(&r->keys, xp_span_of((const uint8_t *)&key, sizeof key));
    if (id == XP_STRPOOL_FULL)
        return NULL;
    if (id != n && idmap_get(&r->by_key, id, at))
        return &VEC(r->p->peers, struct slack_peer)[r->first + *at];
    *at = (uint32_t)(r->p->peers.n - r->first);
    struct slack_peer *to = vec_push(&r->p->peers, sizeof *to);
    if (!to || !idmap_put(&r->by_key, id, *at))
        return NULL;
    *to = (struct slack_peer){.collective = collective,
                              .host = r->host->index,
                              .from = {ends[0], ends[1]},
                              .to = {ends[2], ends[3]}};
    return to;
}

static bool add_message(struct reader *r, const struct value v[NAMES], int64_t begin_ps)
{
    int64_t ends[4], bytes, us, longest_ps;
    bool known = v[LABEL].type == VALUE_TEXT && v[LABEL].text.n && whole(&v[BYTES], &bytes) &&
                 whole(&v[DURATION], &us) && us > 0 &&
                 !__builtin_mul_overflow(us, INT64_C(1000000), &longest_ps) &&
                 !__builtin_sub_overflow(begin_ps, longest_ps, &longest_ps);
    for (int i = 0; i < 4 && known; i++)
        known = whole(&v[FROM_SLICE + i], &ends[i]);
    if (!known) {
        r->p->unknown++;
        return true;
    }
    uint32_t id = xp_strpool_add(&r->s->strings, collective_of(v[LABEL].text)), at;
    struct slack_peer *p = id == XP_STRPOOL_FULL ? NULL : peer_of(r, id, ends, &at);
    struct message *m = p ? vec_push(&r->messages, sizeof *m) : NULL;
    if (!m)
        return false;
    *m = (struct message){at, (uint64_t)us};
    p->messages++;
    p->bytes += (uint64_t)bytes;
    p->total_us += (uint64_t)us;
    if ((uint64_t)us > p->longest_us) {
        p->longest_us = (uint64_t)us;
        p->longest_begin_ps = longest_ps;
    }
    return true;
}

static enum xp_status read_line(struct reader *r, struct values_eye *eye,
                                const struct part_line *line, const bool *wanted,
                                struct xp_error *err)
{
    struct lane_event *events;
    size_t n;
    XP_TRY(profile_events_named(line, wanted, r->plane->nevmeta, r->s->a, &events, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct value v, seen[NAMES] = {{0}};
        if (r->messages.n >= SLACK_MESSAGES) {
            r->p->left += n - i;
            break;
        }
        XP_TRY(values_of_event(eye, events[i].at, err));
        while (values_next(eye, &v))
            if (!seen[v.which].type)
                seen[v.which] = v;
        if (!add_message(r, seen, line->base_ps + events[i].begin_ps))
            return no_memory(err);
    }
    return XP_OK;
}

/* --- a host --- */

static int message_order(const void *a, const void *b)
{
    const struct message *x = a, *y = b;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

static uint64_t at_percent(const struct message *m, size_t n, size_t percent)
{
    size_t k = (n * percent + 99) / 100;
    return m[k ? k - 1 : 0].us;
}

static void find_percentiles(struct reader *r)
{
    struct message *m = r->messages.p;
    if (r->messages.n)
        qsort(m, r->messages.n, sizeof *m, message_order);
    for (size_t i = 0, k; i < r->messages.n; i = k) {
        for (k = i; k < r->messages.n && m[k].peer == m[i].peer; k++)
            ;
        struct slack_peer *p = &VEC(r->p->peers, struct slack_peer)[r->first + m[i].peer];
        p->p50_us = at_percent(m + i, k - i, 50);
        p->p99_us = at_percent(m + i, k - i, 99);
    }
}

static bool is_receive(struct xp_span name)
{
    return xp_span_starts(name, XP_SPAN_LIT("MegaScale:")) &&
           xp_span_has(name, XP_SPAN_LIT("Receive"));
}

static enum xp_status read_lines(struct reader *r, struct xp_error *err)
{
    const struct part *part = r->host->part;
    bool *wanted = xp_arena_zalloc(r->s->a, (size_t)r->plane->nevmeta + 1), any = false;
    struct values_eye eye;
    if (!wanted || !xp_strpool_init(&r->keys, r->s->a))
        return no_memory(err);
    for (uint32_t i = 0; i < r->plane->nevmeta; i++)
        any |= wanted[i] = is_receive(part_str(part, r->plane->evmeta[i].name));
    if (!any)
        return XP_OK;
    values_open(&eye, part, r->plane, names, NAMES, r->s->a);
    for (uint32_t i = r->plane->first_line; i < r->plane->first_line + r->plane->nlines; i++)
        if (!part->lines[i].derived)
            XP_TRY(read_line(r, &eye, &part->lines[i], wanted, err));
    find_percentiles(r);
    return XP_OK;
}

enum xp_status slack_peers_read(struct slack_peers *p, struct slack *s,
                                const struct tool_host *host, struct xp_error *err)
{
    struct reader r = {.p = p, .s = s, .host = host, .first = p->peers.n};
    r.plane = profile_plane(host->part, "/host:CPU");
    if (!r.plane)
        return XP_OK;
    idmap_init(&r.by_key, s->a);
    enum xp_status st = read_lines(&r, err);
    vec_free(&r.messages);
    return st;
}

/* --- facts --- */

static void put_peer(struct facts_out *f, const struct slack *s, const struct slack_peer *p)
{
    facts_text(f, xp_strpool_get(&s->strings, p->collective));
    for (int i = 0; i < 2; i++) {
        facts_i64(f, p->from[i]);
        facts_i64(f, p->to[i]);
    }
    facts_u64(f, p->messages);
    facts_u64(f, p->bytes);
    facts_u64(f, p->total_us);
    facts_u64(f, p->p50_us);
    facts_u64(f, p->p99_us);
    facts_u64(f, p->longest_us);
    facts_i64(f, p->longest_begin_ps);
}

void slack_peers_put(struct facts_out *f, const struct slack *s, const struct slack_peers *p)
{
    facts_u64(f, s->samples.n);
    for (size_t i = 0; i < s->samples.n; i++) {
        const struct slack_sample *m = &VEC(s->samples, struct slack_sample)[i];
        facts_text(f, xp_strpool_get(&s->strings, m->rendezvous));
        facts_i64(f, m->begin_ps);
        facts_u64(f, m->observed_ps);
        facts_u64(f, m->done_ps);
        facts_u64(f, m->slowest);
    }
    facts_u64(f, p->unknown);
    facts_u64(f, p->left);
    facts_u64(f, p->peers.n);
    for (size_t i = 0; i < p->peers.n; i++)
        put_peer(f, s, &VEC(p->peers, struct slack_peer)[i]);
}

static bool get_sample(struct slack *s, struct facts *f)
{
    struct slack_sample *m = vec_push(&s->samples, sizeof *m);
    if (!m)
        return false;
    *m = (struct slack_sample){.host = f->index};
    m->rendezvous = xp_strpool_add(&s->strings, facts_get_text(f));
    m->begin_ps = facts_get_i64(f);
    m->observed_ps = facts_get_u64(f);
    m->done_ps = facts_get_u64(f);
    m->slowest = facts_get_u64(f) != 0;
    return m->rendezvous != XP_STRPOOL_FULL;
}

static bool get_peer(struct slack_peers *p, struct slack *s, struct facts *f)
{
    struct slack_peer *to = vec_push(&p->peers, sizeof *to);
    if (!to)
        return false;
    *to = (struct slack_peer){.host = f->index};
    to->collective = xp_strpool_add(&s->strings, facts_get_text(f));
    for (int i = 0; i < 2; i++) {
        to->from[i] = facts_get_i64(f);
        to->to[i] = facts_get_i64(f);
    }
    to->messages = facts_get_u64(f);
    to->bytes = facts_get_u64(f);
    to->total_us = facts_get_u64(f);
    to->p50_us = facts_get_u64(f);
    to->p99_us = facts_get_u64(f);
    to->longest_us = facts_get_u64(f);
    to->longest_begin_ps = facts_get_i64(f);
    return to->collective != XP_STRPOOL_FULL;
}

enum xp_status slack_peers_get(struct slack_peers *p, struct slack *s, struct facts *f,
                               struct xp_error *err)
{
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_sample(s, f))
            return no_memory(err);
    p->unknown += facts_get_u64(f);
    p->left += facts_get_u64(f);
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_peer(p, s, f))
            return no_memory(err);
    return facts_ok(f, err);
}
