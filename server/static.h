/* server/static.h - the web pages, embedded at build time (cmake/embed.py makes the table).
 *
 * An asset is kept compressed only; a client that takes no gzip gets it inflated by lib/http.
 * Paths are relative to the site's root, without a leading '/': "index.html", "assets/x-1a2b.js".
 * Everything here is constant and lives as long as the process. Threads: any.
 */
#ifndef SERVER_STATIC_H
#define SERVER_STATIC_H

#include "lib/base/span.h"

struct static_asset {
    const char *path;
    const char *type; /* content type */
    const char *etag; /* quoted */
    const uint8_t *gz;
    size_t gz_n;
    const uint8_t *br; /* NULL: none */
    size_t br_n;
    size_t raw_n; /* bytes when inflated */
    bool hashed;  /* the name changes with the content: may be cached for ever */
};

/* Sorted by path, byte order. */
extern const struct static_asset static_assets[];
extern const size_t static_assets_n;

/* NULL when there is none. */
const struct static_asset *static_find(struct xp_span path);

#endif
