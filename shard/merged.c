#include "shard/merged.h"

static bool is_there(const struct merged *m, unsigned i)
{
    return i < MERGED_LEVELS && (m->n >> i & 1);
}

enum xp_status merged_add(struct merged *m, merged_fn merge, struct xp_span one, struct xp_arena *a,
                          struct xp_error *err)
{
    struct xp_buf b;
    unsigned level = 0;
    for (; is_there(m, level); level++)
        XP_TRY(merge(xp_buf_all(&m->level[level]), one, a, &one, err));
    if (level == MERGED_LEVELS)
        return xp_fail(err, XP_TOO_LARGE, 0, "too many hosts");
    xp_buf_init(&b, MERGED_MAX);
    xp_buf_span(&b, one);
    if (b.failed) {
        xp_buf_fini(&b);
        return xp_fail(err, XP_BUSY, 0, "the memory budget is spent");
    }
    for (unsigned i = 0; i < level; i++)
        xp_buf_fini(&m->level[i]);
    m->level[level] = b;
    m->n++;
    return XP_OK;
}

enum xp_status merged_all(const struct merged *m, merged_fn merge, struct xp_arena *a,
                          struct xp_span *all, struct xp_error *err)
{
    *all = (struct xp_span){0};
    for (unsigned i = 0; i < MERGED_LEVELS; i++) {
        if (!is_there(m, i))
            continue;
        if (!all->n)
            *all = xp_buf_all(&m->level[i]);
        else
            XP_TRY(merge(xp_buf_all(&m->level[i]), *all, a, all, err));
    }
    return XP_OK;
}

void merged_fini(struct merged *m)
{
    for (unsigned i = 0; i < MERGED_LEVELS; i++)
        if (is_there(m, i))
            xp_buf_fini(&m->level[i]);
    m->n = 0;
}
