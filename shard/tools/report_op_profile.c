#include <stdio.h>

#include "shard/tools/report_nodes.h"
#include "shard/tools/reports.h"

/* Which ops waste the most hardware: a tree by category, program, or scope (group_by=), with idle
 * time (idle=1), of each node only the children that make up most of it (most=90). */

enum by { BY_CATEGORY, BY_PROGRAM, BY_SCOPE };

static const char *const names[] = {"by_category", "by_program", "by_scope"};

static enum xp_status group_by(const struct tool_args *args, enum by *by, struct xp_error *err)
{
    static const char *const words[] = {"category", "program", "scope"};
    struct xp_span s = {0};
    *by = BY_CATEGORY;
    if (!tool_arg(args, "group_by", &s) || !s.n)
        return XP_OK;
    for (int i = 0; i < 3; i++)
        if (xp_span_eq(s, xp_span_str(words[i]))) {
            *by = (enum by)i;
            return XP_OK;
        }
    return xp_fail(err, XP_BAD_REQUEST, 0, "group_by is category, program or scope");
}

/* most=: 1 to 99 percent; 0: all. */
static enum xp_status most_of(const struct tool_args *args, uint32_t *percent, struct xp_error *err)
{
    struct xp_span s = {0};
    *percent = 0;
    if (!tool_arg(args, "most", &s) || !s.n)
        return XP_OK;
    for (size_t i = 0; i < s.n && i < 3; i++)
        *percent = s.p[i] >= '0' && s.p[i] <= '9' ? *percent * 10 + s.p[i] - '0' : 1000;
    if (s.n <= 2 && *percent && *percent < 100)
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0, "most is 1 to 99, percent of a node's time");
}

/* Where a program has a name, by that. */
static struct xp_span program_name(const struct op_stats *s, uint64_t id, struct xp_bump *b)
{
    char text[24];
    for (uint32_t i = 0; i < s->nprograms; i++)
        if (s->programs[i].id == id && s->programs[i].name.n)
            return s->programs[i].name;
    snprintf(text, sizeof text, "%llu", (unsigned long long)id);
    return xp_bump_span(b, xp_span_str(text));
}

/* Ops that are copies of one another fold into one. */
static struct xp_span folded(const struct op_metrics *m)
{
    return m->dedup_name.n ? m->dedup_name : op_short_name(m);
}

static void add(struct op_nodes *t, const struct op_stats *s, const struct op_metrics *m,
                enum by by, struct xp_bump *b)
{
    uint32_t at = 0;
    struct xp_span category = m->category.n ? m->category : XP_SPAN_LIT("(no category)");
    if (by == BY_PROGRAM) {
        at = op_nodes_get(t, at, program_name(s, m->program, b));
        at = op_nodes_get(t, at, category);
    } else if (by == BY_SCOPE) {
        at = m->provenance.n ? op_nodes_path(t, at, m->provenance)
                             : op_nodes_get(t, at, XP_SPAN_LIT("(no framework op)"));
    } else {
        at = op_nodes_get(t, at, category);
    }
    op_nodes_add(t, op_nodes_get(t, at, folded(m)), m);
}

static void add_idle(struct op_nodes *t, struct op_metrics *idle, uint64_t ps)
{
    if (!ps)
        return;
    *idle = (struct op_metrics){
        .name = XP_SPAN_LIT("IDLE"), .category = XP_SPAN_LIT("IDLE"), .time_ps = ps, .self_ps = ps};
    op_nodes_add(t, op_nodes_get(t, 0, idle->name), idle);
    if (!t->failed)
        VEC(t->v, struct op_node)->name = XP_SPAN_LIT("all time");
}

static void keep_top(struct report *r, struct op_nodes *t, uint32_t percent)
{
    uint64_t ps;
    double all = t->failed ? 0 : (double)VEC(t->v, struct op_node)->self_ps;
    uint32_t gone = percent ? op_nodes_keep_top(t, percent, &ps) : 0;
    if (gone)
        report_note(r, REPORT_INFO, "top_only",
                    "The tree shows of each node the children that make up %u %% of it: %u nodes "
                    "with %.1f %% of the time are left out.",
                    percent, gone, all > 0 ? 100 * (double)ps / all : 0);
}

static void verdict(struct report *r, const struct op_nodes *t, bool idle)
{
    const struct op_node *v = t->v.p, *most = NULL;
    for (uint32_t i = 1; i < t->v.n; i++)
        if (!v[i].parent && (!most || v[i].self_ps > most->self_ps))
            most = &v[i];
    if (most && v->self_ps)
        report_verdict(r, "%.*s takes %.1f %% of the time %s.",
                       (int)(most->name.n < 120 ? most->name.n : 120), (const char *)most->name.p,
                       100 * (double)most->self_ps / (double)v->self_ps,
                       idle ? "of the devices" : "in ops");
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct op_view v;
    struct op_nodes t;
    struct xp_bump b;
    struct op_metrics idle_op;
    enum by by;
    uint32_t most;
    bool idle;
    XP_TRY(group_by(args, &by, err));
    XP_TRY(most_of(args, &most, err));
    XP_TRY(report_with_idle(args, &idle, err));
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(op_view_open(&v, &f, &s.stats->device, r->a, err));
    xp_bump_init(&b, r->a);
    op_nodes_init(&t, &f);
    for (uint32_t i = 0; i < v.n && !t.failed; i++)
        if (!v.rows[i].parent)
            add(&t, s.stats, v.rows[i].op, by, &b);
    if (idle)
        add_idle(&t, &idle_op, op_idle_ps(&s.stats->device));
    if (!t.failed)
        verdict(r, &t, idle);
    report_usage(r, &f);
    report_environment(r, &f);
    keep_top(r, &t, most);
    op_nodes_write(r, &t, names[by]);
    op_nodes_fini(&t);
    report_table_groups(r, &v, OPS_BY_CATEGORY);
    report_remarks(r, &f);
    return XP_OK;
}

const struct tool_report report_op_profile = {
    .question = "Which ops waste the most hardware?",
    .map = session_map_report,
    .merge = session_merge,
    .write = write_report,
};
