/* lib/objstore/dir_int.h - what the files of the directory store share.
 *
 * How a key is kept below the root: the key is opened with O_PATH, links and all, then the
 * kernel is asked where the descriptor lies (/proc/self/fd) and that is compared with where the
 * root lies. What was checked is what is used: nobody can swap a link in between.
 */
#ifndef XP_OBJSTORE_DIR_INT_H
#define XP_OBJSTORE_DIR_INT_H

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>

#include "lib/objstore/objstore_int.h"

/* Files that are being written; never listed. */
#define DIR_TEMP_PREFIX ".xprofd-put-"
#define DIR_TEMP_MAX (sizeof DIR_TEMP_PREFIX + 32)

struct dir_folder;

struct dir_store {
    struct xp_store base;
    char *path; /* absolute, links not resolved */
    char *only; /* a store of one file: its name, path is its folder; else NULL */
    bool writable;
    pthread_mutex_t put_lock;
    pthread_mutex_t last_lock;
    struct dir_folder *last; /* the folder a page was cut from, for its next page */
};

/* The root as it is now. */
struct dir_root {
    int fd; /* O_PATH */
    size_t n;
    char real[PATH_MAX];
};

enum xp_status dir_root_open(const struct dir_store *s, struct dir_root *root,
                             struct xp_error *err);
void dir_root_close(struct dir_root *root);

/* Opens key ("" is the root itself) with O_PATH. XP_DENIED when it leads outside. */
enum xp_status dir_open_path(const struct dir_root *root, const char *key, int *fd, struct stat *st,
                             struct xp_error *err);

uint64_t dir_generation(const struct stat *st);
int64_t dir_mtime_ms(const struct stat *st);

/* Opens the folder of key, making what is missing. */
enum xp_status dir_open_parent(const struct dir_root *root, char *key, int *fd,
                               struct xp_error *err);
/* Gives temp, a file of parent, its name; -1 with errno EEXIST when is_new and there is one. */
int dir_put_name(int parent, const char *temp, const char *name, bool is_new);
/* A name for a file that is being written, unlike any other of this process. */
void dir_temp_name(char temp[DIR_TEMP_MAX]);

bool dir_is(const struct xp_store *s);

/* Fills err with what the system said about key. */
enum xp_status dir_fail_errno(struct xp_error *err, int e, const char *what, const char *key);

enum xp_status dir_list(struct xp_store *s, const char *prefix, bool delimiter, const char *token,
                        size_t max, struct xp_store_page *page, struct xp_error *err);
void dir_folder_unref(struct dir_folder *f); /* NULL is fine */

enum xp_status dir_put_if(struct xp_store *s, const char *key, struct xp_span body,
                          uint64_t if_generation, uint64_t *generation, struct xp_error *err);

#endif
