/* server/gate_int.h - what the gate's files share.
 *
 *   gate.c        modes, identities, what is remembered
 *   gate_origin.c where a request comes from: addresses, pages of ours and of others
 *   login.c       signing in and out by a browser
 */
#ifndef SERVER_GATE_INT_H
#define SERVER_GATE_INT_H

#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/auth/keyring.h"
#include "lib/auth/provider.h"
#include "lib/http/http.h"
#include "server/gate.h"
#include "server/options.h"

#define SECRET_MAX 512
#define COOKIE_NAME_MAX 48

enum gate_mode { MODE_NONE, MODE_OIDC, MODE_IAP, MODE_HEADER };

/* What was checked: who a token, assertion, cookie or header stands for. */
struct known {
    uint8_t digest[32];
    const struct who *who; /* NULL: nobody was found in it */
    int64_t until_s;
    const char *why; /* static; of who NULL */
};

#define KNOWN_MAX 4096
#define KNOWN_LOCKS 16

struct network {
    int family;
    uint8_t address[16];
    int bits;
};

struct gate {
    enum gate_mode mode;
    struct net_client *net;
    struct xp_provider *provider;
    const char *issuer;
    const char *audiences[OPTIONS_HOSTS_MAX + 2];
    const char *client_id, *groups_claim, *scopes;
    char secret[SECRET_MAX]; /* of the client, or of the proxy; "" */
    bool trust_email;
    struct xp_keyring *cookies;
    int64_t session_s;
    bool secure;    /* browsers come by https */
    char *base;     /* --public-url with a '/' at its end, or NULL */
    char path[256]; /* of cookies */
    char session_cookie[COOKIE_NAME_MAX], login_cookie[COOKIE_NAME_MAX];
    const char *header, *groups_header; /* lower case */
    struct network *trusted;
    size_t n_trusted;
    pthread_mutex_t locks[KNOWN_LOCKS];
    struct known known[KNOWN_MAX];
    _Atomic int open; /* requests that wait, and calls under way */
};

/* Of checked claims; NULL when there is nobody in them. */
const struct who *gate_who_of(const struct gate *g, const json_t *claims);
/* Sets the cookie; value empty: deletes it. */
void gate_set_cookie(const struct gate *g, struct http_answer *a, const char *name,
                     struct xp_span value, int64_t seconds);
/* Who is in the cookie of a session, and the text that makes one. */
bool gate_session_read(const struct gate *g, struct xp_span text, int64_t now_s,
                       const struct who **who, int64_t *until_s);
bool gate_session_write(const struct gate *g, const struct who *who, int64_t now_s,
                        struct xp_buf *text);

/* The first line of a file, without its end. */
enum xp_status gate_read_secret(const char *option, const char *path, char secret[SECRET_MAX],
                                struct xp_error *err);

/* --- gate_origin.c --- */

enum xp_status gate_read_networks(struct gate *g, const char *const *list, struct xp_error *err);
/* Whether the connection is the trusted proxy's; true where none is named. */
bool gate_is_trusted(const struct gate *g, const struct http_exchange *ex);

#endif
