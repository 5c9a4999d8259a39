/* xprofd: reads the command line, puts the parts together, and waits for a signal. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/http/http.h"
#include "lib/objstore/objstore.h"
#include "server/access.h"
#include "server/admin.h"
#include "server/app.h"
#include "server/config.h"
#include "server/options.h"
#include "server/query.h"
#include "server/shard_role.h"

#define QUEUE_MAX 4096
#define DRAIN_MS 10000
#define LOOPS_MAX 4

static const struct {
    const char *name;
    enum xp_log_level level;
} levels[] = {
    {"debug", XP_LOG_DEBUG}, {"info", XP_LOG_INFO}, {"warn", XP_LOG_WARN}, {"error", XP_LOG_ERROR}};

static bool set_log_level(const char *name)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(levels[i].name, name) == 0) {
            xp_log_set_level(levels[i].level);
            return true;
        }
    return false;
}

/* SIGINT and SIGTERM are taken by main alone, with sigwait; a client that goes away must not end
 * the process. Before any thread exists, so that all inherit it. */
static void block_signals(sigset_t *set)
{
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* A connection is a file, and a drain duplicates each: take what the system allows. */
static void raise_file_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int fail(const struct xp_error *err)
{
    fprintf(stderr, "xprofd: %s\n", err->text);
    return 2;
}

/* What answers requests: the frontend with or without a shard of its own, or a shard alone. */
struct role {
    struct app *app;
    struct shard_role *shard;
};

static enum xp_status role_new(const struct options *o, struct xp_workers *workers,
                               struct role *role, struct http_config *config, struct xp_error *err)
{
    static const char *const any[] = {"*", NULL};
    if (o->role != ROLE_SHARD) {
        XP_TRY(app_new(o, XP_VERSION, workers, &role->app, err));
        config->handler = app_handle;
        config->ctx = role->app;
        return XP_OK;
    }
    XP_TRY(shard_role_new(o, XP_VERSION, workers, &role->shard, err));
    config->handler = rpc_handle;
    config->ctx = shard_role_rpc(role->shard);
    config->hosts = any; /* frontends know it by whatever address; no browser is asked to */
    config->body_max = RPC_ASK_MAX;
    config->keep_after_body = true;
    return XP_OK;
}

/* Waits for what still runs on the workers. */
static void role_free(struct role *role)
{
    app_free(role->app);
    shard_role_free(role->shard);
}

/* Puts the option whose file it is about before the sentence. */
static void blame_tls(const struct options *o, struct xp_error *err)
{
    bool pair = strstr(err->text, "does not belong") != NULL;
    if (o->tls_cert && !pair && strstr(err->text, o->tls_cert))
        options_blame("tls-cert", err->status, err);
    else if (o->tls_key && strstr(err->text, o->tls_key))
        options_blame("tls-key", err->status, err);
}

static const char *const role_names[] = {"all", "frontend", "shard"};

static enum xp_status open_access(const struct options *o, struct access **out,
                                  struct http_config *config, struct xp_error *err)
{
    if (!o->access_log && !o->otlp_endpoint)
        return XP_OK;
    XP_TRY(access_new(&(struct access_config){.log = o->access_log,
                                              .endpoint = o->otlp_endpoint,
                                              .role = role_names[o->role],
                                              .version = XP_VERSION},
                      out, err));
    config->done = access_done;
    config->done_ctx = *out;
    config->trace_percent = o->otlp_endpoint ? (int)o->trace_percent : 0;
    return XP_OK;
}

static enum xp_status start_admin(const struct options *o, struct role *role,
                                  struct http_server *server, struct xp_workers *workers,
                                  struct access *access, struct admin **out, struct xp_error *err)
{
    struct admin_config config = {.host = o->host,
                                  .port = (int)o->admin_port,
                                  .sources = {.version = XP_VERSION,
                                              .role = role_names[o->role],
                                              .server = server,
                                              .workers = workers,
                                              .access = access}};
    if (o->admin_port < 0)
        return XP_OK;
    config.metrics = role->app ? app_metrics(role->app, &config.sources)
                               : shard_role_metrics(role->shard, &config.sources);
    XP_TRY(admin_start(&config, out, err));
    printf("xprofd: health and metrics on port %d\n", admin_port(*out));
    return XP_OK;
}

static void announce(const struct options *o, int port)
{
    bool v6 = strchr(o->host, ':') != NULL;
    printf("xprofd: %slistening on http%s://%s%s%s:%d/\n", o->role == ROLE_SHARD ? "shard " : "",
           o->tls_cert ? "s" : "", v6 ? "[" : "", o->host, v6 ? "]" : "", port);
    fflush(stdout);
}

static void set_buckets(const struct options *o)
{
    xp_store_set_bucket_defaults(&(struct xp_bucket_options){
        .gcs_endpoint = o->gcs_endpoint,
        .s3_endpoint = o->s3_endpoint,
        .anonymous = o->bucket_auth && strcmp(o->bucket_auth, "none") == 0,
        .memory = (size_t)o->bucket_memory,
    });
}

static int serve(const struct options *o)
{
    struct xp_error err = {0};
    struct http_server *server = NULL;
    struct role role = {0};
    struct access *access = NULL;
    struct admin *admin = NULL;
    sigset_t set;
    int sig, rc = 0;

    block_signals(&set);
    raise_file_limit();
    set_buckets(o);
    struct xp_workers *workers = xp_workers_new((int)o->threads, QUEUE_MAX);
    struct http_config config = {
        .host = o->host,
        .port = (int)o->port,
        .loops = o->threads < LOOPS_MAX ? (int)o->threads : LOOPS_MAX,
        .tls_cert = o->tls_cert,
        .tls_key = o->tls_key,
        .hosts = o->allow_hosts,
        .workers = workers,
    };
    if (open_access(o, &access, &config, &err) != XP_OK ||
        role_new(o, workers, &role, &config, &err) != XP_OK ||
        http_server_start(&config, &server, &err) != XP_OK) {
        blame_tls(o, &err);
        rc = fail(&err);
        goto out;
    }
    if (role.shard)
        shard_role_listens(role.shard, http_server_port(server));
    if (start_admin(o, &role, server, workers, access, &admin, &err) != XP_OK) {
        rc = fail(&err);
        goto out;
    }
    announce(o, http_server_port(server));
    sigwait(&set, &sig);
    xp_log(XP_LOG_INFO, "main", "%s: finishing what is under way", strsignal(sig));
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* a second signal ends it at once */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    admin_not_ready(admin);
    nanosleep(&(struct timespec){.tv_sec = o->drain_seconds}, NULL);
    if (role.app)
        app_stop(role.app);
out:
    admin_stop(admin);
    if (server)
        http_server_drain(server, DRAIN_MS);
    role_free(&role);
    access_free(access);
    xp_workers_free(workers);
    return rc;
}

int main(int argc, char **argv)
{
    struct options o;

    struct config config;

    if (argc > 1 && strcmp(argv[1], "query") == 0)
        return query_main(argc, argv);
    enum options_result result = config_read(argc, argv, &config);
    if (result == OPTIONS_OK)
        result = options_parse(config.argc, config.argv, XP_VERSION, &o);
    int rc = result == OPTIONS_WRONG ? 2 : 0;
    if (result == OPTIONS_OK && !set_log_level(o.log_level)) {
        fprintf(stderr, "xprofd: --log-level=%s is not debug, info, warn or error\n", o.log_level);
        rc = 2;
    } else if (result == OPTIONS_OK && config.print) {
        config_print(&config);
    } else if (result == OPTIONS_OK) {
        rc = serve(&o);
    }
    config_free(&config);
    return rc;
}
