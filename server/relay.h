/* server/relay.h - a large answer of a shard on its way to a client, in pieces.
 *
 * lib/net's thread puts pieces in, the exchange's loop takes them out; a client that reads slowly
 * makes the relay full, and the shard is then not read from. Held are at most RELAY_MAX bytes here
 * and as much in lib/http, whatever the answer's size (at
 * its beginning also what the upstream held). A shard that breaks off breaks the client's
 * answer off; half of one never looks whole.
 *
 * Order      relay_new, then what upstream.h says: relay_push and relay_end are upstream_stream's
 *            push and end. The relay frees itself when the answer is out or the client has left.
 */
#ifndef SERVER_RELAY_H
#define SERVER_RELAY_H

#include "lib/http/http.h"
#include "server/upstream.h"

#define RELAY_MAX ((size_t)512 << 10)

struct relay;

/* Takes the exchange and the answer's head over. */
struct relay *relay_new(struct http_exchange *ex, struct http_answer *head, size_t length,
                        struct upstream_feed *feed);
bool relay_push(void *relay, struct xp_span bytes);
void relay_end(void *relay, bool whole);

#endif
