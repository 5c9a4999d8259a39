/* shard/tools/op_words.h - what the text of a collective's instruction tells: who takes part, by
 * which channel, how many bytes.
 *
 *   %start = (bf16[4,8]{1,0:T(8,128)}, bf16[4,8], u32[]) collective-permute-start(...),
 * channel_id=1, source_target_pairs={{0,1},{1,0}}
 *
 * Texts come from profiles: whatever they hold, reading ends, and what is not told is empty.
 * Members are numbered as the program numbers its partitions; which device has which number no
 * profile says, and pages that take partition i for device i say so.
 */
#ifndef SHARD_OP_WORDS_H
#define SHARD_OP_WORDS_H

#include "lib/base/span.h"

#define OP_WORDS_MEMBERS (1u << 16) /* of all groups together; of larger ones nothing is told */

struct op_words {
    struct xp_span opcode;  /* "all-reduce-start" */
    struct xp_span operand; /* of a -done: the name of its start, without % */
    struct xp_span groups;  /* "{{0,1},{2,3}}" or "[2,4]<=[8]" */
    struct xp_span pairs;   /* "{{0,1},{1,0}}" */
    int64_t channel;        /* -1: none */
    /* Of the result; of a send or an asynchronous start of its first part, which is what is sent.
     * 0: not told. */
    uint64_t bytes;
};

struct op_words op_words_read(struct xp_span text);

/* The group that a member is in, as "0,1,2,3", or "0,4,8,... of 64" where that is too long: its
 * length; 0: it is in none, or the groups are not of a form that is known. What is written is the
 * members with base added. */
size_t op_words_group(struct xp_span groups, int64_t member, int64_t base, char *to, size_t cap);

/* The highest number that the op names, in groups or pairs; -1: none. */
int64_t op_words_highest(const struct op_words *w);

/* The next pair; what is left of the pairs stays in *pairs. */
bool op_words_pair(struct xp_span *pairs, int64_t *from, int64_t *to);

#endif
