#include "lib/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"

static _Atomic int least_level = XP_LOG_INFO;

void xp_log_set_level(enum xp_log_level least)
{
    atomic_store_explicit(&least_level, least, memory_order_relaxed);
}

/* Shown as they are: printable ASCII and whole UTF-8 characters, but not the C1 controls
 * (U+0080 to U+009F), which terminals obey. */
static bool printable(const uint8_t *p, size_t n, bool ok)
{
    if (n == 1)
        return ok && *p >= 0x20 && *p != 0x7f;
    return ok && !(p[0] == 0xc2 && p[1] < 0xa0);
}

static size_t shown(const char *text, size_t n, char *out, size_t room)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    size_t at = 0;
    while (p < end && room - at >= 16) {
        bool ok;
        size_t step = xp_utf8_step(p, end, &ok);
        bool plain = printable(p, step, ok);
        for (size_t i = 0; i < step; i++) {
            if (plain) {
                out[at++] = (char)p[i];
                continue;
            }
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = hex[p[i] >> 4];
            out[at++] = hex[p[i] & 15];
        }
        p += step;
    }
    return at;
}

void xp_log(enum xp_log_level level, const char *module, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed))
        return;

    char text[1024], line[2304], iso[XP_ISO_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t text_n = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    int64_t now = xp_wall_ms();
    xp_iso_from_ms(now, iso);
    int head =
        snprintf(line, 128, "%.19s.%03dZ %s %.40s ", iso, (int)(now % 1000), names[level], module);
    size_t at = (size_t)head;
    at += shown(text, text_n, line + at, sizeof line - at);
    line[at++] = '\n';
    /* One write a line, so that lines of several threads do not mix; a lost line is no error. */
    ssize_t written = write(STDERR_FILENO, line, at);
    (void)written;
}
