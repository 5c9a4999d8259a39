/* shard/tools/kernel_inside_int.h - between the files that read a kernel's lines. */
#ifndef SHARD_KERNEL_INSIDE_INT_H
#define SHARD_KERNEL_INSIDE_INT_H

#include "shard/tools/kernel_inside.h"

enum kernel_stat {
    KERNEL_STAT_BUNDLE,
    KERNEL_STAT_DETAILS,
    KERNEL_STAT_SOURCE,
    KERNEL_STAT_SCOPES,
    KERNEL_STAT_PRIMITIVE,
    KERNEL_STAT_SHARE,
    KERNEL_STAT_LONG_NAME,
    KERNEL_STATS
};
extern const char *const kernel_stat_names[KERNEL_STATS];

struct kernel_reader {
    struct kernel_inside *k;
    const struct part *part;
    const struct part_plane *plane;
    struct values_eye eye;
    struct kernel_issue *issues; /* instructions with their bundles */
    size_t nissues, capissues;
};

struct kernel_issue {
    int64_t begin_ps, end_ps;
    uint32_t bundle, opcode, source; /* bundle: KERNEL_NO_BUNDLE */
};
#define KERNEL_NO_BUNDLE UINT32_MAX

/* A part of the run that an event covers. */
struct kernel_event {
    int64_t begin_ps, end_ps;
    uint32_t name;
    uint64_t at;
    bool begins; /* in the run */
};
/* Events of the line that are in the run, from *c on; false at the end. */
bool kernel_next(struct line_cursor *c, const struct kernel_inside *k, struct kernel_event *e);

void kernel_line_sees(struct kernel_line *l, const struct kernel_event *e);

enum xp_status kernel_no_memory(struct xp_error *err);
struct xp_span kernel_event_name(const struct kernel_reader *r, uint32_t name);

enum xp_status kernel_read_instructions(struct kernel_reader *r, const struct part_line *l,
                                        struct kernel_line *told, struct xp_error *err);
enum xp_status kernel_make_bundles(struct kernel_reader *r, struct xp_error *err);
enum xp_status kernel_read_regions(struct kernel_reader *r, const struct part_line *l,
                                   struct kernel_line *told, struct xp_error *err);
enum xp_status kernel_read_points(struct kernel_reader *r, const struct part_line *l,
                                  struct kernel_line *told, struct xp_error *err);
enum xp_status kernel_read_schedule(struct kernel_reader *r, const struct part_line *l,
                                    struct kernel_line *told, struct xp_error *err);

#endif
