#include "lib/base/pb_wire.h"
#include "tests/unit/unit.h"

static void what_the_writer_writes_the_reader_reads(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 1000);
    xp_pb_put_u64(&b, 1, 0);
    xp_pb_put_u64(&b, 2, UINT64_MAX);
    xp_pb_put_double(&b, 3, -2.5);
    xp_pb_put_bytes(&b, 536870911, XP_SPAN_LIT("hi"));
    xp_pb_put_bytes(&b, 5, (struct xp_span){0});

    struct xp_pb r = xp_pb_open(xp_buf_all(&b));
    struct xp_pb_field f;
    assert_true(xp_pb_next(&r, &f) && f.num == 1 && f.type == XP_PB_VARINT && f.value == 0);
    assert_true(xp_pb_next(&r, &f) && f.num == 2 && f.value == UINT64_MAX);
    assert_true(xp_pb_next(&r, &f) && f.num == 3 && xp_pb_double(f.value) == -2.5);
    assert_true(xp_pb_next(&r, &f) && f.num == 536870911);
    assert_true(xp_span_eq(f.bytes, XP_SPAN_LIT("hi")));
    assert_true(xp_pb_next(&r, &f) && f.num == 5 && f.bytes.n == 0);
    assert_false(xp_pb_next(&r, &f));
    assert_false(r.bad);
    xp_buf_fini(&b);
}

/* Walks s to its end or to where it is bad: the number of fields, negative when bad. */
static int walk(struct xp_span s, size_t *stopped)
{
    struct xp_pb r = xp_pb_open(s);
    struct xp_pb_field f;
    int n = 0;
    while (xp_pb_next(&r, &f))
        n++;
    *stopped = (size_t)(r.p - s.p);
    return r.bad ? -n - 1 : n;
}

static void malformed_bytes_stop_the_reader_where_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n, stopped;
    } rows[] = {
        {"\x08", 1, 1},                                              /* value missing */
        {"\x08\x01\x80", 3, 2},                                      /* tag cut off */
        {"\x00\x01", 2, 0},                                          /* field 0 */
        {"\x0b\x00", 2, 1},                                          /* group begins */
        {"\x0c\x00", 2, 1},                                          /* group ends */
        {"\x0e\x00", 2, 1},                                          /* type 6 */
        {"\x0f\x00", 2, 1},                                          /* type 7 */
        {"\x0a\x05xxxx", 6, 1},                                      /* length past the end */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 1},     /* length 2^64 - 1 */
        {"\x09\x01\x02\x03\x04\x05\x06\x07", 8, 1},                  /* 64 bits cut off */
        {"\x0d\x01\x02\x03", 4, 1},                                  /* 32 bits cut off */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, 1}, /* 11 bytes */
        {"\x88\x80\x80\x80\x10\x01", 6, 0},                          /* tag above 32 bits */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t stopped;
        assert_true(walk(xp_span_of(rows[i].bytes, rows[i].n), &stopped) < 0);
        assert_int_equal(stopped, rows[i].stopped);
    }
}

static void a_varint_of_ten_bytes_is_taken_and_its_excess_bits_dropped(void **state)
{
    (void)state;
    const uint8_t in[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    uint64_t v;
    assert_ptr_equal(xp_varint_read(in, in + 10, &v), in + 10);
    assert_true(v == UINT64_MAX);
    assert_null(xp_varint_read(in, in + 9, &v));
    assert_null(xp_varint_read(in, in, &v));
}

static void varints_and_zigzag_come_back(void **state)
{
    (void)state;
    uint8_t t[XP_VARINT_MAX];
    for (int shift = 0; shift < 64; shift++) {
        for (int d = -1; d <= 1; d++) {
            uint64_t v = (UINT64_C(1) << shift) + (uint64_t)d, back;
            uint8_t *end = xp_varint_write(t, v);
            assert_ptr_equal(xp_varint_read(t, end, &back), end);
            assert_true(back == v);
            assert_true(xp_zigzag(xp_unzigzag(v)) == v);
        }
    }
    assert_true(xp_zigzag(-1) == 1 && xp_zigzag(1) == 2 && xp_zigzag(INT64_MIN) == UINT64_MAX);
}

static void an_empty_message_has_no_fields(void **state)
{
    (void)state;
    size_t stopped;
    assert_int_equal(walk((struct xp_span){0}, &stopped), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_writer_writes_the_reader_reads),
        cmocka_unit_test(malformed_bytes_stop_the_reader_where_they_are),
        cmocka_unit_test(a_varint_of_ten_bytes_is_taken_and_its_excess_bits_dropped),
        cmocka_unit_test(varints_and_zigzag_come_back),
        cmocka_unit_test(an_empty_message_has_no_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
