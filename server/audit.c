#include "server/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/json_out.h"
#include "lib/base/log.h"

#define LINE_MAX_BYTES ((size_t)16 << 10)

struct audit {
    int fd;
    atomic_bool failed;
};

enum xp_status audit_open(const char *path, struct audit **out, struct xp_error *err)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : STDERR_FILENO;
    if (fd < 0)
        return xp_fail(err, XP_IO, 0, "--audit-log: cannot open \"%s\": %s", path, strerror(errno));
    struct audit *a = calloc(1, sizeof *a);
    XP_ASSERT(a);
    a->fd = fd;
    *out = a;
    return XP_OK;
}

void audit_close(struct audit *a)
{
    if (a && a->fd != STDERR_FILENO)
        close(a->fd);
    free(a);
}

static void add(struct xp_json *j, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    xp_json_key(j, key);
    xp_json_str(j, value);
}

static void add_time(struct xp_json *j)
{
    struct timespec now;
    struct tm tm;
    char day[32], text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1000000);
    add(j, "time", text);
}

static void put(struct audit *a, struct xp_span line)
{
    ssize_t n;
    do
        n = write(a->fd, line.p, line.n);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)line.n)
        return;
    if (!atomic_exchange(&a->failed, true))
        xp_log(XP_LOG_ERROR, "audit", "the audit log cannot be written to: %s",
               n < 0 ? strerror(errno) : "no room");
}

void audit(struct audit *a, const struct audit_event *e)
{
    struct xp_buf b;
    struct xp_json j;

    if (!a)
        return;
    xp_buf_init(&b, LINE_MAX_BYTES);
    xp_json_init(&j, &b);
    xp_json_obj(&j);
    add_time(&j);
    add(&j, "what", e->what);
    add(&j, "who", e->who);
    add(&j, "project", e->project);
    add(&j, "outcome", e->outcome);
    add(&j, "detail", e->detail);
    add(&j, "address", e->address);
    xp_json_obj_end(&j);
    xp_buf_byte(&b, '\n');
    if (!b.failed)
        put(a, xp_buf_all(&b));
    xp_buf_fini(&b);
}
