/* shard/query/query_int.h - what the queries share: rows, times, names.
 *
 * All look at struct part_line through a list of query_line, so that lines that are not in the
 * file (derive/) can stand in it: their numbers follow those of the file's lines, their events are
 * numbered from QUERY_DERIVED_ID on, line by line and lane by lane.
 */
#ifndef SHARD_QUERY_INT_H
#define SHARD_QUERY_INT_H

#include "lib/base/json_out.h"
#include "shard/derive/derive.h"
#include "shard/lod/lod.h"
#include "shard/query/query.h"

struct query_line {
    const struct part_line *line;
    uint32_t number;
    const struct derive_line *made; /* NULL: a line of the file */
    uint64_t first_id;              /* of a derived line: its first event's */
};

struct query_lines {
    struct query_line *v;
    size_t n;
};

/* No file is so large: ids below are offsets, those from here on count derived events. */
#define QUERY_DERIVED_ID (UINT64_C(1) << 52)

/* What names and derived lines are looked up in. Without derived lines only p is set. */
struct query_book {
    const struct part *p;
    const struct derive *d;
    struct query_line *made; /* the derived lines, in order of number */
    uint32_t nmade;
    uint64_t end_id; /* behind the last derived event */
};

/* Makes the derived lines, unless that was done. XP_BUSY: the part is still being loaded. */
enum xp_status query_derive(struct query_book *b, struct xp_arena *a, struct xp_error *err);

/* The event's id, from what a cursor on that lane gave. */
uint64_t query_id(const struct query_line *l, uint32_t lane, const struct lane_event *ev);
struct xp_span query_line_name(const struct query_book *b, const struct query_line *l);

/* Names of a line's events are numbered in a table: its plane's metadata, those of derived
 * events, or groups, for derived lines whose events are called by their group. */
static inline uint32_t query_table(const struct query_book *b, const struct query_line *l)
{
    return !l->made ? l->line->plane : b->p->nplanes + (l->made->named_by_step ? 1 : 0);
}
static inline uint32_t query_tables(const struct query_book *b)
{
    return b->p->nplanes + 2;
}
uint32_t query_table_size(const struct query_book *b, uint32_t table);

/* The name that an event is shown by, as an id for query_text; 0 is "". */
uint32_t query_name(const struct query_book *b, uint32_t table, uint32_t name);
struct xp_span query_text(const struct query_book *b, uint32_t id);

/* Order of calls: query_progress, query_select, query_times. Planes are published while a query
 * runs: so an answer that says that nothing is loading has everything, and a window that stands for
 * the whole reaches over all that was selected. */

/* The published lines among `rows`, in their order; no rows: those of the file, and the derived
 * ones too if `derived`. XP_BAD_REQUEST for a number that no line has. */
enum xp_status query_select(struct query_book *b, const struct query_rows *rows, bool derived,
                            struct xp_arena *a, struct query_lines *out, struct xp_error *err);

/* A window as asked for, resolved: both 0 is the whole of what is published, with the end one ps
 * behind the last event's, so that an event of no length there is inside. */
struct query_span {
    int64_t t0_ps, t1_ps; /* t0 < t1 */
    bool whole;
};
enum xp_status query_times(const struct part *p, int64_t t0_ps, int64_t t1_ps,
                           struct query_span *out, struct xp_error *err);

struct query_progress {
    bool loading;
    uint64_t bytes_done, bytes_total;
    uint32_t planes_done, planes_total;
    bool partial; /* known once nothing is loading any more */
};
void query_progress(const struct part *p, struct query_progress *out);

static inline int64_t query_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t query_sub(int64_t a, int64_t b)
{
    int64_t diff;
    if (!__builtin_sub_overflow(a, b, &diff))
        return diff;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

/* Session time of a line time, and back. Line times lie within +-2^62 (lane.h). */
static inline int64_t query_session(const struct part_line *l, int64_t t_ps)
{
    return query_add(l->base_ps, t_ps);
}

#define QUERY_LINE_TIME_MAX (INT64_C(1) << 62)

static inline int64_t query_line_time(const struct part_line *l, int64_t t_ps)
{
    int64_t t = query_sub(t_ps, l->base_ps);
    if (t > QUERY_LINE_TIME_MAX)
        return QUERY_LINE_TIME_MAX;
    return t < -QUERY_LINE_TIME_MAX ? -QUERY_LINE_TIME_MAX : t;
}

/* Does any event of the line overlap the window? (May say yes for a near miss.) */
static inline bool query_line_in(const struct part_line *l, const struct query_span *s)
{
    return l->nevents && l->begin_ps < s->t1_ps && l->end_ps >= s->t0_ps;
}

enum query_kind { QUERY_DEVICE, QUERY_CUSTOM, QUERY_HOST, QUERY_OTHER };
enum query_kind query_plane_kind(struct xp_span name);

/* The longest prefix of s within max bytes that does not cut a UTF-8 sequence. */
struct xp_span query_cut(struct xp_span s, size_t max);

/* --- find.c: events by id --- */

struct query_event_at {
    struct query_line l;
    uint32_t lane;
    struct lane_event ev; /* its `at` is the event's id */
};

/* XP_NOT_FOUND: there is none; XP_BUSY: its plane is not decoded yet. */
enum xp_status query_find(struct query_book *b, uint64_t id, struct xp_arena *a,
                          const struct out *out, struct query_event_at *found,
                          struct xp_error *err);
/* The event before (dir < 0) or after it on the line, in order of (begin, longer first, id). */
bool query_step(const struct query_event_at *from, int dir, struct query_event_at *to);
/* Duration less the events of the next lane that lie wholly inside. */
int64_t query_self(const struct query_event_at *e);

/* --- flows.c --- */

/* Writes the "flows" of an event as a JSON array. */
enum xp_status query_flows(const struct part *p, const struct query_event_at *e, struct xp_arena *a,
                           struct xp_json *j, const struct out *out, struct xp_error *err);

#endif
