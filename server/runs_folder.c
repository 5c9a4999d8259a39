#include <stdio.h>

#include "lib/base/hash.h"
#include "server/runs_int.h"

/* --- what else was seen --- */

static void seen_kind(struct run_seen *s, const char *suffix, size_t n)
{
    for (size_t i = 0; i < s->n_kinds; i++) {
        if (strcmp(s->kinds[i].suffix, suffix) == 0) {
            s->kinds[i].n += n;
            return;
        }
    }
    if (s->n_kinds == RUN_KINDS_MAX) {
        s->other += n;
        return;
    }
    snprintf(s->kinds[s->n_kinds].suffix, sizeof s->kinds[0].suffix, "%s", suffix);
    s->kinds[s->n_kinds++].n = n;
}

static void seen_file(struct run_seen *s, const char *name)
{
    const char *dot = strrchr(name, '.');
    s->files++;
    if (!dot || dot == name || !dot[1] || strlen(dot) >= sizeof s->kinds[0].suffix)
        s->other++;
    else
        seen_kind(s, dot, 1);
}

void run_seen_add(struct run_seen *to, const struct run_seen *s)
{
    to->files += s->files;
    to->folders += s->folders;
    to->links_out += s->links_out;
    to->other += s->other;
    for (size_t i = 0; i < s->n_kinds; i++)
        seen_kind(to, s->kinds[i].suffix, s->kinds[i].n);
}

void run_seen_text(const struct run_seen *s, struct xp_buf *b)
{
    if (!s->files && !s->folders) {
        xp_buf_str(b, "nothing");
        return;
    }
    if (s->files)
        xp_buf_fmt(b, "%zu file%s", s->files, s->files == 1 ? "" : "s");
    for (size_t i = 0; i < s->n_kinds; i++)
        xp_buf_fmt(b, "%s%zu %s", i ? ", " : " (", s->kinds[i].n, s->kinds[i].suffix);
    if (s->n_kinds && s->other)
        xp_buf_fmt(b, ", %zu other", s->other);
    if (s->n_kinds)
        xp_buf_str(b, ")");
    if (s->folders)
        xp_buf_fmt(b, "%s%zu folder%s", s->files ? " and " : "", s->folders,
                   s->folders == 1 ? "" : "s");
    if (s->links_out)
        xp_buf_fmt(b, ", %zu link%s that lead outside and were not followed", s->links_out,
                   s->links_out == 1 ? "" : "s");
}

/* --- reading --- */

static void add_host(struct run_folder *f, const struct xp_object *o, const char *name,
                     size_t host_n, bool gz)
{
    RUNS_ROOM(f->hosts, f->n_hosts);
    f->hosts[f->n_hosts++] = (struct run_host){
        .name = must(strndup(name, host_n)),
        .key = must(strdup(o->key)),
        .size = o->size,
        .generation = o->generation,
        .mtime_ms = o->mtime_ms,
        .gz = gz,
    };
}

static void add_sub(struct run_folder *f, const struct xp_object *o, const char *name)
{
    f->seen.folders++;
    RUNS_ROOM(f->subs, f->n_subs);
    f->subs[f->n_subs++] = (struct run_sub){
        .name = must(strndup(name, strlen(name) - 1)),
        .mtime_ms = o->mtime_ms,
        .link = o->link,
    };
}

static void add_object(struct run_folder *f, const struct xp_store *s, const char *prefix,
                       const struct xp_object *o)
{
    const char *name = o->key + strlen(prefix);
    size_t host_n;
    if (o->prefix) {
        add_sub(f, o, name);
        return;
    }
    enum run_file kind = run_file_of(name, &host_n);
    if (kind == RUN_FILE_OTHER && xp_store_is_file(s)) { /* it was asked for by name */
        struct xp_span n = xp_span_str(name);
        bool packed =
            xp_span_ends(n, XP_SPAN_LIT(".gz")) || xp_span_ends(n, XP_SPAN_LIT(".riegeli"));
        kind = packed ? RUN_FILE_PACKED : RUN_FILE_PLAIN;
    }
    switch (kind) {
    case RUN_FILE_PLAIN:
    case RUN_FILE_PACKED:
        add_host(f, o, name, host_n, kind == RUN_FILE_PACKED || o->gzip);
        return;
    case RUN_FILE_OTHER:
        break;
    }
    seen_file(&f->seen, name);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct run_host *x = a, *y = b;
    int c = run_natural_cmp(x->name, y->name);
    return c ? c : strcmp(x->key, y->key); /* .pb, .pb.gz, .riegeli */
}

static void host_fini(struct run_host *h)
{
    free(h->name);
    free(h->key);
}

/* Sorts; of several files of one host the plain one stays, else the first by name. */
static void settle_hosts(struct run_folder *f)
{
    size_t n = 0;
    if (f->n_hosts)
        qsort(f->hosts, f->n_hosts, sizeof *f->hosts, compare_hosts);
    for (size_t i = 0; i < f->n_hosts; i++) {
        if (n && strcmp(f->hosts[n - 1].name, f->hosts[i].name) == 0)
            host_fini(&f->hosts[i]);
        else
            f->hosts[n++] = f->hosts[i];
    }
    f->n_hosts = n;
}

/* Takes a page over and frees it; *token is then the next one's. False: there is none to read. */
static bool take_page(struct xp_store *s, const char *prefix, struct xp_store_page *page,
                      size_t *entries, char **token, struct run_folder *f)
{
    for (size_t i = 0; i < page->n; i++)
        add_object(f, s, prefix, &page->items[i]);
    f->seen.links_out += page->left_out;
    *entries += page->n;
    free(*token);
    *token = page->next;
    page->next = NULL;
    xp_store_page_fini(page);
    f->cut = *token && *entries >= RUNS_FOLDER_ENTRIES_MAX;
    return *token && !f->cut;
}

/* The pages after the first, which was read: *err is what came of it. */
static void read_on(struct xp_store *s, const char *prefix, struct xp_store_page *page,
                    const struct xp_error *err, struct run_folder *f)
{
    char *token = NULL;
    size_t entries = 0;
    *f = (struct run_folder){.error = *err};
    while (f->error.status == XP_OK && take_page(s, prefix, page, &entries, &token, f))
        xp_store_list(s, prefix, true, token, 1000, page, &f->error);
    free(token);
    settle_hosts(f);
}

void run_folder_read(struct xp_store *s, const char *prefix, struct run_folder *f)
{
    struct xp_store_page page;
    struct xp_error err = {0};
    xp_store_list(s, prefix, true, NULL, 1000, &page, &err);
    read_on(s, prefix, &page, &err, f);
}

void run_folders_read(struct xp_store *s, const char *const *prefixes, size_t n,
                      struct run_folder *f)
{
    struct xp_store_page *pages = must(calloc(n ? n : 1, sizeof *pages));
    struct xp_error *errs = must(calloc(n ? n : 1, sizeof *errs));
    xp_store_list_each(s, prefixes, n, pages, errs);
    for (size_t i = 0; i < n; i++)
        read_on(s, prefixes[i], &pages[i], &errs[i], &f[i]);
    free(pages);
    free(errs);
}

void run_folder_fini(struct run_folder *f)
{
    for (size_t i = 0; i < f->n_hosts; i++)
        host_fini(&f->hosts[i]);
    for (size_t i = 0; i < f->n_subs; i++)
        free(f->subs[i].name);
    free(f->hosts);
    free(f->subs);
    *f = (struct run_folder){0};
}

/* --- runs --- */

static char *note_of(const struct run_folder *f)
{
    struct xp_buf b;
    xp_buf_init(&b, 2048);
    if (f->error.status != XP_OK)
        xp_buf_fmt(&b, "%s", f->error.text);
    else if (!f->n_hosts) {
        xp_buf_str(&b, "holds no <host>.xplane.pb; found there: ");
        run_seen_text(&f->seen, &b);
    }
    if (f->cut)
        xp_buf_fmt(&b, "%slisting cut at %d entries", b.n ? "; " : "", RUNS_FOLDER_ENTRIES_MAX);
    char *note = b.n ? run_span_dup(xp_buf_all(&b)) : NULL;
    xp_buf_fini(&b);
    return note;
}

static int compare_indices(const void *a, const void *b, void *hosts)
{
    const struct run_host *h = hosts;
    return strcmp(h[*(const size_t *)a].name, h[*(const size_t *)b].name);
}

static void set_hosts(struct run_box *box, struct run_folder *f)
{
    struct run *r = &box->run;
    r->hosts = f->hosts;
    r->n_hosts = f->n_hosts;
    f->hosts = NULL;
    f->n_hosts = 0;
    r->by_name = must(malloc((r->n_hosts ? r->n_hosts : 1) * sizeof *r->by_name));
    for (size_t i = 0; i < r->n_hosts; i++) {
        r->by_name[i] = i;
        r->bytes += r->hosts[i].size;
        if (r->hosts[i].mtime_ms > box->newest_ms)
            box->newest_ms = r->hosts[i].mtime_ms;
    }
    if (r->n_hosts)
        qsort_r(r->by_name, r->n_hosts, sizeof *r->by_name, compare_indices, r->hosts);
}

struct run_box *run_box_new(struct xp_store *s, const char *prefix, const char *name,
                            struct run_folder *f)
{
    struct run_box *box = must(calloc(1, sizeof *box));
    struct run *r = &box->run;
    box->refs = 1;
    box->seen = f->seen;
    box->leaf = f->n_subs == 0 && f->error.status == XP_OK;
    box->cut = f->cut;
    r->note = note_of(f);
    r->unreadable = f->error.status != XP_OK;
    r->name = must(strdup(name));
    r->prefix = must(strdup(prefix));
    r->store = s;
    set_hosts(box, f);
    r->captured_by_name = run_time_from_name(name, &r->captured_ms);
    if (!r->captured_by_name)
        r->captured_ms = box->newest_ms;
    return box;
}

const struct run *run_read(struct xp_store *store, const char *prefix, const char *name)
{
    struct run_folder f;
    run_folder_read(store, prefix, &f);
    struct run_box *box = run_box_new(store, prefix, name, &f);
    run_folder_fini(&f);
    return &box->run;
}

uint64_t run_id(const struct run *r)
{
    struct run_box *box = (struct run_box *)r;
    uint64_t h = atomic_load_explicit(&box->id, memory_order_relaxed);
    if (h)
        return h;
    h = xp_fnv(XP_FNV_INIT, xp_span_str(xp_store_name(r->store)));
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct run_host *host = &r->hosts[i];
        uint64_t facts[] = {host->size, host->generation, (uint64_t)host->mtime_ms};
        h = xp_fnv(h, xp_span_of(host->key, strlen(host->key) + 1));
        h = xp_fnv(h, xp_span_of(facts, sizeof facts));
    }
    h += !h;
    atomic_store_explicit(&box->id, h, memory_order_relaxed);
    return h;
}

const struct run *run_ref(const struct run *r)
{
    atomic_fetch_add(&((struct run_box *)r)->refs, 1);
    return r;
}

void run_unref(const struct run *run)
{
    struct run_box *box = (struct run_box *)run;
    if (!box || atomic_fetch_sub(&box->refs, 1) > 1)
        return;
    struct run *r = &box->run;
    run_look_fini(box);
    for (size_t i = 0; i < r->n_hosts; i++)
        host_fini(&r->hosts[i]);
    free(r->hosts);
    free(r->by_name);
    free(r->name);
    free(r->prefix);
    free(r->note);
    free(box);
}

const struct run_host *run_host_find(const struct run *r, struct xp_span name)
{
    size_t lo = 0, hi = r->n_hosts;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct run_host *h = &r->hosts[r->by_name[mid]];
        int c = xp_span_cmp(xp_span_str(h->name), name);
        if (c == 0)
            return h;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
