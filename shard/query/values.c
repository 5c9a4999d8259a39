#include "shard/query/values.h"

#include "lib/base/pb_wire.h"

static void want(struct values_eye *eye, int64_t id, uint8_t which)
{
    if (id >= 0 && id < (int64_t)sizeof eye->small)
        eye->small[id] = (uint8_t)(which + 1);
    else if (eye->nlarge < VALUES_NAMES_MAX)
        eye->large[eye->nlarge++] = (struct values_id){id, which};
}

void values_open(struct values_eye *eye, const struct part *part, const struct part_plane *plane,
                 const char *const *names, uint32_t n, struct xp_arena *a)
{
    XP_ASSERT(n <= VALUES_NAMES_MAX);
    memset(eye, 0, sizeof *eye);
    eye->part = part;
    eye->plane = plane;
    body_open(&eye->body, part, a);
    for (uint32_t i = 0; i < plane->nstatmeta; i++) {
        struct xp_span name = part_str(part, plane->statmeta[i].name);
        for (uint32_t k = 0; k < n; k++)
            if (xp_span_eq(name, xp_span_str(names[k])))
                want(eye, plane->statmeta[i].id, (uint8_t)k);
    }
}

enum xp_status values_of_event(struct values_eye *eye, uint64_t at, struct xp_error *err)
{
    struct xp_span body = {0};
    enum xp_status st = body_event(&eye->body, at, &body, err);
    eye->it = xspace_stats_open(body, 4);
    return st;
}

enum xp_status values_of_evmeta(struct values_eye *eye, uint32_t name, struct xp_error *err)
{
    struct xp_span body = {0};
    enum xp_status st = XP_OK;
    if (name < eye->plane->nevmeta)
        st = body_evmeta(&eye->body, &eye->plane->evmeta[name], &body, err);
    eye->it = xspace_stats_open(body, 5);
    return st;
}

void values_of_plane(struct values_eye *eye)
{
    eye->it = xspace_stats_open(eye->plane->stats, 6);
}

static int which_of(const struct values_eye *eye, int64_t id)
{
    if (id >= 0 && id < (int64_t)sizeof eye->small)
        return eye->small[id] - 1;
    for (uint32_t i = 0; i < eye->nlarge; i++)
        if (eye->large[i].id == id)
            return eye->large[i].which;
    return -1;
}

bool values_next(struct values_eye *eye, struct value *v)
{
    static const uint8_t types[] = {
        [XSPACE_NONE] = VALUE_NONE, [XSPACE_DOUBLE] = VALUE_DOUBLE, [XSPACE_U64] = VALUE_U64,
        [XSPACE_I64] = VALUE_I64,   [XSPACE_STR] = VALUE_TEXT,      [XSPACE_BYTES] = VALUE_BYTES,
        [XSPACE_REF] = VALUE_TEXT};
    struct xspace_stat s;
    while (xspace_stats_next(&eye->it, &s)) {
        int which = which_of(eye, s.metadata_id);
        if (which < 0)
            continue;
        *v = (struct value){(uint8_t)which, types[s.type], s.num, s.bytes};
        if (s.type == XSPACE_REF)
            v->text = part_stat_name(eye->part, eye->plane, (int64_t)s.num);
        return true;
    }
    return false;
}

bool values_find(struct values_eye *eye, uint8_t which, struct value *v)
{
    while (values_next(eye, v))
        if (v->which == which)
            return true;
    return false;
}

double value_double(const struct value *v)
{
    return v->type == VALUE_DOUBLE ? xp_pb_double(v->num) : 0;
}
