#include "server/runs.h"

#include <stdio.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "server/runs_int.h"

struct run_index *run_index_new(struct xp_store *const *stores, size_t n)
{
    struct run_index *ri = calloc(1, sizeof *ri);
    if (!ri)
        return NULL;
    ri->stores = malloc((n ? n : 1) * sizeof *ri->stores);
    if (!ri->stores) {
        free(ri);
        return NULL;
    }
    if (n)
        memcpy(ri->stores, stores, n * sizeof *stores);
    ri->n_stores = n;
    pthread_mutex_init(&ri->lock, NULL);
    pthread_cond_init(&ri->listed, NULL);
    return ri;
}

void run_index_free(struct run_index *ri)
{
    if (!ri)
        return;
    run_join_drop_all(ri);
    run_listing_unref(ri->now);
    pthread_mutex_destroy(&ri->lock);
    pthread_cond_destroy(&ri->listed);
    free(ri->stores);
    free(ri);
}

/* --- one listing at a time --- */

static bool any_remote(const struct run_index *ri)
{
    for (size_t i = 0; i < ri->n_stores; i++)
        if (xp_store_is_remote(ri->stores[i]))
            return true;
    return false;
}

/* Counted from its start: listing takes at most half of one worker's time, a quarter when it costs
 * calls. */
static uint64_t fresh_for(const struct run_index *ri)
{
    bool remote = any_remote(ri);
    uint64_t least = remote ? RUNS_BUCKET_FRESH_NS : RUNS_FRESH_NS;
    uint64_t share = ri->now->took_ns * (remote ? 4 : 2);
    return share > least ? share : least;
}

static struct run_listing *take(struct run_listing *l)
{
    atomic_fetch_add(&l->refs, 1);
    return l;
}

/* Lists and publishes. Called with the lock held and `listing` false; returns so. */
static void list_now(struct run_index *ri)
{
    struct run_listing *old = ri->now ? take(ri->now) : NULL;
    ri->listing = true;
    pthread_mutex_unlock(&ri->lock);
    xp_store_set_patience(old && old->n ? RUNS_PATIENCE_MS : 0);
    struct run_listing *l = run_scan(ri, old);
    xp_store_set_patience(0);
    run_listing_unref(old);
    pthread_mutex_lock(&ri->lock);
    old = ri->now;
    if (old && old->n && l->error.status != XP_OK && any_remote(ri)) {
        old->made_ns = l->made_ns; /* a bucket that does not answer is not empty */
        old->took_ns = l->took_ns;
        old = l;
    } else {
        ri->now = l;
    }
    ri->listing = false;
    pthread_cond_broadcast(&ri->listed);
    pthread_mutex_unlock(&ri->lock);
    run_listing_unref(old);
    pthread_mutex_lock(&ri->lock);
}

void run_index_poke(struct run_index *ri)
{
    pthread_mutex_lock(&ri->lock);
    if (ri->now)
        ri->now->made_ns = 0;
    pthread_mutex_unlock(&ri->lock);
}

struct run_listing *run_index_listing(struct run_index *ri)
{
    pthread_mutex_lock(&ri->lock);
    while (!ri->now && ri->listing)
        pthread_cond_wait(&ri->listed, &ri->lock);
    if (!ri->listing && (!ri->now || xp_now_ns() - ri->now->made_ns >= fresh_for(ri)))
        list_now(ri);
    struct run_listing *l = take(ri->now);
    pthread_mutex_unlock(&ri->lock);
    return l;
}

struct run_listing *run_index_listing_after_miss(struct run_index *ri)
{
    uint64_t now = xp_now_ns();
    pthread_mutex_lock(&ri->lock);
    for (;;) {
        uint64_t grace = RUNS_MISS_NS;
        if (ri->now && ri->now->took_ns > grace)
            grace = ri->now->took_ns;
        if (ri->now && ri->now->made_ns + grace >= now)
            break;
        if (ri->listing)
            pthread_cond_wait(&ri->listed, &ri->lock);
        else
            list_now(ri);
    }
    struct run_listing *l = take(ri->now);
    pthread_mutex_unlock(&ri->lock);
    return l;
}

/* --- what is in a run --- */

/* Index locked: whether what is known will do. */
bool run_entry_will_do(const struct run_entry *e, bool for_list)
{
    uint64_t fresh =
        for_list && xp_store_is_remote(e->store) ? RUNS_BUCKET_FRESH_NS : RUNS_FRESH_NS;
    uint64_t now = xp_now_ns();
    return e->box && ((for_list && run_entry_settled(e)) || e->filling || now < e->again_ns ||
                      now - e->filled_ns < fresh);
}

void run_entry_take(struct run_index *ri, struct run_entry *e, struct run_folder *f, uint64_t ns,
                    int64_t wall_ms)
{
    bool failed = f->error.status != XP_OK && xp_store_is_remote(e->store);
    struct run_box *box = run_box_new(e->store, e->prefix, e->name, f);
    pthread_mutex_lock(&ri->lock);
    struct run_box *old = e->box;
    if (failed && old)
        old = box;
    else
        e->box = box;
    e->filling = false;
    e->filled_ns = ns;
    e->filled_wall_ms = wall_ms;
    e->again_ns = failed ? xp_now_ns() + RUNS_AGAIN_NS : 0;
    pthread_mutex_unlock(&ri->lock);
    if (old)
        run_unref(&old->run);
}

struct run_box *run_entry_box(struct run_index *ri, struct run_entry *e, bool for_list)
{
    pthread_mutex_lock(&ri->lock);
    if (!run_entry_will_do(e, for_list)) {
        struct run_folder f;
        int64_t wall_ms = xp_wall_ms();
        uint64_t ns = xp_now_ns();
        e->filling = xp_store_is_remote(e->store);
        xp_store_set_patience(e->box ? RUNS_PATIENCE_MS : 0);
        pthread_mutex_unlock(&ri->lock);
        run_folder_read(e->store, e->prefix, &f);
        xp_store_set_patience(0);
        run_entry_take(ri, e, &f, ns, wall_ms);
        run_folder_fini(&f);
        pthread_mutex_lock(&ri->lock);
    }
    struct run_box *box = e->box;
    run_ref(&box->run);
    pthread_mutex_unlock(&ri->lock);
    return box;
}

/* Reads entries of one store, marked as being filled, several at once. */
void run_entries_fill(struct run_index *ri, struct xp_store *store, struct run_entry *const *look,
                      size_t n)
{
    const char *prefixes[RUNS_AT_ONCE];
    struct run_folder f[RUNS_AT_ONCE];
    int64_t wall_ms = xp_wall_ms();
    uint64_t ns = xp_now_ns();
    for (size_t i = 0; i < n; i++)
        prefixes[i] = look[i]->prefix;
    run_folders_read(store, prefixes, n, f);
    for (size_t i = 0; i < n; i++) {
        run_entry_take(ri, look[i], &f[i], ns, wall_ms);
        run_folder_fini(&f[i]);
    }
}

void run_entries_refresh(struct run_index *ri, struct run_entry *const *entries, size_t n)
{
    struct run_entry *look[RUNS_AT_ONCE];
    size_t n_look = 0;
    bool known = true;
    if (n == 0 || !xp_store_is_remote(entries[0]->store))
        return;
    pthread_mutex_lock(&ri->lock);
    for (size_t i = 0; i < n && n_look < RUNS_AT_ONCE; i++) {
        struct run_entry *e = entries[i];
        if (e->store != entries[0]->store || run_entry_will_do(e, false))
            continue;
        e->filling = true;
        known &= e->box != NULL;
        look[n_look++] = e;
    }
    pthread_mutex_unlock(&ri->lock);
    xp_store_set_patience(known ? RUNS_PATIENCE_MS : 0);
    run_entries_fill(ri, entries[0]->store, look, n_look);
    xp_store_set_patience(0);
}

static enum xp_status fail_no_run(const struct run_index *ri, struct xp_span name,
                                  struct xp_error *err)
{
    int n = name.n < 120 ? (int)name.n : 120;
    return xp_fail(err, XP_NOT_FOUND, 0, "run \"%.*s\" is not in %.80s", n,
                   name.n ? (const char *)name.p : "",
                   ri->n_stores ? xp_store_name(ri->stores[0]) : "any location");
}

enum xp_status run_index_get(struct run_index *ri, struct xp_span name, const struct run **out,
                             struct xp_error *err)
{
    if (run_is_joined(name))
        return run_join_get(ri, name, out, err);
    struct run_listing *l = run_index_listing(ri);
    struct run_entry *e = run_listing_by_name(l, name);
    *out = NULL;
    if (!e) {
        run_listing_unref(l);
        l = run_index_listing_after_miss(ri);
        e = run_listing_by_name(l, name);
    }
    if (e)
        *out = &run_entry_box(ri, e, false)->run;
    run_listing_unref(l);
    return e ? XP_OK : fail_no_run(ri, name, err);
}

const struct run *run_known(struct run_index *ri, struct xp_span name)
{
    const struct run_entry *e = run_listing_by_name(ri->now, name);
    return e && run_entry_will_do(e, false) ? &e->box->run : NULL;
}

const struct run *run_index_known(struct run_index *ri, struct xp_span name)
{
    const struct run *r = NULL;
    if (pthread_mutex_trylock(&ri->lock) != 0)
        return NULL;
    if (ri->now && (ri->listing || xp_now_ns() - ri->now->made_ns < fresh_for(ri)))
        r = run_is_joined(name) ? run_join_known(ri, name) : run_known(ri, name);
    if (r)
        run_ref(r);
    pthread_mutex_unlock(&ri->lock);
    return r;
}

/* --- pages --- */

/* A token is where the page ended: capture time and hash of the name of its last run. */
#define TOKEN_DIGITS 32

static uint64_t name_hash(const char *name)
{
    return xp_fnv(XP_FNV_INIT, xp_span_str(name));
}

static char *token_of(int64_t captured_ms, const char *name)
{
    char *t = must(malloc(TOKEN_DIGITS + 1));
    snprintf(t, TOKEN_DIGITS + 1, "%016llx%016llx", (unsigned long long)captured_ms,
             (unsigned long long)name_hash(name));
    return t;
}

static bool token_read(struct xp_span token, int64_t *captured_ms, uint64_t *hash)
{
    uint64_t v[2] = {0, 0};
    if (token.n != TOKEN_DIGITS)
        return false;
    for (size_t i = 0; i < TOKEN_DIGITS; i++) {
        uint8_t c = token.p[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        uint64_t *to = &v[i / 16];
        *to = *to << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *captured_ms = (int64_t)v[0];
    *hash = v[1];
    return true;
}

/* The first entry after the token's. If that run is gone, the others of its time come again. */
static size_t page_start(const struct run_listing *l, int64_t captured_ms, uint64_t hash)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->entries[mid].captured_ms > captured_ms)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i < l->n && l->entries[i].captured_ms == captured_ms; i++)
        if (name_hash(l->entries[i].name) == hash)
            return i + 1;
    return lo;
}

static bool matches(const struct run_entry *e, const char *q)
{
    return !e->hidden && (!*q || strcasestr(e->name, q));
}

static void page_add(struct run_page *page, struct run_box *box, size_t limit, bool first)
{
    if (box->run.n_hosts && page->n < limit) {
        page->runs[page->n++] = &box->run;
    } else if (!box->run.n_hosts && first && page->n_empty < RUNS_EMPTY_MAX) {
        page->empty[page->n_empty++] = &box->run;
    } else {
        run_unref(&box->run);
    }
}

/* Of a bucket: looks into the entries from i on that a page of `want` runs may show, several at
 * once. Returns how far. */
static size_t look_ahead(struct run_index *ri, struct run_listing *l, size_t i, const char *q,
                         size_t want)
{
    struct run_entry *look[RUNS_AT_ONCE];
    struct xp_store *store = l->entries[i].store;
    size_t n = 0;
    if (!xp_store_is_remote(store))
        return i + 1;
    pthread_mutex_lock(&ri->lock);
    for (; i < l->n && want && n < RUNS_AT_ONCE && l->entries[i].store == store; i++) {
        struct run_entry *e = &l->entries[i];
        if (!matches(e, q))
            continue;
        want--;
        if (run_entry_will_do(e, true))
            continue;
        e->filling = true;
        look[n++] = e;
    }
    pthread_mutex_unlock(&ri->lock);
    run_entries_fill(ri, store, look, n);
    return i;
}

/* Fills the page from entry i on. Stops at the first run that has no room. */
static void page_fill(struct run_index *ri, struct run_listing *l, size_t i, const char *q,
                      size_t limit, bool first, struct run_page *page)
{
    const struct run_entry *last = NULL;
    size_t looked = i;
    for (; i < l->n; i++) {
        struct run_entry *e = &l->entries[i];
        if (!matches(e, q))
            continue;
        if (i >= looked)
            looked = look_ahead(ri, l, i, q, limit + 1 - page->n);
        struct run_box *box = run_entry_box(ri, e, true);
        bool holds = box->run.n_hosts > 0;
        bool full = holds && page->n == limit;
        page_add(page, box, limit, first);
        if (full) {
            XP_ASSERT(last); /* a page has room for one */
            page->next = token_of(last->captured_ms, last->name);
            return;
        }
        if (holds)
            last = e;
    }
}

static void page_count(struct run_index *ri, struct run_listing *l, const char *q,
                       struct run_page *page)
{
    page->total_exact = true;
    pthread_mutex_lock(&ri->lock);
    for (size_t i = 0; i < l->n; i++) {
        struct run_entry *e = &l->entries[i];
        if (!matches(e, q))
            continue;
        page->total += !e->box || e->box->run.n_hosts;
        page->total_exact &= e->box != NULL;
        page->looked += e->box && e->box->run.n_hosts;
    }
    pthread_mutex_unlock(&ri->lock);
}

/* --- sentences --- */

static char *text_take(struct xp_buf *b)
{
    char *s = run_span_dup(xp_buf_all(b));
    xp_buf_fini(b);
    return s;
}

static char *text_cut(const struct run_listing *l)
{
    struct xp_buf b;
    if (!l->cut_folders && !l->cut_entries && !l->too_deep)
        return NULL;
    xp_buf_init(&b, 1024);
    if (l->cut_folders)
        xp_buf_fmt(&b, "listing cut at %d folders", RUNS_FOLDERS_MAX);
    if (l->cut_entries)
        xp_buf_fmt(&b, "%slisting of a folder cut at %d entries", b.n ? "; " : "",
                   RUNS_FOLDER_ENTRIES_MAX);
    if (l->too_deep)
        xp_buf_fmt(&b, "%sfolders more than %d deep were not searched", b.n ? "; " : "",
                   RUNS_DEPTH_MAX);
    return text_take(&b);
}

static char *text_read(const struct run_index *ri)
{
    struct xp_buf b;
    xp_buf_init(&b, 64 << 10);
    for (size_t i = 0; i < ri->n_stores; i++)
        xp_buf_fmt(&b, "%s%s", i ? ", " : "", xp_store_name(ri->stores[i]));
    return text_take(&b);
}

static char *text_expected(const struct run_index *ri)
{
    struct xp_buf b;
    const char *dir = ri->n_stores == 1 ? xp_store_name(ri->stores[0]) : "DIR";
    int n = (int)strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    xp_buf_init(&b, 64 << 10);
    xp_buf_fmt(&b,
               "%.*s/plugins/profile/<run>/<host>.xplane.pb, %.*s/<run>/<host>.xplane.pb or "
               "%.*s/<host>.xplane.pb, each also as .xplane.pb.gz or .xplane.riegeli",
               n, dir, n, dir, n, dir);
    return text_take(&b);
}

/* What is to be found instead of profiles. */
struct nothing {
    struct run_seen seen;
    size_t runs;
};

static struct nothing look_for_reasons(struct run_index *ri, const struct run_listing *l)
{
    struct nothing no = {.seen = l->seen};
    pthread_mutex_lock(&ri->lock);
    for (size_t i = 0; i < l->n; i++) {
        const struct run_box *box = l->entries[i].box;
        no.runs++;
        if (box)
            run_seen_add(&no.seen, &box->seen);
    }
    pthread_mutex_unlock(&ri->lock);
    return no;
}

static const char *reason_of(const struct run_listing *l, const struct nothing *no)
{
    if (l->error.status != XP_OK)
        return xp_status_code(l->error.status);
    if (no->seen.files)
        return "other_files";
    return no->runs ? "empty_runs" : "nothing";
}

static char *text_found(const struct run_listing *l, const struct nothing *no)
{
    struct xp_buf b;
    xp_buf_init(&b, 4096);
    run_seen_text(&no->seen, &b);
    if (no->seen.files)
        xp_buf_str(&b, ", none of them <host>.xplane.pb");
    if (no->runs)
        xp_buf_fmt(&b, "; %zu run folder%s without profiles", no->runs, no->runs == 1 ? "" : "s");
    if (l->error.status != XP_OK)
        xp_buf_fmt(&b, "; %s", l->error.text);
    return text_take(&b);
}

static char *text_no_match(size_t searched)
{
    struct xp_buf b;
    xp_buf_init(&b, 4096);
    xp_buf_fmt(&b, "%zu run%s, none with such a name", searched, searched == 1 ? "" : "s");
    return text_take(&b);
}

static void page_explain(struct run_index *ri, struct run_listing *l, const char *q,
                         struct run_page *page)
{
    struct run_page all = {0};
    if (*q)
        page_count(ri, l, "", &all);
    page->read = text_read(ri);
    if (all.total) {
        page->found = text_no_match(all.total);
        page->reason = "no_match";
    } else {
        struct nothing no = look_for_reasons(ri, l);
        page->found = text_found(l, &no);
        page->reason = reason_of(l, &no);
    }
    page->expected = text_expected(ri);
}

void run_page_tell(struct run_index *ri, struct run_listing *l, const char *q, bool first,
                   struct run_page *page)
{
    page->cut = text_cut(l);
    if (first && page->n == 0)
        page_explain(ri, l, q, page);
}

enum xp_status run_index_list(struct run_index *ri, struct xp_span q, struct xp_span token,
                              size_t limit, struct run_page *page, struct xp_error *err)
{
    int64_t captured_ms = 0;
    uint64_t hash = 0;
    *page = (struct run_page){0};
    if (limit < 1 || limit > RUN_PAGE_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "limit must be from 1 to %d", RUN_PAGE_MAX);
    if (token.n && !token_read(token, &captured_ms, &hash))
        return xp_fail(err, XP_BAD_REQUEST, 0, "this is no page token");
    if (q.n && memchr(q.p, 0, q.n))
        return xp_fail(err, XP_BAD_REQUEST, 0, "a name cannot hold a NUL byte");
    char *text = run_span_dup(q);
    struct run_listing *l = run_index_listing(ri);
    page->runs = must(calloc(limit, sizeof *page->runs));
    page->empty = must(calloc(RUNS_EMPTY_MAX, sizeof *page->empty));
    page_fill(ri, l, token.n ? page_start(l, captured_ms, hash) : 0, text, limit, !token.n, page);
    page_count(ri, l, text, page);
    run_page_find_joins(page);
    run_page_tell(ri, l, text, !token.n, page);
    run_listing_unref(l);
    free(text);
    return XP_OK;
}

void run_page_fini(struct run_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        run_unref(page->runs[i]);
    for (size_t i = 0; i < page->n_empty; i++)
        run_unref(page->empty[i]);
    for (size_t i = 0; i < page->n_joins; i++)
        free(page->joins[i].name);
    free(page->joins);
    free(page->runs);
    free(page->empty);
    free(page->next);
    free(page->cut);
    free(page->read);
    free(page->found);
    free(page->expected);
    *page = (struct run_page){0};
}
