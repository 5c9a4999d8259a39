/* shard/decode/xspace_index.h - where the planes, lines and metadata of a profile lie.
 *
 * An XSpace is a run of length-prefixed planes, a plane a run of length-prefixed lines and
 * metadata entries: hopping from prefix to prefix finds them all and reads a few bytes at
 * each. The index is what lets a file be decoded by several threads, metadata first.
 *
 * The indexer is a push parser too, so that a compressed profile is indexed while it is
 * inflated; xspace_indexer_at says which byte it needs next, so that a seekable source need not
 * read what it only steps over.
 *
 * Damage     A length that leaves its parent, a malformed tag or the end of the object inside
 *            a plane ends the index there: what was found stays valid, `damage` says where and
 *            what was expected. A line that is cut off is in the index with the length that is
 *            really there and `cut` set.
 * Limits     XSPACE_MAX_PLANES, XSPACE_MAX_LINES; beyond: damage, not memory.
 * Ownership  Everything lives in the arena given, old copies of grown arrays too: a scratch arena.
 */
#ifndef XSPACE_INDEX_H
#define XSPACE_INDEX_H

#include "lib/base/arena.h"
#include "lib/base/status.h"

#define XSPACE_MAX_PLANES (1u << 20)
#define XSPACE_MAX_LINES (1u << 22)

struct xspace_ix_line {
    uint64_t at, len;     /* message of the XLine */
    int64_t timestamp_ns; /* if it came before the first event (as all writers do), else 0 */
    uint32_t plane;
    bool cut;
};

/* A run of fields that follow one another: [at, at + len) holds whole fields (tag, length, entry)
 * of the plane, lines never among them. At the end of a cut profile the last may be cut. */
struct xspace_ix_run {
    uint64_t at, len;
    uint32_t count;
};

struct xspace_ix_plane {
    uint64_t at, len;
    uint32_t first_line, nlines;
    uint32_t first_run, nruns; /* everything in the plane that is not a line */
    bool cut;
};

struct xspace_index {
    struct xspace_ix_plane *planes;
    uint32_t nplanes;
    struct xspace_ix_line *lines; /* in file order */
    uint32_t nlines;
    struct xspace_ix_run *runs;
    uint32_t nruns;
    struct xspace_ix_run *rest; /* of the profile outside planes: errors, warnings, host names */
    uint32_t nrest;
    uint64_t size;          /* bytes seen */
    struct xp_error damage; /* status XP_OK: none */
};

struct xspace_indexer;

/* size: of the object if known, else UINT64_MAX. NULL when the budget is spent. */
struct xspace_indexer *xspace_indexer_new(struct xp_arena *a, uint64_t size);
/* The offset of the first byte it needs next; bytes before it need not be pushed. At or beyond
 * the object's size: it needs no more. */
uint64_t xspace_indexer_at(const struct xspace_indexer *ix);
/* Bytes at offset `at` of the object; those below xspace_indexer_at are ignored, a gap above it
 * is a caller's bug. XP_BUSY when the budget is spent; damage is not an error here. */
enum xp_status xspace_indexer_push(struct xspace_indexer *ix, uint64_t at, struct xp_span bytes,
                                   struct xp_error *err);
enum xp_status xspace_indexer_finish(struct xspace_indexer *ix, struct xspace_index *out,
                                     struct xp_error *err);

#endif
