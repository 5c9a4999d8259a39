/* Readers of what stays encoded. Bytes that cannot be read end a walk. */
#include "shard/hlo/hlo.h"

struct hlo_ints hlo_ints_open(struct xp_span msg, uint32_t field)
{
    return (struct hlo_ints){xp_pb_open(msg), xp_pb_open((struct xp_span){0}), field};
}

bool hlo_ints_next(struct hlo_ints *it, int64_t *v)
{
    struct xp_pb_field f;
    uint64_t u;

    for (;;) {
        if (it->packed.p < it->packed.end) {
            const uint8_t *next = xp_varint_read(it->packed.p, it->packed.end, &u);
            it->packed.p = next ? next : it->packed.end;
            if (!next)
                continue;
            *v = (int64_t)u;
            return true;
        }
        if (!xp_pb_next(&it->msg, &f))
            return false;
        if (f.num != it->field)
            continue;
        if (f.type == XP_PB_LEN) {
            it->packed = xp_pb_open(f.bytes);
        } else if (f.type == XP_PB_VARINT) {
            *v = (int64_t)f.value;
            return true;
        }
    }
}

struct hlo_spans hlo_spans_open(struct xp_span msg, uint32_t field)
{
    return (struct hlo_spans){xp_pb_open(msg), field};
}

bool hlo_spans_next(struct hlo_spans *it, struct xp_span *s)
{
    struct xp_pb_field f;
    while (xp_pb_next(&it->msg, &f)) {
        if (f.num == it->field && f.type == XP_PB_LEN) {
            *s = f.bytes;
            return true;
        }
    }
    return false;
}

bool hlo_get_span(struct xp_span msg, uint32_t field, struct xp_span *s)
{
    struct hlo_spans it = hlo_spans_open(msg, field);
    bool found = false;
    while (hlo_spans_next(&it, s))
        found = true;
    return found;
}

int64_t hlo_get_int(struct xp_span msg, uint32_t field, int64_t absent)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;
    while (xp_pb_next(&r, &f))
        if (f.num == field && f.type == XP_PB_VARINT)
            absent = (int64_t)f.value;
    return absent;
}

static void meta_number(struct hlo_meta *meta, uint32_t num, int32_t v)
{
    switch (num) {
    case 4:
        meta->source_line = v;
        break;
    case 15:
        meta->stack_frame_id = v;
        break;
    case 17:
        meta->source_end_line = v;
        break;
    case 18:
        meta->source_column = v;
        break;
    case 19:
        meta->source_end_column = v;
        break;
    }
}

static void meta_text(struct hlo_meta *meta, uint32_t num, struct xp_span s)
{
    switch (num) {
    case 1:
        meta->op_type = s;
        break;
    case 2:
        meta->op_name = s;
        break;
    case 3:
        meta->source_file = s;
        break;
    case 12:
        meta->deduplicated_name = s;
        break;
    case 16:
        meta->scheduling_name = s;
        break;
    }
}

struct hlo_meta hlo_meta_read(struct xp_span metadata)
{
    struct hlo_meta meta = {0};
    struct xp_pb r = xp_pb_open(metadata);
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.type == XP_PB_VARINT)
            meta_number(&meta, f.num, (int32_t)f.value);
        else if (f.type == XP_PB_LEN)
            meta_text(&meta, f.num, f.bytes);
    }
    return meta;
}

void hlo_stack_text(const struct hlo_module *m, int32_t stack_frame_id, struct xp_buf *out)
{
    uint32_t id = stack_frame_id > 0 ? (uint32_t)stack_frame_id : 0;

    for (int n = 0; id >= 1 && id <= m->nframes && n < HLO_STACK_MAX; n++) {
        const struct hlo_frame *f = &m->frames[id - 1];
        bool known = f->location >= 1 && f->location <= m->nlocations;
        struct xp_span file = {0};
        struct hlo_location at = {.line = -1, .column = -1};

        if (known)
            at = m->locations[f->location - 1];
        if (at.file >= 1 && at.file <= m->nfile_names)
            file = m->file_names[at.file - 1];
        if (n)
            xp_buf_byte(out, '\n');
        xp_buf_span(out, file);
        xp_buf_fmt(out, ":%d:%d", at.line, at.column);
        id = f->parent;
    }
}
