/* shard/tools/report_beside.h - tables with a column for each device, and a choice of samples.
 *
 * A table's columns are bounded, so only the first BESIDE_MAX devices stand in it; beside_note
 * says how many do not.
 */
#ifndef SHARD_REPORT_BESIDE_H
#define SHARD_REPORT_BESIDE_H

#include "shard/report/report.h"
#include "shard/tools/tool.h"

#define BESIDE_MAX 48

struct beside {
    struct beside_device {
        struct xp_span host;
        int64_t id;
    } v[BESIDE_MAX], last_out;
    uint32_t n, left_out;
    bool hosts; /* of several: they are named, too */
};

/* Its column, made if it is new; BESIDE_MAX: there is no room. One device's calls come together. */
uint32_t beside_place(struct beside *b, struct xp_span host, int64_t id);

/* What stands before the devices, one column a device like `each`, what stands after them. A
 * device's column is called by its number, or host/number, its label begins with each->label.
 * NULL: no memory. */
struct report_column *beside_columns(const struct beside *b, const struct report_column *before,
                                     uint32_t nbefore, const struct report_column *each,
                                     const struct report_column *after, uint32_t nafter,
                                     struct xp_arena *a);
void beside_note(struct report *r, const struct beside *b);

/* sample=, against=: numbers of samples, whole ones. */
struct beside_samples {
    int64_t sample, against;
    bool has_sample, has_against;
};
enum xp_status beside_samples_of(const struct tool_args *args, struct beside_samples *s,
                                 struct xp_error *err);

/* The table of samples that there are: number, kernel, devices. v in any order; it is sorted. */
struct beside_sample {
    int64_t id;
    struct xp_span kernel;
    uint64_t devices;
};
/* XP_BAD_REQUEST: samples there are, but not one that is asked for; v in any order. */
enum xp_status beside_samples_exist(const struct beside_samples *s, const struct beside_sample *v,
                                    uint64_t n, struct xp_error *err);
void beside_table_samples(struct report *r, struct beside_sample *v, uint64_t n);

#endif
