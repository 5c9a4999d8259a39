#include "shard/tools/mega.h"

#include <stdio.h>

const char *mega_kind_name(uint8_t kind)
{
    static const char *const names[MEGA_KINDS] = {
        "send",         "send-done",       "recv",      "recv-done",      "copy to host",
        "network send", "network receive", "reduction", "copy to device", "all of it",
        "other"};
    return kind < MEGA_KINDS ? names[kind] : "";
}

uint8_t mega_kind_of(struct xp_span event, char *mark)
{
    static const struct {
        const char *part;
        uint8_t kind;
    } parts[] = {
        {"DeviceToHost", MEGA_TO_HOST},
        {"Device to Host", MEGA_TO_HOST},
        {"HostToDevice", MEGA_TO_DEVICE},
        {"Host to Device", MEGA_TO_DEVICE},
        {"NetworkSend", MEGA_NET_SEND},
        {"Transport Send", MEGA_NET_SEND},
        {"NetworkReceive", MEGA_NET_RECV},
        {"Transport Receive", MEGA_NET_RECV},
        {"Reduc", MEGA_REDUCE},
        {"_gid_", MEGA_GRAPH},
    };
    *mark = xp_span_ends(event, XP_SPAN_LIT(" START")) ? 'S'
            : xp_span_ends(event, XP_SPAN_LIT(" END")) ? 'E'
                                                       : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (xp_span_has(event, xp_span_str(parts[i].part)))
            return parts[i].kind;
    return MEGA_OTHER;
}

static int at_most(struct xp_span s)
{
    return s.n < 512 ? (int)s.n : 512;
}

size_t mega_id(const struct mega *m, struct xp_span host, const struct mega_occurrence *o, char *to,
               size_t cap)
{
    struct xp_span name = xp_strpool_get(
        &m->strings, VEC(m->collectives, struct mega_collective)[o->collective].name);
    int n = snprintf(to, cap, "%.*s/%lld/%lld/%.*s", at_most(host),
                     host.n ? (const char *)host.p : "", (long long)o->device,
                     (long long)o->begin_ps, at_most(name), name.n ? (const char *)name.p : "");
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

bool mega_init(struct mega *m, struct xp_arena *a)
{
    *m = (struct mega){.a = a};
    idmap_init(&m->by_name, a);
    return xp_strpool_init(&m->strings, a);
}

void mega_fini(struct mega *m)
{
    vec_free(&m->collectives);
    vec_free(&m->occurrences);
    vec_free(&m->items);
}

uint32_t mega_collective_of(struct mega *m, uint32_t name)
{
    uint32_t at;
    if (idmap_get(&m->by_name, name, &at))
        return at;
    struct mega_collective *to = vec_push(&m->collectives, sizeof *to);
    at = (uint32_t)m->collectives.n - 1;
    if (!to || !idmap_put(&m->by_name, name, at))
        return UINT32_MAX;
    *to = (struct mega_collective){.name = name};
    return at;
}

/* --- facts --- */

/* Which occurrences a host tells: the longest ones of a collective, and the wanted. */
struct choice {
    struct mega *m;
    uint32_t *order; /* by collective, longest first */
    bool *kept, *whole;
    uint64_t nkept, nwhole;
};

static uint64_t lasts(const struct mega_occurrence *o)
{
    return o->end_ps > o->begin_ps ? (uint64_t)o->end_ps - (uint64_t)o->begin_ps : 0;
}

static int by_length(const void *a, const void *b, void *ctx)
{
    const struct mega_occurrence *v = ctx, *x = &v[*(const uint32_t *)a],
                                 *y = &v[*(const uint32_t *)b];
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    if (lasts(x) != lasts(y))
        return lasts(x) > lasts(y) ? -1 : 1;
    return (x > y) - (x < y);
}

static bool whole(struct xp_span s, int64_t *v)
{
    bool minus = s.n && s.p[0] == '-', fine = s.n > minus && s.n < 20;
    *v = 0;
    for (size_t i = minus; i < s.n && fine; i++) {
        fine = s.p[i] >= '0' && s.p[i] <= '9' && !__builtin_mul_overflow(*v, INT64_C(10), v) &&
               !__builtin_add_overflow(*v, (int64_t)(s.p[i] - '0'), v);
    }
    *v = minus ? -*v : *v;
    return fine;
}

enum xp_status mega_wanted_of(const struct tool_args *args, struct mega_wanted *w,
                              struct xp_error *err)
{
    struct xp_span at = {0}, device = {0};
    *w = (struct mega_wanted){0};
    tool_arg(args, "occurrence", &w->id);
    w->has_at = tool_arg(args, "at", &at) && at.n;
    w->has_device = tool_arg(args, "device", &device) && device.n;
    if (w->has_at && !whole(at, &w->at_ps))
        return xp_fail(err, XP_BAD_REQUEST, 0, "at is a time of the session, in ps");
    if (w->has_device && !whole(device, &w->device))
        return xp_fail(err, XP_BAD_REQUEST, 0, "device is the n of a plane /device:TPU:n");
    return XP_OK;
}

bool mega_is_wanted(const struct mega *m, const struct mega_occurrence *o,
                    const struct mega_item *items, struct xp_span host, const struct mega_wanted *w)
{
    char id[MEGA_ID];
    size_t n = w->id.n ? mega_id(m, host, o, id, sizeof id) : 0;
    if (n && xp_span_eq(w->id, xp_span_of(id, n)))
        return true;
    if (w->id.n || !w->has_at || w->at_ps < o->begin_ps || w->at_ps > o->end_ps)
        return false;
    if (w->has_device && o->device >= 0 && o->device != w->device)
        return false;
    for (uint32_t i = 0; i < o->nitems; i++)
        if (items[i].begin_ps == w->at_ps || items[i].end_ps == w->at_ps)
            return true;
    return false;
}

static bool choose(struct choice *c, struct xp_span host, const struct mega_wanted *w)
{
    struct mega_occurrence *v = c->m->occurrences.p;
    size_t n = c->m->occurrences.n, have = 0;
    c->order = xp_arena_alloc(c->m->a, (n + 1) * sizeof *c->order);
    c->kept = xp_arena_zalloc(c->m->a, n + 1);
    c->whole = xp_arena_zalloc(c->m->a, n + 1);
    if (!c->order || !c->kept || !c->whole)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!v[i].gone)
            c->order[have++] = (uint32_t)i;
    if (have)
        qsort_r(c->order, have, sizeof *c->order, by_length, v);
    for (size_t i = 0, run = 0; i < have; i++) {
        struct mega_occurrence *o = &v[c->order[i]];
        run = i && v[c->order[i - 1]].collective == o->collective ? run + 1 : 0;
        bool asked =
            mega_is_wanted(c->m, o, VEC(c->m->items, struct mega_item) + o->first_item, host, w);
        c->whole[c->order[i]] = asked || run == 0;
        c->kept[c->order[i]] = asked || run < MEGA_KEPT;
        c->nkept += asked || run < MEGA_KEPT;
    }
    return true;
}

static void put_item(const struct mega *m, struct facts_out *f, const struct mega_item *v)
{
    facts_text(f, xp_strpool_get(&m->strings, v->name));
    facts_text(f, xp_strpool_get(&m->strings, v->plane));
    facts_text(f, xp_strpool_get(&m->strings, v->detail));
    facts_u64(f, v->kind);
    facts_u64(f, (uint64_t)v->begun | (uint64_t)v->ended << 1);
    facts_i64(f, v->index);
    facts_i64(f, v->begin_ps);
    facts_i64(f, v->end_ps);
    facts_u64(f, v->bytes);
}

static void put_occurrence(const struct choice *c, struct facts_out *f, size_t i)
{
    const struct mega_occurrence *o = &VEC(c->m->occurrences, struct mega_occurrence)[i];
    uint32_t n = c->whole[i] ? o->nitems : 0;
    n = n < MEGA_ITEMS ? n : MEGA_ITEMS;
    facts_u64(f, o->collective);
    facts_i64(f, o->device);
    facts_i64(f, o->begin_ps);
    facts_i64(f, o->end_ps);
    facts_u64(f, o->ops);
    facts_u64(f, o->actions);
    facts_u64(f, n);
    for (uint32_t k = 0; k < n; k++)
        put_item(c->m, f, &VEC(c->m->items, struct mega_item)[o->first_item + k]);
}

static void put(const struct choice *c, struct facts_out *f)
{
    const struct mega *m = c->m;
    facts_u64(f, m->collectives.n);
    for (size_t i = 0; i < m->collectives.n; i++) {
        const struct mega_collective *v = &VEC(m->collectives, struct mega_collective)[i];
        facts_text(f, xp_strpool_get(&m->strings, v->name));
        facts_u64(f, v->occurrences);
        facts_u64(f, v->total_ps);
        facts_u64(f, v->longest_ps);
        facts_u64(f, v->with_ops);
        facts_u64(f, v->with_actions);
        facts_u64(f, v->actions);
    }
    facts_u64(f, c->nkept);
    for (size_t i = 0; i < m->occurrences.n; i++)
        if (c->kept[i])
            put_occurrence(c, f, i);
    mega_rate_put(&m->rate, f);
    for (int k = 0; k < MEGA_CURVES; k++)
        facts_u64(f, m->sources[k]);
    facts_u64(f, m->left);
    facts_u64(f, m->unnamed);
    facts_u64(f, m->traced);
}

enum xp_status mega_map(const struct tool_host *host, const struct mega_wanted *w,
                        struct xp_arena *a, struct facts_out *f, struct xp_error *err)
{
    struct mega m;
    struct choice c = {.m = &m};
    enum xp_status st = mega_init(&m, a) ? mega_read(&m, host, err)
                                         : xp_fail(err, XP_BUSY, 0, "no memory left for transfers");
    if (st == XP_OK && !choose(&c, host->name, w))
        st = xp_fail(err, XP_BUSY, 0, "no memory left for transfers");
    if (st == XP_OK)
        put(&c, f);
    mega_fini(&m);
    return st;
}

/* --- and back --- */

struct getter {
    struct mega *m;
    struct facts *f;
    uint32_t *collectives; /* of the host, by number: place in m's */
    size_t n;
    bool busy;
};

static uint32_t get_text(struct getter *g)
{
    uint32_t id = xp_strpool_add(&g->m->strings, facts_get_text(g->f));
    g->busy |= id == XP_STRPOOL_FULL;
    return id;
}

static void get_collective(struct getter *g, size_t i)
{
    uint32_t name = get_text(g), at = g->busy ? UINT32_MAX : mega_collective_of(g->m, name);
    if (at == UINT32_MAX) {
        g->busy = true;
        return;
    }
    struct mega_collective *to = &VEC(g->m->collectives, struct mega_collective)[at];
    to->occurrences += facts_get_u64(g->f);
    to->total_ps += facts_get_u64(g->f);
    uint64_t longest = facts_get_u64(g->f);
    to->longest_ps = longest > to->longest_ps ? longest : to->longest_ps;
    to->with_ops += facts_get_u64(g->f);
    to->with_actions += facts_get_u64(g->f);
    to->actions += facts_get_u64(g->f);
    g->collectives[i] = at;
}

static void get_item(struct getter *g, uint32_t occurrence)
{
    struct mega_item *v = vec_push(&g->m->items, sizeof *v);
    if (!v) {
        g->busy = true;
        return;
    }
    *v = (struct mega_item){.occurrence = occurrence, .name = get_text(g)};
    v->plane = get_text(g);
    v->detail = get_text(g);
    v->kind = (uint8_t)facts_get_u64(g->f);
    uint64_t known = facts_get_u64(g->f);
    v->begun = known & 1;
    v->ended = known & 2;
    v->index = facts_get_i64(g->f);
    v->begin_ps = facts_get_i64(g->f);
    v->end_ps = facts_get_i64(g->f);
    v->bytes = facts_get_u64(g->f);
}

static void get_occurrence(struct getter *g)
{
    struct mega_occurrence *o = vec_push(&g->m->occurrences, sizeof *o);
    uint32_t at = (uint32_t)g->m->occurrences.n - 1;
    if (!o) {
        g->busy = true;
        return;
    }
    uint64_t collective = facts_get_u64(g->f);
    *o = (struct mega_occurrence){.host = g->f->index, .device = facts_get_i64(g->f)};
    o->begin_ps = facts_get_i64(g->f);
    o->end_ps = facts_get_i64(g->f);
    o->ops = (uint32_t)facts_get_u64(g->f);
    o->actions = (uint32_t)facts_get_u64(g->f);
    o->first_item = (uint32_t)g->m->items.n;
    o->nitems = (uint32_t)facts_get_count(g->f);
    if (collective >= g->n) {
        g->f->bad = true;
        g->m->occurrences.n--;
        return;
    }
    o->collective = g->collectives[collective];
    for (uint32_t i = 0, n = o->nitems; i < n && !g->f->bad && !g->busy; i++)
        get_item(g, at);
}

enum xp_status mega_add(struct mega *m, struct facts *f, struct xp_error *err)
{
    struct getter g = {.m = m, .f = f, .n = facts_get_count(f)};
    struct mega_rate rate;
    g.collectives = xp_arena_zalloc(m->a, (g.n + 1) * sizeof *g.collectives);
    g.busy = !g.collectives;
    for (size_t i = 0; i < g.n && !f->bad && !g.busy; i++)
        get_collective(&g, i);
    for (size_t n = facts_get_count(f); n && !f->bad && !g.busy; n--)
        get_occurrence(&g);
    g.busy |= !mega_rate_get(&rate, f, m->a) || !mega_rate_join(&m->rate, &rate, m->a);
    for (int k = 0; k < MEGA_CURVES; k++)
        m->sources[k] |= (uint32_t)facts_get_u64(f);
    m->left += facts_get_u64(f);
    m->unnamed += facts_get_u64(f);
    m->traced |= facts_get_u64(f) != 0;
    return g.busy ? xp_fail(err, XP_BUSY, 0, "no memory left for transfers") : facts_ok(f, err);
}
