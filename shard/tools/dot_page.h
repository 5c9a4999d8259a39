/* shard/tools/dot_page.h - a page that draws a graph given in DOT.
 *
 * Between dot_page_begin and dot_page_end the graph's source is put in with dot_page_text, in
 * pieces that end at line ends. It stands in a script: what could end it there, or the text in it,
 * is escaped, so that names from a profile stay names.
 */
#ifndef SHARD_DOT_PAGE_H
#define SHARD_DOT_PAGE_H

#include "lib/base/buf.h"

void dot_page_begin(struct xp_buf *out);
void dot_page_text(struct xp_buf *out, struct xp_span dot);
/* engine: of graphviz, "dot" or "neato". */
void dot_page_end(struct xp_buf *out, const char *engine);

#endif
