/* server/login.h - signing in and out by a browser: OpenID Connect's code flow with PKCE.
 *
 * GET auth/login?to=PLACE leads to the provider, with state, nonce and challenge in a sealed
 * cookie. GET auth/callback is where the provider sends the browser back to: the code becomes a
 * token, the token a session. GET auth/logout is a page that asks, POST auth/logout ends the
 * session here; the page then shows where to end it there.
 *
 * A session is a sealed cookie (lib/auth/seal.h): HttpOnly, SameSite=Lax, Secure under https. It
 * holds who it is, no token. Paths are below the root of the site; PLACE is one too, relative to
 * it, and nothing that could lead elsewhere.
 *
 * Threads    All calls on a loop; the provider is asked by lib/net, and the answer comes later.
 */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "server/audit.h"
#include "server/gate.h"

/* path: below auth/. False: there is no such page. */
bool login_answer(struct gate *g, struct audit *audit, struct http_exchange *ex,
                  const struct who *who, struct xp_span path);

/* To auth/login, and from there back to what was asked for. */
void login_redirect(struct http_exchange *ex);

/* Whether place, with its query, can be gone to after a login; for tests. */
bool login_place_ok(struct xp_span place);

#endif
