/* lib/base/gzip.h - gzip by ISA-L: streaming out, streaming in.
 *
 * Out: level 1, one member, some 700 MB/s of JSON, 370 KB of state while it runs.
 * In: piece by piece, for a client that takes no gzip.
 * Threads    One object, one thread.
 */
#ifndef XP_BASE_GZIP_H
#define XP_BASE_GZIP_H

#include "lib/base/buf.h"
#include "lib/base/status.h"

struct xp_gzip;
struct xp_gzip *xp_gzip_new(struct xp_buf *out); /* out outlives it; out->max bounds the answer */
void xp_gzip_add(struct xp_gzip *g, struct xp_span s);
void xp_gzip_end(struct xp_gzip *g);  /* finishes the member and frees g */
void xp_gzip_drop(struct xp_gzip *g); /* frees g without finishing; NULL is fine */

/* For those who make deflate blocks themselves. What was added so far is in the returned buffer, to
 * a whole byte; blocks that do not refer to it may follow there, to a whole byte again, none of
 * them the last. Their text is then counted, and g goes on. */
struct xp_buf *xp_gzip_pause(struct xp_gzip *g);
void xp_gzip_count(struct xp_gzip *g, struct xp_span text);

/* A stream made in parts, which may be by others: what g holds so far as a part, and a part joined
 * to what g holds. Nothing is compressed again. The bytes of a part are in g's buffer, which must
 * have been empty when g was made; g may go on. */
struct xp_gzip_part {
    struct xp_span blocks; /* of deflate, to a whole byte, none the last */
    uint64_t n;            /* bytes of text */
    uint32_t crc;
};
struct xp_gzip_part xp_gzip_part(struct xp_gzip *g);
void xp_gzip_join(struct xp_gzip *g, const struct xp_gzip_part *part);

struct xp_gunzip;
struct xp_gunzip *xp_gunzip_new(struct xp_span in); /* in outlives it */
/* Fills buf with up to n inflated bytes; *got == 0 at the end. */
enum xp_status xp_gunzip_read(struct xp_gunzip *g, void *buf, size_t n, size_t *got);
void xp_gunzip_free(struct xp_gunzip *g);

#endif
