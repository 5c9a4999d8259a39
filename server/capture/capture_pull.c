#include <stdlib.h>

#include "server/capture/capture_int.h"
#include "server/uploads.h"

void pull_init(struct pull *p, struct captures *c, pthread_cond_t *wake)
{
    *p = (struct pull){.c = c, .wake = wake};
}

void pull_fini(struct pull *p)
{
    xp_writer_drop(p->writer);
    free(p->fill);
    free(p->full);
    *p = (struct pull){.c = p->c, .wake = p->wake};
}

static void have_buffers(struct pull *p)
{
    if (p->fill)
        return;
    p->fill = malloc(PULL_BUFFER);
    p->full = malloc(PULL_BUFFER);
    XP_ASSERT(p->fill && p->full);
}

/* The filled buffer is the writer's from here on, and the other one is filled. */
static void swap(struct pull *p)
{
    uint8_t *was = p->full;
    p->full = p->fill;
    p->full_n = p->fill_n;
    p->fill = was;
    p->fill_n = 0;
}

bool pull_room(struct pull *p, size_t n)
{
    pthread_mutex_lock(&p->c->lock);
    have_buffers(p);
    if (!p->lost && p->fill_n + n > PULL_BUFFER && p->full_n == 0) {
        swap(p);
        pthread_cond_signal(p->wake);
    }
    bool room = p->lost || p->fill_n + n <= PULL_BUFFER;
    p->paused = !room;
    pthread_mutex_unlock(&p->c->lock);
    return room;
}

void pull_take(struct pull *p, struct xp_span bytes)
{
    pthread_mutex_lock(&p->c->lock);
    if (!p->lost && bytes.n && p->fill_n + bytes.n <= PULL_BUFFER) {
        memcpy(p->fill + p->fill_n, bytes.p, bytes.n);
        p->fill_n += bytes.n;
    }
    pthread_mutex_unlock(&p->c->lock);
}

static enum xp_status check_begin(struct xp_span bytes, struct xp_error *err)
{
    bool gz = false;
    struct xp_error why = {0};
    enum xp_status status = upload_look(bytes, &gz, &why);
    if (status == XP_OK && !gz)
        return XP_OK;
    return xp_fail(err, XP_CORRUPT, 0, "what it sent is no profile%s%.150s", gz ? "" : ": ",
                   why.text);
}

static enum xp_status write_bytes(struct pull *p, const char *key, struct xp_span bytes,
                                  struct xp_error *err)
{
    if (!bytes.n)
        return XP_OK;
    if (!p->writer) {
        XP_TRY(check_begin(bytes, err));
        XP_TRY(xp_writer_open(p->c->own, key, &p->writer, err));
    }
    XP_TRY(xp_writer_add(p->writer, bytes, err));
    p->written += bytes.n;
    return XP_OK;
}

/* Locked before and after, not while it writes. */
static enum xp_status write_full(struct pull *p, const char *key, struct xp_error *err)
{
    struct xp_span bytes = xp_span_of(p->full, p->full_n);
    pthread_mutex_unlock(&p->c->lock);
    enum xp_status status = write_bytes(p, key, bytes, err);
    pthread_mutex_lock(&p->c->lock);
    p->full_n = 0;
    p->lost |= status != XP_OK;
    return status;
}

enum xp_status pull_write(struct pull *p, const char *key, bool *room, struct xp_error *err)
{
    *room = false;
    if (!p->full_n)
        return XP_OK;
    enum xp_status status = write_full(p, key, err);
    *room = p->paused;
    p->paused = false;
    return status;
}

enum xp_status pull_finish(struct pull *p, const char *key, struct xp_error *err)
{
    enum xp_status status = p->full_n ? write_full(p, key, err) : XP_OK;
    swap(p);
    if (status == XP_OK && p->full_n)
        status = write_full(p, key, err);
    struct xp_writer *w = p->writer;
    if (status == XP_OK && !w)
        status = xp_fail(err, XP_CORRUPT, 0, "no profile came");
    if (status != XP_OK)
        return status;
    p->writer = NULL;
    pthread_mutex_unlock(&p->c->lock);
    status = xp_writer_finish(w, err);
    pthread_mutex_lock(&p->c->lock);
    return status;
}
