/* loadtest/http_floor.c - what lib/http costs by itself: a server whose answers are ready.
 *
 *   http_floor [PORT [LOOPS]]     prints the port; then, from another shell,
 *   wrk -t1 -c64 -d5 http://127.0.0.1:PORT/hello
 *   h2load -c8 -m32 -n1000000 http://127.0.0.1:PORT/hello
 *
 * and on SIGINT or SIGTERM the requests, the CPU time and their quotient. /hello is 13 static
 * bytes, /gz a static body of 64 KiB that counts as gzip, /later an answer from another thread.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "lib/http/http.h"

static uint8_t body[64 << 10];

static void fill(struct http_answer *a, const struct http_request *rq)
{
    http_answer_init(a, 200, "text/plain");
    a->is_static = true;
    if (xp_span_eq(rq->path, XP_SPAN_LIT("/gz"))) {
        a->body = body;
        a->body_n = sizeof body;
        a->encoded = rq->accepts_gzip;
        a->incompressible = true;
    } else {
        a->body = (uint8_t *)(uintptr_t) "Hello, world\n";
        a->body_n = 13;
    }
}

static enum xp_work_next answer_later(void *ctx)
{
    struct http_answer a;
    fill(&a, http_request(ctx));
    http_answer_from(ctx, &a);
    return XP_WORK_DONE;
}

static void handle(void *workers, struct http_exchange *ex)
{
    const struct http_request *rq = http_request(ex);
    struct http_answer a;

    if (xp_span_eq(rq->path, XP_SPAN_LIT("/later")) &&
        xp_workers_post(workers, XP_WORK_QUERY, answer_later, ex) == XP_OK)
        return;
    fill(&a, rq);
    http_answer(ex, &a);
}

int main(int argc, char **argv)
{
    struct xp_workers *workers = xp_workers_new(1, 10000);
    struct http_config config = {.port = argc > 1 ? atoi(argv[1]) : 0,
                                 .loops = argc > 2 ? atoi(argv[2]) : 1,
                                 .handler = handle,
                                 .ctx = workers};
    struct http_server *s;
    struct http_stats stats;
    struct xp_error err;
    struct rusage use;
    sigset_t stop;
    int sig;

    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    if (http_server_start(&config, &s, &err) != XP_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%d\n", http_server_port(s));
    fflush(stdout);
    sigwait(&stop, &sig);
    http_server_stats(s, &stats);
    getrusage(RUSAGE_SELF, &use);
    double cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    printf("%lu requests, %.2f s CPU, %.2f us a request, %ld KiB peak\n",
           (unsigned long)stats.requests, cpu, stats.requests ? cpu * 1e6 / stats.requests : 0,
           use.ru_maxrss);
    http_server_drain(s, 1000);
    xp_workers_free(workers);
    return 0;
}
