/* server/pages.h - the web UI's page and its assets, answered on the loop from memory. */
#ifndef SERVER_PAGES_H
#define SERVER_PAGES_H

#include "lib/http/http.h"
#include "server/projects.h"

/* path: below the project, without a leading '/': "" and names without a dot are the page
 * (a reload of any view works), "assets/..." an asset. False when it is neither. */
bool pages_answer(struct http_exchange *ex, struct xp_span path);

/* The list of these projects. */
void pages_projects(struct http_exchange *ex, const struct project *const *v, size_t n);

/* Fills an answer: a page of one sentence and one link. All of it is ours, none a client's. */
void pages_message(struct http_answer *a, int status, const char *title, const char *text,
                   const char *href, const char *link);
/* The same with a button that signs out. */
void pages_sign_out(struct http_answer *a);

/* to is relative to what was asked for. */
void pages_redirect(struct http_exchange *ex, const char *to);

#endif
