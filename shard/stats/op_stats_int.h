/* shard/stats/op_stats_int.h - what the files of op_stats share while one host is worked out.
 *
 * Ops of all device planes gather in one table, strings in one pool; both go to the part's arena
 * at the end. Scratch is from malloc (vec.h) and from `scratch`, dropped at the end.
 */
#ifndef SHARD_OP_STATS_INT_H
#define SHARD_OP_STATS_INT_H

#include "lib/base/strpool.h"
#include "shard/derive/derive.h"
#include "shard/derive/meta_reader.h"
#include "shard/derive/vec.h"
#include "shard/stats/op_stats.h"

/* Ops by (program, name). */
struct op_table {
    struct vec ops; /* struct op_metrics */
    uint32_t *slots;
    size_t mask;
};

/* The op of that program and name, added if new; NULL when memory is out. Dies at the next call. */
struct op_metrics *op_table_get(struct op_table *t, uint64_t program, struct xp_span name);
void op_table_fini(struct op_table *t);

struct op_hlo; /* op_hlo.c */

struct op_build {
    struct part *part;
    const struct derive *d;
    struct op_stats *stats;
    struct op_host *host;
    struct xp_arena *scratch;
    struct xp_arena *core;     /* scratch of the core that is walked, see op_next_core */
    struct xp_bump bump;       /* into the part's arena: what stays */
    struct xp_strpool strings; /* there too */
    struct op_table device, host_ops;
    struct op_hlo *hlo;
    struct xp_error *err;
};

enum xp_status op_busy(struct op_build *b);
/* Drops what the last core took of `core`, for a file may have a million of them. */
enum xp_status op_next_core(struct op_build *b);
/* A copy of s that stays; false when memory is out. */
bool op_text(struct op_build *b, struct xp_span s, struct xp_span *out);
/* An array from what v holds; NULL in *to when it is empty. False when memory is out. */
bool op_keep(struct op_build *b, const struct vec *v, size_t size, void *to, uint32_t *n);

/* --- op_meta.c: what metadata say about the ops that are called so --- */

struct op_meta {
    struct op_metrics op; /* texts; flops, bytes and memory of one run */
    uint64_t symbol;
    uint32_t kind;     /* op_kind_of(category) */
    uint32_t category; /* number of the category in the plane */
    bool counted;      /* has a program and a symbol: its events are ops */
};

struct op_metas {
    struct op_meta *v; /* one an event metadata of the plane */
    uint32_t n;
    struct xp_span *categories;
    uint32_t ncategories;
};
enum xp_status op_metas_read(struct op_build *b, uint32_t plane, struct op_metas *out);

/* --- one op into another --- */

/* Adds times, counts, flops and bytes. */
void op_add(struct op_metrics *to, const struct op_metrics *from);
/* Takes texts that `to` lacks. */
void op_texts(struct op_metrics *to, const struct op_metrics *from);
void op_memory_add(struct op_memory *to, const struct op_memory *from, uint64_t times);
/* A core's ops end with what is left of its time. False when memory is out. */
bool op_add_idle(struct op_table *t, struct op_db *db, uint64_t total_ps, uint64_t op_ps);

/* --- op_merge.c --- */

int op_kernel_compare(const struct op_kernel *x, const struct op_kernel *y);
/* By total time; how many stay. */
uint32_t op_kernels_sort(struct op_kernel *v, uint32_t n);

/* --- the planes --- */

enum xp_status op_tpu_planes(struct op_build *b);                 /* op_tpu.c */
enum xp_status op_gpu_planes(struct op_build *b);                 /* op_gpu.c */
enum xp_status op_host_plane(struct op_build *b, uint32_t plane); /* op_host.c */
enum xp_status op_environment(struct op_build *b);                /* op_env.c */

/* The value of a plane's own stat; false when it has none. */
bool op_plane_stat(const struct op_build *b, const struct part_plane *pl, const char *name,
                   struct xspace_stat *out);
bool op_plane_num(const struct op_build *b, const struct part_plane *pl, const char *name,
                  double *v);

/* --- op_hlo.c: what the programs say about their instructions --- */

enum xp_status op_hlo_open(struct op_build *b);
void op_hlo_close(struct op_build *b);
/* Ops inside fusions, for ops that have none yet. */
enum xp_status op_hlo_children(struct op_build *b, struct op_metrics *op);
/* Texts and cost of the instruction (GPU); *found false: it is not known. */
enum xp_status op_hlo_instruction(struct op_build *b, uint64_t program, struct xp_span name,
                                  struct op_metrics *out, struct xp_span *framework_op,
                                  bool *found);

static inline struct xp_span op_plane_name(const struct op_build *b, uint32_t plane)
{
    return part_str(b->part, b->part->planes[plane].name);
}

#endif
