/* graph_viewer: one HLO module as text, as a graph, as bytes. What is wrong is said in XProf's
 * words and is an internal error (500), as it is there. */
#include "shard/hlo/hlo_dot.h"
#include "shard/hlo/hlo_pbtxt.h"
#include "shard/hlo/hlo_text.h"
#include "shard/tools/dot_page.h"
#include "shard/tools/kernel_text.h"
#include "shard/tools/modules.h"
#include "shard/tools/reports_more.h"

#include <strings.h>

#include "lib/base/json_out.h"

#define FLUSH_AT ((size_t)64 << 10)
#define NAMES_MAX 100000
#define WIDTH_DEFAULT 3

struct request {
    const struct tool_args *args;
    struct xp_arena *scratch;
    struct out *out;
    struct xp_error *err;
    struct xp_span proto, node;
};

/* --- arguments --- */

static struct xp_span arg(const struct request *r, const char *name)
{
    struct xp_span s = {0};
    tool_arg(r->args, name, &s);
    return s;
}

static bool arg_is(const struct request *r, const char *name, const char *value)
{
    return xp_span_eq(arg(r, name), xp_span_str(value));
}

static uint32_t width(const struct request *r)
{
    struct xp_span s = arg(r, "graph_width");
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return WIDTH_DEFAULT;
        v = v > UINT32_MAX ? v : v * 10 + (uint64_t)(s.p[i] - '0');
    }
    return s.n == 0 ? WIDTH_DEFAULT : v > INT32_MAX ? INT32_MAX : (uint32_t)v;
}

static enum xp_status fail(struct request *r, const char *text)
{
    return xp_fail(r->err, XP_INTERNAL, 0, "%s", text);
}

static enum xp_status fail_named(struct request *r, const char *text, struct xp_span name,
                                 const char *tail)
{
    return xp_fail(r->err, XP_INTERNAL, 0, "%s%.*s%s", text, name.n < 120 ? (int)name.n : 120,
                   (const char *)name.p, tail);
}

/* --- the module and what is in it --- */

static enum xp_status load(struct request *r, struct hlo_module **m)
{
    XP_TRY(hlo_decode(r->proto, r->scratch, m, r->err));
    return hlo_text_check(*m, r->err);
}

static bool same_name(struct xp_span a, struct xp_span b)
{
    return a.n == b.n && (a.n == 0 || strncasecmp((const char *)a.p, (const char *)b.p, a.n) == 0);
}

static uint32_t find_instr(const struct hlo_module *m, struct xp_span name)
{
    if (name.n && name.p[0] == '%')
        name = xp_span_of(name.p + 1, name.n - 1);
    for (uint32_t i = 0; i < m->ninstrs; i++)
        if (same_name(m->instrs[i].name, name))
            return i;
    return HLO_NONE;
}

static uint32_t find_comp(const struct hlo_module *m, struct xp_span name)
{
    for (uint32_t i = 0; i < m->ncomps; i++)
        if (same_name(m->comps[i].name, name))
            return i;
    return HLO_NONE;
}

/* --- text --- */

static void flush_text(void *ctx)
{
    struct out *out = ctx;
    if (out->text.n > FLUSH_AT)
        out_flush(out);
}

static enum xp_status answer_text(struct request *r, bool large)
{
    struct hlo_module *m;

    XP_TRY(load(r, &m));
    struct hlo_text t = {
        .m = m,
        .opt = large ? hlo_text_default : hlo_text_short,
        .scratch = r->scratch,
        .out = &r->out->text,
        .flush = flush_text,
        .ctx = r->out,
    };
    t.opt.large_constants = large;
    t.opt.metadata = arg_is(r, "show_metadata", "true");
    r->out->content_type = "application/octet-stream";
    return hlo_text_module(&t, r->err);
}

static enum xp_status answer_short(struct request *r)
{
    return answer_text(r, false);
}

static enum xp_status answer_long(struct request *r)
{
    return answer_text(r, true);
}

static enum xp_status answer_pb(struct request *r)
{
    r->out->content_type = "application/octet-stream";
    xp_buf_span(&r->out->text, r->proto);
    return XP_OK;
}

static enum xp_status answer_pbtxt(struct request *r)
{
    r->out->content_type = "application/octet-stream";
    return hlo_pbtxt(r->proto, &r->out->text, flush_text, r->out, r->err);
}

static enum xp_status answer_json(struct request *r)
{
    return fail(r, "Not implemented");
}

/* --- neighbours by name --- */

static const struct hlo_run *run_of(const struct hlo_instr *in, bool users)
{
    return users ? &in->users : &in->operands;
}

/* Names of operands or users; get-tuple-elements are looked through. The way down is a stack; a
 * ring of them runs into the limit of names or of the stack. */
static void put_names(struct request *r, struct xp_json *j, const struct hlo_module *m,
                      uint32_t instr, bool users)
{
    struct {
        uint32_t instr, next;
    } *stack = xp_arena_alloc(r->scratch, ((size_t)m->ninstrs + 1) * sizeof *stack);
    uint32_t depth = 0, steps = 0;

    xp_json_arr(j);
    if (stack)
        stack[depth].instr = instr, stack[depth++].next = 0;
    while (depth && steps++ < NAMES_MAX) {
        const struct hlo_run *run = run_of(&m->instrs[stack[depth - 1].instr], users);
        if (stack[depth - 1].next == run->n) {
            depth--;
            continue;
        }
        uint32_t i = m->refs[run->at + stack[depth - 1].next++];
        const struct hlo_instr *in = &m->instrs[i];
        if (!xp_span_starts(in->name, XP_SPAN_LIT("get-tuple-element")))
            xp_json_span(j, in->name);
        else if (depth < m->ninstrs)
            stack[depth].instr = i, stack[depth++].next = 0;
    }
    xp_json_arr_end(j);
}

static enum xp_status not_there(struct request *r)
{
    return fail_named(r, "Couldn't find HloInstruction or HloComputation named ", r->node, ".");
}

static enum xp_status answer_neighbours(struct request *r)
{
    struct hlo_module *m;
    struct xp_json j;

    if (r->node.n == 0)
        return fail(r, "node_name should not be empty");
    XP_TRY(load(r, &m));
    uint32_t instr = find_instr(m, r->node);
    if (instr == HLO_NONE)
        return find_comp(m, r->node) == HLO_NONE
                   ? not_there(r)
                   : fail(r, "GetAdjacentNodes is not implemented for HloComputation.");
    r->out->content_type = "text/plain";
    xp_json_init(&j, &r->out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "consumer_names");
    put_names(r, &j, m, instr, true);
    xp_json_key(&j, "operand_names");
    put_names(r, &j, m, instr, false);
    xp_json_obj_end(&j);
    return XP_OK;
}

/* --- Model Explorer's graph: XProf's open build has none, and says so without a word --- */

/* For a node that is not there, XProf prints the module. */
static enum xp_status print_module(struct request *r, const struct hlo_module *m)
{
    struct hlo_text t = {
        .m = m,
        .opt = hlo_text_default,
        .scratch = r->scratch,
        .out = &r->out->text,
        .flush = flush_text,
        .ctx = r->out,
    };
    r->out->content_type = "text/plain";
    return hlo_text_module(&t, r->err);
}

static enum xp_status answer_me_graph(struct request *r)
{
    struct hlo_module *m;

    XP_TRY(load(r, &m));
    if (find_instr(m, r->node) != HLO_NONE || find_comp(m, r->node) != HLO_NONE)
        return fail(r, "");
    return print_module(r, m);
}

/* --- a custom call's program --- */

static enum xp_status answer_custom_call(struct request *r)
{
    struct hlo_module *m;

    XP_TRY(load(r, &m));
    uint32_t instr = find_instr(m, r->node);
    if (instr == HLO_NONE)
        return print_module(r, m);
    struct xp_span config = hlo_backend_config(m, &m->instrs[instr]);
    if (config.n == 0)
        return fail(r, "Backend config not found");
    r->out->content_type = "text/plain";
    return kernel_text(config, true, r->scratch, &r->out->text, r->err);
}

/* --- graphs --- */

struct page {
    struct xp_buf dot;
    struct out *out;
    bool html;
};

static void flush_graph(void *ctx)
{
    struct page *p = ctx;
    if (p->dot.n < FLUSH_AT)
        return;
    if (p->html)
        dot_page_text(&p->out->text, xp_buf_all(&p->dot));
    else
        xp_buf_span(&p->out->text, xp_buf_all(&p->dot));
    p->dot.n = 0;
    out_flush(p->out);
}

static enum xp_status draw(struct request *r, const struct hlo_module *m, struct page *page)
{
    struct hlo_dot_options opt = {
        .backend_config = arg_is(r, "show_metadata", "true"),
        .fusions = !arg_is(r, "merge_fusion", "true"),
    };
    struct hlo_dot_out to = {r->scratch, &page->dot, flush_graph, page};
    uint32_t comp = find_comp(m, r->node), instr = find_instr(m, r->node);

    if (comp != HLO_NONE)
        return hlo_dot_comp(m, comp, &opt, &to, r->err);
    if (instr != HLO_NONE)
        return hlo_dot_around(m, instr, width(r), &opt, &to, r->err);
    return not_there(r);
}

static enum xp_status answer_graph(struct request *r)
{
    struct page page = {.out = r->out, .html = arg_is(r, "format", "html")};
    struct hlo_module *m;

    XP_TRY(load(r, &m));
    if (r->node.n == 0)
        return fail(r, "node_name should not be empty");
    if (!page.html && !arg_is(r, "format", "dot"))
        return fail(r, "Can't render as URL; no URL renderer was registered.");
    r->out->content_type = "text/html";
    xp_buf_init(&page.dot, OUT_MAX);
    if (page.html)
        dot_page_begin(&r->out->text);
    enum xp_status status = draw(r, m, &page);
    if (status == XP_OK && page.dot.failed)
        status = xp_fail(r->err, XP_TOO_LARGE, 0, "the graph is too large");
    if (page.html) {
        dot_page_text(&r->out->text, xp_buf_all(&page.dot));
        dot_page_end(&r->out->text, "dot");
    } else {
        xp_buf_span(&r->out->text, xp_buf_all(&page.dot));
    }
    xp_buf_fini(&page.dot);
    return status;
}

/* --- the tool --- */

static const struct kind {
    const char *type;
    enum xp_status (*answer)(struct request *r);
    bool by_node; /* node_name may stand for the module */
} kinds[] = {
    {"adj_nodes", answer_neighbours, true},
    {"custom_call", answer_custom_call, true},
    {"graph", answer_graph, true},
    {"json", answer_json, false},
    {"long_txt", answer_long, false},
    {"me_graph", answer_me_graph, true},
    {"pb", answer_pb, false},
    {"pbtxt", answer_pbtxt, false},
    {"short_txt", answer_short, false},
};

static const struct kind *kind_of(struct xp_span type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (xp_span_eq(type, xp_span_str(kinds[i].type)))
            return &kinds[i];
    return NULL;
}

/* What is not found is an error of the server's for this tool. */
static enum xp_status internal(enum xp_status status, struct xp_error *err)
{
    if (status == XP_NOT_FOUND || status == XP_CORRUPT) {
        err->status = XP_INTERNAL;
        return XP_INTERNAL;
    }
    return status;
}

static enum xp_status graph_viewer(const struct tool_host *hosts, size_t n,
                                   const struct tool_args *args, struct xp_arena *scratch,
                                   struct out *out, struct xp_error *err)
{
    struct request r = {.args = args, .scratch = scratch, .out = out, .err = err};
    struct xp_span type = arg(&r, "type");
    const struct kind *kind = kind_of(type);

    if (args->csv)
        return tool_no_csv(err);
    r.node = arg(&r, "node_name");
    enum xp_status status = modules_find(hosts, n, args, scratch, &r.proto, err);
    if (status == XP_NOT_FOUND && kind && kind->by_node && r.node.n)
        status = modules_find_node(hosts, n, r.node, scratch, &r.proto, err);
    if (status != XP_OK)
        return internal(status, err);
    if (!type.p)
        return fail(&r, "Graph viewer must provide a type option.");
    if (!kind)
        return fail_named(&r, "Unknown graph viewer type option: ", type, "");
    return internal(kind->answer(&r), err);
}

const struct tool tool_graph_viewer = {.id = "graph_viewer",
                                       .index_only = true,
                                       .tolerant = true,
                                       .answer = graph_viewer,
                                       .report = &report_graph_viewer};
