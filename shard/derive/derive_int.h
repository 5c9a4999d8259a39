/* shard/derive/derive_int.h - what the files of derive/ share while a part is derived. */
#ifndef SHARD_DERIVE_INT_H
#define SHARD_DERIVE_INT_H

#include "lib/base/buf.h"
#include "shard/derive/derive.h"
#include "shard/derive/pick.h"
#include "shard/derive/vec.h"

struct derive_work {
    struct derive *d;
    struct part *part;
    bool all_lines;           /* TPU cores get theirs too: two thirds of the work */
    struct xp_bump bump;      /* into the part's arena: what stays */
    struct xp_arena *scratch; /* dropped at the end */
    struct vec names;         /* struct derive_name */
    struct vec lines;         /* struct derive_line */
    struct vec scopes;        /* uint32_t, names: those around TPU ops, from the outermost on */
    struct xp_strpool paths;  /* lists of them, in scratch, */
    struct vec path_at;       /* uint32_t: and where each is in scopes */
    struct vec builders;      /* struct line_builder *: idle ones */
    struct vec group_names;   /* uint32_t */
    struct vec roots;         /* struct derive_root */
    struct vec relations;     /* struct derive_relation */
    uint32_t *name_table;     /* open addressing over (plane, name): index + 1 */
    uint32_t *name_planes;    /* plane of each name */
    size_t name_mask;
    uint32_t *metas; /* open addressing over the names of meta_plane's event metadata: index + 1 */
    size_t meta_mask;
    uint32_t meta_plane;
    struct vec nodes;    /* struct group_node */
    struct vec contexts; /* struct group_context */
    struct xp_error *err;
};

enum xp_status derive_busy(struct derive_work *w);

/* The plane's lines of the file are work->lines[*first] to [*end - 1], before those that are made.
 * Whoever looks at a plane's lines asks here: a part may have as many planes as lines. */
static inline void derive_plane_lines(struct derive_work *w, uint32_t plane, uint32_t *first,
                                      uint32_t *end)
{
    const struct derive_plane *dp = &w->d->planes[plane];
    *first = dp->first_line;
    *end = dp->first_line + dp->nlines;
    w->d->looked += dp->nlines;
}

/* A builder of lines that stay, in scratch that is used again; NULL when memory is out. */
struct line_builder *derive_builder(struct derive_work *w, const struct lane_source *sources);
/* Fills the line (line_builder_end), and takes the builder back. */
enum xp_status derive_builder_end(struct derive_work *w, struct line_builder *b,
                                  struct part_line *line);

/* Index in names of the plane's event metadata of this name, made if there is none yet;
 * UINT32_MAX when memory is out. */
uint32_t derive_name_of(struct derive_work *w, uint32_t plane, struct xp_span name);
/* Gives it a display name unless it has one; false when memory is out. */
bool derive_name_display(struct derive_work *w, uint32_t name, struct xp_span display);

/* --- contexts.c --- */

struct derive_context {
    bool has;
    int32_t type;     /* as grouping reads it */
    uint8_t category; /* as flows read it */
    uint64_t id;
};

/* What grouping and flows need of an event's statistics. */
struct derive_stats {
    struct derive_context producer, consumer;
    bool has_correlation, has_flow, async_stat, async, has_root;
    uint64_t correlation, correlation_flow, flow;
    int64_t root;
};

/* Reads the stats at the cursor (side_find'ed) and applies XProf's mutators by name. */
void derive_stats_read(const struct derive *d, const struct derive_plane *plane, bool module_line,
                       uint16_t evflags, const struct side_cursor *side, struct derive_stats *s);
bool derive_stats_flow(const struct derive *d, const struct derive_plane *plane,
                       const struct derive_stats *s, struct derive_flow *flow);
static inline bool derive_int(const struct side_cursor *c, enum stat_kind kind, uint64_t *v)
{
    const struct side_stat *s = side_get(c, kind);
    if (!s || (s->type != SIDE_I64 && s->type != SIDE_U64))
        return false;
    *v = s->num;
    return true;
}

/* --- event_flags.c --- */
uint16_t derive_event_flags(struct xp_span name);
bool derive_is_loop(struct xp_span name);

/* --- walk.c --- */

/* Events of all lines of a plane, in order of (begin, shorter first); session times. */
struct plane_walk;
/* Lines: those for which take(line) holds. NULL when memory is out. */
struct plane_walk *plane_walk_new(const struct derive_line *lines, uint32_t first, uint32_t n,
                                  bool (*take)(const struct derive_line *l, const void *ctx),
                                  const void *ctx);
bool plane_walk_next(struct plane_walk *w, struct plane_event *ev);
/* Events of one lane, in line time, that no other event of the walk comes between. */
struct plane_run {
    const struct lane_event *ev; /* until the next call */
    uint32_t n;
    uint32_t line, lane; /* lane: which of plane_walk_sources */
    int64_t base_ps;
};
/* The same as plane_walk_next, some at a time. */
bool plane_walk_run(struct plane_walk *w, struct plane_run *run);
/* The walk's lanes; stays. NULL when memory is out. */
const struct lane_source *plane_walk_sources(const struct plane_walk *w, struct xp_bump *out);
/* Before the first next: events equal in both come in the order that XProf sees them in. Takes
 * memory for all events. False when it is out. */
bool plane_walk_like_xprof(struct plane_walk *w);
bool plane_walk_failed(const struct plane_walk *w);
void plane_walk_free(struct plane_walk *w);

/* --- maker.c: lines of merged events --- */

struct line_maker;
struct maker_output {
    struct part_line *line; /* NULL: no events */
    struct derive_span *runs;
    uint32_t nruns;
};
/* Events of a GPU plane merge across any gap, and their groups are kept as runs. */
struct line_maker *line_maker_new(struct derive_work *w, bool gpu);
/* Whose levels end when the first of m is begun anew. */
void line_maker_depends(struct line_maker *m, struct line_maker *dependent);
/* Merges the event with the last of its level, or begins one. scope: id of the range, or
 * INT64_MIN. Calls come in order of begin. */
bool line_maker_add(struct line_maker *m, uint32_t level, uint32_t name, int64_t begin_ps,
                    int64_t end_ps, int64_t group, int64_t scope, uint64_t at);
/* The line is kept as a view of these lanes (lane.h). Before the first event. */
void line_maker_view(struct line_maker *m, const struct lane_source *sources);
/* An event that is put on several levels; ref: which one of the sources it is, or LANE_REF_NONE. */
struct maker_op {
    int64_t begin_ps, end_ps, group;
    uint64_t ref;
};
/* Levels 0..n-1 at once, and the end of all deeper ones. Names: at most 1024. path: a number that
 * only calls with the same names have; 0: not known. */
bool line_maker_add_all(struct line_maker *m, const uint32_t *names, size_t n, uint32_t path,
                        const struct maker_op *op);
void line_maker_reset(struct line_maker *m, uint32_t level);
/* Closes it; m is used up. */
enum xp_status line_maker_end(struct line_maker *m, struct maker_output *out);
void line_maker_free(struct line_maker *m);

/* --- group.c, tpu.c, gpu.c --- */
enum xp_status derive_group_events(struct derive_work *w);
enum xp_status derive_tpu_lines(struct derive_work *w, uint32_t plane);
enum xp_status derive_gpu_lines(struct derive_work *w);
enum xp_status derive_regions(struct derive_work *w, uint32_t line);

/* A line made here, added to work->lines. */
struct derive_line *derive_add_line(struct derive_work *w, uint32_t plane, int64_t id,
                                    struct xp_span name, struct part_line *line);

/* Builds a part_line of events given in order; names as the caller likes. */
enum xp_status derive_build(struct derive_work *w, const struct plane_event *ev, size_t n,
                            struct part_line **out);

static inline bool derive_id_is_ours(int64_t id)
{
    int32_t v = (int32_t)id, first = (int32_t)DERIVE_LINE_FIRST;
    return v >= first && v <= (int32_t)DERIVE_LINE_GPU_LAST;
}

#endif
