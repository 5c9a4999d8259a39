#include "server/linkstore.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/auth/secret.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/json_out.h"
#include "lib/base/log.h"
#include "lib/run/ticker.h"
#include "server/runs.h"

#define KEY_MAX 800
#define PART_MAX 200 /* of a name, encoded or as a digest: directories take 255 bytes */
#define RECORD_MAX ((size_t)32768)
#define SECOND_NS UINT64_C(1000000000)

/* What was said of a run, newest only. */
struct run_cut {
    char *key; /* "<project>/<run>", encoded */
    int64_t before_s;
};

struct revoked {
    char (*ids)[LINK_ID_TEXT]; /* sorted */
    size_t n_ids, cap_ids;
    struct run_cut *runs; /* sorted by key */
    size_t n_runs, cap_runs;
};

struct linkstore {
    struct xp_store *store;
    struct xp_ticker *looks;
    pthread_mutex_t lock;
    uint64_t opened_ns;
    uint64_t looked_ns;    /* when the last look that went well began; 0: none did */
    struct revoked listed; /* as of that look */
    /* By this process: since the last look began, which may not know them; and before that, until a
     * look has gone well. */
    struct revoked own, owed;
};

/* --- sets --- */

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, LINK_ID_TEXT);
}

static int by_run(const void *a, const void *b)
{
    const struct run_cut *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->before_s > y->before_s) - (x->before_s < y->before_s);
}

static void *grown(void *v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return v;
    *cap = *cap ? 2 * *cap : 16;
    v = reallocarray(v, *cap, size);
    XP_ASSERT(v);
    return v;
}

static void add_id(struct revoked *r, const char *id)
{
    r->ids = grown(r->ids, r->n_ids, &r->cap_ids, sizeof *r->ids);
    memset(r->ids[r->n_ids], 0, LINK_ID_TEXT);
    memcpy(r->ids[r->n_ids++], id, LINK_ID_TEXT - 1);
}

static void add_run(struct revoked *r, const char *key, size_t n, int64_t before_s)
{
    if (r->n_runs && strncmp(r->runs[r->n_runs - 1].key, key, n) == 0 &&
        r->runs[r->n_runs - 1].key[n] == 0) {
        if (before_s > r->runs[r->n_runs - 1].before_s)
            r->runs[r->n_runs - 1].before_s = before_s;
        return;
    }
    r->runs = grown(r->runs, r->n_runs, &r->cap_runs, sizeof *r->runs);
    char *copy = strndup(key, n);
    XP_ASSERT(copy);
    r->runs[r->n_runs++] = (struct run_cut){copy, before_s};
}

static void sort(struct revoked *r)
{
    if (r->n_ids)
        qsort(r->ids, r->n_ids, sizeof *r->ids, by_id);
    if (r->n_runs)
        qsort(r->runs, r->n_runs, sizeof *r->runs, by_run);
}

static void clear(struct revoked *r)
{
    for (size_t i = 0; i < r->n_runs; i++)
        free(r->runs[i].key);
    free(r->ids);
    free(r->runs);
    *r = (struct revoked){0};
}

/* Moves what is in `from`. */
static void join(struct revoked *r, struct revoked *from)
{
    for (size_t i = 0; i < from->n_ids; i++)
        add_id(r, from->ids[i]);
    for (size_t i = 0; i < from->n_runs; i++)
        add_run(r, from->runs[i].key, strlen(from->runs[i].key), from->runs[i].before_s);
    sort(r);
    clear(from);
}

static bool has_id(const struct revoked *r, const char id[LINK_ID_TEXT])
{
    return r->n_ids && bsearch(id, r->ids, r->n_ids, sizeof *r->ids, by_id);
}

/* A run may stand there several times: the latest, which is the last of them, counts. */
static int64_t cut_of(const struct revoked *r, const char *key)
{
    size_t lo = 0, hi = r->n_runs;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(r->runs[mid].key, key) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && strcmp(r->runs[lo - 1].key, key) == 0 ? r->runs[lo - 1].before_s : INT64_MIN;
}

/* --- names --- */

/* Begins the digest of a long name: no encoded name holds it. */
#define DIGEST '='

static void digest(char out[PART_MAX], struct xp_span name)
{
    uint8_t sum[SECRET_SHA256];
    xp_secret_sha256(name, sum);
    out[0] = DIGEST;
    xp_hex(sum, sizeof sum, out + 1);
}

static enum xp_status encode(char out[PART_MAX], struct xp_span name, struct xp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || (c == '.' && i > 0);
        if (n + 4 > PART_MAX) {
            digest(out, name);
            return XP_OK;
        }
        n += (size_t)snprintf(out + n, PART_MAX - n, plain ? "%c" : "%%%02X", c);
    }
    if (n == 0)
        return xp_fail(err, XP_BAD_REQUEST, 0, "a run without a name has no links");
    return XP_OK;
}

/* "<project>/<run>" */
static enum xp_status run_key(char out[2 * PART_MAX], const char *project, struct xp_span run,
                              struct xp_error *err)
{
    char p[PART_MAX], r[PART_MAX];
    enum xp_status status = encode(p, xp_span_str(project), err);
    if (status == XP_OK)
        status = encode(r, run, err);
    if (status == XP_OK)
        snprintf(out, 2 * PART_MAX, "%s/%s", p, r);
    return status;
}

/* Whether a link of `name` is one of the run's, too: it is that, or joined of it and others. */
static bool shows_run(const char *name, const char *run)
{
    struct xp_span rest = xp_span_str(name), one = xp_span_str(run);
    bool found = run_same_name(rest, one);
    while (!found && rest.p)
        found = xp_span_eq(run_next_part(&rest), one);
    return found;
}

/* --- looking what is revoked --- */

static bool is_id(const char *text)
{
    return strlen(text) == LINK_ID_TEXT - 1 && strspn(text, "0123456789abcdef") == LINK_ID_TEXT - 1;
}

/* "revoked/<expires>-<id>" */
static void take_id(struct revoked *r, const char *key, int64_t now_s)
{
    char *end;
    int64_t expires = strtoll(key, &end, 10);
    if (*end == '-' && is_id(end + 1) && expires > now_s)
        add_id(r, end + 1);
}

/* "<project>/<run>/<seconds>" */
static void take_run(struct revoked *r, const char *key, int64_t now_s)
{
    (void)now_s;
    const char *slash = strrchr(key, '/');
    char *end;
    int64_t before = slash ? strtoll(slash + 1, &end, 10) : 0;
    if (slash && slash > key && *end == 0 && end > slash + 1)
        add_run(r, key, (size_t)(slash - key), before);
}

static enum xp_status look_below(struct linkstore *ls, const char *prefix, struct revoked *r,
                                 void (*take)(struct revoked *r, const char *key, int64_t now_s),
                                 struct xp_error *err)
{
    int64_t now_s = xp_wall_ms() / 1000;
    char *token = NULL;
    enum xp_status status;
    do {
        struct xp_store_page page;
        status = xp_store_list(ls->store, prefix, false, token, 1000, &page, err);
        free(token);
        token = NULL;
        if (status != XP_OK)
            break;
        for (size_t i = 0; i < page.n; i++)
            take(r, page.items[i].key + strlen(prefix), now_s);
        token = page.next ? strdup(page.next) : NULL;
        xp_store_page_fini(&page);
        if (r->n_ids + r->n_runs > LINKSTORE_REVOKED_MAX)
            status = xp_fail(err, XP_TOO_LARGE, 0, "more than %d links are revoked",
                             LINKSTORE_REVOKED_MAX);
    } while (token && status == XP_OK);
    free(token);
    return status;
}

void linkstore_look(struct linkstore *ls)
{
    struct revoked r = {0}, old;
    struct xp_error err = {0};
    uint64_t began = xp_now_ns();

    pthread_mutex_lock(&ls->lock);
    join(&ls->owed, &ls->own); /* these were written before the look, which finds them */
    pthread_mutex_unlock(&ls->lock);
    enum xp_status status = look_below(ls, "revoked/", &r, take_id, &err);
    if (status == XP_OK)
        status = look_below(ls, "revoked-runs/", &r, take_run, &err);
    if (status != XP_OK) {
        xp_log(XP_LOG_WARN, "links", "cannot look which are revoked: %s", err.text);
        clear(&r);
        return;
    }
    sort(&r);
    pthread_mutex_lock(&ls->lock);
    old = ls->listed;
    ls->listed = r;
    ls->looked_ns = began ? began : 1;
    clear(&ls->owed);
    pthread_mutex_unlock(&ls->lock);
    clear(&old);
}

static void look_again(void *ctx)
{
    linkstore_look(ctx);
}

/* --- life --- */

enum xp_status linkstore_open(const char *where, const struct xp_bucket_options *bucket,
                              uint32_t look_ms, struct linkstore **out, struct xp_error *err)
{
    struct xp_bucket_options o = bucket ? *bucket : (struct xp_bucket_options){0};
    struct linkstore *ls = calloc(1, sizeof *ls);

    XP_ASSERT(ls);
    o.writable = true;
    enum xp_status status = xp_store_is_bucket(where)
                                ? xp_store_open_bucket(where, &o, &ls->store, err)
                                : xp_store_open_dir_rw(where, &ls->store, err);
    if (status != XP_OK) {
        free(ls);
        return status;
    }
    pthread_mutex_init(&ls->lock, NULL);
    ls->opened_ns = xp_now_ns();
    linkstore_look(ls); /* or every link would be in doubt at first */
    ls->looks = xp_ticker_new(look_ms, look_again, ls);
    *out = ls;
    return XP_OK;
}

void linkstore_close(struct linkstore *ls)
{
    if (!ls)
        return;
    xp_ticker_free(ls->looks);
    clear(&ls->listed);
    clear(&ls->own);
    clear(&ls->owed);
    xp_store_free(ls->store);
    pthread_mutex_destroy(&ls->lock);
    free(ls);
}

/* --- records --- */

static void write_record(struct xp_buf *b, const struct link_claims *c, const char *by)
{
    char id[LINK_ID_TEXT];
    struct xp_json j;

    link_id_text(c, id);
    xp_json_init(&j, b);
    xp_json_obj(&j);
    xp_json_key(&j, "id");
    xp_json_str(&j, id);
    xp_json_key(&j, "run");
    xp_json_str(&j, c->run);
    xp_json_key(&j, "tool");
    xp_json_str(&j, c->tool);
    xp_json_key(&j, "view");
    xp_json_str(&j, c->view);
    xp_json_key(&j, "audience");
    xp_json_str(&j, link_audience_names[c->audience]);
    xp_json_key(&j, "domain");
    xp_json_str(&j, c->domain);
    xp_json_key(&j, "by");
    xp_json_str(&j, by);
    xp_json_key(&j, "issued_s");
    xp_json_i64(&j, c->issued_s);
    xp_json_key(&j, "expires_s");
    xp_json_i64(&j, c->expires_s);
    xp_json_obj_end(&j);
}

static enum xp_status put_record(struct linkstore *ls, const struct link_claims *c,
                                 struct xp_span run, struct xp_span record, struct xp_error *err)
{
    char part[2 * PART_MAX], key[KEY_MAX], id[LINK_ID_TEXT];
    uint64_t generation;

    XP_TRY(run_key(part, c->project, run, err));
    link_id_text(c, id);
    snprintf(key, sizeof key, "links/%s/%s", part, id);
    return xp_store_put_if(ls->store, key, record, 0, &generation, err);
}

enum xp_status linkstore_add(struct linkstore *ls, const struct link_claims *c, const char *by,
                             struct xp_error *err)
{
    struct xp_span run = xp_span_str(c->run);
    struct xp_buf b;

    xp_buf_init(&b, RECORD_MAX);
    write_record(&b, c, by);
    enum xp_status status = b.failed ? xp_fail(err, XP_TOO_LARGE, 0, "the link says too much")
                                     : put_record(ls, c, run, xp_buf_all(&b), err);
    for (bool joined = run_is_joined(run); joined && run.p && status == XP_OK;)
        status = put_record(ls, c, run_next_part(&run), xp_buf_all(&b), err);
    xp_buf_fini(&b);
    return status;
}

static bool copy_text(const json_t *o, const char *name, char *to, size_t size)
{
    const char *s = json_string_value(json_object_get(o, name));
    if (!s || strlen(s) >= size)
        return false;
    memcpy(to, s, strlen(s) + 1);
    return true;
}

static bool read_id(const json_t *o, struct link_claims *c)
{
    const char *s = json_string_value(json_object_get(o, "id"));
    return s && is_id(s) && xp_unhex(s, LINK_ID_BYTES, c->id);
}

static bool read_record(const json_t *o, struct link_record *r)
{
    struct link_claims *c = &r->claims;
    char audience[16];
    bool good = read_id(o, c) && copy_text(o, "tool", c->tool, sizeof c->tool) &&
                copy_text(o, "view", c->view, sizeof c->view) &&
                copy_text(o, "domain", c->domain, sizeof c->domain) &&
                copy_text(o, "by", r->by, sizeof r->by) &&
                copy_text(o, "audience", audience, sizeof audience);

    if (json_object_get(o, "run")) /* those of before had it in their key only */
        good = good && copy_text(o, "run", c->run, sizeof c->run);
    c->issued_s = json_integer_value(json_object_get(o, "issued_s"));
    c->expires_s = json_integer_value(json_object_get(o, "expires_s"));
    for (int i = 0; good && i < LINK_AUDIENCES; i++)
        if (strcmp(link_audience_names[i], audience) == 0) {
            c->audience = (enum link_audience)i;
            return true;
        }
    return false;
}

static enum xp_status parse(struct xp_span text, const char *key, struct link_record *r,
                            struct xp_error *err)
{
    json_t *o =
        json_loadb(text.n ? (const char *)text.p : "", text.n, JSON_REJECT_DUPLICATES, NULL);
    bool good = o && read_record(o, r);
    json_decref(o);
    return good ? XP_OK : xp_fail(err, XP_IO, 0, "the link's record \"%s\" is damaged", key);
}

static enum xp_status fetch(struct linkstore *ls, const char *key, struct link_record *r,
                            struct xp_error *err)
{
    char text[RECORD_MAX];
    struct xp_reader *reader = NULL;
    size_t n = 0;
    enum xp_status status = xp_store_open(ls->store, key, 0, &reader, err);

    if (status == XP_OK)
        status = xp_reader_read(reader, 0, text, sizeof text, &n, err);
    xp_reader_close(reader);
    return status == XP_OK ? parse(xp_span_of(text, n), key, r, err) : status;
}

static void complete(struct linkstore *ls, const char *project, struct link_record *r)
{
    snprintf(r->claims.project, sizeof r->claims.project, "%s", project);
    r->revoked = linkstore_judge(ls, &r->claims) == LINK_REVOKED;
}

enum xp_status linkstore_get(struct linkstore *ls, const char *project, const char *run,
                             const char *id, struct link_record *r, struct xp_error *err)
{
    char part[2 * PART_MAX], key[KEY_MAX];
    enum xp_status status = run_key(part, project, xp_span_str(run), err);

    if (status == XP_OK && !is_id(id))
        status = xp_fail(err, XP_BAD_REQUEST, 0, "a link's id is 32 hexadecimal digits");
    if (status != XP_OK)
        return status;
    snprintf(key, sizeof key, "links/%s/%s", part, id);
    *r = (struct link_record){0};
    status = fetch(ls, key, r, err);
    if (status == XP_OK && !r->claims.run[0])
        snprintf(r->claims.run, sizeof r->claims.run, "%s", run);
    if (status == XP_NOT_FOUND || (status == XP_OK && !shows_run(r->claims.run, run)))
        return xp_fail(err, XP_NOT_FOUND, 0, "this run has no such link");
    if (status == XP_OK)
        complete(ls, project, r);
    return status;
}

/* "<run>/<id>" below the project: the run, decoded; false when no link of ours has such a name. */
static bool read_place(const char *place, char run[LINK_RUN_MAX + 1])
{
    const char *slash = strchr(place, '/');
    size_t n = 0;
    if (!slash || !is_id(slash + 1) || slash - place >= PART_MAX)
        return false;
    for (const char *p = place; p < slash; p++) {
        int hi = *p == '%' ? xp_hex_value((uint8_t)p[1]) : 0;
        int lo = *p == '%' && hi >= 0 ? xp_hex_value((uint8_t)p[2]) : 0;
        if (hi < 0 || lo < 0 || (*p == '%' && hi + lo == 0))
            return false;
        run[n++] = *p == '%' ? (char)(hi << 4 | lo) : *p;
        p += *p == '%' ? 2 : 0;
    }
    run[n] = 0;
    return n > 0;
}

/* Whether the record that lies at `place` is listed: of a joined run there is one for each part,
 * and of all runs' its own only. */
static bool is_listed(const char *place, const char *run, struct link_record *r)
{
    char own[PART_MAX];
    if (!r->claims.run[0])
        return read_place(place, r->claims.run);
    if (run)
        return shows_run(r->claims.run, run);
    size_t n = strcspn(place, "/");
    return encode(own, xp_span_str(r->claims.run), NULL) == XP_OK && strlen(own) == n &&
           memcmp(own, place, n) == 0;
}

/* The records of a page of the listing whose keys begin with "links/<project>/". */
static void read_page(struct linkstore *ls, const char *project, const char *run, size_t skip,
                      const struct xp_store_page *found, struct link_page *page)
{
    struct xp_buf *bodies = calloc(found->n + 1, sizeof *bodies);
    struct xp_error *errs = calloc(found->n + 1, sizeof *errs);

    XP_ASSERT(bodies && errs);
    xp_store_read_each(ls->store, found->items, found->n, RECORD_MAX, bodies, errs);
    for (size_t i = 0; i < found->n; i++) {
        struct link_record *r = &page->v[page->n];
        const char *key = found->items[i].key;
        *r = (struct link_record){0};
        /* Damaged, gone by now, or none of ours: the others are told all the same. */
        if (errs[i].status == XP_OK && parse(xp_buf_all(&bodies[i]), key, r, NULL) == XP_OK &&
            is_listed(key + skip, run, r)) {
            complete(ls, project, r);
            page->n++;
        }
        xp_buf_fini(&bodies[i]);
    }
    free(bodies);
    free(errs);
}

enum xp_status linkstore_list(struct linkstore *ls, const char *project, const char *run,
                              const char *after, struct link_page *page, struct xp_error *err)
{
    char part[2 * PART_MAX], prefix[KEY_MAX];
    struct xp_store_page found;
    char *token = NULL;

    *page = (struct link_page){0};
    XP_TRY(run_key(part, project, xp_span_str(run ? run : "x"), err));
    size_t skip = (size_t)snprintf(prefix, sizeof prefix, "links/%s/", part);
    char *of_run = strchr(part, '/') + 1;
    skip -= strlen(of_run) + 1;
    if (!run)
        prefix[skip] = 0;
    if (after && asprintf(&token, "%s%s", prefix, after) < 0)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status =
        xp_store_list(ls->store, prefix, false, token, LINKSTORE_LIST_MAX, &found, err);
    free(token);
    if (status != XP_OK)
        return status;
    page->v = calloc(found.n + 1, sizeof *page->v);
    XP_ASSERT(page->v);
    read_page(ls, project, run, skip, &found, page);
    page->next = found.next ? strdup(found.next + strlen(prefix)) : NULL;
    xp_store_page_fini(&found);
    return XP_OK;
}

void link_page_fini(struct link_page *page)
{
    free(page->v);
    free(page->next);
    *page = (struct link_page){0};
}

/* --- revoking --- */

static enum xp_status mark(struct linkstore *ls, const char *key, struct xp_error *err)
{
    uint64_t generation;
    pthread_mutex_lock(&ls->lock);
    size_t kept = ls->own.n_ids + ls->own.n_runs + ls->owed.n_ids + ls->owed.n_runs;
    pthread_mutex_unlock(&ls->lock);
    if (kept >= LINKSTORE_REVOKED_MAX)
        return xp_fail(err, XP_BUSY, 0,
                       "too much was revoked since revocations could be listed; try again soon");
    enum xp_status status = xp_store_put_if(ls->store, key, XP_SPAN_LIT("{}"), 0, &generation, err);
    return status == XP_STALE ? XP_OK : status;
}

enum xp_status linkstore_revoke(struct linkstore *ls, const struct link_claims *c,
                                struct xp_error *err)
{
    char key[KEY_MAX], id[LINK_ID_TEXT];

    link_id_text(c, id);
    snprintf(key, sizeof key, "revoked/%" PRId64 "-%s", c->expires_s, id);
    enum xp_status status = mark(ls, key, err);
    if (status != XP_OK)
        return status;
    pthread_mutex_lock(&ls->lock);
    if (!has_id(&ls->own, id)) {
        add_id(&ls->own, id);
        sort(&ls->own);
    }
    pthread_mutex_unlock(&ls->lock);
    return XP_OK;
}

enum xp_status linkstore_revoke_run(struct linkstore *ls, const char *project, const char *run,
                                    int64_t now_s, struct xp_error *err)
{
    char part[2 * PART_MAX], key[KEY_MAX];
    enum xp_status status = run_key(part, project, xp_span_str(run), err);

    if (status != XP_OK)
        return status;
    snprintf(key, sizeof key, "revoked-runs/%s/%" PRId64, part, now_s);
    status = mark(ls, key, err);
    if (status != XP_OK)
        return status;
    pthread_mutex_lock(&ls->lock);
    add_run(&ls->own, part, strlen(part), now_s);
    sort(&ls->own);
    pthread_mutex_unlock(&ls->lock);
    return XP_OK;
}

/* INT64_MAX: no run is called so. */
static int64_t latest_cut(const struct linkstore *ls, const char *project, struct xp_span run)
{
    char key[2 * PART_MAX];
    if (run_key(key, project, run, NULL) != XP_OK)
        return INT64_MAX;
    int64_t latest = cut_of(&ls->listed, key);
    const struct revoked *const mine[] = {&ls->owed, &ls->own};
    for (int i = 0; i < 2; i++)
        if (cut_of(mine[i], key) > latest)
            latest = cut_of(mine[i], key);
    return latest;
}

/* A link of a joined run shows each part, so that it ends with the links of any. */
static int64_t latest_cut_of_all(const struct linkstore *ls, const char *project, const char *name)
{
    struct xp_span run = xp_span_str(name);
    int64_t latest = latest_cut(ls, project, run);
    for (bool joined = run_is_joined(run); joined && run.p;) {
        int64_t cut = latest_cut(ls, project, run_next_part(&run));
        if (cut > latest)
            latest = cut;
    }
    return latest;
}

static bool is_revoked(const struct linkstore *ls, const char *id)
{
    return has_id(&ls->listed, id) || has_id(&ls->owed, id) || has_id(&ls->own, id);
}

enum link_verdict linkstore_judge(struct linkstore *ls, const struct link_claims *c)
{
    char id[LINK_ID_TEXT];
    enum link_verdict verdict = LINK_GOOD;

    link_id_text(c, id);
    pthread_mutex_lock(&ls->lock);
    if (is_revoked(ls, id) || c->issued_s <= latest_cut_of_all(ls, c->project, c->run))
        verdict = LINK_REVOKED;
    else if (!ls->looked_ns || xp_now_ns() - ls->looked_ns > LINKSTORE_STALE_S * SECOND_NS)
        verdict = LINK_UNSURE;
    pthread_mutex_unlock(&ls->lock);
    return verdict;
}

void linkstore_stats(struct linkstore *ls, struct linkstore_stats *out)
{
    pthread_mutex_lock(&ls->lock);
    uint64_t since = ls->looked_ns ? ls->looked_ns : ls->opened_ns, now = xp_now_ns();
    *out = (struct linkstore_stats){ls->listed.n_ids + ls->listed.n_runs,
                                    now > since ? (double)(now - since) / 1e9 : 0};
    pthread_mutex_unlock(&ls->lock);
}

int64_t linkstore_issue_time(struct linkstore *ls, const char *project, const char *run,
                             int64_t now_s)
{
    pthread_mutex_lock(&ls->lock);
    int64_t cut = latest_cut_of_all(ls, project, run);
    pthread_mutex_unlock(&ls->lock);
    return cut >= now_s && cut < INT64_MAX ? cut + 1 : now_s;
}
