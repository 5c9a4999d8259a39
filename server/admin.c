#include "server/admin.h"

#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 20)

struct admin {
    struct admin_config config;
    struct http_server *server;
    atomic_bool ending;
};

static void answer_text(struct http_exchange *ex, int status, struct xp_span text)
{
    struct http_answer a;
    struct xp_buf body;
    xp_buf_init(&body, TEXT_MAX);
    xp_buf_span(&body, text);
    http_answer_init(&a, status, "text/plain");
    http_answer_body(&a, &body);
    http_answer(ex, &a);
}

static void answer_metrics(struct admin *a, struct http_exchange *ex)
{
    struct xp_buf text;
    xp_buf_init(&text, TEXT_MAX);
    metrics_write(a->config.metrics, &a->config.sources, &text);
    answer_text(ex, text.failed ? 500 : 200, xp_buf_all(&text));
    xp_buf_fini(&text);
}

static void answer_ready(struct admin *a, struct http_exchange *ex)
{
    struct upstream_stats st = {.members = 1};
    if (a->config.sources.upstream)
        upstream_stats(a->config.sources.upstream, &st);
    if (atomic_load(&a->ending))
        answer_text(ex, 503, XP_SPAN_LIT("shutting down\n"));
    else if (!st.members)
        answer_text(ex, 503, XP_SPAN_LIT("no shard is there\n"));
    else
        answer_text(ex, 200, XP_SPAN_LIT("ok\n"));
}

static void handle(void *ctx, struct http_exchange *ex)
{
    struct admin *a = ctx;
    const struct http_request *req = http_request(ex);
    struct xp_span path = req->path;

    if (req->method != HTTP_GET && req->method != HTTP_HEAD)
        answer_text(ex, 405, XP_SPAN_LIT("only GET\n"));
    else if (xp_span_eq(path, XP_SPAN_LIT("/livez")))
        answer_text(ex, 200, XP_SPAN_LIT("ok\n"));
    else if (xp_span_eq(path, XP_SPAN_LIT("/readyz")) || xp_span_eq(path, XP_SPAN_LIT("/healthz")))
        answer_ready(a, ex);
    else if (xp_span_eq(path, XP_SPAN_LIT("/metrics")))
        answer_metrics(a, ex);
    else
        answer_text(ex, 404, XP_SPAN_LIT("/livez, /readyz, /healthz, /metrics\n"));
}

enum xp_status admin_start(const struct admin_config *config, struct admin **out,
                           struct xp_error *err)
{
    static const char *const any[] = {"*", NULL}; /* probes use the pod's address */
    struct admin *a = calloc(1, sizeof *a);
    XP_ASSERT(a);
    a->config = *config;
    struct http_config http = {.host = config->host,
                               .port = config->port,
                               .loops = 1,
                               .hosts = any,
                               .handler = handle,
                               .ctx = a};
    enum xp_status status = http_server_start(&http, &a->server, err);
    if (status != XP_OK) {
        free(a);
        return status;
    }
    *out = a;
    return XP_OK;
}

int admin_port(const struct admin *a)
{
    return http_server_port(a->server);
}

void admin_not_ready(struct admin *a)
{
    if (a)
        atomic_store(&a->ending, true);
}

void admin_stop(struct admin *a)
{
    if (!a)
        return;
    http_server_drain(a->server, 1000);
    free(a);
}
