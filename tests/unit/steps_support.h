/* tests/unit/steps_support.h - a host with two TPU cores and steps of 100 ms, for the pages about
 * steps.
 *
 * Of each step core 0 computes 40 ms, waits 20 ms for infeed, and reduces 20 ms; core 1 computes
 * 50 ms, waits 10 ms, reduces 20 ms. The rest is idle.
 */
#ifndef TESTS_UNIT_STEPS_SUPPORT_H
#define TESTS_UNIT_STEPS_SUPPORT_H

#include "tests/unit/tool_support.h"

/* Steps begin at (first + i) * 100 ms. */
struct tool_file tpu_host(const char *name, int first, int steps);
/* Prefix of what a tool says in words. */
void assert_says(json_t *text, const char *start);

#endif
