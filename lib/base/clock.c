#include "lib/base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t xp_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t xp_wall_ms(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / 1000000);
}

uint64_t xp_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

const char *xp_iso_from_ms(int64_t wall_ms, char buf[XP_ISO_MAX])
{
    time_t seconds = (time_t)(wall_ms / 1000 - (wall_ms % 1000 < 0));
    struct tm tm;
    buf[0] = 0;
    if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
        return buf;
    snprintf(buf, XP_ISO_MAX, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return buf;
}
