#include "shard/tools/op_traits.h"

static struct xp_span after(struct xp_span s, struct xp_span mark)
{
    const uint8_t *p = s.n ? memmem(s.p, s.n, mark.p, mark.n) : NULL;
    if (!p)
        return (struct xp_span){0};
    p += mark.n;
    return xp_span_of(p, (size_t)(s.p + s.n - p));
}

static bool name_has(struct xp_span text, struct xp_span what)
{
    const uint8_t *p = text.n ? memchr(text.p, '=', text.n) : NULL;
    return xp_span_has(p ? xp_span_of(text.p, (size_t)(p - text.p)) : text, what);
}

bool op_is_remat(const struct op_metrics *m)
{
    return name_has(m->long_name, XP_SPAN_LIT(".remat")) ||
           xp_span_has(m->provenance, XP_SPAN_LIT("rematted_computation"));
}

bool op_is_outside(const struct op_metrics *m)
{
    return xp_span_ends(m->provenance, XP_SPAN_LIT(":XlaSendToHost")) ||
           xp_span_ends(m->provenance, XP_SPAN_LIT(":XlaRecvFromHost")) ||
           (xp_span_has(m->long_name, XP_SPAN_LIT("send-done")) &&
            xp_span_has(m->long_name, XP_SPAN_LIT("is_host_transfer=true")));
}

/* Up to the comma that is in no bracket. */
static struct xp_span one_value(struct xp_span s)
{
    size_t depth = 0, n = 0;
    for (; n < s.n; n++) {
        uint8_t c = s.p[n];
        if (c == '{' || c == '[' || c == '(')
            depth++;
        else if ((c == '}' || c == ']' || c == ')') && depth)
            depth--;
        else if (!depth && (c == ',' || c == ' '))
            break;
    }
    return xp_span_of(s.p, n);
}

struct xp_span op_replica_groups(const struct op_metrics *m)
{
    struct xp_span groups = after(m->long_name, XP_SPAN_LIT(", replica_groups="));
    return one_value(groups.n ? groups
                              : after(m->long_name, XP_SPAN_LIT(", source_target_pairs=")));
}
