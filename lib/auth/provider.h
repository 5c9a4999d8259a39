/* lib/auth/provider.h - what an identity provider publishes: its endpoints and its keys.
 *
 * Fetched when first needed, again when PROVIDER_FRESH_S old, and, at most once in
 * PROVIDER_AGAIN_S, when somebody brings a token that is signed with an unknown key. Old keys serve
 * until there are newer ones. Nothing here waits: who needs what is not there yet is called.
 *
 * Order      xp_provider_new -> xp_provider_view, xp_provider_ask from any thread ->
 *            xp_provider_free, when no ask is open.
 * Ownership  A view is shared and never changes.
 * Errors     Addresses are https, or http on this machine. A provider that calls itself otherwise
 *            than it was asked for is refused.
 */
#ifndef XP_AUTH_PROVIDER_H
#define XP_AUTH_PROVIDER_H

#include "lib/auth/jwt.h"

#define PROVIDER_FRESH_S 600
#define PROVIDER_AGAIN_S 60
#define PROVIDER_RETRY_S 5 /* after one that failed */
#define PROVIDER_WAIT_MS 5000

struct net_client;
struct xp_provider;

struct xp_provider_view {
    struct xp_keyset *keys;
    char *authorize, *token, *logout; /* NULL: not told; without discovery none is */
    bool secret_in_body;              /* the token endpoint takes client_secret_post only */
};

/* keys_url NULL: by discovery at issuer. XP_BAD_REQUEST for addresses that are not taken. */
enum xp_status xp_provider_new(struct net_client *net, const char *issuer, const char *keys_url,
                               struct xp_provider **out, struct xp_error *err);
void xp_provider_free(struct xp_provider *p); /* NULL is fine */

/* What is known now; NULL: nothing yet. Asks for newer ones when they are old. */
const struct xp_provider_view *xp_provider_view(struct xp_provider *p);
void xp_provider_view_unref(const struct xp_provider_view *v); /* NULL is fine */

/* Fetches; fn is called once, on lib/net's thread, when it is over, whatever came of it. False, and
 * fn is not called: it is too soon after the last time. */
bool xp_provider_ask(struct xp_provider *p, void (*fn)(void *ctx), void *ctx);

/* Whether url is one that secrets may be sent to. */
bool xp_provider_url_ok(const char *url);

#endif
