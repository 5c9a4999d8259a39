/* loadtest/lib/xs.h - writing XSpace files of any size with flat memory.
 *
 * A message of the wire format begins with its length, so that a line of a million events has to
 * be made twice: first into an output that only counts, then into the file. The makers are
 * deterministic functions; they do not know which of the two they write to.
 *
 * Order      xs_open (or xs_counter) -> xs_plane ... xs_hostname -> xs_close.
 * An event   xs_event, any number of xs_stat_*, xs_event_end; it is at most XS_EVENT_MAX bytes
 *            long (xs_raw writes larger ones).
 * Errors     Sticky: xs_close says whether everything was written.
 * Threads    One output, one thread.
 */
#ifndef LOADTEST_XS_H
#define LOADTEST_XS_H

#include <zlib.h>

#include "lib/base/buf.h"
#include "lib/base/pb_wire.h"

#define XS_BUF (1u << 20)
#define XS_EVENT_MAX 4096
#define XS_FLIPS_MAX 64

struct xs {
    uint8_t *buf;
    size_t n;       /* bytes in buf */
    uint64_t bytes; /* written or counted before buf */
    uint64_t events;
    uint64_t stop_at;             /* bytes from here on are dropped: a cut file */
    uint64_t flips[XS_FLIPS_MAX]; /* offsets, ascending, of bytes that lose a bit */
    int nflips;
    bool counting, failed;
    int fd;
    gzFile gz;
    size_t event, body; /* of the event being written: its tag, its message */
};

/* False with errno set. */
bool xs_open(struct xs *x, const char *path, bool gz);
void xs_counter(struct xs *x);
bool xs_close(struct xs *x);
uint64_t xs_bytes(const struct xs *x);

void xs_flush(struct xs *x);
void xs_raw(struct xs *x, struct xp_span s);

static inline void xs_room(struct xs *x)
{
    if (x->n > XS_BUF - XS_EVENT_MAX)
        xs_flush(x);
}

static inline void xs_put(struct xs *x, uint8_t tag, uint64_t v)
{
    x->buf[x->n++] = tag;
    x->n = (size_t)(xp_varint_write(x->buf + x->n, v) - x->buf);
}

/* Begins an event: metadata id, offset from the line's timestamp, duration. */
static inline void xs_event(struct xs *x, int64_t meta, int64_t offset_ps, int64_t duration_ps)
{
    xs_room(x);
    x->event = x->n;
    x->body = x->n += 2;
    xs_put(x, 0x08, (uint64_t)meta);
    xs_put(x, 0x10, (uint64_t)offset_ps);
    if (duration_ps)
        xs_put(x, 0x18, (uint64_t)duration_ps);
}

void xs_event_end(struct xs *x);

/* Stats of the event that is open. The number of a stat's name in the plane is below 128. */
static inline void xs_stat(struct xs *x, unsigned id, uint8_t tag, uint64_t v)
{
    x->buf[x->n] = 0x22;
    size_t at = x->n += 2;
    xs_put(x, 0x08, id);
    xs_put(x, tag, v);
    x->buf[at - 1] = (uint8_t)(x->n - at);
}

static inline void xs_stat_u64(struct xs *x, unsigned id, uint64_t v)
{
    xs_stat(x, id, 0x18, v);
}

static inline void xs_stat_i64(struct xs *x, unsigned id, int64_t v)
{
    xs_stat(x, id, 0x20, (uint64_t)v);
}

static inline void xs_stat_ref(struct xs *x, unsigned id, uint64_t name)
{
    xs_stat(x, id, 0x38, name);
}

/* --- the parts of a plane --- */

/* A line: fn writes its events. */
struct xs_line {
    int64_t id;
    const char *name;
    int64_t timestamp_ns;
    void (*events)(struct xs *x, const void *ctx, int64_t arg);
    const void *ctx;
    int64_t arg;
    bool late; /* id, name and timestamp come after the events */
};

/* A plane with its lines; meta holds fields 4, 5 and 6, already encoded. */
void xs_plane(struct xs *x, int64_t id, const char *name, const struct xs_line *lines,
              size_t nlines, struct xp_span meta);
void xs_hostname(struct xs *x, const char *name);

/* Appends to the encoded metadata of a plane. stats: field 5 of the event metadata, encoded. */
void xs_event_meta(struct xp_buf *meta, int64_t id, struct xp_span name, struct xp_span display,
                   struct xp_span stats);
void xs_stat_meta(struct xp_buf *meta, int64_t id, struct xp_span name);

/* Appends one XStat as field `field` (5 in event metadata, 6 in a plane). */
void xs_put_u64(struct xp_buf *b, uint32_t field, unsigned id, uint64_t v);
void xs_put_i64(struct xp_buf *b, uint32_t field, unsigned id, int64_t v);
void xs_put_double(struct xp_buf *b, uint32_t field, unsigned id, double v);
void xs_put_str(struct xp_buf *b, uint32_t field, unsigned id, struct xp_span s);
void xs_put_bytes(struct xp_buf *b, uint32_t field, unsigned id, struct xp_span s);

/* --- numbers: the same for the same seed, everywhere --- */

struct rng {
    uint64_t s;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 .. n-1; n > 0, below 2^32 */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (rng_next(r) >> 32) * n >> 32;
}

/* A stream of its own for (seed, a, b). */
struct rng rng_for(uint64_t seed, uint64_t a, uint64_t b);

#endif
