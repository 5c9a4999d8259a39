#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/run/ticker.h"
#include "server/audit.h"
#include "server/gate.h"
#include "server/projects_int.h"
#include "server/runs.h"

#define LOOK_FILE_MS 1000
#define LOOK_BUCKET_MS 10000
#define LOOK_AGAIN_NS UINT64_C(250000000) /* after a root that is none */
#define LOCATION_MAX 65536

/* The roots of one or more projects in turn, and what was listed of them. */
struct shelf {
    _Atomic int refs;
    struct xp_store **stores;
    size_t n;
    struct run_index *runs;
};

struct box {
    struct project pub; /* first */
    _Atomic int refs;
    struct shelf *shelf;
    struct member_list lists[LISTS];
    bool everyone; /* no lists: whoever comes in may see and edit */
};

struct table {
    const struct project **v; /* by name */
    size_t n;
};

struct opened {
    char *path;
    struct xp_store *store;
};

struct projects {
    char *path, *first;
    struct audit *audit;
    struct xp_store *bucket; /* of the table, when it is an object */
    char *key;
    pthread_mutex_t lock; /* table */
    struct table table;
    pthread_mutex_t reading; /* the rest */
    struct opened *opened;
    size_t n_opened;
    uint64_t generation, looked_ns;
    char last[sizeof((struct xp_error *)0)->text]; /* the complaint that was logged last */
    struct xp_ticker *looks;
};

static void *must(void *p)
{
    XP_ASSERT(p);
    return p;
}

/* --- references --- */

static void shelf_unref(struct shelf *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    run_index_free(s->runs);
    free(s->stores);
    free(s);
}

const struct project *project_ref(const struct project *p)
{
    atomic_fetch_add(&((struct box *)p)->refs, 1);
    return p;
}

void project_unref(const struct project *p)
{
    struct box *b = (struct box *)p;
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    shelf_unref(b->shelf);
    for (int l = 0; l < LISTS; l++) {
        for (size_t i = 0; i < b->lists[l].n; i++)
            free(b->lists[l].v[i].name);
        free(b->lists[l].v);
    }
    for (size_t i = 0; i < b->pub.n_roots; i++)
        free(b->pub.roots[i]);
    free(b->pub.roots);
    free(b->pub.location);
    free(b->pub.name);
    free(b);
}

static void drop_table(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        project_unref(t->v[i]);
    free(t->v);
    *t = (struct table){0};
}

/* --- rows into projects --- */

/* A root's store is opened once in the life of the process. */
static enum xp_status open_root(struct projects *ps, const char *path, struct xp_store **out,
                                struct xp_error *err)
{
    for (size_t i = 0; i < ps->n_opened; i++)
        if (!strcmp(ps->opened[i].path, path)) {
            *out = ps->opened[i].store;
            return XP_OK;
        }
    if (ps->n_opened == ROOTS_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "more than %d roots were named since the start",
                       ROOTS_MAX);
    XP_TRY(xp_store_open_path(path, out, err));
    ps->opened = must(realloc(ps->opened, (ps->n_opened + 1) * sizeof *ps->opened));
    ps->opened[ps->n_opened++] = (struct opened){must(strdup(path)), *out};
    return XP_OK;
}

static struct shelf *shelf_like(const struct table *old, struct xp_store *const *stores, size_t n)
{
    for (size_t i = 0; i < old->n; i++) {
        struct shelf *s = ((struct box *)old->v[i])->shelf;
        if (s->n == n && !memcmp(s->stores, stores, n * sizeof *stores)) {
            atomic_fetch_add(&s->refs, 1);
            return s;
        }
    }
    return NULL;
}

static enum xp_status shelf_open(struct projects *ps, const struct table_row *row,
                                 struct shelf **out, struct xp_error *err)
{
    struct xp_store **stores = must(calloc(row->n_roots, sizeof(struct xp_store *)));
    for (size_t i = 0; i < row->n_roots; i++) {
        enum xp_status status = open_root(ps, row->roots[i], &stores[i], err);
        if (status != XP_OK) {
            free(stores);
            return status;
        }
    }
    *out = shelf_like(&ps->table, stores, row->n_roots);
    if (*out) {
        free(stores);
        return XP_OK;
    }
    struct shelf *s = must(calloc(1, sizeof *s));
    *s = (struct shelf){.stores = stores, .n = row->n_roots};
    atomic_init(&s->refs, 1);
    s->runs = must(run_index_new(s->stores, s->n));
    *out = s;
    return XP_OK;
}

static char *location_of(const struct table_row *row)
{
    struct xp_buf b;
    size_t n;
    xp_buf_init(&b, LOCATION_MAX);
    for (size_t i = 0; i < row->n_roots; i++)
        xp_buf_fmt(&b, "%s%s", i ? ", " : "", row->roots[i]);
    b.failed = false;
    xp_buf_byte(&b, 0);
    return must(xp_buf_take(&b, &n));
}

/* Moves what the row holds. */
static enum xp_status box_new(struct projects *ps, struct table_row *row, bool everyone,
                              const struct project **out, struct xp_error *err)
{
    struct shelf *shelf;
    struct xp_error why = {0};

    if (shelf_open(ps, row, &shelf, &why) != XP_OK)
        return xp_fail(err, why.status, 0, "%s%s%s%.180s", everyone ? "--logdir" : "project \"",
                       everyone ? "" : row->name, everyone ? ": " : "\": ", why.text);
    struct box *b = must(calloc(1, sizeof *b));
    atomic_init(&b->refs, 1);
    b->shelf = shelf;
    b->everyone = everyone;
    b->pub = (struct project){.name = row->name,
                              .location = location_of(row),
                              .roots = row->roots,
                              .stores = shelf->stores,
                              .n_roots = row->n_roots,
                              .runs = shelf->runs,
                              .links_anyone = row->links_anyone,
                              .links_max_days = row->links_max_days};
    memcpy(b->lists, row->lists, sizeof b->lists);
    *row = (struct table_row){0};
    *out = &b->pub;
    return XP_OK;
}

static enum xp_status open_rows(struct projects *ps, struct table_rows *rows, bool everyone,
                                struct table *t, struct xp_error *err)
{
    *t = (struct table){must(calloc(rows->n + 1, sizeof(struct project *))), 0};
    for (; t->n < rows->n; t->n++)
        XP_TRY(box_new(ps, &rows->v[t->n], everyone, &t->v[t->n], err));
    return XP_OK;
}

/* --- reading the table --- */

static enum xp_status read_fd(int fd, struct xp_buf *text, struct xp_error *err)
{
    for (;;) {
        uint8_t *room = xp_buf_room(text, 65536);
        ssize_t n = room ? read(fd, room, 65536) : 0;
        if (!room)
            return xp_fail(err, XP_TOO_LARGE, 0, "the table is larger than %zu bytes",
                           PROJECTS_TABLE_MAX);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return xp_fail(err, XP_IO, 0, "%s", strerror(errno));
        if (n == 0)
            return XP_OK;
        text->n += (size_t)n;
    }
}

/* The bytes, and a number that changes with them; nothing is read when it is ps->generation. */
static enum xp_status read_file(struct projects *ps, struct xp_buf *text, uint64_t *generation,
                                struct xp_error *err)
{
    struct stat st;
    int fd = open(ps->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return xp_fail(err, XP_IO, 0, "%s", strerror(errno));
    enum xp_status status = XP_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        status = xp_fail(err, XP_IO, 0, "it is no regular file");
    } else {
        uint64_t facts[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                            (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
        *generation = xp_fnv(XP_FNV_INIT, xp_span_of(facts, sizeof facts));
        if (*generation != ps->generation)
            status = read_fd(fd, text, err);
    }
    close(fd);
    return status;
}

static enum xp_status read_object(struct projects *ps, struct xp_buf *text, uint64_t *generation,
                                  struct xp_error *err)
{
    struct xp_object o = {0};
    struct xp_reader *r = NULL;
    size_t got = 0;

    XP_TRY(xp_store_stat(ps->bucket, ps->key, &o, err));
    free(o.key);
    *generation = o.generation;
    if (o.generation == ps->generation)
        return XP_OK;
    if (o.size > PROJECTS_TABLE_MAX)
        return xp_fail(err, XP_TOO_LARGE, 0, "the table is larger than %zu bytes",
                       PROJECTS_TABLE_MAX);
    XP_TRY(xp_store_open(ps->bucket, ps->key, o.generation, &r, err));
    uint8_t *room = xp_buf_room(text, o.size ? o.size : 1);
    enum xp_status status = room ? xp_reader_read(r, 0, room, o.size, &got, err) : XP_TOO_LARGE;
    text->n += got;
    xp_reader_close(r);
    if (status == XP_OK && got != o.size)
        status = xp_fail(err, XP_IO, 0, "the object broke off");
    return status;
}

static enum xp_status read_table(struct projects *ps, struct table *t, bool *changed,
                                 struct xp_error *err)
{
    struct table_rows rows = {0};
    struct xp_buf text;
    uint64_t generation = 0;

    xp_buf_init(&text, PROJECTS_TABLE_MAX + 65536);
    enum xp_status status = ps->bucket ? read_object(ps, &text, &generation, err)
                                       : read_file(ps, &text, &generation, err);
    *changed = status == XP_OK && generation != ps->generation;
    if (*changed && text.n > PROJECTS_TABLE_MAX)
        status =
            xp_fail(err, XP_TOO_LARGE, 0, "the table is larger than %zu bytes", PROJECTS_TABLE_MAX);
    if (*changed && status == XP_OK)
        status = table_parse(xp_buf_all(&text), &rows, err);
    if (*changed && status == XP_OK)
        status = open_rows(ps, &rows, false, t, err);
    /* A table that is wrong is not read again until it is another; what failed by itself, a root
     * that was away, may be good the next time. */
    if (*changed && (status == XP_OK || status == XP_BAD_REQUEST))
        ps->generation = generation;
    table_fini(&rows);
    xp_buf_fini(&text);
    if (status != XP_OK)
        drop_table(t);
    return status;
}

/* --- reading it again --- */

static void complain(struct projects *ps, const struct xp_error *err)
{
    if (strcmp(ps->last, err->text) != 0)
        xp_log(XP_LOG_ERROR, "projects", "%s: %s; the last good table stays", ps->path, err->text);
    snprintf(ps->last, sizeof ps->last, "%s", err->text);
}

bool projects_look(struct projects *ps)
{
    struct xp_error err = {0};
    struct table fresh = {0}, old;
    bool changed = false;

    if (!ps->path)
        return false;
    pthread_mutex_lock(&ps->reading);
    enum xp_status status = read_table(ps, &fresh, &changed, &err);
    ps->looked_ns = xp_now_ns();
    if (status != XP_OK)
        complain(ps, &err);
    if (status != XP_OK || !changed) {
        pthread_mutex_unlock(&ps->reading);
        return false;
    }
    ps->last[0] = 0;
    pthread_mutex_lock(&ps->lock);
    old = ps->table;
    ps->table = fresh;
    pthread_mutex_unlock(&ps->lock);
    xp_log(XP_LOG_INFO, "projects", "%s: %zu projects", ps->path, fresh.n);
    audit(ps->audit,
          &(struct audit_event){
              .what = "projects_changed", .who = "table", .outcome = "ok", .detail = ps->path});
    pthread_mutex_unlock(&ps->reading);
    drop_table(&old);
    return true;
}

static void look_again(void *ctx)
{
    projects_look(ctx);
}

/* --- life --- */

/* gs://bucket/a/projects.json: a store of gs://bucket/a, and the key projects.json. */
static enum xp_status open_table_bucket(struct projects *ps, struct xp_error *err)
{
    const char *slash = strrchr(ps->path, '/');
    const char *host = strstr(ps->path, "://");
    if (!slash || !host || slash < host + 3 || !slash[1])
        return xp_fail(err, XP_BAD_REQUEST, 0, "%s names no object", ps->path);
    char *url = must(strndup(ps->path, (size_t)(slash - ps->path)));
    ps->key = must(strdup(slash + 1));
    enum xp_status status = xp_store_open_path(url, &ps->bucket, err);
    free(url);
    return status;
}

static enum xp_status first_table(struct projects *ps, const struct projects_config *config,
                                  struct xp_error *err)
{
    struct xp_error why = {0};
    bool changed;

    if (ps->path) {
        if (xp_store_is_bucket(ps->path))
            XP_TRY(open_table_bucket(ps, err));
        if (read_table(ps, &ps->table, &changed, &why) != XP_OK)
            return xp_fail(err, why.status, 0, "--projects %.80s: %s", ps->path, why.text);
        return XP_OK;
    }
    struct table_row row = {.name = must(strdup("local")), .links_max_days = LINK_DAYS_MAX};
    struct table_rows rows = {&row, 1};
    while (config->roots[row.n_roots])
        row.n_roots++;
    row.roots = must(calloc(row.n_roots + 1, sizeof(char *)));
    for (size_t i = 0; i < row.n_roots; i++)
        row.roots[i] = must(strdup(config->roots[i]));
    enum xp_status status = open_rows(ps, &rows, true, &ps->table, err);
    for (size_t i = 0; i < row.n_roots; i++) /* of a row that did not move */
        free(row.roots[i]);
    free(row.roots);
    free(row.name);
    return status;
}

enum xp_status projects_new(const struct projects_config *config, struct projects **out,
                            struct xp_error *err)
{
    struct projects *ps = must(calloc(1, sizeof *ps));

    ps->path = config->table ? must(strdup(config->table)) : NULL;
    ps->first = config->first ? must(strdup(config->first)) : NULL;
    ps->audit = config->audit;
    pthread_mutex_init(&ps->lock, NULL);
    pthread_mutex_init(&ps->reading, NULL);
    enum xp_status status = first_table(ps, config, err);
    if (status != XP_OK) {
        projects_free(ps);
        return status;
    }
    if (ps->path)
        ps->looks = xp_ticker_new(ps->bucket ? LOOK_BUCKET_MS : LOOK_FILE_MS, look_again, ps);
    *out = ps;
    return XP_OK;
}

void projects_free(struct projects *ps)
{
    if (!ps)
        return;
    xp_ticker_free(ps->looks);
    drop_table(&ps->table);
    for (size_t i = 0; i < ps->n_opened; i++) {
        xp_store_free(ps->opened[i].store);
        free(ps->opened[i].path);
    }
    free(ps->opened);
    xp_store_free(ps->bucket);
    pthread_mutex_destroy(&ps->reading);
    pthread_mutex_destroy(&ps->lock);
    free(ps->key);
    free(ps->first);
    free(ps->path);
    free(ps);
}

/* --- looking up --- */

/* Under the lock; not referenced. */
static const struct project *find_locked(const struct projects *ps, struct xp_span name)
{
    size_t lo = 0, hi = ps->table.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = xp_span_cmp(name, xp_span_str(ps->table.v[mid]->name));
        if (c == 0)
            return ps->table.v[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct project *projects_find(struct projects *ps, struct xp_span name)
{
    pthread_mutex_lock(&ps->lock);
    const struct project *p = find_locked(ps, name);
    if (p)
        project_ref(p);
    pthread_mutex_unlock(&ps->lock);
    return p;
}

const struct project *projects_default(struct projects *ps)
{
    pthread_mutex_lock(&ps->lock);
    const struct project *p = find_locked(ps, xp_span_str(ps->first ? ps->first : "local"));
    if (!p && !ps->first && ps->table.n == 1)
        p = ps->table.v[0];
    if (p)
        project_ref(p);
    pthread_mutex_unlock(&ps->lock);
    return p;
}

const struct project **projects_list(struct projects *ps, const struct who *who, size_t *n)
{
    *n = 0;
    pthread_mutex_lock(&ps->lock);
    const struct project **v = must(calloc(ps->table.n + 1, sizeof(struct project *)));
    for (size_t i = 0; i < ps->table.n; i++)
        if (project_right(ps->table.v[i], who) >= RIGHT_VIEW)
            v[(*n)++] = project_ref(ps->table.v[i]);
    pthread_mutex_unlock(&ps->lock);
    return v;
}

static struct xp_store *find_store(struct projects *ps, const char *name)
{
    struct xp_store *found = NULL;
    pthread_mutex_lock(&ps->lock);
    for (size_t i = 0; i < ps->table.n && !found; i++)
        for (size_t k = 0; k < ps->table.v[i]->n_roots && !found; k++)
            if (!strcmp(xp_store_name(ps->table.v[i]->stores[k]), name))
                found = ps->table.v[i]->stores[k];
    pthread_mutex_unlock(&ps->lock);
    return found;
}

struct xp_store *projects_store_known(struct projects *ps, const char *name)
{
    return find_store(ps, name);
}

struct xp_store *projects_store(struct projects *ps, const char *name)
{
    struct xp_store *s = find_store(ps, name);
    if (s || !ps->path)
        return s;
    pthread_mutex_lock(&ps->reading);
    bool look = xp_now_ns() - ps->looked_ns > LOOK_AGAIN_NS;
    pthread_mutex_unlock(&ps->reading);
    if (look)
        projects_look(ps);
    return find_store(ps, name);
}

/* --- rights --- */

enum right project_right(const struct project *p, const struct who *who)
{
    const struct box *b = (const struct box *)p;
    if (who->kind == WHO_LOCAL)
        return RIGHT_ADMIN;
    if (who->kind != WHO_USER)
        return RIGHT_NONE;
    if (b->everyone)
        return RIGHT_EDIT;
    if (member_list_has(&b->lists[LIST_ADMINS], who))
        return RIGHT_ADMIN;
    if (member_list_has(&b->lists[LIST_EDITORS], who))
        return RIGHT_EDIT;
    return member_list_has(&b->lists[LIST_VIEWERS], who) ? RIGHT_VIEW : RIGHT_NONE;
}
