/* tests/unit/unit.h - cmocka with the headers it forgets to include. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/buf.h"

/* What b holds is exactly the string text. */
#define assert_buf_is(b, text)                                                                     \
    do {                                                                                           \
        struct xp_span want_ = xp_span_str(text);                                                  \
        assert_false((b)->failed);                                                                 \
        if (!xp_span_eq(xp_buf_all(b), want_))                                                     \
            fail_msg("have <%.*s>, want <%s>", (int)(b)->n, (const char *)(b)->p, text);           \
    } while (0)

#endif
