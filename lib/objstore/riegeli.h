/* lib/objstore/riegeli.h - the records of a Riegeli file, one after the other.
 *
 * A file is chunks, each with a header and checksums, laid over blocks of 64 KiB that begin with a
 * header of their own. Read are simple chunks, plain, or compressed by Brotli or Zstandard; chunks
 * that only pad or describe the file are stepped over. What writers of XSpaces make is such: a
 * chunk a record (Brotli, not transposed).
 *
 * Order      xp_riegeli_read once. It calls `bytes` with what a chunk holds, its records without
 *            anything between them, and then `end`: keep false means that all of it since the last
 *            `end` is to be forgotten, as its checksum is wrong.
 * Damage     A chunk that is damaged, cut off, or of a kind that is not read is left out, what
 *            follows is found again by the blocks. *damage tells of the first with its offset in
 *            the file (status XP_OK: the file is sound); the status returned is XP_OK all the same.
 * Errors     What a callback or the reader returned; XP_TOO_LARGE when there are more than max_size
 *            bytes.
 * Memory     A block, and what the decompressor needs (Brotli: at most 16 MiB of
 *            window, Zstandard 32 MiB).
 * Source     google/riegeli, doc/riegeli_records_file_format.md.
 */
#ifndef XP_OBJSTORE_RIEGELI_H
#define XP_OBJSTORE_RIEGELI_H

#include "lib/objstore/objstore.h"

struct xp_riegeli_sink {
    void *ctx;
    enum xp_status (*bytes)(void *ctx, struct xp_span bytes, struct xp_error *err);
    enum xp_status (*end)(void *ctx, bool keep, struct xp_error *err);
};

enum xp_status xp_riegeli_read(struct xp_reader *file, uint64_t max_size,
                               const struct xp_riegeli_sink *sink, struct xp_error *damage,
                               struct xp_error *err);

#endif
