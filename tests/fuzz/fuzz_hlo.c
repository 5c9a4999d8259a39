/* tests/fuzz/fuzz_hlo.c - an HLO module of any bytes: decoded, printed in each way, drawn, its
 * memory played, its layouts compared. What cannot be read gives a status and a sentence; nothing
 * reads past its bytes, and rings of operands, calls, frames and buffers end.
 *
 * Input: an HloProto. A budget stands for the server's.
 */
#include "shard/hlo/hlo_dot.h"
#include "shard/hlo/hlo_layout.h"
#include "shard/hlo/hlo_pbtxt.h"
#include "shard/hlo/hlo_text.h"
#include "shard/tools/memory_view.h"

#define BUDGET ((uint64_t)512 << 20)
#define TEXT_MAX ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void verdict(enum xp_status status, const struct xp_error *err)
{
    XP_ASSERT(status == XP_OK || (status == err->status && err->text[0]));
}

/* What the manual promises of indices. */
static void check_module(const struct hlo_module *m)
{
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        const struct hlo_instr *in = &m->instrs[i];
        const struct hlo_run runs[] = {in->operands, in->controls, in->users};
        XP_ASSERT(in->comp < m->ncomps && in->shape < m->nshapes);
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            XP_ASSERT(runs[r].at <= m->nrefs && runs[r].n <= m->nrefs - runs[r].at);
            for (uint32_t k = 0; k < runs[r].n; k++) {
                uint32_t to = m->refs[runs[r].at + k];
                XP_ASSERT(to == HLO_NONE || (to < m->ninstrs && m->instrs[to].comp == in->comp));
            }
        }
        for (uint32_t k = 0; k < in->called.n; k++) {
            uint32_t to = m->refs[in->called.at + k];
            XP_ASSERT(to == HLO_NONE || to < m->ncomps);
        }
    }
    for (uint32_t i = 0; i < m->nshapes; i++) {
        const struct hlo_shape *s = &m->shapes[i];
        XP_ASSERT(s->children.at <= m->nshapes && s->children.n <= m->nshapes - s->children.at);
        XP_ASSERT(s->dims.at <= m->nints && s->dims.n <= m->nints - s->dims.at);
        XP_ASSERT(hlo_shape_bytes(m, i, 8) >= 0 && hlo_shape_elements(m, i) >= 0);
    }
}

static void print(const struct hlo_module *m, struct xp_arena *a, struct xp_buf *out)
{
    struct xp_error err = {0};
    struct hlo_text t = {.m = m, .opt = hlo_text_default, .scratch = a, .out = out};

    verdict(hlo_text_check(m, &err), &err);
    verdict(hlo_text_module(&t, &err), &err);
    for (uint32_t i = 0; i < m->ninstrs && i < 32; i++) {
        out->n = 0;
        hlo_text_instr(&t, &m->instrs[i]);
        hlo_text_category(m, &m->instrs[i], out);
        hlo_stack_text(m, hlo_meta_read(m->instrs[i].metadata).stack_frame_id, out);
    }
}

static void draw(const struct hlo_module *m, struct xp_arena *a, struct xp_buf *out)
{
    struct xp_error err = {0};
    struct hlo_dot_options opt = {true, true};
    struct hlo_dot_out to = {.scratch = a, .out = out};

    for (uint32_t i = 0; i < m->ninstrs && i < 4; i++) {
        out->n = 0;
        verdict(hlo_dot_around(m, i, i * 7, &opt, &to, &err), &err);
    }
    for (uint32_t i = 0; i < m->ncomps && i < 4; i++) {
        out->n = 0;
        verdict(hlo_dot_comp(m, i, &opt, &to, &err), &err);
    }
}

static void look_at_layouts(const struct hlo_module *m, struct xp_arena *a)
{
    struct hlo_layouts l;
    if (!hlo_layouts_make(m, a, &l))
        return;
    l.work = 1 << 20;
    for (uint32_t i = 0; i < m->ninstrs; i++) {
        struct hlo_relayout r = hlo_relayout_op(&l, &m->instrs[i]);
        XP_ASSERT(!r.changes || (r.from < m->nshapes && r.to < m->nshapes));
        XP_ASSERT(r.inside == HLO_NONE || r.inside < m->ninstrs);
    }
}

static void view_memory(const struct hlo_module *m, struct xp_arena *a)
{
    struct xp_error err = {0};
    struct memory_view v;
    struct out out;

    for (int64_t color = 0; color < 2; color++) {
        enum xp_status status = memory_view_make(m, color, a, &v, &err);
        verdict(status, &err);
        if (status != XP_OK)
            continue;
        out_init(&out, NULL);
        verdict(memory_json(&v, a, &out, &err), &err);
        memory_page(&v, &out);
        out_fini(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xp_span bytes = xp_span_of(data, size);
    struct xp_error err = {0};
    struct xp_budget budget;
    struct hlo_module *m;
    struct xp_buf out;

    xp_budget_init(&budget, BUDGET);
    struct xp_arena *a = xp_arena_new(&budget);
    XP_ASSERT(a);
    xp_buf_init(&out, TEXT_MAX);
    verdict(hlo_pbtxt(bytes, &out, NULL, NULL, &err), &err);
    enum xp_status status = hlo_decode(bytes, a, &m, &err);
    verdict(status, &err);
    if (status == XP_OK) {
        check_module(m);
        out.n = 0;
        print(m, a, &out);
        draw(m, a, &out);
        look_at_layouts(m, a);
        view_memory(m, a);
    }
    xp_buf_fini(&out);
    xp_arena_free(a);
    return 0;
}
