#include "server/shard_role.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/cluster/ring.h"
#include "server/app.h"
#include "server/upstream.h"

struct shard_role {
    struct projects *projects;
    struct xp_keyring *keys;
    struct shard *shard;
    struct rpc_server *rpc;
    struct upstream *peers; /* other shards, for runs of many hosts */
    struct metrics *metrics;
    char identity[RING_NAME_MAX + 1];
};

static const char *const route_names[] = {"rpc/ask"};

enum xp_status shard_role_new(const struct options *o, const char *version,
                              struct xp_workers *workers, struct shard_role **out,
                              struct xp_error *err)
{
    struct shard_role *r = calloc(1, sizeof *r);

    XP_ASSERT(r);
    struct projects_config config = {o->logdir, o->projects, NULL, NULL};
    enum xp_status status = projects_new(&config, &r->projects, err);
    if (status == XP_OK && o->rpc_key)
        status = options_blame("rpc-key", xp_keyring_open(o->rpc_key, &r->keys, err), err);
    if (status == XP_OK)
        status = upstream_new(&(struct upstream_config){NULL, r->keys}, &r->peers, err);
    if (status != XP_OK) {
        shard_role_free(r);
        return status;
    }
    if (o->identity)
        snprintf(r->identity, sizeof r->identity, "%s", o->identity);
    r->shard = shard_new(workers, app_memory_budget(o));
    shard_set_peers(r->shard, upstream_ask_peers, r->peers);
    r->metrics = metrics_new(route_names, 1);
    struct rpc_config rpc = {.identity = o->identity ? r->identity : NULL,
                             .version = version,
                             .shard = r->shard,
                             .projects = r->projects,
                             .keys = r->keys,
                             .workers = workers,
                             .metrics = r->metrics};
    r->rpc = rpc_server_new(&rpc);
    *out = r;
    return XP_OK;
}

void shard_role_free(struct shard_role *r)
{
    if (!r)
        return;
    rpc_server_free(r->rpc);
    shard_free(r->shard);
    upstream_free(r->peers);
    projects_free(r->projects);
    xp_keyring_close(r->keys);
    metrics_free(r->metrics);
    free(r);
}

struct metrics *shard_role_metrics(struct shard_role *r, struct metrics_sources *from)
{
    from->shard = r->shard;
    from->peers = r->peers;
    return r->metrics;
}

struct rpc_server *shard_role_rpc(struct shard_role *r)
{
    return r->rpc;
}

void shard_role_listens(struct shard_role *r, int port)
{
    char host[128] = "shard";
    if (r->identity[0])
        return;
    gethostname(host, sizeof host - 1);
    snprintf(r->identity, sizeof r->identity, "%s:%d", host, port);
    rpc_server_set_identity(r->rpc, r->identity);
}
