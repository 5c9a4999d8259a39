#include <stdlib.h>
#include <strings.h>

#include "lib/base/status.h"
#include "loadtest/lib/wire_int.h"

void h1_ask(struct wire *w, struct wire_one *one)
{
    w->h1->head_n = 0;
    w->h1->in_body = false;
    xp_buf_fmt(&w->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", one->method, one->path,
               w->set->config.port);
    if (!one->look)
        xp_buf_str(&w->out, "Accept-Encoding: gzip\r\n");
    if (one->sent.n)
        xp_buf_fmt(&w->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                   one->sent.n);
    xp_buf_str(&w->out, "\r\n");
    xp_buf_span(&w->out, xp_buf_all(&one->sent));
    XP_ASSERT(!w->out.failed);
}

static const char *header(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(head, "\r\n"); p; p = strstr(p + 2, "\r\n"))
        if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':')
            return p + 3 + n + strspn(p + 3 + n, " ");
    return NULL;
}

static void read_head(struct wire_h1 *h, struct wire_one *one)
{
    const char *length = header(h->head, "content-length");
    const char *coding = header(h->head, "transfer-encoding");
    const char *keep = header(h->head, "connection");
    const char *location = header(h->head, "location");
    one->status = h->head_n > 12 ? (int)strtol(h->head + 9, NULL, 10) : 0;
    h->chunked = coding && strncasecmp(coding, "chunked", 7) == 0;
    h->left = length ? strtoull(length, NULL, 10) : 0;
    h->close = keep && strncasecmp(keep, "close", 5) == 0;
    h->in_body = true;
    memset(h->tail, 0, sizeof h->tail);
    if (location)
        wire_note_location(one, location, strcspn(location, "\r\n"));
}

/* A chunked body ends with the last five bytes of "\r\n0\r\n\r\n"; it is gzip, which may hold them
 * elsewhere once in 10^12 bytes. True: it is whole. */
static bool read_body(struct wire_h1 *h, struct wire_one *one, const uint8_t *p, size_t n)
{
    wire_keep(one, p, n);
    if (!h->chunked) {
        h->left -= n < h->left ? n : h->left;
        return h->left == 0;
    }
    for (size_t i = n > 5 ? n - 5 : 0; i < n; i++) {
        memmove(h->tail, h->tail + 1, 4);
        h->tail[4] = p[i];
    }
    return memcmp(h->tail, "0\r\n\r\n", 5) == 0;
}

static bool take(struct wire_h1 *h, struct wire_one *one, const uint8_t *p, size_t n)
{
    if (h->in_body)
        return read_body(h, one, p, n);
    size_t old = h->head_n, k = n < WIRE_HEAD_MAX - 1 - old ? n : WIRE_HEAD_MAX - 1 - old;
    memcpy(h->head + old, p, k);
    h->head_n += k;
    h->head[h->head_n] = 0;
    char *end = strstr(h->head, "\r\n\r\n");
    if (!end)
        return false;
    size_t head_n = (size_t)(end - h->head) + 4;
    end[2] = 0;
    read_head(h, one);
    return read_body(h, one, p + (head_n - old), n - (head_n - old));
}

void h1_read(struct wire *w, const uint8_t *p, size_t n)
{
    struct wire_one *one = w->asks;
    if (!one)
        return;
    one->seen = true;
    if (!take(w->h1, one, p, n))
        return;
    w->leaving = w->h1->close;
    w->h1->head_n = 0;
    w->h1->in_body = false;
    wire_end(one, true);
}
