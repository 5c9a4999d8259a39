/* lib/objstore/objstore.h - a place that holds objects by key: list, stat, ranged read, put.
 *
 * One vtable, several implementations: a local directory, Cloud Storage, S3. Keys are
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

#include "lib/base/buf.h"
#include "lib/base/span.h"
#include "lib/base/status.h"

struct xp_object {
    char *key; /* whole key, NUL-terminated (keys hold no NUL) */
    uint64_t size;
    uint64_t generation;
    int64_t mtime_ms; /* of a folder: when an entry was last added or removed; 0: unknown */
    bool prefix;      /* a common prefix ("folder"), key ends in '/' ; size and generation are 0 */
    bool link;        /* a folder reached through a symbolic link */
    bool gzip;        /* stored compressed, though its name need not say so */
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

/* Either of the two, whatever path is, or a bucket with what the environment says: for a command
 * line. */
enum xp_status xp_store_open_path(const char *path, struct xp_store **out, struct xp_error *err);

/* --- buckets ---
 *
 * gs://BUCKET[/PREFIX] is Cloud Storage (JSON API), s3://BUCKET[/PREFIX] any store with S3's.
 * Opening asks nothing of the store. Calls are repeated while what failed may pass (408, 429, 5xx,
 * no or a broken connection), for 20 s at most, and a read goes on inside its range; then XP_IO or
 * XP_TIMEOUT. XP_DENIED names the right that is missing.
 *
 * Credentials, gs: GOOGLE_APPLICATION_CREDENTIALS (a service account's key, workload identity
 * federation, a user's), else gcloud's own file, else the metadata server; none at
 * STORAGE_EMULATOR_HOST. s3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
 * AWS_REGION. They are sent over https or to this machine only.
 *
 * Generation of an S3 object is a hash of its ETag. Folders have no time (mtime_ms 0). Objects
 * whose names are no keys, such as "a//b" or the "folder/" that some tools make, are not listed.
 *
 * Readers fetch ahead in pieces of up to 4 MiB, several at a time, and keep what is asked for
 * again, within the store's memory. */
struct xp_bucket_options {
    const char *gcs_endpoint; /* NULL: STORAGE_EMULATOR_HOST or the public one */
    const char *s3_endpoint;  /* NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or AWS */
    bool anonymous;           /* no credentials: for public buckets */
    bool writable;
    size_t memory; /* for pieces of objects; 0: 64 MiB */
};

bool xp_store_is_bucket(const char *path);
/* What NULL options mean, and a bucket in xp_store_open_path: before any is opened. Strings stay
 * the caller's. */
void xp_store_set_bucket_defaults(const struct xp_bucket_options *o);
/* o may be NULL. XP_BAD_REQUEST with a sentence when an address or the credentials are malformed.
 */
enum xp_status xp_store_open_bucket(const char *url, const struct xp_bucket_options *o,
                                    struct xp_store **out, struct xp_error *err);

void xp_store_free(struct xp_store *s); /* NULL is fine */

/* Of calls of this thread from now on, and of those made for it several at a time: who has another
 * answer to fall back upon waits no longer than that, and for a bucket whose calls fail once only.
 * 0: as long as it takes. */
void xp_store_set_patience(uint32_t ms);

/* True when each call is a round trip to another machine: lists are then best made several at a
 * time. */
bool xp_store_is_remote(const struct xp_store *s);

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

/* The first page of each folder, with delimiter and 1000 items at most; a remote store is asked for
 * several at a time. pages[i] is to be finished when errs[i].status is XP_OK. */
void xp_store_list_each(struct xp_store *s, const char *const *prefixes, size_t n,
                        struct xp_store_page *pages, struct xp_error *errs);

/* Small objects as a listing told them, each whole; a remote store is asked for several at a time.
 * bodies[i] is valid, and to be finished, whatever errs[i].status is; one of more than max bytes is
 * XP_TOO_LARGE. */
void xp_store_read_each(struct xp_store *s, const struct xp_object *objects, size_t n, size_t max,
                        struct xp_buf *bodies, struct xp_error *errs);

enum xp_status xp_store_stat(struct xp_store *s, const char *key, struct xp_object *out,
                             struct xp_error *err); /* out->key is malloc'd: free() */

/* generation 0: whatever is there now. */
enum xp_status xp_store_open(struct xp_store *s, const char *key, uint64_t generation,
                             struct xp_reader **out, struct xp_error *err);

/* The same when a listing told size and generation: a bucket is then not asked; that the object is
 * another by now is XP_STALE when it is read. */
enum xp_status xp_store_open_sized(struct xp_store *s, const char *key, uint64_t generation,
                                   uint64_t size, struct xp_reader **out, struct xp_error *err);

/* Writes only if the object's generation is if_generation (0: only if there is none), else
 * XP_STALE. A store opened read-only answers XP_DENIED. */
enum xp_status xp_store_put_if(struct xp_store *s, const char *key, struct xp_span body,
                               uint64_t if_generation, uint64_t *generation, struct xp_error *err);

/* --- writers: a new object of a directory, piece by piece ---
 *
 * The bytes go to a file without a name in the object's folder (which is made), or, where the file
 * system has no such files, to one that no list shows; the object appears whole, or not at all,
 * and one that is there is never replaced. A writer has one thread at a time. */
struct xp_writer;

/* XP_DENIED for a store that is read-only or no directory. */
enum xp_status xp_writer_open(struct xp_store *s, const char *key, struct xp_writer **out,
                              struct xp_error *err);
enum xp_status xp_writer_add(struct xp_writer *w, struct xp_span bytes, struct xp_error *err);
/* To the disk, and to its name; XP_STALE when there is an object by now. The writer is gone, and
 * after an error its bytes, too. */
enum xp_status xp_writer_finish(struct xp_writer *w, struct xp_error *err);
void xp_writer_drop(struct xp_writer *w); /* NULL is fine */
/* Removes the folder of key if it is empty: of writers that were dropped, and when none is at work
 * in it any more. */
void xp_writer_clear(struct xp_store *s, const char *key);

/* --- readers: the bytes of one generation, at any offset --- */

uint64_t xp_reader_size(const struct xp_reader *r);
uint64_t xp_reader_generation(const struct xp_reader *r);

/* Reads up to n bytes at off; *got < n only at the end of the object. */
enum xp_status xp_reader_read(struct xp_reader *r, uint64_t off, void *buf, size_t n, size_t *got,
                              struct xp_error *err);
void xp_reader_close(struct xp_reader *r); /* NULL is fine */

/* Bytes [from, to) of an object. */
struct xp_range {
    uint64_t from, to;
};

/* Says that these ranges will be read once each, about in this order, each from its start: they are
 * fetched ahead so. Copied. A hint; at most one a reader. */
void xp_reader_plan(struct xp_reader *r, const struct xp_range *ranges, size_t n);

/* True when a read of [off, off + n) need not wait for another machine, or would fail. Else they
 * are being fetched, and wake(ctx) is called once, from another thread, possibly before this
 * returns: then ask again. n is at most 1 MiB. Before the reader is closed a wake that is still
 * due must have come: xp_reader_cancel makes it. */
bool xp_reader_ready(struct xp_reader *r, uint64_t off, size_t n, void (*wake)(void *ctx),
                     void *ctx);

/* Reads that wait and all that come end with XP_CANCELLED. Any thread, while the reader is open. */
void xp_reader_cancel(struct xp_reader *r);

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

/* --- records: a reader of what a Riegeli file holds (lib/objstore/riegeli.h) ---
 *
 * Opening unpacks all records into a file without a name below $TMPDIR (or /tmp), as Brotli has no
 * place to begin but the first and readers ask for bytes anywhere and again later. The file is gone
 * with the reader, at the latest with the process. `join` may then change what records that stand
 * behind each other say, and `bytes` gets the result piece by piece. file is owned by the new
 * reader from success on.
 *
 * Errors     XP_BUSY when the disk would have less than a twentieth left; XP_TOO_LARGE above
 *            max_size; XP_CORRUPT when no record can be read; what a call returned. *damage tells
 * of what was left out, with its offset in the file (status XP_OK: nothing). */
struct xp_records_out {
    void *ctx;
    /* Behind what is there. */
    enum xp_status (*add)(void *ctx, struct xp_span bytes, struct xp_error *err);
    /* Over what is there. */
    enum xp_status (*set)(void *ctx, uint64_t at, struct xp_span bytes, struct xp_error *err);
};

struct xp_records_calls {
    void *ctx;
    /* After some more is unpacked, `done` bytes in all; another status than XP_OK ends it. */
    enum xp_status (*progress)(void *ctx, uint64_t done, struct xp_error *err);
    /* all stays readable, and what is set may show in it. */
    enum xp_status (*join)(void *ctx, struct xp_span all, const struct xp_records_out *out,
                           struct xp_error *err);
    xp_gz_bytes_fn bytes;
};

bool xp_records_begin(struct xp_span head); /* XP_RECORDS_HEAD bytes tell */
#define XP_RECORDS_HEAD 64
enum xp_status xp_reader_open_records(struct xp_reader *file, uint64_t max_size,
                                      const struct xp_records_calls *calls, struct xp_reader **out,
                                      struct xp_error *damage, struct xp_error *err);

#endif
