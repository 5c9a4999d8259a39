/* shard/query/pattern.h - the search grammar (docs/api.md), from text to tests.
 *
 * words   substrings of the name, ASCII case folded; all must match
 * -word   must not match
 * name:x line:x plane:x   where the word is looked for
 * "two words"             quoted: spaces and a leading '-' count
 * dur>10us dur<1ms        also >= and <=; ps ns us ms s, decimals allowed
 */
#ifndef SHARD_QUERY_PATTERN_H
#define SHARD_QUERY_PATTERN_H

#include "lib/base/arena.h"
#include "lib/base/status.h"

#define PATTERN_MAX 1024
#define PATTERN_WORDS 32

enum pattern_where { PATTERN_NAME, PATTERN_LINE, PATTERN_PLANE };

struct pattern_word {
    enum pattern_where where;
    bool negated;
    struct xp_span text; /* folded */
};

struct pattern {
    struct pattern_word words[PATTERN_WORDS];
    size_t n;
    int64_t min_ps, max_ps; /* durations that match, inclusive */
    bool timed;             /* there is a condition on the duration */
    uint8_t text[PATTERN_MAX];
};

/* XP_BAD_REQUEST with a sentence. */
enum xp_status pattern_parse(struct pattern *p, struct xp_span q, struct xp_error *err);

/* Do all words about `where` match s? */
bool pattern_match(const struct pattern *p, enum pattern_where where, struct xp_span s);

/* A row of the timeline: words without a prefix are looked for in both names. */
bool pattern_match_row(const struct pattern *p, struct xp_span plane, struct xp_span line);

#endif
