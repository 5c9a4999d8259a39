/* server/stock.h - XProf's own pages, from the static folder of an installed XProf (--ui
 * stock=DIR).
 *
 * The files are read once, at start, and kept compressed; nothing of them is part of xprofd.
 * They need a content policy that is wider than ours (inline scripts, a chart library from
 * elsewhere), which is sent with these files only.
 *
 * Order      stock_open -> stock_answer any number of times, on any loop -> stock_free.
 */
#ifndef SERVER_STOCK_H
#define SERVER_STOCK_H

#include "lib/http/http.h"

struct stock;

/* XP_NOT_FOUND when DIR holds no index.html. */
enum xp_status stock_open(const char *dir, struct stock **out, struct xp_error *err);
void stock_free(struct stock *s); /* NULL is fine */

/* path: without the prefix and a leading '/'. below_prefix: names without a dot are the page, so
 * that a view can be loaded again. False when it is none of XProf's files. */
bool stock_answer(const struct stock *s, struct http_exchange *ex, struct xp_span path,
                  bool below_prefix);

#endif
