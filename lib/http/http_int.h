/* lib/http/http_int.h - what the files of lib/http share; nobody else includes it.
 *
 *   server.c    configuration, loops, start and end
 *   listen.c    listening sockets
 *   drain.c     the end of a loop: GOAWAY, wait, cut
 *   tls.c       the certificate
 *   conn.c      one record a connection: abort counter, sweep, lingering close
 *   exchange.c  h2o request -> exchange, the guard, answers from other threads
 *   request.c   what is checked before a handler sees a request
 *   answer.c    building an answer
 *   send.c      an answer -> h2o: head, 304, compression, pieces
 *   stream.c    answers that come over time
 *   filter.c    headers on everything, and a body of ours for h2o's own error pages
 *   query.c     query strings
 *   trace.c     which request it is, and the report at its end
 *
 * Threads    Everything here runs on the loop's own thread, but for what says otherwise.
 * Lifetimes  A connection record lives from accept to h2o's on_close. An exchange is attached
 *            (h2o's request lives; the guard in its pool detaches) and owned (a handler, a
 *            worker or a post holds it); it is freed when it is neither.
 */
#ifndef XP_HTTP_INT_H
#define XP_HTTP_INT_H

#include <h2o.h>
#include <pthread.h>

#include "lib/base/gzip.h"
#include "lib/http/http.h"
#include "lib/run/loop.h"

#define HTTP_PIECE ((size_t)64 << 10)            /* bytes handed to h2o at a time, made or copied */
#define HTTP_PIECE_AS_IS ((size_t)1 << 20)       /* the same of an answer that is sent as it lies */
#define HTTP_STREAM_WAIT_MAX ((size_t)256 << 10) /* bytes a stream may keep waiting */
#define HTTP_COMPRESS_MIN ((size_t)1 << 10)
#define HTTP_CONNECTIONS_MAX 4096 /* a loop */
#define HTTP_ABORT_WINDOW_MS 10000
#define HTTP_ABORTS_MAX 300 /* a connection, a window */
#define HTTP_LINGER_MS 10000
#define HTTP_LOOPS_MAX 64
#define HTTP_NOTE_MAX 96

struct http_loop;

/* One field a counter of http_stats; written by the loop's thread alone, read by any. */
struct http_counters {
    _Atomic uint64_t connections, requests, aborted, condemned, slow_closed, open_connections;
};

static inline void http_count(_Atomic uint64_t *c, int64_t by)
{
    uint64_t now = atomic_load_explicit(c, memory_order_relaxed);
    atomic_store_explicit(c, now + (uint64_t)by, memory_order_relaxed);
}

struct http_conn {
    struct http_loop *loop;
    struct http_conn *prev, *next;
    h2o_socket_t *sock;
    uv_stream_t *stream;             /* below sock */
    struct http_exchange *exchanges; /* attached ones */
    uint64_t progress_ms;            /* when the client last took bytes it had to take */
    uint32_t in_flight;              /* exchanges whose bytes h2o holds */
    uint64_t window_ms;              /* when counting began */
    uint32_t window_requests, window_aborts;
    size_t unsent; /* bytes in the kernel and in libuv at the last sweep */
    int version;   /* of the last request; 0 before the first */
    int linger_fd; /* a duplicate to read to its end after h2o closed; -1: none */
    bool condemned;
    bool write_lost; /* at the last look */
};

struct http_linger {
    uv_poll_t poll;
    struct http_loop *loop;
    struct http_linger *next;
    uint64_t until_ms;
    int fd;
};

struct http_loop {
    struct http_server *server;
    struct xp_loop *run;
    uv_loop_t *uv;
    pthread_t thread;
    bool started;
    h2o_context_t ctx;
    h2o_accept_ctx_t accept;
    uv_tcp_t listener;
    uv_timer_t sweep, drain;
    bool full; /* a connection waits in the listener until another one closes */
    struct http_conn *conns;
    struct http_linger *lingers;
    uint32_t nconns, nexchanges;
    bool draining, goaway_sent, cut_off;
    uint64_t drain_start_ms, drain_grace_ms;
    struct http_counters count;
    uint64_t random; /* state of trace.c */
};

struct http_server {
    struct http_config config; /* strings are copies */
    struct sockaddr_storage bound;
    int port;
    h2o_globalconf_t global;
    SSL_CTX *tls;
    char own_name[256]; /* gethostname, lower case; "" unless bound to every address */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running; /* loop threads that have not ended; under lock */
    int nloops;
    struct http_loop loops[HTTP_LOOPS_MAX];
};

enum http_phase {
    HTTP_PENDING,   /* h2o has nothing yet */
    HTTP_SENDING,   /* it has the head */
    HTTP_STREAMING, /* the same, of an answer that comes over time */
    HTTP_SENT,      /* it has all */
};

struct http_exchange {
    h2o_generator_t gen; /* first, h2o hands it back */
    struct http_loop *loop;
    struct http_conn *conn; /* while attached */
    h2o_req_t *req;         /* while attached */
    struct http_exchange *prev, *next;
    struct http_request rq;
    atomic_bool cancelled; /* written by the loop, read by any thread */
    bool attached, owned;
    bool stream_ended;
    bool in_flight; /* h2o holds bytes of ours */
    bool stopped;   /* h2o called stop: the client reset it */
    bool variable;  /* the body's encoding depends on the client */
    bool recoded;   /* and was changed here */
    enum http_phase phase;
    struct http_answer answer; /* the owner's, until it is handed over */
    bool answered;             /* the owner's: its one answer was given */
    size_t at;                 /* bytes of the body (or of `sending`) that h2o has taken */
    char etag[sizeof((struct http_answer *)0)->etag + 2];
    struct xp_gunzip *gunzip;
    uint8_t *piece; /* HTTP_PIECE inflated bytes */
    size_t piece_n;
    struct xp_buf waiting, sending; /* of a stream */
    bool whole, refused;            /* not to be cut short; a piece met XP_BUSY */
    bool broken;                    /* it was cut short all the same */
    size_t left;                    /* of a length that was promised, not sent yet */
    bool posted;                    /* on_leave will run: it holds the exchange */
    void (*on_room)(void *ctx);
    void *room_ctx;
    struct http_trace trace;
    char who[HTTP_NOTE_MAX], route[HTTP_NOTE_MAX];
    uint64_t began_ns;
    int64_t began_wall_us;
    uint8_t bytes[]; /* the request's spans */
};

/* conn.c */
void conn_accept(struct http_loop *l);
struct http_conn *conn_of(const h2o_req_t *req);
void conn_count_abort(struct http_conn *c);
/* Ends a connection the only way that is safe inside h2o's callbacks: h2o sees an EOF. */
void conn_cut(struct http_conn *c);
/* From now on, when h2o closes this connection its bytes are still read to the end, so that no
 * reset destroys what the client has not read yet. */
void conn_will_linger(struct http_conn *c);
uint32_t conn_unsent(const struct http_conn *c);
void conn_find_lost_writes(struct http_loop *l);
void conn_sweep(struct http_loop *l);
void linger_sweep(struct http_loop *l, bool all);

/* exchange.c */
int exchange_on_req(h2o_handler_t *self, h2o_req_t *req);
void exchange_flight(struct http_exchange *ex, bool on);
void exchange_cancel(struct http_exchange *ex);
/* The handler's (or worker's) hold ends. */
void exchange_disown(struct http_exchange *ex);

/* trace.c */
void trace_begin(struct http_exchange *ex, const h2o_req_t *req);
/* Before h2o's request goes. */
void trace_end(struct http_exchange *ex, bool aborted);

/* request.c */
/* Fills ex->rq's path; what is wrong with the request otherwise. */
enum xp_status request_check(struct http_exchange *ex, const h2o_req_t *req, struct xp_error *err);
/* In-place is allowed. XP_BAD_REQUEST for a malformed escape or a NUL. */
enum xp_status request_decode_path(struct xp_span raw, uint8_t *out, size_t *n,
                                   struct xp_error *err);
bool request_path_climbs(struct xp_span path);
bool request_accepts_gzip(const h2o_req_t *req);
bool request_etag_matches(const h2o_req_t *req, const char *etag);
bool request_host_is_ours(const struct http_server *s, struct xp_span authority);

/* send.c */
void send_answer(struct http_exchange *ex);
void send_head(struct http_exchange *ex, size_t content_length);
void send_proceed(h2o_generator_t *gen, h2o_req_t *req);

/* stream.c */
void stream_proceed(struct http_exchange *ex);
void stream_cut(struct http_exchange *ex);

/* filter.c */
void filter_register(h2o_pathconf_t *path);
const char *http_reason(int status);

/* answer.c */
void answer_drop_body(struct http_answer *a);
void answer_problem_json(struct xp_buf *b, int status, const char *code, const char *title,
                         struct xp_span detail, uint64_t offset);

/* listen.c */
/* A listening socket; *bound is where. With port 0 any; share: others of ours will join it. */
int listen_open(const char *host, int port, bool share, struct sockaddr_storage *bound,
                struct xp_error *err);
/* Another one at the same place. */
int listen_join(const struct sockaddr_storage *bound, struct xp_error *err);

/* drain.c */
/* Posted to the loop: ctx is the loop; drain_grace_ms was set before. */
void drain_begin(void *ctx);

/* tls.c */
SSL_CTX *tls_open(const char *cert, const char *key, struct xp_error *err);

#endif
