/* loadtest/lib/wire.h - what a load generator speaks: HTTP/1.1 or HTTP/2, in the clear or by TLS.
 *
 * A wire is one connection to the server, as one browser has. It is dialled when something is asked
 * and there is none. What was asked on one that breaks before a byte of the answer came is asked
 * once more on a new one, as browsers do. On HTTP/1.1 one ask at a time is under way, on HTTP/2
 * (nghttp2; in the clear with prior knowledge) WIRE_STREAMS.
 *
 * Order      wires_open -> wire_new -> wire_ask while wire_room -> wires_wait, over and over, which
 *            calls `done` once for each ask; it may ask again. -> wires_close.
 * Ownership  wires own their wires. Of a request everything is copied; an answer is there for the
 *            time of the call.
 * Threads    One.
 */
#ifndef LOADTEST_WIRE_H
#define LOADTEST_WIRE_H

#include "lib/base/buf.h"

#define WIRE_STREAMS 32
#define WIRE_BODY_MAX 4096 /* of a body that is looked at */

struct wires;
struct wire;

struct wire_config {
    int port; /* of the loopback address */
    bool h2, tls;
};

struct wire_request {
    const char *method, *path;
    struct xp_span body; /* JSON */
    bool look;           /* the answer's body is kept, not compressed, WIRE_BODY_MAX of it */
};

struct wire_answer {
    int status;           /* 0: none came, or it broke off */
    const char *location; /* "": none */
    struct xp_span body;  /* with `look` */
};

typedef void (*wire_fn)(void *ctx, const struct wire_answer *a);

/* NULL with a sentence on stderr: built without nghttp2. */
struct wires *wires_open(const struct wire_config *config);
void wires_close(struct wires *ws); /* asks under way end without a call */
/* Until something happened, or for so long. */
void wires_wait(struct wires *ws, uint64_t ns);
uint64_t wires_bytes(const struct wires *ws);   /* read */
uint64_t wires_retries(const struct wires *ws); /* asks made once more */
size_t wires_up(const struct wires *ws);        /* connections that are there */

struct wire *wire_new(struct wires *ws);
bool wire_room(const struct wire *w);
void wire_ask(struct wire *w, const struct wire_request *r, wire_fn done, void *ctx);

#endif
