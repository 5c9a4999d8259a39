/* shard/load_int.h - what load.c, load_plane.c and load_line.c share.
 *
 * A `hand` is a task with memory of its own (read buffer, decoder, pens) that takes jobs: the
 * index, the metadata of a plane, a group of its lines. As many hands work as there are threads;
 * one that finds no job is put to rest and woken when metadata opens new lines.
 */
#ifndef SHARD_LOAD_INT_H
#define SHARD_LOAD_INT_H

#include "shard/decode/xspace_decoder.h"
#include "shard/decode/xspace_index.h"
#include "shard/load.h"
#include "shard/store/lane_int.h"
#include "shard/store/side_int.h"

#define LOAD_READ ((size_t)1 << 20)    /* bytes a read; fits the second level cache */
#define LOAD_SLICE ((uint64_t)8 << 20) /* bytes between two looks at other tasks */
#define LOAD_INDEX_READ 65536
#define LOAD_HANDS 64

/* --- ids of a plane -> dense numbers (load_plane.c) --- */

struct idmap_slot {
    int64_t id;
    uint32_t value; /* + 1; 0 is free */
};

struct idmap {
    uint32_t *direct; /* value + 1; for small ids */
    uint64_t ndirect;
    struct idmap_slot *slots;
    uint32_t nslots, used; /* slots: a power of two */
};

#define IDMAP_NONE UINT32_MAX

uint32_t idmap_find(const struct idmap *m, int64_t id);
/* Sets id to value (below IDMAP_NONE). False when the arena is spent. */
bool idmap_set(struct idmap *m, struct xp_arena *a, int64_t id, uint32_t value);

static inline uint32_t idmap_get(const struct idmap *m, int64_t id)
{
    if ((uint64_t)id < m->ndirect && m->direct[id])
        return m->direct[id] - 1;
    return idmap_find(m, id);
}

/* --- a plane being loaded --- */

#define KINDS_MIN 16384 /* ids of one or two bytes need no check */
#define KIND_MEMORY 64  /* and more, in kinds: an enum memory_stat that is no enum stat_kind */

struct plane_job {
    struct part_plane *plane;
    uint32_t first_run, nruns; /* of the index */
    uint32_t first_group, next_group, end_group;
    uint32_t groups_left;

    /* From the metadata on; lives in `scratch` until the plane is published. */
    struct xp_arena *scratch;
    struct idmap events, stats;
    struct part_evmeta *evmeta;
    struct part_statmeta *statmeta;
    uint32_t nevmeta, evmeta_cap, nstatmeta, statmeta_cap;
    uint8_t *kinds;    /* KINDS_MIN entries by stat id */
    bool keeps;        /* some kind of stat is kept */
    bool device_times; /* events may have times on the device */
    uint8_t *acts;     /* enum memory_act, by event; NULL: no event is an allocator's */
    struct xp_buf stats_text;

    /* Ids that events use and metadata lacks. */
    pthread_mutex_t strays_lock;
    struct idmap strays;
    int64_t *stray_ids;
    uint32_t nstrays, strays_cap;
};

/* Consecutive lines of a plane that are one job: one large line, or many small ones. */
struct group {
    uint32_t first_line, nlines;
    uint64_t bytes;
};

/* --- a line being packed (load_line.c) --- */

#define LINE_WINDOW 64       /* events that may still move to their place in time */
#define LINE_CHUNK (1 << 15) /* events sorted at once when they move further */

#define LINE_TEXTS 256

struct known_text {
    struct xp_span text;
    uint32_t id;
};

struct line_job {
    struct part_line *line;
    struct plane_job *pj;
    struct lane_raw win[LINE_WINDOW + XSPACE_BATCH];
    uint32_t nwin;
    bool sorted, far; /* in order so far; some event came later than the window allows */
    uint64_t nevents;
    struct lane_raw last; /* handed to the builder last */
    bool device;          /* times on the device are kept */
    uint64_t own_shift;   /* of an event that has none */
    uint32_t odd;
    int64_t stray_id; /* last id without metadata, and its number */
    uint32_t stray;

    /* far: sorted runs, merged at the end of the line. */
    struct xp_arena *sort_arena;
    struct xp_bump sort_bump;
    struct lane_raw *chunk, *chunk2;
    uint32_t nchunk;
    struct lane_pen *pen;
    struct part_line runs; /* lanes: the runs */
    uint32_t runs_cap;
    struct line_cursor merge;
    bool merging;
};

enum hand_doing { HAND_FREE, HAND_INDEX, HAND_META, HAND_LINES };

struct hand {
    struct load *load;
    bool posted;
    bool waits;          /* for bytes that are on their way */
    bool woken, resting; /* of the load's lock: they came; the hand is off the workers */
    bool stays;          /* small reads are waited for on the spot */
    struct xp_arena *scratch;
    struct xp_bump out; /* into the part's arena */
    enum hand_doing doing;
    struct plane_job *pj;
    uint8_t *buf; /* holds [buf_at, buf_at + buf_n) of the object */
    uint64_t buf_at;
    size_t buf_n;
    struct xspace_decoder *dec;
    struct line_builder *builder;
    struct side_pen side;
    struct device_pen device;
    struct memory_pen memory;
    uint64_t pos, end;  /* of the message being decoded */
    uint64_t extent;    /* end of what will be read soon */
    bool open;          /* the decoder is inside it */
    uint32_t run;       /* HAND_META: of the plane */
    struct group group; /* HAND_LINES: what is left of it */
    struct line_job line;
    struct known_text texts[LINE_TEXTS];
};

struct load {
    char *key;
    struct load_source src;
    struct load_hooks hooks;
    struct xp_budget *budget;
    struct xp_workers *workers;
    atomic_bool cancelled;

    struct part *part;
    int64_t far_origin_ns;    /* of lines that count from boot; 0: none */
    struct xp_arena *scratch; /* index, jobs */
    struct xspace_indexer *indexer;
    struct xspace_index index;
    struct plane_job *jobs; /* in file order */
    uint32_t *order;        /* in order of work */
    struct group *groups;

    pthread_mutex_t lock;     /* all below */
    struct xp_reader *source; /* what the store gave */
    pthread_mutex_t hook_lock;
    struct hand hands[LOAD_HANDS];
    int nhands, active;
    uint32_t next_meta;                 /* index into order */
    struct plane_job *open[LOAD_HANDS]; /* whose lines wait to be taken */
    int nopen;
    uint32_t planes_left;
    bool failed, index_over, has_plane;
    struct xp_error error;  /* ends the load */
    struct xp_error damage; /* of the object */
    bool partial, utf8_bad;
    uint64_t utf8_bad_at;
};

/* The first error wins; every hand stops at its next look. */
void load_fail(struct load *l, const struct xp_error *err);
/* Fails the load when an arena is spent. */
void load_busy(struct load *l);
void load_damage(struct load *l, const struct xp_error *err);
void load_check_utf8(struct load *l, struct xp_span s, uint64_t at);
bool load_stopped(struct load *l);
void load_changed(struct load *l);

/* Bytes from `at` on, as many as are at hand: at least one, or the load has failed. */
struct xp_span hand_read(struct hand *h, uint64_t at);
/* Feeds the decoder with [h->pos, h->end), *budget bytes of it. Returns true when the message is
 * over, whole or not; *st is then what the decoder said, and anything but XP_OK and XP_CORRUPT has
 * failed the load. */
bool hand_decode(struct hand *h, uint64_t *budget, enum xp_status *st, struct xp_error *err);

/* True when n bytes at `at` are still on their way from another machine: the hand ends its slice
 * and goes on when they are there. */
bool hand_must_wait(struct hand *h, uint64_t at, uint64_t n);

/* Reads n bytes at `at` into the hand's buffer. */
enum xp_status hand_fill(struct hand *h, uint64_t at, size_t n, struct xp_error *err);
/* Admits the plane and makes its metadata the hand's job. False: the load has failed. */
bool hand_begin_meta(struct hand *h, struct plane_job *pj);
void plane_publish(struct hand *h, struct plane_job *pj);

/* Session time of line time 0; once time's origin is chosen. */
int64_t load_base_of(const struct load *l, int64_t timestamp_ns);
/* Some of the index; true: it is made, or the load has failed. */
bool hand_index(struct hand *h);
/* Both do some of the plane's work, up to *budget bytes; true: there is no more of it. */
bool hand_meta(struct hand *h, uint64_t *budget);
bool hand_lines(struct hand *h, uint64_t *budget);

bool plane_job_open(struct plane_job *pj, struct load *l);
/* Moves what was learned into the part. False when the budget is spent. */
bool plane_job_publish(struct plane_job *pj, struct load *l, struct xp_bump *out);
void plane_job_close(struct plane_job *pj);
/* The number of an event's name; IDMAP_NONE when the budget is spent. */
uint32_t plane_job_stray(struct plane_job *pj, int64_t id);
/* The kind of a stat. */
uint8_t plane_job_kind(const struct plane_job *pj, const struct part *p, int64_t id);

#endif
