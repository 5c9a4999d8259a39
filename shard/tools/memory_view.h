/* shard/tools/memory_view.h - what memory a module holds over its run, from its buffer assignment.
 *
 * One memory space (colour) at a time. An allocation is indefinite when it lasts for the whole run:
 * an entry parameter, a constant, or perhaps live at the end. The others are filled and emptied by
 * a heap trace, but for thread-local ones, which have none: ALLOC adds a buffer, SHARE_WITH lets
 * one use another's memory, FREE takes it away when nobody shares it any more. memory_view_make
 * plays the trace and keeps what the heap held before each event and what was live at its highest.
 *
 * Ids are indices of the module's tables; all memory is of the arena given. What the bytes say
 * wrongly (a buffer freed twice, two allocations in one trace) is XP_NOT_FOUND: XProf has no answer
 * then.
 */
#ifndef SHARD_MEMORY_VIEW_H
#define SHARD_MEMORY_VIEW_H

#include "shard/hlo/hlo.h"
#include "shard/out.h"

#define MEMORY_SMALL ((int64_t)16 << 10) /* smaller buffers are added up */

struct memory_buffer {     /* beside module->buffers */
    uint32_t allocation;   /* it lies in; HLO_NONE: not placed, or defined by nothing known */
    uint32_t shape;        /* the part of its instruction's shape; HLO_NONE */
    uint32_t canonical;    /* whose memory it shares; HLO_NONE: its own */
    uint32_t start, limit; /* events; start == HLO_NONE: not alive in the trace */
    int64_t offset;        /* in the allocation */
    int64_t unpadded;      /* bytes without the padding of tiles */
    int64_t refs;
    bool seen;
};

struct memory_object { /* live at the peak */
    uint32_t buffer;   /* HLO_NONE: all small ones together */
    int64_t bytes, unpadded;
};

struct memory_view {
    const struct hlo_module *m;
    int64_t color;
    struct memory_buffer *buffers;
    uint32_t *trace_of; /* by allocation: its heap trace, HLO_NONE none */
    uint32_t *color_of; /* by buffer: its place among the objects at the peak, HLO_NONE none */
    uint32_t *allocations, nallocations; /* of the colour, by index */
    /* before each event of the trace, and at the end */
    int64_t *heap, *unpadded_heap;
    struct xp_span *names;
    uint32_t nsteps;
    int64_t peak, peak_unpadded; /* of the trace */
    uint32_t peak_step;          /* the event that first reaches it */
    int64_t indefinite;          /* bytes of indefinite allocations that hold a buffer */
    struct memory_object *objects;
    uint32_t nobjects;
};

enum xp_status memory_view_make(const struct hlo_module *m, int64_t color, struct xp_arena *a,
                                struct memory_view *v, struct xp_error *err);

bool memory_is_indefinite(const struct hlo_allocation *a);
const char *memory_category(const struct hlo_allocation *a); /* "Parameter", "Temporary", ... */

/* As XProf's memory_viewer answers. */
enum xp_status memory_json(const struct memory_view *v, struct xp_arena *scratch, struct out *out,
                           struct xp_error *err);
/* A page that draws the trace as rectangles: time from left to right, addresses upwards. */
void memory_page(const struct memory_view *v, struct out *out);

/* Rectangles of the trace, for both of them. */
struct memory_block {
    uint32_t allocation, buffer; /* buffer HLO_NONE: the allocation itself */
    uint64_t offset, bytes;
    uint32_t start, end;
    const char *color;
    double x, y, width, height; /* in points, on 4096 x 4096 */
    bool drawn;                 /* not too small to be seen */
};
/* Calls fn for each, in order; no call when there is nothing to draw. */
void memory_blocks(const struct memory_view *v, void (*fn)(void *ctx, const struct memory_block *b),
                   void *ctx);
/* name, or name{1,0} with the index into its shape. */
void memory_buffer_name(const struct memory_view *v, uint32_t buffer, struct xp_buf *out);

#endif
