#include <stdio.h>
#include <stdlib.h>

#include "shard/tools/report_megascale.h"

#define NO_TRACKS                                                                                  \
    "no op of a transfer between slices and no action of the Megascale runtime is in the profile"

struct view {
    const struct mega *m;
    const struct slack *s;
    const struct facts *hosts;
    size_t nhosts;
    struct xp_arena *a;
    const struct mega_occurrence **list; /* of the collective that is shown */
    uint32_t nlist;
    const struct mega_occurrence *shown;
    const struct mega_item *items; /* of shown */
    uint32_t nitems;
    struct link {
        uint32_t from, to;
        const char *basis;
    } * links;
    uint32_t nlinks;
};

static uint64_t lasts(int64_t begin, int64_t end)
{
    return end > begin ? (uint64_t)end - (uint64_t)begin : 0;
}

static struct report_cell text(const struct view *v, uint32_t id)
{
    return id ? report_of_text(xp_strpool_get(&v->m->strings, id)) : report_none();
}

static struct xp_span host_of(const struct view *v, uint32_t index)
{
    for (size_t i = 0; i < v->nhosts; i++)
        if (v->hosts[i].index == index)
            return v->hosts[i].host;
    return (struct xp_span){0};
}

/* --- collectives --- */

static const struct report_column columns[] = {
    {"collective", "Collective", "", REPORT_COL_TEXT, false,
     "its rendezvous, or name in graph keys"},
    {"total", "Total", "ps", REPORT_COL_NUMBER, true, "of all occurrences, on all devices"},
    {"occurrences", "Occurrences", "count", REPORT_COL_NUMBER, true, "on all devices"},
    {"mean", "Mean", "ps", REPORT_COL_NUMBER, false, "from the first op or action to the last end"},
    {"longest", "Longest", "ps", REPORT_COL_NUMBER, false, ""},
    {"with_ops", "With ops", "count", REPORT_COL_NUMBER, true,
     "occurrences with send and recv ops of a device"},
    {"with_actions", "With actions", "count", REPORT_COL_NUMBER, true,
     "occurrences with actions of the Megascale runtime"},
    {"actions", "Actions", "count", REPORT_COL_NUMBER, true, "of the Megascale runtime"},
};

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct mega_collective *x = &VEC(v->m->collectives, struct mega_collective)[i];
    c[0] = text(v, x->name);
    c[1] = report_of_u64(x->total_ps);
    c[2] = report_of_u64(x->occurrences);
    c[3] = x->occurrences ? report_of_u64(x->total_ps / x->occurrences) : report_none();
    c[4] = x->occurrences ? report_of_u64(x->longest_ps) : report_none();
    c[5] = report_of_u64(x->with_ops);
    c[6] = report_of_u64(x->with_actions);
    c[7] = report_of_u64(x->actions);
}

/* --- occurrences of one --- */

static const struct report_column occurrence_columns[] = {
    {"key", "Key", "", REPORT_COL_TEXT, false, "occurrence=KEY shows its actions"},
    {"host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"device", "Device", "count", REPORT_COL_NUMBER, false, "n of the plane /device:TPU:n"},
    {"duration", "Duration", "ps", REPORT_COL_NUMBER, false,
     "from its first op or action to the last end"},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, ""},
    {"ops", "Ops", "count", REPORT_COL_NUMBER, false, ""},
    {"actions", "Actions", "count", REPORT_COL_NUMBER, false, ""},
};

static void occurrence_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct mega_occurrence *o = v->list[i];
    struct xp_span host = host_of(v, o->host);
    char *key = xp_arena_alloc(v->a, MEGA_ID);
    size_t n = key ? mega_id(v->m, host, o, key, MEGA_ID) : 0;
    c[0] = n ? report_of_text(xp_span_of(key, n)) : report_none();
    c[1] = report_of_text(host);
    c[2] = o->device >= 0 ? report_of_i64(o->device) : report_none();
    c[3] = report_of_u64(lasts(o->begin_ps, o->end_ps));
    c[4] = report_of_i64(o->begin_ps);
    c[5] = report_of_u64(o->ops);
    c[6] = report_of_u64(o->actions);
}

/* --- actions of one --- */

static const struct report_column action_columns[] = {
    {"number", "Number", "count", REPORT_COL_NUMBER, false, "in order of begins, from 0"},
    {"kind", "Kind", "", REPORT_COL_TEXT, false, ""},
    {"operation", "Name", "", REPORT_COL_TEXT, false, "of the event"},
    {"after", "After", "ps", REPORT_COL_NUMBER, false, "its begin, from that of the occurrence"},
    {"duration", "Duration", "ps", REPORT_COL_NUMBER, false,
     "n/a: only its begin or only its end was recorded"},
    {"bytes", "Bytes", "bytes", REPORT_COL_BYTES, false, "n/a: it does not say"},
    {"rate", "Rate", "bytes/s", REPORT_COL_NUMBER, false, "bytes / duration"},
    {"index", "Index", "count", REPORT_COL_NUMBER, false, "action_index, as recorded"},
    {"detail", "Detail", "", REPORT_COL_TEXT, false, "sizes of buffers by ends, or the label"},
    {"first_host", "Host", "", REPORT_COL_TEXT, false, ""},
    {"first_plane", "Plane", "", REPORT_COL_TEXT, false, ""},
    {"first_begin_ps", "Begin", "ps", REPORT_COL_NUMBER, false, ""},
};

static void action_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct view *v = ctx;
    const struct mega_item *it = &v->items[i];
    bool known = it->begun && it->ended;
    uint64_t ps = lasts(it->begin_ps, it->end_ps);
    *c++ = report_of_u64(i);
    *c++ = report_of_text(xp_span_str(mega_kind_name(it->kind)));
    *c++ = text(v, it->name);
    *c++ = report_of_u64(lasts(v->shown->begin_ps, it->begin_ps));
    *c++ = known ? report_of_u64(ps) : report_none();
    *c++ = it->bytes ? report_of_u64(it->bytes) : report_none();
    *c++ = known && it->bytes ? report_ratio((double)it->bytes * 1e12, (double)ps) : report_none();
    *c++ = it->index >= 0 ? report_of_i64(it->index) : report_none();
    *c++ = text(v, it->detail);
    *c++ = report_of_text(host_of(v, v->shown->host));
    *c++ = text(v, it->plane);
    *c = report_of_i64(it->begin_ps);
}

/* --- what waits for what --- */

static const struct report_column link_columns[] = {
    {"from", "From", "count", REPORT_COL_NUMBER, false, "number of the action"},
    {"to", "To", "count", REPORT_COL_NUMBER, false, "number of the action that it leads to"},
    {"basis", "Basis", "", REPORT_COL_TEXT, false, "why it is taken for that"},
};

static void link_row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct link *l = &((const struct view *)ctx)->links[i];
    c[0] = report_of_u64(l->from);
    c[1] = report_of_u64(l->to);
    c[2] = report_of_text(xp_span_str(l->basis));
}

static void add_link(struct view *v, uint32_t from, uint32_t to, const char *basis)
{
    v->links[v->nlinks++] = (struct link){from, to, basis};
}

/* The one of these kinds that ended last before a time; n: there is none. */
static uint32_t last_before(const struct view *v, uint32_t kinds, int64_t t)
{
    uint32_t best = v->nitems;
    for (uint32_t i = 0; i < v->nitems; i++) {
        const struct mega_item *it = &v->items[i];
        if (!(kinds & 1u << it->kind) || it->end_ps > t)
            continue;
        if (best == v->nitems || it->end_ps >= v->items[best].end_ps)
            best = i;
    }
    return best;
}

static uint32_t one_of(const struct view *v, uint8_t kind, bool last)
{
    uint32_t found = v->nitems;
    for (uint32_t i = 0; i < v->nitems; i++)
        if (v->items[i].kind == kind && (found == v->nitems || last))
            found = i;
    return found;
}

static void link_ends(struct view *v, uint8_t op, uint8_t action, bool into)
{
    uint32_t a = one_of(v, op, false), b = one_of(v, action, into);
    if (a == v->nitems || b == v->nitems)
        return;
    if (into)
        add_link(v, b, a, "the last of its kind ends before the done can");
    else
        add_link(v, a, b, "the first of its kind, begun by the op");
}

/* By the names of ops, and by the order that kinds of actions have. At most two an item. */
static bool find_links(struct view *v)
{
    static const struct {
        uint8_t kind;
        uint32_t before;
    } order[] = {
        {MEGA_NET_SEND, 1u << MEGA_TO_HOST},
        {MEGA_REDUCE, 1u << MEGA_NET_RECV | 1u << MEGA_TO_HOST},
        {MEGA_TO_DEVICE, 1u << MEGA_NET_RECV | 1u << MEGA_REDUCE},
    };
    v->links = xp_arena_alloc(v->a, ((size_t)v->nitems + 8) * sizeof *v->links);
    if (!v->links)
        return false;
    const uint8_t pairs[][2] = {{MEGA_SEND, MEGA_SEND_DONE}, {MEGA_RECV, MEGA_RECV_DONE}};
    for (size_t i = 0; i < 2; i++) {
        uint32_t a = one_of(v, pairs[i][0], false), b = one_of(v, pairs[i][1], false);
        if (a < v->nitems && b < v->nitems)
            add_link(v, a, b, "the same transfer's op and its done");
    }
    link_ends(v, MEGA_SEND, MEGA_TO_HOST, false);
    link_ends(v, MEGA_RECV, MEGA_TO_DEVICE, false);
    link_ends(v, MEGA_SEND_DONE, MEGA_TO_HOST, true);
    link_ends(v, MEGA_RECV_DONE, MEGA_TO_DEVICE, true);
    for (uint32_t i = 0; i < v->nitems; i++)
        for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
            uint32_t from = v->items[i].kind == order[k].kind
                                ? last_before(v, order[k].before, v->items[i].begin_ps)
                                : v->nitems;
            if (from < v->nitems && from != i)
                add_link(v, from, i, "the last that ended before, of the kind that comes before");
        }
    return true;
}

/* --- which one --- */

static const struct mega_occurrence *by_want(const struct view *v, const struct mega_wanted *w)
{
    const struct mega_occurrence *o = v->m->occurrences.p;
    const struct mega_item *items = v->m->items.p;
    for (size_t i = 0; i < v->m->occurrences.n; i++)
        if (o[i].nitems &&
            mega_is_wanted(v->m, &o[i], items + o[i].first_item, host_of(v, o[i].host), w))
            return &o[i];
    return NULL;
}

/* UINT32_MAX: none. */
static uint32_t collective_named(const struct mega *m, struct xp_span name)
{
    uint32_t id = xp_strpool_find(&m->strings, name), at;
    return name.n && id != XP_STRPOOL_FULL && idmap_get(&m->by_name, id, &at) ? at : UINT32_MAX;
}

/* A transfer that there is, of which no occurrence is whole. */
static bool is_transfer(const struct slack *s, struct xp_span name)
{
    uint32_t id = xp_strpool_find(&s->strings, name), at;
    return id != XP_STRPOOL_FULL && idmap_get(&s->by_rendezvous, id, &at);
}

static uint32_t longest_of_all(const struct mega *m)
{
    const struct mega_collective *c = m->collectives.p;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < m->collectives.n; i++)
        if (c[i].occurrences && (best == UINT32_MAX || c[i].total_ps > c[best].total_ps))
            best = i;
    return best;
}

static bool list(struct view *v, uint32_t collective)
{
    const struct mega_occurrence *o = v->m->occurrences.p;
    v->list = xp_arena_alloc(v->a, (v->m->occurrences.n + 1) * sizeof *v->list);
    for (size_t i = 0; v->list && i < v->m->occurrences.n; i++) {
        if (o[i].collective != collective)
            continue;
        v->list[v->nlist++] = &o[i];
        bool longer = !v->shown || lasts(o[i].begin_ps, o[i].end_ps) >
                                       lasts(v->shown->begin_ps, v->shown->end_ps);
        if (o[i].nitems && (!v->shown || (v->shown->collective == collective && longer)))
            v->shown = &o[i];
    }
    return v->list != NULL;
}

static enum xp_status choose(struct report *r, struct view *v, struct xp_span first,
                             const struct tool_args *args, uint32_t *collective, bool *asked,
                             struct xp_error *err)
{
    struct xp_span name = {0};
    struct mega_wanted want;
    tool_arg(args, "collective", &name);
    XP_TRY(mega_wanted_of(args, &want, err));
    const struct mega_occurrence *one = want.id.n || want.has_at ? by_want(v, &want) : NULL;
    if (want.has_at && !want.id.n && !one)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "no op or action of a transfer begins or ends at that time on these hosts");
    if (want.id.n && !one)
        report_note(r, REPORT_WARNING, "no_such_occurrence",
                    "There is no occurrence of the key that was asked for in what the page is "
                    "about: the longest is shown.");
    *collective = one ? one->collective : collective_named(v->m, name.n ? name : first);
    if (name.n && *collective == UINT32_MAX && !is_transfer(v->s, name)) {
        report_note(r, REPORT_WARNING, "no_such_collective",
                    "There is no collective of the name that was asked for in what the page is "
                    "about: another is shown.");
        name.n = 0;
        *collective = collective_named(v->m, first);
    }
    *asked = name.n || one;
    if (!name.n && *collective == UINT32_MAX)
        *collective = longest_of_all(v->m);
    if (!list(v, *collective))
        return xp_fail(err, XP_BUSY, 0, "no memory left for transfers");
    if (one)
        v->shown = one;
    return XP_OK;
}

static void tables(struct report *r, struct view *v)
{
    report_table(
        r, &(struct report_rows){.id = "occurrences",
                                 .title = "Occurrences of the collective, the longest",
                                 .columns = occurrence_columns,
                                 .ncolumns = sizeof occurrence_columns / sizeof *occurrence_columns,
                                 .n = v->nlist,
                                 .row = occurrence_row,
                                 .ctx = v,
                                 .sort = "duration",
                                 .descending = true,
                                 .aside = true});
    report_link(r, "occurrences", "key");
    report_table(r,
                 &(struct report_rows){.id = "actions",
                                       .title = "Ops and actions of the occurrence",
                                       .columns = action_columns,
                                       .ncolumns = sizeof action_columns / sizeof *action_columns,
                                       .n = v->nitems,
                                       .row = action_row,
                                       .ctx = v,
                                       .aside = true});
    report_link(r, "actions", "operation");
    report_table(r, &(struct report_rows){.id = "action_links",
                                          .title = "What leads to what",
                                          .note = "No profile records which action waits for "
                                                  "which: this follows from names and kinds.",
                                          .columns = link_columns,
                                          .ncolumns = sizeof link_columns / sizeof *link_columns,
                                          .n = v->nlinks,
                                          .row = link_row,
                                          .ctx = v,
                                          .aside = true});
}

static void remarks(struct report *r, const struct view *v)
{
    const struct mega *m = v->m;
    if (m->left)
        report_note(r, REPORT_WARNING, "actions_left",
                    "%llu actions beyond the first %llu of a host are not looked at.",
                    (unsigned long long)m->left, (unsigned long long)MEGA_EVENTS);
    if (m->unnamed)
        report_note(r, REPORT_INFO, "actions_unnamed",
                    "%llu events of the Megascale runtime do not say which collective they are of.",
                    (unsigned long long)m->unnamed);
    if (v->shown && v->shown->ops && !v->shown->actions)
        report_note(r, REPORT_INFO, "no_actions",
                    m->traced ? "Of this collective no action is recorded under its name; those "
                                "of the Megascale trace have names of their own."
                              : "No actions of the Megascale runtime are in the profile: only ops "
                                "of the devices are shown.");
}

enum xp_status report_megascale_tracks(struct report *r, const struct mega *m,
                                       const struct slack *s, const struct facts *hosts, size_t n,
                                       struct xp_span first, const struct tool_args *args,
                                       struct xp_error *err)
{
    struct view v = {.m = m, .s = s, .hosts = hosts, .nhosts = n, .a = r->a};
    uint32_t collective = 0;
    bool asked = false;
    XP_TRY(choose(r, &v, first, args, &collective, &asked, err));
    report_megascale_rates(r, m);
    report_table(r, &(struct report_rows){.id = "collectives",
                                          .title = "Collectives between slices",
                                          .note = m->collectives.n ? NULL : NO_TRACKS,
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = m->collectives.n,
                                          .row = row,
                                          .ctx = &v,
                                          .sort = "total",
                                          .descending = true});
    if (!v.shown && asked)
        report_note(r, REPORT_INFO, "no_occurrence",
                    "No occurrence of that collective lies within what was looked at, from its "
                    "begin to its end.");
    if (!v.shown)
        return XP_OK;
    v.items = &VEC(m->items, struct mega_item)[v.shown->first_item];
    v.nitems = v.shown->nitems;
    if (!find_links(&v))
        return xp_fail(err, XP_BUSY, 0, "no memory left for transfers");
    struct xp_span host = host_of(&v, v.shown->host);
    char *key = xp_arena_alloc(r->a, MEGA_ID);
    size_t length = key ? mega_id(m, host, v.shown, key, MEGA_ID) : 0;
    report_string(
        r, "collective",
        xp_strpool_get(&m->strings, VEC(m->collectives, struct mega_collective)[collective].name),
        asked ? NULL : "stalls longest in all, or takes longest");
    report_string(r, "occurrence", xp_span_of(key, length), asked ? NULL : "takes longest");
    tables(r, &v);
    remarks(r, &v);
    return XP_OK;
}
