/* shard/stats/name_words.h - words of the name of a program or an event, which may say what it is
 * for.
 *
 * A word is a run of letters, whatever their case: "jit_prefill(17)" has jit and prefill. Where
 * names are in CamelCase each part is one: "TrainStep" has train and step, "XLADecode" xla and
 * decode. Only whole words count: a decoder does not decode, nor does what regenerates generate.
 */
#ifndef SHARD_NAME_WORDS_H
#define SHARD_NAME_WORDS_H

#include "lib/base/span.h"

bool name_has_word(struct xp_span name, const char *word);
bool name_has_any(struct xp_span name, const char *const *words, size_t n);

/* Reads prompts; makes tokens: decode or generate is a word, and it is not a file that is decoded
 * (decode_jpeg). */
bool name_says_prefill(struct xp_span name);
bool name_says_decode(struct xp_span name);

#endif
