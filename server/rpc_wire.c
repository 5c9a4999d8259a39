#include <stdlib.h>
#include <strings.h>

#include "rpc.pb-c.h"
#include "server/rpc.h"

static const char *const op_names[] = {
#define X(op, name) [SHARD_##op] = name,
    SHARD_OP_MAP(X)
#undef X
};
#define OPS (sizeof op_names / sizeof *op_names)

static void *must_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    XP_ASSERT(p);
    return p;
}

static ProtobufCBinaryData data(struct xp_span s)
{
    return (ProtobufCBinaryData){s.n, (uint8_t *)s.p};
}

bool rpc_is_map(enum shard_op op)
{
    return op == SHARD_MAP || op == SHARD_MAP_CSV || op == SHARD_MAP_REPORT ||
           op == SHARD_MAP_REPORT_CSV;
}

/* --- write --- */

static void write_objects(Xprofd__RpcAsk *m, const struct shard_request *req)
{
    Xprofd__RpcObject *objects = must_alloc(req->nobjects * sizeof *objects);
    m->objects = must_alloc(req->nobjects * sizeof(Xprofd__RpcObject *));
    m->n_objects = req->nobjects;
    for (size_t i = 0; i < req->nobjects; i++) {
        const struct shard_object *o = &req->objects[i];
        xprofd__rpc_object__init(&objects[i]);
        objects[i].root = (char *)xp_store_name(o->store);
        objects[i].key = data(xp_span_str(o->key));
        objects[i].host = data(xp_span_str(o->host));
        objects[i].generation = o->generation;
        objects[i].size = o->size;
        objects[i].gz = o->gz;
        if (req->owners) {
            objects[i].first = req->owners[i].first;
            objects[i].next = req->owners[i].next;
        }
        m->objects[i] = &objects[i];
    }
}

static void write_args(Xprofd__RpcAsk *m, const struct shard_request *req)
{
    Xprofd__RpcArg *args = must_alloc(req->nargs * sizeof *args);
    m->args = must_alloc(req->nargs * sizeof(Xprofd__RpcArg *));
    m->n_args = req->nargs;
    for (size_t i = 0; i < req->nargs; i++) {
        xprofd__rpc_arg__init(&args[i]);
        args[i].name = data(req->args[i].name);
        args[i].value = data(req->args[i].value);
        m->args[i] = &args[i];
    }
}

static void write_peers(Xprofd__RpcAsk *m, const struct shard_request *req)
{
    Xprofd__RpcPeer *peers = must_alloc(req->npeers * sizeof *peers);
    m->peers = must_alloc(req->npeers * sizeof(Xprofd__RpcPeer *));
    m->n_peers = req->npeers;
    for (size_t i = 0; i < req->npeers; i++) {
        xprofd__rpc_peer__init(&peers[i]);
        peers[i].name = (char *)req->peers[i].name;
        peers[i].address = (char *)req->peers[i].address;
        m->peers[i] = &peers[i];
    }
}

void rpc_write(const struct shard_request *req, struct xp_buf *b)
{
    Xprofd__RpcAsk m = XPROFD__RPC_ASK__INIT;
    m.op = (char *)op_names[req->op];
    m.tool = (char *)(req->tool ? req->tool : "");
    m.gzip = req->gzip;
    write_objects(&m, req);
    write_args(&m, req);
    if (req->npeers)
        write_peers(&m, req);
    m.index = req->index;
    m.build = (char *)(rpc_is_map(req->op) ? rpc_build() : "");
    size_t n = xprofd__rpc_ask__get_packed_size(&m);
    uint8_t *room = xp_buf_room(b, n);
    if (room) {
        xprofd__rpc_ask__pack(&m, room);
        b->n += n;
    }
    free(m.n_objects ? (void *)m.objects[0] : NULL);
    free(m.n_args ? (void *)m.args[0] : NULL);
    free(m.n_peers ? (void *)m.peers[0] : NULL);
    free(m.objects);
    free(m.args);
    free(m.peers);
}

/* --- read --- */

static enum xp_status find_op(const char *name, enum shard_op *op, struct xp_error *err)
{
    for (size_t i = 0; i < OPS; i++)
        if (!strcmp(name, op_names[i])) {
            *op = (enum shard_op)i;
            return XP_OK;
        }
    return xp_fail(err, XP_BAD_REQUEST, 0, "this shard does not know the operation \"%.64s\"",
                   name);
}

/* Bytes of a name as a string; they hold no NUL in an honest message. */
static enum xp_status read_name(ProtobufCBinaryData d, const char **out, struct xp_error *err)
{
    char *copy = must_alloc(d.len + 1);
    if (d.len)
        memcpy(copy, d.data, d.len);
    *out = copy;
    return strlen(copy) == d.len ? XP_OK : xp_fail(err, XP_BAD_REQUEST, 0, "a name holds a NUL");
}

typedef struct xp_store *(*find_store_fn)(struct projects *ps, const char *name);

static enum xp_status read_objects(const Xprofd__RpcAsk *m, struct projects *projects,
                                   find_store_fn find, struct rpc_ask *ask, struct xp_error *err)
{
    struct xp_store *last = NULL;
    ask->objects = must_alloc(m->n_objects * sizeof *ask->objects);
    ask->req.objects = ask->objects;
    for (size_t i = 0; i < m->n_objects; i++) {
        const Xprofd__RpcObject *o = m->objects[i];
        struct shard_object *to = &ask->objects[i];
        ask->req.nobjects = i + 1;
        if (!last || strcmp(xp_store_name(last), o->root) != 0)
            last = find(projects, o->root);
        to->store = last;
        if (!to->store)
            return xp_fail(err, XP_NOT_FOUND, 0, "this shard was not given the root \"%.200s\"",
                           o->root);
        XP_TRY(read_name(o->key, &to->key, err));
        XP_TRY(read_name(o->host, &to->host, err));
        to->generation = o->generation;
        to->size = o->size;
        to->gz = o->gz;
    }
    return XP_OK;
}

/* Who maps what; a number that names nobody is this shard. */
static void read_owners(const Xprofd__RpcAsk *m, struct rpc_ask *ask)
{
    ask->peers = must_alloc(m->n_peers * sizeof *ask->peers);
    ask->owners = must_alloc(m->n_objects * sizeof *ask->owners);
    for (size_t i = 0; i < m->n_peers; i++)
        ask->peers[i] = (struct shard_peer){m->peers[i]->name, m->peers[i]->address};
    for (size_t i = 0; i < m->n_objects; i++) {
        uint32_t first = m->objects[i]->first, next = m->objects[i]->next;
        ask->owners[i] =
            (struct shard_owner){first <= m->n_peers ? first : 0, next <= m->n_peers ? next : 0};
    }
    ask->req.peers = ask->peers;
    ask->req.npeers = m->n_peers;
    ask->req.owners = m->n_peers ? ask->owners : NULL;
}

static enum xp_status read_ask(struct xp_span bytes, struct projects *projects, find_store_fn find,
                               struct rpc_ask *ask, struct xp_error *err)
{
    Xprofd__RpcAsk *m = xprofd__rpc_ask__unpack(NULL, bytes.n, bytes.p);
    *ask = (struct rpc_ask){.message = m};
    if (!m)
        return xp_fail(err, XP_BAD_REQUEST, 0, "the bytes are no RpcAsk");
    XP_TRY(find_op(m->op, &ask->req.op, err));
    ask->req.tool = m->tool;
    ask->req.gzip = m->gzip;
    ask->req.index = m->index;
    ask->build = m->build;
    read_owners(m, ask);
    ask->args = must_alloc(m->n_args * sizeof *ask->args);
    for (size_t i = 0; i < m->n_args; i++)
        ask->args[i] =
            (struct shard_arg){xp_span_of(m->args[i]->name.data, m->args[i]->name.len),
                               xp_span_of(m->args[i]->value.data, m->args[i]->value.len)};
    ask->req.args = ask->args;
    ask->req.nargs = m->n_args;
    return read_objects(m, projects, find, ask, err);
}

enum xp_status rpc_read(struct xp_span bytes, struct projects *projects, struct rpc_ask *ask,
                        struct xp_error *err)
{
    return read_ask(bytes, projects, projects_store, ask, err);
}

enum xp_status rpc_read_known(struct xp_span bytes, struct projects *projects, struct rpc_ask *ask,
                              struct xp_error *err)
{
    return read_ask(bytes, projects, projects_store_known, ask, err);
}

void rpc_ask_fini(struct rpc_ask *ask)
{
    for (size_t i = 0; i < ask->req.nobjects; i++) {
        free((void *)ask->objects[i].key);
        free((void *)ask->objects[i].host);
    }
    free(ask->objects);
    free(ask->args);
    free(ask->owners);
    free(ask->peers);
    if (ask->message)
        xprofd__rpc_ask__free_unpacked(ask->message, NULL);
    *ask = (struct rpc_ask){0};
}

const char *rpc_content_type(struct xp_span type)
{
    static const char *const known[] = {"application/json",
                                        "application/x-protobuf",
                                        "application/octet-stream",
                                        "text/csv",
                                        "text/html",
                                        "text/plain"};
    const uint8_t *end = type.n ? memchr(type.p, ';', type.n) : NULL;
    if (end)
        type.n = (size_t)(end - type.p);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (type.n == strlen(known[i]) && !strncasecmp((const char *)type.p, known[i], type.n))
            return known[i];
    return "application/octet-stream";
}
