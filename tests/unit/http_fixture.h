/* tests/unit/http_fixture.h - a server on loopback with a handler for each thing worth testing.
 *
 *   /hello      "hello\n", static
 *   /tag        "tagged\n" with the ETag "v1"
 *   /size?n=    n bytes of a pattern, malloc'd, incompressible
 *   /static?n=  the same, static, up to FIXTURE_STATIC
 *   /text?n=    n bytes of text, compressed by the server if the client likes
 *   /gz?n=      the same text, already gzip
 *   /broken     claims to be gzip and is not
 *   /echo       method, path, query, body and host, a line each
 *   /fail       a problem of XP_BUSY
 *   /defer      left to the test: fixture_deferred
 *   /stream     begins an event stream, left to the test
 */
#ifndef XP_TESTS_HTTP_FIXTURE_H
#define XP_TESTS_HTTP_FIXTURE_H

#include <pthread.h>

#include "lib/http/http.h"

#define FIXTURE_STATIC ((size_t)50 << 20)
#define FIXTURE_DEFERRED_MAX 64

struct fixture {
    struct http_server *server;
    struct xp_workers *workers;
    int port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_exchange *deferred[FIXTURE_DEFERRED_MAX];
    int ndeferred;
};

/* Zero fields of config get the fixture's defaults. */
void fixture_start(struct fixture *f, const struct http_config *config);
/* Drains, and fails the test when that takes more than the grace. */
void fixture_stop(struct fixture *f);
/* The i-th exchange that came to /defer or /stream; waits for it. */
struct http_exchange *fixture_deferred(struct fixture *f, int i);
/* Answers "late\n" from the calling thread. */
void fixture_answer(struct http_exchange *ex);
struct http_stats fixture_stats(const struct fixture *f);

/* Waits up to 10 s for a condition. */
#define fixture_wait_for(condition)                                                                \
    do {                                                                                           \
        int tries_ = 0;                                                                            \
        while (!(condition) && tries_++ < 1000)                                                    \
            usleep(10000);                                                                         \
        assert_true(condition);                                                                    \
    } while (0)

/* The body of /size and /static, of /text and /gz. */
void fixture_pattern(uint8_t *p, size_t n);
void fixture_text(struct xp_buf *b, size_t n);

#endif
