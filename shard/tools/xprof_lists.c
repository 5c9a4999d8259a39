#include "shard/tools/xprof_lists.h"

#include "lib/base/json_out.h"
#include "lib/base/pb_wire.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/derive/vec.h"

#define HEAD_MAX ((uint64_t)64 << 10) /* of a module: its name is at the front */

static bool readable(const struct part *p)
{
    return p->damage.status == XP_OK && !p->partial && !p->utf8_bad;
}

static bool all_readable(const struct tool_host *hosts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!readable(hosts[i].part))
            return false;
    return n;
}

/* XProf gives no tools when a file of any host is bad, though it looks at the first alone. Of the
 * others only the index is there. */
static bool list_readable(const struct tool_host *hosts, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (hosts[i].part->cut)
            return false;
    return n && readable(hosts[0].part);
}

static struct xp_span plane_name(const struct part *p, uint32_t i)
{
    return part_str(p, p->planes[i].name);
}

/* --- tools --- */

struct found {
    bool gpu, hlo, megascale, counters;
};

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

static struct found look(const struct part *p)
{
    struct found f = {0};
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        struct xp_span name = plane_name(p, i);
        f.gpu |= xp_span_starts(name, XP_SPAN_LIT("/device:GPU:"));
        if (xp_span_eq(name, XP_SPAN_LIT("/host:metadata")))
            for (uint32_t k = 0; k < pl->nstatmeta; k++)
                f.hlo |= is_hlo_stat(part_str(p, pl->statmeta[k].name));
        if (xp_span_eq(name, XP_SPAN_LIT("/host:CPU")))
            for (uint32_t k = 0; k < pl->nevmeta; k++)
                f.megascale |=
                    xp_span_starts(part_str(p, pl->evmeta[k].name), XP_SPAN_LIT("MegaScale:"));
        bool counts = false;
        for (uint32_t k = 0; k < pl->nstatmeta; k++)
            counts |= pl->statmeta[k].kind == STAT_COUNTER_VALUE;
        if (counts && xp_span_starts(name, XP_SPAN_LIT("/device:TPU:")))
            f.counters |= plane_counts(p, pl);
    }
    return f;
}

enum xp_status xprof_run_tools(const struct tool_host *hosts, size_t n, struct out *out,
                               struct xp_error *err)
{
    (void)err;
    struct xp_json j;
    xp_json_init(&j, &out->text);
    out->content_type = "application/json";
    xp_json_arr(&j);
    if (list_readable(hosts, n)) {
        struct found f = look(hosts[0].part);
        const struct {
            const char *id;
            bool on;
        } tools[] = {
            {"overview_page", true},
            {"trace_viewer@", true},
            {"graph_viewer", f.hlo},
            {"op_profile", true},
            {"input_pipeline_analyzer", true},
            {"kernel_stats", f.gpu},
            {"memory_profile", true},
            {"memory_viewer", f.hlo},
            {"roofline_model", true},
            {"perf_counters", f.counters},
            {"framework_op_stats", true},
            {"hlo_stats", true},
            {"megascale_stats", f.megascale},
            {"kernel_utilization", f.counters},
            {"utilization_viewer", f.counters},
        };
        for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
            if (tools[i].on)
                xp_json_str(&j, tools[i].id);
    }
    xp_json_arr_end(&j);
    return XP_OK;
}

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

enum xp_status xprof_module_list(const struct tool_host *hosts, size_t n, struct xp_arena *scratch,
                                 struct out *out, struct xp_error *err)
{
    struct vec modules = {0};
    enum xp_status st = XP_OK;
    out->content_type = "text/plain";
    if (!all_readable(hosts, n))
        return XP_OK;
    for (size_t i = 0; st == XP_OK && i < n; i++)
        for (uint32_t k = 0; st == XP_OK && k < hosts[i].part->nplanes; k++)
            if (xp_span_eq(plane_name(hosts[i].part, k), XP_SPAN_LIT("/host:metadata")))
                st =
                    plane_modules(hosts[i].part, &hosts[i].part->planes[k], scratch, &modules, err);
    if (st == XP_OK && !modules.n)
        xp_buf_str(&out->text, "NO_MODULE");
    const struct module *m = modules.p;
    if (modules.n)
        qsort(modules.p, modules.n, sizeof *m, module_order);
    for (size_t i = 0; st == XP_OK && i < modules.n; i++) {
        if (i && xp_span_eq(m[i].name, m[i - 1].name))
            continue;
        if (i)
            xp_buf_byte(&out->text, ',');
        xp_buf_span(&out->text, m[i].name);
    }
    vec_free(&modules);
    return st;
}
