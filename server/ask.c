#include "server/ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "server/metrics.h"
#include "server/relay.h"
#include "server/runfacts.h"
#include "server/uploads.h"
#include "server/upstream.h"

#define FILE_NAME_MAX 1024

/* --- parameters --- */

struct piece {
    size_t name_at, name_n, value_at, value_n;
};

static enum xp_status decode_args(struct ask *ask, struct xp_span query, struct xp_error *err)
{
    struct piece pieces[ASK_ARGS_MAX];
    struct xp_buf name, value;
    enum xp_status status = XP_OK;
    size_t n = 0;

    if (query.n > ASK_QUERY_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "the query is longer than %d bytes", ASK_QUERY_MAX);
    xp_buf_init(&name, ASK_QUERY_MAX);
    xp_buf_init(&value, ASK_QUERY_MAX);
    while (http_query_next(&query, &name, &value)) {
        if (n == ASK_ARGS_MAX) {
            status = xp_fail(err, XP_BAD_REQUEST, 0, "more than %d parameters", ASK_ARGS_MAX);
            break;
        }
        pieces[n++] = (struct piece){ask->text.n, name.n, ask->text.n + name.n, value.n};
        xp_buf_span(&ask->text, xp_buf_all(&name));
        xp_buf_span(&ask->text, xp_buf_all(&value));
    }
    xp_buf_fini(&name);
    xp_buf_fini(&value);
    XP_ASSERT(!ask->text.failed);
    for (size_t i = 0; i < n; i++)
        ask->args[i] =
            (struct shard_arg){xp_span_of(ask->text.p + pieces[i].name_at, pieces[i].name_n),
                               xp_span_of(ask->text.p + pieces[i].value_at, pieces[i].value_n)};
    ask->nargs = ask->n_own = n;
    return status;
}

struct xp_span ask_arg(const struct ask *ask, const char *name)
{
    struct xp_span want = xp_span_str(name);
    for (size_t i = 0; i < ask->nargs; i++)
        if (xp_span_eq(ask->args[i].name, want))
            return ask->args[i].value;
    return (struct xp_span){0};
}

/* --- life --- */

static void ask_free(struct ask *ask)
{
    run_unref(ask->run);
    project_unref(ask->project);
    who_unref(ask->who);
    xp_buf_fini(&ask->text);
    atomic_fetch_sub(&ask->app->asks, 1);
    free(ask);
}

enum xp_status ask_new(struct app *app, struct http_exchange *ex, const struct route *route,
                       const struct project *project, const struct who *who, struct ask **out,
                       struct xp_error *err)
{
    const struct http_request *req = http_request(ex);
    struct xp_span tag = http_header(ex, "if-none-match");
    struct ask *ask = calloc(1, sizeof *ask);

    XP_ASSERT(ask);
    atomic_fetch_add(&app->asks, 1);
    ask->app = app;
    ask->ex = ex;
    ask->route = route;
    ask->project = project ? project_ref(project) : NULL;
    ask->who = who_ref(who);
    ask->began_ns = xp_now_ns();
    ask->gzip = req->accepts_gzip;
    ask->identity = xp_fnv(XP_FNV_INIT, xp_span_str(app->version));
    ask->identity = xp_fnv(ask->identity, req->path);
    ask->identity = xp_fnv(ask->identity, req->query);
    if (tag.n < sizeof ask->if_none_match)
        memcpy(ask->if_none_match, tag.n ? tag.p : (const uint8_t *)"", tag.n);
    xp_buf_init(&ask->text, 2 * ASK_QUERY_MAX);
    enum xp_status status = decode_args(ask, req->query, err);
    if (status != XP_OK) {
        ask_free(ask);
        return status;
    }
    *out = ask;
    return XP_OK;
}

bool ask_at_once(struct ask *ask)
{
    bool later = false;
    ask->later = &later;
    ask->route->fn(ask);
    if (!later)
        return true;
    ask->later = NULL;
    run_unref(ask->run);
    ask->run = NULL;
    return false;
}

bool ask_may_wait(const struct ask *ask)
{
    if (ask->later)
        *ask->later = true;
    return !ask->later;
}

bool ask_is_upload(const struct ask *ask, struct xp_span name)
{
    return ask->app->uploads && uploads_is_name(name);
}

/* Who was let in by a link is not told where runs lie. */
static enum xp_status get_run(struct ask *ask, struct xp_span name, struct xp_error *err)
{
    enum xp_status status = run_index_get(ask->project->runs, name, &ask->run, err);
    if (status == XP_NOT_FOUND && project_right(ask->project, ask->who) == RIGHT_NONE)
        return xp_fail(err, status, 0, "there is no such run");
    return status;
}

enum xp_status ask_take_run(struct ask *ask, struct xp_span name, struct upload_state *upload,
                            struct xp_error *err)
{
    struct xp_error none;
    if (!ask_is_upload(ask, name))
        return get_run(ask, name, err);
    enum xp_status status =
        uploads_run(ask->app->uploads, ask->project->name, name, &ask->run, upload, err);
    if (status == XP_OK)
        return XP_OK;
    /* A folder may be called so. */
    return run_index_get(ask->project->runs, name, &ask->run, &none) == XP_OK ? XP_OK : status;
}

/* --- answers --- */

/* An answer that depends on who asks is of no cache that many share. */
static void set_cache(const struct ask *ask, struct http_answer *a)
{
    if (!a->cache_control && a->etag[0] && !gate_is_open(ask->app->gate))
        a->cache_control = "private, no-cache";
}

void ask_answer(struct ask *ask, struct http_answer *a)
{
    set_cache(ask, a);
    metrics_answer(ask->app->metrics, ask->number, a->status, xp_now_ns() - ask->began_ns);
    if (ask->later)
        http_answer(ask->ex, a);
    else
        http_answer_from(ask->ex, a);
    ask_free(ask);
}

void ask_json(struct ask *ask, struct xp_buf *json)
{
    struct http_answer a;
    struct xp_error err;

    if (json->failed) {
        xp_buf_fini(json);
        xp_fail(&err, XP_TOO_LARGE, 0, "the answer is too large");
        ask_problem(ask, &err);
        return;
    }
    http_answer_init(&a, 200, "application/json");
    if (!ask->compatible)
        snprintf(a.etag, sizeof a.etag, "\"%016llx\"",
                 (unsigned long long)xp_fnv(ask->identity, xp_buf_all(json)));
    http_answer_body(&a, json);
    ask_answer(ask, &a);
}

void ask_problem(struct ask *ask, const struct xp_error *err)
{
    struct http_answer a;
    http_answer_problem(&a, err);
    ask_answer(ask, &a);
}

void ask_text(struct ask *ask, int status, const char *type, struct xp_span text)
{
    struct http_answer a;
    struct xp_buf body;

    xp_buf_init(&body, text.n + 1);
    xp_buf_span(&body, text);
    http_answer_init(&a, status, type);
    http_answer_body(&a, &body);
    ask_answer(ask, &a);
}

void ask_handed_over(struct ask *ask)
{
    ask->run = NULL;
    ask_free(ask);
}

/* --- the shard's part --- */

static bool is_report(const struct ask *ask)
{
    return ask->route->op == SHARD_REPORT || ask->route->op == SHARD_REPORT_CSV;
}

static void set_etag(struct http_answer *a, uint64_t identity, uint64_t version)
{
    uint64_t h = xp_fnv(identity, xp_span_of(&version, sizeof version));
    snprintf(a->etag, sizeof a->etag, "\"%016llx\"", (unsigned long long)h);
}

/* What is of the query's in a file name: no character that a shell or a header minds. */
static void add_name(struct xp_buf *b, struct xp_span text)
{
    if (text.n && b->n)
        xp_buf_byte(b, '_');
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-';
        if ((c & 0xc0) != 0x80)
            xp_buf_byte(b, plain ? c : '_');
    }
}

/* <tool>_<run>_<what follows the last '-' of the host>.csv */
static void name_download(const struct ask *ask, struct http_answer *a)
{
    struct xp_span tag = ask_arg(ask, is_report(ask) ? "tool" : "tag"), run = ask_arg(ask, "run");
    struct xp_span host = ask_arg(ask, "host");
    const uint8_t *dash = host.n ? memrchr(host.p, '-', host.n) : NULL;
    struct xp_buf name, value;

    if (dash)
        host = xp_span_of(dash + 1, host.n - (size_t)(dash + 1 - host.p));
    xp_buf_init(&name, FILE_NAME_MAX);
    xp_buf_init(&value, 2 * FILE_NAME_MAX);
    add_name(&name, tag);
    add_name(&name, run);
    add_name(&name, host);
    if (!name.failed)
        xp_buf_fmt(&value, "attachment; filename=\"%.*s.csv\"", (int)name.n, (const char *)name.p);
    if (value.n)
        http_answer_header(a, "content-disposition", xp_buf_all(&value));
    xp_buf_fini(&name);
    xp_buf_fini(&value);
}

/* XProf has no reasons: a converter that fails is a 404 that says "No Data"
 * (http-api 4.3); what is ours to refuse (memory, storage) keeps its own status. */
static void compatible_failure(struct ask *ask, const struct xp_error *err)
{
    int http = xp_status_http(err->status);
    switch (err->status) {
    case XP_NOT_FOUND:
    case XP_CORRUPT:
    case XP_STALE:
        if (ask->route->op == SHARD_RUN_TOOLS) {
            ask_text(ask, 200, "application/json", XP_SPAN_LIT("[]"));
            break;
        }
        if (ask->route->op == SHARD_MODULE_LIST) {
            ask_text(ask, 200, "text/plain", XP_SPAN_LIT(""));
            break;
        }
        ask_text(ask, 404, "text/plain",
                 ask->route->op == SHARD_TOOL_CSV ? XP_SPAN_LIT("No Data Found")
                                                  : XP_SPAN_LIT("No Data"));
        break;
    case XP_BUSY:
    case XP_TIMEOUT:
    case XP_IO:
        ask_problem(ask, err);
        break;
    default:
        ask_text(ask, http, "text/plain", xp_span_str(err->text));
    }
}

/* XProf calls a graph's source a page, too; nothing in it may run as one. The pages themselves are
 * put into frames by XProf's UI, which looks into them: they are of our origin. */
static bool is_no_page(const struct ask *ask, const struct shard_answer *sa)
{
    return strcmp(sa->content_type, "text/html") == 0 &&
           !xp_span_eq(ask_arg(ask, "format"), XP_SPAN_LIT("html")) &&
           !xp_span_eq(ask_arg(ask, "tag"), XP_SPAN_LIT("memory_viewer"));
}

/* Of an answer that is one: all but its body. */
static void good_head(const struct ask *ask, const struct shard_answer *sa, struct http_answer *a)
{
    http_answer_init(a, 200, sa->content_type);
    a->encoded = sa->encoded;
    if (is_no_page(ask, sa))
        http_answer_header(a, "content-security-policy", XP_SPAN_LIT("sandbox"));
    if (ask->route->op == SHARD_TOOL_CSV || ask->route->op == SHARD_REPORT_CSV)
        name_download(ask, a);
    if (!sa->volatile_answer)
        set_etag(a, ask->identity, sa->version);
}

/* Whether the report is the one that the list of runs is made of, of all there is. */
static bool is_run_facts(const struct ask *ask)
{
    if (ask->route->op != SHARD_REPORT || !ask->whole ||
        !xp_span_eq(ask_arg(ask, "tool"), XP_SPAN_LIT("run_facts")))
        return false;
    for (size_t i = 0; i < ask->nargs; i++) {
        struct xp_span name = ask->args[i].name;
        if (!xp_span_eq(name, XP_SPAN_LIT("run")) && !xp_span_eq(name, XP_SPAN_LIT("tool")) &&
            !xp_span_eq(name, XP_SPAN_LIT("peak")) && !xp_span_eq(name, XP_SPAN_LIT("limit")))
            return false;
        if (xp_span_eq(name, XP_SPAN_LIT("peak")) && i < ask->n_own)
            return false;
    }
    return true;
}

/* Reports that the timeline asks for, too: they look at no op. */
static bool is_light(struct xp_span tool)
{
    return xp_span_eq(tool, XP_SPAN_LIT("tools")) || xp_span_eq(tool, XP_SPAN_LIT("coverage")) ||
           xp_span_eq(tool, XP_SPAN_LIT("device_activity"));
}

/* What somebody has open is known to the list of runs, soon. A timeline alone is no reason to work
 * out the figures of a large profile. */
static void tell_facts(const struct ask *ask, const struct shard_answer *sa)
{
    struct runfacts *facts = ask->app->facts;
    enum shard_op op = ask->route->op;
    if (!facts || !ask->run || sa->volatile_answer || op == SHARD_PROGRESS ||
        ask_is_upload(ask, xp_span_str(ask->run->name)))
        return;
    if (is_run_facts(ask))
        runfacts_told(facts, ask->run, xp_span_of(sa->body->p, sa->body->n), sa->encoded);
    else
        runfacts_opened(facts, ask->project, ask->run,
                        op == SHARD_REPORT && ask->whole && !is_light(ask_arg(ask, "tool")));
}

static void on_shard_answer(void *ctx, struct shard_answer *sa)
{
    struct ask *ask = ctx;
    struct http_answer a;

    if (sa->error.status != XP_OK) {
        if (ask->compatible)
            compatible_failure(ask, &sa->error);
        else
            ask_problem(ask, &sa->error);
        return;
    }
    tell_facts(ask, sa);
    good_head(ask, sa, &a);
    http_answer_blob(&a, sa->body);
    ask_answer(ask, &a);
}

/* A large answer of a shard elsewhere: the exchange is the relay's from here on. */
static void *begin_relay(void *ctx, const struct shard_answer *sa, size_t length,
                         struct upstream_feed *feed)
{
    struct ask *ask = ctx;
    struct http_answer a;
    good_head(ask, sa, &a);
    set_cache(ask, &a);
    metrics_answer(ask->app->metrics, ask->number, a.status, xp_now_ns() - ask->began_ns);
    struct relay *relay = relay_new(ask->ex, &a, length, feed);
    ask_free(ask);
    return relay;
}

static const struct upstream_stream relayed = {begin_relay, relay_push, relay_end};

/* An answer is a function of the request and of what it reads; one that the client already has
 * need not be made to say so. */
static bool client_has_it(struct ask *ask, uint64_t version)
{
    struct http_answer a;
    if (!ask->if_none_match[0] || ask->route->op == SHARD_PROGRESS)
        return false;
    http_answer_init(&a, 200, "application/json");
    set_etag(&a, ask->identity, version);
    if (!strstr(ask->if_none_match, a.etag)) {
        http_answer_fini(&a);
        return false;
    }
    ask_answer(ask, &a);
    return true;
}

void app_call(struct app *app, const struct shard_request *req, const struct run *run,
              shard_answer_fn fn, void *ctx)
{
    if (app->upstream)
        upstream_call(app->upstream, req, run, fn, NULL, ctx);
    else
        shard_call(app->shard, req, fn, ctx);
}

void ask_shard(struct ask *ask, const struct shard_object *objects, size_t n)
{
    ask->whole = ask->run && n == ask->run->n_hosts;
    if (client_has_it(ask, shard_version(objects, n)))
        return;
    struct xp_span tag = ask_arg(ask, is_report(ask) ? "tool" : "tag");
    char tool[64] = "";
    if (tag.n < sizeof tool && tag.n)
        memcpy(tool, tag.p, tag.n);
    struct shard_request req = {
        .op = ask->route->op,
        .tool = tool,
        .objects = objects,
        .nobjects = n,
        .args = ask->args,
        .nargs = ask->nargs,
        .gzip = ask->gzip,
        .cancel = http_cancel_flag(ask->ex),
        .trace = ask->trace,
    };
    struct shard_answer known;
    if (ask->later && ask->app->shard && shard_known(ask->app->shard, &req, &known)) {
        on_shard_answer(ask, &known);
        return;
    }
    if (ask->app->upstream && n == 1)
        ask->later = NULL; /* asking another waits for nothing */
    if (!ask_may_wait(ask))
        return;
    http_traceparent(http_trace(ask->ex), ask->trace);
    if (ask->app->upstream)
        upstream_call(ask->app->upstream, &req, ask->run, on_shard_answer, &relayed, ask);
    else
        shard_call(ask->app->shard, &req, on_shard_answer, ask);
}
