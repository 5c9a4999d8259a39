#include "lib/base/hash.h"
#include "shard/derive/framework_op.h"
#include "shard/hlo/hlo_text.h"
#include "shard/stats/hlo_cost.h"
#include "shard/stats/op_stats_int.h"

/* The programs of a profile: /host:metadata has an event metadata for each, with its HloProto. They
 * are read when the host's ops are worked out and dropped with the scratch; what ops need of them
 * is copied. */

#define EXPRESSION_MAX ((size_t)1000000) /* longer ones are cut, as in XProf */
#define CHILD_DEPTH 8

struct module {
    uint64_t program;
    struct hlo_module *m;
    uint32_t *slots; /* instructions by name; made at the first question */
    size_t mask;
};

struct op_hlo {
    struct vec modules; /* struct module */
    uint32_t last;      /* asked for last time */
};

/* --- reading them --- */

/* "module(123)": 123. */
static bool number_at_end(struct xp_span name, uint64_t *id)
{
    uint64_t v = 0, scale = 1;
    size_t i = name.n;
    if (i < 3 || name.p[--i] != ')')
        return false;
    size_t end = i;
    for (; i && name.p[i - 1] >= '0' && name.p[i - 1] <= '9' && end - i < 20; scale *= 10)
        v += scale * (uint64_t)(name.p[--i] - '0');
    *id = v;
    return i < end && i && name.p[i - 1] == '(';
}

/* The HloProto in a metadata; old collectors spell it differently. */
static bool proto_of(const struct op_build *b, const struct part_plane *pl, struct xp_span body,
                     struct xp_span *proto)
{
    struct xspace_stats it = xspace_stats_open(body, 5);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s)) {
        struct xp_span name = part_stat_name(b->part, pl, s.metadata_id);
        if ((xp_span_eq(name, XP_SPAN_LIT("HLO Proto")) ||
             xp_span_eq(name, XP_SPAN_LIT("Hlo Proto"))) &&
            s.bytes.n) {
            *proto = s.bytes;
            return true;
        }
    }
    return false;
}

static bool is_training(const struct hlo_module *m)
{
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        struct hlo_meta meta = hlo_meta_read(m->instrs[i].metadata);
        if ((meta.op_name.n || meta.op_type.n) && framework_is_gradient(meta.op_name, meta.op_type))
            return true;
    }
    return false;
}

static enum xp_status add_module(struct op_build *b, uint64_t program, struct xp_span proto)
{
    struct xp_error err = {0};
    struct hlo_module *m;
    enum xp_status st = hlo_decode(proto, b->scratch, &m, &err);
    if (st == XP_BUSY)
        return op_busy(b);
    if (st != XP_OK || hlo_text_check(m, &err) != XP_OK) /* a program that XLA would not take */
        return XP_OK;
    struct module *x = vec_push(&b->hlo->modules, sizeof *x);
    if (!x)
        return op_busy(b);
    *x = (struct module){.program = program, .m = m};
    b->host->training = b->host->training || is_training(m);
    return XP_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct op_program *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static enum xp_status read_plane(struct op_build *b, const struct part_plane *pl,
                                 struct vec *programs)
{
    for (uint32_t i = 0; i < pl->nevmeta; i++) {
        const struct part_evmeta *em = &pl->evmeta[i];
        struct xp_span body, proto, raw = {0}, name = {0};
        uint64_t id = (uint64_t)em->id;
        if (!em->at || !em->len)
            continue;
        XP_TRY(part_evmeta_body(b->part, em, b->scratch, &body, b->err));
        if (!proto_of(b, pl, body, &proto))
            continue;
        number_at_end(part_str(b->part, em->name), &id);
        hlo_get_span(proto, 1, &raw);
        hlo_get_span(raw, 1, &name);
        struct op_program *p = vec_push(programs, sizeof *p);
        if (!p || !op_text(b, name, &name))
            return op_busy(b);
        *p = (struct op_program){id, name};
        XP_TRY(add_module(b, id, proto));
    }
    return XP_OK;
}

static bool keep_programs(struct op_build *b, struct vec *programs)
{
    struct op_program *v = VEC(*programs, struct op_program);
    size_t n = 0;
    if (programs->n)
        qsort(v, programs->n, sizeof *v, by_id);
    for (size_t i = 0; i < programs->n; i++)
        if (!n || v[n - 1].id != v[i].id)
            v[n++] = v[i];
    programs->n = n;
    return op_keep(b, programs, sizeof *v, &b->stats->programs, &b->stats->nprograms);
}

enum xp_status op_hlo_open(struct op_build *b)
{
    struct vec programs = {0};
    enum xp_status st = XP_OK;
    b->hlo = xp_arena_zalloc(b->scratch, sizeof *b->hlo);
    if (!b->hlo)
        return op_busy(b);
    for (uint32_t i = 0; st == XP_OK && i < b->part->nplanes; i++)
        if (xp_span_eq(op_plane_name(b, i), XP_SPAN_LIT("/host:metadata")))
            st = read_plane(b, &b->part->planes[i], &programs);
    if (st == XP_OK && !keep_programs(b, &programs))
        st = op_busy(b);
    vec_free(&programs);
    return st;
}

void op_hlo_close(struct op_build *b)
{
    if (!b->hlo)
        return;
    for (size_t i = 0; i < b->hlo->modules.n; i++)
        free(VEC(b->hlo->modules, struct module)[i].slots);
    vec_free(&b->hlo->modules);
}

/* --- finding an instruction --- */

static bool index_names(struct module *x)
{
    size_t n = 256;
    while (n < (size_t)x->m->ninstrs * 2)
        n *= 2;
    x->slots = calloc(n, sizeof *x->slots);
    if (!x->slots)
        return false;
    x->mask = n - 1;
    for (uint32_t i = 0; i < x->m->ninstrs; i++) {
        size_t at = xp_hash(x->m->instrs[i].name) & x->mask;
        while (x->slots[at])
            at = (at + 1) & x->mask;
        x->slots[at] = i + 1;
    }
    return true;
}

static struct module *module_of(struct op_hlo *h, uint64_t program)
{
    struct module *v = VEC(h->modules, struct module);
    if (h->last < h->modules.n && v[h->last].program == program)
        return &v[h->last];
    for (uint32_t i = 0; i < h->modules.n; i++)
        if (v[i].program == program) {
            h->last = i;
            return &v[i];
        }
    return NULL;
}

static const struct hlo_instr *find(struct op_build *b, uint64_t program, struct xp_span name,
                                    struct module **module)
{
    struct module *x = *module = module_of(b->hlo, program);
    if (!x || (!x->slots && !index_names(x)))
        return NULL;
    for (size_t at = xp_hash(name) & x->mask; x->slots[at]; at = (at + 1) & x->mask) {
        const struct hlo_instr *in = &x->m->instrs[x->slots[at] - 1];
        if (xp_span_eq(in->name, name))
            return in;
    }
    return NULL;
}

/* --- what it says --- */

static bool expression(struct op_build *b, const struct hlo_module *m, const struct hlo_instr *in,
                       struct xp_span *out)
{
    struct xp_buf buf;
    struct hlo_text t = {.m = m, .opt = hlo_text_default, .scratch = b->scratch, .out = &buf};
    t.opt.large_constants = t.opt.metadata = t.opt.backend_config = t.opt.infeed_config = false;
    t.opt.operand_shapes = true;
    xp_buf_init(&buf, EXPRESSION_MAX);
    hlo_text_instr(&t, in);
    bool ok = op_text(b, xp_buf_all(&buf), out);
    xp_buf_fini(&buf);
    return ok;
}

static bool category(struct op_build *b, const struct hlo_module *m, const struct hlo_instr *in,
                     struct xp_span *out)
{
    struct xp_buf buf;
    xp_buf_init(&buf, 4096);
    hlo_text_category(m, in, &buf);
    bool ok = op_text(b, xp_buf_all(&buf), out);
    xp_buf_fini(&buf);
    return ok;
}

/* "name:type" */
static bool join(struct op_build *b, struct xp_span name, struct xp_span type, struct xp_span *out)
{
    struct xp_buf buf;
    xp_buf_init(&buf, (size_t)1 << 20);
    xp_buf_span(&buf, name);
    xp_buf_byte(&buf, ':');
    xp_buf_span(&buf, type);
    bool ok = op_text(b, xp_buf_all(&buf), out);
    xp_buf_fini(&buf);
    return ok;
}

static bool describe(struct op_build *b, const struct hlo_module *m, const struct hlo_instr *in,
                     struct op_metrics *op)
{
    struct hlo_meta meta = hlo_meta_read(in->metadata);
    return op_text(b, in->name, &op->name) && op_text(b, meta.deduplicated_name, &op->dedup_name) &&
           category(b, m, in, &op->category) && expression(b, m, in, &op->long_name) &&
           join(b, meta.op_name, meta.op_type, &op->provenance);
}

/* --- ops inside a fusion --- */

static const struct hlo_comp *fused(const struct hlo_module *m, const struct hlo_instr *in)
{
    if (in->opcode != HLO_OP_FUSION || !in->called.n)
        return NULL;
    const struct hlo_comp *c = hlo_comp_at(m, m->refs[in->called.at]);
    return c && c->fused_by != HLO_NONE ? c : NULL;
}

static bool children_of(struct op_build *b, const struct hlo_module *m, const struct hlo_instr *in,
                        uint64_t program, struct op_metrics *op, int depth)
{
    const struct hlo_comp *c = fused(m, in);
    struct vec v = {0};
    bool ok = true;
    for (uint32_t i = 0; c && depth && ok && i < c->instrs.n; i++) {
        const struct hlo_instr *child = hlo_instr_at(m, c->instrs.at + i);
        if (!child || child->opcode == HLO_OP_PARAMETER || child->opcode == HLO_OP_TUPLE)
            continue;
        struct op_metrics x = {.occurrences = 1};
        struct op_metrics *to = vec_push(&v, sizeof *to);
        ok = to && describe(b, m, child, &x) && children_of(b, m, child, program, &x, depth - 1);
        if (ok)
            *to = x;
    }
    ok = ok && op_keep(b, &v, sizeof(struct op_metrics), &op->children, &op->nchildren);
    vec_free(&v);
    return ok;
}

enum xp_status op_hlo_children(struct op_build *b, struct op_metrics *op)
{
    struct module *x;
    const struct hlo_instr *in = op->nchildren ? NULL : find(b, op->program, op->name, &x);
    if (!in || children_of(b, x->m, in, op->program, op, CHILD_DEPTH))
        return XP_OK;
    return op_busy(b);
}

/* --- an instruction by itself (GPU) --- */

static bool source_of(struct op_build *b, const struct hlo_module *m, const struct hlo_meta *meta,
                      struct op_source *out)
{
    struct xp_buf stack;
    xp_buf_init(&stack, (size_t)1 << 20);
    hlo_stack_text(m, meta->stack_frame_id, &stack);
    if (stack.n)
        xp_buf_byte(&stack, '\n'); /* as GetOpLocationStack ends each frame */
    struct xp_span s = xp_buf_all(&stack), file = meta->source_file;
    out->line = file.n ? meta->source_line : -1;
    const uint8_t *colon = !file.n && s.n ? memchr(s.p, ':', s.n) : NULL;
    if (colon) {
        file = xp_span_of(s.p, (size_t)(colon - s.p));
        out->line = 0;
        for (const uint8_t *p = colon + 1; p < s.p + s.n && *p >= '0' && *p <= '9'; p++)
            out->line = out->line > 99999999 ? out->line : out->line * 10 + (*p - '0');
    }
    bool ok = op_text(b, file, &out->file) && (!file.n || op_text(b, s, &out->stack));
    xp_buf_fini(&stack);
    return ok;
}

/* TfOpFullname: nothing when there is neither name nor type. */
static bool framework_name(struct op_build *b, const struct hlo_meta *meta, struct xp_span *out)
{
    *out = (struct xp_span){0};
    if (!meta->op_name.n && !meta->op_type.n)
        return true;
    return join(b, meta->op_name, meta->op_type, out);
}

static bool cost_of(const struct hlo_module *m, const struct hlo_instr *in, struct op_metrics *op)
{
    struct hlo_cost cost;
    if (!hlo_cost_of(m, in, &cost))
        return false;
    op->flops = cost.device_flops;
    op->model_flops = cost.flops;
    op->bytes = cost.read_bytes + cost.write_bytes + cost.other_bytes;
    op->run_flops = cost.call_device_flops;
    op->run_model_flops = cost.call_flops;
    op->run_bytes = cost.call_bytes;
    op->memory.known = op->bytes > 0;
    op->memory.bytes[OP_MEM_HBM][OP_MEM_READ] = cost.read_bytes;
    op->memory.bytes[OP_MEM_HBM][OP_MEM_WRITE] = cost.write_bytes;
    return true;
}

enum xp_status op_hlo_instruction(struct op_build *b, uint64_t program, struct xp_span name,
                                  struct op_metrics *out, struct xp_span *framework_op, bool *found)
{
    struct module *x;
    const struct hlo_instr *in = find(b, program, name, &x);
    *found = in != NULL;
    if (!in)
        return XP_OK;
    struct hlo_meta meta = hlo_meta_read(in->metadata);
    *out = (struct op_metrics){.program = program};
    if (!describe(b, x->m, in, out) || !source_of(b, x->m, &meta, &out->source) ||
        !framework_name(b, &meta, framework_op))
        return op_busy(b);
    out->provenance = *framework_op;
    return cost_of(x->m, in, out) ? XP_OK : op_busy(b);
}
