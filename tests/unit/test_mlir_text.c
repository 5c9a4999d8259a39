#include "shard/hlo/mlir_text.h"

#include "lib/base/arena.h"
#include "tests/unit/unit.h"

/* One byte of the format's numbers: 0 to 127. */
#define N(v) (uint8_t)((v) << 1 | 1)

static void put(struct xp_buf *b, const uint8_t *p, size_t n)
{
    xp_buf_add(b, p, n);
}

static void section(struct xp_buf *file, uint8_t id, const struct xp_buf *body)
{
    const uint8_t head[] = {id, N(body->n)};
    assert_true(body->n < 128);
    put(file, head, 2);
    put(file, body->p, body->n);
}

enum { S_BUILTIN, S_T, S_MODULE, S_OP, S_IF, S_NAME, S_TEXT, NSTRINGS };
static const char *const names[NSTRINGS] = {"builtin", "t", "module", "op", "if", "a", "x\"y"};

enum { A_LOC, A_NAME, A_TEXT, A_DICT, NATTRS };
enum { T_I32, T_F32, NTYPES };

static void put_strings(struct xp_buf *file)
{
    struct xp_buf b;
    xp_buf_init(&b, 200);
    xp_buf_byte(&b, N(NSTRINGS));
    for (int i = NSTRINGS; i-- > 0;)
        xp_buf_byte(&b, N(strlen(names[i]) + 1));
    for (int i = 0; i < NSTRINGS; i++)
        put(&b, (const uint8_t *)names[i], strlen(names[i]) + 1);
    section(file, 0, &b);
    xp_buf_fini(&b);
    static const uint8_t dialects[] = {N(2),        N(S_BUILTIN), N(S_T), N(0),    N(1),
                                       N(S_MODULE), N(1),         N(2),   N(S_OP), N(S_IF)};
    struct xp_buf d;
    xp_buf_init(&d, 200);
    put(&d, dialects, sizeof dialects);
    section(file, 1, &d);
    xp_buf_fini(&d);
}

struct entry {
    uint8_t n, bytes[4];
};

static void put_entries(struct xp_buf *file)
{
    static const struct entry v[] = {
        [A_LOC] = {1, {N(15)}},
        [A_NAME] = {2, {N(2), N(S_NAME)}},
        [A_TEXT] = {2, {N(2), N(S_TEXT)}},
        [A_DICT] = {4, {N(1), N(1), N(A_NAME), N(A_TEXT)}},
        [NATTRS + T_I32] = {3, {N(0), 0x02, 0x02}}, /* 32 bits: 32 << 2 in two bytes */
        [NATTRS + T_F32] = {1, {N(5)}},
    };
    struct xp_buf data, at;
    xp_buf_init(&data, 200);
    xp_buf_init(&at, 200);
    const uint8_t head[] = {N(NATTRS), N(NTYPES), N(0), N(NATTRS + NTYPES)};
    put(&at, head, sizeof head);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        put(&data, v[i].bytes, v[i].n);
        xp_buf_byte(&at, N(v[i].n << 1 | 1));
    }
    section(file, 2, &data);
    section(file, 3, &at);
    xp_buf_fini(&data);
    xp_buf_fini(&at);
}

enum { OP_MODULE, OP_OP, OP_IF };
enum { HAS_ATTRS = 1, HAS_RESULTS = 2, HAS_OPERANDS = 4, HAS_REGIONS = 16 };

/* The text of a file with this code. */
static enum xp_status print(const uint8_t *code, size_t n, struct xp_buf *out, struct xp_error *err)
{
    struct xp_buf file, b;
    xp_buf_init(&file, 1000);
    xp_buf_init(&b, 200);
    put(&file,
        (const uint8_t *)"ML\xefR\x01"
                         "me",
        8);
    put_strings(&file);
    put_entries(&file);
    put(&b, code, n);
    section(&file, 4, &b);
    struct xp_arena *a = xp_arena_new(NULL);
    static const struct mlir_options options = {.plain_memory = true};
    enum xp_status status = mlir_text(xp_buf_all(&file), &options, a, out, err);
    xp_arena_free(a);
    xp_buf_fini(&file);
    xp_buf_fini(&b);
    return status;
}

static const uint8_t branches[] = {N(1 << 1),     N(OP_MODULE),
                                   HAS_REGIONS,   N(A_LOC),
                                   N(1 << 1 | 1), /* one region, by itself */
                                   N(1),          N(1),
                                   N(2 << 1), /* a block, a value, two operations */
                                   N(OP_OP),      HAS_ATTRS | HAS_RESULTS,
                                   N(A_LOC),      N(A_DICT),
                                   N(1),          N(T_I32),
                                   N(OP_IF),      HAS_OPERANDS | HAS_REGIONS,
                                   N(A_LOC),      N(1),
                                   N(0),          N(2 << 1),
                                   N(1),          N(2),
                                   N(1 << 1 | 1), N(1),
                                   N(T_F32),      N(A_LOC), /* a block with an argument */
                                   N(OP_OP),      HAS_RESULTS,
                                   N(A_LOC),      N(1),
                                   N(T_F32),      N(1),
                                   N(1),          N(1 << 1),
                                   N(OP_OP),      HAS_RESULTS,
                                   N(A_LOC),      N(1),
                                   N(T_I32)};

static void sides_of_a_branch_number_their_values_alike(void **state)
{
    (void)state;
    struct xp_error err = {0};
    struct xp_buf out;
    xp_buf_init(&out, 2000);
    assert_int_equal(print(branches, sizeof branches, &out, &err), XP_OK);
    assert_buf_is(&out, "module {\n"
                        "  %0 = \"t.op\"() {a = \"x\\22y\"} : () -> i32\n"
                        "  \"t.if\"(%0) ({\n"
                        "  ^bb0(%arg0: f32):\n"
                        "    %1 = \"t.op\"() : () -> f32\n"
                        "  }, {\n"
                        "    %1 = \"t.op\"() : () -> i32\n"
                        "  }) : (i32) -> ()\n"
                        "}");
    xp_buf_fini(&out);
}

static void code_that_ends_early_is_a_sentence(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof branches; n++) {
        struct xp_error err = {0};
        struct xp_buf out;
        xp_buf_init(&out, 2000);
        assert_int_equal(print(branches, n, &out, &err), XP_CORRUPT);
        assert_true(err.text[0]);
        xp_buf_fini(&out);
    }
}

static void a_value_from_nowhere_is_refused(void **state)
{
    (void)state;
    uint8_t code[sizeof branches];
    struct xp_error err = {0};
    struct xp_buf out;
    memcpy(code, branches, sizeof code);
    assert_int_equal(code[18], N(0)); /* what the branch asks for */
    code[18] = N(5);
    xp_buf_init(&out, 2000);
    assert_int_equal(print(code, sizeof code, &out, &err), XP_CORRUPT);
    xp_buf_fini(&out);
}

static void a_newer_version_is_named(void **state)
{
    (void)state;
    struct xp_arena *a = xp_arena_new(NULL);
    struct xp_error err = {0};
    struct xp_buf out;
    static const struct mlir_options options = {0};
    xp_buf_init(&out, 2000);
    assert_int_equal(mlir_text(XP_SPAN_LIT("ML\xefR\x0dx"), &options, a, &out, &err), XP_CORRUPT);
    assert_non_null(strstr(err.text, "version 6"));
    xp_buf_fini(&out);
    xp_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_of_a_branch_number_their_values_alike),
        cmocka_unit_test(code_that_ends_early_is_a_sentence),
        cmocka_unit_test(a_value_from_nowhere_is_refused),
        cmocka_unit_test(a_newer_version_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
