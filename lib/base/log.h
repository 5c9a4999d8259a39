/* lib/base/log.h - one line a fact, to stderr.
 *
 * `xp_log(XP_LOG_WARN, "load", "host %.*s: %s", ...)` prints
 * `2026-11-29T23:30:00.123Z warn load host ...`. Control bytes in the text are shown as \xNN,
 * so that a name from a profile cannot forge a line. No secrets: callers pass none.
 * Threads: any.
 */
#ifndef XP_BASE_LOG_H
#define XP_BASE_LOG_H

enum xp_log_level { XP_LOG_DEBUG, XP_LOG_INFO, XP_LOG_WARN, XP_LOG_ERROR };

void xp_log_set_level(enum xp_log_level least);
void xp_log(enum xp_log_level level, const char *module, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
