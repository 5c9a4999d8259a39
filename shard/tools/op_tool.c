#include "shard/tools/op_tool.h"

#include "shard/tools/profile.h"

enum xp_status op_tool_bytes(struct xp_buf *b, struct xp_arena *a, struct xp_span *out,
                             struct xp_error *err)
{
    uint8_t *p = b->failed ? NULL : xp_arena_alloc(a, b->n + 1);
    if (p && b->n)
        memcpy(p, b->p, b->n);
    *out = xp_span_of(p, p ? b->n : 0);
    xp_buf_fini(b);
    return p ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left for a host's op statistics");
}

static enum xp_status map(const struct tool_host *host, bool children, struct xp_arena *a,
                          struct xp_span *partial, struct xp_error *err)
{
    const struct op_stats *s;
    struct xp_buf b;
    XP_TRY(profile_all_readable(host, 1, err));
    XP_TRY(children ? op_stats_children(host->part, &s, err) : op_stats_get(host->part, &s, err));
    xp_buf_init(&b, OP_PARTIAL_MAX);
    op_stats_pack(s, host->index, children, &b);
    return op_tool_bytes(&b, a, partial, err);
}

enum xp_status op_tool_map(const struct tool_host *host, const struct tool_args *args,
                           struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    (void)args;
    return map(host, false, a, partial, err);
}

enum xp_status op_tool_map_children(const struct tool_host *host, const struct tool_args *args,
                                    struct xp_arena *a, struct xp_span *partial,
                                    struct xp_error *err)
{
    (void)args;
    return map(host, true, a, partial, err);
}

enum xp_status op_tool_merge(struct xp_span x, struct xp_span y, struct xp_arena *a,
                             struct xp_span *both, struct xp_error *err)
{
    struct op_stats *sx, *sy, *s;
    struct xp_buf b;
    if (!x.n || !y.n) {
        *both = x.n ? x : y;
        return XP_OK;
    }
    XP_TRY(op_stats_unpack(x, a, &sx, err));
    XP_TRY(op_stats_unpack(y, a, &sy, err));
    XP_TRY(op_stats_merge(sx, sy, a, &s, err));
    xp_buf_init(&b, OP_PARTIAL_MAX);
    op_stats_pack(s, 0, true, &b);
    return op_tool_bytes(&b, a, both, err);
}

static void escape(struct xp_buf *b, struct xp_span s)
{
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '&':
            xp_buf_str(b, "&amp;");
            break;
        case '<':
            xp_buf_str(b, "&lt;");
            break;
        case '>':
            xp_buf_str(b, "&gt;");
            break;
        case '"':
            xp_buf_str(b, "&quot;");
            break;
        case '\'':
            xp_buf_str(b, "&#39;");
            break;
        default:
            xp_buf_byte(b, s.p[i]);
        }
    }
}

void op_table_source(struct tables *t, const struct op_source *s)
{
    struct xp_buf b;
    if (!s->file.n || s->line == -1) {
        table_null(t);
        return;
    }
    xp_buf_init(&b, (size_t)1 << 20);
    xp_buf_str(&b, "<div class='source-info-cell' title='");
    escape(&b, s->stack);
    xp_buf_str(&b, "'>");
    escape(&b, s->file);
    xp_buf_fmt(&b, ":%d</div>", s->line);
    table_str(t, xp_buf_all(&b));
    xp_buf_fini(&b);
}
