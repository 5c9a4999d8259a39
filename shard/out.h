/* shard/out.h - where a query or a tool writes its answer.
 *
 * Text is appended to `text`; call out_flush now and then (every some KiB): it compresses what
 * is there into the body once the answer grows past 16 KiB, so that a 100 MB answer holds
 * its compressed size only. Small answers stay plain.
 *
 * One worker writes an answer. Limits: OUT_MAX bytes of body, then out_finish says XP_TOO_LARGE.
 */
#ifndef SHARD_OUT_H
#define SHARD_OUT_H

#include <stdatomic.h>

#include "lib/base/buf.h"
#include "lib/base/gzip.h"
#include "lib/base/json_out.h"

#define OUT_MAX ((size_t)512 << 20)

struct out {
    struct xp_buf text; /* append here */
    struct xp_buf body;
    struct xp_gzip *gz;
    const char *content_type;  /* "application/json" unless set */
    const atomic_bool *cancel; /* may be NULL */
};

void out_init(struct out *o, const atomic_bool *cancel);
void out_flush(struct out *o);
/* The stream that everything so far went into: for those who write into it themselves. */
struct xp_gzip *out_gzip(struct out *o);
/* Cheap; poll it in long loops. */
static inline bool out_cancelled(const struct out *o)
{
    return o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed);
}
/* The finished body moves to the caller (free()); encoded says that it is gzip. */
enum xp_status out_finish(struct out *o, uint8_t **body, size_t *n, bool *encoded,
                          struct xp_error *err);
void out_fini(struct out *o); /* after finish or instead of it */

#endif
