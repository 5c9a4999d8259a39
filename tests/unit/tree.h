/* tests/unit/tree.h - a temporary folder to build files in. Failures end the test program. */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include "lib/base/span.h"

struct tree {
    char root[256];
};

void tree_init(struct tree *t);
void tree_fini(struct tree *t); /* removes everything below */

/* The path of key in the tree; good for eight further calls by this thread. */
const char *tree_path(const struct tree *t, const char *key);

/* Each makes the folders it needs. */
void tree_file(const struct tree *t, const char *key, const char *text);
void tree_bytes(const struct tree *t, const char *key, struct xp_span bytes);
void tree_dir(const struct tree *t, const char *key);
void tree_link(const struct tree *t, const char *key, const char *target);
void tree_fifo(const struct tree *t, const char *key);

void tree_remove(const struct tree *t, const char *key); /* one file, link or empty folder */
/* The time of last change of a file or folder, in ms since 1970. */
void tree_set_time(const struct tree *t, const char *key, long long ms);

#endif
