/* Small answers, waited for. */
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "lib/net/client_int.h"

#define HEADERS_MAX 32768

struct fetch {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done, too_large;
    struct net_reply *reply;
    enum xp_status status;
    struct xp_error *err;
};

static bool on_body(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct fetch *f = ctx;
    (void)call;
    xp_buf_span(&f->reply->body, bytes);
    f->too_large |= f->reply->body.failed;
    return !f->reply->body.failed;
}

static void on_header(void *ctx, const char *name, const char *value)
{
    xp_buf_fmt(ctx, "%s: %s\n", name, value);
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct fetch *f = ctx;
    f->reply->code = a->code;
    net_each_header(a->call, on_header, &f->reply->headers);
    f->status = a->status;
    if (f->too_large)
        f->status = xp_fail(f->err, XP_TOO_LARGE, 0, "the answer is longer than expected");
    else if (a->status != XP_OK)
        xp_fail(f->err, a->status, 0, "%s", a->why);
    pthread_mutex_lock(&f->lock);
    f->done = true;
    pthread_cond_signal(&f->over);
    pthread_mutex_unlock(&f->lock);
}

enum xp_status net_fetch(struct net_client *c, const struct net_request *r, size_t max,
                         struct net_reply *reply, struct xp_error *err)
{
    struct fetch f = {.reply = reply, .err = err};
    struct net_request mine = *r;
    *reply = (struct net_reply){0};
    xp_buf_init(&reply->body, max);
    xp_buf_init(&reply->headers, HEADERS_MAX);
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.over, NULL);
    mine.ctx = &f;
    mine.body_fn = on_body;
    mine.done = on_done;
    if (!net_start(c, &mine)) {
        f.status = xp_fail(err, XP_IO, 0, "the address is malformed or memory is short");
    } else {
        pthread_mutex_lock(&f.lock);
        while (!f.done)
            pthread_cond_wait(&f.over, &f.lock);
        pthread_mutex_unlock(&f.lock);
    }
    pthread_mutex_destroy(&f.lock);
    pthread_cond_destroy(&f.over);
    return f.status;
}

void net_reply_fini(struct net_reply *reply)
{
    xp_buf_fini(&reply->body);
    xp_buf_fini(&reply->headers);
}

/* strndup, of bytes that need not end in NUL. */
static char *copy_text(const char *p, size_t n)
{
    char *copy = malloc(n + 1);
    if (copy) {
        memcpy(copy, p, n);
        copy[n] = 0;
    }
    return copy;
}

char *net_reply_header(const struct net_reply *reply, const char *name)
{
    const char *p = (const char *)reply->headers.p, *end = p + reply->headers.n;
    size_t n = strlen(name);
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            return NULL;
        if ((size_t)(nl - p) >= n + 2 && p[n] == ':' && strncasecmp(p, name, n) == 0)
            return copy_text(p + n + 2, (size_t)(nl - p) - n - 2);
        p = nl + 1;
    }
    return NULL;
}
