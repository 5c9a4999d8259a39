/* server/links.h - share links: made, opened, listed, revoked; and what one lets in.
 *
 * POST links makes one and answers its URL, once; GET lists those of a run; DELETE revokes one, or
 * all of a run's (docs/api.md). <project>/link-<token> opens one: a browser is sent to the view at
 * once, so that the token stays in no history or referrer; one that has no rights of its own gets
 * a cookie instead, which says the same without the view.
 *
 * Rights     A viewer may make a link for members, an editor for a domain or, where the project
 *            allows it, for anyone. Its maker, or an editor, revokes one; an editor all.
 * Scope      Who comes by a link reads one run, and of it one tool's page when the link is of one:
 *            links_cover. XProf's own routes and lists of runs are not for links.
 * Refusals   Altered, cut, expired, revoked, of another project: 403 or 410 with a sentence.
 * Threads    links_admit and links_cover on a loop, never blocking; the routes on workers.
 */
#ifndef SERVER_LINKS_H
#define SERVER_LINKS_H

#include "server/ask.h"
#include "server/linkstore.h"

/* Of a link's URL, below the project: before the token. No '/' after it, so that the folder of the
 * URL, and of the cookie, is the project's. */
#define LINKS_PATH "link-"

struct links;

struct links_config {
    const char *keys;  /* --link-keys: a file, lib/auth/keyring.h */
    const char *state; /* --state: where records are */
    const struct xp_bucket_options *bucket;
};

enum xp_status links_new(const struct links_config *config, struct links **out,
                         struct xp_error *err);
void links_free(struct links *l); /* NULL is fine */
void links_stats(struct links *l, struct linkstore_stats *out);

/* The link by whose cookie this request comes into the project; false: none, or no longer good. On
 * true the caller lets RIGHT_VIEW in where links_cover says so. */
bool links_admit(struct links *l, struct http_exchange *ex, const struct project *p,
                 const struct who *who, struct link_claims *c);

/* Whether a request of that route and query is within the link. */
bool links_cover(const struct link_claims *c, const struct route *route, bool compatible,
                 struct xp_span query);

/* Answers <project>/link-<token>. right: of who in p; p may be seen by nobody but by the link.
 * False: not answered, the asker has to say who it is first. *id, for the audit log: the link's
 * that was opened, or "". */
bool links_answer(struct links *l, struct http_exchange *ex, const struct project *p,
                  const struct who *who, enum right right, struct xp_span token,
                  char id[LINK_ID_TEXT]);

/* Routes. */
void api_links(struct ask *ask);
void api_links_make(struct ask *ask);
void api_links_revoke(struct ask *ask);

#endif
