#include "shard/decode/xspace_decoder.h"
#include "shard/tools/trace.h"

#define LONG_NAME_MAX 10000

struct args_work {
    struct trace_host *h;
    const struct derive_line *line;
    struct xp_arena *scratch;
    struct vec *args;
    bool cut_run_id; /* the event's own run_id is cut */
    bool has_eager, has_idle;
    bool ok;
};

static struct trace_arg *push(struct args_work *w, struct xp_span name, uint8_t type)
{
    struct trace_arg *a = vec_push(w->args, sizeof *a);
    if (!a) {
        w->ok = false;
        return NULL;
    }
    *a = (struct trace_arg){.name = name, .type = type};
    return a;
}

static void push_text(struct args_work *w, const char *name, struct xp_span text)
{
    struct trace_arg *a = push(w, xp_span_str(name), TRACE_ARG_STR);
    if (a)
        a->text = text;
}

static void push_i64(struct args_work *w, const char *name, int64_t v, bool special)
{
    struct trace_arg *a = push(w, xp_span_str(name), TRACE_ARG_I64);
    if (a) {
        a->num = (uint64_t)v;
        a->special = special;
    }
}

static void long_name(struct args_work *w, struct xp_span name)
{
    if (name.n <= LONG_NAME_MAX) {
        push_text(w, "long_name", name);
        return;
    }
    static const char tail[] = "...<truncated>";
    uint8_t *p = xp_arena_alloc(w->scratch, LONG_NAME_MAX + sizeof tail);
    if (!p) {
        w->ok = false;
        return;
    }
    memcpy(p, name.p, LONG_NAME_MAX);
    memcpy(p + LONG_NAME_MAX, tail, sizeof tail - 1);
    push_text(w, "long_name", xp_span_of(p, LONG_NAME_MAX + sizeof tail - 1));
}

static bool internal(struct xp_span name)
{
    static const char *const names[] = {"_pt", "_p",    "_ct",        "_c",
                                        "_r",  "flops", "program_id", "symbol_id"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (xp_span_eq(name, xp_span_str(names[i])))
            return true;
    return false;
}

static void push_stat(struct args_work *w, const struct part_plane *pl, struct xp_span name,
                      const struct xspace_stat *s, bool own)
{
    static const uint8_t types[] = {
        [XSPACE_DOUBLE] = TRACE_ARG_DOUBLE, [XSPACE_U64] = TRACE_ARG_U64,
        [XSPACE_I64] = TRACE_ARG_I64,       [XSPACE_STR] = TRACE_ARG_STR,
        [XSPACE_BYTES] = TRACE_ARG_BYTES,   [XSPACE_REF] = TRACE_ARG_STR};
    if (s->type == XSPACE_NONE || internal(name))
        return;
    struct trace_arg *a = push(w, name, types[s->type]);
    if (!a)
        return;
    a->num = s->num;
    bool whole = s->type == XSPACE_U64 || s->type == XSPACE_I64;
    if (s->type == XSPACE_STR)
        a->text = s->bytes;
    else if (s->type == XSPACE_REF)
        a->text = part_stat_name(w->h->part, pl, (int64_t)s->num);
    else if (whole && own && w->cut_run_id && xp_span_eq(name, XP_SPAN_LIT("run_id"))) {
        a->num &= (UINT64_C(1) << 27) - 1;
        a->type = TRACE_ARG_I64;
    }
    a->special =
        whole && (xp_span_eq(name, XP_SPAN_LIT("group_id")) ||
                  xp_span_eq(name, XP_SPAN_LIT("flow")) || xp_span_eq(name, XP_SPAN_LIT("_a")));
    w->has_eager |= xp_span_eq(name, XP_SPAN_LIT("is_eager"));
    w->has_idle |= xp_span_eq(name, XP_SPAN_LIT("step_idle_time_ps"));
}

/* Only stats of these names, if given. */
static enum xp_status push_body(struct args_work *w, struct xp_span body, uint32_t field,
                                const char *only, struct xp_error *err)
{
    const struct part_plane *pl = &w->h->part->planes[w->line->plane];
    struct xspace_stats it = xspace_stats_open(body, field);
    struct xspace_stat s;
    while (xspace_stats_next(&it, &s)) {
        struct xp_span name = part_stat_name(w->h->part, pl, s.metadata_id);
        if (!only || xp_span_eq(name, xp_span_str(only)))
            push_stat(w, pl, name, &s, field == 4);
    }
    return w->ok ? XP_OK : trace_busy(err);
}

static enum xp_status meta_body(struct args_work *w, uint32_t evmeta, const char *only,
                                struct xp_error *err)
{
    const struct part_plane *pl = &w->h->part->planes[w->line->plane];
    struct xp_span body;
    if (evmeta >= pl->nevmeta)
        return XP_OK;
    XP_TRY(part_evmeta_body(w->h->part, &pl->evmeta[evmeta], w->scratch, &body, err));
    return push_body(w, body, 5, only, err);
}

/* What XProf adds to events of the file. */
static void push_added(struct args_work *w, struct derive_eye *eye, const struct trace_event *e)
{
    const struct derive *d = w->h->d;
    const struct derive_plane *dp = &d->planes[w->line->plane];
    const struct part_plane *pl = &w->h->part->planes[w->line->plane];
    struct derive_event de = trace_derive_event(e);
    if (d->grouped)
        return;
    uint16_t flags = e->name < pl->nevmeta ? dp->evflags[e->name] : 0;
    bool kernel = !dp->host && !dp->tpu && !(flags & EV_TYPED) && eye->side.side &&
                  side_find(&eye->side, e->at) && side_get(&eye->side, STAT_CORRELATION_ID) != NULL;
    if (!dp->tpu && !w->has_eager && (kernel || flags & EV_TF_OP))
        push_i64(w, "is_eager", 0, false);
    int64_t group = derive_group(eye, &de);
    if (group == DERIVE_NO_GROUP)
        return;
    if (w->line->args == DERIVE_ARGS_STEPS) {
        if (!w->has_idle)
            push_i64(w, "step_idle_time_ps", 0, false);
        if (derive_group_name(d, group).n)
            push_text(w, "step_name", derive_group_name(d, group));
        return;
    }
    for (uint32_t lo = 0, hi = d->nroots; lo < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (d->roots[mid].at == e->at) {
            push_text(w, "step_name", xp_strpool_get(&d->strings, d->roots[mid].name));
            return;
        }
        if (d->roots[mid].at < e->at)
            lo = mid + 1;
        else
            hi = mid;
    }
}

static enum xp_status file_args(struct args_work *w, struct derive_eye *eye,
                                const struct trace_event *e, struct xp_error *err)
{
    const struct part_plane *pl = &w->h->part->planes[w->line->plane];
    const struct derive_plane *dp = &w->h->d->planes[w->line->plane];
    struct xp_span body;
    if (e->name < pl->nevmeta) {
        if (part_str(w->h->part, pl->evmeta[e->name].display_name).n)
            long_name(w, part_str(w->h->part, pl->evmeta[e->name].name));
        XP_TRY(meta_body(w, e->name, NULL, err));
        w->cut_run_id = !w->h->d->grouped && dp->evflags[e->name] & EV_RUN_ID;
    }
    XP_TRY(part_event_body(w->h->part, e->at, w->scratch, &body, err));
    XP_TRY(push_body(w, body, 4, NULL, err));
    push_added(w, eye, e);
    return w->ok ? XP_OK : trace_busy(err);
}

static void launch_args(struct args_work *w, int64_t group)
{
    for (uint32_t i = 0; i < w->line->nlaunches; i++) {
        const struct derive_launch *l = &w->line->launches[i];
        if (l->group != group)
            continue;
        struct trace_arg *a = push(w, XP_SPAN_LIT("num_launches"), TRACE_ARG_I64);
        if (a)
            a->num = l->count;
        double max = (double)l->max_ps / 1e6;
        double avg = l->count ? (double)l->sum_ps / (double)l->count / 1e6 : 0;
        if ((a = push(w, XP_SPAN_LIT("max_launch_time_us"), TRACE_ARG_DOUBLE)))
            memcpy(&a->num, &max, sizeof max);
        if ((a = push(w, XP_SPAN_LIT("avg_launch_time_us"), TRACE_ARG_DOUBLE)))
            memcpy(&a->num, &avg, sizeof avg);
        return;
    }
}

static enum xp_status own_args(struct args_work *w, struct derive_eye *eye,
                               const struct trace_event *e, struct xp_error *err)
{
    const struct derive *d = w->h->d;
    struct derive_event de = trace_derive_event(e);
    if (e->name >= d->nnames)
        return XP_OK;
    const struct derive_name *n = &d->names[e->name];
    if (xp_strpool_get(&d->strings, n->display).n)
        long_name(w, xp_strpool_get(&d->strings, n->name));
    if (w->line->args == DERIVE_ARGS_OFFLOADS) {
        push_i64(w, "_a", 1, true);
        XP_TRY(meta_body(w, n->evmeta - 1, "raw_bytes_accessed", err));
        return meta_body(w, n->start - 1, "shape_with_layout", err);
    }
    if (n->evmeta)
        XP_TRY(meta_body(w, n->evmeta - 1, NULL, err));
    int64_t group = derive_group(eye, &de);
    if (w->line->args == DERIVE_ARGS_STEPS && derive_group_name(d, group).n)
        push_text(w, "step_name", derive_group_name(d, group));
    if (w->line->args == DERIVE_ARGS_LAUNCHES)
        launch_args(w, group);
    return w->ok ? XP_OK : trace_busy(err);
}

enum xp_status trace_args(struct trace_host *h, struct derive_eye *eye, const struct trace_event *e,
                          struct xp_arena *scratch, struct vec *args, struct xp_error *err)
{
    struct args_work w = {
        .h = h, .line = &h->d->lines[e->line], .scratch = scratch, .args = args, .ok = true};
    args->n = 0;
    return w.line->own_names ? own_args(&w, eye, e, err) : file_args(&w, eye, e, err);
}
