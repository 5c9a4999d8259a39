/* shard/tools/kernel_tally.h - counts and times by a few texts: opcodes by unit, lines of source.
 *
 * Rows are numbered from 1 in order of first appearance. Profiles may have as many texts as events:
 * above KERNEL_TALLY_MAX rows all that is new is added up in row 0.
 */
#ifndef SHARD_KERNEL_TALLY_H
#define SHARD_KERNEL_TALLY_H

#include "lib/base/strpool.h"

#define KERNEL_TALLY_KEYS 3
#define KERNEL_TALLY_MAX 20000
#define KERNEL_TEXT_MAX 2048 /* bytes of a text */

struct kernel_tally_row {
    uint32_t key[KERNEL_TALLY_KEYS]; /* of texts, or numbers */
    uint64_t count;
    int64_t time_ps, self_ps, longest_ps, first_ps; /* first_ps: the first begin */
};

struct kernel_tally {
    struct xp_arena *a;
    struct xp_strpool keys;
    struct kernel_tally_row *rows;
    uint32_t n, cap; /* rows, with row 0 */
};

/* Texts of all tallies of a kernel; 0 is the empty one. */
uint32_t kernel_text_id(struct xp_strpool *texts, struct xp_span s);

bool kernel_tally_init(struct kernel_tally *t, struct xp_arena *a);
/* The row of the key, made if it is new; NULL when there is no memory. */
struct kernel_tally_row *kernel_tally_row(struct kernel_tally *t, const uint32_t *key);
void kernel_tally_add(struct kernel_tally_row *r, int64_t begin_ps, int64_t time_ps, bool begins);

/* Row numbers by time, the longest first, at most `max`, without row 0. NULL: no memory. */
uint32_t *kernel_tally_sorted(const struct kernel_tally *t, uint32_t max, uint32_t *n);

#endif
