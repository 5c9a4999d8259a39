/* tests/fuzz/fuzz_mlir.c - MLIR bytecode of any bytes, printed: a text or a status with a sentence;
 * nothing reads past its bytes, and what holds itself ends. */
#include "shard/hlo/mlir_text.h"

#define BUDGET ((uint64_t)256 << 20)
#define TEXT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mlir_options options[] = {{true}, {false}};
    struct xp_error err = {0};
    struct xp_budget budget;
    struct xp_buf out;

    for (size_t i = 0; i < 2; i++) {
        xp_budget_init(&budget, BUDGET);
        struct xp_arena *a = xp_arena_new(&budget);
        XP_ASSERT(a);
        xp_buf_init(&out, TEXT_MAX);
        enum xp_status status = mlir_text(xp_span_of(data, size), &options[i], a, &out, &err);
        XP_ASSERT(status == XP_OK || (status == err.status && err.text[0]));
        xp_buf_fini(&out);
        xp_arena_free(a);
    }
    return 0;
}
