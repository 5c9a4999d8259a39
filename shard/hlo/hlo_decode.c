#include "shard/hlo/hlo_int.h"

/* --- tables that grow --- */

enum xp_status hlo_no_room(struct hlo_decoder *d)
{
    return xp_fail(d->err, XP_BUSY, 0, "no memory for the tables of an HLO module");
}

enum xp_status hlo_malformed(struct hlo_decoder *d, const struct xp_pb *r)
{
    return xp_fail(d->err, XP_CORRUPT, (uint64_t)(r->p - d->m->bytes.p),
                   "an HLO module is malformed");
}

void *hlo_vec_more(struct hlo_decoder *d, struct hlo_vec *v, uint32_t n)
{
    if (n > UINT32_MAX / 2 - v->n)
        return NULL;
    if (v->n + n > v->cap) {
        uint32_t cap = v->cap < 8 ? 8 : v->cap * 2;
        if (cap < v->n + n)
            cap = v->n + n;
        void *p = xp_bump_alloc(&d->bump, (size_t)cap * v->size, 16);
        if (!p)
            return NULL;
        if (v->n)
            memcpy(p, v->p, (size_t)v->n * v->size);
        v->p = p;
        v->cap = cap;
    }
    void *room = (uint8_t *)v->p + (size_t)v->n * v->size;
    memset(room, 0, (size_t)n * v->size);
    v->n += n;
    return room;
}

/* Room for what is coming, so that a large table is not moved while it grows. */
static void reserve(struct hlo_decoder *d, struct hlo_vec *v, size_t n)
{
    void *p = n && n < UINT32_MAX / 2 ? xp_bump_alloc(&d->bump, n * v->size, 16) : NULL;
    if (p) {
        v->p = p;
        v->cap = (uint32_t)n;
    }
}

static bool add_int(struct hlo_decoder *d, struct hlo_run *run, uint64_t v)
{
    int64_t *at = hlo_vec_more(d, &d->ints, 1);
    if (!at)
        return false;
    if (run->n++ == 0)
        run->at = d->ints.n - 1;
    *at = (int64_t)v;
    return true;
}

/* The occurrences of a field may be apart in the message with other lists between them: then
 * the run moves to the end of the table first. */
static bool continue_run(struct hlo_decoder *d, struct hlo_run *run)
{
    if (run->n == 0 || run->at + run->n == d->ints.n)
        return true;
    int64_t *to = hlo_vec_more(d, &d->ints, run->n);
    if (!to)
        return false;
    memcpy(to, (int64_t *)d->ints.p + run->at, run->n * sizeof *to);
    run->at = d->ints.n - run->n;
    return true;
}

enum xp_status hlo_add_ints(struct hlo_decoder *d, const struct xp_pb_field *f, struct hlo_run *run)
{
    if (!continue_run(d, run))
        return hlo_no_room(d);
    if (f->type == XP_PB_VARINT)
        return add_int(d, run, f->value) ? XP_OK : hlo_no_room(d);
    if (f->type != XP_PB_LEN)
        return XP_OK;
    struct xp_pb r = xp_pb_open(f->bytes);
    while (r.p < r.end) {
        uint64_t v;
        const uint8_t *next = xp_varint_read(r.p, r.end, &v);
        if (!next)
            return hlo_malformed(d, &r);
        if (!add_int(d, run, v))
            return hlo_no_room(d);
        r.p = next;
    }
    return XP_OK;
}

/* --- instructions --- */

static enum xp_status instr_field(struct hlo_decoder *d, struct hlo_instr *in,
                                  const struct xp_pb_field *f, struct xp_span *shape)
{
    bool text = f->type == XP_PB_LEN, number = f->type == XP_PB_VARINT;

    if (f->num == HLO_F_OPERAND_IDS)
        return hlo_add_ints(d, f, &in->operands);
    if (f->num == HLO_F_CONTROL_PREDECESSOR_IDS)
        return hlo_add_ints(d, f, &in->controls);
    if (f->num == HLO_F_CALLED_COMPUTATION_IDS)
        return hlo_add_ints(d, f, &in->called);
    if (f->num == HLO_F_NAME && text)
        in->name = f->bytes;
    else if (f->num == HLO_F_OPCODE && text)
        in->opcode_text = f->bytes;
    else if (f->num == HLO_F_SHAPE && text)
        *shape = f->bytes;
    else if (f->num == HLO_F_METADATA && text)
        in->metadata = f->bytes;
    else if (f->num == HLO_F_ID && number)
        in->id = (int64_t)f->value;
    else if (f->num == HLO_F_PARAMETER_NUMBER && number)
        in->parameter_number = (int64_t)f->value;
    else if (f->num == HLO_F_TUPLE_INDEX && number)
        in->tuple_index = (int64_t)f->value;
    return XP_OK;
}

enum xp_status hlo_decode_instr(struct hlo_decoder *d, struct xp_span msg, uint32_t comp)
{
    struct hlo_instr in = {.raw = msg, .comp = comp};
    struct xp_pb r = xp_pb_open(msg);
    struct xp_span shape = {0};
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f))
        XP_TRY(instr_field(d, &in, &f, &shape));
    if (r.bad)
        return hlo_malformed(d, &r);
    in.opcode = hlo_opcode_of(in.opcode_text);
    XP_TRY(hlo_decode_shape(d, shape, &in.shape));
    struct hlo_instr *to = hlo_vec_more(d, &d->instrs, 1);
    if (!to)
        return hlo_no_room(d);
    *to = in;
    return XP_OK;
}

/* --- computations and the module --- */

enum { COMP_NAME = 1, COMP_INSTRS = 2, COMP_ID = 5, COMP_ROOT = 6, COMP_FUSION = 7, COMP_THREAD };

static enum xp_status decode_comp(struct hlo_decoder *d, struct xp_span msg)
{
    struct hlo_comp c = {.raw = msg, .root = HLO_NONE, .fused_by = HLO_NONE};
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    c.instrs.at = d->instrs.n;
    while (xp_pb_next(&r, &f)) {
        if (f.num == COMP_INSTRS && f.type == XP_PB_LEN)
            XP_TRY(hlo_decode_instr(d, f.bytes, d->comps.n));
        else if (f.num == COMP_NAME && f.type == XP_PB_LEN)
            c.name = f.bytes;
        else if (f.num == COMP_THREAD && f.type == XP_PB_LEN)
            c.execution_thread = f.bytes;
        else if (f.num == COMP_ID && f.type == XP_PB_VARINT)
            c.id = (int64_t)f.value;
        else if (f.num == COMP_ROOT && f.type == XP_PB_VARINT)
            c.root_id = (int64_t)f.value;
        else if (f.num == COMP_FUSION && f.type == XP_PB_VARINT)
            c.is_fusion = f.value != 0;
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    c.instrs.n = d->instrs.n - c.instrs.at;
    struct hlo_comp *to = hlo_vec_more(d, &d->comps, 1);
    if (!to)
        return hlo_no_room(d);
    *to = c;
    return XP_OK;
}

enum { MOD_NAME = 1, MOD_ENTRY_NAME = 2, MOD_COMPS = 3, MOD_ID = 5, MOD_SCHEDULE = 7 };
enum { MOD_FRAMES = 17 };

static void reserve_tables(struct hlo_decoder *d, struct xp_span module)
{
    struct xp_pb r = xp_pb_open(module), in_comp;
    struct xp_pb_field f, g;
    size_t comps = 0, instrs = 0;

    while (xp_pb_next(&r, &f)) {
        if (f.num != MOD_COMPS || f.type != XP_PB_LEN)
            continue;
        comps++;
        in_comp = xp_pb_open(f.bytes);
        while (xp_pb_next(&in_comp, &g))
            instrs += g.num == COMP_INSTRS;
    }
    reserve(d, &d->comps, comps);
    reserve(d, &d->instrs, instrs);
    reserve(d, &d->shapes, instrs + instrs / 4);
    reserve(d, &d->ints, instrs * 6);
    reserve(d, &d->refs, instrs * 4);
}

static enum xp_status decode_module(struct hlo_decoder *d, struct xp_span msg)
{
    struct xp_pb r = xp_pb_open(msg);
    struct xp_pb_field f;

    d->m->raw = msg;
    d->m->has_module = true;
    reserve_tables(d, msg);
    while (xp_pb_next(&r, &f)) {
        if (f.num == MOD_COMPS && f.type == XP_PB_LEN)
            XP_TRY(decode_comp(d, f.bytes));
        else if (f.num == MOD_FRAMES && f.type == XP_PB_LEN)
            XP_TRY(hlo_decode_frames(d, f.bytes));
        else if (f.num == MOD_SCHEDULE && f.type == XP_PB_LEN)
            d->m->has_schedule = true;
        else if (f.num == MOD_NAME && f.type == XP_PB_LEN)
            d->m->name = f.bytes;
        else if (f.num == MOD_ENTRY_NAME && f.type == XP_PB_LEN)
            d->m->entry_name = f.bytes;
        else if (f.num == MOD_ID && f.type == XP_PB_VARINT)
            d->m->id = (int64_t)f.value;
    }
    return r.bad ? hlo_malformed(d, &r) : XP_OK;
}

static enum xp_status decode_proto(struct hlo_decoder *d)
{
    struct xp_span module = {0}, buffers = {0};
    struct xp_pb r = xp_pb_open(d->m->bytes);
    bool has_module = false;
    struct xp_pb_field f;

    while (xp_pb_next(&r, &f)) {
        if (f.num == 1 && f.type == XP_PB_LEN)
            module = f.bytes, has_module = true;
        else if (f.num == 3 && f.type == XP_PB_LEN)
            buffers = f.bytes, d->m->has_buffer_assignment = true;
    }
    if (r.bad)
        return hlo_malformed(d, &r);
    if (has_module)
        XP_TRY(decode_module(d, module));
    return d->m->has_buffer_assignment ? hlo_decode_buffers(d, buffers) : XP_OK;
}

static void init_vecs(struct hlo_decoder *d)
{
    d->comps.size = sizeof(struct hlo_comp);
    d->instrs.size = sizeof(struct hlo_instr);
    d->shapes.size = sizeof(struct hlo_shape);
    d->ints.size = sizeof(int64_t);
    d->refs.size = sizeof(uint32_t);
    d->file_names.size = d->function_names.size = sizeof(struct xp_span);
    d->locations.size = sizeof(struct hlo_location);
    d->frames.size = sizeof(struct hlo_frame);
    d->buffers.size = sizeof(struct hlo_buffer);
    d->assigned.size = sizeof(struct hlo_assigned);
    d->allocations.size = sizeof(struct hlo_allocation);
    d->traces.size = sizeof(struct hlo_heap_trace);
    d->events.size = sizeof(struct hlo_heap_event);
}

static void publish(struct hlo_decoder *d)
{
    struct hlo_module *m = d->m;

    m->comps = d->comps.p, m->ncomps = d->comps.n;
    m->instrs = d->instrs.p, m->ninstrs = d->instrs.n;
    m->shapes = d->shapes.p, m->nshapes = d->shapes.n;
    m->ints = d->ints.p, m->nints = d->ints.n;
    m->file_names = d->file_names.p, m->nfile_names = d->file_names.n;
    m->function_names = d->function_names.p, m->nfunction_names = d->function_names.n;
    m->locations = d->locations.p, m->nlocations = d->locations.n;
    m->frames = d->frames.p, m->nframes = d->frames.n;
    m->buffers = d->buffers.p, m->nbuffers = d->buffers.n;
    m->assigned = d->assigned.p, m->nassigned = d->assigned.n;
    m->allocations = d->allocations.p, m->nallocations = d->allocations.n;
    m->heap_traces = d->traces.p, m->nheap_traces = d->traces.n;
    m->heap_events = d->events.p, m->nheap_events = d->events.n;
}

enum xp_status hlo_decode(struct xp_span bytes, struct xp_arena *a, struct hlo_module **out,
                          struct xp_error *err)
{
    struct xp_error unused;
    struct hlo_decoder d = {.err = err ? err : &unused};

    *out = NULL;
    if (bytes.n > HLO_BYTES_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "an HLO module of more than %zu bytes", HLO_BYTES_MAX);
    xp_bump_init(&d.bump, a);
    d.m = xp_bump_alloc(&d.bump, sizeof *d.m, 16);
    if (!d.m)
        return hlo_no_room(&d);
    memset(d.m, 0, sizeof *d.m);
    d.m->bytes = bytes;
    d.m->entry = HLO_NONE;
    init_vecs(&d);
    XP_TRY(decode_proto(&d));
    publish(&d);
    XP_TRY(hlo_resolve(&d));
    XP_TRY(hlo_resolve_buffers(&d));
    d.m->refs = d.refs.p;
    d.m->nrefs = d.refs.n;
    *out = d.m;
    return XP_OK;
}
