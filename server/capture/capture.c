#include "server/capture/capture_int.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/auth/secret.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "server/runs.h"

#define LIST_PAGES_MAX 32 /* of a run's folder */
#define NAMES_MAX 20      /* tried for a run that gets its name from the time */

/* --- life --- */

static char *copy_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    XP_ASSERT(copy || !text);
    return copy;
}

/* What a target calls the folder of the runs: on this machine, or in the bucket. */
static char *repository_of(const char *root, bool pull)
{
    char real[PATH_MAX], *text = NULL;
    const char *at = pull && realpath(root, real) ? real : root;
    size_t n = strlen(at);
    while (n > 1 && at[n - 1] == '/')
        n--;
    XP_ASSERT(asprintf(&text, "%.*s/plugins/profile", (int)n, at) > 0);
    return text;
}

static enum xp_status open_root(struct captures *c, const struct project *p, struct xp_error *err)
{
    struct xp_store *store = p->stores[0];
    if (xp_store_is_file(store)) {
        c->reason = copy_text("profiles are read from one file here: captures need a directory or "
                              "a bucket (--logdir)");
        return XP_OK;
    }
    c->pull = !xp_store_is_remote(store);
    if (c->pull)
        XP_TRY(xp_store_open_dir_rw(p->roots[0], &c->own, err));
    c->store = c->pull ? c->own : store;
    c->repository = repository_of(p->roots[0], c->pull);
    c->project = project_ref(p);
    return XP_OK;
}

static enum xp_status set_up(struct captures *c, const struct captures_config *config,
                             struct xp_error *err)
{
    uint64_t salt;
    XP_TRY(target_parse_all(config->targets, CAPTURE_TARGETS_MAX, &c->targets, &c->n, err));
    c->rates = calloc(c->n + 1, sizeof *c->rates);
    c->sessions = calloc(c->n + 1, sizeof *c->sessions);
    XP_ASSERT(c->rates && c->sessions);
    xp_secret_random((uint8_t *)&salt, sizeof salt);
    c->version = salt | 1;
    if (c->n == 0)
        c->reason = copy_text("no workload is registered: start xprofd with --target "
                              "[NAME=]HOST:PORT, once for each profiler server");
    else if (!config->project)
        c->reason = copy_text("there are several projects and none is the default one, which "
                              "targets belong to: say --default-project");
    else
        XP_TRY(open_root(c, config->project, err));
    if (!c->reason)
        c->net = net_client_open();
    return XP_OK;
}

enum xp_status captures_new(const struct captures_config *config, struct captures **out,
                            struct xp_error *err)
{
    pthread_condattr_t monotonic;
    struct captures *c = calloc(1, sizeof *c);
    XP_ASSERT(c);
    c->changed = config->changed;
    c->ctx = config->ctx;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    enum xp_status status = set_up(c, config, err);
    if (status == XP_OK)
        *out = c;
    else
        captures_free(c);
    return status;
}

void captures_stop(struct captures *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    for (struct capture *k = c->first; k; k = k->next) {
        k->end = k->drop = true;
        pthread_cond_signal(&k->wake);
    }
    pthread_mutex_unlock(&c->lock);
}

static void capture_free(struct capture *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->targets[i].message);
    pthread_cond_destroy(&k->wake);
    free(k->targets);
    free(k->options);
    free(k->by);
    free(k);
}

void captures_free(struct captures *c)
{
    if (!c)
        return;
    captures_stop(c);
    pthread_mutex_lock(&c->lock);
    while (c->threads)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
    while (c->first) {
        struct capture *k = c->first;
        c->first = k->next;
        capture_free(k);
    }
    net_client_close(c->net);
    for (size_t i = 0; i < c->n; i++)
        session_over(&c->sessions[i]);
    xp_store_free(c->own);
    project_unref(c->project);
    pthread_cond_destroy(&c->idle);
    pthread_mutex_destroy(&c->lock);
    free(c->repository);
    free(c->reason);
    free(c->sessions);
    free(c->rates);
    free(c->targets);
    free(c);
}

/* --- bricks --- */

void captures_tell(struct captures *c)
{
    atomic_fetch_add(&c->version, 1);
    if (c->changed)
        c->changed(c->ctx, false);
}

void captures_tell_runs(struct captures *c)
{
    run_index_poke(c->project->runs);
    atomic_fetch_add(&c->version, 1);
    if (c->changed)
        c->changed(c->ctx, true);
}

uint64_t captures_version(const struct captures *c)
{
    return atomic_load(&c->version);
}

const char *captures_reason(const struct captures *c, const struct project *project)
{
    if (c->reason || !c->project)
        return c->reason;
    if (strcmp(project->name, c->project->name) != 0)
        return "the registered workloads (--target) are of another project, the default one";
    return strcmp(project->roots[0], c->project->roots[0]) == 0
               ? NULL
               : "the project's profiles lie elsewhere since its roots were changed: restart this "
                 "xprofd to capture into the new ones";
}

bool captures_have_targets(const struct captures *c)
{
    return c && c->n > 0;
}

bool captures_thread(struct captures *c, void *(*fn)(void *arg), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, was;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &was); /* signals are for main */
    bool made = pthread_create(&thread, &attr, fn, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    pthread_attr_destroy(&attr);
    c->threads += made;
    return made;
}

void captures_thread_over(struct captures *c)
{
    c->threads--;
    pthread_cond_broadcast(&c->idle);
}

void captures_wait(struct captures *c, pthread_cond_t *wake, uint64_t until_ns)
{
    struct timespec at = {(time_t)(until_ns / UINT64_C(1000000000)),
                          (long)(until_ns % UINT64_C(1000000000))};
    if (until_ns == UINT64_MAX)
        pthread_cond_wait(wake, &c->lock);
    else
        pthread_cond_timedwait(wake, &c->lock, &at);
}

void capture_key(const char *run, const char *name, char key[CAPTURE_KEY_MAX])
{
    snprintf(key, CAPTURE_KEY_MAX, FOLDER "%s/%s" SUFFIX, run, name);
}

void capture_say(struct capture_target *t, const struct target_verdict *v)
{
    free(t->message);
    t->message = v->message[0] ? copy_text(v->message) : NULL;
    t->outcome = v->outcome;
    t->hint = v->hint;
}

struct capture *capture_find(const struct captures *c, struct xp_span id)
{
    for (struct capture *k = c->first; k; k = k->next)
        if (xp_span_eq(xp_span_str(k->id), id))
            return k;
    return NULL;
}

static enum xp_status fail_no_capture(struct xp_error *err)
{
    return xp_fail(err, XP_NOT_FOUND, 0,
                   "there is no capture of that id; the last %d are known, of this process",
                   CAPTURES_KEPT);
}

enum xp_status captures_write_one(struct captures *c, struct xp_span id, struct xp_json *j,
                                  struct xp_error *err)
{
    pthread_mutex_lock(&c->lock);
    const struct capture *k = capture_find(c, id);
    if (k)
        capture_write(k, true, j);
    pthread_mutex_unlock(&c->lock);
    return k ? XP_OK : fail_no_capture(err);
}

void captures_name(struct captures *c, struct xp_span id, char *text, size_t n)
{
    pthread_mutex_lock(&c->lock);
    const struct capture *k = capture_find(c, id);
    size_t at = (size_t)snprintf(text, n, "%s into %s", k ? k->id : "", k ? k->run : "");
    for (size_t i = 0; k && i < k->n && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s%s", i ? ", " : ": ",
                               c->targets[k->targets[i].target].name);
    pthread_mutex_unlock(&c->lock);
}

enum xp_status captures_end(struct captures *c, struct xp_span id, bool drop, struct xp_error *err)
{
    pthread_mutex_lock(&c->lock);
    struct capture *k = capture_find(c, id);
    if (k && k->phase != PHASE_DONE) {
        k->end = true;
        k->drop |= drop;
        pthread_cond_signal(&k->wake);
    }
    pthread_mutex_unlock(&c->lock);
    return k ? XP_OK : fail_no_capture(err);
}

void captures_stats(struct captures *c, struct captures_stats *st)
{
    pthread_mutex_lock(&c->lock);
    *st = c->stats;
    st->running = c->running;
    st->continuous = 0;
    for (size_t i = 0; i < c->n; i++)
        st->continuous += c->sessions[i].runs;
    pthread_mutex_unlock(&c->lock);
}

/* --- a new one --- */

static enum xp_status find_target(const struct captures *c, const char *name, size_t *at,
                                  struct xp_error *err)
{
    for (*at = 0; *at < c->n; ++*at)
        if (!strcmp(c->targets[*at].name, name))
            return XP_OK;
    return xp_fail(err, XP_NOT_FOUND, 0,
                   "\"%.80s\" is no registered target: they are what --target says", name);
}

static enum xp_status add_target(struct captures *c, struct capture *k, const char *name,
                                 struct xp_error *err)
{
    struct capture_target *t = &k->targets[k->n];
    *t = (struct capture_target){.grpc_status = -1, .hint = ""};
    XP_TRY(find_target(c, name, &t->target, err));
    for (size_t i = 0; i < k->n; i++)
        if (k->targets[i].target == t->target)
            return xp_fail(err, XP_BAD_REQUEST, 0, "\"%.80s\" is named twice", name);
    k->n++;
    return XP_OK;
}

static struct capture *capture_new(struct captures *c, const struct capture_wish *wish,
                                   enum capture_kind kind)
{
    uint8_t id[CAPTURE_ID_N / 2];
    pthread_condattr_t monotonic;
    struct capture *k = calloc(1, sizeof *k);
    XP_ASSERT(k);
    k->c = c;
    k->kind = kind;
    xp_secret_random(id, sizeof id);
    xp_hex(id, sizeof id, k->id);
    k->duration_ms = wish->duration_ms;
    k->delay_ms = wish->delay_ms;
    k->levels = wish->levels;
    k->by = copy_text(wish->by);
    k->n_options = wish->n_options;
    k->options = calloc(wish->n_options + 1, sizeof *k->options);
    k->targets = calloc(c->n + 1, sizeof *k->targets);
    XP_ASSERT(k->options && k->targets);
    if (wish->n_options)
        memcpy(k->options, wish->options, wish->n_options * sizeof *k->options);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return k;
}

/* As the stock client names runs, and as the list of runs reads them: local time. */
static void name_by_time(char run[TARGET_RUN_MAX + 1], int again)
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    size_t n = strftime(run, TARGET_RUN_MAX, "%Y_%m_%d_%H_%M_%S", &tm);
    if (again)
        snprintf(run + n, TARGET_RUN_MAX - n, "_%d", again + 1);
}

/* Whether an object of the run's folder is a profile of that target, in whatever form. */
static bool is_profile_of(struct xp_span object, const char *name)
{
    static const char *const suffixes[] = {SUFFIX, SUFFIX ".gz", ".xplane.riegeli"};
    struct xp_span n = xp_span_str(name);
    if (!xp_span_starts(object, n))
        return false;
    object = xp_span_of(object.p + n.n, object.n - n.n);
    for (size_t i = 0; i < 3; i++)
        if (xp_span_eq(object, xp_span_str(suffixes[i])))
            return true;
    return false;
}

static enum xp_status check_object(const struct captures *c, const struct capture *k,
                                   struct xp_span object, struct xp_error *err)
{
    for (size_t i = 0; i < k->n; i++) {
        const char *name = c->targets[k->targets[i].target].name;
        if (is_profile_of(object, name))
            return xp_fail(err, XP_CONFLICT, 0,
                           "run \"%.80s\" has a profile of %.80s already, and nothing is "
                           "overwritten: choose another name",
                           k->run, name);
    }
    return XP_OK;
}

/* Reads the run's folder, which also tells before a long window whether it can be read. */
static enum xp_status check_folder(struct captures *c, const struct capture *k,
                                   struct xp_error *err)
{
    char prefix[CAPTURE_KEY_MAX], *token = NULL;
    enum xp_status status = XP_OK;
    snprintf(prefix, sizeof prefix, FOLDER "%s/", k->run);
    for (int i = 0; i < LIST_PAGES_MAX && status == XP_OK && (i == 0 || token); i++) {
        struct xp_store_page page = {0};
        status = xp_store_list(c->store, prefix, true, token, 1000, &page, err);
        free(token);
        token = NULL;
        if (status != XP_OK)
            break;
        for (size_t o = 0; o < page.n && status == XP_OK; o++) {
            struct xp_span key = xp_span_str(page.items[o].key);
            size_t n = strlen(prefix) < key.n ? strlen(prefix) : key.n;
            status = check_object(c, k, xp_span_of(key.p + n, key.n - n), err);
        }
        token = copy_text(page.next);
        xp_store_page_fini(&page);
    }
    free(token);
    return status;
}

/* Locked. over: by one that is over, too. */
static bool run_is_taken(const struct captures *c, const struct capture *k, bool over)
{
    for (const struct capture *o = c->first; o; o = o->next)
        if ((over || o->phase != PHASE_DONE) && !strcmp(o->run, k->run))
            return true;
    return false;
}

static enum xp_status choose_run(struct captures *c, struct capture *k, const char *run,
                                 struct xp_error *err)
{
    if (run) {
        snprintf(k->run, sizeof k->run, "%s", run);
        return check_folder(c, k, err);
    }
    enum xp_status status = XP_CONFLICT;
    for (int i = 0; i < NAMES_MAX && status == XP_CONFLICT; i++) {
        name_by_time(k->run, i);
        pthread_mutex_lock(&c->lock);
        bool taken = run_is_taken(c, k, true); /* what began apart is not put together */
        pthread_mutex_unlock(&c->lock);
        status = taken ? xp_fail(err, XP_CONFLICT, 0, "too many captures began this second")
                       : check_folder(c, k, err);
    }
    return status;
}

/* Locked. */
static enum xp_status check_target(const struct captures *c, const struct capture *k, size_t target,
                                   struct xp_error *err)
{
    const char *name = c->targets[target].name;
    for (const struct capture *o = c->first; o; o = o->next)
        for (size_t i = 0; o->phase != PHASE_DONE && i < o->n; i++)
            if (o->targets[i].target == target && o->targets[i].phase != PHASE_DONE)
                return xp_fail(err, XP_CONFLICT, 0,
                               "%.80s is being captured already: wait for that, or end it", name);
    if (k->kind == CAPTURE_ON_DEMAND && (c->sessions[target].runs || c->sessions[target].changing))
        return xp_fail(err, XP_CONFLICT, 0,
                       "%.80s profiles continuously, and a process has one session only: take a "
                       "snapshot, or stop that first",
                       name);
    return XP_OK;
}

/* Locked. */
static enum xp_status admit(struct captures *c, const struct capture *k, struct xp_error *err)
{
    if (c->stopping)
        return xp_fail(err, XP_BUSY, 0, "the server is about to end");
    if (c->running >= CAPTURES_AT_ONCE)
        return xp_fail(err, XP_BUSY, 0, "%d captures run already, no more are made at once",
                       CAPTURES_AT_ONCE);
    if (run_is_taken(c, k, false))
        return xp_fail(err, XP_CONFLICT, 0,
                       "a capture into run \"%.80s\" is under way: choose another name", k->run);
    for (size_t i = 0; i < k->n; i++)
        XP_TRY(check_target(c, k, k->targets[i].target, err));
    return XP_OK;
}

/* Locked: of those that are over, the oldest. */
static void forget_one(struct captures *c)
{
    struct capture **oldest = NULL;
    for (struct capture **at = &c->first; *at; at = &(*at)->next)
        if ((*at)->phase == PHASE_DONE)
            oldest = at;
    if (!oldest)
        return;
    struct capture *k = *oldest;
    *oldest = k->next;
    c->kept--;
    capture_free(k);
}

/* *taken: it has not begun as another one has begun into a run of that name. */
static enum xp_status begin(struct captures *c, struct capture *k, char id[CAPTURE_ID_N + 1],
                            bool *taken, struct xp_error *err)
{
    pthread_mutex_lock(&c->lock);
    *taken = run_is_taken(c, k, false);
    enum xp_status status = admit(c, k, err);
    k->began_ms = xp_wall_ms();
    k->ends_ms = k->began_ms + k->delay_ms + k->duration_ms;
    if (status == XP_OK && !captures_thread(c, capture_run, k))
        status = xp_fail(err, XP_BUSY, 0, "there is no thread for it");
    if (status == XP_OK) {
        memcpy(id, k->id, sizeof k->id);
        k->next = c->first;
        c->first = k;
        c->running++;
        if (c->kept++ == CAPTURES_KEPT)
            forget_one(c);
        captures_tell(c);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* The capture moves, and begins; after an error it is gone. The look at the folder takes time, in
 * which another one may take the name: one that nobody has wished for is chosen again. */
static enum xp_status begin_into(struct captures *c, struct capture *k, const char *run,
                                 char id[CAPTURE_ID_N + 1], struct xp_error *err)
{
    enum xp_status status;
    bool taken;
    int tries = 0;
    do {
        taken = false;
        status = choose_run(c, k, run, err);
        if (status == XP_OK)
            status = begin(c, k, id, &taken, err);
    } while (status == XP_CONFLICT && taken && !run && ++tries < NAMES_MAX);
    if (status != XP_OK)
        capture_free(k);
    return status;
}

enum xp_status captures_begin(struct captures *c, const struct capture_wish *wish,
                              char id[CAPTURE_ID_N + 1], struct xp_error *err)
{
    struct capture *k = capture_new(c, wish, CAPTURE_ON_DEMAND);
    enum xp_status status = XP_OK;
    for (size_t i = 0; i < wish->n && status == XP_OK; i++)
        status = add_target(c, k, wish->targets[i], err);
    if (status == XP_OK) { /* what is known needs no look at the store */
        pthread_mutex_lock(&c->lock);
        status = admit(c, k, err);
        pthread_mutex_unlock(&c->lock);
    }
    if (status == XP_OK)
        return begin_into(c, k, wish->run, id, err);
    capture_free(k);
    return status;
}

/* --- snapshots --- */

static bool has_all(const struct capture *have, const struct capture *want)
{
    for (size_t i = 0; i < want->n; i++) {
        size_t j = 0;
        while (j < have->n && have->targets[j].target != want->targets[i].target)
            j++;
        if (j == have->n)
            return false;
    }
    return true;
}

/* One under way that has all that is asked for. */
static bool shared(struct captures *c, const struct capture *k, char id[CAPTURE_ID_N + 1])
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (const struct capture *o = c->first; o && !found; o = o->next)
        if (o->phase != PHASE_DONE && o->kind == CAPTURE_SNAPSHOT && has_all(o, k)) {
            memcpy(id, o->id, sizeof o->id);
            found = true;
        }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void add_all_that_run(struct captures *c, struct capture *k)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++)
        if (c->sessions[i].runs)
            k->targets[k->n++] =
                (struct capture_target){.target = i, .grpc_status = -1, .hint = ""};
    pthread_mutex_unlock(&c->lock);
}

enum xp_status captures_snapshot(struct captures *c, const struct capture_wish *wish,
                                 char id[CAPTURE_ID_N + 1], struct xp_error *err)
{
    struct capture *k = capture_new(c, wish, CAPTURE_SNAPSHOT);
    enum xp_status status = XP_OK;
    for (size_t i = 0; i < wish->n && status == XP_OK; i++)
        status = add_target(c, k, wish->targets[i], err);
    if (!wish->n)
        add_all_that_run(c, k);
    if (status == XP_OK && !k->n)
        status = xp_fail(err, XP_CONFLICT, 0,
                         "no target profiles continuously, as far as is known here: start that, "
                         "or name targets");
    if (status == XP_OK && shared(c, k, id)) {
        capture_free(k);
        return XP_OK;
    }
    if (status == XP_OK)
        return begin_into(c, k, wish->run, id, err);
    capture_free(k);
    return status;
}
