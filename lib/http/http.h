/* lib/http/http.h - one HTTP server: listener, requests, answers. Hides h2o from everyone else.
 *
 * HTTP/1.1 and cleartext HTTP/2 on one port; with a certificate, TLS 1.2/1.3 with ALPN. The
 * server owns N loop threads, each with its own listener on the same port (SO_REUSEPORT),
 * TCP_NODELAY on every connection. What h2o lacks and what is done about it, with the limits:
 * docs/internals/http.md.
 *
 * A request is an exchange. The handler is called once, on the exchange's loop thread, and
 * must either answer at once (http_answer) or defer: keep the pointer and answer later, from
 * any thread, with http_answer_from. Exactly one answer per exchange; after it the pointer is
 * dead. If the client goes away first, the exchange stays valid until it is answered (the
 * answer is then dropped), and http_cancelled turns true: at once over HTTP/2, within a second
 * or so over HTTP/1.1. Long work polls it and stops early; it must still answer.
 *
 * Body       An answer owns its body: malloc'd bytes, freed after they were sent, a reference to
 *            shared ones (http_answer_blob), or static
 *            bytes (never freed, never copied). `encoded` says the body is gzip already: a
 *            client that does not accept gzip gets it inflated on the way out, piece by piece.
 *            A body that is not encoded, compressible and above 1 KiB is compressed by the
 *            server on a worker when the client accepts gzip. An ETag is sent as a weak one,
 *            the same for every coding.
 * HEAD, 304  Handled here: the handler answers as for GET. With an etag set, If-None-Match
 *            turns a 200 to GET or HEAD into a 304.
 * Streams    http_stream_* : an answer whose bytes come over time (server-sent events).
 * Checks     Before any handler: the path begins with '/', has no ".." segment, no NUL and no
 *            malformed escape (400), the Host header is there (400) and one of ours (421; DNS
 *            rebinding), head and body limits (413; over HTTP/2 h2o resets the stream instead),
 *            a connection that resets more than 300 requests in 10 s, and most of them, is cut
 *            (rapid reset), so is one whose client takes no byte for slow_reader_s.
 * Headers    Every answer carries nosniff, no-referrer, same-origin resource policy, Date,
 *            Cache-Control. A Content-Security-Policy is the page's business.
 * Memory     Per connection at most one piece of 64 KiB of body in flight beyond the answer.
 * Shutdown   http_server_drain: stops listening, GOAWAY, waits for answers to be read whole.
 */
#ifndef XP_HTTP_H
#define XP_HTTP_H

#include <stdatomic.h>

#include "lib/base/blob.h"
#include "lib/base/buf.h"
#include "lib/base/status.h"
#include "lib/run/workers.h"

struct http_server;
struct http_exchange;

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_OTHER };

struct http_request {
    enum http_method method;
    struct xp_span path;  /* percent-decoded once, no query; may hold any bytes but NUL */
    struct xp_span query; /* as sent, without '?' */
    struct xp_span host;  /* authority as sent */
    struct xp_span body;
    bool accepts_gzip;
    bool tls;
    int version; /* 0x101, 0x200 */
};

/* Spans live until the exchange is answered. */
const struct http_request *http_request(const struct http_exchange *ex);
/* A request header by lower-case name; p == NULL when absent or the client has left. Loop thread
 * only, and valid until the handler returns. */
struct xp_span http_header(const struct http_exchange *ex, const char *name);
/* How often the request has the header; for those that must not be doubled. Likewise. */
size_t http_header_count(const struct http_exchange *ex, const char *name);
/* The address at the other end of the connection, in numbers; "" when the client has left. Loop
 * thread. An IPv4 address within IPv6 is written as IPv4. */
#define HTTP_PEER_MAX 64
void http_peer(const struct http_exchange *ex, char text[HTTP_PEER_MAX]);
/* --- which request it is: W3C trace context ---
 *
 * A request belongs to the trace that its traceparent header names, or to a new one. Its own span,
 * and the id that logs call it by (the client's x-request-id where that is a plain word, else the
 * trace's), are answered as x-request-id and given on to whoever is asked for it. */
#define HTTP_ID_MAX 65
#define HTTP_TRACEPARENT_MAX 56

struct http_trace {
    uint8_t trace[16], span[8], parent[8]; /* parent: zeroes when there is none */
    bool has_parent, sampled; /* sampled: as the parent says, else by http_config.trace_percent */
    char id[HTTP_ID_MAX];
};

/* Any thread, until answered. */
const struct http_trace *http_trace(const struct http_exchange *ex);
/* The header for a request that is made for this one: this span is its parent. */
void http_traceparent(const struct http_trace *t, char text[HTTP_TRACEPARENT_MAX]);
/* Who asks and what for, for whoever is told in the end (http_config.done). Copied, cut. Loop
 * thread, before the answer. */
void http_note(struct http_exchange *ex, const char *who, const char *route);

/* Any thread, until answered. */
bool http_cancelled(const struct http_exchange *ex);
/* The flag behind it, for code that must not know HTTP. */
const atomic_bool *http_cancel_flag(const struct http_exchange *ex);

#define HTTP_HEADERS_MAX 12

struct http_answer {
    int status;                                                     /* 200 */
    const char *content_type;                                       /* static */
    const char *names[HTTP_HEADERS_MAX], *values[HTTP_HEADERS_MAX]; /* see http_answer_header */
    int nheaders;
    char etag[40];             /* quoted, "" for none */
    const char *cache_control; /* static; NULL: "no-cache" when there is an etag, else "no-store" */
    uint8_t *body;             /* malloc'd unless is_static */
    size_t body_n;
    bool is_static;
    struct xp_blob *blob; /* the body is this one's bytes: a reference goes with the answer */
    bool encoded;         /* body is gzip */
    bool incompressible;  /* do not compress (images, already dense) */
    char *owned[HTTP_HEADERS_MAX]; /* copies of header values, freed with the answer */
};

void http_answer_init(struct http_answer *a, int status, const char *content_type);
void http_answer_fini(struct http_answer *a); /* for one that was never given to http_answer */
/* name is static and in lower case, value is copied; CR, LF and other control bytes in value
 * become '_'. At most HTTP_HEADERS_MAX. */
void http_answer_header(struct http_answer *a, const char *name, struct xp_span value);
/* The reference becomes the answer's: shared bytes, for a body that is sent often. */
void http_answer_blob(struct http_answer *a, struct xp_blob *blob);
/* Moves the bytes of b into the answer. */
void http_answer_body(struct http_answer *a, struct xp_buf *b);

/* Ownership of the answer's body and headers moves to the exchange. Loop thread. */
void http_answer(struct http_exchange *ex, struct http_answer *a);
/* The same from any thread. */
void http_answer_from(struct http_exchange *ex, struct http_answer *a);
/* Fills a new answer: application/problem+json with type, title, status, code, detail and, where
 * there is one, offset. Sets Retry-After when the status says the caller may try again. */
void http_answer_problem(struct http_answer *a, const struct xp_error *err);

/* Server-sent events and the like: headers go out now (of a text/event-stream; else with the
 * first piece), each piece when the client has room (XP_BUSY when more than 256 KiB would wait:
 * the caller skips that piece), until end, after which the pointer is dead. XP_CANCELLED, and
 * http_cancelled, say that nobody reads any more, or that the server drains: the caller then
 * calls end. A quiet stream should send a comment now and then, so that a dead client shows.
 * Loop thread. */
void http_stream_begin(struct http_exchange *ex, struct http_answer *head);
/* The same for a body that is passed on as it comes: a drain waits for it, and an end before
 * `length` bytes (SIZE_MAX: unknown), or http_stream_break, breaks the connection (or stream) off,
 * so that no client takes half an answer for a whole one. on_room(ctx) is called on the loop when
 * a piece that met XP_BUSY may be tried again, and when the client has left. */
void http_stream_begin_whole(struct http_exchange *ex, struct http_answer *head, size_t length,
                             void (*on_room)(void *ctx), void *ctx);
enum xp_status http_stream_send(struct http_exchange *ex, struct xp_span bytes);
void http_stream_end(struct http_exchange *ex);
void http_stream_break(struct http_exchange *ex); /* in place of http_stream_end */
/* Runs fn(ctx) on the exchange's loop thread (any thread may call, while it owes the answer). */
void http_on_loop(struct http_exchange *ex, void (*fn)(void *ctx), void *ctx);

typedef void (*http_handler)(void *ctx, struct http_exchange *ex);

/* A request that is over, and what the client got of its answer. Valid during the call. */
struct http_done {
    const struct http_trace *trace;
    const struct http_request *request;
    const char *who, *route; /* "" unless http_note said */
    int status;              /* 0: the client left before there was one */
    uint64_t bytes;          /* of the body */
    uint64_t began_ns;       /* xp_now_ns */
    int64_t began_wall_us;   /* since 1970 */
    uint64_t took_ns;        /* until the last byte went to the kernel, or the client left */
    bool aborted;
};

struct http_config {
    const char *host;               /* "127.0.0.1" */
    int port;                       /* 0: any */
    int loops;                      /* threads */
    const char *tls_cert, *tls_key; /* PEM paths, both or neither */
    const char *const *hosts; /* more names accepted in Host, NULL-terminated; may be NULL. Always
                                 accepted: localhost, *.localhost, 127.0.0.0/8, [::1], `host` and
                                 the bound address; when every address was bound, any address and
                                 the machine's own name. "*.x" accepts names below x, "*" any.
                                 The port in Host does not matter. */
    http_handler handler;
    void *ctx;
    /* Called once a request, on its loop; must not block. NULL: nobody is told. */
    void (*done)(void *ctx, const struct http_done *d);
    void *done_ctx;
    int trace_percent;          /* of the traces that begin here, how many are sampled */
    struct xp_workers *workers; /* for compression, NULL for none; outlive the server */
    size_t body_max;            /* request bodies; 0: 1 MiB */
    int slow_reader_s;          /* 0: 120 */
    int idle_s;                 /* 0: 15 */
    bool keep_after_body; /* HTTP/1.1: a connection goes on after a request with a body. Off, so
                             that ambiguous framing cannot smuggle a second request; on where only
                             our own processes ask. */
};

/* Binds before it returns, so that the port is known; XP_IO with the reason otherwise. Copies the
 * configuration. Ignores SIGPIPE unless the process has a handler. */
enum xp_status http_server_start(const struct http_config *config, struct http_server **out,
                                 struct xp_error *err);
int http_server_port(const struct http_server *s);
/* Stops accepting, ends streams, lets answers finish (at most grace_ms, then cancels and cuts),
 * joins the loops, frees. Any thread but a loop's. Exchanges that handlers hold are waited for 5 s
 * more; if one is still unanswered then, its loop is left running. */
void http_server_drain(struct http_server *s, int grace_ms);

struct http_stats {
    uint64_t connections, requests, aborted, condemned, slow_closed;
    uint64_t open_connections;
};
void http_server_stats(const struct http_server *s, struct http_stats *out);

/* --- small helpers for handlers --- */

/* The next parameter of a query string, which is shortened by it: name and value, percent- and
 * plus-decoded, replace what the buffers hold. False at the end. Decoded bytes may include
 * anything, NUL too. */
bool http_query_next(struct xp_span *query, struct xp_buf *name, struct xp_buf *value);
/* The first value of name, which replaces what b holds; false when absent. */
bool http_query_get(struct xp_span query, const char *name, struct xp_buf *b);
/* The next "name=value" of a Cookie header, which is shortened by it: bytes of the header. False at
 * the end. */
bool http_cookie_next(struct xp_span *header, struct xp_span *name, struct xp_span *value);
/* The first cookie of that name; n == 0 when there is none, or nothing in it. As http_header. */
struct xp_span http_cookie(const struct http_exchange *ex, const char *name);

#endif
