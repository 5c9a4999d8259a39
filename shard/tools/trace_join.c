#include <stdlib.h>

#include "shard/tools/trace.h"

/* A trace of several hosts is what each of them adds, in the order of the request, between what is
 * said once. Each is looked at alone, where it is, and ends as a record: its tracks as text, its
 * events as text that is compressed already, and its strings. Joined, records lie one behind the
 * other and strings are kept once; the answer is put together without looking at events again.
 *
 *     partial   head, strings, records
 *     strings   a length of 4 bytes and the bytes, each; gzip when they are many
 *     record    record, ids (its strings), refs, devices, body */

#define PACK_AT ((uint64_t)16 << 10)
#define HOSTS_MAX (1u << 20)
#define STRINGS_MAX ((uint64_t)512 << 20)

struct head {
    uint64_t strings_n, plain_n; /* bytes as they are here; as they were */
    uint32_t nstrings, nrecords;
};

struct record {
    uint64_t size; /* with all that follows */
    uint32_t index, nids, nfirst, nrefs;
    uint32_t crc, flags;
    int64_t begin_ps, end_ps;
    uint64_t shown, ncounters, devices_n, text_n, body_n;
};

enum { FOUND = 1, TPU = 2, ANY = 4, DEFLATED = 8 };

struct one {
    struct record r;
    struct xp_span ids, refs, devices, body;
};

struct partial {
    struct head head;
    struct xp_span *strings;
    struct xp_span records;
};

/* --- reading --- */

static bool take(struct xp_span *from, uint64_t n, struct xp_span *to)
{
    if (n > from->n)
        return false;
    *to = xp_span_of(from->p, (size_t)n);
    *from = xp_span_of(from->p + n, from->n - (size_t)n);
    return true;
}

static bool take_struct(struct xp_span *from, void *to, size_t n)
{
    struct xp_span s;
    if (!take(from, n, &s))
        return false;
    memcpy(to, s.p, n);
    return true;
}

static uint32_t u32_at(struct xp_span s, size_t i)
{
    uint32_t v;
    memcpy(&v, s.p + i * sizeof v, sizeof v);
    return v;
}

static bool inflate(struct xp_span packed, uint8_t *to, size_t n)
{
    struct xp_gunzip *g = xp_gunzip_new(packed);
    size_t got = 0;
    bool ok = xp_gunzip_read(g, to, n, &got) == XP_OK && got == n;
    xp_gunzip_free(g);
    return ok;
}

static enum xp_status broken(struct xp_error *err)
{
    return xp_fail(err, XP_INTERNAL, 0, "what a shard says of its hosts' traces is no such thing");
}

static enum xp_status open_strings(struct partial *p, struct xp_span bytes, struct xp_arena *a,
                                   struct xp_error *err)
{
    const struct head *h = &p->head;
    if (h->plain_n > STRINGS_MAX || h->nstrings > h->plain_n / 4)
        return broken(err);
    p->strings = xp_arena_alloc(a, ((size_t)h->nstrings + 1) * sizeof *p->strings);
    uint8_t *plain = bytes.n == h->plain_n ? NULL : xp_arena_alloc(a, (size_t)h->plain_n + 1);
    if (!p->strings || (bytes.n != h->plain_n && !plain))
        return trace_busy(err);
    if (plain) {
        if (!inflate(bytes, plain, (size_t)h->plain_n))
            return broken(err);
        bytes = xp_span_of(plain, (size_t)h->plain_n);
    }
    for (uint32_t i = 0; i < h->nstrings; i++) {
        uint32_t n;
        if (!take_struct(&bytes, &n, sizeof n) || !take(&bytes, n, &p->strings[i]))
            return broken(err);
    }
    return XP_OK;
}

static enum xp_status open_partial(struct partial *p, struct xp_span s, struct xp_arena *a,
                                   struct xp_error *err)
{
    struct xp_span strings;
    if (!take_struct(&s, &p->head, sizeof p->head) || !take(&s, p->head.strings_n, &strings) ||
        p->head.nrecords > HOSTS_MAX)
        return broken(err);
    p->records = s;
    return open_strings(p, strings, a, err);
}

static bool next_record(struct xp_span *records, const struct partial *p, struct one *one)
{
    struct xp_span s, rest;
    if (records->n < sizeof one->r)
        return false;
    memcpy(&one->r, records->p, sizeof one->r);
    if (!take(records, one->r.size, &s) || !take(&s, sizeof one->r, &rest))
        return false;
    bool ok = take(&s, (uint64_t)one->r.nids * sizeof(uint32_t), &one->ids) &&
              take(&s, (uint64_t)one->r.nrefs * sizeof(struct trace_ref), &one->refs) &&
              take(&s, one->r.devices_n, &one->devices) && take(&s, one->r.body_n, &one->body) &&
              s.n == 0 && one->r.nfirst <= one->r.nids;
    for (size_t i = 0; ok && i < one->r.nids; i++)
        ok = u32_at(one->ids, i) < p->head.nstrings;
    return ok;
}

/* --- writing --- */

static uint64_t strings_size(const struct xp_strpool *pool)
{
    uint64_t n = 0;
    for (uint32_t i = 1; i < pool->n; i++)
        n += sizeof(uint32_t) + xp_strpool_get(pool, i).n;
    return n;
}

static void put_strings(struct xp_buf *b, const struct xp_strpool *pool)
{
    for (uint32_t i = 1; i < pool->n; i++) {
        struct xp_span s = xp_strpool_get(pool, i);
        uint32_t n = (uint32_t)s.n;
        xp_buf_add(b, &n, sizeof n);
        xp_buf_span(b, s);
    }
}

/* Those of a host on their way to another process: many, and much alike. */
static void pack(struct xp_buf *strings)
{
    struct xp_buf packed;
    xp_buf_init(&packed, OUT_MAX);
    struct xp_gzip *g = xp_gzip_new(&packed);
    xp_gzip_add(g, xp_buf_all(strings));
    xp_gzip_end(g);
    if (packed.failed || packed.n >= strings->n) {
        xp_buf_fini(&packed);
        return;
    }
    xp_buf_fini(strings);
    *strings = packed;
}

static enum xp_status into_arena(const struct xp_buf *b, struct xp_arena *a, struct xp_span *out,
                                 struct xp_error *err)
{
    uint8_t *p = b->failed ? NULL : xp_arena_alloc(a, b->n);
    if (!p)
        return trace_busy(err);
    memcpy(p, b->p, b->n);
    *out = xp_span_of(p, b->n);
    return XP_OK;
}

/* --- map --- */

static void put_record(struct xp_buf *b, const struct trace *t, uint32_t index,
                       const struct trace_piece *p)
{
    struct record r = {.index = index};
    struct xp_span body = xp_buf_all(&t->out->text);
    if (t->nhosts) {
        struct trace_sum sum = trace_sum_of(&t->hosts[0]);
        r.flags = FOUND | (sum.tpu ? TPU : 0) | (sum.any ? ANY : 0);
        r.begin_ps = sum.begin_ps;
        r.end_ps = sum.end_ps;
        r.shown = sum.shown;
        r.ncounters = p->ncounters;
        r.nids = p->strings.n ? p->strings.n - 1 : 0;
        r.nfirst = p->nfirst ? p->nfirst - 1 : 0;
        r.nrefs = (uint32_t)p->refs.n;
        r.devices_n = p->devices.n;
        r.text_n = body.n;
    }
    if (t->out->gz) {
        struct xp_gzip_part part = xp_gzip_part(out_gzip(t->out));
        body = part.blocks;
        r.text_n = part.n;
        r.crc = part.crc;
        r.flags |= DEFLATED;
    }
    r.body_n = body.n;
    r.size = sizeof r + r.nids * sizeof(uint32_t) + r.nrefs * sizeof(struct trace_ref) +
             r.devices_n + r.body_n;
    xp_buf_add(b, &r, sizeof r);
    for (uint32_t i = 0; i < r.nids; i++)
        xp_buf_add(b, &i, sizeof i);
    xp_buf_add(b, p->refs.p, r.nrefs * sizeof(struct trace_ref));
    xp_buf_span(b, xp_buf_all(&p->devices));
    xp_buf_span(b, body);
}

static enum xp_status write_partial(struct trace *t, uint32_t index, const struct trace_piece *p,
                                    struct xp_span *partial)
{
    struct head h = {.nstrings = p->strings.n ? p->strings.n - 1 : 0, .nrecords = 1};
    struct xp_buf strings, all;
    xp_buf_init(&strings, STRINGS_MAX);
    xp_buf_init(&all, OUT_MAX);
    put_strings(&strings, &p->strings);
    h.plain_n = strings.n;
    if (strings.n >= PACK_AT && !strings.failed)
        pack(&strings);
    h.strings_n = strings.n;
    xp_buf_add(&all, &h, sizeof h);
    xp_buf_span(&all, xp_buf_all(&strings));
    put_record(&all, t, index, p);
    all.failed |= strings.failed || t->out->text.failed || t->out->body.failed || p->devices.failed;
    bool large = all.failed;
    enum xp_status st = large ? xp_fail(t->err, XP_TOO_LARGE, 0,
                                        "a host's part of the trace is "
                                        "larger than %zu MiB",
                                        OUT_MAX >> 20)
                              : into_arena(&all, t->scratch, partial, t->err);
    xp_buf_fini(&strings);
    xp_buf_fini(&all);
    return st;
}

enum xp_status trace_join_map(struct trace *t, uint32_t index, struct xp_span *partial)
{
    struct trace_piece p = {0};
    xp_buf_init(&p.devices, OUT_MAX);
    enum xp_status st = XP_OK;
    if (t->nhosts)
        st = trace_is_pb(t) ? trace_pb_piece(t, &p) : trace_json_piece(t, &p);
    if (st == XP_OK)
        st = write_partial(t, index, &p, partial);
    xp_buf_fini(&p.devices);
    vec_free(&p.refs);
    return st;
}

/* --- merge --- */

/* What the strings of a partial are called in the pool. */
static uint32_t *rename(const struct partial *p, struct xp_strpool *pool, struct xp_arena *a)
{
    uint32_t *ids = xp_arena_alloc(a, ((size_t)p->head.nstrings + 1) * sizeof *ids);
    for (uint32_t i = 0; ids && i < p->head.nstrings; i++)
        if ((ids[i] = xp_strpool_add(pool, p->strings[i])) == XP_STRPOOL_FULL)
            return NULL;
    return ids;
}

/* Appends the records, their strings renamed. */
static bool put_records(uint8_t **at, const struct partial *p, const uint32_t *ids)
{
    struct xp_span records = p->records;
    uint8_t *to = *at;
    struct one one;
    memcpy(to, records.p, records.n);
    for (uint32_t n = 0; n < p->head.nrecords; n++) {
        if (!next_record(&records, p, &one))
            return false;
        uint8_t *id = to + (one.ids.p - p->records.p);
        for (uint32_t i = 0; i < one.r.nids; i++) {
            uint32_t v = ids[u32_at(one.ids, i)] - 1; /* 0 is "", which nobody has */
            memcpy(id + i * sizeof v, &v, sizeof v);
        }
    }
    *at = to + p->records.n;
    return records.n == 0;
}

static enum xp_status join(const struct partial *p, struct xp_arena *a, struct xp_span *both,
                           struct xp_error *err)
{
    struct xp_strpool pool;
    struct xp_buf strings;
    if (!xp_strpool_init(&pool, a))
        return trace_busy(err);
    uint32_t *x = rename(&p[0], &pool, a), *y = rename(&p[1], &pool, a);
    if (!x || !y)
        return trace_busy(err);
    struct head h = {.nstrings = pool.n - 1, .nrecords = p[0].head.nrecords + p[1].head.nrecords};
    h.strings_n = h.plain_n = strings_size(&pool);
    size_t n = sizeof h + (size_t)h.strings_n + p[0].records.n + p[1].records.n;
    uint8_t *all = xp_arena_alloc(a, n), *at = all;
    if (!all)
        return trace_busy(err);
    memcpy(at, &h, sizeof h);
    xp_buf_init(&strings, STRINGS_MAX);
    put_strings(&strings, &pool);
    bool ok = !strings.failed;
    if (ok && strings.n)
        memcpy(at + sizeof h, strings.p, strings.n);
    xp_buf_fini(&strings);
    at += sizeof h + h.strings_n;
    if (!ok || !put_records(&at, &p[0], x) || !put_records(&at, &p[1], y))
        return broken(err);
    *both = xp_span_of(all, n);
    return XP_OK;
}

enum xp_status trace_join_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                struct xp_span *both, struct xp_error *err)
{
    struct partial p[2];
    if (!x.n || !y.n) {
        *both = x.n ? x : y;
        return XP_OK;
    }
    XP_TRY(open_partial(&p[0], x, a, err));
    XP_TRY(open_partial(&p[1], y, a, err));
    return join(p, a, both, err);
}

/* --- render --- */

static int order(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    return (x->r.index > y->r.index) - (x->r.index < y->r.index);
}

/* Those hosts that have what was asked for, in the order of the request. */
static enum xp_status open_records(const struct partial *p, struct xp_arena *a, struct one **out,
                                   size_t *n, struct xp_error *err)
{
    struct xp_span records = p->records;
    struct one *v = xp_arena_alloc(a, ((size_t)p->head.nrecords + 1) * sizeof *v);
    if (!v)
        return trace_busy(err);
    *n = 0;
    for (uint32_t i = 0; i < p->head.nrecords; i++) {
        if (!next_record(&records, p, &v[*n]))
            return broken(err);
        *n += (v[*n].r.flags & FOUND) != 0;
    }
    qsort(v, *n, sizeof *v, order);
    *out = v;
    return XP_OK;
}

struct rendering {
    struct trace *t;
    struct partial p;
    struct one *v;
    size_t n;
    uint32_t *ids; /* of the partial's strings, in the pool */
    struct xp_strpool pool;
    struct trace_sum sum;
};

/* In the order in which one who looks at all hosts at once would come upon them. */
static bool number_strings(struct rendering *r, bool first)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct record *rec = &r->v[i].r;
        for (uint32_t k = first ? 0 : rec->nfirst; k < (first ? rec->nfirst : rec->nids); k++) {
            uint32_t id = u32_at(r->v[i].ids, k);
            r->ids[id] = xp_strpool_add(&r->pool, r->p.strings[id]);
            if (r->ids[id] == XP_STRPOOL_FULL)
                return false;
        }
    }
    return true;
}

static void sum_up(struct rendering *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct record *rec = &r->v[i].r;
        trace_sum_add(&r->sum, (struct trace_sum){rec->begin_ps, rec->end_ps, rec->shown,
                                                  rec->flags & TPU, rec->flags & ANY});
    }
}

/* The events' text with the numbers that frames got. */
static bool put_with_frames(struct rendering *r, const struct one *one)
{
    struct xp_buf *b = &r->t->out->text;
    size_t at = 0;
    for (uint32_t i = 0; i < one->r.nrefs; i++) {
        struct trace_ref ref;
        memcpy(&ref, one->refs.p + i * sizeof ref, sizeof ref);
        if (ref.at < at || ref.at > one->body.n || !ref.frame || ref.frame > one->r.nids)
            return false;
        xp_buf_add(b, one->body.p + at, (size_t)ref.at - at);
        xp_buf_fmt(b, "%u", r->ids[u32_at(one->ids, ref.frame - 1)]);
        at = (size_t)ref.at;
        out_flush(r->t->out);
    }
    xp_buf_add(b, one->body.p + at, one->body.n - at);
    return true;
}

static bool put_events(struct rendering *r, const struct one *one, bool *comma)
{
    struct out *out = r->t->out;
    if (!one->r.text_n)
        return true;
    if (*comma)
        xp_buf_byte(&out->text, ',');
    *comma = true;
    if (one->r.flags & DEFLATED) {
        struct xp_gzip_part part = {one->body, one->r.text_n, one->r.crc};
        xp_gzip_join(out_gzip(out), &part);
        return one->r.nrefs == 0;
    }
    bool ok = put_with_frames(r, one);
    out_flush(out);
    return ok;
}

static enum xp_status render_json(struct rendering *r)
{
    struct xp_buf *b = &r->t->out->text;
    uint64_t ncounters = 0;
    bool comma = false, ok = true;
    trace_json_head(b, &r->sum, r->t->req.full_dma);
    trace_json_frames(r->t->out, &r->pool);
    for (size_t i = 0; i < r->n; i++) {
        if (comma && r->v[i].devices.n)
            xp_buf_byte(b, ',');
        comma |= r->v[i].devices.n > 0;
        xp_buf_span(b, r->v[i].devices);
        out_flush(r->t->out);
    }
    for (size_t i = 0; ok && i < r->n; i++) {
        ok = put_events(r, &r->v[i], &comma);
        ncounters += r->v[i].r.ncounters;
    }
    trace_json_end(b, ncounters);
    return ok ? XP_OK : broken(r->t->err);
}

static enum xp_status render_pb(struct rendering *r)
{
    struct trace_pb_host *hosts = xp_arena_alloc(r->t->scratch, (r->n + 1) * sizeof *hosts);
    if (!hosts)
        return trace_busy(r->t->err);
    for (size_t i = 0; i < r->n; i++)
        hosts[i] = (struct trace_pb_host){r->v[i].devices, r->v[i].body, r->v[i].ids, r->ids};
    return trace_pb_join(r->t, &r->sum, hosts, r->n, &r->pool);
}

enum xp_status trace_join_render(struct trace *t, struct xp_span merged)
{
    struct rendering r = {.t = t};
    XP_TRY(open_partial(&r.p, merged, t->scratch, t->err));
    XP_TRY(open_records(&r.p, t->scratch, &r.v, &r.n, t->err));
    if (!r.n)
        return xp_fail(t->err, XP_NOT_FOUND, 0, "no such event");
    r.ids = xp_arena_zalloc(t->scratch, ((size_t)r.p.head.nstrings + 1) * sizeof *r.ids);
    if (!r.ids || !xp_strpool_init(&r.pool, t->scratch) || !number_strings(&r, true) ||
        !number_strings(&r, false))
        return trace_busy(t->err);
    sum_up(&r);
    return trace_is_pb(t) ? render_pb(&r) : render_json(&r);
}
