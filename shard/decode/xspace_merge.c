#include "shard/decode/xspace_merge.h"

#include "lib/base/pb_wire.h"
#include "lib/base/strpool.h"

/* Fields by number: XSpace, XPlane, XLine, XEvent, XStat, metadata and entries of maps. */
enum { SPACE_PLANE = 1, SPACE_HOSTNAME = 4 };
enum { PLANE_NAME = 2, PLANE_LINE, PLANE_EVENT_METADATA, PLANE_STAT_METADATA, PLANE_STAT };
enum { LINE_ID = 1, LINE_NAME = 2, LINE_TIMESTAMP = 3, LINE_EVENT = 4, LINE_DURATION = 9 };
enum { EVENT_METADATA_ID = 1, EVENT_OFFSET = 2, EVENT_STAT = 4, EVENT_OCCURRENCES = 5 };
enum { STAT_METADATA_ID = 1, STAT_REF = 7 };
enum { META_ID = 1, META_NAME = 2, META_STAT = 5, META_CHILD = 6 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

#define STEPPED_OVER 15
#define TAG(num) ((uint8_t)((num) << 3 | XP_PB_LEN))
/* A length that is filled in later takes all the bytes that one may have. */
#define HOLE (1 + XP_VARINT_MAX)
#define FLUSH (256u << 10)

/* Ids of one plane's metadata, and what they are called in the joined one. */
struct ids {
    struct xp_strpool from; /* their 8 bytes */
    uint64_t *to;           /* by place in from */
    uint32_t cap;
    bool same; /* none is called otherwise */
};

/* Metadata of the joined plane. */
struct names {
    struct xp_strpool pool; /* what makes one */
    uint64_t *ids;          /* by place in pool */
    uint32_t cap;
    struct xp_strpool used;
    uint64_t next; /* free, as are all above */
};

struct source {
    struct xp_span body;
    struct ids stats, events;
    struct source *next;
};

struct line_part {
    const struct source *source;
    struct xp_span body;
    int64_t timestamp_ns;
    struct line_part *next;
};

struct line {
    struct line_part *first, **end;
    bool dated;                      /* a part has events */
    int64_t timestamp_ns, latest_ns; /* of parts that have, else of the first */
    uint64_t duration_ps;
};

struct plane {
    uint64_t at; /* of its tag */
    struct xp_span body;
    struct plane *next, *more; /* of another name, of the same */
};

struct merging {
    struct xp_arena *scratch;
    struct xp_bump bump;
    const struct xspace_merge_out *out;
    struct xp_error *err;
    uint64_t at; /* where what is in buf goes */
    struct xp_buf buf, one, two;
    struct names stats, events;
    size_t piece_max;
    struct xp_strpool line_ids, plane_stats;
    struct line *lines; /* by place in line_ids */
    uint32_t lines_cap;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory is left to join the records of a profile");
}

static enum xp_status corrupt(struct merging *m)
{
    return xp_fail(m->err, XP_CORRUPT, 0, "records: a plane that is to be joined is damaged");
}

/* --- small things --- */

static struct xp_span id_span(const uint64_t *id)
{
    return xp_span_of(id, sizeof *id);
}

/* An array in the arena that grows by doubling; old copies stay until it dies. */
static bool have_room(struct xp_arena *a, void **p, uint32_t *cap, uint32_t need, size_t each)
{
    if (need <= *cap)
        return true;
    uint32_t n = *cap ? *cap * 2 : 64;
    n = n < need ? need : n;
    void *new = xp_arena_alloc(a, n * each);
    if (!new)
        return false;
    if (*cap)
        memcpy(new, *p, *cap * each);
    *p = new;
    *cap = n;
    return true;
}

static uint64_t number_of(struct xp_span message, uint32_t num)
{
    struct xp_pb r = xp_pb_open(message);
    struct xp_pb_field f;
    uint64_t v = 0;
    while (xp_pb_next(&r, &f))
        if (f.num == num && f.type == XP_PB_VARINT)
            v = f.value;
    return v;
}

static struct xp_span bytes_of(struct xp_span message, uint32_t num)
{
    struct xp_pb r = xp_pb_open(message);
    struct xp_pb_field f;
    struct xp_span s = {0};
    while (xp_pb_next(&r, &f))
        if (f.num == num && f.type == XP_PB_LEN)
            s = f.bytes;
    return s;
}

/* --- ids --- */

static bool ids_init(struct ids *x, struct xp_arena *a)
{
    x->to = NULL;
    x->cap = 0;
    x->same = true;
    return xp_strpool_init(&x->from, a);
}

static bool ids_put(struct merging *m, struct ids *x, uint64_t from, uint64_t to)
{
    uint32_t i = xp_strpool_add(&x->from, id_span(&from));
    if (i == XP_STRPOOL_FULL ||
        !have_room(m->scratch, (void **)&x->to, &x->cap, i + 1, sizeof *x->to))
        return false;
    x->to[i] = to;
    x->same = x->same && from == to;
    return true;
}

/* What nothing is known of stays what it is. */
static uint64_t ids_get(const struct ids *x, uint64_t id)
{
    uint32_t i = x->same ? XP_STRPOOL_FULL : xp_strpool_find(&x->from, id_span(&id));
    return i == XP_STRPOOL_FULL ? id : x->to[i];
}

static bool names_init(struct names *n, struct xp_arena *a)
{
    *n = (struct names){.next = 1};
    return xp_strpool_init(&n->pool, a) && xp_strpool_init(&n->used, a);
}

/* The id of what is called so; the one it has, if it is new and nothing else has that. */
static bool names_id(struct merging *m, struct names *n, struct xp_span what, uint64_t has,
                     uint64_t *id, bool *fresh)
{
    uint32_t before = n->pool.n, i = xp_strpool_add(&n->pool, what);
    if (i == XP_STRPOOL_FULL ||
        !have_room(m->scratch, (void **)&n->ids, &n->cap, i + 1, sizeof *n->ids))
        return false;
    *fresh = i >= before;
    if (*fresh) {
        bool taken = xp_strpool_find(&n->used, id_span(&has)) != XP_STRPOOL_FULL;
        n->ids[i] = taken ? n->next++ : has;
        if (xp_strpool_add(&n->used, id_span(&n->ids[i])) == XP_STRPOOL_FULL)
            return false;
    }
    *id = n->ids[i];
    return true;
}

/* --- writing --- */

static enum xp_status flush(struct merging *m)
{
    if (m->buf.failed || m->one.failed || m->two.failed)
        return no_memory(m->err);
    uint64_t n = m->buf.n;
    XP_TRY(m->out->add(m->out->ctx, xp_buf_all(&m->buf), m->err));
    m->at += n;
    m->buf.n = 0;
    return XP_OK;
}

static enum xp_status maybe_flush(struct merging *m)
{
    return m->buf.n < FLUSH ? XP_OK : flush(m);
}

static uint64_t put_hole(struct merging *m, uint8_t tag)
{
    uint64_t at = m->at + m->buf.n;
    static const uint8_t room[XP_VARINT_MAX];
    xp_buf_byte(&m->buf, tag);
    xp_buf_add(&m->buf, room, sizeof room);
    return at;
}

/* Fills the length in: as a varint of all ten bytes, which says the same as a short one. */
static enum xp_status fill_hole(struct merging *m, uint64_t at)
{
    uint8_t v[XP_VARINT_MAX];
    XP_TRY(flush(m));
    uint64_t n = m->at - at - HOLE;
    for (int i = 0; i < XP_VARINT_MAX; i++, n >>= 7)
        v[i] = (uint8_t)((n & 0x7f) | (i + 1 < XP_VARINT_MAX ? 0x80 : 0));
    return m->out->set(m->out->ctx, at + 1, xp_span_of(v, sizeof v), m->err);
}

static void put_stat(struct xp_buf *to, const struct source *s, struct xp_span stat)
{
    struct xp_pb r = xp_pb_open(stat);
    struct xp_pb_field f;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        if (f.type == XP_PB_VARINT && (f.num == STAT_METADATA_ID || f.num == STAT_REF))
            xp_pb_put_u64(to, f.num, ids_get(&s->stats, f.value));
        else
            xp_buf_add(to, p, (size_t)(r.p - p));
    }
}

/* A stat with its tag; uses m->two. */
static void put_stat_field(struct merging *m, struct xp_buf *to, uint32_t num,
                           const struct source *s, struct xp_span stat)
{
    m->two.n = 0;
    put_stat(&m->two, s, stat);
    xp_pb_put_bytes(to, num, xp_buf_all(&m->two));
}

static void put_entry(struct merging *m, uint32_t num, uint64_t id, struct xp_span rest)
{
    struct xp_buf *value = &m->two, *entry = &m->one;
    value->n = entry->n = 0;
    xp_pb_put_u64(value, META_ID, id);
    xp_buf_span(value, rest);
    xp_pb_put_u64(entry, ENTRY_KEY, id);
    xp_pb_put_bytes(entry, ENTRY_VALUE, xp_buf_all(value));
    xp_pb_put_bytes(&m->buf, num, xp_buf_all(entry));
}

/* --- metadata --- */

/* What is said of a stat, but its id. */
static void stat_rest(struct xp_buf *to, struct xp_span value)
{
    struct xp_pb r = xp_pb_open(value);
    struct xp_pb_field f;
    to->n = 0;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p)
        if (f.num != META_ID)
            xp_buf_add(to, p, (size_t)(r.p - p));
}

static enum xp_status join_stat(struct merging *m, struct source *s, struct xp_span entry)
{
    uint64_t has = number_of(entry, ENTRY_KEY), id;
    struct xp_span value = bytes_of(entry, ENTRY_VALUE), name = bytes_of(value, META_NAME);
    bool fresh;
    if (!name.n) /* nothing says that it is the same as another */
        name = id_span(&has);
    if (!names_id(m, &m->stats, name, has, &id, &fresh) || !ids_put(m, &s->stats, has, id))
        return no_memory(m->err);
    if (fresh) {
        struct xp_buf rest;
        xp_buf_init(&rest, m->piece_max);
        stat_rest(&rest, value);
        put_entry(m, PLANE_STAT_METADATA, id, xp_buf_all(&rest));
        m->buf.failed = m->buf.failed || rest.failed;
        xp_buf_fini(&rest);
    }
    return maybe_flush(m);
}

/* What is said of an event, but its id and those of its children. */
static void event_rest(struct merging *m, struct xp_buf *to, const struct source *s,
                       struct xp_span value, bool children)
{
    struct xp_pb r = xp_pb_open(value);
    struct xp_pb_field f;
    to->n = 0;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        if (f.num == META_ID)
            continue;
        if (f.num == META_STAT && f.type == XP_PB_LEN && !s->stats.same) {
            put_stat_field(m, to, META_STAT, s, f.bytes);
        } else if (f.num != META_CHILD || !children) {
            xp_buf_add(to, p, (size_t)(r.p - p));
        } else if (f.type == XP_PB_VARINT) {
            xp_pb_put_u64(to, META_CHILD, ids_get(&s->events, f.value));
        } else if (f.type == XP_PB_LEN && f.bytes.n) { /* packed */
            const uint8_t *q = f.bytes.p, *end = q + f.bytes.n;
            uint64_t v;
            while (q && q < end && (q = xp_varint_read(q, end, &v)))
                xp_pb_put_u64(to, META_CHILD, ids_get(&s->events, v));
        }
    }
}

static enum xp_status join_event(struct merging *m, struct source *s, struct xp_span entry,
                                 struct xp_buf *rest, bool *fresh)
{
    uint64_t has = number_of(entry, ENTRY_KEY), id;
    event_rest(m, rest, s, bytes_of(entry, ENTRY_VALUE), false);
    if (rest->failed || !names_id(m, &m->events, xp_buf_all(rest), has, &id, fresh) ||
        !ids_put(m, &s->events, has, id))
        return no_memory(m->err);
    return XP_OK;
}

/* First all get their ids, then those that are new are written: one may be another's child. */
static enum xp_status join_events(struct merging *m, struct source *s, struct xp_buf *rest)
{
    struct xp_pb_field f;
    struct xp_pb r = xp_pb_open(s->body);
    uint8_t *fresh = NULL;
    uint32_t cap = 0, n = 0;
    while (xp_pb_next(&r, &f)) {
        bool new;
        if (f.num != PLANE_EVENT_METADATA || f.type != XP_PB_LEN)
            continue;
        if (!have_room(m->scratch, (void **)&fresh, &cap, n + 1, 1))
            return no_memory(m->err);
        XP_TRY(join_event(m, s, f.bytes, rest, &new));
        fresh[n++] = new;
    }
    r = xp_pb_open(s->body);
    n = 0;
    while (xp_pb_next(&r, &f)) {
        if (f.num != PLANE_EVENT_METADATA || f.type != XP_PB_LEN || !fresh[n++])
            continue;
        event_rest(m, rest, s, bytes_of(f.bytes, ENTRY_VALUE), true);
        put_entry(m, PLANE_EVENT_METADATA, ids_get(&s->events, number_of(f.bytes, ENTRY_KEY)),
                  xp_buf_all(rest));
        XP_TRY(maybe_flush(m));
    }
    return XP_OK;
}

/* Ids above all that any plane has are free. */
static void see_ids(struct merging *m, struct xp_span body)
{
    struct xp_pb r = xp_pb_open(body);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f)) {
        struct names *n = f.num == PLANE_EVENT_METADATA  ? &m->events
                          : f.num == PLANE_STAT_METADATA ? &m->stats
                                                         : NULL;
        uint64_t id = n && f.type == XP_PB_LEN ? number_of(f.bytes, ENTRY_KEY) : 0;
        if (n && id >= n->next && id < INT64_MAX)
            n->next = id + 1;
    }
}

static enum xp_status join_metadata(struct merging *m, struct source *s, struct xp_buf *rest)
{
    struct xp_pb r = xp_pb_open(s->body);
    struct xp_pb_field f;
    if (!ids_init(&s->stats, m->scratch) || !ids_init(&s->events, m->scratch))
        return no_memory(m->err);
    while (xp_pb_next(&r, &f))
        if (f.num == PLANE_STAT_METADATA && f.type == XP_PB_LEN)
            XP_TRY(join_stat(m, s, f.bytes));
    return join_events(m, s, rest);
}

/* --- lines --- */

static bool has_events(struct xp_span line)
{
    struct xp_pb r = xp_pb_open(line);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f))
        if (f.num == LINE_EVENT && f.type == XP_PB_LEN)
            return true;
    return false;
}

/* Whether events of lines that begin then can count from one moment. */
static bool may_be_one(int64_t a_ns, int64_t b_ns)
{
    int64_t ps;
    return !__builtin_sub_overflow(a_ns, b_ns, &ps) && !__builtin_mul_overflow(ps, 1000, &ps);
}

/* The line of that id and name, whose times can be one; a new one if there is none. */
static struct line *line_of(struct merging *m, struct xp_span body, int64_t timestamp_ns,
                            bool dated, bool *new)
{
    uint64_t id = number_of(body, LINE_ID);
    struct xp_buf *key = &m->one;
    key->n = 0;
    xp_buf_add(key, &id, sizeof id);
    xp_buf_span(key, bytes_of(body, LINE_NAME));
    for (;;) {
        uint32_t before = m->line_ids.n, i = xp_strpool_add(&m->line_ids, xp_buf_all(key));
        if (key->failed || i == XP_STRPOOL_FULL ||
            !have_room(m->scratch, (void **)&m->lines, &m->lines_cap, i + 1, sizeof *m->lines))
            return NULL;
        *new = i >= before;
        struct line *l = &m->lines[i];
        if (*new || !dated || !l->dated ||
            (may_be_one(timestamp_ns, l->timestamp_ns) && may_be_one(l->latest_ns, timestamp_ns)))
            return l;
        xp_buf_add(key, &timestamp_ns, sizeof timestamp_ns); /* it stays apart */
    }
}

/* A part without events says nothing of when the line began. */
static enum xp_status gather_line(struct merging *m, const struct source *s, struct xp_span body)
{
    uint64_t duration = number_of(body, LINE_DURATION);
    int64_t timestamp = (int64_t)number_of(body, LINE_TIMESTAMP);
    bool new, dated = has_events(body);
    struct line_part *part = xp_bump_alloc(&m->bump, sizeof *part, 8);
    struct line *l = part ? line_of(m, body, timestamp, dated, &new) : NULL;
    if (!l)
        return no_memory(m->err);
    if (new)
        *l = (struct line){.timestamp_ns = timestamp, .latest_ns = timestamp};
    *part = (struct line_part){s, body, timestamp, NULL};
    *(l->end ? l->end : &l->first) = part;
    l->end = &part->next;
    if (dated) {
        bool first = !l->dated;
        l->timestamp_ns = first || timestamp < l->timestamp_ns ? timestamp : l->timestamp_ns;
        l->latest_ns = first || timestamp > l->latest_ns ? timestamp : l->latest_ns;
        l->dated = true;
    }
    l->duration_ps = duration > l->duration_ps ? duration : l->duration_ps;
    return XP_OK;
}

static void put_event(struct merging *m, const struct source *s, struct xp_span event,
                      uint64_t shift_ps)
{
    struct xp_buf *b = &m->one;
    struct xp_pb r = xp_pb_open(event);
    struct xp_pb_field f;
    bool placed = shift_ps == 0;
    b->n = 0;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        bool number = f.type == XP_PB_VARINT;
        if (number && f.num == EVENT_METADATA_ID) {
            xp_pb_put_u64(b, f.num, ids_get(&s->events, f.value));
        } else if (number && f.num == EVENT_OFFSET) {
            xp_pb_put_u64(b, f.num, f.value + shift_ps);
            placed = true;
        } else if (f.num == EVENT_STAT && f.type == XP_PB_LEN && !s->stats.same) {
            put_stat_field(m, b, f.num, s, f.bytes);
        } else {
            placed = placed || (number && f.num == EVENT_OCCURRENCES);
            xp_buf_add(b, p, (size_t)(r.p - p));
        }
    }
    if (!placed) /* an offset of 0 need not be written */
        xp_pb_put_u64(b, EVENT_OFFSET, shift_ps);
    xp_pb_put_bytes(&m->buf, LINE_EVENT, xp_buf_all(b));
}

static enum xp_status put_events(struct merging *m, const struct line *l,
                                 const struct line_part *part)
{
    struct xp_pb r = xp_pb_open(part->body);
    struct xp_pb_field f;
    const struct source *s = part->source;
    /* Of a part without events it means nothing, and may wrap. */
    uint64_t shift_ps = ((uint64_t)part->timestamp_ns - (uint64_t)l->timestamp_ns) * 1000;
    bool as_is = shift_ps == 0 && s->stats.same && s->events.same;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        if (f.num != LINE_EVENT || f.type != XP_PB_LEN)
            continue;
        if (as_is)
            xp_buf_add(&m->buf, p, (size_t)(r.p - p));
        else
            put_event(m, s, f.bytes, shift_ps);
        XP_TRY(maybe_flush(m));
    }
    return r.bad ? corrupt(m) : XP_OK;
}

/* Its names from the first part. */
static enum xp_status put_line(struct merging *m, const struct line *l)
{
    uint64_t hole = put_hole(m, TAG(PLANE_LINE));
    struct xp_pb r = xp_pb_open(l->first->body);
    struct xp_pb_field f;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p)
        if (f.num != LINE_TIMESTAMP && f.num != LINE_EVENT && f.num != LINE_DURATION)
            xp_buf_add(&m->buf, p, (size_t)(r.p - p));
    xp_pb_put_u64(&m->buf, LINE_TIMESTAMP, (uint64_t)l->timestamp_ns);
    xp_pb_put_u64(&m->buf, LINE_DURATION, l->duration_ps);
    for (const struct line_part *p = l->first; p; p = p->next)
        XP_TRY(put_events(m, l, p));
    return fill_hole(m, hole);
}

/* --- planes --- */

static enum xp_status join_rest(struct merging *m, const struct source *s, bool first)
{
    struct xp_pb r = xp_pb_open(s->body);
    struct xp_pb_field f;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        if (f.num == PLANE_LINE && f.type == XP_PB_LEN) {
            XP_TRY(gather_line(m, s, f.bytes));
        } else if (f.num == PLANE_STAT && f.type == XP_PB_LEN) {
            uint64_t id = ids_get(&s->stats, number_of(f.bytes, STAT_METADATA_ID));
            uint32_t before = m->plane_stats.n;
            uint32_t i = xp_strpool_add(&m->plane_stats, id_span(&id));
            if (i == XP_STRPOOL_FULL)
                return no_memory(m->err);
            if (i >= before)
                put_stat_field(m, &m->buf, PLANE_STAT, s, f.bytes);
        } else if (first && f.num != PLANE_EVENT_METADATA && f.num != PLANE_STAT_METADATA) {
            xp_buf_add(&m->buf, p, (size_t)(r.p - p));
        }
    }
    return r.bad ? corrupt(m) : XP_OK;
}

static enum xp_status join_sources(struct merging *m, struct source *first)
{
    struct xp_buf rest;
    enum xp_status status = XP_OK;
    xp_buf_init(&rest, m->piece_max);
    for (struct source *s = first; s && status == XP_OK; s = s->next)
        status = join_metadata(m, s, &rest);
    xp_buf_fini(&rest);
    for (struct source *s = first; s && status == XP_OK; s = s->next)
        status = join_rest(m, s, s == first);
    for (uint32_t i = 1; i < m->line_ids.n && status == XP_OK; i++) /* 0 is the empty string */
        status = put_line(m, &m->lines[i]);
    return status;
}

static enum xp_status step_over(const struct xspace_merge_out *out, uint64_t at,
                                struct xp_error *err)
{
    static const uint8_t tag = TAG(STEPPED_OVER);
    return out->set(out->ctx, at, xp_span_of(&tag, 1), err);
}

/* Planes of one name. */
static enum xp_status join_planes(struct merging *m, const struct plane *first)
{
    struct source *sources = NULL, **end = &sources;
    if (!names_init(&m->stats, m->scratch) || !names_init(&m->events, m->scratch) ||
        !xp_strpool_init(&m->line_ids, m->scratch) || !xp_strpool_init(&m->plane_stats, m->scratch))
        return no_memory(m->err);
    m->lines = NULL;
    m->lines_cap = 0;
    for (const struct plane *p = first; p; p = p->more) {
        struct source *s = xp_arena_zalloc(m->scratch, sizeof *s);
        if (!s)
            return no_memory(m->err);
        s->body = p->body;
        *end = s;
        end = &s->next;
        see_ids(m, p->body);
    }
    uint64_t hole = put_hole(m, TAG(SPACE_PLANE));
    XP_TRY(join_sources(m, sources));
    XP_TRY(fill_hole(m, hole));
    for (const struct plane *p = first; p; p = p->more)
        XP_TRY(step_over(m->out, p->at, m->err));
    return XP_OK;
}

/* --- the whole --- */

struct found {
    struct xp_strpool said;  /* hosts, errors, warnings, each behind its tag */
    struct xp_strpool names; /* of planes */
    struct plane **last;     /* by place in names */
    uint32_t cap;
    struct plane *planes, **end; /* the first of each name */
};

static enum xp_status see_plane(struct found *w, struct xp_bump *bump, uint64_t at,
                                struct xp_span body, struct xp_error *err)
{
    uint32_t before = w->names.n, i = xp_strpool_add(&w->names, bytes_of(body, PLANE_NAME));
    struct plane *p = xp_bump_alloc(bump, sizeof *p, 8);
    if (!p || i == XP_STRPOOL_FULL ||
        !have_room(bump->arena, (void **)&w->last, &w->cap, i + 1, sizeof(struct plane *)))
        return no_memory(err);
    *p = (struct plane){at, body, NULL, NULL};
    if (i == 0 || i >= before) { /* planes without a name have nothing in common */
        *w->end = p;
        w->end = &p->next;
    } else {
        w->last[i]->more = p;
    }
    w->last[i] = p;
    return XP_OK;
}

/* A host, an error or a warning: whether it was said before. */
static enum xp_status see_text(struct found *w, struct xp_span field, bool *again,
                               struct xp_error *err)
{
    uint32_t before = w->said.n, i = xp_strpool_add(&w->said, field);
    *again = i < before;
    return i == XP_STRPOOL_FULL ? no_memory(err) : XP_OK;
}

static enum xp_status see_all(struct found *w, struct xp_span xspace, struct xp_bump *bump,
                              const struct xspace_merge_out *out, struct xp_error *err)
{
    struct xp_pb r = xp_pb_open(xspace);
    struct xp_pb_field f;
    for (const uint8_t *p = r.p; xp_pb_next(&r, &f); p = r.p) {
        uint64_t at = (uint64_t)(p - xspace.p);
        bool again = false;
        if (f.type != XP_PB_LEN || f.num > SPACE_HOSTNAME || *p != TAG(f.num))
            continue; /* a tag that is written longer than it need be is left alone */
        if (f.num == SPACE_PLANE)
            XP_TRY(see_plane(w, bump, at, f.bytes, err));
        else
            XP_TRY(see_text(w, xp_span_of(p, (size_t)(r.p - p)), &again, err));
        if (again)
            XP_TRY(step_over(out, at, err));
    }
    return XP_OK; /* what is malformed is left to the decoder */
}

enum xp_status xspace_merge(struct xp_span xspace, struct xp_arena *scratch, size_t piece_max,
                            const struct xspace_merge_out *out, struct xp_error *err)
{
    struct merging m = {
        .scratch = scratch, .out = out, .err = err, .at = xspace.n, .piece_max = piece_max};
    struct found w = {.end = &w.planes};
    enum xp_status status = XP_OK;
    xp_bump_init(&m.bump, scratch);
    if (!xp_strpool_init(&w.said, scratch) || !xp_strpool_init(&w.names, scratch))
        return no_memory(err);
    XP_TRY(see_all(&w, xspace, &m.bump, out, err));
    xp_buf_init(&m.buf, piece_max);
    xp_buf_init(&m.one, piece_max);
    xp_buf_init(&m.two, piece_max);
    for (const struct plane *p = w.planes; p && status == XP_OK; p = p->next)
        if (p->more)
            status = join_planes(&m, p);
    xp_buf_fini(&m.buf);
    xp_buf_fini(&m.one);
    xp_buf_fini(&m.two);
    return status;
}
