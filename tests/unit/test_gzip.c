#include "lib/base/gzip.h"

#include <zlib.h>

#include "tests/unit/unit.h"

/* Text-like bytes, so that they compress, different at every place. */
static uint8_t *sample(size_t n)
{
    uint8_t *p = malloc(n ? n : 1);
    uint32_t r = 7;
    for (size_t i = 0; i < n; i++) {
        r = r * 1664525 + 1013904223;
        p[i] = "{\"name\":12345,} "[(r >> 24) & 15];
    }
    return p;
}

static void pack(struct xp_buf *b, const uint8_t *p, size_t n, size_t piece)
{
    struct xp_gzip *g = xp_gzip_new(b);
    for (size_t at = 0; at < n; at += piece)
        xp_gzip_add(g, xp_span_of(p + at, n - at < piece ? n - at : piece));
    xp_gzip_end(g);
}

/* What zlib makes of it: exactly n bytes like p. */
static void zlib_reads(struct xp_buf *b, const uint8_t *p, size_t n)
{
    uint8_t *back = malloc(n + 1);
    z_stream z = {
        .next_in = b->p, .avail_in = (uInt)b->n, .next_out = back, .avail_out = (uInt)n + 1};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, n);
    assert_int_equal(z.avail_in, 0);
    assert_memory_equal(back, p, n);
    inflateEnd(&z);
    free(back);
}

static enum xp_status unpack(struct xp_span in, size_t piece, struct xp_buf *out)
{
    struct xp_gunzip *g = xp_gunzip_new(in);
    enum xp_status st;
    size_t got;
    do {
        uint8_t *to = xp_buf_room(out, piece);
        assert_non_null(to);
        st = xp_gunzip_read(g, to, piece, &got);
        out->n += got;
    } while (st == XP_OK && got);
    xp_gunzip_free(g);
    return st;
}

static void gzip_comes_back_by_zlib_and_by_us(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 65536, 300000, 3000000};
    static const size_t pieces[] = {1000000000, 4096, 777};
    for (size_t i = 0; i < 6; i++) {
        uint8_t *p = sample(sizes[i]);
        for (size_t k = 0; k < 3; k++) {
            struct xp_buf b, out;
            xp_buf_init(&b, 10 << 20);
            xp_buf_init(&out, 10 << 20);
            pack(&b, p, sizes[i], pieces[k]);
            assert_false(b.failed);
            zlib_reads(&b, p, sizes[i]);
            assert_int_equal(unpack(xp_buf_all(&b), pieces[k] > 65536 ? 65536 : pieces[k], &out),
                             XP_OK);
            assert_int_equal(out.n, sizes[i]);
            if (sizes[i])
                assert_memory_equal(out.p, p, sizes[i]);
            xp_buf_fini(&out);
            xp_buf_fini(&b);
        }
        free(p);
    }
}

static void gzip_stops_at_the_limit_of_its_buffer(void **state)
{
    (void)state;
    uint8_t *p = sample(1000000);
    struct xp_buf b;
    xp_buf_init(&b, 1 << 20);
    pack(&b, p, 1000000, 65536);
    size_t need = b.n;
    assert_false(b.failed);
    xp_buf_fini(&b);

    xp_buf_init(&b, need);
    pack(&b, p, 1000000, 65536);
    assert_false(b.failed);
    assert_int_equal(b.n, need);
    xp_buf_fini(&b);

    xp_buf_init(&b, need - 1);
    pack(&b, p, 1000000, 65536);
    assert_true(b.failed);
    assert_true(b.n < need);
    xp_buf_fini(&b);
    free(p);
}

static void members_one_after_another_read_as_one(void **state)
{
    (void)state;
    struct xp_buf b, out;
    xp_buf_init(&b, 1000000);
    xp_buf_init(&out, 1000000);
    pack(&b, (const uint8_t *)"first ", 6, 6);
    pack(&b, (const uint8_t *)"", 0, 1);
    pack(&b, (const uint8_t *)"second", 6, 6);
    assert_int_equal(unpack(xp_buf_all(&b), 4, &out), XP_OK);
    assert_buf_is(&out, "first second");
    xp_buf_fini(&out);
    xp_buf_fini(&b);
}

static void damage_and_truncation_are_corrupt(void **state)
{
    (void)state;
    uint8_t *p = sample(20000);
    struct xp_buf b;
    xp_buf_init(&b, 1000000);
    pack(&b, p, 20000, 20000);
    for (size_t n = 0; n < b.n; n += n < 30 || n > b.n - 30 ? 1 : 97) {
        struct xp_buf out;
        xp_buf_init(&out, 100000);
        assert_int_equal(unpack(xp_span_of(b.p, n), 1000, &out), XP_CORRUPT);
        xp_buf_fini(&out);
    }
    for (size_t at = 0; at < b.n; at += 61) {
        struct xp_buf out;
        xp_buf_init(&out, 1 << 22);
        b.p[at] ^= 0x55;
        enum xp_status st = unpack(xp_buf_all(&b), 1000, &out);
        /* Only bytes of the header that say nothing (time, system) may be changed unnoticed. */
        assert_true(st == XP_CORRUPT || (at >= 4 && at < 10));
        b.p[at] ^= 0x55;
        xp_buf_fini(&out);
    }
    xp_buf_fini(&b);
    free(p);
}

static void dropping_a_half_made_member_is_clean(void **state)
{
    (void)state;
    struct xp_buf b;
    xp_buf_init(&b, 1000);
    struct xp_gzip *g = xp_gzip_new(&b);
    xp_gzip_add(g, XP_SPAN_LIT("abc"));
    xp_gzip_drop(g);
    xp_gzip_drop(NULL);
    xp_gunzip_free(NULL);
    xp_buf_fini(&b);
}

static void parts_made_apart_join_to_one_stream(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 70000, 5, 400000};
    uint8_t *p = sample(500000);
    struct xp_buf out, one[5];
    size_t at = 3;
    xp_buf_init(&out, SIZE_MAX);
    struct xp_gzip *whole = xp_gzip_new(&out);
    xp_gzip_add(whole, xp_span_of(p, at));
    for (int i = 0; i < 5; i++) {
        xp_buf_init(&one[i], SIZE_MAX);
        struct xp_gzip *g = xp_gzip_new(&one[i]);
        xp_gzip_add(g, xp_span_of(p + at, sizes[i]));
        struct xp_gzip_part part = xp_gzip_part(g);
        assert_int_equal(part.n, sizes[i]);
        xp_gzip_join(whole, &part);
        xp_gzip_drop(g);
        xp_buf_fini(&one[i]);
        at += sizes[i];
        xp_gzip_add(whole, xp_span_of(p + at, 7));
        at += 7;
    }
    xp_gzip_end(whole);
    zlib_reads(&out, p, at);
    xp_buf_fini(&out);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_comes_back_by_zlib_and_by_us),
        cmocka_unit_test(gzip_stops_at_the_limit_of_its_buffer),
        cmocka_unit_test(members_one_after_another_read_as_one),
        cmocka_unit_test(damage_and_truncation_are_corrupt),
        cmocka_unit_test(dropping_a_half_made_member_is_clean),
        cmocka_unit_test(parts_made_apart_join_to_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
