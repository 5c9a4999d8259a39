/* lib/base/regex.h - regular expressions that cannot take long.
 *
 *   abc  .  [a-f0-9]  [^x]  \d \w \s \D \W \S  \. (any mark, taken literally)
 *   x*  x+  x?  x|y  (x)  (?:x)  ^  $
 *
 * A pattern is found anywhere in a text unless ^ or $ hold it. Letters of ASCII match in either
 * case. Texts are bytes: a character beyond ASCII is the sequence of its bytes, and stands in no
 * class. A pattern has at most XP_REGEX_PLACES characters and classes that can match; matching is
 * eight look-ups a byte, whatever the pattern: all places at once are one word of 64 bits
 * (Glushkov's automaton). web/src/model/regex.ts is the same for the pages.
 *
 * Threads: parse fills *r; then it may be used by many.
 */
#ifndef XP_BASE_REGEX_H
#define XP_BASE_REGEX_H

#include "lib/base/span.h"
#include "lib/base/status.h"

#define XP_REGEX_PLACES 64
#define XP_REGEX_DEPTH 16  /* parentheses within each other */
#define XP_REGEX_SIGNS 258 /* bytes, the begin and the end of a text */

struct xp_regex {
    uint64_t first, last;        /* places where a match may begin, and may end */
    uint64_t on[XP_REGEX_SIGNS]; /* places that take this byte */
    uint64_t after[8][256];      /* places that follow a set of places, by the set's bytes */
    bool always;                 /* it matches nothing, too, and so every text */
};

/* XP_BAD_REQUEST with a sentence. */
enum xp_status xp_regex_parse(struct xp_regex *r, struct xp_span pattern, struct xp_error *err);
bool xp_regex_find(const struct xp_regex *r, struct xp_span text);

#endif
