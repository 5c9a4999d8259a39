#include <stdio.h>

#include "shard/tools/report_nodes.h"
#include "shard/tools/reports.h"

/* Which ops waste the most hardware: a tree by category, program, or scope (group_by=). */

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

static void verdict(struct report *r, const struct op_nodes *t)
{
    const struct op_node *v = t->v.p, *most = NULL;
    for (uint32_t i = 1; i < t->v.n; i++)
        if (!v[i].parent && (!most || v[i].self_ps > most->self_ps))
            most = &v[i];
    if (most && v->self_ps)
        report_verdict(r, "%.*s takes %.1f %% of the time in ops.",
                       (int)(most->name.n < 120 ? most->name.n : 120), (const char *)most->name.p,
                       100 * (double)most->self_ps / (double)v->self_ps);
}

static enum xp_status write_report(struct xp_span merged, const struct tool_args *args,
                                   struct report *r, struct xp_error *err)
{
    struct session s;
    struct figures f;
    struct op_view v;
    struct op_nodes t;
    struct xp_bump b;
    enum by by;
    XP_TRY(group_by(args, &by, err));
    XP_TRY(session_open_report(merged, args, r->a, &s, &f, err));
    XP_TRY(op_view_open(&v, &f, &s.stats->device, r->a, err));
    xp_bump_init(&b, r->a);
    op_nodes_init(&t, &f);
    for (uint32_t i = 0; i < v.n && !t.failed; i++)
        if (!v.rows[i].parent)
            add(&t, s.stats, v.rows[i].op, by, &b);
    if (!t.failed)
        verdict(r, &t);
    report_usage(r, &f);
    report_environment(r, &f);
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
