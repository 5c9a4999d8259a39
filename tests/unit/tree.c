#include "tests/unit/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(bool ok, const char *what, const char *path)
{
    if (ok)
        return;
    fprintf(stderr, "tree: cannot %s %s: %s\n", what, path, strerror(errno));
    abort();
}

void tree_init(struct tree *t)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(t->root, sizeof t->root, "%s/xprofd-test-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(t->root) != NULL, "make", t->root);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void tree_fini(struct tree *t)
{
    must(nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "remove", t->root);
}

const char *tree_path(const struct tree *t, const char *key)
{
    static __thread char paths[8][4096];
    static __thread unsigned next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s%s%s", t->root, *key ? "/" : "", key);
    return p;
}

static void make_dirs(const char *path, bool last)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        must(mkdir(copy, 0755) == 0 || errno == EEXIST, "make the folder", copy);
        *p = '/';
    }
    if (last)
        must(mkdir(copy, 0755) == 0 || errno == EEXIST, "make the folder", copy);
}

void tree_bytes(const struct tree *t, const char *key, struct xp_span bytes)
{
    const char *path = tree_path(t, key);
    make_dirs(path, false);
    FILE *f = fopen(path, "wb");
    must(f != NULL, "write", path);
    must(bytes.n == 0 || fwrite(bytes.p, bytes.n, 1, f) == 1, "write", path);
    must(fclose(f) == 0, "write", path);
}

void tree_file(const struct tree *t, const char *key, const char *text)
{
    tree_bytes(t, key, xp_span_str(text));
}

void tree_dir(const struct tree *t, const char *key)
{
    make_dirs(tree_path(t, key), true);
}

void tree_link(const struct tree *t, const char *key, const char *target)
{
    const char *path = tree_path(t, key);
    make_dirs(path, false);
    must(symlink(target, path) == 0, "link", path);
}

void tree_fifo(const struct tree *t, const char *key)
{
    const char *path = tree_path(t, key);
    make_dirs(path, false);
    must(mkfifo(path, 0644) == 0, "make the pipe", path);
}

void tree_remove(const struct tree *t, const char *key)
{
    const char *path = tree_path(t, key);
    must(remove(path) == 0, "remove", path);
}

void tree_set_time(const struct tree *t, const char *key, long long ms)
{
    const char *path = tree_path(t, key);
    struct timespec at = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    struct timespec times[2] = {at, at};
    must(utimensat(AT_FDCWD, path, times, 0) == 0, "set the time of", path);
}
