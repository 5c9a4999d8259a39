#include "server/runfacts_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/gzip.h"
#include "lib/base/log.h"
#include "server/gate.h"
#include "server/runs_int.h"

#define FORMAT 1
#define REPORT_BYTES_MAX ((size_t)2 << 20)

/* --- entries, under the lock --- */

static struct runfacts_entry **place_of(struct runfacts *rf, const struct run *r)
{
    uint64_t id = run_id(r);
    struct runfacts_entry **at = &rf->buckets[id % RUNFACTS_BUCKETS];
    while (*at && ((*at)->id != id || (*at)->bytes != r->bytes || strcmp((*at)->name, r->name)))
        at = &(*at)->next;
    return at;
}

static void entry_free(struct runfacts_entry *e)
{
    run_facts_unref(e->facts);
    free(e->name);
    free(e);
}

static void drop_oldest(struct runfacts *rf)
{
    struct runfacts_entry **oldest = NULL;
    for (size_t i = 0; i < RUNFACTS_BUCKETS; i++)
        for (struct runfacts_entry **at = &rf->buckets[i]; *at; at = &(*at)->next)
            if (!oldest || (*at)->used < (*oldest)->used)
                oldest = at;
    struct runfacts_entry *e = *oldest;
    *oldest = e->next;
    rf->n--;
    entry_free(e);
}

static struct runfacts_entry *entry_add(struct runfacts *rf, uint64_t id, uint64_t bytes,
                                        const char *name)
{
    struct runfacts_entry **bucket = &rf->buckets[id % RUNFACTS_BUCKETS];
    struct runfacts_entry *e;
    if (rf->n == RUNFACTS_MAX)
        drop_oldest(rf);
    e = must(calloc(1, sizeof *e));
    *e = (struct runfacts_entry){
        .next = *bucket, .id = id, .bytes = bytes, .name = must(strdup(name)), .used = ++rf->uses};
    *bucket = e;
    rf->n++;
    return e;
}

static struct runfacts_entry *entry_of(struct runfacts *rf, const struct run *r)
{
    struct runfacts_entry *e = *place_of(rf, r);
    return e ? e : entry_add(rf, run_id(r), r->bytes, r->name);
}

/* --- what is known --- */

const struct run_facts *runfacts_get(struct runfacts *rf, const struct run *r)
{
    const struct run_facts *f = NULL;
    if (!rf)
        return NULL;
    pthread_mutex_lock(&rf->lock);
    struct runfacts_entry *e = *place_of(rf, r);
    if (e && e->facts) {
        e->used = ++rf->uses;
        f = e->facts;
        atomic_fetch_add(&((struct run_facts *)f)->refs, 1);
    }
    pthread_mutex_unlock(&rf->lock);
    return f;
}

void runfacts_put(struct runfacts *rf, const struct run *r, const struct run_facts *f)
{
    pthread_mutex_lock(&rf->lock);
    struct runfacts_entry *e = entry_of(rf, r);
    const struct run_facts *old = e->facts;
    e->facts = f;
    e->again_ns = f->passing ? xp_now_ns() + RUNFACTS_AGAIN_NS : 0;
    e->used = ++rf->uses;
    pthread_mutex_unlock(&rf->lock);
    run_facts_unref(old);
    atomic_fetch_add(&rf->version, 1);
}

void runfacts_put_off(struct runfacts *rf, const struct run *r)
{
    pthread_mutex_lock(&rf->lock);
    entry_of(rf, r)->again_ns = xp_now_ns() + RUNFACTS_AGAIN_NS;
    pthread_mutex_unlock(&rf->lock);
}

static bool wants(struct runfacts *rf, const struct run *r)
{
    const struct runfacts_entry *e = *place_of(rf, r);
    return r->n_hosts && (!e || ((!e->facts || e->facts->passing) && xp_now_ns() >= e->again_ns));
}

/* Whether a report tells more than what is known; f: what it tells. */
static bool is_better(struct runfacts *rf, const struct run *r, const struct run_facts *f)
{
    pthread_mutex_lock(&rf->lock);
    const struct runfacts_entry *e = *place_of(rf, r);
    const struct run_facts *old = e ? e->facts : NULL;
    bool better = !old || old->problem || (old->missing && (!f->missing || old->passing));
    pthread_mutex_unlock(&rf->lock);
    return r->n_hosts && better;
}

/* Whether what is known may be better than nothing; before a report is read. */
static bool may_be_better(struct runfacts *rf, const struct run *r)
{
    pthread_mutex_lock(&rf->lock);
    const struct runfacts_entry *e = *place_of(rf, r);
    bool may = !e || !e->facts || e->facts->problem || e->facts->missing;
    pthread_mutex_unlock(&rf->lock);
    return r->n_hosts && may;
}

bool runfacts_wants(struct runfacts *rf, const struct run *r)
{
    pthread_mutex_lock(&rf->lock);
    bool v = wants(rf, r);
    pthread_mutex_unlock(&rf->lock);
    return v;
}

uint64_t runfacts_version(const struct runfacts *rf)
{
    return rf ? atomic_load(&rf->version) : 0;
}

uint64_t runfacts_limit(const struct runfacts *rf)
{
    return rf ? rf->limit : 0;
}

/* --- who asks --- */

void runfacts_opened(struct runfacts *rf, const struct project *p, const struct run *r, bool all)
{
    /* Profiles of many hosts are not kept when a report was made: they would be read again. */
    bool many = r->n_hosts >= RUNFACTS_MANY && r->bytes > RUNFACTS_MANY_BYTES;
    if (!rf || !rf->limit || run_is_joined(xp_span_str(r->name)) ||
        ((!all || many) && r->bytes > rf->limit) || pthread_mutex_trylock(&rf->lock) != 0)
        return;
    bool queued = rf->stopping || rf->n_queue == RUNFACTS_QUEUE_MAX || !wants(rf, r);
    for (size_t i = 0; i < rf->n_queue && !queued; i++)
        queued = rf->queue[i].run == r || run_id(rf->queue[i].run) == run_id(r);
    if (!queued)
        rf->queue[rf->n_queue++] = (struct runfacts_wish){project_ref(p), run_ref(r)};
    pthread_mutex_unlock(&rf->lock);
}

static void inflate(struct xp_span body, struct xp_buf *b)
{
    struct xp_gunzip *g = xp_gunzip_new(body);
    uint8_t piece[4096];
    size_t got = 1;
    while (got && !b->failed) {
        if (xp_gunzip_read(g, piece, sizeof piece, &got) != XP_OK)
            break;
        xp_buf_add(b, piece, got);
    }
    xp_gunzip_free(g);
}

const struct run_facts *runfacts_read(struct xp_span body, bool gzip)
{
    struct xp_buf b;
    xp_buf_init(&b, REPORT_BYTES_MAX);
    if (gzip)
        inflate(body, &b);
    const struct run_facts *f = run_facts_parse(gzip ? xp_buf_all(&b) : body);
    xp_buf_fini(&b);
    return f;
}

void runfacts_told(struct runfacts *rf, const struct run *r, struct xp_span body, bool gzip)
{
    const struct run_facts *f = rf && may_be_better(rf, r) ? runfacts_read(body, gzip) : NULL;
    if (f && is_better(rf, r, f))
        runfacts_put(rf, r, f);
    else
        run_facts_unref(f);
}

void runfacts_listed(struct runfacts *rf, const struct project *p)
{
    struct runfacts_place *place = NULL;
    const struct project *old = NULL;
    if (!rf || !rf->limit)
        return;
    pthread_mutex_lock(&rf->lock);
    for (size_t i = 0; i < RUNFACTS_PROJECTS; i++) {
        struct runfacts_place *at = &rf->places[i];
        if (at->project && at->project->runs == p->runs) {
            place = at;
            break;
        }
        if (!place || at->wanted_ns < place->wanted_ns)
            place = at;
    }
    if (place->project != p && !rf->stopping) {
        old = place->project;
        *place = (struct runfacts_place){.project = project_ref(p)};
    }
    place->wanted_ns = xp_now_ns();
    pthread_mutex_unlock(&rf->lock);
    project_unref(old);
}

/* --- the file --- */

static void take_entry(struct runfacts *rf, json_t *j)
{
    const char *id = json_string_value(json_object_get(j, "id"));
    const char *name = json_string_value(json_object_get(j, "run"));
    json_int_t bytes = json_integer_value(json_object_get(j, "bytes"));
    char *end = NULL;
    uint64_t v = id ? strtoull(id, &end, 16) : 0;
    if (!end || *end || !name || bytes < 0 || rf->n == RUNFACTS_MAX)
        return;
    const struct run_facts *f = run_facts_of_json(json_object_get(j, "facts"));
    if (f)
        entry_add(rf, v, (uint64_t)bytes, name)->facts = f;
}

void runfacts_load(struct runfacts *rf)
{
    struct stat st;
    if (stat(rf->path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
        (size_t)st.st_size > RUNFACTS_FILE_MAX)
        return;
    json_t *j = json_load_file(rf->path, 0, NULL), *runs = json_object_get(j, "runs"), *one;
    const char *version = json_string_value(json_object_get(j, "version"));
    size_t i;
    bool ours = json_integer_value(json_object_get(j, "format")) == FORMAT && version &&
                strcmp(version, rf->app->version) == 0; /* another may reckon otherwise */
    pthread_mutex_lock(&rf->lock);
    if (ours)
        json_array_foreach(runs, i, one) take_entry(rf, one);
    pthread_mutex_unlock(&rf->lock);
    json_decref(j);
}

static json_t *all_entries(struct runfacts *rf)
{
    json_t *runs = json_array();
    char id[20];
    pthread_mutex_lock(&rf->lock);
    for (size_t i = 0; i < RUNFACTS_BUCKETS; i++)
        for (const struct runfacts_entry *e = rf->buckets[i]; e; e = e->next) {
            /* NULL: it is no UTF-8 */
            json_t *name = e->facts && !e->facts->passing ? json_string(e->name) : NULL;
            if (!name)
                continue;
            snprintf(id, sizeof id, "%016" PRIx64, e->id);
            json_array_append_new(runs, json_pack("{s:s,s:o,s:I,s:o}", "id", id, "run", name,
                                                  "bytes", (json_int_t)e->bytes, "facts",
                                                  run_facts_to_json(e->facts)));
        }
    pthread_mutex_unlock(&rf->lock);
    return runs;
}

/* Is it the root, or below it? */
static bool is_below(const char *dir, const char *root)
{
    char *d = realpath(dir, NULL), *r = realpath(root, NULL);
    size_t n = r ? strlen(r) : 0;
    bool below = d && r && strncmp(d, r, n) == 0 && (d[n] == '/' || !d[n] || r[n - 1] == '/');
    free(d);
    free(r);
    return below;
}

/* Nothing is written beside profiles, of whichever project. */
static enum xp_status check_dir(const struct app *app, const char *dir, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    size_t n = 0;
    const struct project **all =
        app->projects ? projects_list(app->projects, &who_local, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < all[i]->n_roots && status == XP_OK; k++)
            if (is_below(dir, all[i]->roots[k]))
                status = xp_fail(err, XP_BAD_REQUEST, 0,
                                 "%.100s lies in %.100s: nothing is written beside profiles", dir,
                                 all[i]->roots[k]);
        project_unref(all[i]);
    }
    free(all);
    return status;
}

/* Also now: the table of projects may have changed. */
static bool may_write(struct runfacts *rf)
{
    struct xp_error err;
    char *dir = must(strndup(rf->path, (size_t)(strrchr(rf->path, '/') - rf->path)));
    bool shut = check_dir(rf->app, dir, &err) != XP_OK;
    if (shut && !rf->shut)
        xp_log(XP_LOG_WARN, "figures", "%s", err.text);
    rf->shut = shut;
    free(dir);
    return !shut;
}

/* Others may write to the directory, too: no file or link of theirs is written to. */
static bool write_part(const json_t *j, const char *part)
{
    unlink(part); /* of a process that ended amidst */
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = json_dumpfd(j, fd, JSON_COMPACT) == 0;
    return close(fd) == 0 && ok;
}

void runfacts_save(struct runfacts *rf)
{
    uint64_t version = runfacts_version(rf);
    char *part;
    if (!rf->path || version == rf->saved_version)
        return;
    rf->saved_version = version;
    rf->saved_ns = xp_now_ns();
    if (!may_write(rf))
        return;
    json_t *j = json_pack("{s:i,s:s,s:o}", "format", FORMAT, "version", rf->app->version, "runs",
                          all_entries(rf));
    XP_ASSERT(j && asprintf(&part, "%s.%d.part", rf->path, (int)getpid()) > 0);
    if (!write_part(j, part) || rename(part, rf->path) != 0) {
        xp_log(XP_LOG_WARN, "figures", "%s: %s", rf->path, strerror(errno));
        unlink(part);
    }
    free(part);
    json_decref(j);
}

static enum xp_status use_dir(struct runfacts *rf, const char *dir, struct xp_error *err)
{
    struct stat st;
    XP_TRY(check_dir(rf->app, dir, err));
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return xp_fail(err, XP_BAD_REQUEST, 0, "%.200s is no directory", dir);
    if (access(dir, W_OK | X_OK) != 0)
        return xp_fail(err, XP_DENIED, 0, "nothing can be written to %.200s", dir);
    XP_ASSERT(asprintf(&rf->path, "%s/run-facts.json", dir) > 0);
    runfacts_load(rf);
    return XP_OK;
}

/* --- life --- */

enum xp_status runfacts_new(const struct runfacts_config *config, struct runfacts **out,
                            struct xp_error *err)
{
    struct runfacts *rf = must(calloc(1, sizeof *rf));
    rf->app = config->app;
    rf->limit = config->limit;
    pthread_mutex_init(&rf->lock, NULL);
    if (config->dir) {
        enum xp_status status = use_dir(rf, config->dir, err);
        if (status != XP_OK) {
            runfacts_free(rf);
            return status;
        }
    }
    *out = rf;
    return XP_OK;
}

void runfacts_start(struct runfacts *rf)
{
    rf->ticker = xp_ticker_new(RUNFACTS_TICK_MS, runfacts_turn, rf);
}

void runfacts_stop(struct runfacts *rf)
{
    if (!rf)
        return;
    pthread_mutex_lock(&rf->lock);
    rf->stopping = true;
    pthread_mutex_unlock(&rf->lock);
    xp_ticker_free(rf->ticker);
    rf->ticker = NULL;
}

void runfacts_free(struct runfacts *rf)
{
    if (!rf)
        return;
    runfacts_stop(rf);
    runfacts_save(rf);
    runfacts_forget_wishes(rf);
    for (size_t i = 0; i < RUNFACTS_BUCKETS; i++)
        while (rf->buckets[i]) {
            struct runfacts_entry *e = rf->buckets[i];
            rf->buckets[i] = e->next;
            entry_free(e);
        }
    pthread_mutex_destroy(&rf->lock);
    free(rf->path);
    free(rf);
}
