#include "lib/base/hash.h"
#include "shard/derive/framework_op.h"
#include "shard/stats/op_gpu_kernels.h"

/* A stream's kernels: consecutive ones of one HLO instruction (and group) are one run of it; others
 * that a framework op launched count under that op and the kernel's name. */

/* An instruction that is running. */
struct run {
    bool known;
    uint64_t program;
    struct xp_span name;
    int64_t group;
    uint64_t occurrences, time_ps, flops, bytes;
    bool eager;
    double energy_j;
    struct op_metrics op; /* of the instruction */
};

struct gpu_walk {
    struct op_build *b;
    uint32_t plane;
    struct op_table ops;
    uint64_t op_ps;
    int64_t first_ps, last_ps;
    bool any;
    struct run run;
    struct xp_span name; /* of the plane */
    int64_t now_ps;      /* begin of the event that is looked at */
    bool begins;         /* in the range that is looked at: it counts as one */
    struct gpu_kernels *kernels;
};

static struct xp_span text_of(const struct op_build *b, const struct side_stat *s)
{
    return s && s->type == SIDE_STR ? part_str(b->part, (uint32_t)s->num) : (struct xp_span){0};
}

/* What follows the last "::". */
static struct xp_span innermost(struct xp_span names)
{
    for (size_t i = names.n; i >= 2; i--)
        if (names.p[i - 1] == ':' && names.p[i - 2] == ':')
            return xp_span_of(names.p + i, names.n - i);
    return names;
}

/* --- runs --- */

static bool enter(struct gpu_walk *w, const struct op_metrics *op)
{
    struct op_metrics *to = op_table_get(&w->ops, op->program, op->name);
    if (!to)
        return false;
    bool fresh = !to->occurrences && !to->category.n;
    if (fresh) {
        op_texts(to, op);
        to->eager = op->eager;
    }
    bool eager = to->eager;
    op_add(to, op);
    to->eager = eager;
    w->op_ps += op->self_ps;
    return true;
}

static bool end_run(struct gpu_walk *w)
{
    struct run *r = &w->run;
    if (!r->known)
        return true;
    struct op_metrics op = r->op;
    double n = (double)r->occurrences;
    double flops = op.flops > 0 ? op.flops : (double)r->flops;
    double model = op.model_flops > 0 ? op.model_flops : (double)r->flops;
    op.eager = r->eager;
    op.occurrences = r->occurrences;
    op.time_ps = op.self_ps = r->time_ps;
    op.energy_j = r->energy_j;
    op.flops = n * flops;
    op.model_flops = model > 0 ? n * model : op.flops;
    op.bytes = r->occurrences * (op.bytes ? op.bytes : r->bytes);
    op.run_flops = n * op.run_flops;
    op.run_model_flops = n * op.run_model_flops;
    op.run_bytes = r->occurrences * op.run_bytes;
    op.memory = (struct op_memory){0};
    op_memory_add(&op.memory, &r->op.memory, r->occurrences);
    *r = (struct run){0};
    return enter(w, &op);
}

static uint64_t number(const struct side_stat *s)
{
    return s ? s->num : 0;
}

static enum xp_status instruction(struct gpu_walk *w, const struct side_cursor *side,
                                  const struct op_metrics *op, uint64_t program, int64_t group,
                                  uint64_t time_ps)
{
    struct run *r = &w->run;
    const struct side_stat *s;
    bool same = r->program == program && r->group == group && xp_span_eq(r->name, op->name);
    if (r->known && !same && !end_run(w))
        return op_busy(w->b);
    if (!r->known) {
        *r = (struct run){.known = true, .program = program, .name = op->name, .group = group};
        r->op = *op;
        r->op.first_begin_ps = w->now_ps;
        r->op.first_plane = w->name;
        r->eager = number(side_get(side, STAT_IS_EAGER)) != 0;
    }
    r->occurrences += w->begins;
    r->time_ps += time_ps;
    if (w->begins && (s = side_get(side, STAT_VDD_ENERGY_J)) && s->type == SIDE_DOUBLE)
        r->energy_j += xp_pb_double(s->num);
    if ((s = side_get(side, STAT_FLOPS)))
        r->flops = s->num;
    if ((s = side_get(side, STAT_BYTES_ACCESSED)))
        r->bytes = s->num;
    return XP_OK;
}

static bool framework_kernel(struct gpu_walk *w, const struct side_cursor *side,
                             struct xp_span full, struct xp_span kernel, uint64_t time_ps)
{
    struct framework_op fop = framework_op_parse(full);
    struct op_metrics op = {.occurrences = w->begins, .time_ps = time_ps, .self_ps = time_ps};
    struct xp_buf name;
    xp_buf_init(&name, (size_t)1 << 20);
    xp_buf_span(&name, fop.name);
    xp_buf_byte(&name, '/');
    xp_buf_span(&name, kernel);
    bool ok = op_text(w->b, xp_buf_all(&name), &op.name);
    xp_buf_fini(&name);
    op.category = fop.type.n ? fop.type : XP_SPAN_LIT("unknown");
    op.provenance = full;
    op.source.line = -1;
    op.first_begin_ps = w->now_ps;
    op.first_plane = w->name;
    op.eager = number(side_get(side, STAT_IS_EAGER)) != 0;
    return ok && end_run(w) && enter(w, &op);
}

/* --- events --- */

static enum xp_status event(struct gpu_walk *w, const struct side_cursor *side,
                            const struct derive_event *ev, int64_t group)
{
    struct op_build *b = w->b;
    const struct part_plane *pl = &b->part->planes[w->plane];
    struct xp_span hlo_op = text_of(b, side_get(side, STAT_HLO_OP));
    struct xp_span tf_op = text_of(b, side_get(side, STAT_TF_OP));
    struct xp_span module = text_of(b, side_get(side, STAT_HLO_MODULE));
    struct xp_span kernel = part_event_name(b->part, pl, ev->name);
    const struct side_stat *program = side_get(side, STAT_PROGRAM_ID);
    const struct side_stat *details = side_get(side, STAT_KERNEL_DETAILS);
    const struct gpu_instruction *known = NULL;
    uint64_t time_ps = (uint64_t)ev->end_ps - (uint64_t)ev->begin_ps;

    bool is_hlo = hlo_op.n && (module.n || program);
    if (is_hlo && program)
        XP_TRY(gpu_instruction_get(w->kernels, program->num, innermost(hlo_op), &known));
    if (details && time_ps >= 1000) {
        struct gpu_launch launch = {
            .name = part_str(b->part, pl->evmeta[ev->name].name),
            .details = text_of(b, details),
            .tf_op = tf_op,
            .equation = text_of(b, side_get(side, STAT_EQUATION)),
            .hlo = known,
            .ns = time_ps / 1000,
            .begins = w->begins,
        };
        if (!gpu_kernel_add(w->kernels, &launch))
            return op_busy(b);
    }
    if (is_hlo) {
        if (known && known->found)
            return instruction(w, side, &known->op, program->num, group, time_ps);
        return XP_OK;
    }
    if (tf_op.n && !framework_kernel(w, side, tf_op, kernel, time_ps))
        return op_busy(b);
    return XP_OK;
}

static enum xp_status line(struct gpu_walk *w, const struct derive_line *dl)
{
    struct line_cursor c;
    struct lane_event e;
    struct derive_eye eye;
    struct side_cursor side;
    int64_t base = dl->line->base_ps;
    /* Ends of streams are told apart by their own time, as in XProf. */
    if (line_seek(&c, dl->line, INT64_MIN, w->b->core) != XP_OK)
        return op_busy(w->b);
    derive_look(&eye, w->b->d, dl);
    side_open(&side, dl->line->side);
    while (line_next(&c, &e, NULL)) {
        struct derive_event ev = {base + e.begin_ps, base + e.end_ps, e.at, e.name};
        if (e.name >= w->b->part->planes[w->plane].nevmeta)
            continue;
        if (!w->any || e.begin_ps < w->first_ps)
            w->first_ps = e.begin_ps;
        if (!w->any || e.end_ps > w->last_ps)
            w->last_ps = e.end_ps;
        w->any = true;
        w->now_ps = ev.begin_ps;
        w->begins = part_begins(w->b->part, e.at, ev.begin_ps);
        if (side_find(&side, e.at))
            XP_TRY(event(w, &side, &ev, derive_group(&eye, &ev)));
    }
    return end_run(w) ? XP_OK : op_busy(w->b);
}

/* Of a range the device's time is the range, as far as its streams were watched. */
static void range_span(struct gpu_walk *w, const struct derive_plane *dp)
{
    w->any = false;
    for (uint32_t k = 0; k < dp->nlines; k++) {
        const struct part_line *l = w->b->d->lines[dp->first_line + k].line;
        if (l->derived || !part_watched(l))
            continue;
        w->first_ps = w->any && w->first_ps < l->begin_ps ? w->first_ps : l->begin_ps;
        w->last_ps = w->any && w->last_ps > l->end_ps ? w->last_ps : l->end_ps;
        w->any = true;
    }
}

static enum xp_status plane(struct op_build *b, uint32_t i, struct gpu_kernels *kernels)
{
    struct gpu_walk w = {.b = b, .plane = i, .kernels = kernels};
    const struct derive_plane *dp = &b->d->planes[i];
    enum xp_status st = op_text(b, op_plane_name(b, i), &w.name) ? XP_OK : op_busy(b);
    for (uint32_t k = 0; st == XP_OK && k < dp->nlines; k++) {
        const struct derive_line *dl = &b->d->lines[dp->first_line + k];
        if (!dl->line->derived)
            st = line(&w, dl);
    }
    if (b->part->range)
        range_span(&w, dp);
    uint64_t total = w.any && w.last_ps ? (uint64_t)w.last_ps - (uint64_t)w.first_ps : 0;
    if (st == XP_OK && !op_add_idle(&w.ops, &b->stats->device, total, w.op_ps))
        st = op_busy(b);
    for (size_t k = 0; st == XP_OK && k < w.ops.ops.n; k++) {
        const struct op_metrics *m = &VEC(w.ops.ops, struct op_metrics)[k];
        struct op_metrics *to = op_table_get(&b->device, m->program, m->name);
        if (!to) {
            st = op_busy(b);
            break;
        }
        op_texts(to, m);
        op_add(to, m);
    }
    op_table_fini(&w.ops);
    return st;
}

enum xp_status op_gpu_planes(struct op_build *b)
{
    struct gpu_kernels kernels;
    enum xp_status st = XP_OK;
    gpu_kernels_init(&kernels, b);
    for (uint32_t i = 0; st == XP_OK && i < b->part->nplanes; i++)
        if (xp_span_starts(op_plane_name(b, i), XP_SPAN_LIT("/device:GPU:"))) {
            st = op_next_core(b);
            if (st == XP_OK)
                st = plane(b, i, &kernels);
        }
    if (st == XP_OK && !gpu_kernels_keep(&kernels))
        st = op_busy(b);
    gpu_kernels_fini(&kernels);
    return st;
}
