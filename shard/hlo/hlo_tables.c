/* The tables beside the instructions: stack frames and the buffer assignment. */
#include "shard/hlo/hlo_int.h"

/* --- stack frames --- */

static enum xp_status add_name(struct hlo_decoder *d, struct hlo_vec *v, struct xp_span s)
{
    struct xp_span *to = hlo_vec_more(d, v, 1);
    if (!to)
        return hlo_no_room(d);
    *to = s;
    return XP_OK;
}

static enum xp_status add_location(struct hlo_decoder *d, struct xp_span msg)
{
    struct hlo_location *to = hlo_vec_more(d, &d->locations, 1);
    if (!to)
        return hlo_no_room(d);
    to->file = (uint32_t)hlo_get_int(msg, 1, 0);
    to->function = (uint32_t)hlo_get_int(msg, 2, 0);
    to->line = (int32_t)hlo_get_int(msg, 3, 0);
    to->column = (int32_t)hlo_get_int(msg, 4, 0);
    to->end_line = (int32_t)hlo_get_int(msg, 5, 0);
    to->end_column = (int32_t)hlo_get_int(msg, 6, 0);
    return XP_OK;
}

static enum xp_status add_frame(struct hlo_decoder *d, struct xp_span msg)
{
    struct hlo_frame *to = hlo_vec_more(d, &d->frames, 1);
    if (!to)
        return hlo_no_room(d);
    to->location = (uint32_t)hlo_get_int(msg, 1, 0);
    to->parent = (uint32_t)hlo_get_int(msg, 2, 0);
    return XP_OK;
}

enum xp_status hlo_decode_frames(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.type != XP_PB_LEN)
            continue;
        if (f.num == 1)
            XP_TRY(add_name(d, &d->file_names, f.bytes));
        else if (f.num == 2)
            XP_TRY(add_name(d, &d->function_names, f.bytes));
        else if (f.num == 3)
            XP_TRY(add_location(d, f.bytes));
        else if (f.num == 4)
            XP_TRY(add_frame(d, f.bytes));
    }
    return r.bad ? hlo_malformed(d, &r) : XP_OK;
}

/* --- buffer assignment --- */

static enum xp_status defined_at(struct hlo_decoder *d, struct xp_span msg, struct hlo_buffer *b,
                                 int64_t *instr_id)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.num == 2 && f.type == XP_PB_LEN)
            b->instr_name = f.bytes;
        else if (f.num == 3)
            XP_TRY(hlo_add_ints(d, &f, &b->shape_index));
        else if (f.num == 4 && f.type == XP_PB_VARINT)
            *instr_id = (int64_t)f.value;
    }
    return r.bad ? hlo_malformed(d, &r) : XP_OK;
}

static enum xp_status add_buffer(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct hlo_buffer b = {.instr = HLO_NONE};
    int64_t instr_id = -1;
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.num == 3 && f.type == XP_PB_LEN)
            XP_TRY(defined_at(d, f.bytes, &b, &instr_id));
        if (f.type != XP_PB_VARINT)
            continue;
        if (f.num == 1)
            b.id = (int64_t)f.value;
        else if (f.num == 2)
            b.size = (int64_t)f.value;
        else if (f.num == 4)
            b.color = (int64_t)f.value;
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    struct hlo_buffer *to = hlo_vec_more(d, &d->buffers, 1);
    if (!to)
        return hlo_no_room(d);
    *to = b;
    to->instr_id = instr_id;
    return XP_OK;
}

static enum xp_status add_assigned(struct hlo_decoder *d, struct xp_span msg)
{
    struct hlo_assigned *to = hlo_vec_more(d, &d->assigned, 1);
    if (!to)
        return hlo_no_room(d);
    to->buffer_id = hlo_get_int(msg, 1, 0);
    to->offset = hlo_get_int(msg, 2, 0);
    to->size = hlo_get_int(msg, 3, 0);
    return XP_OK;
}

static void allocation_number(struct hlo_allocation *a, uint32_t num, uint64_t v)
{
    switch (num) {
    case 1:
        a->index = (int64_t)v;
        break;
    case 2:
        a->size = (int64_t)v;
        break;
    case 3:
        a->is_thread_local = v != 0;
        break;
    case 5:
        a->entry_parameter = v != 0;
        break;
    case 6:
        a->parameter_number = (int64_t)v;
        break;
    case 7:
        a->maybe_live_out = v != 0;
        break;
    case 8:
        a->color = (int64_t)v;
        break;
    case 11:
        a->tuple = v != 0;
        break;
    case 12:
        a->constant = v != 0;
        break;
    case 13:
        a->parameter_aliased = v != 0;
        break;
    }
}

static enum xp_status add_allocation(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct hlo_allocation a = {.assigned.at = d->assigned.n};
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.num == 9 && f.type == XP_PB_LEN)
            XP_TRY(add_assigned(d, f.bytes));
        else if (f.num == 10)
            XP_TRY(hlo_add_ints(d, &f, &a.parameter_shape_index));
        else if (f.type == XP_PB_VARINT)
            allocation_number(&a, f.num, f.value);
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    a.assigned.n = d->assigned.n - a.assigned.at;
    struct hlo_allocation *to = hlo_vec_more(d, &d->allocations, 1);
    if (!to)
        return hlo_no_room(d);
    *to = a;
    return XP_OK;
}

static enum xp_status add_event(struct hlo_decoder *d, struct xp_span msg)
{
    struct hlo_heap_event *to = hlo_vec_more(d, &d->events, 1);
    if (!to)
        return hlo_no_room(d);
    to->kind = (uint32_t)hlo_get_int(msg, 1, 0);
    to->buffer_id = hlo_get_int(msg, 2, 0);
    to->share_with = hlo_get_int(msg, 5, 0);
    hlo_get_span(msg, 3, &to->comp_name);
    hlo_get_span(msg, 4, &to->instr_name);
    return XP_OK;
}

static enum xp_status add_trace(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct hlo_heap_trace t = {.events.at = d->events.n};
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.num == 1 && f.type == XP_PB_LEN)
            XP_TRY(add_event(d, f.bytes));
        else if (f.num == 2 && f.type == XP_PB_VARINT)
            t.whole_module = f.value != 0;
        else if (f.num == 3 && f.type == XP_PB_VARINT)
            t.allocation_index = (int64_t)f.value;
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    t.events.n = d->events.n - t.events.at;
    struct hlo_heap_trace *to = hlo_vec_more(d, &d->traces, 1);
    if (!to)
        return hlo_no_room(d);
    *to = t;
    return XP_OK;
}

enum xp_status hlo_decode_buffers(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.type != XP_PB_LEN)
            continue;
        if (f.num == 1)
            XP_TRY(add_buffer(d, f.bytes));
        else if (f.num == 3)
            XP_TRY(add_allocation(d, f.bytes));
        else if (f.num == 4)
            XP_TRY(add_trace(d, f.bytes));
    }
    return r.bad ? hlo_malformed(d, &r) : XP_OK;
}

enum xp_status hlo_resolve_buffers(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;

    m->buffer_ids = hlo_index_ids(d, m->buffers, sizeof *m->buffers,
                                  offsetof(struct hlo_buffer, id), m->nbuffers);
    if (!m->buffer_ids)
        return hlo_no_room(d);
    for (uint32_t i = 0; i < m->nassigned; i++) {
        m->assigned[i].buffer = hlo_buffer_by_id(m, m->assigned[i].buffer_id);
        m->dangling += m->assigned[i].buffer == HLO_NONE;
    }
    for (uint32_t i = 0; i < m->nbuffers; i++)
        m->buffers[i].instr = hlo_instr_by_id(m, m->buffers[i].instr_id);
    return XP_OK;
}
