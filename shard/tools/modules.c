#include "shard/tools/modules.h"

#include "shard/decode/xspace_decoder.h"

/* --- a walk over all modules --- */

struct walk {
    const struct tool_host *hosts;
    size_t n, host;
    uint32_t plane, meta;
};

static bool is_metadata_plane(const struct part *p, uint32_t plane)
{
    return xp_span_eq(part_str(p, p->planes[plane].name), XP_SPAN_LIT("/host:metadata"));
}

/* The next event metadata of a metadata plane; NULL at the end. */
static const struct part_evmeta *next_meta(struct walk *w, const struct part **part,
                                           const struct part_plane **plane)
{
    for (; w->host < w->n; w->host++, w->plane = 0) {
        const struct part *p = w->hosts[w->host].part;
        for (; p && w->plane < p->nplanes; w->plane++, w->meta = 0) {
            const struct part_plane *pl = &p->planes[w->plane];
            if (!is_metadata_plane(p, w->plane) || w->meta == pl->nevmeta)
                continue;
            *part = p;
            *plane = pl;
            return &pl->evmeta[w->meta++];
        }
    }
    return NULL;
}

static bool is_proto_stat(struct xp_span name)
{
    return xp_span_eq(name, XP_SPAN_LIT("Hlo Proto")) || xp_span_eq(name, XP_SPAN_LIT("HLO Proto"));
}

/* The HloProto in a metadata's body; false when there is none. */
static bool proto_of(const struct part *p, const struct part_plane *pl, struct xp_span body,
                     struct xp_span *proto)
{
    struct xspace_stats it = xspace_stats_open(body, 5);
    struct xspace_stat stat;
    bool found = false;

    while (xspace_stats_next(&it, &stat)) {
        if (!is_proto_stat(part_stat_name(p, pl, stat.metadata_id)))
            continue;
        *proto = stat.bytes;
        found = true;
    }
    return found;
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

static bool number_fits(const struct part *p, const struct part_evmeta *m, uint64_t id)
{
    uint64_t given;
    return (uint64_t)m->id == id || (number_at_end(part_str(p, m->name), &given) && given == id);
}

/* --- the ways to ask --- */

struct wanted {
    uint64_t id;
    struct xp_span name; /* empty: any */
};

static enum xp_status by_number(const struct tool_host *hosts, size_t n, const struct wanted *want,
                                struct xp_arena *a, struct xp_span *proto, bool *any,
                                struct xp_error *err)
{
    struct walk w = {.hosts = hosts, .n = n};
    const struct part_plane *pl;
    const struct part_evmeta *m;
    const struct part *p;
    struct xp_span body;

    while ((m = next_meta(&w, &p, &pl))) {
        *any = true;
        if (!number_fits(p, m, want->id))
            continue;
        XP_TRY(part_evmeta_body(p, m, a, &body, err));
        if (proto_of(p, pl, body, proto) &&
            (!want->name.n || xp_span_eq(module_name(*proto), want->name)))
            return XP_OK;
    }
    return XP_NOT_FOUND;
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
    struct wanted want = {0};
    bool any = false, number = false;
    enum xp_status status = XP_NOT_FOUND;

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
    status = by_number(hosts, n, &want, a, proto, &any, err);
    if (status == XP_OK && number)
        return XP_OK;
    if (status != XP_OK && status != XP_NOT_FOUND)
        return status;
    if (!any && xp_span_eq(name, XP_SPAN_LIT("NO_MODULE"))) {
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

enum xp_status modules_find_node(const struct tool_host *hosts, size_t n, struct xp_span node,
                                 struct xp_arena *a, struct xp_span *proto, struct xp_error *err)
{
    struct walk w = {.hosts = hosts, .n = n};
    const struct part_plane *pl;
    const struct part_evmeta *m;
    const struct part *p;
    struct xp_span body;

    while ((m = next_meta(&w, &p, &pl))) {
        XP_TRY(part_evmeta_body(p, m, a, &body, err));
        if (proto_of(p, pl, body, proto) && has_node(*proto, node))
            return XP_OK;
    }
    return xp_fail(err, XP_NOT_FOUND, 0, "HLO proto file containing node name %.*s not found",
                   node.n < 120 ? (int)node.n : 120, (const char *)node.p);
}
