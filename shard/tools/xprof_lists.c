#include "shard/tools/xprof_lists.h"

#include <stdlib.h>

#include "lib/base/json_out.h"
#include "lib/base/pb_wire.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/derive/vec.h"

#define HEAD_MAX ((uint64_t)64 << 10) /* of a module: its name is at the front */

static bool readable(const struct part *p)
{
    return p->damage.status == XP_OK && !p->partial && !p->utf8_bad;
}

static struct xp_span plane_name(const struct part *p, uint32_t i)
{
    return part_str(p, p->planes[i].name);
}

/* --- tools --- */

/* XProf gives no tools when a file of any host is bad, though it looks at the first alone. A
 * partial is a byte of these; all but BAD are of the first host. */
enum { BAD = 1, GPU = 2, HLO = 4, MEGASCALE = 8, COUNTERS = 16, ALL = 31 };

static bool is_hlo_stat(struct xp_span name)
{
    return xp_span_eq(name, XP_SPAN_LIT("Hlo Proto")) || xp_span_eq(name, XP_SPAN_LIT("HLO Proto"));
}

static bool plane_counts(const struct part *p, const struct part_plane *pl)
{
    for (uint32_t i = pl->first_line; i < pl->first_line + pl->nlines; i++) {
        struct side_cursor c;
        side_open(&c, p->lines[i].side);
        while (p->lines[i].side && side_next(&c))
            if (side_get(&c, STAT_COUNTER_VALUE))
                return true;
    }
    return false;
}

static unsigned look(const struct part *p)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        struct xp_span name = plane_name(p, i);
        if (xp_span_starts(name, XP_SPAN_LIT("/device:GPU:")))
            found |= GPU;
        if (xp_span_eq(name, XP_SPAN_LIT("/host:metadata")))
            for (uint32_t k = 0; k < pl->nstatmeta; k++)
                found |= is_hlo_stat(part_str(p, pl->statmeta[k].name)) ? HLO : 0;
        if (xp_span_eq(name, XP_SPAN_LIT("/host:CPU")))
            for (uint32_t k = 0; k < pl->nevmeta; k++)
                if (xp_span_starts(part_str(p, pl->evmeta[k].name), XP_SPAN_LIT("MegaScale:")))
                    found |= MEGASCALE;
        bool counts = false;
        for (uint32_t k = 0; k < pl->nstatmeta; k++)
            counts |= pl->statmeta[k].kind == STAT_COUNTER_VALUE;
        if (counts && xp_span_starts(name, XP_SPAN_LIT("/device:TPU:")))
            found |= plane_counts(p, pl) ? COUNTERS : 0;
    }
    return found;
}

static enum xp_status give_tools(unsigned has, struct xp_arena *a, struct xp_span *partial,
                                 struct xp_error *err)
{
    uint8_t *p = xp_arena_alloc(a, 1);
    if (!p)
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    *p = (uint8_t)has;
    *partial = xp_span_of(p, 1);
    return XP_OK;
}

static enum xp_status tools_map(const struct tool_host *host, const struct tool_args *args,
                                struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    (void)args;
    if (host->index ? host->part->cut : !readable(host->part))
        return give_tools(BAD, a, partial, err);
    return give_tools(host->index ? 0 : look(host->part), a, partial, err);
}

/* Perhaps a peer's. Of no host: nothing. */
static bool tools_read(struct xp_span partial, unsigned *has)
{
    *has = partial.n == 1 ? partial.p[0] : 0;
    return partial.n <= 1 && *has <= ALL;
}

static enum xp_status foreign(struct xp_error *err)
{
    return xp_fail(err, XP_INTERNAL, 0, "what a shard says of its hosts is no list");
}

static enum xp_status tools_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                  struct xp_span *both, struct xp_error *err)
{
    unsigned p, q;
    if (!tools_read(x, &p) || !tools_read(y, &q))
        return foreign(err);
    return give_tools(p | q, a, both, err);
}

static enum xp_status tools_render(struct xp_span merged, const struct tool_args *args,
                                   struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    (void)args, (void)scratch;
    unsigned has;
    struct xp_json j;
    if (!tools_read(merged, &has))
        return foreign(err);
    const struct {
        const char *id;
        unsigned needs;
    } tools[] = {
        {"overview_page", 0},
        {"trace_viewer@", 0},
        {"graph_viewer", HLO},
        {"op_profile", 0},
        {"input_pipeline_analyzer", 0},
        {"kernel_stats", GPU},
        {"memory_profile", 0},
        {"memory_viewer", HLO},
        {"roofline_model", 0},
        {"perf_counters", COUNTERS},
        {"framework_op_stats", 0},
        {"hlo_stats", 0},
        {"megascale_stats", MEGASCALE},
        {"kernel_utilization", COUNTERS},
        {"utilization_viewer", COUNTERS},
    };
    xp_json_init(&j, &out->text);
    xp_json_arr(&j);
    for (size_t i = 0; !(has & BAD) && i < sizeof tools / sizeof tools[0]; i++)
        if ((tools[i].needs & ~has) == 0)
            xp_json_str(&j, tools[i].id);
    xp_json_arr_end(&j);
    return XP_OK;
}

const struct tool tool_run_tools = {.id = "run_tools",
                                    .glance = true,
                                    .map = tools_map,
                                    .merge = tools_merge,
                                    .render = tools_render};

/* --- modules --- */

/* The number in the parentheses that end a name; false if there are none. */
static bool number_of(struct xp_span name, uint64_t *id)
{
    size_t i = name.n;
    uint64_t v = 0, scale = 1;
    if (!i || name.p[--i] != ')')
        return false;
    size_t digits = 0;
    for (; i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && digits < 20; i--, digits++) {
        v += scale * (uint64_t)(name.p[i - 1] - '0');
        scale *= 10;
    }
    *id = v;
    return digits && i && name.p[i - 1] == '(';
}

/* A field of a message of which perhaps only the head is there: the part of it that is. */
static bool head_field(struct xp_span msg, uint32_t num, struct xp_span *out)
{
    const uint8_t *p = msg.p, *end = msg.p + msg.n;
    while (p < end) {
        uint64_t tag, len;
        if (!(p = xp_varint_read(p, end, &tag)))
            return false;
        uint32_t type = (uint32_t)(tag & 7);
        if (type == XP_PB_VARINT) {
            if (!(p = xp_varint_read(p, end, &len)))
                return false;
            continue;
        }
        if (type == XP_PB_LEN) {
            if (!(p = xp_varint_read(p, end, &len)))
                return false;
        } else if (type == XP_PB_FIXED64 || type == XP_PB_FIXED32) {
            len = type == XP_PB_FIXED64 ? 8 : 4;
        } else {
            return false;
        }
        size_t have = (size_t)(end - p);
        if (tag >> 3 == num && type == XP_PB_LEN) {
            *out = xp_span_of(p, len < have ? (size_t)len : have);
            return true;
        }
        if (len > have)
            return false;
        p += len;
    }
    return false;
}

struct module {
    struct xp_span name; /* with its number */
};

static int module_order(const void *a, const void *b)
{
    return xp_span_cmp(((const struct module *)a)->name, ((const struct module *)b)->name);
}

static struct xp_span make_name(struct xp_span name, uint64_t id, struct xp_arena *a)
{
    uint8_t *p = xp_arena_alloc(a, name.n + 24);
    if (!p)
        return (struct xp_span){0};
    if (name.n)
        memcpy(p, name.p, name.n);
    struct xp_buf b;
    xp_buf_init(&b, 32);
    xp_buf_fmt(&b, "(%llu)", (unsigned long long)id);
    memcpy(p + name.n, b.p, b.n);
    struct xp_span s = xp_span_of(p, name.n + b.n);
    xp_buf_fini(&b);
    return s;
}

/* The head of an event's metadata: its stats, and in one of them the module. */
static bool module_of(const struct part *p, const struct part_plane *pl,
                      const struct part_evmeta *m, struct xp_span body, struct xp_span *name,
                      uint64_t *id)
{
    struct xp_span rest = body, stat;
    bool found = false;
    *id = (uint64_t)m->id;
    while (head_field(rest, 5, &stat)) {
        struct xp_pb r = xp_pb_open(stat);
        struct xp_pb_field f;
        int64_t key = 0;
        uint64_t num = 0;
        struct xp_span bytes = {0}, module;
        while (!found && r.p < r.end && xp_varint_read(r.p, r.end, &num) && num == 8 &&
               xp_pb_next(&r, &f))
            key = (int64_t)f.value;
        struct xp_span kind = part_stat_name(p, pl, key);
        if (is_hlo_stat(kind) && head_field(stat, 6, &bytes) && head_field(bytes, 1, &module)) {
            *name = (struct xp_span){0};
            head_field(module, 1, name);
            found = true;
        } else if (xp_span_eq(kind, XP_SPAN_LIT("program_id"))) {
            r = xp_pb_open(stat);
            while (xp_pb_next(&r, &f))
                if (f.num == 3 || f.num == 4)
                    *id = f.value;
            return found;
        }
        rest = xp_span_of(stat.p + stat.n, (size_t)(body.p + body.n - (stat.p + stat.n)));
    }
    uint64_t given;
    if (found && number_of(part_str(p, m->name), &given))
        *id = given;
    return found;
}

static enum xp_status plane_modules(const struct part *p, const struct part_plane *pl,
                                    struct xp_arena *scratch, struct vec *out, struct xp_error *err)
{
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        const struct part_evmeta *m = &pl->evmeta[i];
        struct xp_span body, name;
        uint64_t id;
        if (!m->at)
            continue;
        XP_TRY(part_read(p, m->at, m->len < HEAD_MAX ? m->len : HEAD_MAX, HEAD_MAX, scratch, &body,
                         err));
        if (!module_of(p, pl, m, body, &name, &id))
            continue;
        struct module *x = vec_push(out, sizeof *x);
        if (x)
            x->name = make_name(name, id, scratch);
        if (!x || !x->name.p)
            return xp_fail(err, XP_BUSY, 0, "no memory left for the list of modules");
    }
    return XP_OK;
}

/* A partial: a byte that says whether all could be read, then names, each after its length. */
static enum xp_status names_of(const struct vec *modules, bool whole, struct xp_arena *a,
                               struct xp_span *partial, struct xp_error *err)
{
    const struct module *m = modules->p;
    size_t n = 1;
    for (size_t i = 0; i < modules->n; i++)
        n += sizeof(uint32_t) + m[i].name.n;
    uint8_t *p = xp_arena_alloc(a, n);
    if (!p)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the list of modules");
    *partial = xp_span_of(p, n);
    *p++ = whole;
    for (size_t i = 0; i < modules->n; i++) {
        uint32_t length = (uint32_t)m[i].name.n;
        memcpy(p, &length, sizeof length);
        memcpy(p + sizeof length, m[i].name.p, length);
        p += sizeof length + length;
    }
    return XP_OK;
}

static enum xp_status modules_map(const struct tool_host *host, const struct tool_args *args,
                                  struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    (void)args;
    const struct part *p = host->part;
    struct vec modules = {0};
    enum xp_status st = XP_OK;
    bool whole = readable(p);
    for (uint32_t k = 0; whole && st == XP_OK && k < p->nplanes; k++)
        if (xp_span_eq(plane_name(p, k), XP_SPAN_LIT("/host:metadata")))
            st = plane_modules(p, &p->planes[k], a, &modules, err);
    if (st == XP_OK)
        st = names_of(&modules, whole, a, partial, err);
    vec_free(&modules);
    return st;
}

static enum xp_status modules_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                                    struct xp_span *both, struct xp_error *err)
{
    if (!x.n || !y.n) {
        *both = x.n ? x : y;
        return XP_OK;
    }
    uint8_t *p = xp_arena_alloc(a, x.n + y.n - 1);
    if (!p)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the list of modules");
    memcpy(p, x.p, x.n);
    memcpy(p + x.n, y.p + 1, y.n - 1);
    *p = x.p[0] && y.p[0];
    *both = xp_span_of(p, x.n + y.n - 1);
    return XP_OK;
}

static bool names_read(struct xp_span s, struct vec *modules)
{
    uint32_t length;
    while (s.n >= sizeof length) {
        memcpy(&length, s.p, sizeof length);
        struct module *m = vec_push(modules, sizeof *m);
        if (!m || length > s.n - sizeof length)
            return false;
        m->name = xp_span_of(s.p + sizeof length, length);
        s = xp_span_of(s.p + sizeof length + length, s.n - sizeof length - length);
    }
    return s.n == 0;
}

/* Joined by commas, each once. */
static enum xp_status modules_render(struct xp_span merged, const struct tool_args *args,
                                     struct xp_arena *scratch, struct out *out,
                                     struct xp_error *err)
{
    (void)args, (void)scratch;
    struct vec modules = {0};
    bool whole = merged.n && merged.p[0];
    bool ok = !whole || names_read(xp_span_of(merged.p + 1, merged.n - 1), &modules);
    const struct module *m = modules.p;
    out->content_type = "text/plain";
    if (ok && whole && !modules.n)
        xp_buf_str(&out->text, "NO_MODULE");
    if (ok && modules.n)
        qsort(modules.p, modules.n, sizeof *m, module_order);
    for (size_t i = 0; ok && i < modules.n; i++) {
        if (i && xp_span_eq(m[i].name, m[i - 1].name))
            continue;
        if (i)
            xp_buf_byte(&out->text, ',');
        xp_buf_span(&out->text, m[i].name);
    }
    vec_free(&modules);
    return ok ? XP_OK : foreign(err);
}

const struct tool tool_module_list = {
    .id = "module_list", .map = modules_map, .merge = modules_merge, .render = modules_render};
