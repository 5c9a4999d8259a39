/* server/gate.h - who asks, and may they.
 *
 * Every request passes here before its route (app.c), on the loop and without blocking: the
 * identity comes from a bearer token, a proxy's signed header, a trusted header, or the cookie of
 * a login; what is not in the caches yet (a provider's keys) is fetched on a worker, and the
 * request goes on after it.
 *
 * Order      gate_new from the options -> gate_who for each request -> project_right.
 * Modes      none (--no-auth, only when listening on loopback, and the default there): everyone
 *            is WHO_LOCAL. oidc: bearer tokens and browser login. iap: X-Goog-IAP-JWT-Assertion.
 *            header: a name in a header that the mesh in front sets (and strips from outside).
 * Refusal    401 with WWW-Authenticate for programs, a redirect to the login for a page; 404, not
 *            403, for a project that the asker may not see: it would say that it exists.
 */
#ifndef SERVER_GATE_H
#define SERVER_GATE_H

#include "lib/base/span.h"
#include "lib/base/status.h"

enum who_kind {
    WHO_NOBODY, /* not signed in */
    WHO_LOCAL,  /* no identity is asked for: this machine's user */
    WHO_USER,   /* signed in */
    WHO_LINK,   /* only a share link: what its claims say and no more (server/links.h) */
};

#define WHO_GROUPS_MAX 64

/* Immutable, reference counted: an ask keeps it for the audit log. */
struct who {
    enum who_kind kind;
    const char *subject; /* stable id at the provider; "" unless WHO_USER */
    const char *email;   /* lower case; "" when not known or not verified */
    const char *const *groups;
    size_t n_groups;
};

extern const struct who who_local, who_nobody;

const struct who *who_ref(const struct who *w);
void who_unref(const struct who *w); /* NULL is fine */

/* How the audit log and rate limits name it: "user:ann@example.com", "local", "link:<id>". */
const char *who_name(const struct who *w);

#endif
