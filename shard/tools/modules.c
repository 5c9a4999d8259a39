#include "shard/tools/modules.h"

#include "shard/decode/xspace_decoder.h"

#define PLANE_MAX ((uint64_t)1 << 30)
#define HEAD_MAX 4096 /* of a plane: its name is at the front */
#define STATS_MAX 8   /* stat ids of that name in a plane: one, or two spellings */

/* --- a walk over all modules --- */

struct visitor {
    bool (*wants)(void *ctx, int64_t id, struct xp_span name); /* is it worth reading? */
    bool (*take)(void *ctx, struct xp_span proto);             /* true: no more */
    void *ctx;
    bool any, done;
};

static bool is_metadata_name(struct xp_span name)
{
    return xp_span_eq(name, XP_SPAN_LIT("/host:metadata"));
}

static bool is_proto_stat(struct xp_span name)
{
    return xp_span_eq(name, XP_SPAN_LIT("Hlo Proto")) || xp_span_eq(name, XP_SPAN_LIT("HLO Proto"));
}

/* A plane that is loaded: only the metadata asked for are read. */
static enum xp_status visit_loaded(const struct part *p, const struct part_plane *pl,
                                   struct xp_arena *a, struct visitor *v, struct xp_error *err)
{
    struct xspace_stat stat;
    struct xp_span body;

    if (!is_metadata_name(part_str(p, pl->name)))
        return XP_OK;
    for (uint32_t i = 0; i < pl->nevmeta && !v->done; i++) {
        const struct part_evmeta *m = &pl->evmeta[i];
        v->any = true;
        if (!v->wants(v->ctx, m->id, part_str(p, m->name)))
            continue;
        XP_TRY(part_evmeta_body(p, m, a, &body, err));
        struct xspace_stats it = xspace_stats_open(body, 5);
        while (!v->done && xspace_stats_next(&it, &stat))
            if (is_proto_stat(part_stat_name(p, pl, stat.metadata_id)))
                v->done = v->take(v->ctx, stat.bytes);
    }
    return XP_OK;
}

/* Ids of the stats that hold a module, from the plane's message. */
static int proto_stats(struct xp_span plane, int64_t ids[STATS_MAX])
{
    struct hlo_spans it = hlo_spans_open(plane, 5);
    struct xp_span entry, meta, name;
    int n = 0;

    while (n < STATS_MAX && hlo_spans_next(&it, &entry))
        if (hlo_get_span(entry, 2, &meta) && hlo_get_span(meta, 2, &name) && is_proto_stat(name))
            ids[n++] = hlo_get_int(meta, 1, hlo_get_int(entry, 1, 0));
    return n;
}

static void visit_meta(struct xp_span entry, const int64_t *ids, int n, struct visitor *v)
{
    struct xp_span meta, name = {0}, stat, proto;

    if (!hlo_get_span(entry, 2, &meta))
        return;
    v->any = true;
    hlo_get_span(meta, 2, &name);
    if (!v->wants(v->ctx, hlo_get_int(meta, 1, hlo_get_int(entry, 1, 0)), name))
        return;
    struct hlo_spans it = hlo_spans_open(meta, 5);
    while (!v->done && hlo_spans_next(&it, &stat)) {
        int64_t id = hlo_get_int(stat, 1, 0);
        for (int i = 0; i < n; i++)
            if (ids[i] == id && hlo_get_span(stat, 6, &proto))
                v->done = v->take(v->ctx, proto);
    }
}

static bool is_metadata_head(struct xp_span head)
{
    struct xp_pb r = xp_pb_open(head);
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f))
        if (f.num == 2 && f.type == XP_PB_LEN)
            return is_metadata_name(f.bytes);
    return false;
}

/* A plane that is still on its way: its message is read as a whole. It has no events and lies there
 * with the modules alone. */
static enum xp_status visit_message(const struct part *p, const struct part_plane *pl,
                                    struct xp_arena *a, struct visitor *v, struct xp_error *err)
{
    struct xp_span plane, entry;
    int64_t ids[STATS_MAX];

    XP_TRY(part_read(p, pl->at, pl->len < HEAD_MAX ? pl->len : HEAD_MAX, HEAD_MAX, a, &plane, err));
    if (!is_metadata_head(plane))
        return XP_OK;
    XP_TRY(part_read(p, pl->at, pl->len, PLANE_MAX, a, &plane, err));
    int n = proto_stats(plane, ids);
    struct hlo_spans it = hlo_spans_open(plane, 4);
    while (!v->done && hlo_spans_next(&it, &entry))
        visit_meta(entry, ids, n, v);
    return XP_OK;
}

/* What is damaged is passed over: another host may have the module. */
static enum xp_status visit(const struct tool_host *hosts, size_t n, struct xp_arena *a,
                            struct visitor *v, struct xp_error *err)
{
    for (size_t h = 0; h < n && !v->done; h++) {
        const struct part *p = hosts[h].part;
        for (uint32_t i = 0; p && i < p->nplanes && !v->done; i++) {
            const struct part_plane *pl = &p->planes[i];
            enum xp_status status =
                plane_ready(pl) ? visit_loaded(p, pl, a, v, err) : visit_message(p, pl, a, v, err);
            if (status != XP_OK && status != XP_CORRUPT)
                return status;
        }
    }
    return XP_OK;
}

/* --- names --- */

/* The number in the parentheses at the end of a name. */
static bool number_at_end(struct xp_span name, uint64_t *id)
{
    uint64_t v = 0, scale = 1;
    size_t i = name.n;

    if (i < 3 || name.p[--i] != ')')
        return false;
    size_t end = i;
    while (i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && end - i < 20) {
        v += scale * (uint64_t)(name.p[--i] - '0');
        scale *= 10;
    }
    *id = v;
    return i < end && i && name.p[i - 1] == '(';
}

static bool all_digits(struct xp_span s, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || i == 20)
            return false;
        *v = *v * 10 + (uint64_t)(s.p[i] - '0');
    }
    return s.n > 0;
}

static struct xp_span module_name(struct xp_span proto)
{
    struct xp_span module = {0}, name = {0};
    hlo_get_span(proto, 1, &module);
    hlo_get_span(module, 1, &name);
    return name;
}

/* The name without its number and parentheses. */
static struct xp_span stem(struct xp_span name)
{
    while (name.n && name.p[name.n - 1] != '(')
        name.n--;
    if (name.n)
        name.n--;
    return name;
}

/* --- the ways to ask --- */

struct wanted {
    uint64_t id;
    struct xp_span name; /* empty: any */
    struct xp_span node; /* an instruction of it */
    struct xp_span *proto;
};

static bool wants_number(void *ctx, int64_t id, struct xp_span name)
{
    const struct wanted *want = ctx;
    uint64_t given;
    return (uint64_t)id == want->id || (number_at_end(name, &given) && given == want->id);
}

static bool take_named(void *ctx, struct xp_span proto)
{
    const struct wanted *want = ctx;
    if (want->name.n && !xp_span_eq(module_name(proto), want->name))
        return false;
    *want->proto = proto;
    return true;
}

static enum xp_status no_file(struct xp_span name, struct xp_error *err)
{
    int n = name.n < 160 ? (int)name.n : 160;
    return xp_fail(err, XP_NOT_FOUND, 0, "%.*s.hlo_proto.pb; No such file or directory", n,
                   (const char *)name.p);
}

enum xp_status modules_find(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                            struct xp_arena *a, struct xp_span *proto, struct xp_error *err)
{
    struct xp_span name = {0}, program = {0};
    struct wanted want = {.proto = proto};
    struct visitor v = {.wants = wants_number, .take = take_named, .ctx = &want};
    bool number;

    tool_arg(args, "module_name", &name);
    tool_arg(args, "program_id", &program);
    if (name.n) {
        number = number_at_end(name, &want.id);
        want.name = stem(name);
    } else if (program.n) {
        number = all_digits(program, &want.id);
    } else {
        return xp_fail(err, XP_NOT_FOUND, 0, "Can not load hlo proto from options.");
    }
    XP_TRY(visit(hosts, n, a, &v, err));
    if (v.done && number)
        return XP_OK;
    if (!v.any && xp_span_eq(name, XP_SPAN_LIT("NO_MODULE"))) {
        *proto = (struct xp_span){0};
        return XP_OK;
    }
    if (name.n)
        return no_file(name, err);
    return xp_fail(err, XP_NOT_FOUND, 0, "HLO proto file containing program ID %.*s not found",
                   program.n < 100 ? (int)program.n : 100, (const char *)program.p);
}

static bool has_node(struct xp_span proto, struct xp_span node)
{
    struct xp_span module, comp, instr, name;
    if (!hlo_get_span(proto, 1, &module))
        return false;
    for (struct hlo_spans c = hlo_spans_open(module, 3); hlo_spans_next(&c, &comp);)
        for (struct hlo_spans i = hlo_spans_open(comp, 2); hlo_spans_next(&i, &instr);)
            if (hlo_get_span(instr, HLO_F_NAME, &name) && xp_span_eq(name, node))
                return true;
    return false;
}

static bool wants_all(void *ctx, int64_t id, struct xp_span name)
{
    (void)ctx, (void)id, (void)name;
    return true;
}

static bool take_with_node(void *ctx, struct xp_span proto)
{
    const struct wanted *want = ctx;
    *want->proto = proto;
    return has_node(proto, want->node);
}

enum xp_status modules_find_node(const struct tool_host *hosts, size_t n, struct xp_span node,
                                 struct xp_arena *a, struct xp_span *proto, struct xp_error *err)
{
    struct wanted want = {.node = node, .proto = proto};
    struct visitor v = {.wants = wants_all, .take = take_with_node, .ctx = &want};

    XP_TRY(visit(hosts, n, a, &v, err));
    if (v.done)
        return XP_OK;
    return xp_fail(err, XP_NOT_FOUND, 0, "HLO proto file containing node name %.*s not found",
                   node.n < 120 ? (int)node.n : 120, (const char *)node.p);
}
