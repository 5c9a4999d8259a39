/* shard/hlo/text_int.h - what the files of the printer share. */
#ifndef SHARD_HLO_TEXT_INT_H
#define SHARD_HLO_TEXT_INT_H

#include "shard/hlo/hlo_int.h"
#include "shard/hlo/hlo_text.h"

/* A shape that stays encoded, decoded into scratch as the only one of a module. NULL: malformed
 * or no room. */
const struct hlo_module *hlo_shape_alone(struct xp_span shape, struct xp_arena *scratch);

/* a,b,c of a repeated integer field. */
void hlo_text_ints(struct xp_buf *out, struct xp_span msg, uint32_t field, const char *separator);
/* {a,b,c} */
void hlo_text_set(struct xp_buf *out, struct xp_span msg, uint32_t field);
bool hlo_has_ints(struct xp_span msg, uint32_t field);

/* What stands in messages of their own. */
void hlo_text_window(struct xp_buf *out, struct xp_span window);
void hlo_text_conv_dims(struct xp_buf *out, struct xp_span dims);
void hlo_text_padding(struct xp_buf *out, struct xp_span config);
void hlo_text_dot_dims(struct xp_buf *out, struct xp_span dims);
void hlo_text_gather_dims(struct xp_buf *out, struct xp_span dims);
void hlo_text_scatter_dims(struct xp_buf *out, struct xp_span dims);
void hlo_text_replica_groups(struct xp_buf *out, struct xp_span instr);
void hlo_text_sharding(struct xp_buf *out, struct xp_span sharding, bool metadata);
void hlo_text_frontend(struct xp_buf *out, struct xp_span attributes, struct xp_arena *scratch);
void hlo_text_original(const struct hlo_text *t, const struct hlo_instr *in, struct xp_span value);

/* With % if the options say so. */
void hlo_text_ref(const struct hlo_text *t, struct xp_span name);

/* Which stack frames of the module are in use, in order of first use. */
struct hlo_frame_view {
    uint32_t *numbers; /* by the file's number - 1: from 1; 0 is not in use */
    uint32_t *used;    /* the file's numbers - 1, in order */
    uint32_t n;
};
bool hlo_frame_view_make(const struct hlo_module *m, struct xp_arena *scratch,
                         struct hlo_frame_view *v);
void hlo_text_frames(const struct hlo_text *t, const struct hlo_frame_view *v);

#endif
