/* loadtest/lib/wire_int.h - a wire from within: bytes in and out (wire.c), and the two protocols
 * that make and read them (wire_h1.c, wire_h2.c). */
#ifndef LOADTEST_WIRE_INT_H
#define LOADTEST_WIRE_INT_H

#include <openssl/ssl.h>

#include "loadtest/lib/wire.h"

#define WIRE_HEAD_MAX 8192
#define WIRE_OUT_MAX ((size_t)1 << 20)

struct wire_one {
    struct wire *w;
    struct wire_one *prev, *next; /* under way on the wire */
    wire_fn done;
    void *ctx;
    char *method, *path;
    struct xp_buf sent; /* the request's body */
    size_t sent_at;
    bool look, seen, again; /* a byte of the answer came; it is the second time */
    bool waiting;           /* for the next connection */
    int status;
    char location[1024];
    struct xp_buf body;
    int32_t stream;
};

/* An answer of HTTP/1.1 that is being read. */
struct wire_h1 {
    char head[WIRE_HEAD_MAX];
    size_t head_n;
    uint64_t left;
    uint8_t tail[5]; /* of a chunked body */
    bool in_body, chunked, close;
};

struct wire {
    struct wires *set;
    struct wire *older;
    int fd;
    SSL *ssl;
    bool up;      /* handshakes are done */
    bool inside;  /* an event is being looked at */
    bool leaving; /* the server takes nothing else here, but answers what it has taken */
    bool broken;  /* to be hung up */
    struct wire_one *asks;
    size_t n_asks;
    struct xp_buf out;
    size_t out_at;
    struct wire_h1 *h1;
    void *h2; /* nghttp2's session */
};

struct wires {
    struct wire_config config;
    SSL_CTX *tls;
    struct wire *wires;
    int epoll;
    size_t n_up;
    uint64_t bytes, retries;
    uint8_t *room;
};

/* The end of an ask: its callback, once. */
void wire_end(struct wire_one *one, bool whole);
void wire_note_location(struct wire_one *one, const void *p, size_t n);
void wire_keep(struct wire_one *one, const uint8_t *p, size_t n);

void h1_ask(struct wire *w, struct wire_one *one);
void h1_read(struct wire *w, const uint8_t *p, size_t n);

bool h2_is_there(void);
void h2_open(struct wire *w);
void h2_close(struct wire *w);
void h2_ask(struct wire *w, struct wire_one *one);
void h2_read(struct wire *w, const uint8_t *p, size_t n);
void h2_write(struct wire *w); /* what there is to be sent, into w->out */

#endif
