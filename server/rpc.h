/* server/rpc.h - the request of shard.h between processes.
 *
 *     POST /rpc/v1/ask      body: RpcAsk (proto/rpc.proto) -> the answer
 *     GET  /rpc/v1/hello    "<identity>\n<version>\n": who is here; also how health is asked
 *
 * An answer of the shard, whatever it says, is HTTP 200 with the headers
 *
 *     xprofd-status     ok, or the code of an xp_status; then the body is the sentence
 *     xprofd-offset     of the error, where there is one
 *     xprofd-version    of what was read, hexadecimal
 *     xprofd-volatile   1: something is still loading
 *     xprofd-load       what the shard has to do: asks under way for each 100 threads of it
 *     xprofd-damage     of a map: "<code> <byte> <sentence>", the object could be read up to there
 *     content-encoding  gzip, where the shard made it so
 *
 * Any other HTTP status comes from the road there (signature wrong: 403, not one of ours: 404, body
 * too large: 413). Every ask is signed where there are keys (lib/cluster/sign.h); without keys a
 * shard listens on loopback only.
 *
 * Versions   The number in the path is the major one: another is refused with 501 and a sentence,
 *            so that a shard of it is no member for a frontend of this one. The minor one goes in
 *            the header xprofd-rpc ("1.2") for people; fields and operations are only added, and
 *            who does not know a field ignores it. A shard that does not know an operation answers
 *            bad_request, a root that it was not given not_found, with a sentence. Partials (op
 *            map) have no version of their own: one build takes them from the same build only, and
 *            a shard of another answers busy, so that the host is mapped elsewhere.
 */
#ifndef SERVER_RPC_H
#define SERVER_RPC_H

#include "lib/base/buf.h"
#include "lib/cluster/sign.h"
#include "lib/http/http.h"
#include "server/metrics.h"
#include "server/projects.h"
#include "shard/shard.h"

#define RPC_VERSION "1.1"
#define RPC_VERSION_HEADER "xprofd-rpc"
#define RPC_ASK_PATH "/rpc/v1/ask"
#define RPC_HELLO_PATH "/rpc/v1/hello"
#define RPC_SIGN_HEADER "xprofd-auth"
#define RPC_ASK_MAX ((size_t)8 << 20) /* a session of a few thousand hosts */

/* The request as RpcAsk, appended to b. Objects are named by their store's name. */
void rpc_write(const struct shard_request *req, struct xp_buf *b);

bool rpc_is_map(enum shard_op op); /* one between shards, whose answer is a partial */

/* What was linked into this process, in hexadecimal; empty when the linker did not say. */
const char *rpc_build(void);

/* A text as a header's value and back: control bytes, '%' and those above ASCII as %XX. out is of
 * 3 * strlen + 1 bytes; rpc_unescape works in place. */
void rpc_escape(const char *text, char *out);
void rpc_unescape(char *text);

/* A request that was read: it owns what it points to. */
struct rpc_ask {
    struct shard_request req; /* cancel is the reader's to set */
    void *message;
    struct shard_object *objects;
    struct shard_arg *args;
    struct shard_owner *owners; /* one an object */
    struct shard_peer *peers;
    const char *build; /* of who asks */
};

/* Only roots of projects may be read, by xp_store_name. XP_BAD_REQUEST for bytes that are no RpcAsk
 * or name an unknown operation, XP_NOT_FOUND for an unknown root. May block (projects_store). */
enum xp_status rpc_read(struct xp_span bytes, struct projects *projects, struct rpc_ask *ask,
                        struct xp_error *err);
/* The same by the roots that are known; never waits. */
enum xp_status rpc_read_known(struct xp_span bytes, struct projects *projects, struct rpc_ask *ask,
                              struct xp_error *err);
void rpc_ask_fini(struct rpc_ask *ask);

/* The content type as a string that lives for ever: answers of the shard refer to static ones. */
const char *rpc_content_type(struct xp_span type);

/* --- the shard's side --- */

struct rpc_server;

struct rpc_config {
    const char *identity, *version;
    struct shard *shard;
    struct projects *projects;
    const struct xp_keyring *keys; /* NULL: asks need no signature */
    struct xp_workers *workers;    /* where asks are read */
    struct metrics *metrics;       /* answers count for its first route */
};

/* Everything in the configuration outlives the server. identity may be NULL until it is known;
 * hello answers 503 until then. */
struct rpc_server *rpc_server_new(const struct rpc_config *config);
void rpc_server_set_identity(struct rpc_server *s, const char *identity);
/* Waits for asks under way. */
void rpc_server_free(struct rpc_server *s);
/* lib/http's handler; ctx is the rpc_server. */
void rpc_handle(void *ctx, struct http_exchange *ex);

#endif
