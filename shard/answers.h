/* shard/answers.h - finished answers kept for who asks the same again.
 *
 * An answer is a function of what was asked and of the generations that it read, so the key is
 * exactly that, whole, and nothing ever goes stale. Bodies are shared, as they were encoded; the
 * one asked for longest ago goes first when the bytes exceed the limit. What an answer says beside
 * its body (a partial: that its host's profile is damaged) is kept with it.
 *
 * Threads: any.
 */
#ifndef SHARD_ANSWERS_H
#define SHARD_ANSWERS_H

#include "lib/base/blob.h"
#include "lib/base/status.h"

struct answers;

struct answers_item {
    struct xp_blob *body;
    const char *content_type; /* static */
    bool encoded;
    struct xp_error damage; /* of a partial; status XP_OK: none, and none is stored */
};

struct answers *answers_new(size_t max_bytes);
void answers_free(struct answers *a);

/* True: *out is filled, its body a reference of the caller's. */
bool answers_get(struct answers *a, struct xp_span key, struct answers_item *out);
/* Whether the same was noted here lately, which it is from now on: what took little to make is
 * worth its room only when it is asked for again, as hardly any of the windows of a zoom is. */
bool answers_again(struct answers *a, struct xp_span key);
/* Takes a reference of its own. Bodies above an eighth of the limit are not kept. */
void answers_put(struct answers *a, struct xp_span key, const struct answers_item *item);

#endif
