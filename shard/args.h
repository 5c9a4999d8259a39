/* shard/args.h - request arguments, from text to checked values.
 *
 * Every getter leaves *v alone when the argument is absent or empty, and fails with
 * XP_BAD_REQUEST and a sentence that names the argument when it is not of its form or out of
 * range. Numbers are decimal integers; no signs but '-', no spaces, no overflow.
 */
#ifndef SHARD_ARGS_H
#define SHARD_ARGS_H

#include "lib/base/arena.h"
#include "lib/base/status.h"
#include "shard/query/query.h"
#include "shard/shard.h"

struct args {
    const struct shard_arg *v;
    size_t n;
};

/* The first value of that name; p == NULL when absent. */
struct xp_span args_get(const struct args *a, const char *name);

enum xp_status args_i64(const struct args *a, const char *name, int64_t min, int64_t max,
                        int64_t *v, struct xp_error *err);
enum xp_status args_u64(const struct args *a, const char *name, uint64_t max, uint64_t *v,
                        struct xp_error *err);
enum xp_status args_u32(const struct args *a, const char *name, uint32_t min, uint32_t max,
                        uint32_t *v, struct xp_error *err);

/* t0 and t1: both or neither, t0 < t1. */
enum xp_status args_window(const struct args *a, int64_t *t0_ps, int64_t *t1_ps,
                           struct xp_error *err);

#define ARGS_ROWS_MAX 65536

/* "0,3,7-12": sorted, without repeats, in memory of the arena. Absent: n = 0. */
enum xp_status args_rows(const struct args *a, struct xp_arena *arena, struct query_rows *rows,
                         struct xp_error *err);

#endif
