/* shard/derive/meta_reader.h - the bodies of a plane's event metadata, read in large pieces.
 *
 * Metadata of a plane lie together in the file; asked for in about their order, most come out of a
 * piece that was read already. The body handed out dies at the next call.
 */
#ifndef SHARD_META_READER_H
#define SHARD_META_READER_H

#include "shard/decode/xspace_decoder.h"
#include "shard/store/part.h"

struct meta_reader {
    const struct part *part;
    uint8_t *buf;
    size_t n, cap;
    uint64_t at;
};

void meta_reader_init(struct meta_reader *r, const struct part *part);
void meta_reader_fini(struct meta_reader *r);
/* XP_BUSY: out of memory. */
enum xp_status meta_reader_get(struct meta_reader *r, const struct part_evmeta *m,
                               struct xp_span *body, struct xp_error *err);

/* The text of a stat: its own, or the name it refers to; empty for other types. */
struct xp_span meta_stat_text(const struct part *part, const struct part_plane *pl,
                              const struct xspace_stat *s);

#endif
