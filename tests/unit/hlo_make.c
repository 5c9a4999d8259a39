#include "tests/unit/hlo_make.h"

#define MESSAGE_MAX ((size_t)256 << 20)

void hlo_make_init(struct hlo_make *k)
{
    xp_buf_init(&k->module, MESSAGE_MAX);
    xp_buf_init(&k->comp, MESSAGE_MAX);
    xp_buf_init(&k->instr, MESSAGE_MAX);
    xp_buf_init(&k->buffers, MESSAGE_MAX);
}

void hlo_make_fini(struct hlo_make *k)
{
    xp_buf_fini(&k->module);
    xp_buf_fini(&k->comp);
    xp_buf_fini(&k->instr);
    xp_buf_fini(&k->buffers);
}

void put_text(struct xp_buf *b, uint32_t field, const char *text)
{
    xp_pb_put_bytes(b, field, xp_span_str(text));
}

void put_message(struct xp_buf *b, uint32_t field, struct xp_buf *message)
{
    xp_pb_put_bytes(b, field, xp_buf_all(message));
    message->n = 0;
}

void put_array(struct xp_buf *b, uint32_t field, uint32_t type, const int64_t *dims)
{
    struct xp_buf shape, layout;
    int64_t n = 0;

    xp_buf_init(&shape, MESSAGE_MAX);
    xp_buf_init(&layout, MESSAGE_MAX);
    xp_pb_put_u64(&shape, 2, type);
    for (; dims[n] >= 0; n++)
        xp_pb_put_u64(&shape, 3, (uint64_t)dims[n]);
    while (n-- > 0)
        xp_pb_put_u64(&layout, 1, (uint64_t)n);
    put_message(&shape, 5, &layout);
    put_message(b, field, &shape);
    xp_buf_fini(&shape);
    xp_buf_fini(&layout);
}

void begin_instr(struct hlo_make *k, int64_t id, const char *name, const char *opcode,
                 const int64_t *dims, const int64_t *operands)
{
    put_text(&k->instr, HLO_F_NAME, name);
    put_text(&k->instr, HLO_F_OPCODE, opcode);
    put_array(&k->instr, HLO_F_SHAPE, HLO_TYPE_F32, dims);
    xp_pb_put_u64(&k->instr, HLO_F_ID, (uint64_t)id);
    for (; *operands >= 0; operands++)
        xp_pb_put_u64(&k->instr, HLO_F_OPERAND_IDS, (uint64_t)*operands);
}

void end_instr(struct hlo_make *k)
{
    put_message(&k->comp, 2, &k->instr);
}

void add_instr(struct hlo_make *k, int64_t id, const char *name, const char *opcode,
               const int64_t *dims, const int64_t *operands)
{
    begin_instr(k, id, name, opcode, dims, operands);
    end_instr(k);
}

void add_parameter(struct hlo_make *k, int64_t id, const char *name, int64_t number,
                   const int64_t *dims)
{
    begin_instr(k, id, name, "parameter", dims, NO_OPS);
    xp_pb_put_u64(&k->instr, HLO_F_PARAMETER_NUMBER, (uint64_t)number);
    end_instr(k);
}

void end_comp(struct hlo_make *k, int64_t id, const char *name, int64_t root)
{
    put_text(&k->comp, 1, name);
    xp_pb_put_u64(&k->comp, 5, (uint64_t)id);
    xp_pb_put_u64(&k->comp, 6, (uint64_t)root);
    put_message(&k->module, 3, &k->comp);
}

struct xp_span end_module(struct hlo_make *k, const char *name, int64_t entry, struct xp_arena *a)
{
    struct xp_buf proto;
    struct xp_bump bump;

    put_text(&k->module, 1, name);
    xp_pb_put_u64(&k->module, 6, (uint64_t)entry);
    xp_buf_init(&proto, MESSAGE_MAX);
    put_message(&proto, 1, &k->module);
    if (k->buffers.n)
        put_message(&proto, 3, &k->buffers);
    xp_bump_init(&bump, a);
    struct xp_span s = xp_bump_span(&bump, xp_buf_all(&proto));
    xp_buf_fini(&proto);
    return s;
}
