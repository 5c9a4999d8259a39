/* server/access.h - what became of each request: a line in the access log, a span for a collector.
 *
 * The log has one JSON object a line:
 *
 *     {"time":"2026-11-30T07:00:00.123Z","id":"…","trace":"…","method":"GET","path":"/p/a/api/v1/run",
 *      "query":"run=x","status":200,"bytes":1234,"ms":1.234,"who":"user:ann@example.com",
 *      "route":"api/run","aborted":false,"http":"2"}
 *
 * Secrets are not in it: of a share link's path only the beginning, and of queries only those of
 * the two APIs.
 *
 * Spans go by OTLP/HTTP in JSON (POST <endpoint>/v1/traces): one of kind SERVER a sampled request,
 * parent and trace as its traceparent says, so that a frontend's and its shards' are one trace.
 *
 * Order      access_new -> access_done as http_config's `done` -> the server drains -> access_free,
 *            which sends what waits.
 * Threads    access_done from any loop, never blocking: a thread of its own writes and sends.
 * Limits     ACCESS_WAIT_MAX bytes of lines and ACCESS_SPANS_MAX spans wait; what comes then is
 *            dropped and counted.
 */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include "lib/base/buf.h"
#include "lib/http/http.h"

#define ACCESS_WAIT_MAX ((size_t)1 << 20)
#define ACCESS_SPANS_MAX 2048

struct access;

struct access_config {
    const char *log;      /* a file, "-": stderr; NULL: no log */
    const char *endpoint; /* http://collector:4318; NULL: no spans */
    const char *role;     /* service.instance's role: "all", "frontend", "shard" */
    const char *version;
};

/* XP_IO when the file cannot be opened for appending, XP_BAD_REQUEST for an endpoint that is none.
 */
enum xp_status access_new(const struct access_config *config, struct access **out,
                          struct xp_error *err);
void access_free(struct access *a); /* NULL is fine */

void access_done(void *access, const struct http_done *d);

struct access_counts {
    uint64_t lines_dropped, spans_sent, spans_dropped;
};
void access_counts(const struct access *a, struct access_counts *out);

#endif
