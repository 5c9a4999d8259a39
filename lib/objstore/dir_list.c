/* Listing a folder: read whole, sorted, cut into pages.
 *
 * readdir gives names in no order and may repeat or miss some when it is stopped and resumed, so
 * a folder is read in one go. The last folder that did not fit into one page is kept, for its
 * next page: 100 pages of a folder of 10^5 entries then cost one reading and not a hundred.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/objstore/dir_int.h"

#define FOLDER_MAX (1u << 20)
#define NAMES_MAX (256u << 20)
#define DEPTH_MAX 32

struct entry {
    uint32_t name; /* offset into names; folders' names end in '/' */
    bool dir, link;
};

struct dir_folder {
    _Atomic int refs;
    char *prefix;
    int fd; /* reads the folder; stats are made from it */
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
    struct entry *entries;
    size_t n, cap;
    char *names;
    size_t names_n, names_cap;
    size_t left_out;
};

void dir_folder_unref(struct dir_folder *f)
{
    if (!f || atomic_fetch_sub(&f->refs, 1) > 1)
        return;
    if (f->fd >= 0)
        close(f->fd);
    free(f->prefix);
    free(f->entries);
    free(f->names);
    free(f);
}

static const char *entry_name(const struct dir_folder *f, size_t i)
{
    return f->names + f->entries[i].name;
}

static bool grow(void **p, size_t *cap, size_t need, size_t item)
{
    if (need <= *cap)
        return true;
    size_t to = *cap ? *cap * 2 : 64;
    while (to < need)
        to *= 2;
    void *q = realloc(*p, to * item);
    if (!q)
        return false;
    *p = q;
    *cap = to;
    return true;
}

static enum xp_status folder_add(struct dir_folder *f, const char *name, bool dir, bool link,
                                 struct xp_error *err)
{
    size_t n = strlen(name);
    if (f->n >= FOLDER_MAX || f->names_n + n + 2 > NAMES_MAX) {
        struct xp_key_text t;
        return xp_fail(err, XP_TOO_LARGE, 0, "the folder \"%s\" holds more than %u entries",
                       xp_key_shorten(f->prefix, &t), FOLDER_MAX);
    }
    if (!grow((void **)&f->entries, &f->cap, f->n + 1, sizeof *f->entries) ||
        !grow((void **)&f->names, &f->names_cap, f->names_n + n + 2, 1))
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    f->entries[f->n++] = (struct entry){(uint32_t)f->names_n, dir, link};
    memcpy(f->names + f->names_n, name, n);
    f->names_n += n;
    if (dir)
        f->names[f->names_n++] = '/';
    f->names[f->names_n++] = '\0';
    return XP_OK;
}

/* A link counts as what it leads to, when that is below the root. */
static enum xp_status add_link(struct dir_folder *f, const struct dir_root *root, const char *name,
                               struct xp_error *err)
{
    struct stat st;
    struct xp_error why;
    int fd;
    char *key = xp_store_join(f->prefix, name);
    if (!key)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = dir_open_path(root, key, &fd, &st, &why);
    free(key);
    if (status != XP_OK) {
        f->left_out += status == XP_DENIED;
        return XP_OK;
    }
    close(fd);
    if (S_ISDIR(st.st_mode))
        return folder_add(f, name, true, true, err);
    return S_ISREG(st.st_mode) ? folder_add(f, name, false, false, err) : XP_OK;
}

static enum xp_status add_dirent(struct dir_folder *f, const struct dir_root *root,
                                 const struct dirent *d, struct xp_error *err)
{
    const char *name = d->d_name;
    unsigned char type = d->d_type;
    struct stat st;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strncmp(name, DIR_TEMP_PREFIX, sizeof DIR_TEMP_PREFIX - 1) == 0)
        return XP_OK;
    if (type == DT_UNKNOWN) {
        if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return XP_OK; /* gone */
        type = IFTODT(st.st_mode);
    }
    if (type == DT_LNK)
        return add_link(f, root, name, err);
    if (type == DT_DIR || type == DT_REG)
        return folder_add(f, name, type == DT_DIR, false, err);
    return XP_OK;
}

static enum xp_status folder_scan(struct dir_folder *f, const struct dir_root *root,
                                  struct xp_error *err)
{
    enum xp_status status = XP_OK;
    int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        status = dir_fail_errno(err, errno, "read the folder", f->prefix);
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == XP_OK) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno)
            status = dir_fail_errno(err, errno, "read the folder", f->prefix);
        if (!e)
            break;
        status = add_dirent(f, root, e, err);
    }
    closedir(d);
    return status;
}

static int compare_entries(const void *a, const void *b, void *names)
{
    const struct entry *x = a, *y = b;
    return strcmp((char *)names + x->name, (char *)names + y->name);
}

/* Reads and sorts a folder. *out is NULL when there is none (or it is no folder). */
static enum xp_status folder_read(const struct dir_root *root, const char *prefix,
                                  struct dir_folder **out, struct xp_error *err)
{
    struct stat st;
    struct xp_error why;
    int fd;
    *out = NULL;
    enum xp_status status = dir_open_path(root, prefix, &fd, &st, &why);
    if (status == XP_NOT_FOUND)
        return XP_OK;
    if (status != XP_OK) {
        if (err)
            *err = why;
        return status;
    }
    struct dir_folder *f = calloc(1, sizeof *f);
    if (f)
        f->prefix = strdup(prefix);
    if (!f || !f->prefix) {
        close(fd);
        free(f);
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    f->refs = 1;
    f->fd = fd;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->mtime = st.st_mtim;
    status = folder_scan(f, root, err);
    if (status != XP_OK) {
        dir_folder_unref(f);
        return status;
    }
    if (f->n)
        qsort_r(f->entries, f->n, sizeof *f->entries, compare_entries, f->names);
    *out = f;
    return XP_OK;
}

/* --- the folder kept for its next page --- */

static struct dir_folder *last_take(struct dir_store *s, const struct dir_root *root,
                                    const char *prefix)
{
    struct stat st;
    struct xp_error why;
    int fd;
    struct dir_folder *f = NULL;
    if (dir_open_path(root, prefix, &fd, &st, &why) != XP_OK)
        return NULL;
    close(fd);
    pthread_mutex_lock(&s->last_lock);
    if (s->last && strcmp(s->last->prefix, prefix) == 0 && s->last->dev == st.st_dev &&
        s->last->ino == st.st_ino && s->last->mtime.tv_sec == st.st_mtim.tv_sec &&
        s->last->mtime.tv_nsec == st.st_mtim.tv_nsec) {
        f = s->last;
        atomic_fetch_add(&f->refs, 1);
    }
    pthread_mutex_unlock(&s->last_lock);
    return f;
}

static void last_put(struct dir_store *s, struct dir_folder *f)
{
    pthread_mutex_lock(&s->last_lock);
    struct dir_folder *old = s->last;
    if (old != f) {
        s->last = f;
        if (f)
            atomic_fetch_add(&f->refs, 1);
    } else {
        old = NULL;
    }
    pthread_mutex_unlock(&s->last_lock);
    dir_folder_unref(old);
}

/* --- pages --- */

/* The first entry whose key, prefix + name, comes after token. */
static size_t first_after(const struct dir_folder *f, const char *token)
{
    const char *rest = token + strlen(f->prefix);
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(entry_name(f, mid), rest) > 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Adds entry i to the page, if it is still there. */
static enum xp_status page_add_entry(const struct dir_folder *f, size_t i,
                                     struct xp_store_page *page, struct xp_error *err)
{
    const struct entry *e = &f->entries[i];
    struct stat st;
    struct xp_object o = {.prefix = e->dir, .link = e->link};
    if (fstatat(f->fd, entry_name(f, i), &st, 0) != 0)
        return XP_OK;
    if (e->dir != (S_ISDIR(st.st_mode) != 0) || (!e->dir && !S_ISREG(st.st_mode)))
        return XP_OK; /* became something else */
    o.mtime_ms = dir_mtime_ms(&st);
    if (!e->dir) {
        o.size = (uint64_t)st.st_size;
        o.generation = dir_generation(&st);
    }
    if (!xp_store_page_add(page, f->prefix, entry_name(f, i), &o))
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    return XP_OK;
}

static enum xp_status page_set_next(struct xp_store_page *page, struct xp_error *err)
{
    page->next = strdup(page->items[page->n - 1].key);
    return page->next ? XP_OK : xp_fail(err, XP_BUSY, 0, "out of memory");
}

static enum xp_status list_level(struct dir_store *s, const struct dir_root *root,
                                 const char *prefix, const char *token, size_t max,
                                 struct xp_store_page *page, struct xp_error *err)
{
    struct dir_folder *f = token ? last_take(s, root, prefix) : NULL;
    enum xp_status status = XP_OK;
    if (!f)
        status = folder_read(root, prefix, &f, err);
    if (!f)
        return status;
    page->left_out = token ? 0 : f->left_out;
    size_t i = token ? first_after(f, token) : 0;
    for (; i < f->n && page->n < max && status == XP_OK; i++)
        status = page_add_entry(f, i, page, err);
    if (status == XP_OK && i < f->n) {
        status = page_set_next(page, err);
        last_put(s, f);
    } else if (token) {
        last_put(s, NULL);
    }
    dir_folder_unref(f);
    return status;
}

/* --- all levels --- */

struct walk {
    struct {
        struct dir_folder *f;
        size_t at;
    } level[DEPTH_MAX];
    int depth;
    const char *token;
};

static enum xp_status walk_enter(struct walk *w, const struct dir_root *root, const char *prefix,
                                 struct xp_error *err)
{
    struct dir_folder *f;
    struct xp_key_text t;
    if (w->depth == DEPTH_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "\"%s\" lies more than %d folders deep",
                       xp_key_shorten(prefix, &t), DEPTH_MAX);
    XP_TRY(folder_read(root, prefix, &f, err));
    if (!f)
        return XP_OK;
    size_t at = 0;
    /* Within the folders on the way to the token, go on after it. A folder whose key is a prefix
     * of the token has been entered before, so step back onto it. */
    if (w->token && strncmp(w->token, prefix, strlen(prefix)) == 0) {
        at = first_after(f, w->token);
        if (at > 0 && f->entries[at - 1].dir) {
            const char *name = entry_name(f, at - 1);
            at -= strncmp(w->token + strlen(prefix), name, strlen(name)) == 0;
        }
    }
    w->level[w->depth].f = f;
    w->level[w->depth++].at = at;
    return XP_OK;
}

static enum xp_status walk_step(struct walk *w, const struct dir_root *root,
                                struct xp_store_page *page, struct xp_error *err)
{
    struct dir_folder *f = w->level[w->depth - 1].f;
    size_t i = w->level[w->depth - 1].at++;
    if (i >= f->n) {
        dir_folder_unref(f);
        w->depth--;
        return XP_OK;
    }
    if (!f->entries[i].dir)
        return page_add_entry(f, i, page, err);
    if (f->entries[i].link)
        return XP_OK;
    char *prefix = xp_store_join(f->prefix, entry_name(f, i));
    if (!prefix)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = walk_enter(w, root, prefix, err);
    free(prefix);
    return status;
}

static enum xp_status list_deep(const struct dir_root *root, const char *prefix, const char *token,
                                size_t max, struct xp_store_page *page, struct xp_error *err)
{
    struct walk w = {.token = token};
    enum xp_status status = walk_enter(&w, root, prefix, err);
    /* One more than max, to know whether there is a next page. */
    while (status == XP_OK && w.depth && page->n <= max)
        status = walk_step(&w, root, page, err);
    while (w.depth)
        dir_folder_unref(w.level[--w.depth].f);
    if (status == XP_OK && page->n > max) {
        free(page->items[--page->n].key);
        status = page_set_next(page, err);
    }
    return status;
}

/* --- a store of one file --- */

static enum xp_status list_only(struct xp_store *base, const char *prefix, const char *token,
                                struct xp_store_page *page, struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    struct xp_object o;
    if (*prefix || (token && strcmp(token, s->only) >= 0))
        return XP_OK;
    enum xp_status status = base->ops->stat(base, s->only, &o, err);
    if (status == XP_NOT_FOUND)
        return XP_OK;
    if (status != XP_OK)
        return status;
    bool added = xp_store_page_add(page, "", s->only, &o);
    free(o.key);
    return added ? XP_OK : xp_fail(err, XP_BUSY, 0, "out of memory");
}

enum xp_status dir_list(struct xp_store *base, const char *prefix, bool delimiter,
                        const char *token, size_t max, struct xp_store_page *page,
                        struct xp_error *err)
{
    struct dir_store *s = (struct dir_store *)base;
    struct dir_root root;
    if (s->only)
        return list_only(base, prefix, token, page, err);
    XP_TRY(dir_root_open(s, &root, err));
    enum xp_status status = delimiter ? list_level(s, &root, prefix, token, max, page, err)
                                      : list_deep(&root, prefix, token, max, page, err);
    dir_root_close(&root);
    return status;
}
