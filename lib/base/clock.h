/* lib/base/clock.h - monotonic and wall time. */
#ifndef XP_BASE_CLOCK_H
#define XP_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t xp_now_ns(void); /* monotonic */
int64_t xp_wall_ms(void); /* since 1970, UTC */
uint64_t xp_thread_cpu_ns(void);

#define XP_ISO_MAX 32
/* "2026-11-29T23:30:00Z"; "" when out of range. Returns buf. */
const char *xp_iso_from_ms(int64_t wall_ms, char buf[XP_ISO_MAX]);

#endif
