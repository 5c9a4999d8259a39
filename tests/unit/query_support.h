/* tests/unit/query_support.h - small profiles made by hand, with the bytes they would have.
 *
 * fixture_plane opens a plane, fixture_line adds lines to it; events are dealt into lanes by
 * line_builder and written as XEvents into `file`, so that details can be read back.
 */
#ifndef TESTS_UNIT_QUERY_SUPPORT_H
#define TESTS_UNIT_QUERY_SUPPORT_H

#include <jansson.h>

#include "shard/out.h"
#include "shard/store/part.h"
#include "tests/unit/unit.h"

#define FIXTURE_PLANES 16
#define FIXTURE_LINES 4096

struct fixture {
    struct xp_arena *arena;
    struct xp_buf file;
    struct part part;
    struct part_plane planes[FIXTURE_PLANES];
    struct part_line lines[FIXTURE_LINES];
};

struct fixture_event {
    int64_t begin_ps, end_ps; /* line time */
    uint32_t name;
    struct xp_span stats; /* XStats as fields 4, see fixture_stat */
    uint64_t at;          /* set by fixture_line */
};

struct fixture *fixture_new(void);
void fixture_free(struct fixture *f);

/* Its event names are names[0..n); its stat names "stat1", "stat2", ... have ids 1, 2, ... */
struct part_plane *fixture_plane(struct fixture *f, const char *name, const char *const *names,
                                 uint32_t n);
/* Sorts ev by (begin, longer first) and fills in at. */
struct part_line *fixture_line(struct fixture *f, const char *name, int64_t base_ps,
                               struct fixture_event *ev, size_t n);
/* To be called when all planes are there. */
void fixture_done(struct fixture *f);

/* Appends an XStat of the plane's stat `id` to b as field `field`. */
void fixture_stat_u64(struct xp_buf *b, uint32_t field, uint64_t id, uint64_t v);
void fixture_stat_str(struct xp_buf *b, uint32_t field, uint64_t id, const char *s);

/* Random numbers that are the same in every run. */
uint64_t fixture_random(uint64_t *state);
/* n events that nest and follow one another, some of no length, in [0, n * spread). */
struct fixture_event *fixture_random_events(uint64_t *state, size_t n, uint64_t spread,
                                            uint32_t names);

/* The JSON in out; fails the test when it is none. */
json_t *fixture_json(struct out *out);
int64_t fixture_int(json_t *obj, const char *key);

#endif
