#include "shard/part_open.h"

#include <stdlib.h>

#include "shard/load.h"

struct part_file {
    struct xp_store *store;
    struct part *part;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    enum xp_status status;
    struct xp_error *err;
};

static void on_done(void *ctx, enum xp_status status, const struct xp_error *err)
{
    struct part_file *f = ctx;
    pthread_mutex_lock(&f->lock);
    f->status = status;
    if (f->err)
        *f->err = *err;
    f->done = true;
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->lock);
}

static enum xp_status load_file(struct part_file *f, const char *name, struct xp_workers *workers,
                                struct xp_budget *budget)
{
    struct xp_object obj;
    XP_TRY(xp_store_stat(f->store, name, &obj, f->err));
    struct load_source src = {.store = f->store,
                              .key = name,
                              .generation = obj.generation,
                              .size = obj.size,
                              .gz = xp_span_ends(xp_span_str(name), XP_SPAN_LIT(".gz")) ||
                                    xp_span_ends(xp_span_str(name), XP_SPAN_LIT(".riegeli"))};
    free(obj.key);
    struct load_hooks hooks = {.ctx = f, .done = on_done};
    struct load *l = load_new(&src, budget, &hooks);
    if (!l)
        return xp_fail(f->err, XP_BUSY, 0, "no memory");
    if (!workers)
        load_run(l);
    else if (load_start(l, workers) != XP_OK)
        return load_free(l), xp_fail(f->err, XP_BUSY, 0, "no worker took the load");
    pthread_mutex_lock(&f->lock);
    while (!f->done)
        pthread_cond_wait(&f->wake, &f->lock);
    pthread_mutex_unlock(&f->lock);
    if (f->status == XP_OK)
        f->part = load_take(l);
    load_free(l);
    return f->status;
}

enum xp_status part_open_file(const char *path, struct xp_workers *workers,
                              struct xp_budget *budget, struct part_file **out,
                              struct xp_error *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct part_file *f = calloc(1, sizeof *f);
    enum xp_status st = XP_BUSY;
    if (!dir || !f)
        goto out;
    f->err = err;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->wake, NULL);
    st = xp_store_open_dir(dir, &f->store, err);
    if (st == XP_OK)
        st = load_file(f, slash ? slash + 1 : path, workers, budget);
    f->err = NULL;
out:
    free(dir);
    *out = st == XP_OK ? f : NULL;
    if (st != XP_OK)
        part_close(f);
    return st;
}

struct part *part_file_part(struct part_file *f)
{
    return f->part;
}

void part_close(struct part_file *f)
{
    if (!f)
        return;
    part_free(f->part);
    xp_store_free(f->store);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->wake);
    free(f);
}
