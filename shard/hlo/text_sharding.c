/* Shardings and the groups of devices that take part in a collective. */
#include "shard/hlo/text_int.h"

/* --- an iota list of devices: [4,2]<=[2,4]T(1,0) --- */

static void iota_tail(struct xp_buf *out, struct xp_span msg, uint32_t reshape, uint32_t perm)
{
    struct hlo_ints it = hlo_ints_open(msg, perm);
    int64_t v;

    xp_buf_str(out, "<=[");
    hlo_text_ints(out, msg, reshape, ",");
    xp_buf_byte(out, ']');
    if (hlo_ints_next(&it, &v) && hlo_ints_next(&it, &v)) {
        xp_buf_str(out, "T(");
        hlo_text_ints(out, msg, perm, ",");
        xp_buf_byte(out, ')');
    }
}

static void group_list(struct xp_buf *out, struct xp_span msg, uint32_t field)
{
    struct hlo_spans it = hlo_spans_open(msg, field);
    struct xp_span group;

    xp_buf_byte(out, '{');
    for (const char *comma = ""; hlo_spans_next(&it, &group); comma = ",") {
        xp_buf_str(out, comma);
        hlo_text_set(out, group, 1);
    }
    xp_buf_byte(out, '}');
}

/* mesh['x'=4,'y'=2] {'x'}: devices in a grid with named axes, and the axes that take part. */
static void mesh_axes(struct xp_buf *out, struct xp_span list)
{
    struct xp_span mesh = {0}, axis, name, sub;
    hlo_get_span(list, 1, &mesh);
    struct hlo_spans it = hlo_spans_open(mesh, 1);

    xp_buf_str(out, "mesh[");
    for (const char *comma = ""; hlo_spans_next(&it, &axis); comma = ",") {
        name = (struct xp_span){0};
        hlo_get_span(axis, 1, &name);
        xp_buf_fmt(out, "%s'%.*s'=%lld", comma, (int)name.n, (const char *)name.p,
                   (long long)hlo_get_int(axis, 2, 0));
    }
    xp_buf_byte(out, ']');
    if (hlo_has_ints(mesh, 2)) {
        xp_buf_str(out, ", device_ids=(");
        hlo_text_ints(out, mesh, 2, ",");
        xp_buf_byte(out, ')');
    }
    xp_buf_str(out, " {");
    it = hlo_spans_open(list, 2);
    for (const char *comma = ""; hlo_spans_next(&it, &axis); comma = ",") {
        int64_t k = hlo_get_int(axis, 1, 0);
        struct hlo_spans names = hlo_spans_open(mesh, 1);
        struct xp_span one = {0};
        for (; k >= 0 && hlo_spans_next(&names, &one); k--)
            ;
        name = (struct xp_span){0};
        if (k < 0)
            hlo_get_span(one, 1, &name);
        xp_buf_fmt(out, "%s'%.*s'", comma, (int)name.n, (const char *)name.p);
        if (hlo_get_span(axis, 2, &sub))
            xp_buf_fmt(out, ":(%lld)%lld", (long long)hlo_get_int(sub, 1, 0),
                       (long long)hlo_get_int(sub, 2, 0));
    }
    xp_buf_byte(out, '}');
}

void hlo_text_replica_groups(struct xp_buf *out, struct xp_span instr)
{
    struct xp_span list;

    if (hlo_get_span(instr, HLO_F_IOTA_COLLECTIVE_DEVICE_LIST, &list)) {
        xp_buf_fmt(out, "[%lld,%lld]", (long long)hlo_get_int(list, 1, 0),
                   (long long)hlo_get_int(list, 2, 0));
        iota_tail(out, list, 3, 4);
    } else if (hlo_get_span(instr, HLO_F_MESH_AXES_REPLICA_GROUP_LIST, &list)) {
        mesh_axes(out, list);
    } else if (hlo_get_span(instr, HLO_F_COLLECTIVE_DEVICE_LIST, &list)) {
        group_list(out, list, 1);
    } else {
        group_list(out, instr, HLO_F_REPLICA_GROUPS);
    }
}

/* --- shardings --- */

enum { SHARD_REPLICATED, SHARD_MAXIMAL, SHARD_TUPLE, SHARD_OTHER, SHARD_MANUAL, SHARD_UNKNOWN };
enum { SHARD_UNREDUCED = 6 };
enum { SHARD_TYPE = 1, SHARD_DIMS = 3, SHARD_DEVICES = 4, SHARD_MEMBERS = 5, SHARD_LAST = 6 };
enum { SHARD_META = 7, SHARD_LAST_TYPES = 8, SHARD_RESHAPE = 9, SHARD_PERM = 10, SHARD_GROUP = 11 };

static const char *type_text(int64_t type)
{
    static const char *const texts[] = {"replicated", "maximal", "tuple",    "other",
                                        "manual",     "unknown", "unreduced"};
    return type >= 0 && type < 7 ? texts[type] : "unknown";
}

static void sharding_metadata(struct xp_buf *out, struct xp_span sharding)
{
    struct hlo_spans it = hlo_spans_open(sharding, SHARD_META);
    struct xp_span meta;
    int n = 0;

    while (hlo_spans_next(&it, &meta))
        n++;
    if (n == 0)
        return;
    xp_buf_str(out, n == 1 ? " metadata=" : " metadata={");
    it = hlo_spans_open(sharding, SHARD_META);
    for (const char *comma = ""; hlo_spans_next(&it, &meta); comma = ", ") {
        xp_buf_fmt(out, "%s{", comma);
        struct hlo_meta read = hlo_meta_read(meta);
        hlo_text_metadata(&read, out);
        xp_buf_byte(out, '}');
    }
    if (n > 1)
        xp_buf_byte(out, '}');
}

static void last_tile_dims(struct xp_buf *out, struct xp_span sharding)
{
    struct hlo_ints it = hlo_ints_open(sharding, SHARD_LAST_TYPES);
    int64_t type;
    bool first = true;

    for (; hlo_ints_next(&it, &type); first = false)
        xp_buf_fmt(out, "%s%s", first ? " last_tile_dims={" : ", ", type_text(type));
    if (!first)
        xp_buf_byte(out, '}');
}

static void tile_assignment(struct xp_buf *out, struct xp_span sharding)
{
    xp_buf_str(out, "devices=[");
    hlo_text_ints(out, sharding, SHARD_DIMS, ",");
    xp_buf_byte(out, ']');
    if (hlo_has_ints(sharding, SHARD_RESHAPE))
        iota_tail(out, sharding, SHARD_RESHAPE, SHARD_PERM);
    else
        hlo_text_ints(out, sharding, SHARD_DEVICES, ",");
}

static void one_sharding(struct xp_buf *out, struct xp_span sharding, bool metadata)
{
    int64_t type = hlo_get_int(sharding, SHARD_TYPE, 0);

    xp_buf_byte(out, '{');
    if (type == SHARD_MAXIMAL) {
        xp_buf_str(out, "maximal device=");
        hlo_text_ints(out, sharding, SHARD_DEVICES, ",");
    } else if (type == SHARD_OTHER) {
        tile_assignment(out, sharding);
        if (hlo_get_int(sharding, SHARD_LAST, 0))
            xp_buf_str(out, " last_tile_dim_replicate");
        last_tile_dims(out, sharding);
    } else {
        xp_buf_str(out, type_text(type));
    }
    if (hlo_get_int(sharding, SHARD_GROUP, 0))
        xp_buf_fmt(out, " shard_%s %lld", hlo_get_int(sharding, 13, 0) ? "like" : "as",
                   (long long)hlo_get_int(sharding, 12, 0));
    if (metadata)
        sharding_metadata(out, sharding);
    xp_buf_byte(out, '}');
}

/* A tuple's members are never tuples. */
void hlo_text_sharding(struct xp_buf *out, struct xp_span sharding, bool metadata)
{
    struct hlo_spans it = hlo_spans_open(sharding, SHARD_MEMBERS);
    struct xp_span member;

    if (hlo_get_int(sharding, SHARD_TYPE, 0) != SHARD_TUPLE) {
        one_sharding(out, sharding, metadata);
        return;
    }
    xp_buf_byte(out, '{');
    for (uint32_t i = 0; hlo_spans_next(&it, &member); i++) {
        if (i && i % 5 == 0)
            xp_buf_fmt(out, ", /*index=%u*/", i);
        else if (i)
            xp_buf_str(out, ", ");
        one_sharding(out, member, metadata);
    }
    xp_buf_byte(out, '}');
}
