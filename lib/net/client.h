/* lib/net/client.h - requests to other servers over HTTP/1.1: libcurl on a thread and loop of its
 * own, and beside it our own short way (direct.h) for what our processes ask of each other.
 *
 * The process has one client; connections are kept and used again. HTTP/2 is left alone on
 * purpose: streams of one connection starve each other when one is slow. Who speaks nothing else
 * (gRPC) is called with `h2c`: a connection of its own for each call.
 *
 * Order      net_client_open -> net_start / net_fetch from any thread -> net_client_close. The
 *            first open starts the thread, the last close ends it; calls that still run then end
 *            with XP_CANCELLED.
 * Ownership  What a request points to is copied, except its body, which stays the caller's until
 *            `done` was called. A call lives until its `done` returns.
 * Threads    body and done run on the client's thread and must not block; one call's never at once.
 * Errors     A call ends with XP_OK whenever a whole answer came, whatever its code. Otherwise
 *            XP_IO (no connection, reset, short body), XP_TIMEOUT, XP_CANCELLED, in a few
 *            words. URLs and headers are never in them: they may hold what is secret.
 */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include <stdatomic.h>

#include "lib/base/buf.h"
#include "lib/base/status.h"

struct net_client;
struct net_call;

#define NET_FIELDS_MAX 65536

struct net_client *net_client_open(void);
void net_client_close(struct net_client *c); /* NULL is fine */

/* How far a call got that failed. */
enum net_stage {
    NET_RESOLVING,  /* the name is not known */
    NET_CONNECTING, /* nobody takes the connection */
    NET_TALKING,    /* there was a connection */
};

struct net_answer {
    enum xp_status status;
    enum net_stage stage;
    int code; /* of HTTP; 0 when no head came */
    struct net_call *call;
    const char *why; /* a failure in a few words */
};

struct net_request {
    const char *method;         /* "GET", "HEAD", "PUT", "POST" */
    const char *url;            /* http or https */
    const char *const *headers; /* "name: value", NULL-terminated; may be NULL */
    struct xp_span body;
    uint32_t connect_ms; /* 0: 10 s */
    uint32_t stall_ms;   /* less than 4 kB/s, either way, in that many ms (rounded up to seconds)
                          * ends it; is looked at once in that time. 0: 15 s */
    uint32_t total_ms;   /* 0: no limit */
    bool direct;         /* past the proxies that the environment names; a POST to an address in
                          * numbers then goes without libcurl, and may be made twice (direct.h) */
    bool h2c; /* HTTP/2 in the clear, known beforehand; no proxy. Answers have trailers. The head
               * and they are NET_FIELDS_MAX bytes at most, else the call ends (XP_CANCELLED) */
    const char *ca_file; /* https: who is trusted instead of the system's; NULL: those */
    /* Counts the connections that are open because such calls opened them; lives as long as the
     * process. May be NULL. */
    _Atomic uint64_t *connections;
    void *ctx;
    /* Bytes of the answer; false ends the call (XP_CANCELLED), or pauses it: net_pause. NULL:
     * they are dropped. */
    bool (*body_fn)(void *ctx, struct net_call *call, struct xp_span bytes);
    void (*done)(void *ctx, const struct net_answer *a);
};

/* NULL when memory is short or the URL is none; done is not called then. */
struct net_call *net_start(struct net_client *c, const struct net_request *r);

/* Ends a call whose done was not called yet, which the caller makes sure of; done comes later. */
void net_cancel(struct net_call *call);

/* Inside body_fn, before it returns false: there is no room for these bytes. They come again after
 * net_resume, and until then the server is not read from. */
void net_pause(struct net_call *call);

/* From any thread, as long as done was not called yet, which the caller makes sure of. */
void net_resume(struct net_call *call);

/* Inside body_fn and done: the code, 0 when there is none; a header's value or NULL. */
int net_code(struct net_call *call);
const char *net_header(struct net_call *call, const char *name);
/* With h2c: the last of that name in the head or behind the body. */
const char *net_trailer(struct net_call *call, const char *name);

/* --- whole small answers, waited for --- */

struct net_reply {
    int code;
    struct xp_buf body;
    struct xp_buf headers; /* "name: value\n" each */
};

/* Blocks. r's ctx and functions are not used; total_ms should be set. More than max bytes are
 * XP_TOO_LARGE. The reply is valid, and to be finished, whatever is returned. */
enum xp_status net_fetch(struct net_client *c, const struct net_request *r, size_t max,
                         struct net_reply *reply, struct xp_error *err);
void net_reply_fini(struct net_reply *reply);

/* The header's value, malloc'd; NULL when there is none. */
char *net_reply_header(const struct net_reply *reply, const char *name);

#endif
