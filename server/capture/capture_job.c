/* One capture: rounds of calls to its targets, and what comes of them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "server/capture/capture_int.h"

#define MS UINT64_C(1000000)
#define REQUEST_MAX ((size_t)1 << 18)
#define HELLO_MS 4000
#define TERMINATE_MS 5000
#define LEAD_MS 500 /* between the calls and the window, so that all targets begin together */
#define ATTEMPTS_MAX 4
#define BUSY_MIN_MS 500 /* between attempts: the window, but within these */
#define BUSY_MAX_MS 10000
#define BUSY_PAUSE_MS 100 /* a server notices late that its session is over */
#define END_AFTER_MS 50   /* a window that has not begun is ended when it has */
#define WRITE_DEADLINE_MS 60000
#define PULL_DEADLINE_MS 600000
#define SNAPSHOT_DEADLINE_MS 120000

/* A profile that passes 2 GiB on its way to us ends the workload. */
#define PULL_SIZE_MAX (UINT64_C(3) << 29)
#define PROBE_MS 150
#define PROBE_AGAIN_MS 450
#define PROBE_FROM_MS 5000 /* longer windows are always tried out */

enum round { ROUND_HELLO, ROUND_PROBE, ROUND_PROBE_AGAIN, ROUND_RECORD };

struct job;

/* A target, as long as the capture runs. */
struct flight {
    struct job *job;
    struct capture_target *t;
    const struct target *target;
    struct grpc_call *call; /* under way, or NULL */
    bool over;              /* reply is one that nobody has looked at */
    bool terminated, closed;
    struct grpc_reply reply;
    uint64_t due_ns;         /* when to call; 0: never */
    uint64_t from_ns, to_ns; /* the window */
    uint64_t probed[2];      /* bytes of the probes */
    struct pull pull;
    char key[CAPTURE_KEY_MAX];
};

struct job {
    struct captures *c;
    struct capture *k;
    struct flight *v;
    enum round round;
    size_t terminates; /* calls under way */
    uint64_t start_wall_ns;
    bool wrote; /* a folder may have been made */
};

static bool is_alive(const struct flight *f)
{
    return f->t->phase != PHASE_DONE;
}

static void settle(struct flight *f, const struct target_verdict *v)
{
    struct captures *c = f->job->c;
    capture_say(f->t, v);
    f->t->phase = PHASE_DONE;
    f->due_ns = 0;
    c->stats.targets[v->outcome]++;
    captures_tell(c);
}

static void settle_plain(struct flight *f, enum outcome o, const char *message, const char *hint)
{
    struct target_verdict v = {.outcome = o, .hint = hint};
    snprintf(v.message, sizeof v.message, "%s", message);
    settle(f, &v);
}

/* --- calls --- */

static bool on_room(void *ctx, size_t n)
{
    struct flight *f = ctx;
    return pull_room(&f->pull, n);
}

static void on_profile(void *ctx, struct xp_span bytes)
{
    struct flight *f = ctx;
    pull_take(&f->pull, bytes);
}

static void on_done(void *ctx, const struct grpc_reply *reply)
{
    struct flight *f = ctx;
    struct captures *c = f->job->c;
    pthread_mutex_lock(&c->lock);
    f->reply = *reply;
    f->call = NULL;
    f->over = true;
    pthread_cond_signal(&f->job->k->wake);
    pthread_mutex_unlock(&c->lock);
}

static uint32_t window_ms(const struct job *j)
{
    return j->round == ROUND_PROBE         ? PROBE_MS
           : j->round == ROUND_PROBE_AGAIN ? PROBE_AGAIN_MS
                                           : j->k->duration_ms;
}

static uint32_t deadline_ms(const struct job *j)
{
    uint32_t least = j->c->pull ? PULL_DEADLINE_MS : WRITE_DEADLINE_MS;
    uint32_t window = 2 * window_ms(j);
    if (j->round == ROUND_HELLO)
        return HELLO_MS;
    if (j->k->kind == CAPTURE_SNAPSHOT)
        return j->c->pull ? PULL_DEADLINE_MS : SNAPSHOT_DEADLINE_MS;
    if (j->round != ROUND_RECORD)
        least = WRITE_DEADLINE_MS;
    return (window > least ? window : least) + LEAD_MS;
}

/* A probe is a session of its own. An old target writes it to a folder of that name, which no list
 * shows: unwrite_probe. */
static void session_name(const struct job *j, char session[TARGET_RUN_MAX + 1])
{
    if (j->round == ROUND_RECORD)
        snprintf(session, TARGET_RUN_MAX + 1, "%s", j->k->run);
    else
        snprintf(session, TARGET_RUN_MAX + 1, ".probe-%s-%d", j->k->id, (int)j->round);
}

static const char *put_request(const struct flight *f, uint64_t start_ns, struct xp_buf *b)
{
    const struct job *j = f->job;
    const struct capture *k = j->k;
    char session[TARGET_RUN_MAX + 1];
    if (j->round == ROUND_HELLO)
        return method_hello;
    if (k->kind == CAPTURE_SNAPSHOT) {
        target_put_snapshot(b, j->c->pull ? NULL : k->run);
        return method_snapshot;
    }
    session_name(j, session);
    target_put_profile(b, &(struct target_profile){.host = f->target->name,
                                                   .session = session,
                                                   .repository = j->c->repository,
                                                   .pull = j->c->pull,
                                                   .start_ns = start_ns,
                                                   .duration_ms = window_ms(j),
                                                   .levels = k->levels,
                                                   .options = k->options,
                                                   .n_options = k->n_options});
    return method_profile;
}

static void launch(struct flight *f)
{
    struct job *j = f->job;
    struct xp_buf b;
    uint64_t now = xp_now_ns(), wall_ns = (uint64_t)xp_wall_ms() * MS;
    bool record = j->round == ROUND_RECORD, ahead = record && j->start_wall_ns > wall_ns;
    xp_buf_init(&b, REQUEST_MAX);
    struct grpc_request r = {.address = f->target->address,
                             .method = put_request(f, ahead ? j->start_wall_ns : 0, &b),
                             .deadline_ms = deadline_ms(j),
                             .ctx = f,
                             .room_fn = record && j->c->pull ? on_room : NULL,
                             .profile_fn = record && j->c->pull ? on_profile : NULL,
                             .done = on_done};
    r.message = xp_buf_all(&b);
    f->due_ns = 0;
    f->from_ns = ahead ? now + (j->start_wall_ns - wall_ns) : now;
    f->to_ns = f->from_ns + window_ms(j) * MS;
    f->t->attempts += record;
    f->call = b.failed ? NULL : grpc_start(j->c->net, &r);
    xp_buf_fini(&b);
    if (!f->call)
        settle_plain(f, OUTCOME_FAILED, "it cannot be called", "");
}

/* --- ending early --- */

struct terminate {
    struct job *job;
};

static void on_terminated(void *ctx, const struct grpc_reply *reply)
{
    struct terminate *t = ctx;
    struct job *j = t->job;
    (void)reply; /* the call that it ends says what came of it */
    free(t);
    pthread_mutex_lock(&j->c->lock);
    j->terminates--;
    pthread_cond_signal(&j->k->wake);
    pthread_mutex_unlock(&j->c->lock);
}

static void terminate(struct flight *f)
{
    struct job *j = f->job;
    struct xp_buf b;
    struct terminate *t = malloc(sizeof *t);
    XP_ASSERT(t);
    t->job = j;
    f->terminated = true;
    xp_buf_init(&b, REQUEST_MAX);
    target_put_terminate(&b, j->k->run);
    struct grpc_request r = {.address = f->target->address,
                             .method = method_terminate,
                             .message = xp_buf_all(&b),
                             .deadline_ms = TERMINATE_MS,
                             .ctx = t,
                             .done = on_terminated};
    if (grpc_start(j->c->net, &r))
        j->terminates++;
    else
        free(t);
    xp_buf_fini(&b);
}

/* Of one that is wanted no more. The time of the next thing to do about it. */
static uint64_t end_flight(struct flight *f, uint64_t now)
{
    struct job *j = f->job;
    bool close = j->k->drop || j->round != ROUND_RECORD;
    f->due_ns = 0;
    if (f->call && close && !f->closed) {
        f->closed = true;
        grpc_cancel(f->call);
    }
    if (!f->call || close || f->terminated || j->k->kind == CAPTURE_SNAPSHOT || now >= f->to_ns)
        return UINT64_MAX; /* nothing more to do, or what was recorded is on its way */
    uint64_t at = f->from_ns + END_AFTER_MS * MS;
    if (now < at)
        return at;
    terminate(f);
    f->to_ns = now;
    return UINT64_MAX;
}

/* --- what came of a call --- */

/* Where a target was to write its profile itself. */
static void look(struct flight *f, struct target_facts *facts)
{
    struct xp_object o = {0};
    struct xp_error err;
    struct captures *c = f->job->c;
    pthread_mutex_unlock(&c->lock);
    enum xp_status status = xp_store_stat(c->store, f->key, &o, &err);
    pthread_mutex_lock(&c->lock);
    facts->looked = status == XP_OK || status == XP_NOT_FOUND;
    facts->found = status == XP_OK;
    facts->size = o.size;
    free(o.key);
}

static void keep(struct flight *f, struct target_verdict *v)
{
    struct xp_error err = {0};
    f->job->wrote = true;
    enum xp_status status = pull_finish(&f->pull, f->key, &err);
    if (status == XP_OK)
        return;
    v->outcome = OUTCOME_FAILED;
    snprintf(v->message, sizeof v->message, "%s", err.text);
    v->hint = status == XP_STALE ? "nothing is overwritten: choose another name for the run"
              : status == XP_CORRUPT
                  ? "is it a profiler server that listens on that port?"
                  : "is there room in the log directory, and may we write there?";
}

/* A file lies in the run, and is not empty. */
static void take_success(struct flight *f, uint64_t bytes)
{
    struct captures *c = f->job->c;
    struct capture *k = f->job->k;
    f->t->bytes = bytes;
    f->t->has_bytes = true;
    c->stats.bytes += bytes;
    if (k->kind == CAPTURE_ON_DEMAND && !k->end)
        c->rates[f->t->target] = bytes * 1000 / k->duration_ms;
    captures_tell_runs(c);
}

/* What came of an attempt that was refused is no part of the next one's profile. */
static void forget_pulled(struct flight *f)
{
    struct captures *c = f->job->c;
    pthread_mutex_unlock(&c->lock); /* its call is over: nobody else has it */
    pull_fini(&f->pull);
    pthread_mutex_lock(&c->lock);
}

/* True: it will be called again. */
static bool again_later(struct flight *f, const struct target_verdict *v)
{
    const struct capture *k = f->job->k;
    uint32_t wait = k->duration_ms < BUSY_MIN_MS   ? BUSY_MIN_MS
                    : k->duration_ms > BUSY_MAX_MS ? BUSY_MAX_MS
                                                   : k->duration_ms;
    if (v->outcome != OUTCOME_BUSY || k->kind == CAPTURE_SNAPSHOT || k->end ||
        f->t->attempts >= ATTEMPTS_MAX)
        return false;
    forget_pulled(f);
    capture_say(f->t, v);
    f->t->outcome = OUTCOME_NONE;
    f->t->phase = PHASE_WAITING;
    f->due_ns = xp_now_ns() + (wait + BUSY_PAUSE_MS) * MS;
    captures_tell(f->job->c);
    return true;
}

static void judge(struct flight *f, struct target_verdict *v, uint64_t *bytes)
{
    struct job *j = f->job;
    bool snapshot = j->k->kind == CAPTURE_SNAPSHOT;
    const struct grpc_reply *r = &f->reply;
    struct target_facts facts = {.call = snapshot ? CALL_SNAPSHOT : CALL_PROFILE,
                                 .reply = r,
                                 .pull = j->c->pull,
                                 .window_over = xp_now_ns() >= f->to_ns,
                                 .again = j->c->sessions[f->t->target].snapshots};
    if (r->transport == XP_OK && r->status == 0 && r->whole && !r->profile && !r->empty)
        look(f, &facts);
    target_judge(&facts, v);
    *bytes = r->profile ? r->profile_n : facts.size;
    if (v->outcome == OUTCOME_SUCCEEDED && r->profile && !j->c->pull) {
        v->outcome = OUTCOME_FAILED; /* an older server, that sends what it was not asked for */
        snprintf(v->message, sizeof v->message,
                 "it sent the profile instead of writing it to the bucket, which we do not");
        v->hint = "update jax in the workload";
    }
    if (v->outcome == OUTCOME_SUCCEEDED && r->profile) {
        keep(f, v);
        *bytes = f->pull.written;
    }
}

static void over_record(struct flight *f)
{
    struct target_verdict v = {0};
    struct captures *c = f->job->c;
    uint64_t bytes = 0;
    f->t->grpc_status = f->reply.transport == XP_OK ? f->reply.status : -1;
    judge(f, &v, &bytes);
    if (f->pull.lost && v.outcome == OUTCOME_CANCELLED)
        return; /* the one that could not be kept has said why */
    if (again_later(f, &v))
        return;
    if (v.outcome == OUTCOME_SUCCEEDED)
        take_success(f, bytes);
    if (f->job->k->kind == CAPTURE_SNAPSHOT && f->reply.status == 0)
        c->sessions[f->t->target].snapshots = true;
    if (f->job->k->kind == CAPTURE_SNAPSHOT && f->reply.status == 5)
        session_over(&c->sessions[f->t->target]);
    settle(f, &v);
}

/* Whether somebody answers is all that is asked. */
static void over_hello(struct flight *f)
{
    struct target_verdict v = {0};
    struct target_facts facts = {.call = CALL_PROFILE, .reply = &f->reply};
    target_judge(&facts, &v);
    if (f->reply.transport != XP_OK || v.outcome == OUTCOME_UNREACHABLE)
        settle(f, &v);
}

/* Removes what an old target has written of a probe, if that is this disk. */
static void unwrite_probe(const struct flight *f)
{
    struct captures *c = f->job->c;
    char session[TARGET_RUN_MAX + 1], file[TARGET_NAME_MAX + sizeof SUFFIX];
    session_name(f->job, session);
    snprintf(file, sizeof file, "%s" SUFFIX, f->target->name);
    pthread_mutex_unlock(&c->lock);
    int runs = open(c->repository, O_DIRECTORY | O_CLOEXEC);
    int folder = runs < 0 ? -1 : openat(runs, session, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        unlinkat(folder, file, 0);
        unlinkat(runs, session, AT_REMOVEDIR);
        close(folder);
    }
    if (runs >= 0)
        close(runs);
    pthread_mutex_lock(&c->lock);
}

/* A server that writes its profiles itself: how large one would be is not known, and what it does
 * with more than 2 GiB neither. */
static void over_old(struct flight *f)
{
    unwrite_probe(f);
    settle_plain(f, OUTCOME_UNSUPPORTED,
                 "its profiler server is too old to send profiles, so how large one of this window "
                 "would be cannot be told before",
                 "update jax in the workload, or take a window of 5 seconds at most");
}

static void over_probe(struct flight *f)
{
    const struct grpc_reply *r = &f->reply;
    struct target_verdict v = {0};
    struct target_facts facts = {
        .call = CALL_PROFILE, .reply = &f->reply, .pull = true, .looked = true, .found = true};
    facts.size = 1;
    if (r->transport == XP_OK && r->status == 0 && r->whole && !r->profile && !r->empty) {
        over_old(f);
        return;
    }
    target_judge(&facts, &v);
    if (v.outcome == OUTCOME_SUCCEEDED || v.outcome == OUTCOME_EMPTY) {
        f->probed[f->job->round == ROUND_PROBE_AGAIN] = f->reply.profile_n;
        return;
    }
    f->t->attempts++;
    if (again_later(f, &v))
        return;
    f->t->grpc_status = f->reply.transport == XP_OK ? f->reply.status : -1;
    settle(f, &v);
}

/* --- a round --- */

static void take_reply(struct flight *f)
{
    struct job *j = f->job;
    f->over = false;
    if (j->k->drop) {
        settle_plain(f, OUTCOME_CANCELLED, "it was ended, and nothing is kept", "");
        return;
    }
    if (j->round == ROUND_HELLO)
        over_hello(f);
    else if (j->round == ROUND_RECORD)
        over_record(f);
    else
        over_probe(f);
}

static void write_some(struct flight *f)
{
    struct xp_error err = {0};
    bool room;
    if (!f->pull.full_n)
        return;
    f->job->wrote = true;
    enum xp_status status = pull_write(&f->pull, f->key, &room, &err);
    if (f->call && room)
        grpc_resume(f->call);
    if (status == XP_OK)
        return;
    settle_plain(f, OUTCOME_FAILED, err.text,
                 status == XP_CORRUPT
                     ? "is it a profiler server that listens on that port?"
                     : "is there room in the log directory, and may we write there?");
    if (f->call)
        grpc_cancel(f->call);
}

/* The phase that it is in by now; when the next one begins. */
static uint64_t advance(struct flight *f, uint64_t now)
{
    struct job *j = f->job;
    if (!f->call || j->round != ROUND_RECORD || !is_alive(f))
        return UINT64_MAX;
    enum capture_phase phase = j->k->kind == CAPTURE_SNAPSHOT || now >= f->to_ns ? PHASE_COLLECTING
                               : now >= f->from_ns                               ? PHASE_CAPTURING
                                                                                 : PHASE_WAITING;
    if (phase != f->t->phase) {
        f->t->phase = phase;
        captures_tell(j->c);
    }
    return phase == PHASE_COLLECTING  ? UINT64_MAX
           : phase == PHASE_CAPTURING ? f->to_ns
                                      : f->from_ns;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One look at a target; when to look again. */
static uint64_t tend(struct flight *f, bool *busy)
{
    struct job *j = f->job;
    uint64_t now = xp_now_ns(), next = UINT64_MAX;
    write_some(f);
    if (f->over && is_alive(f))
        take_reply(f);
    if (is_alive(f) && f->due_ns && !j->k->end) {
        if (now >= f->due_ns)
            launch(f);
        else
            next = f->due_ns;
    }
    if (j->k->end)
        next = sooner(next, end_flight(f, now));
    next = sooner(next, advance(f, now));
    f->over &= is_alive(f);
    *busy |= f->call || f->due_ns || f->over || f->pull.full_n;
    return next;
}

/* The furthest of the targets that are not done, unless all are. */
static void advance_capture(struct job *j)
{
    enum capture_phase phase = PHASE_WAITING;
    for (size_t i = 0; i < j->k->n; i++)
        if (is_alive(&j->v[i]) && j->v[i].t->phase > phase)
            phase = j->v[i].t->phase;
    if (phase > j->k->phase)
        j->k->phase = phase;
}

/* Calls all that are alive, and waits until all have answered. */
static void run_round(struct job *j, enum round round)
{
    bool busy = true;
    j->round = round;
    for (size_t i = 0; i < j->k->n; i++)
        if (is_alive(&j->v[i]))
            j->v[i].due_ns = 1;
    while (busy || j->terminates) {
        bool seen_end = j->k->end, seen_drop = j->k->drop;
        uint64_t next = UINT64_MAX;
        busy = false;
        for (size_t i = 0; i < j->k->n; i++)
            next = sooner(next, tend(&j->v[i], &busy));
        advance_capture(j);
        /* What came while a file was written, when nobody waited for the signal. */
        bool more = j->k->end != seen_end || j->k->drop != seen_drop;
        for (size_t i = 0; i < j->k->n; i++)
            more |= j->v[i].over || j->v[i].pull.full_n;
        if ((busy || j->terminates) && !more)
            captures_wait(j->c, &j->k->wake, next);
    }
}

/* --- how long the window may be --- */

/* A rate was measured at the levels, and in the load, of another capture: it may be a reason to
 * look, and never one not to. */
static bool may_pass(const struct flight *f)
{
    const struct capture *k = f->job->k;
    uint64_t rate = f->job->c->rates[f->t->target];
    return is_alive(f) &&
           (k->duration_ms > PROBE_FROM_MS || rate > PULL_SIZE_MAX / 2 * 1000 / k->duration_ms);
}

/* The window that all bear; *who: whose it is. */
static uint32_t window_for_all(const struct job *j, bool again, const struct flight **who)
{
    uint32_t ms[2] = {PROBE_MS, again ? PROBE_AGAIN_MS : 0}, least = UINT32_MAX;
    for (size_t i = 0; i < j->k->n; i++) {
        const struct flight *f = &j->v[i];
        if (!is_alive(f) || !f->probed[0])
            continue;
        uint32_t most = target_window_for(ms, f->probed, PULL_SIZE_MAX);
        if (most < least)
            least = most, *who = f;
    }
    return least;
}

/* The answer that brings more than 2 GiB ends the workload: a short window says how much it is. */
static void bound_window(struct job *j)
{
    const struct flight *who = NULL;
    struct capture *k = j->k;
    bool probe = false;
    for (size_t i = 0; i < k->n; i++)
        probe |= may_pass(&j->v[i]);
    if (!probe)
        return;
    run_round(j, ROUND_PROBE);
    if (k->end || window_for_all(j, false, &who) >= k->duration_ms)
        return;
    run_round(j, ROUND_PROBE_AGAIN); /* what there is besides events is known then */
    uint32_t most = window_for_all(j, true, &who);
    if (k->end || most >= k->duration_ms)
        return;
    if (most < CAPTURE_MS_MIN) {
        snprintf(k->note, sizeof k->note,
                 "not captured: %s records so much that even a short window would pass 1.5 GiB, "
                 "and 2 GiB end the workload: lower the levels",
                 who->target->name);
        for (size_t i = 0; i < k->n; i++)
            if (is_alive(&j->v[i]))
                settle_plain(&j->v[i], OUTCOME_TOO_LARGE, "it would be larger than 1.5 GiB",
                             "lower the levels");
        return;
    }
    snprintf(k->note, sizeof k->note,
             "the window was shortened from %.1f s to %.1f s: of %s it would have passed 1.5 GiB, "
             "and 2 GiB end the workload",
             k->duration_ms / 1e3, most / 1e3, who->target->name);
    k->duration_ms = most;
}

/* --- from its beginning to its end --- */

static void set_up(struct job *j, struct capture *k)
{
    *j = (struct job){.c = k->c, .k = k};
    j->v = calloc(k->n, sizeof *j->v);
    XP_ASSERT(j->v);
    for (size_t i = 0; i < k->n; i++) {
        struct flight *f = &j->v[i];
        f->job = j;
        f->t = &k->targets[i];
        f->target = &k->c->targets[f->t->target];
        capture_key(k->run, f->target->name, f->key);
        pull_init(&f->pull, k->c, &k->wake);
    }
}

/* The delay passes here, so that no workload is held meanwhile. */
static void wait_for_start(struct job *j)
{
    struct capture *k = j->k;
    uint64_t until = xp_now_ns() + k->delay_ms * MS;
    k->ends_ms = xp_wall_ms() + k->delay_ms + LEAD_MS + k->duration_ms;
    captures_tell(j->c);
    while (!k->end && xp_now_ns() < until)
        captures_wait(j->c, &k->wake, until);
    j->start_wall_ns = ((uint64_t)xp_wall_ms() + LEAD_MS) * MS;
    k->ends_ms = (int64_t)(j->start_wall_ns / MS) + k->duration_ms;
}

static bool any_alive(const struct job *j)
{
    for (size_t i = 0; i < j->k->n; i++)
        if (is_alive(&j->v[i]))
            return true;
    return false;
}

static void record(struct job *j)
{
    run_round(j, ROUND_HELLO);
    if (j->k->kind == CAPTURE_ON_DEMAND) {
        if (j->c->pull && !j->k->end)
            bound_window(j);
        if (any_alive(j) && !j->k->end)
            wait_for_start(j);
    }
    if (!j->k->end)
        run_round(j, ROUND_RECORD);
    for (size_t i = 0; i < j->k->n; i++)
        if (is_alive(&j->v[i]))
            settle_plain(&j->v[i], OUTCOME_CANCELLED, "it was ended before the window began", "");
}

/* Not locked. */
static void clear(struct job *j)
{
    for (size_t i = 0; i < j->k->n; i++)
        pull_fini(&j->v[i].pull);
    if (j->wrote)
        xp_writer_clear(j->c->own, j->v[0].key);
    free(j->v);
}

static void finish(struct job *j)
{
    enum outcome v[CAPTURE_TARGETS_MAX];
    struct capture *k = j->k;
    for (size_t i = 0; i < k->n; i++)
        v[i] = k->targets[i].outcome;
    k->outcome = outcome_of_all(v, k->n, k->end);
    k->phase = PHASE_DONE;
    k->ended_ms = xp_wall_ms();
    if (k->end && !k->note[0])
        snprintf(k->note, sizeof k->note, "%s",
                 k->drop ? "ended, and what was recorded was dropped" : "ended early");
    j->c->stats.captures[k->outcome]++;
    j->c->running--;
    captures_tell_runs(j->c);
    xp_log(XP_LOG_INFO, "capture", "%s into %s: %s", k->id, k->run, outcome_text(k->outcome));
}

void *capture_run(void *ctx)
{
    struct capture *k = ctx;
    struct captures *c = k->c;
    struct job j;

    pthread_mutex_lock(&c->lock);
    set_up(&j, k);
    record(&j);
    pthread_mutex_unlock(&c->lock);
    clear(&j);
    pthread_mutex_lock(&c->lock);
    finish(&j);
    captures_thread_over(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}
