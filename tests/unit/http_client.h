/* tests/unit/http_client.h - a client that says exactly the bytes it is told to.
 *
 * A peer is a socket, with or without TLS. Replies are read by their framing (length, chunks or
 * the end of the connection). Every wait ends after 20 seconds, with a failed test.
 */
#ifndef XP_TESTS_HTTP_CLIENT_H
#define XP_TESTS_HTTP_CLIENT_H

#include <openssl/ssl.h>

#include "lib/base/buf.h"

struct peer {
    int fd;
    SSL *ssl;
    struct xp_buf in; /* read and not yet used */
    size_t frame_n;   /* of those, the frame that h2_read handed out last */
};

struct reply {
    int status;
    char head[8192]; /* with the final empty line */
    struct xp_buf body;
};

/* rcvbuf 0: the system's. */
void peer_open(struct peer *p, int port, int rcvbuf);
/* The same with TLS and this ALPN list ("" for none), in wire form. */
void peer_open_tls(struct peer *p, int port, SSL_CTX *ctx, const char *alpn);
void peer_close(struct peer *p);
void peer_send(struct peer *p, const void *bytes, size_t n);
void peer_say(struct peer *p, const char *text);
/* Waits until p->in holds at least n bytes; false at the connection's end. */
bool peer_want(struct peer *p, size_t n);
void peer_used(struct peer *p, size_t n);
/* Waits for the end of the connection, by FIN or reset; what comes before is dropped. */
void peer_wait_closed(struct peer *p);

void reply_read(struct peer *p, struct reply *r, bool to_head);
void reply_fini(struct reply *r);
/* The value of a header by lower-case name, in static memory; NULL when absent. */
const char *reply_header(const struct reply *r, const char *name);
/* One request, one reply, on a connection of its own. `request` is a whole head. */
void ask(int port, const char *request, struct reply *r);
void ask_path(int port, const char *path, const char *more_headers, struct reply *r);

#endif
