/* The shard's side of rpc.h: an exchange becomes a call of the shard, and its answer an answer. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "server/rpc.h"

#define READ_ON_LOOP 4096

struct rpc_server {
    struct rpc_config config;
    const char *_Atomic identity;
    _Atomic int asks;
};

struct ask {
    char trace[HTTP_TRACEPARENT_MAX];
    struct rpc_server *server;
    struct http_exchange *ex;
    struct rpc_ask rpc;
    uint64_t began_ns;
    int status;   /* as HTTP would say it; the answer itself is 200 */
    bool on_loop; /* it is answered there */
    char signature[SIGN_TEXT_MAX];
};

struct rpc_server *rpc_server_new(const struct rpc_config *config)
{
    struct rpc_server *s = calloc(1, sizeof *s);
    XP_ASSERT(s);
    s->config = *config;
    atomic_store(&s->identity, config->identity);
    return s;
}

void rpc_server_set_identity(struct rpc_server *s, const char *identity)
{
    atomic_store(&s->identity, identity);
}

void rpc_server_free(struct rpc_server *s)
{
    if (!s)
        return;
    while (atomic_load(&s->asks) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    free(s);
}

/* Asks under way, for each 100 threads. */
static void add_load(const struct rpc_server *s, struct http_answer *a)
{
    char text[24];
    int threads = xp_workers_threads(s->config.workers);
    snprintf(text, sizeof text, "%d", atomic_load(&s->asks) * 100 / (threads > 0 ? threads : 1));
    http_answer_header(a, "xprofd-load", xp_span_str(text));
}

static void end_ask(struct ask *ask, struct http_answer *a)
{
    struct rpc_server *s = ask->server;
    struct http_exchange *ex = ask->ex;
    add_load(s, a);
    metrics_answer(s->config.metrics, 0, ask->status, xp_now_ns() - ask->began_ns);
    rpc_ask_fini(&ask->rpc);
    bool on_loop = ask->on_loop;
    free(ask);
    if (on_loop)
        http_answer(ex, a);
    else
        http_answer_from(ex, a);
    atomic_fetch_sub(&s->asks, 1);
}

static void refuse(struct ask *ask, int status, const char *text)
{
    struct http_answer a;
    http_answer_init(&a, status, "text/plain");
    a.body = (uint8_t *)text;
    a.body_n = strlen(text);
    a.is_static = true;
    ask->status = status;
    end_ask(ask, &a);
}

static void answer_error(struct ask *ask, const struct xp_error *err)
{
    struct http_answer a;
    struct xp_buf text;
    char offset[24], retry[8];

    http_answer_init(&a, 200, "text/plain");
    http_answer_header(&a, "xprofd-status", xp_span_str(xp_status_code(err->status)));
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)err->offset);
    if (err->offset)
        http_answer_header(&a, "xprofd-offset", xp_span_str(offset));
    snprintf(retry, sizeof retry, "%u", err->retry_s);
    if (err->retry_s)
        http_answer_header(&a, "xprofd-retry", xp_span_str(retry));
    xp_buf_init(&text, sizeof err->text);
    xp_buf_str(&text, err->text);
    http_answer_body(&a, &text);
    a.incompressible = true;
    ask->status = xp_status_http(err->status);
    end_ask(ask, &a);
}

static void add_damage(struct http_answer *a, const struct xp_error *damage)
{
    char sentence[3 * sizeof damage->text + 1], text[sizeof sentence + 64];
    rpc_escape(damage->text, sentence);
    snprintf(text, sizeof text, "%s %llu %s", xp_status_code(damage->status),
             (unsigned long long)damage->offset, sentence);
    http_answer_header(a, "xprofd-damage", xp_span_str(text));
}

static void on_answer(void *ctx, struct shard_answer *sa)
{
    struct ask *ask = ctx;
    struct http_answer a;
    char version[24];

    if (sa->error.status != XP_OK) {
        answer_error(ask, &sa->error);
        return;
    }
    http_answer_init(&a, 200, sa->content_type);
    http_answer_blob(&a, sa->body);
    a.encoded = sa->encoded;
    http_answer_header(&a, "xprofd-status", XP_SPAN_LIT("ok"));
    snprintf(version, sizeof version, "%016llx", (unsigned long long)sa->version);
    http_answer_header(&a, "xprofd-version", xp_span_str(version));
    if (sa->volatile_answer)
        http_answer_header(&a, "xprofd-volatile", XP_SPAN_LIT("1"));
    if (sa->damage.status != XP_OK)
        add_damage(&a, &sa->damage);
    a.incompressible = rpc_is_map(ask->rpc.req.op);
    ask->status = 200;
    end_ask(ask, &a);
}

/* The hosts that this shard owns are nobody else's to map. */
static void find_own(struct ask *ask)
{
    const char *self = atomic_load(&ask->server->identity);
    for (size_t i = 0; self && ask->rpc.req.owners && i < ask->rpc.req.nobjects; i++) {
        struct shard_owner *o = &ask->rpc.owners[i];
        if (o->next && !strcmp(ask->rpc.peers[o->next - 1].name, self))
            o->next = 0; /* which is here, and tried last anyway */
        if (o->first && !strcmp(ask->rpc.peers[o->first - 1].name, self))
            o->first = 0;
    }
}

static bool is_signed(const struct ask *ask)
{
    const struct rpc_config *c = &ask->server->config;
    const struct http_request *req = http_request(ask->ex);
    return !c->keys ||
           xp_sign_check(c->keys, time(NULL), req->path, req->body, xp_span_str(ask->signature));
}

/* Checks and reads the ask; false: it was refused, and is gone. */
static bool read_ask(struct ask *ask)
{
    struct xp_error err = {0};

    if (!is_signed(ask)) {
        refuse(ask, 403, "the signature is missing, wrong or too old\n");
        return false;
    }
    if (rpc_read(http_request(ask->ex)->body, ask->server->config.projects, &ask->rpc, &err) !=
        XP_OK) {
        answer_error(ask, &err);
        return false;
    }
    if (rpc_is_map(ask->rpc.req.op) && strcmp(ask->rpc.build, rpc_build()) != 0) {
        xp_fail(&err, XP_BUSY, 0, "this shard is of another build and makes other partials");
        answer_error(ask, &err);
        return false;
    }
    return true;
}

static enum xp_work_next run_ask(void *ctx)
{
    struct ask *ask = ctx;
    if (!ask->rpc.message && !read_ask(ask))
        return XP_WORK_DONE;
    find_own(ask);
    http_traceparent(http_trace(ask->ex), ask->trace);
    ask->rpc.req.trace = ask->trace;
    ask->rpc.req.cancel = http_cancel_flag(ask->ex);
    shard_call(ask->server->config.shard, &ask->rpc.req, on_answer, ask);
    return XP_WORK_DONE;
}

/* On the loop: what is known needs no worker. True: it was answered, and is gone. Whatever else
 * there is to say about an ask, a worker says. */
static bool answer_at_once(struct ask *ask)
{
    const struct rpc_config *c = &ask->server->config;
    struct xp_span body = http_request(ask->ex)->body;
    struct shard_answer known;
    struct xp_error err = {0};

    if (body.n > READ_ON_LOOP || !is_signed(ask))
        return false;
    if (rpc_read_known(body, c->projects, &ask->rpc, &err) != XP_OK ||
        rpc_is_map(ask->rpc.req.op)) {
        rpc_ask_fini(&ask->rpc);
        return false;
    }
    if (!shard_known(c->shard, &ask->rpc.req, &known))
        return false;
    ask->on_loop = true;
    on_answer(ask, &known);
    return true;
}

static void hello(struct rpc_server *s, struct http_exchange *ex)
{
    struct http_answer a;
    struct xp_buf text;
    const char *self = atomic_load(&s->identity);
    xp_buf_init(&text, 1024);
    if (self)
        xp_buf_fmt(&text, "%s\n%s\nrpc %s\nbuild %s\n", self, s->config.version, RPC_VERSION,
                   rpc_build());
    http_answer_init(&a, self ? 200 : 503, "text/plain");
    http_answer_body(&a, &text);
    http_answer(ex, &a);
}

/* Of another major version: in the path, or in the header that goes with the path of this one. */
static bool is_other_version(const struct http_exchange *ex)
{
    static const char major[] = "1";
    struct xp_span path = http_request(ex)->path, said = http_header(ex, RPC_VERSION_HEADER);
    struct xp_span before = XP_SPAN_LIT("/rpc/v"), ours = XP_SPAN_LIT("/rpc/v1/");
    const uint8_t *dot = said.n ? memchr(said.p, '.', said.n) : NULL;
    if (xp_span_starts(path, before) && !xp_span_starts(path, ours))
        return true;
    return said.n &&
           !(dot && xp_span_eq(xp_span_of(said.p, (size_t)(dot - said.p)), xp_span_str(major)));
}

void rpc_handle(void *ctx, struct http_exchange *ex)
{
    struct rpc_server *s = ctx;
    const struct http_request *req = http_request(ex);
    struct xp_error err = {0};

    bool other = is_other_version(ex);
    if (!other && req->method == HTTP_GET && xp_span_eq(req->path, XP_SPAN_LIT(RPC_HELLO_PATH))) {
        hello(s, ex);
        return;
    }
    struct ask *ask = calloc(1, sizeof *ask);
    struct xp_span signature = http_header(ex, RPC_SIGN_HEADER);
    XP_ASSERT(ask);
    ask->server = s;
    ask->ex = ex;
    ask->began_ns = xp_now_ns();
    if (signature.n && signature.n < sizeof ask->signature)
        memcpy(ask->signature, signature.p, signature.n);
    atomic_fetch_add(&s->asks, 1);
    http_note(ex, "", "rpc/ask");
    if (other)
        refuse(ask, 501,
               "this shard speaks version " RPC_VERSION " of the protocol between "
               "frontends and shards, not the one asked for\n");
    else if (req->method != HTTP_POST || !xp_span_eq(req->path, XP_SPAN_LIT(RPC_ASK_PATH)))
        refuse(ask, 404, "a shard has no such resource\n");
    else if (!answer_at_once(ask) &&
             xp_workers_post(s->config.workers, XP_WORK_QUERY, run_ask, ask) != XP_OK) {
        xp_fail(&err, XP_BUSY, 0, "too many requests are waiting; try again in a moment");
        xp_error_retry(&err, xp_workers_wait_ms(s->config.workers));
        answer_error(ask, &err);
    }
}
