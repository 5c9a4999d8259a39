#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    int http;
    bool retry;
    const char *code, *text;
} table[XP_STATUS_COUNT] = {
#define X(name, http, retry, code, text) [XP_##name] = {http, retry, code, text},
    XP_STATUS_MAP(X)
#undef X
};

enum xp_status xp_fail(struct xp_error *err, enum xp_status status, uint64_t offset,
                       const char *fmt, ...)
{
    if (!err)
        return status;
    err->status = status;
    err->retry_s = 0;
    err->offset = offset;
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, ap) < 0)
        err->text[0] = 0;
    va_end(ap);
    return status;
}

void xp_error_retry(struct xp_error *err, uint64_t ms)
{
    uint64_t s = ms / 1000 + (ms % 1000 > 0);
    if (err)
        err->retry_s = (uint16_t)(s < 1 ? 1 : s > XP_RETRY_MAX_S ? XP_RETRY_MAX_S : s);
}

static enum xp_status known(enum xp_status status)
{
    return (unsigned)status < XP_STATUS_COUNT ? status : XP_INTERNAL;
}

int xp_status_http(enum xp_status status)
{
    return table[known(status)].http;
}

bool xp_status_retry(enum xp_status status)
{
    return table[known(status)].retry;
}

const char *xp_status_code(enum xp_status status)
{
    return table[known(status)].code;
}

const char *xp_status_text(enum xp_status status)
{
    return table[known(status)].text;
}

void xp_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, expr);
    fflush(stderr);
    abort();
}
