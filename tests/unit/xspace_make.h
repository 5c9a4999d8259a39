/* tests/unit/xspace_make.h - writing XSpace messages by hand, for tests.
 *
 * Messages are buffers: make one, add fields, put it into its parent with make_put, which frees
 * it. make_load reads a test profile (gunzipped) or gives an empty span where it is not there.
 */
#ifndef XSPACE_MAKE_H
#define XSPACE_MAKE_H

#include "lib/base/pb_wire.h"

struct xp_buf make_message(void);
void make_put(struct xp_buf *parent, uint32_t field, struct xp_buf *child);
void make_text(struct xp_buf *b, uint32_t field, const char *text);

/* XEvent as writers write it; further fields may be added before it is put. */
struct xp_buf make_event(int64_t id, int64_t offset_ps, int64_t duration_ps);
void make_add_event(struct xp_buf *line, int64_t id, int64_t offset_ps, int64_t duration_ps);
struct xp_buf make_line(int64_t id, const char *name, int64_t timestamp_ns);
/* field 4: event metadata, 5: stat metadata */
void make_add_meta(struct xp_buf *plane, uint32_t field, int64_t id, const char *name);
struct xp_buf make_stat_i64(int64_t id, int64_t v);
struct xp_buf make_plane(int64_t id, const char *name);

/* A profile from $SHARED_DIR/data/<path>, inflated if it ends in .gz; free() p. */
struct xp_span make_load(const char *path);
/* Writes bytes to a new temporary file; its path is malloc'd. */
char *make_file(struct xp_span bytes);

/* Small random numbers, the same every time. */
uint64_t make_rng(uint64_t *state);

#endif
