/* server/capture/grpc_unary.h - a unary gRPC call over lib/net: one request message, one answer.
 *
 * Each call has a connection of its own, in the clear, and a deadline that the other side is told
 * (grpc-timeout) and that ends the call here a little later, should it not keep it.
 *
 * Order      grpc_start -> profile_fn any number of times -> done once, after which the call is
 *            gone. grpc_cancel and grpc_resume only before done was called, which the caller makes
 *            sure of: done may run before grpc_start returns, so both take one lock of the
 * caller's. Ownership  What a request points to is copied. The reply lives until done returns.
 * Threads    grpc_start, _cancel and _resume from any; room_fn, profile_fn and done run on the
 *            client's thread and must not block.
 * Limits     Of the answer nothing is kept but a message of GRPC_TEXT_MAX bytes.
 */
#ifndef SERVER_CAPTURE_GRPC_UNARY_H
#define SERVER_CAPTURE_GRPC_UNARY_H

#include "lib/net/client.h"

#define GRPC_TEXT_MAX 512

struct grpc_call;

/* What came of a call. */
struct grpc_reply {
    enum xp_status transport; /* XP_OK: an answer came, whatever it says */
    enum net_stage stage;
    int status;          /* grpc-status; -1: there was none */
    bool whole;          /* the message came, all of it */
    bool profile, empty; /* fields 8 and 7 of a ProfileResponse */
    uint64_t profile_n;
    uint64_t message_n;       /* bytes of the message */
    char text[GRPC_TEXT_MAX]; /* grpc-message, or what went wrong, for people */
};

struct grpc_request {
    const char *address; /* host:port */
    const char *method;  /* "/tensorflow.ProfilerService/Profile" */
    struct xp_span message;
    uint32_t deadline_ms;
    void *ctx;
    /* Whether there is room for n bytes of a profile; false: grpc_resume is called when there is.
     * NULL: always. */
    bool (*room_fn)(void *ctx, size_t n);
    void (*profile_fn)(void *ctx, struct xp_span bytes); /* NULL: they are dropped */
    void (*done)(void *ctx, const struct grpc_reply *reply);
};

/* NULL: memory is short or the address is none; done is not called. */
struct grpc_call *grpc_start(struct net_client *net, const struct grpc_request *r);
void grpc_cancel(struct grpc_call *call);
void grpc_resume(struct grpc_call *call);

#endif
