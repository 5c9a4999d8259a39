#include "shard/tools/memory_view.h"

#include <stdlib.h>

#define CHAIN_MAX 4096 /* of buffers that share one after another */

/* --- allocations --- */

bool memory_is_indefinite(const struct hlo_allocation *a)
{
    return a->entry_parameter || a->constant || a->maybe_live_out;
}

const char *memory_category(const struct hlo_allocation *a)
{
    return a->entry_parameter   ? "Parameter"
           : a->maybe_live_out  ? "Output"
           : a->is_thread_local ? "Thread-local"
           : a->constant        ? "Constant"
                                : "Temporary";
}

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory for the view of a module's buffers");
}

static int by_index(const void *x, const void *y, void *ctx)
{
    const struct hlo_module *m = ctx;
    int64_t a = m->allocations[*(const uint32_t *)x].index;
    int64_t b = m->allocations[*(const uint32_t *)y].index;
    return (a > b) - (a < b);
}

static bool pick_allocations(struct memory_view *v, struct xp_arena *a)
{
    const struct hlo_module *m = v->m;

    v->allocations = xp_arena_alloc(a, ((size_t)m->nallocations + 1) * sizeof *v->allocations);
    if (!v->allocations)
        return false;
    for (uint32_t i = 0; i < m->nallocations; i++)
        if (m->allocations[i].color == v->color)
            v->allocations[v->nallocations++] = i;
    qsort_r(v->allocations, v->nallocations, sizeof *v->allocations, by_index, (void *)m);
    return true;
}

/* --- buffers --- */

/* XProf takes the last number of the index alone, whatever the depth. */
static uint32_t part_of_shape(const struct hlo_module *m, const struct hlo_buffer *b)
{
    uint32_t shape = m->instrs[b->instr].shape;
    const struct hlo_run *index = &b->shape_index;

    if (index->n == 0)
        return shape;
    uint32_t part = hlo_subshape(m, shape, &m->ints[index->at + index->n - 1], 1);
    return part == HLO_NONE ? shape : part;
}

static int64_t unpadded_bytes(const struct hlo_module *m, uint32_t shape)
{
    if (shape < m->nshapes && m->shapes[shape].type == HLO_TYPE_TUPLE)
        return (int64_t)m->shapes[shape].children.n * 8;
    return hlo_shape_bytes(m, shape, 0);
}

static bool place_buffers(struct memory_view *v, struct xp_arena *a)
{
    const struct hlo_module *m = v->m;

    v->buffers = xp_arena_zalloc(a, ((size_t)m->nbuffers + 1) * sizeof *v->buffers);
    v->color_of = xp_arena_alloc(a, ((size_t)m->nbuffers + 1) * sizeof *v->color_of);
    if (!v->buffers || !v->color_of)
        return false;
    memset(v->color_of, 0xff, ((size_t)m->nbuffers + 1) * sizeof *v->color_of);
    for (uint32_t i = 0; i < m->nbuffers; i++)
        v->buffers[i] = (struct memory_buffer){
            .allocation = HLO_NONE, .shape = HLO_NONE, .canonical = HLO_NONE, .start = HLO_NONE};
    for (uint32_t i = 0; i < m->nallocations; i++) {
        const struct hlo_run *run = &m->allocations[i].assigned;
        for (uint32_t k = run->at; k < run->at + run->n; k++) {
            uint32_t b = m->assigned[k].buffer;
            if (b == HLO_NONE || m->buffers[b].instr == HLO_NONE)
                continue;
            v->buffers[b].allocation = i;
            v->buffers[b].offset = m->assigned[k].offset;
            v->buffers[b].shape = part_of_shape(m, &m->buffers[b]);
            v->buffers[b].unpadded = unpadded_bytes(m, v->buffers[b].shape);
        }
    }
    return true;
}

/* A buffer by the id in the file; HLO_NONE when it is not placed. */
static uint32_t placed(const struct memory_view *v, int64_t id)
{
    uint32_t b = hlo_buffer_by_id(v->m, id);
    return b != HLO_NONE && v->buffers[b].allocation != HLO_NONE ? b : HLO_NONE;
}

/* --- which trace --- */

/* The index that a trace gives for its allocation cannot be trusted: its first buffer's counts. */
static bool find_traces(struct memory_view *v, struct xp_arena *a)
{
    const struct hlo_module *m = v->m;

    v->trace_of = xp_arena_alloc(a, ((size_t)m->nallocations + 1) * sizeof *v->trace_of);
    if (!v->trace_of)
        return false;
    memset(v->trace_of, 0xff, ((size_t)m->nallocations + 1) * sizeof *v->trace_of);
    for (uint32_t i = 0; i < m->nheap_traces; i++) {
        const struct hlo_run *events = &m->heap_traces[i].events;
        uint32_t b = events->n ? placed(v, m->heap_events[events->at].buffer_id) : HLO_NONE;
        if (b != HLO_NONE)
            v->trace_of[v->buffers[b].allocation] = i;
    }
    return true;
}

static uint32_t busiest_trace(const struct memory_view *v)
{
    const struct hlo_module *m = v->m;
    uint32_t best = HLO_NONE, most = 0;

    for (uint32_t i = 0; i < m->nheap_traces; i++) {
        const struct hlo_run *events = &m->heap_traces[i].events;
        uint32_t n = 0;
        for (uint32_t k = events->at; k < events->at + events->n; k++) {
            uint32_t b = placed(v, m->heap_events[k].buffer_id);
            n += b != HLO_NONE && m->buffers[b].color == v->color;
        }
        if (n > most) {
            most = n;
            best = i;
        }
    }
    return best;
}

static uint32_t choose_trace(const struct memory_view *v)
{
    for (uint32_t i = 0; i < v->nallocations; i++) {
        uint32_t at = v->allocations[i];
        if (!memory_is_indefinite(&v->m->allocations[at]) && v->trace_of[at] != HLO_NONE)
            return v->trace_of[at];
    }
    return busiest_trace(v);
}

/* --- the trace played --- */

struct play {
    struct memory_view *v;
    struct memory_buffer *buffers;
    const struct hlo_heap_trace *trace;
    int64_t heap, unpadded, peak, peak_unpadded;
    uint32_t peak_event;
    /* What is live, in the order in which it came: places in a list. The same buffer may stand
     * there several times; prev leads to its place before. */
    uint32_t *list, *prev, *last, n;
    uint32_t *shown; /* by buffer whose memory it is: who uses it now */
    uint32_t allocation, nallocations_seen;
    struct xp_error *err;
};

static bool play_init(struct play *p, struct memory_view *v, const struct hlo_heap_trace *trace,
                      struct xp_arena *a)
{
    size_t nb = (size_t)v->m->nbuffers + 1, ne = (size_t)trace->events.n + 1;

    *p = (struct play){.v = v, .trace = trace, .allocation = HLO_NONE};
    p->buffers = xp_arena_alloc(a, nb * sizeof *p->buffers);
    p->list = xp_arena_alloc(a, ne * sizeof *p->list);
    p->prev = xp_arena_alloc(a, ne * sizeof *p->prev);
    p->last = xp_arena_alloc(a, nb * sizeof *p->last);
    p->shown = xp_arena_alloc(a, nb * sizeof *p->shown);
    if (!p->buffers || !p->list || !p->prev || !p->last || !p->shown)
        return false;
    memcpy(p->buffers, v->buffers, nb * sizeof *p->buffers);
    memset(p->last, 0xff, nb * sizeof *p->last);
    memset(p->shown, 0xff, nb * sizeof *p->shown);
    return true;
}

static enum xp_status refuse(struct play *p, const char *text)
{
    return xp_fail(p->err, XP_NOT_FOUND, 0, "%s", text);
}

/* Whose memory b uses in the end; HLO_NONE when the chain does not end. */
static uint32_t canonical(const struct play *p, uint32_t b)
{
    for (int n = 0; n < CHAIN_MAX; n++) {
        if (p->buffers[b].canonical == HLO_NONE)
            return b;
        b = p->buffers[b].canonical;
    }
    return HLO_NONE;
}

static bool add(int64_t *sum, int64_t x)
{
    return !__builtin_add_overflow(*sum, x, sum);
}

static enum xp_status grow(struct play *p, uint32_t b, uint32_t event)
{
    p->list[p->n] = b;
    p->prev[p->n] = p->last[b];
    p->last[b] = p->n++;
    if (!add(&p->heap, p->v->m->buffers[b].size) || !add(&p->unpadded, p->buffers[b].unpadded))
        return refuse(p, "the sizes of a heap trace add up to more than there can be");
    if (p->heap > p->peak) {
        p->peak = p->heap;
        p->peak_unpadded = p->unpadded;
        p->peak_event = event;
    }
    return XP_OK;
}

static enum xp_status shrink(struct play *p, uint32_t b, uint32_t event)
{
    while (p->last[b] != HLO_NONE) { /* all its places */
        p->list[p->last[b]] = HLO_NONE;
        p->last[b] = p->prev[p->last[b]];
    }
    if (!add(&p->heap, -p->v->m->buffers[b].size) || p->heap < 0)
        return refuse(p, "Heap size should be non-negative");
    if (!add(&p->unpadded, -p->buffers[b].unpadded))
        return refuse(p, "the sizes of a heap trace add up to more than there can be");
    /* Of memory that went to another, each of its users ended with its own FREE. */
    if (p->buffers[b].start != HLO_NONE && p->shown[b] == HLO_NONE)
        p->buffers[b].limit = event;
    return XP_OK;
}

static enum xp_status on_alloc(struct play *p, uint32_t b, uint32_t event)
{
    uint32_t root = canonical(p, b);
    if (root == HLO_NONE)
        return refuse(p, "buffers share each other's memory in a ring");
    p->buffers[root].refs++;
    XP_TRY(grow(p, b, event));
    p->buffers[b].start = event;
    p->buffers[b].limit = p->trace->events.n - 1;
    return XP_OK;
}

static enum xp_status on_free(struct play *p, uint32_t b, uint32_t event)
{
    uint32_t root = canonical(p, b);
    if (root == HLO_NONE)
        return refuse(p, "buffers share each other's memory in a ring");
    if (--p->buffers[root].refs < 0)
        return refuse(p, "a buffer is freed multiple times");
    if (p->buffers[root].refs == 0)
        XP_TRY(shrink(p, root, event));
    if (p->buffers[b].start != HLO_NONE && p->buffers[b].canonical != HLO_NONE)
        p->buffers[b].limit = event;
    return XP_OK;
}

static enum xp_status on_share(struct play *p, uint32_t b, int64_t with, uint32_t event)
{
    uint32_t other = placed(p->v, with);
    if (other == HLO_NONE)
        return XP_OK;
    p->buffers[b].canonical = other;
    uint32_t root = canonical(p, b);
    if (root == HLO_NONE)
        return refuse(p, "buffers share each other's memory in a ring");
    if (++p->buffers[root].refs != 1)
        return XP_OK;
    /* Its owner was freed: the memory is in use again, by another. */
    p->shown[root] = b;
    p->buffers[b].start = event;
    p->buffers[b].limit = p->trace->events.n - 1;
    return grow(p, root, event);
}

static enum xp_status on_event(struct play *p, const struct hlo_heap_event *e, uint32_t event)
{
    uint32_t b = placed(p->v, e->buffer_id);
    if (b == HLO_NONE)
        return XP_OK;
    p->buffers[b].seen = true;
    if (p->buffers[b].allocation != p->allocation) {
        p->allocation = p->buffers[b].allocation;
        p->nallocations_seen++;
    }
    switch (e->kind) {
    case HLO_HEAP_ALLOC:
        return on_alloc(p, b, event);
    case HLO_HEAP_FREE:
        return on_free(p, b, event);
    case HLO_HEAP_SHARE:
        return on_share(p, b, e->share_with, event);
    }
    return refuse(p, "Unhandled event kind");
}

/* Events up to and with `last`. */
static enum xp_status play_until(struct play *p, uint32_t last, bool record)
{
    struct memory_view *v = p->v;

    for (uint32_t i = 0; i <= last && i < p->trace->events.n; i++) {
        const struct hlo_heap_event *e = &v->m->heap_events[p->trace->events.at + i];
        if (record) {
            v->heap[i] = p->heap;
            v->unpadded_heap[i] = p->unpadded;
            v->names[i] = e->instr_name;
        }
        XP_TRY(on_event(p, e, i));
    }
    return XP_OK;
}

/* --- what is live at the peak --- */

struct objects {
    struct memory_view *v;
    int64_t small;
    uint32_t cap;
};

static void add_object(struct objects *o, uint32_t b)
{
    struct memory_view *v = o->v;
    int64_t size = v->m->buffers[b].size;

    if (size < MEMORY_SMALL) {
        if (!add(&o->small, size))
            o->small = INT64_MAX;
        return;
    }
    if (v->nobjects == o->cap)
        return;
    v->color_of[b] = v->nobjects;
    v->objects[v->nobjects++] = (struct memory_object){b, size, v->buffers[b].unpadded};
}

/* The largest buffer of an allocation stands for it. */
static uint32_t largest(const struct memory_view *v, const struct hlo_allocation *a)
{
    uint32_t best = HLO_NONE;
    uint64_t most = 0;

    for (uint32_t k = a->assigned.at; k < a->assigned.at + a->assigned.n; k++) {
        uint32_t b = v->m->assigned[k].buffer;
        if (b == HLO_NONE || v->buffers[b].allocation == HLO_NONE)
            continue;
        if ((uint64_t)v->m->buffers[b].size > most) {
            most = (uint64_t)v->m->buffers[b].size;
            best = b;
        }
    }
    return best;
}

static bool collect_objects(struct memory_view *v, const struct play *peak, struct xp_arena *a)
{
    struct objects o = {.v = v, .cap = v->nallocations + (peak ? peak->n : 0) + 1};

    v->objects = xp_arena_alloc(a, (size_t)o.cap * sizeof *v->objects);
    if (!v->objects)
        return false;
    for (uint32_t i = 0; i < v->nallocations; i++) {
        const struct hlo_allocation *al = &v->m->allocations[v->allocations[i]];
        uint32_t b = memory_is_indefinite(al) ? largest(v, al) : HLO_NONE;
        if (b == HLO_NONE)
            continue;
        if (!add(&v->indefinite, v->m->allocations[v->buffers[b].allocation].size))
            v->indefinite = INT64_MAX;
        if (v->color == 0) /* elsewhere they take no memory */
            add_object(&o, b);
    }
    for (uint32_t i = 0; peak && i < peak->n; i++) {
        uint32_t b = peak->list[i];
        if (b != HLO_NONE)
            add_object(&o, peak->shown[b] != HLO_NONE ? peak->shown[b] : b);
    }
    if (o.small && v->nobjects < o.cap)
        v->objects[v->nobjects++] = (struct memory_object){HLO_NONE, o.small, 0};
    return true;
}

static enum xp_status play_trace(struct memory_view *v, uint32_t trace, struct xp_arena *a,
                                 struct play *peak, struct xp_error *err)
{
    const struct hlo_heap_trace *t = &v->m->heap_traces[trace];
    size_t n = (size_t)t->events.n + 1;
    struct play all;

    v->heap = xp_arena_alloc(a, n * sizeof *v->heap);
    v->unpadded_heap = xp_arena_alloc(a, n * sizeof *v->unpadded_heap);
    v->names = xp_arena_zalloc(a, n * sizeof *v->names);
    if (!v->heap || !v->unpadded_heap || !v->names || !play_init(&all, v, t, a) ||
        !play_init(peak, v, t, a))
        return no_memory(err);
    all.err = peak->err = err;
    XP_TRY(play_until(&all, UINT32_MAX, true));
    if (all.nallocations_seen != 1)
        return xp_fail(err, XP_NOT_FOUND, 0,
                       "All heap simulation should work out of a single buffer allocation");
    v->nsteps = (uint32_t)n;
    v->heap[n - 1] = all.heap;
    v->unpadded_heap[n - 1] = all.unpadded;
    v->peak = all.peak;
    v->peak_unpadded = all.peak_unpadded;
    v->peak_step = all.peak_event;
    if (all.peak)
        XP_TRY(play_until(peak, all.peak_event, false));
    v->buffers = all.buffers;
    return XP_OK;
}

enum xp_status memory_view_make(const struct hlo_module *m, int64_t color, struct xp_arena *a,
                                struct memory_view *v, struct xp_error *err)
{
    struct play peak = {0};

    *v = (struct memory_view){.m = m, .color = color};
    if (!pick_allocations(v, a) || !place_buffers(v, a) || !find_traces(v, a))
        return no_memory(err);
    uint32_t trace = choose_trace(v);
    if (trace != HLO_NONE)
        XP_TRY(play_trace(v, trace, a, &peak, err));
    return collect_objects(v, peak.v ? &peak : NULL, a) ? XP_OK : no_memory(err);
}

void memory_buffer_name(const struct memory_view *v, uint32_t buffer, struct xp_buf *out)
{
    const struct hlo_buffer *b = &v->m->buffers[buffer];

    xp_buf_span(out, v->m->instrs[b->instr].name);
    for (uint32_t i = 0; i < b->shape_index.n; i++)
        xp_buf_fmt(out, "%c%lld", i ? ',' : '{', (long long)v->m->ints[b->shape_index.at + i]);
    if (b->shape_index.n)
        xp_buf_byte(out, '}');
}
