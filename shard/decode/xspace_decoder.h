/* shard/decode/xspace_decoder.h - push decoder for a serialized XSpace.
 *
 * Turns bytes, cut anywhere, into calls on a sink. Memory held is the frame stack plus one
 * patch buffer of XSPACE_PATCH bytes, whatever the size of the profile; the whole message is
 * never needed. A decoder may start at the whole space, or inside it at one line or a
 * run of metadata whose place an index gave (xspace_index.h).
 *
 * Order      Writers emit a plane's lines (field 3) before its event and stat names (4, 5), so
 *            events carry raw ids. The decoder does not buffer to hide this: the loader feeds
 *            metadata first, where it can seek.
 * Ownership  Input stays the caller's. Spans handed to the sink point into the input or the
 *            patch buffer and die when the call returns.
 * Exactness  Unknown fields are stepped over, whatever their wire type (groups too); of a repeated
 * scalar the last counts; maps may come in any order and repeat a key (every entry is handed on;
 * the last one wins, as in protobuf). Varints of 10 bytes keep 64 bits. An element larger than the
 * patch buffer is never stitched: an event or stat that long gives its scalars and `big`, its stats
 * are to be read by offset. The inside of a stat is looked at only by xspace_stats_next. Errors
 * Sticky: after the first failure every call returns it again. err->offset is the position in the
 * whole object, err->text says what was expected there. Threads    One decoder, one thread at a
 * time. Decoders share nothing.
 */
#ifndef XSPACE_DECODER_H
#define XSPACE_DECODER_H

#include "lib/base/span.h"
#include "lib/base/status.h"

#define XSPACE_PATCH 65536
#define XSPACE_BATCH 128
#define XSPACE_NAME_MAX 4096 /* longer names of lines, planes and big metadata are cut */

/* XEvent */
struct xspace_event {
    uint64_t at;          /* offset in the object of the event's message (after its length) */
    uint32_t len;         /* of that message; 0xffffffff when longer */
    bool big;             /* larger than the patch buffer: stats below is empty */
    bool has_occurrences; /* num_occurrences was set, the event has no offset of its own */
    int64_t metadata_id;
    int64_t offset_ps; /* from the line's timestamp */
    int64_t duration_ps;
    int64_t num_occurrences;
    struct xp_span body; /* the whole message, for xspace_stats_open; empty when big */
    uint32_t stats;      /* where in body its first stat begins, that is not dull; body.n: none */
};

/* XLine without its events, complete only at on_line_end. */
struct xspace_line {
    uint64_t at, len;
    int64_t id, display_id, timestamp_ns, duration_ps;
    struct xp_span name, display_name; /* names up to 4 KiB are kept whole, longer ones cut */
    uint64_t nevents;
};

enum xspace_meta_kind { XSPACE_EVENT_META, XSPACE_STAT_META };

/* XEventMetadata or XStatMetadata, one map entry. */
struct xspace_meta {
    enum xspace_meta_kind kind;
    int64_t key; /* the map's key; the entry's own id where the key is absent */
    uint64_t at; /* offset of the value message */
    uint64_t len;
    struct xp_span name, display_name; /* display_name: description for a stat */
    struct xp_span body; /* the whole value message when it fits the patch buffer, else empty */
    bool big;
};

struct xspace_plane {
    uint64_t at, len;
    int64_t id;
    struct xp_span name; /* valid in on_plane_end; in on_plane_begin empty */
    uint64_t nstats;
};

/* XStat */
enum xspace_value {
    XSPACE_NONE,
    XSPACE_DOUBLE,
    XSPACE_U64,
    XSPACE_I64,
    XSPACE_STR,
    XSPACE_BYTES,
    XSPACE_REF
};

struct xspace_stat {
    int64_t metadata_id;
    enum xspace_value type;
    uint64_t num;         /* bits of a double, uint64, int64, ref id */
    struct xp_span bytes; /* STR and BYTES */
};

struct xspace_sink {
    /* Any may be NULL. A status other than XP_OK stops the decoder and is returned by it. */
    enum xp_status (*on_plane_begin)(void *ctx, uint64_t at, uint64_t len);
    enum xp_status (*on_line_begin)(void *ctx, uint64_t at, uint64_t len);
    enum xp_status (*on_events)(void *ctx, const struct xspace_event *ev, size_t n);
    enum xp_status (*on_line_end)(void *ctx, const struct xspace_line *line);
    enum xp_status (*on_meta)(void *ctx, const struct xspace_meta *meta);
    enum xp_status (*on_plane_stat)(void *ctx, uint64_t at, const struct xspace_stat *stat);
    enum xp_status (*on_plane_end)(void *ctx, const struct xspace_plane *plane);
    enum xp_status (*on_hostname)(void *ctx, struct xp_span name);
    enum xp_status (*on_message)(void *ctx, bool is_error,
                                 struct xp_span text); /* errors, warnings */
};

struct xspace_decoder; /* defined below; the members are private */

enum xspace_start { XSPACE_AT_SPACE, XSPACE_AT_PLANE, XSPACE_AT_LINE };

#include "shard/decode/xspace_decoder_int.h" /* the struct, so that it may live anywhere */

/* The bytes pushed are the message of kind `start`, `len` long, that begins at offset `at` of
 * the object. For XSPACE_AT_SPACE len may be UINT64_MAX (until finish). AT_PLANE takes any run
 * of whole fields of a plane too, such as the runs of an index. Never fails. */
void xspace_decoder_init(struct xspace_decoder *d, const struct xspace_sink *sink, void *ctx,
                         enum xspace_start start, uint64_t at, uint64_t len);

/* Stats that the sink does not look at: dull[id] of ids below 128 is XSPACE_DULL. Those that an
 * event begins with may be stepped over, in the pass that they take anyway. After init; NULL: none.
 */
#define XSPACE_DULL 255
void xspace_decoder_dull(struct xspace_decoder *d, const uint8_t *dull);

/* Consumes all of in. Returns XP_OK, the sink's own status, or XP_CORRUPT. */
enum xp_status xspace_decoder_push(struct xspace_decoder *d, struct xp_span in,
                                   struct xp_error *err);

/* Bytes that come next and are only stepped over (a program's HLO, a stat of a gigabyte): how many;
 * they count as pushed, so that a seekable source need not read them. */
uint64_t xspace_decoder_hop(struct xspace_decoder *d);

/* End of input. XP_CORRUPT if a message is still open. */
enum xp_status xspace_decoder_finish(struct xspace_decoder *d, struct xp_error *err);

/* After a failure, or between pushes: what is known of the line that is being read. Its spans live
 * until the decoder is used again. False outside a line. */
bool xspace_decoder_line(const struct xspace_decoder *d, struct xspace_line *line);

/* Walks the stats in the body of an event (field 4) or of an event metadata (field 5). */
struct xspace_stats {
    const uint8_t *p, *end;
    uint32_t field;
    bool bad;
};
static inline struct xspace_stats xspace_stats_open(struct xp_span body, uint32_t field)
{
    return (struct xspace_stats){body.p, body.n ? body.p + body.n : body.p, field, false};
}
bool xspace_stats_next(struct xspace_stats *it, struct xspace_stat *stat);

#endif
