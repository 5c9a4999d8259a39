/* lib/auth/link.h - what a share link says, and the token that says it.
 *
 * A token is "1" and the base64url of HMAC-SHA-256 (32 bytes) before the protobuf of the claims
 * (proto/link.proto). There is one algorithm, so that none can be confused with another; the
 * version is in what is signed. The mac is compared before a byte of the claims is parsed.
 *
 * Two kinds with purposes of their own: what stands in a link, and what a browser keeps as a
 * cookie after it was opened. Neither is good as the other.
 *
 * Ownership  Claims hold their bytes in the struct.
 * Errors     link_open: XP_BAD_REQUEST for what is no token of ours, altered, cut or of another
 *            key: one sentence for all of them. Expiry, revocation and audience are the caller's.
 * Threads    Free of shared state.
 */
#ifndef XP_AUTH_LINK_H
#define XP_AUTH_LINK_H

#include "lib/auth/keyring.h"
#include "lib/base/buf.h"

#define LINK_ID_BYTES 16
#define LINK_ID_TEXT 33 /* in hex, with NUL */
#define LINK_VIEW_MAX 1024
#define LINK_RUN_MAX 1024
#define LINK_NAME_MAX 255 /* of project, tool and domain */
#define LINK_TOKEN_MAX 4096

enum link_audience {
    LINK_MEMBERS, /* signed in, and with rights of their own in the project */
    LINK_DOMAIN,  /* signed in with an address of one domain */
    LINK_ANYONE,  /* whoever has it */
    LINK_AUDIENCES
};

extern const char *const link_audience_names[LINK_AUDIENCES]; /* "members", "domain", "anyone" */

enum link_kind { LINK_URL, LINK_COOKIE };

struct link_claims {
    uint8_t id[LINK_ID_BYTES];
    enum link_audience audience;
    int64_t issued_s, expires_s; /* Unix seconds */
    char project[LINK_NAME_MAX + 1];
    char run[LINK_RUN_MAX + 1];
    char tool[LINK_NAME_MAX + 1]; /* "": all of the run */
    char domain[LINK_NAME_MAX + 1];
    char view[LINK_VIEW_MAX + 1];
};

/* A new id. XP_INTERNAL when the system gives no random bytes. */
enum xp_status link_new_id(struct link_claims *c, struct xp_error *err);
void link_id_text(const struct link_claims *c, char text[LINK_ID_TEXT]);

/* Appends the token. XP_TOO_LARGE above LINK_TOKEN_MAX. */
enum xp_status link_seal(const struct xp_keyring *k, enum link_kind kind,
                         const struct link_claims *c, struct xp_buf *token, struct xp_error *err);
enum xp_status link_open(const struct xp_keyring *k, enum link_kind kind, struct xp_span token,
                         struct link_claims *c, struct xp_error *err);

/* Whether view is a page of the run below a project: "<page>?<query>", where the query names
 * `run`; nothing that a browser could take for another place. */
bool link_view_good(struct xp_span view);

#endif
