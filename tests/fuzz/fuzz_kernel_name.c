/* tests/fuzz/fuzz_kernel_name.c - any bytes are the name of a kernel: it is read within bounds, the
 * same each time, and a short name is there for each that is not empty. They are what stands behind
 * _Z, too, so that all of them get into the reader of such names.
 */
#include <stdlib.h>

#include "lib/base/status.h"
#include "shard/tools/demangle.h"
#include "shard/tools/kernel_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_behind_z(const uint8_t *data, size_t size)
{
    struct xp_buf name, out;
    xp_buf_init(&name, size + 2);
    xp_buf_init(&out, 2 * DEMANGLE_OUT_MAX);
    xp_buf_str(&name, "_Z");
    xp_buf_add(&name, data, size);
    XP_ASSERT(demangle(xp_buf_all(&name), &out) || !out.n);
    xp_buf_fini(&name);
    xp_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_behind_z(data, size);
    struct xp_span name = xp_span_of(data, size);
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_buf once, again;
    struct xp_bump b;
    xp_bump_init(&b, a);
    xp_buf_init(&once, 2 * DEMANGLE_OUT_MAX);
    xp_buf_init(&again, 2 * DEMANGLE_OUT_MAX);
    bool read = demangle(name, &once);
    XP_ASSERT(read == demangle(name, &again));
    XP_ASSERT(once.n <= DEMANGLE_OUT_MAX && (read || !once.n));
    XP_ASSERT(xp_span_eq(xp_buf_all(&once), xp_buf_all(&again)));
    struct xp_span s = kernel_short_name(name, &b);
    XP_ASSERT(!size || s.n);
    XP_ASSERT(s.n <= KERNEL_NAME_MAX || s.p == name.p);
    XP_ASSERT(!size || kernel_full_name(name, &b).n);
    xp_buf_fini(&once);
    xp_buf_fini(&again);
    xp_arena_free(a);
    return 0;
}
