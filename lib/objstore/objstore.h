/* lib/objstore/objstore.h - a place that holds objects by key: list, stat, ranged read, put.
 *
 * One vtable, several implementations (a local directory here; buckets later). Keys are
 * relative, '/'-separated, without a leading '/', "." or ".." parts or NUL; any other bytes
 * may occur. An implementation refuses a key that leads outside its root after links are
 * resolved (XP_DENIED).
 *
 * Generation identifies one content of one object: reads of another generation than asked for
 * answer XP_STALE. A local file's generation is made of inode, size and modification time.
 *
 * Threads    A store and a reader may be used by any number of threads at once. Calls block;
 *            they are made on workers, never on a loop.
 * Ownership  xp_store_free after every reader is closed. Strings in a page live until
 *            xp_store_page_fini.
 * Errors     Name the key and what the system said; never more of the path than the key below
 *            the root as it was configured.
 */
#ifndef XP_OBJSTORE_H
#define XP_OBJSTORE_H

#include "lib/base/span.h"
#include "lib/base/status.h"

struct xp_object {
    char *key; /* whole key, NUL-terminated (keys hold no NUL) */
    uint64_t size;
    uint64_t generation;
    int64_t mtime_ms; /* of a folder: when an entry was last added or removed; 0: unknown */
    bool prefix;      /* a common prefix ("folder"), key ends in '/' ; size and generation are 0 */
    bool link;        /* a folder reached through a symbolic link */
};

struct xp_store_page {
    struct xp_object *items; /* sorted by key, byte order */
    size_t n;
    char *next;      /* token for the next page, NULL at the end */
    size_t left_out; /* first page: links of the folder that lead outside the root, not listed */
};

struct xp_store;
struct xp_reader;

/* A local directory as root, read-only. XP_NOT_FOUND / XP_DENIED / XP_BAD_REQUEST with a
 * sentence. The directory is looked up anew by each call, so that one which is replaced, or a
 * link as root that is turned elsewhere, is followed. Links below the root are followed as long
 * as they end below the root. Only regular files are objects. */
enum xp_status xp_store_open_dir(const char *path, struct xp_store **out, struct xp_error *err);

/* The same, and xp_store_put_if works. */
enum xp_status xp_store_open_dir_rw(const char *path, struct xp_store **out, struct xp_error *err);

/* One local file as a read-only store of one object, whose key is the file's name. */
enum xp_status xp_store_open_file(const char *path, struct xp_store **out, struct xp_error *err);

/* Either of the two, whatever path is: for a command line. */
enum xp_status xp_store_open_path(const char *path, struct xp_store **out, struct xp_error *err);

void xp_store_free(struct xp_store *s); /* NULL is fine */

/* What people call the place, e.g. the directory as given. */
const char *xp_store_name(const struct xp_store *s);

/* Its last part, for a title: "logs" for /data/logs/ (raw bytes of a file name). */
const char *xp_store_label(const struct xp_store *s);

/* True for a store of one file. */
bool xp_store_is_file(const struct xp_store *s);

/* The folder that a path, as people write it, names within the store: *prefix is "" or ends in
 * '/', to be freed. Links are resolved. XP_NOT_FOUND when it lies below the root but is no
 * folder; XP_DENIED for everything else, whether it exists or not. */
enum xp_status xp_store_locate(struct xp_store *s, const char *path, char **prefix,
                               struct xp_error *err);

/* Objects below prefix ("" or ends in '/'). With delimiter, only one level: deeper ones are
 * folded into prefixes. At most max items (1..1000); token NULL for the first page. An unknown
 * prefix is an empty page. Without delimiter, links to folders are not descended. A folder of
 * more than a million entries is XP_TOO_LARGE. */
enum xp_status xp_store_list(struct xp_store *s, const char *prefix, bool delimiter,
                             const char *token, size_t max, struct xp_store_page *page,
                             struct xp_error *err);
void xp_store_page_fini(struct xp_store_page *page);

enum xp_status xp_store_stat(struct xp_store *s, const char *key, struct xp_object *out,
                             struct xp_error *err); /* out->key is malloc'd: free() */

/* generation 0: whatever is there now. */
enum xp_status xp_store_open(struct xp_store *s, const char *key, uint64_t generation,
                             struct xp_reader **out, struct xp_error *err);

/* Writes only if the object's generation is if_generation (0: only if there is none), else
 * XP_STALE. A store opened read-only answers XP_DENIED. */
enum xp_status xp_store_put_if(struct xp_store *s, const char *key, struct xp_span body,
                               uint64_t if_generation, uint64_t *generation, struct xp_error *err);

/* --- readers: the bytes of one generation, at any offset --- */

uint64_t xp_reader_size(const struct xp_reader *r);
uint64_t xp_reader_generation(const struct xp_reader *r);

/* Reads up to n bytes at off; *got < n only at the end of the object. */
enum xp_status xp_reader_read(struct xp_reader *r, uint64_t off, void *buf, size_t n, size_t *got,
                              struct xp_error *err);
void xp_reader_close(struct xp_reader *r); /* NULL is fine */

/* A reader of bytes in memory; they stay the caller's and outlive it. */
enum xp_status xp_reader_open_mem(struct xp_span bytes, uint64_t generation, struct xp_reader **out,
                                  struct xp_error *err);

/* --- gzip: a reader of what a compressed object holds ---
 *
 * Opening inflates the object once, start to end, keeps a checkpoint of the inflater about
 * every 8 MiB of output and hands each piece to on_bytes (may be NULL) as it comes, so that an
 * index can be made in the same pass; on_bytes returns XP_OK to go on. Reads then begin at the
 * nearest checkpoint. A reader keeps a few inflaters open where the last reads ended, so that
 * forward reads by several threads do not start over. inner is owned by the new reader
 * from success on. Concatenated members are read as one, zeros after the last are padding.
 * Damaged or truncated data: XP_CORRUPT with the compressed offset; max_size bounds the inflated
 * size (XP_TOO_LARGE: a bomb). Checksums are verified by the opening pass.
 *
 * Memory: about 54 KiB a checkpoint, at most 256 of them (above 2 GiB they are spaced wider), a
 * megabyte while opening and 260 KiB for each of up to 8 inflaters. */
typedef enum xp_status (*xp_gz_bytes_fn)(void *ctx, struct xp_span bytes, struct xp_error *err);
enum xp_status xp_reader_open_gz(struct xp_reader *inner, uint64_t max_size,
                                 xp_gz_bytes_fn on_bytes, void *ctx, struct xp_reader **out,
                                 struct xp_error *err);

/* The same for an object that may be damaged: XP_OK with a reader of the bytes before the damage
 * and *damage filled in (damage->status is XP_OK for a sound object). The last 64 KiB before the
 * damage may answer XP_CORRUPT when they are read again. */
enum xp_status xp_reader_open_gz_partial(struct xp_reader *inner, uint64_t max_size,
                                         xp_gz_bytes_fn on_bytes, void *ctx, struct xp_reader **out,
                                         struct xp_error *damage, struct xp_error *err);

#endif
