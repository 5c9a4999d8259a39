#include "lib/base/pb_wire.h"
#include "server/capture/grpc_frame.h"
#include "tests/unit/unit.h"

/* What came of field 8. */
static struct xp_buf profile;

static void take(void *ctx, struct xp_span bytes)
{
    xp_buf_span(ctx, bytes);
}

/* Feeds it in pieces of n bytes; whether all were taken. */
static bool feed(struct grpc_frame *f, struct xp_span s, size_t n)
{
    xp_buf_fini(&profile);
    xp_buf_init(&profile, 1 << 20);
    frame_init(f, take, &profile);
    for (size_t at = 0; at < s.n; at += n)
        if (!frame_feed(f, xp_span_of(s.p + at, s.n - at < n ? s.n - at : n)))
            return false;
    return true;
}

/* A ProfileResponse: tool_data, empty_trace, a fixed field of the future, the profile. */
static void put_response(struct xp_buf *b, bool empty, const char *xspace)
{
    struct xp_buf m;
    xp_buf_init(&m, 1 << 16);
    xp_pb_put_bytes(&m, 6,
                    XP_SPAN_LIT("\x0a\x03"
                                "abc"));
    xp_pb_put_u64(&m, 7, empty);
    xp_pb_put_double(&m, 99, 1.5);
    xp_buf_add(&m, "\x65\x01\x02\x03\x04", 5); /* field 12, four bytes */
    if (xspace)
        xp_pb_put_bytes(&m, 8, xp_span_str(xspace));
    xp_pb_put_u64(&m, 1000, 77);
    frame_put(b, xp_buf_all(&m));
    xp_buf_fini(&m);
}

static void the_profile_is_cut_out_whatever_the_pieces(void **state)
{
    struct grpc_frame f;
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1 << 16);
    put_response(&b, false, "the profile's bytes");
    for (size_t n = 1; n <= b.n; n++) {
        assert_true(feed(&f, xp_buf_all(&b), n));
        assert_true(frame_is_whole(&f));
        assert_buf_is(&profile, "the profile's bytes");
        assert_true(f.profile && !f.empty);
        assert_int_equal(f.profile_n, 19);
        assert_int_equal(f.message_n, b.n - FRAME_PREFIX);
    }
    xp_buf_fini(&b);
}

static void a_cut_message_is_never_whole(void **state)
{
    struct grpc_frame f;
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1 << 16);
    put_response(&b, false, "profile");
    for (size_t n = 0; n < b.n; n++) {
        assert_true(feed(&f, xp_span_of(b.p, n), 7));
        assert_false(frame_is_whole(&f));
    }
    xp_buf_fini(&b);
}

static void five_zero_bytes_are_an_empty_message_and_none_is_no_message(void **state)
{
    struct grpc_frame f;
    (void)state;
    assert_true(feed(&f, xp_span_of("\0\0\0\0\0", 5), 5));
    assert_true(frame_is_whole(&f));
    assert_false(f.profile || f.empty);
    assert_true(feed(&f, xp_span_of("", 0), 1));
    assert_false(frame_is_whole(&f));
}

static void an_empty_trace_and_an_empty_profile_are_told(void **state)
{
    struct grpc_frame f;
    struct xp_buf b;
    (void)state;
    xp_buf_init(&b, 1 << 16);
    put_response(&b, true, "");
    assert_true(feed(&f, xp_buf_all(&b), 3));
    assert_true(frame_is_whole(&f));
    assert_true(f.empty && f.profile);
    assert_int_equal(f.profile_n, 0);
    xp_buf_fini(&b);
}

static void refuse(const char *bytes, size_t n, const char *why)
{
    struct grpc_frame f;
    for (size_t piece = 1; piece <= n; piece++) {
        assert_false(feed(&f, xp_span_of(bytes, n), piece));
        assert_non_null(strstr(f.why, why));
        assert_false(frame_is_whole(&f));
        assert_false(frame_feed(&f, XP_SPAN_LIT("\x08\x01"))); /* nor is more taken */
        assert_int_equal(profile.n, 0);
    }
}

#define REFUSE(bytes, why) refuse(bytes, sizeof(bytes) - 1, why)

static void hostile_answers_are_refused_with_a_reason(void **state)
{
    (void)state;
    REFUSE("\1\0\0\0\2\x38\1", "compressed");
    REFUSE("\0\x80\0\0\0", "2 GiB");
    REFUSE("\0\xff\xff\xff\xff", "2 GiB");
    REFUSE("\0\0\0\0\2\x38\1\0\0\0\0\0", "follows");
    REFUSE("\0\0\0\0\0\0", "follows");
    REFUSE("\0\0\0\0\3\x42\7x", "longer than the message");
    REFUSE("\0\0\0\0\x0b\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "longer than the message");
    REFUSE("\0\0\0\0\3\x65\1\2", "longer than the message");
    REFUSE("\0\0\0\0\2\0\1", "number is none");
    REFUSE("\0\0\0\0\2\x43\1", "does not exist"); /* a group */
    REFUSE("\0\0\0\0\x20\x38\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", "too long");
    REFUSE("\0\0\0\0\x20\xf8\xff\xff\xff\xff\1", "number is none");
}

static void the_largest_message_is_counted_in_its_own_size(void **state)
{
    struct grpc_frame f;
    static const char head[] = "\0\x7f\xff\xff\xff\x42\xf9\xff\xff\xff\7";
    static uint8_t piece[1 << 16];
    uint64_t left = 0x7ffffff9;
    (void)state;
    frame_init(&f, NULL, NULL);
    assert_true(frame_feed(&f, xp_span_of(head, sizeof head - 1)));
    for (; left; left -= left < sizeof piece ? left : sizeof piece)
        assert_true(frame_feed(&f, xp_span_of(piece, left < sizeof piece ? left : sizeof piece)));
    assert_true(frame_is_whole(&f));
    assert_int_equal(f.profile_n, 0x7ffffff9);
}

static void a_message_for_people_has_no_control_characters(void **state)
{
    char to[64], small[8];
    (void)state;
    grpc_text("Error%20in%0A%09gs%3A//b%C3%A9", to, sizeof to);
    assert_string_equal(to, "Error in  gs://b\xc3\xa9");
    grpc_text("%00%1b[31m\x7f%", to, sizeof to);
    assert_string_equal(to, "  [31m %");
    grpc_text("100%zz%4", to, sizeof to);
    assert_string_equal(to, "100%zz%4");
    grpc_text("123456%C3%A9", small, sizeof small); /* cut, not within a character */
    assert_string_equal(small, "123456");
    grpc_text("12345678", small, sizeof small);
    assert_string_equal(small, "1234567");
    grpc_text("", small, 1);
    assert_string_equal(small, "");
}

static void a_status_is_0_to_16(void **state)
{
    (void)state;
    assert_int_equal(grpc_number("0"), 0);
    assert_int_equal(grpc_number("13"), 13);
    assert_int_equal(grpc_number("16"), 16);
    static const char *const none[] = {"", "17", "99", "-1", "1x", "x", " 1", "100", "0x1", NULL};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(grpc_number(none[i]), -1);
}

static void a_timeout_has_at_most_eight_digits(void **state)
{
    char t[16];
    (void)state;
    grpc_timeout_text(60000, t);
    assert_string_equal(t, "60000m");
    grpc_timeout_text(99999999, t);
    assert_string_equal(t, "99999999m");
    grpc_timeout_text(100000000, t);
    assert_string_equal(t, "100000S");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profile_is_cut_out_whatever_the_pieces),
        cmocka_unit_test(a_cut_message_is_never_whole),
        cmocka_unit_test(five_zero_bytes_are_an_empty_message_and_none_is_no_message),
        cmocka_unit_test(an_empty_trace_and_an_empty_profile_are_told),
        cmocka_unit_test(hostile_answers_are_refused_with_a_reason),
        cmocka_unit_test(the_largest_message_is_counted_in_its_own_size),
        cmocka_unit_test(a_message_for_people_has_no_control_characters),
        cmocka_unit_test(a_status_is_0_to_16),
        cmocka_unit_test(a_timeout_has_at_most_eight_digits),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    xp_buf_fini(&profile);
    return rc;
}
