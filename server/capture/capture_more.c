/* Continuous profiling: started and stopped in targets, which keep it going on their own. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "server/capture/capture_int.h"

#define REQUEST_MAX ((size_t)1 << 18)
#define DEADLINE_MS 5000
#define ANSWER_MAX ((size_t)1 << 20)
#define THREADS_MAX 32

struct change;

/* One target that is being started or stopped. */
struct step {
    struct change *change;
    size_t target;
    bool over;
    struct grpc_reply reply;
    struct target_verdict verdict;
};

struct change {
    struct captures *c;
    bool on;
    struct target_levels levels;
    char *by;
    struct step *v;
    size_t n, under_way;
    pthread_cond_t wake;
    struct captures_heard heard;
};

void session_over(struct session *s)
{
    bool changing = s->changing;
    free(s->by);
    free(s->message);
    *s = (struct session){.changing = changing};
}

void session_say(struct session *s, const char *message)
{
    free(s->message);
    s->message = message ? strdup(message) : NULL;
}

static void on_done(void *ctx, const struct grpc_reply *reply)
{
    struct step *s = ctx;
    struct change *ch = s->change;
    pthread_mutex_lock(&ch->c->lock);
    s->reply = *reply;
    s->over = true;
    ch->under_way--;
    pthread_cond_signal(&ch->wake);
    pthread_mutex_unlock(&ch->c->lock);
}

static void call(struct step *s)
{
    struct change *ch = s->change;
    const struct target *t = &ch->c->targets[s->target];
    struct xp_buf b;
    xp_buf_init(&b, REQUEST_MAX);
    if (ch->on)
        target_put_start(&b, &(struct target_profile){.host = t->name,
                                                      .session = "continuous",
                                                      .repository = ch->c->repository,
                                                      .levels = ch->levels});
    struct grpc_request r = {.address = t->address,
                             .method = ch->on ? method_start : method_stop,
                             .message = xp_buf_all(&b),
                             .deadline_ms = DEADLINE_MS,
                             .ctx = s,
                             .done = on_done};
    if (!b.failed && grpc_start(ch->c->net, &r))
        ch->under_way++;
    else
        s->reply = (struct grpc_reply){.transport = XP_IO, .status = -1, .stage = NET_TALKING};
    xp_buf_fini(&b);
}

/* --- what came of it --- */

static void started(struct step *s)
{
    struct change *ch = s->change;
    struct session *now = &ch->c->sessions[s->target];
    if (s->verdict.outcome == OUTCOME_SUCCEEDED) {
        session_over(now);
        now->runs = true;
        now->since_ms = xp_wall_ms();
        now->device = ch->levels.device;
        now->by = ch->by ? strdup(ch->by) : NULL;
    } else if (s->reply.status == 6 && !now->runs) { /* somebody else's: it can be stopped here */
        now->runs = now->unknown = true;
        session_say(now, "it was not started here, or before this server was");
    } else if (s->reply.status == 6) {
        s->verdict.hint = now->unknown ? s->verdict.hint : "it runs already: take a snapshot of it";
    }
}

static void stopped(struct step *s)
{
    struct session *now = &s->change->c->sessions[s->target];
    bool none = s->reply.transport == XP_OK && s->reply.status == 5;
    if (none)
        s->verdict = (struct target_verdict){.outcome = OUTCOME_SUCCEEDED, .hint = ""};
    if (s->verdict.outcome == OUTCOME_SUCCEEDED) {
        session_over(now);
    } else if (now->runs) {
        now->unknown = true;
        session_say(now, s->verdict.message);
    }
}

static void take(struct step *s)
{
    struct change *ch = s->change;
    struct target_facts facts = {.call = ch->on ? CALL_START : CALL_STOP, .reply = &s->reply};
    target_judge(&facts, &s->verdict);
    if (ch->on)
        started(s);
    else
        stopped(s);
    ch->c->sessions[s->target].changing = false;
}

static void write_failed(const struct change *ch, struct xp_json *j)
{
    xp_json_arr(j);
    for (size_t i = 0; i < ch->n; i++) {
        const struct step *s = &ch->v[i];
        if (s->verdict.outcome == OUTCOME_SUCCEEDED)
            continue;
        xp_json_obj(j);
        xp_json_key(j, "target"), xp_json_str(j, ch->c->targets[s->target].name);
        xp_json_key(j, "outcome"), xp_json_str(j, outcome_text(s->verdict.outcome));
        xp_json_key(j, "message"), xp_json_str(j, s->verdict.message);
        xp_json_key(j, "hint"), xp_json_str(j, s->verdict.hint);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

/* --- its thread --- */

static void change_free(struct change *ch)
{
    pthread_cond_destroy(&ch->wake);
    free(ch->v);
    free(ch->by);
    free(ch);
}

/* Not locked: nobody else has the change. */
static void tell_each(const struct change *ch)
{
    for (size_t i = 0; i < ch->n; i++) {
        const struct step *s = &ch->v[i];
        bool good = s->verdict.outcome == OUTCOME_SUCCEEDED;
        ch->heard.each(ch->heard.ctx, ch->on, ch->c->targets[s->target].name,
                       good ? NULL : s->verdict.message);
    }
}

static void *run_change(void *ctx)
{
    struct change *ch = ctx;
    struct captures *c = ch->c;
    struct xp_buf answer;
    struct xp_json j;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < ch->n; i++)
        call(&ch->v[i]);
    while (ch->under_way)
        captures_wait(c, &ch->wake, UINT64_MAX);
    for (size_t i = 0; i < ch->n; i++)
        take(&ch->v[i]);
    captures_tell(c);
    xp_buf_init(&answer, ANSWER_MAX);
    xp_json_init(&j, &answer);
    xp_json_obj(&j);
    xp_json_key(&j, "continuous");
    captures_write_continuous(c, &j);
    xp_json_key(&j, "failed");
    write_failed(ch, &j);
    xp_json_obj_end(&j);
    pthread_mutex_unlock(&c->lock);
    tell_each(ch);
    ch->heard.done(ch->heard.ctx, &answer);
    change_free(ch);
    pthread_mutex_lock(&c->lock);
    captures_thread_over(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Locked. */
static enum xp_status add_step(struct change *ch, const char *name, struct xp_error *err)
{
    struct captures *c = ch->c;
    size_t at = 0;
    while (at < c->n && strcmp(c->targets[at].name, name) != 0)
        at++;
    if (at == c->n)
        return xp_fail(err, XP_NOT_FOUND, 0,
                       "\"%.80s\" is no registered target: they are what --target says", name);
    if (c->sessions[at].changing)
        return xp_fail(err, XP_CONFLICT, 0,
                       "somebody starts or stops continuous profiling of %.80s at this moment",
                       name);
    for (size_t i = 0; i < ch->n; i++)
        if (ch->v[i].target == at)
            return xp_fail(err, XP_BAD_REQUEST, 0, "\"%.80s\" is named twice", name);
    ch->v[ch->n++] = (struct step){.change = ch, .target = at};
    return XP_OK;
}

enum xp_status captures_continuous(struct captures *c, const struct capture_wish *wish, bool on,
                                   const struct captures_heard *heard, struct xp_error *err)
{
    struct change *ch = calloc(1, sizeof *ch);
    XP_ASSERT(ch);
    *ch = (struct change){.c = c, .on = on, .levels = wish->levels, .heard = *heard};
    ch->by = wish->by ? strdup(wish->by) : NULL;
    ch->v = calloc(wish->n + 1, sizeof *ch->v);
    XP_ASSERT(ch->v && pthread_cond_init(&ch->wake, NULL) == 0);
    enum xp_status status = XP_OK;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < wish->n && status == XP_OK; i++)
        status = add_step(ch, wish->targets[i], err);
    if (status == XP_OK && (c->stopping || c->threads >= THREADS_MAX))
        status = xp_fail(err, XP_BUSY, 0, "too much is under way: try again in a moment");
    for (size_t i = 0; i < ch->n && status == XP_OK; i++)
        c->sessions[ch->v[i].target].changing = true;
    if (status == XP_OK && !captures_thread(c, run_change, ch)) {
        status = xp_fail(err, XP_BUSY, 0, "there is no thread for it");
        for (size_t i = 0; i < ch->n; i++)
            c->sessions[ch->v[i].target].changing = false;
    }
    pthread_mutex_unlock(&c->lock);
    if (status != XP_OK)
        change_free(ch);
    return status;
}
