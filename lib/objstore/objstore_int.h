/* lib/objstore/objstore_int.h - what an implementation of a store or a reader provides.
 *
 * store.c checks keys, prefixes, tokens' lengths and ranges before it calls these, so that an
 * implementation sees well-formed keys only. Where the links behind a key lead is the
 * implementation's to check.
 */
#ifndef XP_OBJSTORE_INT_H
#define XP_OBJSTORE_INT_H

#include "lib/objstore/objstore.h"

#define XP_KEY_MAX 4095
#define XP_LIST_MAX 1000

struct xp_store_ops {
    void (*free)(struct xp_store *s);
    enum xp_status (*locate)(struct xp_store *s, const char *path, char **prefix,
                             struct xp_error *err);
    enum xp_status (*list)(struct xp_store *s, const char *prefix, bool delimiter,
                           const char *token, size_t max, struct xp_store_page *page,
                           struct xp_error *err);
    enum xp_status (*stat)(struct xp_store *s, const char *key, struct xp_object *out,
                           struct xp_error *err);
    enum xp_status (*open)(struct xp_store *s, const char *key, uint64_t generation,
                           struct xp_reader **out, struct xp_error *err);
    enum xp_status (*put_if)(struct xp_store *s, const char *key, struct xp_span body,
                             uint64_t if_generation, uint64_t *generation, struct xp_error *err);
    /* NULL: open does. */
    enum xp_status (*open_sized)(struct xp_store *s, const char *key, uint64_t generation,
                                 uint64_t size, struct xp_reader **out, struct xp_error *err);
    int parallel; /* calls at once that are worth it; 0 is 1 */
};

/* First member of every store; name and label are malloc'd and freed by xp_store_free. */
struct xp_store {
    const struct xp_store_ops *ops;
    char *name;
    char *label;
    bool is_file;
};

struct xp_reader_ops {
    /* off < size and 0 < n <= size - off. Reads all n bytes or fails. */
    enum xp_status (*read)(struct xp_reader *r, uint64_t off, void *buf, size_t n,
                           struct xp_error *err);
    void (*close)(struct xp_reader *r);
    /* All may be NULL: bytes are always at hand. */
    bool (*ready)(struct xp_reader *r, uint64_t off, size_t n, void (*wake)(void *ctx), void *ctx);
    void (*plan)(struct xp_reader *r, const struct xp_range *ranges, size_t n);
    void (*cancel)(struct xp_reader *r);
};

/* First member of every reader. */
struct xp_reader {
    const struct xp_reader_ops *ops;
    uint64_t size;
    uint64_t generation;
};

/* Adds an item to a page: key = prefix + name. False when memory is out. */
bool xp_store_page_add(struct xp_store_page *page, const char *prefix, const char *name,
                       const struct xp_object *what);

/* What xp_store_open and the like check: parts that are not empty, "." or "..". */
bool xp_store_key_ok(const char *key);
bool xp_store_prefix_ok(const char *prefix);

/* prefix + name, malloc'd. */
char *xp_store_join(const char *prefix, const char *name);

/* A key cut to what an error has room for; the end of a key says more than its beginning. */
struct xp_key_text {
    char s[144];
};
const char *xp_key_shorten(const char *key, struct xp_key_text *t);

/* What xp_store_set_patience said. */
uint32_t xp_store_patience(void);

#endif
