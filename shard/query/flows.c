/* What an event is linked to: launches to kernels, producers to consumers.
 *
 * Three kinds of links, as XProf has them: the stat `flow` (direction, id and category in one
 * number), producer and consumer (type, id), and correlation_id (a launch on the host, a kernel on
 * a device). An event has a handful of them at most; the partners are looked for in the side
 * streams of all lines, some nanoseconds an event that has stats, with no index to keep.
 */
#include "shard/query/query_int.h"

#define KEYS_MAX 4
#define LINKS_MAX 64

enum { FLOW_IN = 1, FLOW_OUT = 2, FLOW_BOTH = 3 };
enum key_type { KEY_FLOW, KEY_CONTEXT, KEY_CORRELATION };

struct key {
    enum key_type type;
    uint64_t sub, id; /* sub: of a context its type */
    uint32_t category;
    int dir; /* bits of FLOW_* */
};

struct link {
    const struct part_line *line;
    uint64_t at;
    uint32_t category;
    int dir; /* FLOW_IN: it comes from there; FLOW_OUT: it leads there */
};

static const char *const categories[] = {"generic",          "legacy",        "tf_exec",
                                         "tfrt_exec",        "batch_sched",   "PjRt",
                                         "as_batch_sched",   "tfrt_rt",       "tpu_embed",
                                         "gpu_launch",       "batcher",       "tpu_stream",
                                         "tpu_launch",       "pathways_exec", "pjrt_library_call",
                                         "threadpool_event", "jax_serving",   "sparsecore_offload"};
#define CATEGORIES (sizeof categories / sizeof *categories)
#define CATEGORY_GPU_LAUNCH 9

static const char *category_name(uint32_t category)
{
    return categories[category < CATEGORIES ? category : 0];
}

static bool number(const struct side_cursor *c, enum stat_kind kind, uint64_t *v)
{
    const struct side_stat *s = side_get(c, kind);
    if (!s || (s->type != SIDE_U64 && s->type != SIDE_I64))
        return false;
    *v = s->num;
    return true;
}

static int context_key(const struct side_cursor *c, enum stat_kind type, enum stat_kind id, int dir,
                       struct key *k)
{
    *k = (struct key){.type = KEY_CONTEXT, .dir = dir};
    if (!number(c, type, &k->sub) || !number(c, id, &k->id))
        return 0;
    k->category = k->sub < CATEGORIES ? (uint32_t)k->sub : 0;
    return 1;
}

/* The links of the event whose stats are in c. */
static int keys_of(const struct side_cursor *c, bool device, struct key k[KEYS_MAX])
{
    int n = 0;
    uint64_t v;
    if (number(c, STAT_FLOW, &v) && (v & 3))
        k[n++] = (struct key){KEY_FLOW, 0, v >> 2 & ((UINT64_C(1) << 56) - 1), (uint32_t)(v >> 58),
                              (int)(v & 3)};
    if (number(c, STAT_CORRELATION_ID, &v))
        k[n++] =
            (struct key){KEY_CORRELATION, 0, v, CATEGORY_GPU_LAUNCH, device ? FLOW_IN : FLOW_OUT};
    n += context_key(c, STAT_PRODUCER_TYPE, STAT_PRODUCER_ID, FLOW_OUT, &k[n]);
    n += context_key(c, STAT_CONSUMER_TYPE, STAT_CONSUMER_ID, FLOW_IN, &k[n]);
    return n;
}

/* Our event a, the other b: which way the link goes; 0: they are not linked. Between two that both
 * take and give, file order decides. */
static int link_dir(const struct key *a, const struct key *b, bool b_later)
{
    if (a->type != b->type || a->id != b->id || a->sub != b->sub)
        return 0;
    bool out = (a->dir & FLOW_OUT) && (b->dir & FLOW_IN);
    bool in = (a->dir & FLOW_IN) && (b->dir & FLOW_OUT);
    if (out && in)
        return b_later ? FLOW_OUT : FLOW_IN;
    return out ? FLOW_OUT : in ? FLOW_IN : 0;
}

struct search {
    const struct query_event_at *self;
    struct key keys[KEYS_MAX];
    int nkeys;
    struct link links[LINKS_MAX];
    size_t n;
};

static void match(struct search *s, const struct part_line *l, uint64_t at, const struct key *keys,
                  int nkeys)
{
    for (int i = 0; i < s->nkeys; i++)
        for (int k = 0; k < nkeys && s->n < LINKS_MAX; k++) {
            int dir = link_dir(&s->keys[i], &keys[k], at > s->self->ev.at);
            if (!dir || (at == s->self->ev.at && l == s->self->l.line))
                continue;
            s->links[s->n++] = (struct link){l, at, s->keys[i].category, dir};
            return;
        }
}

static bool is_device(const struct part *p, const struct part_line *l)
{
    return query_plane_kind(part_str(p, p->planes[l->plane].name)) == QUERY_DEVICE;
}

static void search_line(const struct part *p, const struct part_line *l, struct search *s,
                        const struct out *out)
{
    struct side_cursor c;
    struct key keys[KEYS_MAX];
    bool device = is_device(p, l);
    side_open(&c, l->side);
    for (uint32_t i = 0; side_next(&c) && s->n < LINKS_MAX; i++) {
        int n = keys_of(&c, device, keys);
        if (n)
            match(s, l, c.at, keys, n);
        if (i % 4096 == 0 && out_cancelled(out))
            return;
    }
}

static void write_link(const struct part *p, const struct link *l, struct xp_arena *a,
                       struct xp_json *j, const struct out *out)
{
    struct query_book b = {.p = p};
    struct query_event_at e;
    struct xp_error ignored;
    xp_json_obj(j);
    xp_json_key(j, "direction");
    xp_json_str(j, l->dir == FLOW_IN ? "in" : "out");
    xp_json_key(j, "category");
    xp_json_str(j, category_name(l->category));
    xp_json_key(j, "ids");
    xp_json_arr(j);
    xp_json_u64(j, l->at);
    xp_json_arr_end(j);
    xp_json_key(j, "line");
    xp_json_u64(j, (uint64_t)(l->line - p->lines));
    xp_json_key(j, "begin_ps");
    if (query_find(&b, l->at, a, out, &e, &ignored) == XP_OK)
        xp_json_i64(j, query_session(e.l.line, e.ev.begin_ps));
    else
        xp_json_null(j);
    xp_json_obj_end(j);
}

enum xp_status query_flows(const struct part *p, const struct query_event_at *e, struct xp_arena *a,
                           struct xp_json *j, const struct out *out, struct xp_error *err)
{
    struct search s = {.self = e};
    struct side_cursor c;
    side_open(&c, e->l.line->side);
    if (!e->l.made && side_find(&c, e->ev.at))
        s.nkeys = keys_of(&c, is_device(p, e->l.line), s.keys);
    for (uint32_t i = 0; i < p->nlines && s.nkeys && !out_cancelled(out); i++)
        if (plane_ready(&p->planes[p->lines[i].plane]) && p->lines[i].side)
            search_line(p, &p->lines[i], &s, out);
    if (out_cancelled(out))
        return xp_fail(err, XP_CANCELLED, 0, "the event is not wanted any more");
    xp_json_arr(j);
    for (size_t i = 0; i < s.n; i++)
        write_link(p, &s.links[i], a, j, out);
    xp_json_arr_end(j);
    return XP_OK;
}
