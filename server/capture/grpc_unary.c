#include "server/capture/grpc_unary.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "server/capture/grpc_frame.h"

#define REQUEST_MAX ((size_t)1 << 20)
#define CONNECT_MS 4000
#define GRACE_MS 1000 /* the other side ends it first, and says so */

struct grpc_call {
    _Atomic int refs; /* whoever starts it, and the call itself until it is done */
    struct net_call *net;
    _Atomic bool cancelled;
    struct grpc_request r;
    struct grpc_frame frame;
    struct xp_buf body;
};

static void call_free(struct grpc_call *call)
{
    xp_buf_fini(&call->body);
    free(call);
}

static void call_unref(struct grpc_call *call)
{
    if (atomic_fetch_sub(&call->refs, 1) == 1)
        call_free(call);
}

static bool is_grpc(struct net_call *net)
{
    static const char type[] = "application/grpc";
    const char *have = net_header(net, "content-type");
    return have && strncasecmp(have, type, sizeof type - 1) == 0;
}

static bool on_body(void *ctx, struct net_call *net, struct xp_span bytes)
{
    struct grpc_call *call = ctx;
    if (net_code(net) != 200 || !is_grpc(net))
        return false;
    if (call->r.room_fn && !call->r.room_fn(call->r.ctx, bytes.n)) {
        net_pause(net);
        return false;
    }
    return frame_feed(&call->frame, bytes);
}

/* Why there is no verdict of the other side's, for people. */
static void say_why(const struct grpc_call *call, const struct net_answer *a,
                    struct grpc_reply *reply)
{
    if (call->frame.why)
        snprintf(reply->text, sizeof reply->text, "the answer is malformed: %s", call->frame.why);
    else if (a->code && (a->code != 200 || !is_grpc(a->call)))
        snprintf(reply->text, sizeof reply->text, "it answers HTTP status %d, and not gRPC",
                 a->code);
    else if (a->status != XP_OK)
        snprintf(reply->text, sizeof reply->text, "%s", a->why ? a->why : "the call failed");
    else
        snprintf(reply->text, sizeof reply->text, "the answer has no grpc-status");
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct grpc_call *call = ctx;
    const char *text = net_trailer(a->call, "grpc-message");
    struct grpc_reply reply = {.transport = a->status,
                               .stage = a->stage,
                               .status = -1,
                               .whole = frame_is_whole(&call->frame),
                               .profile = call->frame.profile,
                               .empty = call->frame.empty,
                               .profile_n = call->frame.profile_n,
                               .message_n = call->frame.message_n};
    /* What is malformed, too, ends a call here, as if it were not wanted. */
    if (a->status == XP_CANCELLED && !call->cancelled)
        reply.transport = XP_IO;
    else if (a->status == XP_OK && is_grpc(a->call))
        reply.status = grpc_number(net_trailer(a->call, "grpc-status"));
    if (reply.status >= 0)
        grpc_text(text ? text : "", reply.text, sizeof reply.text);
    else
        say_why(call, a, &reply);
    if (reply.transport == XP_OK && reply.status < 0)
        reply.transport = XP_IO;
    call->r.done(call->r.ctx, &reply);
    call_unref(call);
}

static struct net_call *start(struct net_client *net, struct grpc_call *call)
{
    char url[512], timeout[16], header[64];
    const char *const headers[] = {"content-type: application/grpc",
                                   "te: trailers",
                                   "grpc-accept-encoding: identity",
                                   "accept:",
                                   header,
                                   NULL};
    struct net_request r = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = xp_buf_all(&call->body),
                            .connect_ms = CONNECT_MS,
                            .total_ms = call->r.deadline_ms + GRACE_MS,
                            .h2c = true,
                            .ctx = call,
                            .body_fn = on_body,
                            .done = on_done};
    r.stall_ms = r.total_ms + GRACE_MS; /* nothing comes until all of it does */
    if (snprintf(url, sizeof url, "http://%s%s", call->r.address, call->r.method) >=
        (int)sizeof url)
        return NULL;
    grpc_timeout_text(call->r.deadline_ms, timeout);
    snprintf(header, sizeof header, "grpc-timeout: %s", timeout);
    return net_start(net, &r);
}

struct grpc_call *grpc_start(struct net_client *net, const struct grpc_request *r)
{
    struct grpc_call *call = calloc(1, sizeof *call);
    XP_ASSERT(call);
    call->refs = 2;
    call->r = *r;
    frame_init(&call->frame, r->profile_fn, r->ctx);
    xp_buf_init(&call->body, REQUEST_MAX);
    frame_put(&call->body, r->message);
    call->net = call->body.failed ? NULL : start(net, call);
    if (!call->net) {
        call_free(call);
        return NULL;
    }
    call_unref(call);
    return call;
}

void grpc_cancel(struct grpc_call *call)
{
    call->cancelled = true;
    net_cancel(call->net);
}

void grpc_resume(struct grpc_call *call)
{
    net_resume(call->net);
}
