/* Walking the stores, nearest folders first.
 *
 * Folders below plugins/profile are runs whatever is in them: when their name tells the time,
 * they are not looked into here, so that 5,000 of them cost one listing of their parent. Folders
 * elsewhere must be read to know what they are.
 */
#include <stdio.h>

#include "lib/base/clock.h"
#include "server/runs_int.h"

#define PLUGIN_DIR "plugins/profile/"
#define RENAME_ROUNDS 4

struct todo {
    char *prefix;
    uint32_t store_no;
    int depth;
    int64_t mtime_ms;
    bool link;
    struct run_folder *read; /* what is in it, when it was read already */
};

struct scan {
    struct run_index *ri;
    const struct run_listing *old;
    struct run_listing *l;
    struct todo *todo;
    size_t head, n;
    size_t folders; /* read */
    size_t looks;   /* into runs of buckets */
    int64_t wall_ms;
};

/* --- entries --- */

bool run_entry_settled(const struct run_entry *e)
{
    if (!e->box)
        return false;
    if (xp_store_is_remote(e->store))
        return e->box->newest_ms &&
               e->filled_wall_ms - e->box->newest_ms > RUNS_BUCKET_SETTLED_MS &&
               xp_now_ns() - e->filled_ns < RUNS_BUCKET_SETTLED_NS;
    if (!e->dir_mtime_ms)
        return false;
    int64_t last = e->box->newest_ms > e->dir_mtime_ms ? e->box->newest_ms : e->dir_mtime_ms;
    return e->filled_wall_ms - last > RUNS_SETTLED_MS;
}

/* A bucket's folder does not say that it changed: what was seen a few minutes ago will do to find
 * runs and their order; it is looked at again when a page shows it. */
static bool will_do(const struct run_entry *e)
{
    if (run_entry_settled(e))
        return true;
    return xp_store_is_remote(e->store) && e->box && e->box->newest_ms &&
           xp_now_ns() - e->filled_ns < RUNS_BUCKET_SETTLED_NS;
}

/* Takes over what the last listing knows of the folder, if it has not changed since. */
static void entry_reuse(struct scan *sc, struct run_entry *e)
{
    const struct run_entry *old =
        sc->old ? run_listing_by_prefix(sc->old, e->store_no, e->prefix) : NULL;
    if (!old || old->plugin != e->plugin || old->dir_mtime_ms != e->dir_mtime_ms)
        return;
    pthread_mutex_lock(&sc->ri->lock);
    if (will_do(old)) {
        e->box = old->box;
        e->filled_ns = old->filled_ns;
        e->filled_wall_ms = old->filled_wall_ms;
        run_ref(&e->box->run);
    }
    pthread_mutex_unlock(&sc->ri->lock);
}

static void entry_fill(struct scan *sc, struct run_entry *e, struct run_folder *f)
{
    e->box = run_box_new(e->store, e->prefix, e->name, f);
    e->filled_ns = xp_now_ns();
    e->filled_wall_ms = sc->wall_ms;
}

static void entry_add(struct scan *sc, struct run_entry *e)
{
    struct run_listing *l = sc->l;
    if (e->box)
        e->captured_ms = e->box->run.captured_ms;
    else if (!e->captured_ms)
        e->captured_ms = e->dir_mtime_ms; /* not looked into: the limit of folders is reached */
    if (l->n == RUNS_MAX) {
        l->cut_folders = true;
        run_unref(e->box ? &e->box->run : NULL);
        free(e->name);
        free(e->prefix);
        return;
    }
    RUNS_ROOM(l->entries, l->n);
    l->entries[l->n++] = *e;
}

static bool may_read(struct scan *sc)
{
    if (sc->folders < RUNS_FOLDERS_MAX) {
        sc->folders++;
        return true;
    }
    sc->l->cut_folders = true;
    return false;
}

/* prefix + name + '/' */
static char *sub_prefix(const char *prefix, const char *name)
{
    size_t n = strlen(prefix) + strlen(name) + 2;
    char *p = must(malloc(n));
    snprintf(p, n, "%s%s/", prefix, name);
    return p;
}

static bool is_plugin_dir(const char *prefix)
{
    size_t n = strlen(prefix), np = sizeof PLUGIN_DIR - 1;
    return n >= np && strcmp(prefix + n - np, PLUGIN_DIR) == 0 &&
           (n == np || prefix[n - np - 1] == '/');
}

static struct run_entry plugin_entry(struct scan *sc, const struct todo *t,
                                     const struct run_sub *sub)
{
    size_t nexp = strlen(t->prefix) - (sizeof PLUGIN_DIR - 1);
    size_t n = nexp + strlen(sub->name) + 1;
    struct run_entry e = {
        .name = must(malloc(n)),
        .prefix = sub_prefix(t->prefix, sub->name),
        .store = sc->ri->stores[t->store_no],
        .store_no = t->store_no,
        .plugin = true,
        .hidden = sub->name[0] == '.',
        .dir_mtime_ms = sub->mtime_ms,
    };
    snprintf(e.name, n, "%.*s%s", (int)nexp, t->prefix, sub->name);
    entry_reuse(sc, &e);
    return e;
}

static bool must_look(struct scan *sc, struct run_entry *e, const struct run_sub *sub)
{
    if (e->box || run_time_from_name(sub->name, &e->captured_ms))
        return false;
    if (xp_store_is_remote(e->store) && sc->looks >= RUNS_BUCKET_LOOKS_MAX)
        return false;
    sc->looks++;
    return may_read(sc);
}

/* Looks into n entries, as many at once as the store bears. */
static void look_into(struct scan *sc, struct run_entry *const *e, size_t n)
{
    const char *prefixes[RUNS_AT_ONCE];
    struct run_folder f[RUNS_AT_ONCE];
    for (size_t i = 0; i < n; i++)
        prefixes[i] = e[i]->prefix;
    if (n)
        run_folders_read(e[0]->store, prefixes, n, f);
    for (size_t i = 0; i < n; i++) {
        entry_fill(sc, e[i], &f[i]);
        run_folder_fini(&f[i]);
    }
}

static void add_plugin_runs(struct scan *sc, const struct todo *t, const struct run_sub *subs,
                            size_t n)
{
    struct run_entry e[RUNS_AT_ONCE], *look[RUNS_AT_ONCE];
    size_t n_look = 0;
    for (size_t i = 0; i < n; i++) {
        e[i] = plugin_entry(sc, t, &subs[i]);
        if (must_look(sc, &e[i], &subs[i]))
            look[n_look++] = &e[i];
    }
    look_into(sc, look, n_look);
    for (size_t i = 0; i < n; i++)
        entry_add(sc, &e[i]);
}

/* --- folders --- */

static void push(struct scan *sc, const struct todo *t, const struct run_sub *sub)
{
    if (sub->name[0] == '.')
        return;
    if (t->depth == RUNS_DEPTH_MAX) {
        sc->l->too_deep = true;
        return;
    }
    if (sc->n - sc->head >= RUNS_FOLDERS_MAX) {
        sc->l->cut_folders = true;
        return;
    }
    RUNS_ROOM(sc->todo, sc->n);
    sc->todo[sc->n++] = (struct todo){sub_prefix(t->prefix, sub->name),
                                      t->store_no,
                                      t->depth + 1,
                                      sub->mtime_ms,
                                      sub->link,
                                      NULL};
}

static char *folder_run_name(const struct xp_store *s, const struct run_folder *f,
                             const char *prefix)
{
    if (*prefix)
        return must(strndup(prefix, strlen(prefix) - 1));
    if (xp_store_is_file(s) && f->n_hosts)
        return must(strdup(f->hosts[0].name));
    return must(strdup(xp_store_label(s)));
}

static void visit_subs(struct scan *sc, const struct todo *t, const struct run_folder *f)
{
    bool plugin = is_plugin_dir(t->prefix);
    for (size_t i = 0; plugin && i < f->n_subs; i += RUNS_AT_ONCE)
        add_plugin_runs(sc, t, f->subs + i,
                        f->n_subs - i < RUNS_AT_ONCE ? f->n_subs - i : RUNS_AT_ONCE);
    for (size_t i = 0; !plugin && !t->link && i < f->n_subs; i++)
        push(sc, t, &f->subs[i]);
}

/* A folder of profiles without folders in it that is as it was. */
static bool visit_known(struct scan *sc, const struct todo *t, struct run_entry *e)
{
    entry_reuse(sc, e);
    if (!e->box)
        return false;
    if (e->box->leaf && t->depth > 0) {
        e->name = must(strndup(t->prefix, strlen(t->prefix) - 1));
        entry_add(sc, e);
        return true;
    }
    run_unref(&e->box->run);
    e->box = NULL;
    return false;
}

/* Reads the folder, or takes what was read of it. */
static void todo_take(struct todo *t, struct xp_store *s, struct run_folder *f)
{
    if (!t->read) {
        run_folder_read(s, t->prefix, f);
        return;
    }
    *f = *t->read;
    free(t->read);
    t->read = NULL;
}

static void visit(struct scan *sc, struct todo *t)
{
    struct xp_store *s = sc->ri->stores[t->store_no];
    struct run_folder f;
    struct run_entry e = {.prefix = must(strdup(t->prefix)),
                          .store = s,
                          .store_no = t->store_no,
                          .dir_mtime_ms = t->mtime_ms};
    if (visit_known(sc, t, &e))
        return;
    if (!may_read(sc)) {
        free(e.prefix);
        return;
    }
    todo_take(t, s, &f);
    if (f.error.status != XP_OK)
        sc->l->error = f.error;
    sc->l->cut_entries |= f.cut;
    if (run_folder_has_profiles(&f)) {
        e.name = folder_run_name(s, &f, t->prefix);
        visit_subs(sc, t, &f);
        entry_fill(sc, &e, &f);
        entry_add(sc, &e);
    } else {
        run_seen_add(&sc->l->seen, &f.seen);
        visit_subs(sc, t, &f);
        free(e.prefix);
    }
    run_folder_fini(&f);
}

/* Whether the last listing makes it needless to read this folder. */
static bool is_known(struct scan *sc, const struct todo *t)
{
    struct run_entry e = {.prefix = t->prefix,
                          .store = sc->ri->stores[t->store_no],
                          .store_no = t->store_no,
                          .dir_mtime_ms = t->mtime_ms};
    entry_reuse(sc, &e);
    bool known = e.box && e.box->leaf && t->depth > 0;
    if (e.box)
        run_unref(&e.box->run);
    return known;
}

/* Reads the folders of a bucket that come next, several at once. */
static void read_ahead(struct scan *sc)
{
    const char *prefixes[RUNS_AT_ONCE];
    size_t at[RUNS_AT_ONCE], n = 0;
    uint32_t store_no = sc->todo[sc->head].store_no;
    struct run_folder *f;
    if (!xp_store_is_remote(sc->ri->stores[store_no]) || sc->todo[sc->head].read ||
        is_known(sc, &sc->todo[sc->head]))
        return;
    for (size_t i = sc->head; i < sc->n && n < RUNS_AT_ONCE; i++) {
        const struct todo *t = &sc->todo[i];
        if (t->store_no != store_no || t->read || is_known(sc, t))
            continue;
        at[n] = i;
        prefixes[n++] = sc->todo[i].prefix;
    }
    f = must(calloc(n ? n : 1, sizeof *f));
    run_folders_read(sc->ri->stores[store_no], prefixes, n, f);
    for (size_t i = 0; i < n; i++) {
        sc->todo[at[i]].read = must(malloc(sizeof *f));
        *sc->todo[at[i]].read = f[i];
    }
    free(f);
}

static void todo_fini(struct todo *t)
{
    if (t->read)
        run_folder_fini(t->read);
    free(t->read);
    free(t->prefix);
}

/* --- names and order --- */

static int compare_newest(const void *a, const void *b)
{
    const struct run_entry *x = a, *y = b;
    if (x->captured_ms != y->captured_ms)
        return x->captured_ms > y->captured_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b, void *entries)
{
    const struct run_entry *x = (struct run_entry *)entries + *(const uint32_t *)a;
    const struct run_entry *y = (struct run_entry *)entries + *(const uint32_t *)b;
    int c = strcmp(x->name, y->name);
    if (c)
        return c;
    if (x->plugin != y->plugin)
        return x->plugin ? -1 : 1;
    if (x->store_no != y->store_no)
        return x->store_no < y->store_no ? -1 : 1;
    return strcmp(x->prefix, y->prefix);
}

static int compare_prefix(uint32_t store_no, const char *prefix, const struct run_entry *e)
{
    if (store_no != e->store_no)
        return store_no < e->store_no ? -1 : 1;
    return strcmp(prefix, e->prefix);
}

static int compare_prefixes(const void *a, const void *b, void *entries)
{
    const struct run_entry *x = (struct run_entry *)entries + *(const uint32_t *)a;
    return compare_prefix(x->store_no, x->prefix,
                          (struct run_entry *)entries + *(const uint32_t *)b);
}

/* Names that are taken get "./" or "@store". True when one was given. */
static bool rename_doubles(struct run_listing *l)
{
    bool changed = false;
    const struct run_entry *first = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct run_entry *e = &l->entries[l->by_name[i]];
        if (!first || strcmp(first->name, e->name) != 0) {
            first = e;
            continue;
        }
        size_t n = strlen(e->name) + 16;
        char *name = must(malloc(n));
        if (e->store_no != first->store_no)
            snprintf(name, n, "%s@%u", e->name, e->store_no + 1);
        else
            snprintf(name, n, "./%s", e->name);
        free(e->name);
        e->name = name;
        changed = true;
    }
    return changed;
}

static void sort_indices(struct run_listing *l, uint32_t *index,
                         int (*compare)(const void *, const void *, void *))
{
    for (size_t i = 0; i < l->n; i++)
        index[i] = (uint32_t)i;
    if (l->n)
        qsort_r(index, l->n, sizeof *index, compare, l->entries);
}

static void finish(struct run_listing *l)
{
    size_t bytes = (l->n ? l->n : 1) * sizeof *l->by_name;
    l->by_name = must(malloc(bytes));
    l->by_prefix = must(malloc(bytes));
    sort_indices(l, l->by_name, compare_names);
    for (int i = 0; i < RENAME_ROUNDS && rename_doubles(l); i++)
        sort_indices(l, l->by_name, compare_names);
    for (size_t i = 0; i < l->n; i++) {
        struct run_entry *e = &l->entries[i];
        if (e->box && strcmp(e->box->run.name, e->name) != 0) { /* read again under its name */
            run_unref(&e->box->run);
            e->box = NULL;
        }
    }
    if (l->n)
        qsort(l->entries, l->n, sizeof *l->entries, compare_newest);
    sort_indices(l, l->by_name, compare_names);
    sort_indices(l, l->by_prefix, compare_prefixes);
}

struct run_listing *run_scan(struct run_index *ri, const struct run_listing *old)
{
    struct scan sc = {.ri = ri, .old = old, .wall_ms = xp_wall_ms()};
    sc.l = must(calloc(1, sizeof *sc.l));
    sc.l->refs = 1;
    sc.l->made_ns = xp_now_ns();
    for (size_t i = 0; i < ri->n_stores; i++) {
        RUNS_ROOM(sc.todo, sc.n);
        sc.todo[sc.n++] = (struct todo){.prefix = must(strdup("")), .store_no = (uint32_t)i};
    }
    while (sc.head < sc.n) {
        read_ahead(&sc);
        struct todo t = sc.todo[sc.head++];
        visit(&sc, &t);
        todo_fini(&t);
    }
    free(sc.todo);
    finish(sc.l);
    sc.l->took_ns = xp_now_ns() - sc.l->made_ns;
    return sc.l;
}

void run_listing_unref(struct run_listing *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    for (size_t i = 0; i < l->n; i++) {
        if (l->entries[i].box)
            run_unref(&l->entries[i].box->run);
        free(l->entries[i].name);
        free(l->entries[i].prefix);
    }
    free(l->entries);
    free(l->by_name);
    free(l->by_prefix);
    free(l);
}

/* --- lookup --- */

struct run_entry *run_listing_by_name(const struct run_listing *l, struct xp_span name)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct run_entry *e = &l->entries[l->by_name[mid]];
        int c = xp_span_cmp(xp_span_str(e->name), name);
        if (c == 0)
            return e;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

struct run_entry *run_listing_by_prefix(const struct run_listing *l, uint32_t store_no,
                                        const char *prefix)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct run_entry *e = &l->entries[l->by_prefix[mid]];
        int c = compare_prefix(store_no, prefix, e);
        if (c == 0)
            return e;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
