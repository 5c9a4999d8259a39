/* Captures of one moment that landed in several runs, as one. */
#include <stdio.h>

#include "server/runs_int.h"

struct xp_span run_next_part(struct xp_span *rest)
{
    struct xp_span all = *rest;
    for (size_t i = 0; i + 1 < all.n; i++)
        if (all.p[i] == '/' && all.p[i + 1] == '/') {
            *rest = xp_span_of(all.p + i + 2, all.n - i - 2);
            return xp_span_of(all.p, i);
        }
    *rest = (struct xp_span){0};
    return all;
}

bool run_is_joined(struct xp_span name)
{
    return run_next_part(&name).p && name.p;
}

static int compare_parts(const void *a, const void *b)
{
    return xp_span_cmp(*(const struct xp_span *)a, *(const struct xp_span *)b);
}

void run_canonical_name(char *name)
{
    struct xp_span parts[RUN_JOIN_MAX], rest = xp_span_str(name);
    struct xp_buf b;
    size_t n = 0;
    while (rest.p && n < RUN_JOIN_MAX)
        parts[n++] = run_next_part(&rest);
    if (rest.p || n < 2) /* of more parts than a run has, it is none */
        return;
    qsort(parts, n, sizeof *parts, compare_parts);
    xp_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        xp_buf_str(&b, i ? RUN_JOIN : "");
        xp_buf_span(&b, parts[i]);
    }
    XP_ASSERT(!b.failed && b.n == strlen(name));
    memcpy(name, b.p, b.n);
    xp_buf_fini(&b);
}

bool run_same_name(struct xp_span a, struct xp_span b)
{
    if (xp_span_eq(a, b))
        return true;
    if (a.n != b.n || !run_is_joined(a) || !run_is_joined(b) || memchr(a.p, 0, a.n) ||
        memchr(b.p, 0, b.n))
        return false;
    char *x = run_span_dup(a), *y = run_span_dup(b);
    run_canonical_name(x);
    run_canonical_name(y);
    bool same = strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* --- whether two belong together --- */

/* The host that both have; NULL: none. */
static const char *common_host(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->n_hosts; i++)
        if (run_host_find(b, xp_span_str(a->hosts[i].name)))
            return a->hosts[i].name;
    return NULL;
}

static enum xp_status fits(const struct run *a, const struct run *b, struct xp_error *err)
{
    const char *host = common_host(a, b);
    if (a->store != b->store)
        return xp_fail(err, XP_BAD_REQUEST, 0, "runs of two locations are not joined: %.60s, %.60s",
                       a->name, b->name);
    if (host)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "runs \"%.60s\" and \"%.60s\" both have the host \"%.60s\": they are two "
                       "captures, not one",
                       a->name, b->name, host);
    return XP_OK;
}

/* --- one made of several --- */

static int compare_hosts(const void *a, const void *b)
{
    return run_natural_cmp(((const struct run_host *)a)->name, ((const struct run_host *)b)->name);
}

static void take_hosts(struct run_folder *f, const struct run *r)
{
    for (size_t i = 0; i < r->n_hosts; i++) {
        RUNS_ROOM(f->hosts, f->n_hosts);
        struct run_host *h = &f->hosts[f->n_hosts++];
        *h = r->hosts[i];
        h->name = must(strdup(h->name));
        h->key = must(strdup(h->key));
    }
}

/* What kept a part from being whole keeps the whole from it. */
static void take_faults(struct run_folder *f, const struct run *r)
{
    f->cut |= ((const struct run_box *)r)->cut;
    if (r->unreadable && f->error.status == XP_OK)
        xp_fail(&f->error, XP_IO, 0, "run \"%.60s\": %.150s", r->name, r->note);
}

static const struct run *joined(struct xp_span name, const struct run *const *parts, size_t n)
{
    struct run_folder f = {0};
    char *text = run_span_dup(name);
    for (size_t i = 0; i < n; i++) {
        take_hosts(&f, parts[i]);
        take_faults(&f, parts[i]);
    }
    if (f.n_hosts)
        qsort(f.hosts, f.n_hosts, sizeof *f.hosts, compare_hosts);
    struct run_box *box = run_box_new(parts[0]->store, "", text, &f);
    run_folder_fini(&f);
    free(text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || parts[i]->captured_ms < box->run.captured_ms) {
            box->run.captured_ms = parts[i]->captured_ms;
            box->run.captured_by_name = parts[i]->captured_by_name;
        }
    return &box->run;
}

/* Else it would be missing from the whole, and nobody would be told. */
static enum xp_status holds_profile(const struct run *r, struct xp_error *err)
{
    if (r->n_hosts)
        return XP_OK;
    return xp_fail(err, XP_NOT_FOUND, 0, "run \"%.60s\" has no profile: %s", r->name,
                   r->note ? r->note : "it is empty");
}

/* The parts, referenced; *n of them also after an error. */
static enum xp_status get_parts(struct run_index *ri, struct xp_span name, const struct run **parts,
                                size_t *n, struct xp_error *err)
{
    do {
        if (*n == RUN_JOIN_MAX)
            return xp_fail(err, XP_BAD_REQUEST, 0, "at most %d runs are joined", RUN_JOIN_MAX);
        XP_TRY(run_index_get(ri, run_next_part(&name), &parts[*n], err));
        (*n)++;
        XP_TRY(holds_profile(parts[*n - 1], err));
        for (size_t i = 0; i + 1 < *n; i++)
            XP_TRY(fits(parts[i], parts[*n - 1], err));
    } while (name.p);
    return XP_OK;
}

/* Looks into all parts together, where one after the other would take so long that the first are
 * old again when the last is known. */
static void refresh_parts(struct run_index *ri, struct xp_span name)
{
    struct run_listing *l = run_index_listing(ri);
    struct run_entry *entries[RUN_JOIN_MAX];
    size_t n = 0;
    while (name.p && n < RUN_JOIN_MAX) {
        struct run_entry *e = run_listing_by_name(l, run_next_part(&name));
        if (e)
            entries[n++] = e;
    }
    run_entries_refresh(ri, entries, n);
    run_listing_unref(l);
}

/* --- those made lately --- */

static struct run_joined *find_kept(struct run_index *ri, struct xp_span name)
{
    for (size_t i = 0; i < RUNS_JOINED_KEPT; i++) {
        struct run_joined *k = &ri->joined[i];
        if (k->run && xp_span_eq(xp_span_str(k->run->name), name))
            return k;
    }
    return NULL;
}

const struct run *run_join_known(struct run_index *ri, struct xp_span name)
{
    const struct run_joined *k = find_kept(ri, name);
    for (size_t i = 0; k && i < k->n; i++)
        if (run_known(ri, run_next_part(&name)) != k->parts[i])
            return NULL;
    return k ? k->run : NULL;
}

static void drop(struct run_joined *k)
{
    run_unref(k->run);
    for (size_t i = 0; i < k->n; i++)
        run_unref(k->parts[i]);
    free(k->parts);
    *k = (struct run_joined){0};
}

void run_join_drop_all(struct run_index *ri)
{
    for (size_t i = 0; i < RUNS_JOINED_KEPT; i++)
        drop(&ri->joined[i]);
}

/* The one made of these very parts, referenced. */
static const struct run *take_kept(struct run_index *ri, struct xp_span name,
                                   const struct run *const *parts, size_t n)
{
    pthread_mutex_lock(&ri->lock);
    const struct run_joined *k = find_kept(ri, name);
    bool same = k && k->n == n && memcmp(k->parts, parts, n * sizeof(const struct run *)) == 0;
    const struct run *r = same ? run_ref(k->run) : NULL;
    pthread_mutex_unlock(&ri->lock);
    return r;
}

static void keep(struct run_index *ri, const struct run *r, const struct run *const *parts,
                 size_t n)
{
    struct run_joined one = {.run = run_ref(r), .n = n}, old;
    one.parts = must(calloc(n, sizeof *one.parts));
    for (size_t i = 0; i < n; i++)
        one.parts[i] = run_ref(parts[i]);
    pthread_mutex_lock(&ri->lock);
    struct run_joined *k = find_kept(ri, xp_span_str(r->name));
    if (!k)
        k = &ri->joined[ri->next_joined++ % RUNS_JOINED_KEPT];
    old = *k;
    *k = one;
    pthread_mutex_unlock(&ri->lock);
    drop(&old);
}

enum xp_status run_join_get(struct run_index *ri, struct xp_span name, const struct run **out,
                            struct xp_error *err)
{
    const struct run *parts[RUN_JOIN_MAX];
    size_t n = 0;
    refresh_parts(ri, name);
    enum xp_status status = get_parts(ri, name, parts, &n, err);
    *out = status == XP_OK ? take_kept(ri, name, parts, n) : NULL;
    if (status == XP_OK && !*out) {
        *out = joined(name, parts, n);
        keep(ri, *out, parts, n);
    }
    for (size_t i = 0; i < n; i++)
        run_unref(parts[i]);
    return status;
}

/* --- those of a page --- */

static bool same_folder(const struct run *a, const struct run *b)
{
    const char *x = a->prefix, *y = b->prefix;
    size_t nx = strlen(x), ny = strlen(y);
    if (a->store != b->store || !nx || !ny)
        return false;
    for (nx--; nx && x[nx - 1] != '/'; nx--)
        ;
    for (ny--; ny && y[ny - 1] != '/'; ny--)
        ;
    return nx == ny && memcmp(x, y, nx) == 0;
}

static bool belongs(const struct run *const *group, size_t n, const struct run *r)
{
    if (n == RUN_JOIN_MAX || !same_folder(group[0], r) ||
        group[0]->captured_ms - r->captured_ms > RUN_JOIN_MS)
        return false;
    for (size_t i = 0; i < n; i++)
        if (common_host(group[i], r))
            return false;
    return true;
}

static void add_join(struct run_page *page, const struct run *const *group, size_t n)
{
    struct xp_buf name;
    struct run_join join = {.span_ms = group[0]->captured_ms - group[n - 1]->captured_ms};

    xp_buf_init(&name, (size_t)64 << 10);
    for (size_t i = n; i-- > 0;) { /* in order of time */
        join.n_hosts += group[i]->n_hosts;
        xp_buf_fmt(&name, "%s%s", group[i]->name, i ? RUN_JOIN : "");
    }
    if (!name.failed) {
        join.name = run_span_dup(xp_buf_all(&name));
        RUNS_ROOM(page->joins, page->n_joins);
        page->joins[page->n_joins++] = join;
    }
    xp_buf_fini(&name);
}

void run_page_find_joins(struct run_page *page)
{
    const struct run *group[RUN_JOIN_MAX];
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++) {
        const struct run *r = page->runs[i];
        if (!r->captured_by_name) /* a file's time says when it was copied */
            continue;
        if (n && belongs(group, n, r)) {
            group[n++] = r;
            continue;
        }
        if (n > 1)
            add_join(page, group, n);
        group[0] = r;
        n = 1;
    }
    if (n > 1)
        add_join(page, group, n);
}
