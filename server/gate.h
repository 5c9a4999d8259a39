/* server/gate.h - who asks, and may they.
 *
 * Every request passes here before its route (app.c), on the loop and without blocking: the
 * identity comes from a bearer token, a proxy's signed header, a trusted header, or the cookie of
 * a login. What was checked is remembered for minutes, by a hash. A provider's keys that are not
 * there yet are asked for, and the request goes on when they come.
 *
 * Order      gate_new from the options -> gate_who for each request (and gate_wait, and gate_who
 *            again) -> project_right. gate_free when no request is under way.
 * Modes      none (only when listening on loopback, and the default there): everyone is WHO_LOCAL.
 *            oidc: bearer tokens and browser login. iap: X-Goog-IAP-JWT-Assertion. header: a name
 *            in a header that the proxy in front sets (and strips from outside).
 * Refusal    401 with WWW-Authenticate for programs, a redirect to the login for a page; 404, not
 *            403, for a project that the asker may not see: it would say that it exists.
 * Changes    gate_is_own: a request that changes something comes from a page of ours, or from a
 *            program; never from a page of others in the browser of somebody who is signed in.
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
#define WHO_TEXT_MAX 320 /* of a subject, an address, a group */

/* Immutable, reference counted: an ask keeps it for the audit log. */
struct who {
    enum who_kind kind;
    const char *subject; /* stable id at the provider; "" unless WHO_USER */
    const char *email;   /* lower case; "" when not known or not verified */
    const char *const *groups;
    size_t n_groups;
};

extern const struct who who_local, who_nobody;

/* Copies; groups beyond WHO_GROUPS_MAX and texts beyond WHO_TEXT_MAX are left out. kind is WHO_USER
 * or WHO_LINK, whose subject is the link's id. */
const struct who *who_new(enum who_kind kind, const char *subject, const char *email,
                          const char *const *groups, size_t n_groups);
const struct who *who_ref(const struct who *w);
void who_unref(const struct who *w); /* NULL is fine */

/* How the audit log and rate limits name it: "user:ann@example.com", "local", "link:<id>". */
const char *who_name(const struct who *w);

struct gate;
struct options;
struct http_exchange;
struct http_answer;

/* XP_BAD_REQUEST and the like with a sentence that names the option. */
enum xp_status gate_new(const struct options *o, struct gate **out, struct xp_error *err);
/* Waits until none of the requests and logins that wait is left. */
void gate_settle(struct gate *g);
void gate_free(struct gate *g); /* NULL is fine; settles */

enum gate_verdict {
    GATE_KNOWN,   /* *who is referenced; it may be nobody */
    GATE_REFUSED, /* what was brought is no good: err says why */
    GATE_LATER,   /* keys are missing: gate_wait */
};

/* Loop thread. last: nothing is waited for any more, never GATE_LATER. */
enum gate_verdict gate_who(struct gate *g, struct http_exchange *ex, bool last,
                           const struct who **who, struct xp_error *err);

/* again(ctx) is called on the exchange's loop when keys have come or did not. False: there is
 * nothing to wait for. */
bool gate_wait(struct gate *g, struct http_exchange *ex, void (*again)(void *ctx), void *ctx);

/* Answers a request of nobody, or of credentials that are no good (err): a redirect to the login
 * where a browser asks for a page, else 401. */
void gate_challenge(struct gate *g, struct http_exchange *ex, const struct xp_error *err);

/* Whether a request that changes something may be let through (CSRF); else a sentence. json: it
 * has to be one that a form cannot send, a JSON body or the header x-xprofd. */
/* json is of no concern to what brings a token: no browser does that by itself. */
enum xp_status gate_is_own(const struct gate *g, const struct http_exchange *ex, bool json,
                           struct xp_error *err);

/* Whose request it is by address: the connection's, or, from a trusted proxy (--trusted-from), the
 * one that the proxy saw. Loop thread. */
#define GATE_ADDRESS_MAX 64
void gate_address(const struct gate *g, const struct http_exchange *ex,
                  char text[GATE_ADDRESS_MAX]);

/* "none", "oidc", "iap" or "header". */
const char *gate_mode_name(const struct gate *g);
/* Whether there are pages to sign in and out (login.h). */
bool gate_has_login(const struct gate *g);
/* Whether answers depend on who asks: they are then of no cache that many share. */
bool gate_is_open(const struct gate *g);

#endif
