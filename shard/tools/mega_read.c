#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/mega.h"
#include "shard/tools/profile.h"

#define TRACE_PLANE "/device:CUSTOM:Megascale Trace"

enum {
    KEY,
    LAUNCH,
    LOCAL,
    INDEX,
    SIZES,
    INPUT,
    PAYLOAD,
    LATENCY_US,
    TOOK_NS,
    TOOK_US,
    LABEL,
    FROM,
    TO,
    NAMES
};
static const char *const names[NAMES] = {"graph_key",
                                         "launch_id",
                                         "local_device_id",
                                         "action_index",
                                         "buffer_sizes",
                                         "input_size",
                                         "payload_size_bytes",
                                         "network_transport_latency_us",
                                         "action_duration_ns",
                                         "duration_us",
                                         "dcn_label",
                                         "dcn_source_slice_id",
                                         "dcn_destination_slice_id"};

/* What a graph key says. */
struct key {
    struct xp_span collective;
    int64_t device; /* as the runtime numbers them; -1: not told */
};

struct reader {
    struct mega *m;
    const struct tool_host *host;
    const struct part_plane *plane;
    struct xp_strpool keys;       /* graph key and launch */
    struct idmap by_key, by_open; /* -> occurrence; occurrence, kind, index -> item that began */
    struct vec devices;           /* int64_t: numbers of graph keys */
    struct vec raw;               /* struct raw, one an occurrence of actions */
    struct vec ordinals;          /* int64_t: of TPU planes */
    struct vec flows[MEGA_SOURCES];
    uint32_t plane_name;
    bool trace; /* the plane is the runtime's trace, else host threads */
};

/* Of an occurrence of actions. */
struct raw {
    int64_t device; /* of the graph key */
    int64_t local;  /* -1: not told */
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
}

/* "device_200005_gid_all-reduce.1_0$3^i0" */
static bool read_key(struct xp_span s, struct key *k)
{
    struct xp_span head = XP_SPAN_LIT("device_"), gid = XP_SPAN_LIT("_gid_");
    const uint8_t *at = s.n ? memmem(s.p, s.n, gid.p, gid.n) : NULL;
    *k = (struct key){.device = -1};
    if (!at)
        return false;
    if (xp_span_starts(s, head)) {
        k->device = 0;
        for (const uint8_t *d = s.p + head.n; d < at; d++)
            if (*d < '0' || *d > '9' || k->device > INT64_MAX / 100)
                return false;
            else
                k->device = k->device * 10 + (*d - '0');
    }
    k->collective = xp_span_of(at + gid.n, s.n - (size_t)(at - s.p) - gid.n);
    const uint8_t *end = k->collective.n ? memchr(k->collective.p, '$', k->collective.n) : NULL;
    if (end)
        k->collective.n = (size_t)(end - k->collective.p);
    return k->collective.n > 0;
}

static bool whole(const struct value *v, int64_t *to)
{
    *to = (int64_t)v->num;
    return (v->type == VALUE_I64 || v->type == VALUE_U64) && *to >= 0;
}

/* --- occurrences --- */

static struct mega_occurrence *new_occurrence(struct reader *r, uint32_t collective, int64_t device)
{
    struct mega_occurrence *o = vec_push(&r->m->occurrences, sizeof *o);
    if (o)
        *o = (struct mega_occurrence){.collective = collective,
                                      .host = r->host->index,
                                      .device = device,
                                      .begin_ps = INT64_MAX,
                                      .end_ps = INT64_MIN};
    return o;
}

static struct mega_item *new_item(struct reader *r, uint32_t occurrence, int64_t begin, int64_t end)
{
    struct mega_item *v = vec_push(&r->m->items, sizeof *v);
    if (v)
        *v = (struct mega_item){.occurrence = occurrence,
                                .begin_ps = begin,
                                .end_ps = end,
                                .begun = true,
                                .ended = true,
                                .index = -1};
    return v;
}

/* UINT32_MAX: memory is out; *full: too many collectives. */
static uint32_t collective_of(struct reader *r, struct xp_span name, bool *full)
{
    uint32_t id = xp_strpool_add(&r->m->strings, name), at;
    *full = r->m->collectives.n >= MEGA_COLLECTIVES && id != XP_STRPOOL_FULL &&
            !idmap_get(&r->m->by_name, id, &at);
    return id == XP_STRPOOL_FULL || *full ? UINT32_MAX : mega_collective_of(r->m, id);
}

/* The occurrence of an action's graph key and launch. */
static uint32_t occurrence_of(struct reader *r, const struct value v[NAMES], bool *left)
{
    int64_t launch = 0;
    struct key k;
    (void)whole(&v[LAUNCH], &launch);
    uint32_t text = xp_strpool_add(&r->m->strings, v[KEY].text), at;
    const uint64_t key[] = {text, (uint64_t)launch};
    uint32_t id = xp_strpool_add(&r->keys, xp_span_of(key, sizeof key));
    *left = false;
    if (text == XP_STRPOOL_FULL || id == XP_STRPOOL_FULL)
        return UINT32_MAX;
    if (idmap_get(&r->by_key, id, &at))
        return at;
    if (!read_key(v[KEY].text, &k)) {
        r->m->unnamed++;
        *left = true;
        return UINT32_MAX;
    }
    uint32_t collective = collective_of(r, k.collective, left);
    struct raw *raw = collective == UINT32_MAX ? NULL : vec_push(&r->raw, sizeof *raw);
    if (!raw || !new_occurrence(r, collective, -1))
        return UINT32_MAX;
    *raw = (struct raw){.device = k.device, .local = -1};
    (void)(whole(&v[LOCAL], &raw->local) || (raw->local = -1));
    at = (uint32_t)r->m->occurrences.n - 1;
    return idmap_put(&r->by_key, id, at) ? at : UINT32_MAX;
}

/* --- actions --- */

static int64_t took_ps(const struct value v[NAMES], uint8_t kind)
{
    int64_t n, ps = 0;
    if (kind == MEGA_NET_RECV && whole(&v[LATENCY_US], &n))
        return __builtin_mul_overflow(n, INT64_C(1000000), &ps) ? 0 : ps;
    if (whole(&v[TOOK_NS], &n))
        return __builtin_mul_overflow(n, INT64_C(1000), &ps) ? 0 : ps;
    if (whole(&v[TOOK_US], &n))
        return __builtin_mul_overflow(n, INT64_C(1000000), &ps) ? 0 : ps;
    return 0;
}

static uint64_t bytes_of(const struct value v[NAMES])
{
    uint64_t bytes;
    int64_t n;
    if (v[SIZES].type == VALUE_TEXT && mega_rate_bytes(v[SIZES].text, &bytes))
        return bytes;
    if (whole(&v[PAYLOAD], &n) || whole(&v[INPUT], &n))
        return (uint64_t)n;
    return 0;
}

static bool add_flow(struct reader *r, enum mega_source source, uint8_t curve, int64_t begin,
                     int64_t end, uint64_t bytes)
{
    if (!bytes || end < begin)
        return true;
    struct mega_flow *f = vec_push(&r->flows[source], sizeof *f);
    if (f)
        *f = (struct mega_flow){begin, end, bytes, curve};
    return f != NULL;
}

struct action {
    uint32_t occurrence, name;
    uint8_t kind;
    char mark; /* 'S', 'E' or 0: see mega_kind_of */
    bool open; /* its START was seen */
    int64_t index, begin_ps, end_ps;
};

/* A new one, or that of which this is the END; NULL: memory is out. */
static struct mega_item *item_of(struct reader *r, struct action *a)
{
    const uint64_t key[] = {a->occurrence, a->kind, (uint64_t)a->index};
    uint32_t id = xp_strpool_add(&r->keys, xp_span_of(key, sizeof key)), at;
    if (id == XP_STRPOOL_FULL)
        return NULL;
    a->open = a->mark == 'E' && idmap_get(&r->by_open, id, &at) && at < r->m->items.n &&
              !VEC(r->m->items, struct mega_item)[at].ended;
    if (a->open)
        return &VEC(r->m->items, struct mega_item)[at];
    struct mega_item *it = new_item(r, a->occurrence, a->begin_ps, a->end_ps);
    if (it && a->mark == 'S' && !idmap_put(&r->by_open, id, (uint32_t)r->m->items.n - 1))
        return NULL;
    return it;
}

/* Of the trace's network actions; those of host threads are messages, which tell more. */
static bool flow_of(struct reader *r, const struct mega_item *it, int64_t since_ps)
{
    bool sends = it->kind == MEGA_NET_SEND;
    if (!it->begun || !it->ended || (!sends && (it->kind != MEGA_NET_RECV || !r->trace)))
        return true;
    return add_flow(r, MEGA_BY_ACTIONS, sends ? MEGA_TX : MEGA_RX, since_ps, it->end_ps, it->bytes);
}

/* An action's begin is where its START was, else its end less what it says that it took. */
static bool add_action(struct reader *r, struct action *a, const struct value v[NAMES])
{
    struct mega_item *it = item_of(r, a);
    if (!it)
        return false;
    bool ends = a->mark == 'E';
    int64_t took = ends ? took_ps(v, a->kind) : 0, since = it->begin_ps;
    if (took && __builtin_sub_overflow(a->end_ps, took, &since))
        took = 0;
    it->name = a->name;
    it->plane = r->plane_name;
    it->kind = a->kind;
    it->index = a->index;
    it->ended = a->mark != 'S';
    it->end_ps = a->end_ps;
    if (ends && !a->open && took)
        it->begin_ps = since;
    it->begun = !ends || a->open || it->begin_ps < a->end_ps;
    it->bytes = a->kind == MEGA_OTHER || a->mark == 'S' ? 0 : bytes_of(v);
    struct xp_span detail = v[SIZES].type == VALUE_TEXT ? v[SIZES].text : v[LABEL].text;
    it->detail = detail.n ? xp_strpool_add(&r->m->strings, detail) : it->detail;
    return it->detail != XP_STRPOOL_FULL && flow_of(r, it, took ? since : it->begin_ps);
}

static bool visit_action(struct reader *r, const struct lane_event *ev, const struct value v[NAMES],
                         int64_t base_ps)
{
    const struct part *p = r->host->part;
    struct xp_span event = part_event_name(p, r->plane, ev->name);
    struct action a = {.begin_ps = base_ps + ev->begin_ps, .end_ps = base_ps + ev->end_ps};
    bool left;
    if (v[KEY].type != VALUE_TEXT || !v[KEY].text.n) {
        r->m->unnamed++;
        return true;
    }
    a.occurrence = occurrence_of(r, v, &left);
    if (a.occurrence == UINT32_MAX)
        return left;
    if (!whole(&v[INDEX], &a.index))
        a.index = -1;
    a.kind = mega_kind_of(event, &a.mark);
    a.name = xp_strpool_add(&r->m->strings, event);
    return a.name != XP_STRPOOL_FULL && add_action(r, &a, v);
}

/* What a peer sent, as who received it tells: it took until the event begins. */
static bool visit_message(struct reader *r, const struct lane_event *ev,
                          const struct value v[NAMES], int64_t base_ps)
{
    int64_t from, to, us, bytes, ps, begin = base_ps + ev->begin_ps, since;
    if (whole(&v[FROM], &from) && whole(&v[TO], &to) && from != to && whole(&v[TOOK_US], &us) &&
        whole(&v[PAYLOAD], &bytes) && !__builtin_mul_overflow(us, INT64_C(1000000), &ps) &&
        !__builtin_sub_overflow(begin, ps, &since))
        return add_flow(r, MEGA_BY_MESSAGES, MEGA_RX, since, begin, (uint64_t)bytes);
    return true;
}

/* Events of the trace are actions; of those of a host's threads some are. */
static enum xp_status read_line(struct reader *r, struct values_eye *eye,
                                const struct part_line *line, const bool *wanted,
                                struct xp_error *err)
{
    struct lane_event *ev;
    size_t n;
    XP_TRY(profile_events_named(line, wanted, r->plane->nevmeta, r->m->a, &ev, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct value v, seen[NAMES] = {{0}};
        if (!part_begins(r->host->part, ev[i].at, line->base_ps + ev[i].begin_ps))
            continue;
        if (r->m->items.n >= MEGA_EVENTS) {
            r->m->left += n - i;
            break;
        }
        XP_TRY(values_of_event(eye, ev[i].at, err));
        while (values_next(eye, &v))
            if (!seen[v.which].type)
                seen[v.which] = v;
        bool receive = xp_span_has(part_event_name(r->host->part, r->plane, ev[i].name),
                                   XP_SPAN_LIT("Receive"));
        if ((!r->trace && receive && !visit_message(r, &ev[i], seen, line->base_ps)) ||
            ((r->trace || (!r->m->traced && seen[KEY].type)) &&
             !visit_action(r, &ev[i], seen, line->base_ps)))
            return no_memory(err);
    }
    return XP_OK;
}

static enum xp_status read_actions(struct reader *r, const char *plane, bool trace,
                                   struct xp_error *err)
{
    const struct part *p = r->host->part;
    struct values_eye eye;
    r->plane = profile_plane(p, plane);
    r->trace = trace;
    if (!r->plane)
        return XP_OK;
    bool *wanted = xp_arena_zalloc(r->m->a, (size_t)r->plane->nevmeta + 1), any = false;
    r->plane_name = xp_strpool_add(&r->m->strings, xp_span_str(plane));
    if (!wanted || r->plane_name == XP_STRPOOL_FULL)
        return no_memory(err);
    for (uint32_t i = 0; i < r->plane->nevmeta; i++)
        any |= wanted[i] = trace || xp_span_starts(part_str(p, r->plane->evmeta[i].name),
                                                   XP_SPAN_LIT("MegaScale:"));
    values_open(&eye, p, r->plane, names, NAMES, r->m->a);
    for (uint32_t i = r->plane->first_line; any && i < r->plane->first_line + r->plane->nlines; i++)
        if (!p->lines[i].derived)
            XP_TRY(read_line(r, &eye, &p->lines[i], wanted, err));
    r->m->traced |= trace && r->m->items.n > 0;
    return XP_OK;
}

/* --- devices --- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t unique(struct vec *v)
{
    int64_t *d = v->p;
    size_t n = 0;
    if (v->n)
        qsort(d, v->n, sizeof *d, by_number);
    for (size_t i = 0; i < v->n; i++)
        if (!n || d[i] != d[n - 1])
            d[n++] = d[i];
    return v->n = n;
}

/* Graph keys number devices over all slices: in their order they are the host's planes. */
static bool name_devices(struct reader *r)
{
    const struct part *p = r->host->part;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        struct xp_span name = profile_plane_name(p, &p->planes[i]);
        uint32_t n;
        int64_t *to = profile_is_tpu(name) && profile_ordinal(name, &n)
                          ? vec_push(&r->ordinals, sizeof *to)
                          : NULL;
        if (to)
            *to = n;
    }
    const struct raw *raw = r->raw.p;
    for (size_t i = 0; i < r->raw.n; i++) {
        int64_t *to = vec_push(&r->devices, sizeof *to);
        if (!to)
            return false;
        *to = raw[i].device;
    }
    unique(&r->ordinals);
    unique(&r->devices);
    for (size_t i = 0; i < r->raw.n; i++) { /* occurrences of actions are the first ones */
        struct mega_occurrence *o = &VEC(r->m->occurrences, struct mega_occurrence)[i];
        const int64_t *at =
            bsearch(&raw[i].device, r->devices.p, r->devices.n, sizeof *at, by_number);
        size_t k = at ? (size_t)(at - VEC(r->devices, int64_t)) : SIZE_MAX;
        o->device = raw[i].local;
        if (raw[i].local < 0 && raw[i].device >= 0 && k < r->ordinals.n)
            o->device = VEC(r->ordinals, int64_t)[k];
    }
    return true;
}

/* --- ops --- */

struct under_way {
    uint32_t occurrence;
    uint8_t roles; /* that it has */
    int64_t send_ps, recv_ps;
};

static bool add_op(struct reader *r, const struct slack *s, const struct slack_op *op,
                   struct vec *open, struct idmap *by)
{
    static const uint8_t kinds[] = {MEGA_SEND, MEGA_SEND_DONE, MEGA_RECV, MEGA_RECV_DONE};
    bool full;
    uint32_t at, collective = collective_of(r, xp_strpool_get(&s->strings, op->rendezvous), &full);
    uint64_t key = (uint64_t)op->ordinal << 32 | collective;
    if (collective == UINT32_MAX)
        return full;
    bool known = idmap_get(by, key, &at);
    struct under_way *u = known ? &VEC(*open, struct under_way)[at] : vec_push(open, sizeof *u);
    if (!u || (!known && !idmap_put(by, key, (uint32_t)open->n - 1)))
        return false;
    uint8_t role = (uint8_t)(1u << op->role);
    if (!known || (u->roles & role) || (u->roles & 1u << SLACK_RECV_DONE)) {
        if (!new_occurrence(r, collective, op->ordinal))
            return false;
        *u = (struct under_way){.occurrence = (uint32_t)r->m->occurrences.n - 1,
                                .send_ps = INT64_MIN,
                                .recv_ps = INT64_MIN};
    }
    u->roles |= role;
    u->send_ps = op->role == SLACK_SEND ? op->begin_ps : u->send_ps;
    u->recv_ps = op->role == SLACK_RECV ? op->begin_ps : u->recv_ps;
    struct mega_item *it = new_item(r, u->occurrence, op->begin_ps, op->end_ps);
    if (!it)
        return false;
    char plane[40];
    int n = snprintf(plane, sizeof plane, "/device:TPU:%u", op->ordinal);
    it->kind = kinds[op->role];
    it->bytes = op->bytes;
    it->name = xp_strpool_add(&r->m->strings, xp_strpool_get(&s->strings, op->name));
    it->plane = xp_strpool_add(&r->m->strings, xp_span_of(plane, (size_t)n));
    bool fine = it->name != XP_STRPOOL_FULL && it->plane != XP_STRPOOL_FULL;
    if (op->role != SLACK_RECV_DONE || u->send_ps == INT64_MIN)
        return fine;
    /* What it says it sends goes from the send's begin to the recv-done's end, both ways. */
    return fine && add_flow(r, MEGA_BY_OPS, MEGA_TX, u->send_ps, op->end_ps, op->bytes) &&
           add_flow(r, MEGA_BY_OPS, MEGA_RX, u->send_ps, op->end_ps, op->bytes);
}

static enum xp_status read_ops(struct reader *r, struct xp_error *err)
{
    struct out nobody = {0};
    struct slack s;
    struct vec ops = {0}, open = {0};
    struct idmap by;
    if (!slack_init(&s, r->m->a))
        return no_memory(err);
    idmap_init(&by, r->m->a);
    enum xp_status st = slack_ops(&s, r->host, &ops, &nobody, err);
    const struct slack_op *v = ops.p;
    for (size_t i = 0; i < ops.n && st == XP_OK; i++)
        if (!add_op(r, &s, &v[i], &open, &by))
            st = no_memory(err);
    vec_free(&ops);
    vec_free(&open);
    slack_fini(&s);
    return st;
}

/* --- joining both --- */

static int by_place(const void *a, const void *b, void *ctx)
{
    const struct mega_occurrence *v = ctx, *x = &v[*(const uint32_t *)a],
                                 *y = &v[*(const uint32_t *)b];
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x > y) - (x < y);
}

static bool is_op(const struct mega_item *it)
{
    return it->kind <= MEGA_RECV_DONE;
}

static void measure(struct mega *m)
{
    struct mega_occurrence *v = m->occurrences.p;
    for (size_t i = 0; i < m->items.n; i++) {
        const struct mega_item *it = &VEC(m->items, struct mega_item)[i];
        struct mega_occurrence *o = &v[it->occurrence];
        o->begin_ps = it->begin_ps < o->begin_ps ? it->begin_ps : o->begin_ps;
        o->end_ps = it->end_ps > o->end_ps ? it->end_ps : o->end_ps;
        o->ops += is_op(it);
        o->actions += !is_op(it);
        o->nitems++;
        o->kinds |= 1u << it->kind;
    }
    const uint32_t begins = 1u << MEGA_SEND | 1u << MEGA_RECV;
    const uint32_t ends = 1u << MEGA_SEND_DONE | 1u << MEGA_RECV_DONE;
    for (size_t i = 0; i < m->occurrences.n; i++)
        v[i].gone = v[i].ops && (!(v[i].kinds & begins) || !(v[i].kinds & ends));
}

/* Actions that begin after an occurrence of ops and before the next one are its. */
static bool join(struct mega *m)
{
    struct mega_occurrence *v = m->occurrences.p;
    size_t n = m->occurrences.n;
    uint32_t *order = xp_arena_alloc(m->a, (n + 1) * sizeof *order);
    uint32_t *into = xp_arena_alloc(m->a, (n + 1) * sizeof *into);
    if (!order || !into)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = into[i] = (uint32_t)i;
    if (n)
        qsort_r(order, n, sizeof *order, by_place, v);
    for (size_t i = 1; i < n; i++) {
        struct mega_occurrence *o = &v[order[i]], *before = &v[order[i - 1]];
        if (before->gone || o->gone || o->ops || !before->ops || before->actions || o->device < 0 ||
            o->collective != before->collective || o->device != before->device)
            continue;
        into[order[i]] = order[i - 1];
        o->gone = true;
        before->actions = o->actions;
        before->nitems += o->nitems;
        before->end_ps = o->end_ps > before->end_ps ? o->end_ps : before->end_ps;
    }
    for (size_t i = 0; i < m->items.n; i++) {
        struct mega_item *it = &VEC(m->items, struct mega_item)[i];
        it->occurrence = into[it->occurrence];
    }
    return true;
}

static int item_order(const void *a, const void *b)
{
    const struct mega_item *x = a, *y = b;
    if (x->occurrence != y->occurrence)
        return x->occurrence < y->occurrence ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void sum_up(struct mega *m)
{
    struct mega_occurrence *v = m->occurrences.p;
    if (m->items.n)
        qsort(m->items.p, m->items.n, sizeof(struct mega_item), item_order);
    for (size_t i = m->items.n; i-- > 0;)
        v[VEC(m->items, struct mega_item)[i].occurrence].first_item = (uint32_t)i;
    for (size_t i = 0; i < m->occurrences.n; i++) {
        if (v[i].gone || !v[i].nitems) {
            v[i].gone = true;
            continue;
        }
        struct mega_collective *c = &VEC(m->collectives, struct mega_collective)[v[i].collective];
        uint64_t ps =
            v[i].end_ps > v[i].begin_ps ? (uint64_t)v[i].end_ps - (uint64_t)v[i].begin_ps : 0;
        c->occurrences++;
        c->total_ps += ps;
        c->longest_ps = ps > c->longest_ps ? ps : c->longest_ps;
        c->with_ops += v[i].ops > 0;
        c->with_actions += v[i].actions > 0;
        c->actions += v[i].actions;
    }
}

/* --- curves --- */

/* Of each direction the best that there is: what actions say, what messages say, what ops do. */
static bool draw(struct reader *r)
{
    struct mega *m = r->m;
    struct vec best = {0}, spans = {0};
    bool fine = true;
    for (int k = 0; k < MEGA_CURVES; k++)
        for (int source = MEGA_BY_ACTIONS; source < MEGA_SOURCES && !m->sources[k]; source++)
            for (size_t i = 0; i < r->flows[source].n; i++) {
                const struct mega_flow *f = &VEC(r->flows[source], struct mega_flow)[i];
                struct mega_flow *to = f->curve == k ? vec_push(&best, sizeof *to) : NULL;
                fine = fine && (to || f->curve != k);
                if (to)
                    *to = *f;
                if (f->curve == k)
                    m->sources[k] = 1u << source;
            }
    for (size_t i = 0; i < m->occurrences.n; i++) {
        const struct mega_occurrence *o = &VEC(m->occurrences, struct mega_occurrence)[i];
        struct mega_flow *to = o->gone ? NULL : vec_push(&spans, sizeof *to);
        fine = fine && (to || o->gone);
        if (to)
            *to = (struct mega_flow){.begin_ps = o->begin_ps, .end_ps = o->end_ps};
    }
    fine = fine && mega_rate_of(&m->rate, &best, &spans, m->a);
    vec_free(&best);
    vec_free(&spans);
    return fine;
}

enum xp_status mega_read(struct mega *m, const struct tool_host *host, struct xp_error *err)
{
    struct reader r = {.m = m, .host = host};
    idmap_init(&r.by_key, m->a);
    idmap_init(&r.by_open, m->a);
    enum xp_status st = xp_strpool_init(&r.keys, m->a) ? XP_OK : no_memory(err);
    if (st == XP_OK)
        st = read_actions(&r, TRACE_PLANE, true, err);
    if (st == XP_OK)
        st = read_actions(&r, "/host:CPU", false, err);
    if (st == XP_OK && !name_devices(&r))
        st = no_memory(err);
    if (st == XP_OK)
        st = read_ops(&r, err);
    if (st == XP_OK) {
        measure(m);
        if (!join(m))
            st = no_memory(err);
    }
    if (st == XP_OK) {
        sum_up(m);
        if (!draw(&r))
            st = no_memory(err);
    }
    for (int i = 0; i < MEGA_SOURCES; i++)
        vec_free(&r.flows[i]);
    vec_free(&r.devices);
    vec_free(&r.raw);
    vec_free(&r.ordinals);
    return st;
}
