/* shard/hlo/hlo_int.h - what the files of the decoder share. */
#ifndef SHARD_HLO_INT_H
#define SHARD_HLO_INT_H

#include "shard/hlo/hlo.h"

/* A table that grows in the arena; what it outgrows stays there until the arena goes. */
struct hlo_vec {
    void *p;
    uint32_t n, cap;
    uint32_t size; /* of an entry */
};

struct hlo_decoder {
    struct hlo_module *m;
    struct xp_bump bump;
    struct xp_error *err;
    struct hlo_vec comps, instrs, shapes, ints, refs;
    struct hlo_vec file_names, function_names, locations, frames;
    struct hlo_vec buffers, assigned, allocations, traces, events;
    uint32_t *by_comp; /* instructions, of each computation by id */
};

/* Room for n more entries, zeroed; NULL when the budget is spent or the table is full. */
void *hlo_vec_more(struct hlo_decoder *d, struct hlo_vec *v, uint32_t n);
enum xp_status hlo_no_room(struct hlo_decoder *d);
enum xp_status hlo_malformed(struct hlo_decoder *d, const struct xp_pb *r);

/* Adds the integers that one occurrence of a repeated field holds to d->ints. */
enum xp_status hlo_add_ints(struct hlo_decoder *d, const struct xp_pb_field *f,
                            struct hlo_run *run);

/* A shape and all that is in it; *index is its place in d->shapes. */
enum xp_status hlo_decode_shape(struct hlo_decoder *d, struct xp_span msg, uint32_t *index);
enum xp_status hlo_decode_instr(struct hlo_decoder *d, struct xp_span msg, uint32_t comp);
enum xp_status hlo_decode_frames(struct hlo_decoder *d, struct xp_span msg);
enum xp_status hlo_decode_buffers(struct hlo_decoder *d, struct xp_span msg);
/* Ids become indices; users, roots, fusions and the schedule are made. The tables are in d->m. */
enum xp_status hlo_resolve(struct hlo_decoder *d);
enum xp_status hlo_resolve_buffers(struct hlo_decoder *d);
/* An index over the ids of n rows, which stand `offset` bytes into each; sorted, equal ones in file
 * order. */
struct hlo_id *hlo_index_ids(struct hlo_decoder *d, const void *rows, size_t stride, size_t offset,
                             uint32_t n);
/* First row of the index with that id; n when there is none. */
uint32_t hlo_find_id(const struct hlo_id *ids, uint32_t n, int64_t id);

#endif
