#include <stdio.h>

#include "shard/derive/vec.h"
#include "shard/tools/op_tool.h"
#include "shard/tools/op_tree.h"
#include "shard/tools/reports.h"

/* op_profile: where device time went, as a tree of program (or framework scope), category and op,
 * with and without idle time. */

#define FLUSH_AT ((size_t)64 << 10)

struct view {
    struct xp_json j;
    struct out *out;
    struct op_session session;
    uint64_t total_ps;
};

static void key_num(struct view *v, const char *key, double x)
{
    xp_json_key(&v->j, key), xp_json_double(&v->j, x);
}

static void key_text(struct view *v, const char *key, struct xp_span s)
{
    xp_json_key(&v->j, key), xp_json_span(&v->j, s);
}

static double capped(double x)
{
    return x < 1.0 ? x : 1.0;
}

/* --- metrics --- */

struct bandwidths {
    double gib[3], share[3];
};

static double gib_per_s(uint64_t bytes, double ns)
{
    return op_divide((double)bytes, ns) * OP_GIB_PER_GB;
}

static void bandwidths_of(const struct view *v, const struct op_metrics *m, struct bandwidths *b)
{
    const struct op_memory *mem = &m->memory;
    double ns = (double)m->time_ps / 1e3;
    uint64_t on_chip[OP_MEM_ACCESSES] = {0};
    for (int s = OP_MEM_CMEM; s < OP_MEM_SPACES; s++)
        for (int a = 0; a < OP_MEM_ACCESSES; a++)
            on_chip[a] += mem->bytes[s][a];
    b->gib[0] = gib_per_s(mem->bytes[OP_MEM_HBM][OP_MEM_READ], ns) +
                gib_per_s(mem->bytes[OP_MEM_HBM][OP_MEM_WRITE], ns);
    b->gib[1] = gib_per_s(on_chip[OP_MEM_READ], ns);
    b->gib[2] = gib_per_s(on_chip[OP_MEM_WRITE], ns);
    for (int i = 0; i < 3; i++)
        b->share[i] = capped(op_divide(b->gib[i], v->session.limits.gbs[i] * OP_GIB_PER_GB));
}

static void write_metrics(struct view *v, const struct op_metrics *m)
{
    double ns = (double)m->time_ps / 1e3, rate = op_divide(m->flops, ns);
    double part = op_divide((double)m->time_ps, (double)v->total_ps);
    struct bandwidths b;

    if (m->normalized_ps)
        rate *= op_divide((double)m->time_ps, (double)m->normalized_ps);
    double use = op_divide(rate, v->session.limits.peak_tflops * 1e3);
    bandwidths_of(v, m, &b);
    xp_json_key(&v->j, "metrics");
    xp_json_obj(&v->j);
    key_num(v, "flops", capped(use) * part);
    key_num(v, "uncappedFlops", use * part);
    xp_json_key(&v->j, "bandwidthUtils");
    xp_json_arr(&v->j);
    for (int i = 0; i < 3; i++)
        xp_json_double(&v->j, b.share[i]);
    xp_json_arr_end(&v->j);
    key_num(v, "rawTime", (double)m->time_ps);
    key_num(v, "rawFlops", m->model_flops);
    key_num(v, "bf16Flops", m->flops);
    key_num(v, "normalizedTimePs", (double)m->normalized_ps);
    xp_json_key(&v->j, "rawBytesAccessedArray");
    xp_json_arr(&v->j);
    for (int i = 0; i < 3; i++)
        xp_json_double(&v->j, b.gib[i] / OP_GIB_PER_GB * ns);
    xp_json_arr_end(&v->j);
    xp_json_key(&v->j, "occurrences"), xp_json_u64(&v->j, m->occurrences);
    key_num(v, "avgTimePs", op_divide((double)m->time_ps, (double)m->occurrences));
    xp_json_obj_end(&v->j);
}

/* --- nodes --- */

static void write_instruction(struct view *v, const struct op_node *n)
{
    const struct op_metrics *m = n->op;
    bool fusion = xp_span_ends(m->category, XP_SPAN_LIT(" fusion"));
    char program[24];
    snprintf(program, sizeof program, "%llu", (unsigned long long)m->program);
    xp_json_key(&v->j, "xla");
    xp_json_obj(&v->j);
    key_text(v, "op", (struct xp_span){0});
    key_text(v, "expression", m->long_name);
    /* Duplicates of a fusion may come from different ops. */
    key_text(v, "provenance", n->duplicates && fusion ? (struct xp_span){0} : m->provenance);
    key_text(v, "category", m->category);
    xp_json_key(&v->j, "computationPrimitiveSize"), xp_json_u64(&v->j, 0);
    xp_json_key(&v->j, "fingerprint"), xp_json_str(&v->j, "0");
    xp_json_key(&v->j, "programId"), xp_json_str(&v->j, program);
    xp_json_key(&v->j, "sourceInfo");
    xp_json_obj(&v->j);
    key_text(v, "fileName", m->source.file);
    xp_json_key(&v->j, "lineNumber"), xp_json_i64(&v->j, m->source.line);
    key_text(v, "stackFrame", m->source.stack);
    xp_json_obj_end(&v->j);
    key_text(v, "xprofKernelMetadata", (struct xp_span){0});
    if (n->duplicates && !fusion) {
        xp_json_key(&v->j, "layout");
        xp_json_obj(&v->j);
        xp_json_key(&v->j, "dimensions");
        xp_json_arr(&v->j);
        xp_json_arr_end(&v->j);
        xp_json_obj_end(&v->j);
    }
    xp_json_obj_end(&v->j);
}

/* The tree is as deep as names have scopes: brackets and commas of children are placed here, and
 * each node is written by a writer of its own. */
static void open_node(struct view *v, const struct op_node *n)
{
    struct xp_buf *b = &v->out->text;
    if (b->n > FLUSH_AT)
        out_flush(v->out);
    xp_json_init(&v->j, b);
    xp_json_obj(&v->j);
    key_text(v, "name", n->name);
    xp_json_key(&v->j, "numChildren"), xp_json_u64(&v->j, n->all_children);
    write_metrics(v, &n->sum);
    if (n->op)
        write_instruction(v, n);
    xp_json_key(&v->j, "children");
    xp_buf_byte(b, '[');
}

struct visit {
    const struct op_node *node;
    uint32_t next;
};

static bool write_tree(struct view *v, const struct op_node *root)
{
    struct xp_buf *b = &v->out->text;
    struct vec stack = {0};
    struct visit *top = vec_push(&stack, sizeof *top);
    if (!top)
        return false;
    *top = (struct visit){root, 0};
    open_node(v, root);
    while (stack.n) {
        top = &VEC(stack, struct visit)[stack.n - 1];
        if (top->next == top->node->nchildren || out_cancelled(v->out)) {
            xp_buf_str(b, "]}");
            stack.n--;
            continue;
        }
        if (top->next)
            xp_buf_byte(b, ',');
        const struct op_node *child = top->node->children[top->next++];
        open_node(v, child);
        if (!(top = vec_push(&stack, sizeof *top)))
            break;
        *top = (struct visit){child, 0};
    }
    bool ok = stack.n == 0;
    vec_free(&stack);
    return ok;
}

/* --- the answer --- */

static enum op_grouping grouping_of(const struct tool_args *args)
{
    struct xp_span by;
    if (tool_arg(args, "group_by", &by)) {
        if (xp_span_eq(by, XP_SPAN_LIT("category")))
            return OP_BY_CATEGORY;
        if (xp_span_eq(by, XP_SPAN_LIT("provenance")))
            return OP_BY_PROVENANCE;
    }
    return OP_BY_PROGRAM;
}

static enum xp_status write_grouping(struct view *v, const struct op_stats *s, enum op_grouping by,
                                     bool idle, struct xp_arena *a, struct xp_error *err)
{
    static const char *const keys[][2] = {{"byProgramExcludeIdle", "byProgram"},
                                          {"byCategoryExcludeIdle", "byCategory"},
                                          {"byProvenanceExcludeIdle", "byProvenance"}};
    struct op_tree t;
    XP_TRY(op_tree_build(&t, s, by, idle, a, err));
    v->total_ps = idle ? s->device.total_ps : s->device.total_op_ps;
    xp_buf_fmt(&v->out->text, ",\"%s\":", keys[by][idle]);
    if (!write_tree(v, t.root))
        return xp_fail(err, XP_BUSY, 0, "no memory left to write the op profile");
    return XP_OK;
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    static const char *const hardware[] = {"UNKNOWN_HARDWARE", "CPU_ONLY", "GPU", "TPU"};
    struct op_stats *s;
    struct view v = {.out = out};
    enum op_grouping by = grouping_of(args);

    if (args->csv)
        return tool_no_csv(err);
    XP_TRY(op_stats_unpack(merged, scratch, &s, err));
    op_stats_session(s, &v.session);
    xp_json_init(&v.j, &out->text);
    xp_json_obj(&v.j);
    xp_json_key(&v.j, "deviceType");
    xp_json_str(&v.j, hardware[v.session.hardware <= OP_HW_TPU ? v.session.hardware : 0]);
    key_num(&v, "aggDvfsTimeScaleMultiplier",
            op_divide((double)s->device.total_op_norm_ps, (double)s->device.total_op_ps));
    XP_TRY(write_grouping(&v, s, by, true, scratch, err));
    XP_TRY(write_grouping(&v, s, by, false, scratch, err));
    xp_buf_byte(&out->text, '}');
    return XP_OK;
}

const struct tool tool_op_profile = {
    .id = "op_profile",
    .map = op_tool_map_children,
    .merge = op_tool_merge,
    .render = render,
    .report = &report_op_profile,
};
