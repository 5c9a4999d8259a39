/* shard/derive/derive.h - what XProf adds to a profile before its tools look at it.
 *
 * XProf rewrites a profile when it reads it: it repairs metadata, turns old statistics into
 * producers and consumers, draws flows, gives events of one step a group, and adds lines (steps,
 * framework scopes and ops, source code, ...). Here the part stays as it is; a struct derive holds
 * the difference, made once for a part, when a tool first asks.
 *
 * Lines      derive->lines are the lines as XProf shows them, plane by plane, the file's first
 *            and then those made here. A line of the file may be hidden (its place is taken by a
 *            derived one) or shown under another number.
 * Names      Events of the file's lines are named by the plane's metadata; those of derived
 *            lines (line->derived) by derive->names. derive_event_name knows both.
 * Groups     No event holds its group. It follows from the time (TPU planes: the step that the
 *            event overlaps), from the enclosing spans of its thread (24 bytes a span that changes
 *            the group), or from runs of events of equal group (GPU planes).
 * Flows      Follow from the statistics kept beside the events (side.h) and the event's name.
 * Ids        A derived event's `at` is that of an event it was made from: it is no id.
 * Order      derive_get blocks while another worker derives; it costs a pass over the events of
 *            TensorCore and GPU planes and of host lines that have statistics.
 * Memory     In the part's arena, so that it is charged and dropped with the part.
 * Nesting    Host events that overlap in part are taken as nested by time alone; XProf's stack
 *            may hang a later event elsewhere.
 * Limits     derive_get gives XP_BUSY when the budget is spent, and again at the next call.
 */
#ifndef SHARD_DERIVE_H
#define SHARD_DERIVE_H

#include "shard/store/part.h"

#define DERIVE_DEVICES_MAX                                                                         \
    16384 /* of one host; of a profile that names more nothing is derived                          \
           */

#define DERIVE_LINE_FIRST INT64_C(0xdeadbeef) /* ids of derived lines begin here */
#define DERIVE_LINE_STEPS (DERIVE_LINE_FIRST + 0)
#define DERIVE_LINE_LAUNCHES (DERIVE_LINE_FIRST + 1)
#define DERIVE_LINE_SCOPES (DERIVE_LINE_FIRST + 2)
#define DERIVE_LINE_OPS (DERIVE_LINE_FIRST + 3)
#define DERIVE_LINE_MODULES (DERIVE_LINE_FIRST + 4)
#define DERIVE_LINE_HLO_OPS (DERIVE_LINE_FIRST + 5)
#define DERIVE_LINE_SOURCE (DERIVE_LINE_FIRST + 7)
#define DERIVE_LINE_OFFLOADS (DERIVE_LINE_FIRST + 8)
#define DERIVE_LINE_OFFLOADS_MAX 41
#define DERIVE_LINE_HOST_LAST (DERIVE_LINE_FIRST + 289)
#define DERIVE_LINE_GPU_FIRST (DERIVE_LINE_FIRST + 290)
#define DERIVE_LINE_GPU_LAST (DERIVE_LINE_GPU_FIRST + 99)

#define DERIVE_NO_GROUP INT64_MIN

struct derive_name {
    uint32_t name, display; /* ids in derive->strings; display 0: none */
    uint32_t evmeta;        /* index + 1 of the plane's metadata that shares the name, or 0 */
    uint32_t start;         /* OFFLOADS: metadata of the start, index + 1; evmeta is the end's */
};

/* What XProf adds as arguments to the events of derived lines. */
enum derive_args {
    DERIVE_ARGS_NONE,
    DERIVE_ARGS_STEPS,    /* step_name; on TPUs step_idle_time_ps too */
    DERIVE_ARGS_LAUNCHES, /* num_launches, max_launch_time_us, avg_launch_time_us */
    DERIVE_ARGS_OFFLOADS  /* _a, raw_bytes_accessed of the end, shape_with_layout of the start */
};

struct derive_launch {
    int64_t group;
    uint64_t count, max_ps, sum_ps;
};

enum derive_group_by {
    DERIVE_GROUP_STAT, /* the event's own statistic, if any */
    DERIVE_GROUP_NONE,
    DERIVE_GROUP_STEPS,
    DERIVE_GROUP_SPANS,
    DERIVE_GROUP_RUNS
};

/* SPANS: the innermost that includes the event; RUNS: the last that is not after it.
 * In order of (begin, longer first). */
struct derive_span {
    int64_t begin_ps, end_ps; /* session time */
    int32_t group;
    int32_t parent; /* SPANS: index of the span around it, or -1 */
};

struct derive_line {
    const struct part_line *line;
    uint32_t plane;
    int64_t tid;             /* number it is shown under */
    bool hidden;             /* another line stands for it */
    bool own_names;          /* its events are named by derive->names */
    bool named_by_step;      /* events are called by the name of their group */
    uint8_t group_by;        /* enum derive_group_by */
    uint8_t args;            /* enum derive_args */
    bool module_line;        /* TPU "XLA Modules": launches end here */
    struct xp_span name;     /* as shown */
    const struct side *side; /* of the events' stats, by `at` */
    const struct derive_span *spans;
    uint32_t nspans;
    const struct derive_launch *launches; /* one an event, in order */
    uint32_t nlaunches;
};

struct derive_plane {
    struct xp_span name;
    uint32_t first_line, nlines; /* in derive->lines; while deriving, see derive_plane_lines */
    uint16_t *evflags;           /* one an event metadata; enum derive_evflag */
    bool *unused;                /* one an event metadata: no event has it; NULL: not known */
    uint64_t kinds;              /* bit k: the plane knows a stat of kind k */
    uint16_t evflags_any;        /* all of them or-ed */
    bool hides;                  /* some metadata is EV_INTERNAL */
    bool device, host, tpu, tensor_core, gpu;
    uint32_t ordinal;
    const struct derive_span *steps; /* spans of the grouping line, group -1: none */
    uint32_t nsteps;
};

enum derive_evflag {
    EV_INTERNAL = 1 << 0, /* never shown */
    EV_TYPED = 1 << 1,    /* XProf knows the name */
    EV_TF_OP = 1 << 2,    /* is marked eager or not */
    EV_IMPLICIT = 1 << 3, /* a root that is not named by itself */
    EV_EXECUTOR = 1 << 4, /* ExecutorState::Process */
    EV_ITERATOR = 1 << 5, /* IteratorGetNext... */
    EV_TPU_EXECUTE = 1 << 6,
    EV_ENQUEUE = 1 << 7,
    EV_DEQUEUE = 1 << 8,
    EV_LAUNCH = 1 << 9,    /* DoEnqueueProgram */
    EV_COMPLETE = 1 << 10, /* CompleteCallbacks */
    EV_RUN_ID = 1 << 11,   /* run_id is cut to 27 bits */
    EV_ROOT1 = 1 << 12,
    EV_ROOT2 = 1 << 13,
    EV_TF_DATA = 1 << 14,
    EV_MARKER = 1 << 15 /* a thread pool's start or stop mark, or a TraceContext */
};

struct derive_root {
    uint64_t at;
    uint32_t name; /* in derive->strings */
};

/* An event of one group came upon another's: a request (parent) and the batch (child) it ran in. */
struct derive_relation {
    int32_t parent, child;
};

struct derive {
    const struct part *part;
    struct xp_strpool strings;
    struct derive_name *names;
    uint32_t nnames;
    struct derive_plane *planes; /* one a plane of the part */
    struct derive_line *lines;
    uint32_t nlines;
    uint32_t *group_names; /* by group; 0: none */
    uint32_t ngroups;
    struct derive_root *roots; /* events called by their group, by at */
    uint32_t nroots;
    struct derive_relation *relations; /* by (parent, child), each once */
    uint32_t nrelations;
    bool grouped;    /* the file was grouped already: nothing was added */
    uint64_t looked; /* lines looked at while deriving: a few times as many as there are */
    uint64_t host;
};

/* Made at the first call. The part is pinned and wholly loaded. */
enum xp_status derive_get(struct part *p, const struct derive **out, struct xp_error *err);

/* The same for those who need groups, but none of the lines made for TPU cores: a third of the
 * work. Both may be asked for; each is made at most once. */
enum xp_status derive_groups_get(struct part *p, const struct derive **out, struct xp_error *err);

/* For cut.h: what derive_get and derive_groups_get give for this part. False: memory is out. */
bool derive_borrow(struct part *p, const struct derive *d);

/* What others keep with the part (FLOWS and LAYERS with all lines, others with groups): each made
 * once, in memory of the part's arena. Makers may ask for a different one, in no circle. */
enum derive_kept {
    DERIVE_KEPT_FLOWS,
    DERIVE_KEPT_LAYERS,
    DERIVE_KEPT_OP_STATS,
    DERIVE_KEPT_OP_CHILDREN,
    DERIVE_KEPT_MEMORY,
    DERIVE_KEPT_MEMORY_TIMES,
    DERIVE_KEPT_STEPS,
    DERIVE_KEPT_FIGURES,
    DERIVE_KEPT_COUNT
};
typedef enum xp_status (*derive_make_fn)(struct part *p, const struct derive *d, void **kept,
                                         struct xp_error *err);
enum xp_status derive_keep(struct part *p, enum derive_kept slot, derive_make_fn make, void **kept,
                           struct xp_error *err);

/* --- events --- */

struct derive_event {
    int64_t begin_ps, end_ps; /* session time */
    uint64_t at;
    uint32_t name;
};

/* A moving look at one line's events; cheapest in ascending order, right in any. */
struct derive_eye {
    const struct derive *d;
    const struct derive_line *line;
    struct side_cursor side;
    uint32_t span;
};
void derive_look(struct derive_eye *eye, const struct derive *d, const struct derive_line *line);

/* The event's group, or DERIVE_NO_GROUP. */
int64_t derive_group(struct derive_eye *eye, const struct derive_event *ev);

enum derive_dir { DERIVE_DIR_NONE, DERIVE_DIR_IN, DERIVE_DIR_OUT, DERIVE_DIR_BOTH };
struct derive_flow {
    uint64_t id; /* 56 bits */
    uint8_t dir; /* enum derive_dir */
    uint8_t category;
    bool async;
};
/* False: no flow. */
bool derive_flow(struct derive_eye *eye, const struct derive_event *ev, struct derive_flow *flow);

/* What the event is called, and its long name (empty if it is called by its own name). */
struct xp_span derive_event_name(struct derive_eye *eye, const struct derive_event *ev,
                                 struct xp_span *long_name);
/* A root's step name, or a step_name stat of the file's; empty for other events. */
struct xp_span derive_step_name(struct derive_eye *eye, const struct derive_event *ev);
/* Name of a group; empty if it has none. */
struct xp_span derive_group_name(const struct derive *d, int64_t group);
/* "tf_exec"...; "" for those without a name. */
const char *derive_category(uint8_t category);

#endif
