/* lib/net/direct.h - calls between our own processes, without libcurl: a POST to an address in
 * numbers, in the clear. What a frontend asks of shards is many small calls, of which libcurl takes
 * more than half of the time; everything else stays with it.
 *
 * A connection has one call at a time and is used again. A call on one that was used before, and
 * that breaks before a byte of the answer came, is made once more on a new one: the other side may
 * have closed it meanwhile. An answer that comes before all of the request went out is one; bytes
 * that come when nothing is asked end the connection.
 *
 * Limits     DIRECT_IDLE_MAX connections are kept without a call, and none for a minute.
 * Order      direct_fits, direct_new (any thread); direct_begin, direct_pause, direct_resume,
 *            direct_abort (the loop's); direct_free after `end` was called, or direct_abort.
 * Threads    All but the first two on the loop's thread; body and end are called there.
 */
#ifndef NET_DIRECT_H
#define NET_DIRECT_H

#include <uv.h>

#include "lib/net/client.h"

#define DIRECT_IDLE_MAX 256

struct direct;      /* the connections */
struct direct_call; /* a call */

struct direct_calls {
    bool (*body)(void *ctx, struct xp_span bytes); /* false: no room (paused), or no more of it */
    void (*end)(void *ctx, enum xp_status status, const char *why); /* the last of them */
};

struct direct *direct_open(uv_loop_t *loop);
void direct_close(struct direct *d); /* on the loop; no call is under way any more */

bool direct_fits(const struct net_request *r);
/* NULL: it does not fit. */
struct direct_call *direct_new(const struct net_request *r, const struct direct_calls *calls,
                               void *ctx);
void direct_free(struct direct_call *call);

void direct_begin(struct direct *d, struct direct_call *call);
void direct_abort(struct direct_call *call); /* end is not called */
/* Inside body, before it returns false. */
void direct_pause(struct direct_call *call);
void direct_resume(struct direct_call *call);

int direct_code(const struct direct_call *call);
const char *direct_field(const struct direct_call *call, const char *name);
void direct_each_field(const struct direct_call *call,
                       void (*fn)(void *ctx, const char *name, const char *value), void *ctx);

#endif
