/* shard/store/part.h - one host's profile, decoded: planes, lines, lanes, names.
 *
 * A part is what one *.xplane.pb of one generation became. All of it lives in one arena and
 * goes in one call. It is filled by shard/load.c and read by everything else.
 *
 * Publication  The table of planes exists once the index is made. A plane is published when
 *              its metadata and all its lines are decoded: plane_ready() turns true (acquire)
 *              and from then on the plane, its lines and lanes never change. Readers must not
 *              touch an unpublished plane except at, len and state.
 * Pinning      Readers hold a pin (cache.h) for as long as they look; eviction waits.
 * Ids          Lines are numbered through the part in file order; an event's id is the offset of
 *              its message in the (inflated) object. Both are the same in every process.
 * Times        session_ps = line->base_ps + line time. base_ps = (timestamp_ns - origin) * 1000,
 *              where origin is 0 for lines near zero, and for lines that carry wall-clock
 *              timestamps (above 10^17 ns: after 1973) the profile's start: the plane "Task
 *              Environment" tells it, else the earliest such line. So both kinds may be
 *              mixed and neither overflows.
 * Damage       part->damage says at which byte what was expected; planes and lines before it are
 *              there and `partial` is set.
 */
#ifndef SHARD_PART_H
#define SHARD_PART_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/strpool.h"
#include "lib/objstore/objstore.h"
#include "shard/store/device.h"
#include "shard/store/lane.h"
#include "shard/store/memory_log.h"
#include "shard/store/side.h"

#define PART_WALL_NS INT64_C(100000000000000000)
#define PART_PLANE_STATS_MAX ((size_t)1 << 20)

/* XEventMetadata: what events of one name share. */
struct part_evmeta {
    int64_t id;
    uint32_t name, display_name; /* ids in part->strings */
    uint32_t len;                /* of the message; its stats are read by offset */
    uint64_t at;                 /* 0: an event used an id that has no metadata; name is "" */
};

struct part_statmeta {
    int64_t id;
    uint32_t name;
    uint8_t kind; /* enum stat_kind */
};

struct part_line {
    uint32_t plane;
    int64_t id, display_id; /* as in the file; display_id 0: use id */
    uint32_t name, display_name;
    int64_t timestamp_ns, duration_ps; /* as in the file */
    int64_t base_ps;                   /* session time of line time 0 */
    int64_t begin_ps, end_ps;          /* session time of first begin, last end; 0 if no events */
    uint64_t at, len;
    uint64_t nevents;
    struct lane **lanes;
    uint32_t nlanes;
    const struct side *side;           /* NULL: no event has a kept stat */
    const struct device_times *device; /* lines of TPU ops and steps; NULL: none differ */
    const struct memory_log *memory;   /* its events of allocators; NULL: it has none */
    uint32_t odd;                      /* events with a negative or overflowing time */
    uint32_t overflow;                 /* events beyond LANE_MAX lanes */
    bool derived;                      /* not from the file (derive/) */
    bool sorted;                       /* events came in order of (begin, longer first) */
};

struct part_plane {
    uint64_t at, len;
    int64_t id;
    uint32_t name;
    uint32_t first_line, nlines;
    struct part_evmeta *evmeta;
    uint32_t nevmeta;
    struct part_statmeta *statmeta; /* sorted by id */
    uint32_t nstatmeta;
    uint64_t nevents;
    struct xp_span stats; /* see part_plane_stats */
    bool stats_cut;       /* more than PART_PLANE_STATS_MAX: the rest is not kept */
    _Atomic int state;    /* enum part_state */
};

enum part_state { PART_WAITING, PART_LOADING, PART_READY, PART_FAILED };

/* Of a part that is cut to a range (derive/cut.h). */
struct part_range {
    struct part *whole;
    int64_t t0_ps, t1_ps;    /* session time */
    const uint64_t *carried; /* events that begin before it, by `at` */
    size_t ncarried;
};

struct part {
    struct xp_arena *arena;
    struct xp_reader *reader;  /* of the object; inflated if it was compressed */
    struct xp_strpool strings; /* complete for published planes; see part_str */
    pthread_mutex_t strings_lock;
    struct part_plane *planes;
    uint32_t nplanes;
    struct part_line *lines;
    uint32_t nlines;
    struct xp_span *hostnames;
    uint32_t nhostnames;
    struct xp_span *errors, *warnings; /* what the profiler said about its own work */
    uint32_t nerrors, nwarnings;
    int64_t origin_ns;      /* of wall-clock lines; 0 if there are none */
    int64_t start_wall_ns;  /* profile start, wall clock; 0 unknown */
    uint64_t size;          /* bytes of the (inflated) object */
    struct xp_error damage; /* status XP_OK: none found (yet) */
    bool partial;
    bool cut; /* the index already met damage; known from the index on, damage itself only at the
                 end */
    bool utf8_bad;        /* a name is not UTF-8: protobuf's own parser rejects the file */
    uint64_t utf8_bad_at; /* where the first such message begins */
    _Atomic int state;    /* READY: every plane is READY or FAILED */
    _Atomic uint64_t bytes_done, events_done; /* progress */
    bool device_later;         /* lines' device times stayed in the file: device_times_get */
    _Atomic bool device_known; /* ... and were read since */
    pthread_mutex_t device_lock;
    const struct part_range *range; /* NULL: all of it */
    void *derived;                  /* owned by derive/, see derive.h; dropped with the part */
    void (*derived_free)(void *);
};

static inline bool plane_ready(const struct part_plane *p)
{
    return atomic_load_explicit(&((struct part_plane *)p)->state, memory_order_acquire) ==
           PART_READY;
}

static inline bool part_ready(const struct part *p)
{
    return atomic_load_explicit(&((struct part *)p)->state, memory_order_acquire) == PART_READY;
}

bool part_carried(const struct part_range *r, uint64_t at);
/* Does the event, which is there, begin there too, so that it counts as one? Session time. */
static inline bool part_begins(const struct part *p, uint64_t at, int64_t begin_ps)
{
    return !p->range || begin_ps != p->range->t0_ps || !part_carried(p->range, at);
}

/* Was anything to be seen on the line, be it not in the range? */
static inline bool part_watched(const struct part_line *line)
{
    return line->nevents || line->begin_ps != line->end_ps;
}

/* Closes the reader, drops what derive/ made and all memory: on a worker. NULL is fine. */
void part_free(struct part *p);

/* The id of s in part->strings, from any thread; XP_STRPOOL_FULL when the budget is spent. */
uint32_t part_intern(struct part *p, struct xp_span s);

/* Any id taken from a published plane. */
struct xp_span part_str(const struct part *p, uint32_t id);
/* Display name if there is one, else name. */
struct xp_span part_event_name(const struct part *p, const struct part_plane *pl, uint32_t name);
struct xp_span part_line_name(const struct part *p, const struct part_line *l);

/* Line that holds the file offset `at`, or NULL. */
const struct part_line *part_line_at(const struct part *p, uint64_t at);

/* Events of a line in order of (begin, longer first, file order), lanes merged. */
struct line_cursor {
    const struct part_line *line;
    uint32_t n;              /* lanes not at their end */
    struct lane_cursor *cur; /* one a lane */
    struct lane_event *head;
    uint32_t *heap;
};
/* Scratch comes from a (a task's arena). XP_BUSY when it is spent. Starts at the first event that
 * ends after t (line time), or at the first of all for INT64_MIN. */
enum xp_status line_seek(struct line_cursor *c, const struct part_line *line, int64_t t_ps,
                         struct xp_arena *a);
/* lane (may be NULL) gets the number of the event's lane. */
bool line_next(struct line_cursor *c, struct lane_event *ev, uint32_t *lane);

/* --- reading what stayed in the file --- */

/* Bytes [at, at+len) of the object into a buffer from the arena. XP_CORRUPT when cut off,
 * XP_TOO_LARGE above max. */
enum xp_status part_read(const struct part *p, uint64_t at, uint64_t len, uint64_t max,
                         struct xp_arena *a, struct xp_span *out, struct xp_error *err);
/* `at` comes from a lane (or was checked against one): nothing here can tell that an event begins
 * there.
 * The message of an event / an event metadata, to walk with xspace_stats_open(body, 4 or 5). */
enum xp_status part_event_body(const struct part *p, uint64_t at, struct xp_arena *a,
                               struct xp_span *out, struct xp_error *err);
enum xp_status part_evmeta_body(const struct part *p, const struct part_evmeta *m,
                                struct xp_arena *a, struct xp_span *out, struct xp_error *err);
/* The plane's own stats, as concatenated XStat fields (field 6) to walk with
 * xspace_stats_open(body, 6). */
enum xp_status part_plane_stats(const struct part *p, const struct part_plane *pl,
                                struct xp_arena *a, struct xp_span *out, struct xp_error *err);
/* The plane's stat metadata of that id; NULL when unknown. */
const struct part_statmeta *part_statmeta(const struct part_plane *pl, int64_t id);
/* Its name; empty when unknown. */
struct xp_span part_stat_name(const struct part *p, const struct part_plane *pl, int64_t id);

/* --- making one by hand: derive/, tests --- */

/* Deals events, given in order of (begin, longer first), into lanes and packs them. */
struct line_builder;
struct line_builder *line_builder_new(struct xp_arena *a);
/* One whose scratch is in one arena and whose lanes go to `out`; it may be used for line after
 * line: line_builder_end empties it. */
struct line_builder *line_builder_on(struct xp_arena *scratch, struct xp_bump *out);
/* The next line is one of views of these lanes, which outlive it; NULL: it is not. */
void line_builder_source(struct line_builder *b, const struct lane_source *sources);
enum xp_status line_builder_add(struct line_builder *b, int64_t begin_ps, int64_t end_ps,
                                uint32_t name, uint64_t at);
/* The same for many; their times lie within +-LANE_TIME_MAX. */
enum xp_status line_builder_add_many(struct line_builder *b, const struct lane_raw *ev, size_t n);
/* A builder of lines made of events of these lanes, which outlive them. */
struct line_builder *line_builder_view(struct xp_arena *a, const struct lane_source *sources);
/* Events in order of (begin, longer first), their times within +-LANE_TIME_MAX. */
enum xp_status line_builder_add_views(struct line_builder *b, const struct lane_view *ev, size_t n);
/* Fills lanes, nlanes, nevents, overflow of line (times: line time); b is used up. */
enum xp_status line_builder_end(struct line_builder *b, struct part_line *line);

#endif
