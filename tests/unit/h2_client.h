/* tests/unit/h2_client.h - HTTP/2 frames by hand, over a peer.
 *
 * Request heads are written without compression; of a response's head only :status is read, in
 * the two forms h2o writes it.
 */
#ifndef XP_TESTS_H2_CLIENT_H
#define XP_TESTS_H2_CLIENT_H

#include "tests/unit/http_client.h"

enum {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE
};
enum { H2_END_STREAM = 1, H2_ACK = 1, H2_END_HEADERS = 4 };

struct h2_frame {
    uint8_t type, flags;
    uint32_t stream;
    size_t n;
    const uint8_t *payload; /* until the next frame is read */
};

/* Preface, settings with this initial window, and the whole connection's window. */
void h2_start(struct peer *p, uint32_t stream_window, uint32_t connection_window);
void h2_send(struct peer *p, int type, int flags, uint32_t stream, const void *payload, size_t n);
void h2_request(struct peer *p, uint32_t stream, const char *method, const char *path);
void h2_request_at(struct peer *p, uint32_t stream, const char *method, const char *path,
                   const char *authority, const char *accept_encoding, bool end_stream);
void h2_reset(struct peer *p, uint32_t stream);
void h2_window(struct peer *p, uint32_t stream, uint32_t more);
/* The next frame, settings and pings answered; false at the connection's end. */
bool h2_read(struct peer *p, struct h2_frame *f);
int h2_status(const struct h2_frame *headers);

struct h2_reply {
    int status;
    size_t n;     /* bytes of body */
    uint64_t sum; /* FNV of them */
    bool ended, reset;
};
/* Reads until this stream ends; windows are opened as bytes come. */
void h2_read_reply(struct peer *p, uint32_t stream, struct h2_reply *r);

#endif
