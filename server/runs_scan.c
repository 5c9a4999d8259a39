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
};

struct scan {
    struct run_index *ri;
    const struct run_listing *old;
    struct run_listing *l;
    struct todo *todo;
    size_t head, n;
    size_t folders; /* read */
    int64_t wall_ms;
};

/* --- entries --- */

bool run_entry_settled(const struct run_entry *e)
{
    if (!e->box || !e->dir_mtime_ms)
        return false;
    int64_t last = e->box->newest_ms > e->dir_mtime_ms ? e->box->newest_ms : e->dir_mtime_ms;
    return e->filled_wall_ms - last > RUNS_SETTLED_MS;
}

/* Takes over what the last listing knows of the folder, if it has not changed since. */
static void entry_reuse(struct scan *sc, struct run_entry *e)
{
    const struct run_entry *old =
        sc->old ? run_listing_by_prefix(sc->old, e->store_no, e->prefix) : NULL;
    if (!old || old->plugin != e->plugin || old->dir_mtime_ms != e->dir_mtime_ms)
        return;
    pthread_mutex_lock(&sc->ri->lock);
    if (run_entry_settled(old)) {
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

static void add_plugin_run(struct scan *sc, const struct todo *t, const struct run_sub *sub)
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
    if (!e.box && !run_time_from_name(sub->name, &e.captured_ms) && may_read(sc)) {
        struct run_folder f;
        run_folder_read(e.store, e.prefix, &f);
        entry_fill(sc, &e, &f);
        run_folder_fini(&f);
    }
    entry_add(sc, &e);
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
    sc->todo[sc->n++] = (struct todo){sub_prefix(t->prefix, sub->name), t->store_no, t->depth + 1,
                                      sub->mtime_ms, sub->link};
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
    for (size_t i = 0; i < f->n_subs; i++) {
        if (plugin)
            add_plugin_run(sc, t, &f->subs[i]);
        else if (!t->link)
            push(sc, t, &f->subs[i]);
    }
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

static void visit(struct scan *sc, const struct todo *t)
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
    run_folder_read(s, t->prefix, &f);
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
        struct todo t = sc.todo[sc.head++];
        visit(&sc, &t);
        free(t.prefix);
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
