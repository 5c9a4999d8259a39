#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/timer.h"
#include "lib/objstore/bucket_reader.h"
#include "lib/objstore/count.h"

#define PROGRESS_NS UINT64_C(30000000000) /* without a byte for that long a read fails */
#define CONNECT_MS 5000
#define STALL_MS 5000
#define IDLE_NS UINT64_C(10000000000) /* what was fetched ahead and not read may go */
#define READ_AT_ONCE ((size_t)16 << 20)
#define TELL_BYTES ((uint32_t)128 << 10) /* libcurl hands over 16 KiB at a time */

/* --- waking --- */

/* The bytes [off, off + n) that are there, from off on; what ends them, if a piece does. */
static uint64_t at_hand(const struct bucket_reader *r, uint64_t off, uint64_t n,
                        const struct piece **ends)
{
    uint64_t pos = off;
    *ends = NULL;
    for (struct piece *p = r->pieces; p && pos < off + n; p = p->next) {
        if (p->at + p->n <= pos)
            continue;
        if (p->at > pos)
            break;
        if (p->at + p->got < p->at + p->n || p->state == PIECE_FAILED) {
            *ends = p;
            return p->at + p->got > pos ? p->at + p->got - off : pos - off;
        }
        pos = p->at + p->n;
    }
    return pos - off;
}

/* There is something to do for who asked: all is there, or a piece failed, or one is missing. */
static bool answered(const struct bucket_reader *r, uint64_t off, uint64_t n)
{
    const struct piece *ends;
    if (r->cancelled || at_hand(r, off, n, &ends) >= n || !ends)
        return true;
    return ends->state == PIECE_FAILED || ends->state == PIECE_RETRY;
}

/* Takes out the waiters that have what they wait for. */
static struct waiter *take_waiters(struct bucket_reader *r)
{
    struct waiter *out = NULL, **link = &r->waiters;
    while (*link) {
        struct waiter *w = *link;
        if (!answered(r, w->off, w->n)) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        w->next = out;
        out = w;
    }
    return out;
}

static void wake(struct waiter *w)
{
    for (struct waiter *next; w; w = next) {
        next = w->next;
        w->wake(w->ctx);
        free(w);
    }
}

/* --- memory --- */

static void piece_free(struct piece **link)
{
    struct piece *p = *link;
    *link = p->next;
    p->r->b->memory -= p->n;
    free(p->buf);
    free(p);
}

static bool idle(const struct piece *p)
{
    return !p->pins &&
           (p->state == PIECE_DONE || p->state == PIECE_FAILED || p->state == PIECE_RETRY);
}

static bool waited_for(const struct piece *p)
{
    for (const struct waiter *w = p->r->waiters; w; w = w->next)
        if (w->off < p->at + p->n && p->at < w->off + w->n)
            return true;
    return false;
}

/* The piece that was used longest ago. For what is fetched ahead only those that were read, or that
 * nobody came for. */
static struct piece **oldest(struct bucket *b, bool ahead)
{
    struct piece **found = NULL;
    uint64_t now = xp_now_ns();
    for (struct bucket_reader *r = b->readers; r; r = r->next)
        for (struct piece **link = &r->pieces; *link; link = &(*link)->next) {
            struct piece *p = *link;
            if (!idle(p) || (ahead && !p->eaten && now - p->used_ns < IDLE_NS) || waited_for(p))
                continue;
            if (!found || p->used_ns < (*found)->used_ns)
                found = link;
        }
    return found;
}

/* True when n bytes more are within the limit. */
static bool make_room(struct bucket *b, uint64_t n, bool ahead)
{
    while (b->memory + n > b->memory_max) {
        struct piece **link = oldest(b, ahead);
        if (!link)
            return false;
        piece_free(link);
    }
    return true;
}

/* --- the end of a reader --- */

/* With the lock held: the reader is gone after it when nobody needs it any more. */
static void reader_unref(struct bucket_reader *r)
{
    struct bucket *b = r->b;
    if (--r->running > 0 || !r->closed)
        return;
    while (r->pieces)
        piece_free(&r->pieces);
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    ahead_plan(r, NULL, 0);
    free(r->key);
    free(r->name);
    free(r);
    pthread_cond_broadcast(&b->changed);
}

void bucket_readers_end(struct bucket *b)
{
    pthread_mutex_lock(&b->lock);
    while (b->readers)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* --- answers, on the client's thread --- */

/* "bytes 0-99/1234" -> 0 and 1234 */
static bool content_range(const char *text, uint64_t *from, uint64_t *total)
{
    unsigned long long a, z, all;
    if (!text || sscanf(text, "bytes %llu-%llu/%llu", &a, &z, &all) != 3 || z < a || z >= all)
        return false;
    *from = a;
    *total = all;
    return true;
}

static void stale(struct piece *p)
{
    bucket_fail(p->r->b, BUCKET_READ, p->r->key, 412, (struct xp_span){0}, &p->err);
}

/* The head of an answer with bytes: are they the ones that were asked for? */
static bool judge_head(struct piece *p, struct net_call *call)
{
    struct bucket_reader *r = p->r;
    uint64_t from = 0, total = 0, generation = r->b->kind->read_generation(call);
    int code = net_code(call);
    p->judged = true;
    if (generation && generation != r->base.generation) {
        stale(p);
        return false;
    }
    if (code == 200 && p->at + p->got == 0)
        return true; /* it knows no ranges: its first bytes will do */
    if (code != 206 || !content_range(net_header(call, "content-range"), &from, &total) ||
        from != p->at + p->got) {
        bucket_fail_net(r->b, BUCKET_READ, r->key, XP_IO,
                        "the answer holds another range than was asked for", &p->err);
        return false;
    }
    if (total != r->base.size) {
        stale(p);
        return false;
    }
    return true;
}

/* What came is there for all. */
static void tell(struct piece *p)
{
    struct bucket *b = p->r->b;
    pthread_mutex_lock(&b->lock);
    p->got = p->have;
    struct waiter *w = take_waiters(p->r);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    wake(w);
}

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct piece *p = ctx;
    if (net_code(call) / 100 != 2) {
        size_t n = sizeof p->said - p->said_n;
        n = bytes.n < n ? bytes.n : n;
        memcpy(p->said + p->said_n, bytes.p, n);
        p->said_n += (uint32_t)n;
        return true;
    }
    if (!p->judged && !judge_head(p, call))
        return false;
    size_t room = p->n - p->have, n = bytes.n < room ? bytes.n : room;
    if (!p->first_ns)
        p->first_ns = xp_now_ns();
    memcpy(p->buf + p->have, bytes.p, n);
    p->have += (uint32_t)n;
    if (p->have - p->got >= TELL_BYTES)
        tell(p);
    return bytes.n <= room;
}

static void smooth(uint64_t *value, uint64_t seen)
{
    *value = *value - *value / 4 + seen / 4;
}

static void learn(struct piece *p)
{
    struct bucket *b = p->r->b;
    uint64_t now = xp_now_ns(), bytes = p->got - p->begun_got;
    if (!p->first_ns)
        return;
    smooth(&b->latency_ns, p->first_ns - p->begun_ns);
    if (bytes >= PIECE_MIN * 4)
        smooth(&b->bytes_per_s, bytes * 1000000 / ((now - p->first_ns) / 1000 + 1));
}

static void on_timer(void *ctx)
{
    struct piece *p = ctx;
    struct bucket_reader *r = p->r;
    struct bucket *b = r->b;
    pthread_mutex_lock(&b->lock);
    p->timer = NULL;
    p->state = PIECE_RETRY;
    struct waiter *w = take_waiters(r);
    pthread_cond_broadcast(&b->changed);
    reader_unref(r);
    pthread_mutex_unlock(&b->lock);
    wake(w);
}

/* The call failed; whether it is made again. */
static bool try_again(struct piece *p, const struct net_answer *a)
{
    struct bucket_reader *r = p->r;
    struct bucket *b = r->b;
    uint64_t now = xp_now_ns();
    bool short_body = a->status == XP_OK && a->code / 100 == 2;
    if (p->err.status != XP_OK || r->closed || r->cancelled)
        return false;
    if (a->code == 401 && !p->refreshed && b->kind->refresh(b)) {
        p->refreshed = true;
        p->state = PIECE_RETRY;
        return true;
    }
    if (!short_body && !retry_may_pass(a->status, a->code))
        return false;
    if (p->got > p->begun_got)
        p->retry = (struct retry){.deadline_ns = now + PROGRESS_NS};
    int64_t ms =
        retry_delay_ms(&p->retry, &b->retries, retry_after_ms(net_header(a->call, "retry-after")),
                       bucket_random(b), now);
    if (ms < 0)
        return false;
    xp_log(XP_LOG_DEBUG, "bucket", "%s, %u bytes behind %llu: %s %d; again in %lld ms", r->key,
           p->got, (unsigned long long)p->at, xp_status_code(a->status), a->code, (long long)ms);
    p->state = PIECE_WAIT;
    r->running++;
    p->timer = net_timer_start(b->net, (uint64_t)ms, on_timer, p);
    return true;
}

static void piece_fail(struct piece *p, const struct net_answer *a)
{
    struct bucket_reader *r = p->r;
    p->state = PIECE_FAILED;
    if (p->err.status != XP_OK)
        return;
    if (r->cancelled)
        xp_fail(&p->err, XP_CANCELLED, 0, "nobody waits for these bytes any more");
    else if (a->status != XP_OK)
        bucket_fail_net(r->b, BUCKET_READ, r->key, a->status, a->why, &p->err);
    else if (a->code / 100 == 2)
        bucket_fail_net(r->b, BUCKET_READ, r->key, XP_IO, "the answer ends too early", &p->err);
    else if (a->code == 404 || a->code == 416)
        stale(p); /* it was there when it was listed */
    else
        bucket_fail(r->b, BUCKET_READ, r->key, a->code, xp_span_of(p->said, p->said_n), &p->err);
    if (xp_status_retry(p->err.status) && p->retry.attempts)
        xp_error_retry(&p->err, retry_later_ms(&p->retry, 0));
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct piece *p = ctx;
    struct bucket_reader *r = p->r;
    struct bucket *b = r->b;
    pthread_mutex_lock(&b->lock);
    p->call = NULL;
    p->got = p->have;
    store_count_call(XP_CALL_READ, a->status, a->code, xp_now_ns() - p->begun_ns);
    store_count_bytes(p->got - p->begun_got, 0);
    learn(p);
    if (p->got == p->n && p->err.status == XP_OK) {
        p->state = PIECE_DONE;
        p->used_ns = xp_now_ns();
        retry_succeeded(&b->retries);
    } else if (try_again(p, a)) {
        store_count_retry(XP_CALL_READ);
    } else {
        piece_fail(p, a);
    }
    struct waiter *w = take_waiters(r);
    pthread_cond_broadcast(&b->changed);
    reader_unref(r);
    pthread_mutex_unlock(&b->lock);
    wake(w);
}

/* --- asking --- */

static void begin(struct piece *p, const struct ask *a)
{
    struct bucket *b = p->r->b;
    struct net_request r = {
        .method = a->method,
        .url = a->url,
        .headers = (const char *const *)a->headers,
        .connect_ms = CONNECT_MS,
        .stall_ms = STALL_MS,
        .connections = &store_connections,
        .ctx = p,
        .body_fn = on_body,
        .done = on_done,
    };
    p->judged = false;
    p->said_n = 0;
    p->first_ns = 0;
    p->begun_ns = xp_now_ns();
    p->begun_got = p->have = p->got;
    p->state = PIECE_RUN;
    p->call = net_start(b->net, &r);
    if (!p->call) {
        p->state = PIECE_FAILED;
        xp_fail(&p->err, XP_BUSY, 0, "out of memory");
        reader_unref(p->r);
    }
}

/* A PIECE_NEW is asked for. Not with the lock held: a token may have to be fetched. */
static void start(struct piece *p)
{
    struct bucket_reader *r = p->r;
    struct bucket *b = r->b;
    struct ask a = {.method = "GET"};
    struct xp_error err = {0};
    enum xp_status status =
        b->kind->read(b, r->name, r->base.generation, p->at + p->got, p->at + p->n, &a, &err);
    if (status == XP_OK && a.failed)
        status = xp_fail(&err, XP_BUSY, 0, "out of memory");
    pthread_mutex_lock(&b->lock);
    struct waiter *w = NULL;
    if (status == XP_OK && !r->cancelled) {
        begin(p, &a);
    } else {
        p->state = PIECE_FAILED;
        p->err = err;
        if (status == XP_OK)
            xp_fail(&p->err, XP_CANCELLED, 0, "nobody waits for these bytes any more");
        w = take_waiters(r);
        pthread_cond_broadcast(&b->changed);
        reader_unref(r); /* the caller's read keeps it */
    }
    pthread_mutex_unlock(&b->lock);
    ask_fini(&a);
    wake(w);
}

/* Pieces to be started once the lock is free. */
struct starts {
    struct piece *v[RUNNING_MAX * 2];
    size_t n;
};

static void starts_add(struct starts *s, struct piece *p)
{
    p->state = PIECE_NEW;
    p->r->running++;
    s->v[s->n++] = p;
}

static bool starts_full(const struct starts *s)
{
    return s->n == sizeof s->v / sizeof *s->v;
}

static void starts_run(struct starts *s)
{
    for (size_t i = 0; i < s->n; i++)
        start(s->v[i]);
    s->n = 0;
}

/* A piece of n bytes at *link's place. NULL: memory is short, or the limit is reached and this is
 * not needed now. */
static struct piece *piece_new(struct bucket_reader *r, struct piece **link, uint64_t at,
                               uint64_t n)
{
    struct piece *p = calloc(1, sizeof *p);
    uint8_t *buf = malloc(n);
    if (!p || !buf) {
        free(p);
        free(buf);
        return NULL;
    }
    *p = (struct piece){.next = *link,
                        .r = r,
                        .at = at,
                        .n = (uint32_t)n,
                        .buf = buf,
                        .used_ns = xp_now_ns(),
                        .retry = {.deadline_ns = xp_now_ns() + PROGRESS_NS}};
    *link = p;
    r->b->memory += n;
    return p;
}

/* Where a piece at `at` belongs. */
static struct piece **place(struct bucket_reader *r, uint64_t at)
{
    struct piece **link = &r->pieces;
    while (*link && (*link)->at + (*link)->n <= at)
        link = &(*link)->next;
    return link;
}

/* Makes [from, to) be there or on its way. Bytes before `needed` are asked for now, the others when
 * calls and memory are free. False: that was not so. */
static bool cover(struct bucket_reader *r, uint64_t from, uint64_t to, uint64_t needed,
                  uint64_t size, struct starts *s)
{
    struct piece **link = place(r, from);
    while (from < to) {
        struct piece *p = *link;
        if (p && p->at <= from) {
            if (p->state == PIECE_RETRY && !starts_full(s))
                starts_add(s, p);
            from = p->at + p->n;
            link = &p->next;
            continue;
        }
        bool ahead = from >= needed;
        uint64_t n = to - from < size ? to - from : size;
        if (p && n > p->at - from)
            n = p->at - from;
        if (starts_full(s) || (ahead && r->running >= RUNNING_MAX))
            return false;
        bool room = make_room(r->b, n, ahead);
        link = place(r, from); /* room may have been made here */
        if ((ahead && !room) || !(p = piece_new(r, link, from, n)))
            return false;
        starts_add(s, p);
    }
    return true;
}

/* What a read of [off, off + n) needs, and what comes after it. */
static void want(struct bucket_reader *r, uint64_t off, size_t n, struct starts *s)
{
    struct xp_range spans[SPANS_MAX];
    uint64_t piece;
    size_t count = ahead_spans(r, off, n, spans, &piece);
    for (size_t i = 0; i < count; i++)
        if (!cover(r, spans[i].from, spans[i].to, i ? 0 : off + n, piece, s))
            return;
}

/* --- reading --- */

static struct piece **find(struct bucket_reader *r, uint64_t off)
{
    struct piece **link = place(r, off);
    return *link && (*link)->at <= off ? link : NULL;
}

/* Copies what is there of [off, off + n) from the piece, outside of the lock. */
static size_t copy(struct bucket_reader *r, struct piece *p, uint64_t off, uint8_t *to, size_t n)
{
    struct bucket *b = r->b;
    size_t skip = (size_t)(off - p->at), have = p->got - skip;
    bool once = ahead_is_planned(r, off);
    n = n < have ? n : have;
    p->pins++;
    pthread_mutex_unlock(&b->lock);
    memcpy(to, p->buf + skip, n);
    pthread_mutex_lock(&b->lock);
    p->pins--;
    p->used_ns = xp_now_ns();
    p->eaten += (uint32_t)n < UINT32_MAX - p->eaten ? (uint32_t)n : 0;
    if (once && p->eaten >= p->n && idle(p)) {
        struct piece **link = place(r, p->at);
        if (*link == p)
            piece_free(link);
    }
    return n;
}

static enum xp_status take_failure(struct bucket_reader *r, struct piece **link,
                                   struct xp_error *err)
{
    enum xp_status status = (*link)->err.status;
    if (err)
        *err = (*link)->err;
    if (idle(*link))
        piece_free(link);
    (void)r;
    return status;
}

/* Some bytes at off: *got of them. 0 with XP_OK: what they need was begun or waited for. */
static enum xp_status read_some(struct bucket_reader *r, uint64_t off, uint8_t *to, size_t n,
                                size_t *got, struct xp_error *err)
{
    struct bucket *b = r->b;
    struct starts s = {.n = 0};
    *got = 0;
    if (r->cancelled)
        return xp_fail(err, XP_CANCELLED, 0, "nobody waits for these bytes any more");
    want(r, off, n < READ_AT_ONCE ? n : READ_AT_ONCE, &s);
    if (s.n) {
        pthread_mutex_unlock(&b->lock);
        starts_run(&s);
        pthread_mutex_lock(&b->lock);
    }
    struct piece **link = find(r, off);
    if (!link)
        return s.n ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory is left to read with");
    struct piece *p = *link;
    if (off - p->at < p->got)
        *got = copy(r, p, off, to, n);
    else if (p->state == PIECE_FAILED)
        return take_failure(r, link, err);
    else if (p->state != PIECE_RETRY)
        pthread_cond_wait(&b->changed, &b->lock);
    return XP_OK;
}

static enum xp_status reader_read(struct xp_reader *base, uint64_t off, void *buf, size_t n,
                                  struct xp_error *err)
{
    struct bucket_reader *r = (struct bucket_reader *)base;
    enum xp_status status = XP_OK;
    uint8_t *to = buf;
    pthread_mutex_lock(&r->b->lock);
    while (n && status == XP_OK) {
        size_t got;
        status = read_some(r, off, to, n, &got, err);
        off += got;
        to += got;
        n -= got;
    }
    pthread_mutex_unlock(&r->b->lock);
    return status;
}

static bool reader_ready(struct xp_reader *base, uint64_t off, size_t n, void (*fn)(void *ctx),
                         void *ctx)
{
    struct bucket_reader *r = (struct bucket_reader *)base;
    struct starts s = {.n = 0};
    struct waiter *w = NULL;
    pthread_mutex_lock(&r->b->lock);
    r->running++; /* woken early, the caller may be done with the reader before this returns */
    if (!r->cancelled)
        want(r, off, n, &s);
    bool ready = s.n == 0 && answered(r, off, n);
    if (!ready && (w = malloc(sizeof *w))) {
        *w = (struct waiter){r->waiters, off, n, fn, ctx};
        r->waiters = w;
    }
    ready = !w;
    pthread_mutex_unlock(&r->b->lock);
    starts_run(&s);
    pthread_mutex_lock(&r->b->lock);
    w = take_waiters(r);
    struct bucket *b = r->b;
    reader_unref(r);
    pthread_mutex_unlock(&b->lock);
    wake(w);
    return ready;
}

static void reader_plan(struct xp_reader *base, const struct xp_range *ranges, size_t n)
{
    struct bucket_reader *r = (struct bucket_reader *)base;
    pthread_mutex_lock(&r->b->lock);
    ahead_plan(r, ranges, n);
    pthread_mutex_unlock(&r->b->lock);
}

/* --- life --- */

static void stop_calls(struct bucket_reader *r)
{
    for (struct piece *p = r->pieces; p; p = p->next) {
        if (p->call)
            net_cancel(p->call);
        if (p->timer)
            net_timer_hurry(p->timer);
    }
}

static void reader_cancel(struct xp_reader *base)
{
    struct bucket_reader *r = (struct bucket_reader *)base;
    struct bucket *b = r->b;
    pthread_mutex_lock(&b->lock);
    r->cancelled = true;
    stop_calls(r);
    struct waiter *w = take_waiters(r);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    wake(w);
}

/* Calls that run are ended; the last one's end frees the reader. */
static void reader_close(struct xp_reader *base)
{
    struct bucket_reader *r = (struct bucket_reader *)base;
    struct bucket *b = r->b;
    pthread_mutex_lock(&b->lock);
    r->closed = r->cancelled = true;
    XP_ASSERT(!r->waiters);
    stop_calls(r);
    r->running++;
    reader_unref(r);
    pthread_mutex_unlock(&b->lock);
}

static const struct xp_reader_ops reader_ops = {
    .read = reader_read,
    .close = reader_close,
    .ready = reader_ready,
    .plan = reader_plan,
    .cancel = reader_cancel,
};

enum xp_status bucket_open_sized(struct xp_store *s, const char *key, uint64_t generation,
                                 uint64_t size, struct xp_reader **out, struct xp_error *err)
{
    struct bucket *b = (struct bucket *)s;
    struct bucket_reader *r = calloc(1, sizeof *r);
    if (!r || !(r->key = strdup(key)) || !(r->name = bucket_name_of(b, key))) {
        free(r ? r->key : NULL);
        free(r);
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    r->base = (struct xp_reader){&reader_ops, size, generation};
    r->b = b;
    pthread_mutex_lock(&b->lock);
    r->next = b->readers;
    r->link = &b->readers;
    if (r->next)
        r->next->link = &r->next;
    b->readers = r;
    pthread_mutex_unlock(&b->lock);
    *out = &r->base;
    return XP_OK;
}

enum xp_status bucket_open(struct xp_store *s, const char *key, uint64_t generation,
                           struct xp_reader **out, struct xp_error *err)
{
    struct xp_object o;
    XP_TRY(xp_store_stat(s, key, &o, err));
    free(o.key);
    if (generation && o.generation != generation)
        return bucket_fail((struct bucket *)s, BUCKET_READ, key, 412, (struct xp_span){0}, err);
    return bucket_open_sized(s, key, o.generation, o.size, out, err);
}
