#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "lib/objstore/objstore.h"

#define MB (1u << 20)
#define NO_LIMIT UINT64_MAX

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* Bytes with matches near and far, runs, and stretches that do not compress. */
static uint8_t *make_bytes(size_t n, uint64_t seed)
{
    uint8_t *p = malloc(n ? n : 1);
    uint64_t s = seed * 2654435761u + 88172645463325252u;
    for (size_t i = 0; i < n;) {
        uint64_t r = next_random(&s);
        size_t len = r % 700 + 1;
        size_t back = (r >> 20) % 40000 + 1;
        unsigned kind = (r >> 50) % 8;
        for (size_t k = 0; k < len && i < n; k++, i++) {
            if (kind < 4 && back <= i)
                p[i] = p[i - back];
            else if (kind < 6)
                p[i] = (uint8_t)("event offset_ps duration_ps "[(r + k * 7) % 28]);
            else
                p[i] = (uint8_t)next_random(&s);
        }
    }
    return p;
}

static struct xp_span deflate_with(struct xp_span in, int level, int strategy)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 9, strategy), Z_OK);
    size_t cap = deflateBound(&z, in.n) + 64;
    uint8_t *out = malloc(cap);
    z.next_in = (uint8_t *)(uintptr_t)in.p;
    z.avail_in = (unsigned)in.n;
    z.next_out = out;
    z.avail_out = (unsigned)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = z.total_out;
    deflateEnd(&z);
    return xp_span_of(out, n);
}

static struct xp_span gzip_bytes(struct xp_span in, int level)
{
    return deflate_with(in, level, Z_DEFAULT_STRATEGY);
}

static void span_free(struct xp_span s)
{
    free((void *)(uintptr_t)s.p);
}

static struct xp_span join(struct xp_span a, struct xp_span b)
{
    uint8_t *p = malloc(a.n + b.n + 1);
    if (a.n)
        memcpy(p, a.p, a.n);
    if (b.n)
        memcpy(p + a.n, b.p, b.n);
    return xp_span_of(p, a.n + b.n);
}

static struct xp_reader *open_mem(struct xp_span gz)
{
    struct xp_reader *r;
    struct xp_error err;
    assert_int_equal(xp_reader_open_mem(gz, 7, &r, &err), XP_OK);
    return r;
}

static struct xp_reader *open_gz(struct xp_span gz)
{
    struct xp_reader *r;
    struct xp_error err;
    assert_int_equal(xp_reader_open_gz(open_mem(gz), NO_LIMIT, NULL, NULL, &r, &err), XP_OK);
    return r;
}

/* Opens what must not open; returns what was said. */
static struct xp_error refuse(struct xp_span gz, uint64_t max, enum xp_status status)
{
    struct xp_reader *inner = open_mem(gz), *r;
    struct xp_error err;
    assert_int_equal(xp_reader_open_gz(inner, max, NULL, NULL, &r, &err), status);
    assert_null(r);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.text, "gzip"));
    xp_reader_close(inner);
    return err;
}

static void assert_read(struct xp_reader *r, struct xp_span want, uint64_t off, size_t n)
{
    struct xp_error err;
    size_t got;
    uint8_t *buf = malloc(n + 1);
    assert_int_equal(xp_reader_read(r, off, buf, n, &got, &err), XP_OK);
    size_t expect = off >= want.n ? 0 : want.n - off < n ? want.n - (size_t)off : n;
    assert_int_equal(got, expect);
    if (got && want.p)
        assert_int_equal(memcmp(buf, want.p + off, got), 0);
    free(buf);
}

/* --- same bytes --- */

static void reads_equal_the_plain_bytes_at_every_level_and_strategy(void **state)
{
    (void)state;
    size_t n = 700 * 1000;
    struct xp_span plain = xp_span_of(make_bytes(n, 3), n);
    uint64_t s = 99;
    for (int level = 0; level <= 9; level++) {
        for (int strategy = Z_DEFAULT_STRATEGY; strategy <= Z_FIXED; strategy++) {
            if (level > 1 && level < 9 && strategy != Z_DEFAULT_STRATEGY)
                continue;
            struct xp_span gz = deflate_with(plain, level, strategy);
            struct xp_reader *r = open_gz(gz);
            assert_int_equal(xp_reader_size(r), n);
            assert_int_equal(xp_reader_generation(r), 7);
            assert_read(r, plain, 0, n);
            for (int i = 0; i < 30; i++)
                assert_read(r, plain, next_random(&s) % n, next_random(&s) % 70000);
            xp_reader_close(r);
            span_free(gz);
        }
    }
    span_free(plain);
}

static void reads_equal_the_plain_bytes_across_checkpoints(void **state)
{
    (void)state;
    size_t n = 30 * MB + 12345;
    struct xp_span plain = xp_span_of(make_bytes(n, 5), n);
    struct xp_span gz = gzip_bytes(plain, 1);
    struct xp_reader *r = open_gz(gz);
    uint64_t s = 4;
    for (int i = 0; i < 60; i++)
        assert_read(r, plain, next_random(&s) % n, next_random(&s) % (i % 10 ? 5000 : 9 * MB));
    for (size_t edge = 8 * MB; edge < n; edge += 8 * MB)
        for (int d = -3; d <= 3; d++)
            assert_read(r, plain, edge + (size_t)d, 100);
    assert_read(r, plain, n - 1, 10);
    assert_read(r, plain, n, 10);
    xp_reader_close(r);
    span_free(gz);
    span_free(plain);
}

static void members_one_after_another_read_as_one(void **state)
{
    (void)state;
    struct xp_span plain = {0}, gz = {0};
    for (size_t i = 0; i < 12; i++) {
        size_t n = i * i * 9000; /* also an empty one */
        struct xp_span part = xp_span_of(make_bytes(n, i + 1), n);
        struct xp_span part_gz = gzip_bytes(part, (int)(i % 10));
        struct xp_span p2 = join(plain, part), g2 = join(gz, part_gz);
        span_free(plain), span_free(gz), span_free(part), span_free(part_gz);
        plain = p2, gz = g2;
    }
    struct xp_reader *r = open_gz(gz);
    uint64_t s = 6;
    assert_int_equal(xp_reader_size(r), plain.n);
    assert_read(r, plain, 0, plain.n);
    for (int i = 0; i < 200; i++)
        assert_read(r, plain, next_random(&s) % plain.n, next_random(&s) % 300000);
    xp_reader_close(r);
    span_free(gz);
    span_free(plain);
}

struct collected {
    struct xp_span want;
    size_t n;
    size_t stop_at;
};

static enum xp_status collect(void *ctx, struct xp_span bytes, struct xp_error *err)
{
    struct collected *c = ctx;
    assert_true(c->n + bytes.n <= c->want.n);
    assert_int_equal(memcmp(c->want.p + c->n, bytes.p, bytes.n), 0);
    c->n += bytes.n;
    if (c->stop_at && c->n >= c->stop_at)
        return xp_fail(err, XP_CANCELLED, 0, "enough");
    return XP_OK;
}

static void opening_hands_out_every_byte_once_in_order(void **state)
{
    (void)state;
    size_t n = 5 * MB + 17;
    struct xp_span plain = xp_span_of(make_bytes(n, 8), n);
    struct xp_span gz = gzip_bytes(plain, 6);
    struct collected c = {.want = plain};
    struct xp_reader *r, *inner = open_mem(gz);
    struct xp_error err;
    assert_int_equal(xp_reader_open_gz(inner, NO_LIMIT, collect, &c, &r, &err), XP_OK);
    assert_int_equal(c.n, n);
    xp_reader_close(r);

    c = (struct collected){.want = plain, .stop_at = 2 * MB};
    inner = open_mem(gz);
    assert_int_equal(xp_reader_open_gz(inner, NO_LIMIT, collect, &c, &r, &err), XP_CANCELLED);
    assert_null(r);
    assert_string_equal(err.text, "enough");
    assert_true(c.n < 4 * MB);
    xp_reader_close(inner);
    span_free(gz);
    span_free(plain);
}

static void empty_content_is_an_empty_object(void **state)
{
    (void)state;
    struct xp_span gz = gzip_bytes((struct xp_span){0}, 6);
    struct xp_reader *r = open_gz(gz);
    assert_int_equal(xp_reader_size(r), 0);
    assert_read(r, (struct xp_span){0}, 0, 10);
    xp_reader_close(r);
    span_free(gz);
}

static void headers_with_name_comment_and_extra_field_are_read(void **state)
{
    (void)state;
    struct xp_span plain = XP_SPAN_LIT("hello");
    z_stream z = {0};
    gz_header h = {.extra = (Bytef *)(uintptr_t) "ab\x02\x00xy",
                   .extra_len = 6,
                   .name = (Bytef *)(uintptr_t) "host.xplane.pb",
                   .comment = (Bytef *)(uintptr_t) "a comment",
                   .hcrc = 1};
    uint8_t out[512];
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 9, 0), Z_OK);
    deflateSetHeader(&z, &h);
    z.next_in = (uint8_t *)(uintptr_t)plain.p;
    z.avail_in = (unsigned)plain.n;
    z.next_out = out;
    z.avail_out = sizeof out;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    struct xp_reader *r = open_gz(xp_span_of(out, z.total_out));
    assert_read(r, plain, 0, 10);
    xp_reader_close(r);
    deflateEnd(&z);
}

/* --- threads --- */

struct reading {
    struct xp_reader *r;
    struct xp_span plain;
    uint64_t seed;
    bool forward;
    int bad;
};

static void *read_many(void *ctx)
{
    struct reading *t = ctx;
    uint64_t s = t->seed, at = t->seed * 1234567 % t->plain.n;
    uint8_t *buf = malloc(MB);
    for (int i = 0; i < 40; i++) {
        struct xp_error err;
        size_t got;
        uint64_t off = t->forward ? at : next_random(&s) % t->plain.n;
        size_t n = next_random(&s) % 200000;
        t->bad += xp_reader_read(t->r, off, buf, n, &got, &err) != XP_OK;
        t->bad += off + got > t->plain.n || memcmp(buf, t->plain.p + off, got) != 0;
        at = off + got < t->plain.n ? off + got : 0;
    }
    free(buf);
    return NULL;
}

static void reads_by_more_threads_than_inflaters_are_right(void **state)
{
    (void)state;
    enum { N = 12 };
    size_t n = 20 * MB;
    struct xp_span plain = xp_span_of(make_bytes(n, 11), n);
    struct xp_span gz = gzip_bytes(plain, 1);
    struct xp_reader *r = open_gz(gz);
    pthread_t threads[N];
    struct reading work[N];
    for (int i = 0; i < N; i++) {
        work[i] = (struct reading){r, plain, (uint64_t)i + 1, i % 2 == 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &work[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].bad, 0);
    }
    xp_reader_close(r);
    span_free(gz);
    span_free(plain);
}

/* --- bad input --- */

static void every_cut_is_corrupt_and_says_where(void **state)
{
    (void)state;
    size_t n = 3000;
    struct xp_span plain = xp_span_of(make_bytes(n, 2), n);
    struct xp_span gz = gzip_bytes(plain, 6);
    for (size_t cut = 0; cut < gz.n; cut++) {
        struct xp_error err = refuse(xp_span_of(gz.p, cut), NO_LIMIT, XP_CORRUPT);
        assert_true(err.offset <= cut);
        assert_non_null(strstr(err.text, "compressed byte"));
    }
    struct xp_error err = refuse(xp_span_of(gz.p, gz.n - 9), NO_LIMIT, XP_CORRUPT);
    assert_int_equal(err.offset, gz.n - 9);
    span_free(gz);
    span_free(plain);
}

static void every_flipped_bit_is_noticed_or_harmless(void **state)
{
    (void)state;
    size_t n = 2000;
    struct xp_span plain = xp_span_of(make_bytes(n, 4), n);
    struct xp_span gz = gzip_bytes(plain, 6);
    size_t harmless = 0;
    for (size_t bit = 0; bit < gz.n * 8; bit++) {
        uint8_t *bytes = malloc(gz.n);
        memcpy(bytes, gz.p, gz.n);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct xp_reader *inner = open_mem(xp_span_of(bytes, gz.n)), *r;
        struct xp_error err;
        enum xp_status status = xp_reader_open_gz(inner, NO_LIMIT, NULL, NULL, &r, &err);
        if (status == XP_OK) { /* the header's time or system, bits between stream and trailer */
            assert_int_equal(xp_reader_size(r), n);
            assert_read(r, plain, 0, n);
            harmless++;
        } else {
            assert_int_equal(status, XP_CORRUPT);
        }
        xp_reader_close(status == XP_OK ? r : inner);
        free(bytes);
    }
    assert_true(harmless < 80);
    span_free(gz);
    span_free(plain);
}

static void what_is_no_gzip_is_corrupt(void **state)
{
    (void)state;
    refuse(XP_SPAN_LIT("\x0a\x10/device:TPU:0 and more bytes that are no gzip"), NO_LIMIT,
           XP_CORRUPT);
    refuse(XP_SPAN_LIT(""), NO_LIMIT, XP_CORRUPT);
    refuse(XP_SPAN_LIT("\x1f\x8b\x07\x00\x00\x00\x00\x00\x00\x03"), NO_LIMIT, XP_CORRUPT);
}

static void zeros_after_the_last_member_are_padding_and_other_bytes_are_not(void **state)
{
    (void)state;
    struct xp_span plain = XP_SPAN_LIT("hello");
    struct xp_span gz = gzip_bytes(plain, 6);
    uint8_t *zeros = calloc(1, 300000);
    struct xp_span padded = join(gz, xp_span_of(zeros, 300000));
    struct xp_reader *r = open_gz(padded);
    assert_int_equal(xp_reader_size(r), 5);
    assert_read(r, plain, 0, 10);
    xp_reader_close(r);
    struct xp_span odd = join(padded, XP_SPAN_LIT("x"));
    refuse(odd, NO_LIMIT, XP_CORRUPT);
    span_free(odd);
    odd = join(gz, XP_SPAN_LIT("x"));
    refuse(odd, NO_LIMIT, XP_CORRUPT);
    span_free(odd);
    span_free(padded);
    span_free(gz);
    free(zeros);
}

static void bombs_stop_at_the_limit(void **state)
{
    (void)state;
    size_t n = 64 * MB;
    uint8_t *zeros = calloc(1, n);
    struct xp_span gz = gzip_bytes(xp_span_of(zeros, n), 9);
    assert_true(gz.n < 100000);
    refuse(gz, 2 * MB, XP_TOO_LARGE);
    refuse(gz, n - 1, XP_TOO_LARGE);
    struct xp_reader *inner = open_mem(gz), *r;
    struct xp_error err;
    assert_int_equal(xp_reader_open_gz(inner, n, NULL, NULL, &r, &err), XP_OK);
    xp_reader_close(r);
    free(zeros);
    span_free(gz);
}

static void bombs_of_many_empty_members_end(void **state)
{
    (void)state;
    struct xp_span one = gzip_bytes((struct xp_span){0}, 6);
    size_t count = 20000;
    uint8_t *p = malloc(one.n * count);
    for (size_t i = 0; i < count; i++)
        memcpy(p + i * one.n, one.p, one.n);
    struct xp_reader *r = open_gz(xp_span_of(p, one.n * count));
    assert_int_equal(xp_reader_size(r), 0);
    xp_reader_close(r);
    free(p);
    span_free(one);
}

static void partial_opening_keeps_what_came_before_the_damage(void **state)
{
    (void)state;
    size_t n = 12 * MB;
    struct xp_span plain = xp_span_of(make_bytes(n, 13), n);
    struct xp_span gz = gzip_bytes(plain, 1);
    struct xp_span cut = xp_span_of(gz.p, gz.n * 9 / 10);
    struct collected c = {.want = plain};
    struct xp_reader *r;
    struct xp_error err, damage;
    assert_int_equal(
        xp_reader_open_gz_partial(open_mem(cut), NO_LIMIT, collect, &c, &r, &damage, &err), XP_OK);
    assert_int_equal(damage.status, XP_CORRUPT);
    assert_int_equal(damage.offset, cut.n);
    assert_int_equal(xp_reader_size(r), c.n);
    assert_true(c.n > n / 2 && c.n < n);
    assert_read(r, plain, c.n - 200000, 100000);
    assert_read(r, plain, 1000, 100000);
    xp_reader_close(r);
    assert_int_equal(
        xp_reader_open_gz_partial(open_mem(gz), NO_LIMIT, NULL, NULL, &r, &damage, &err), XP_OK);
    assert_int_equal(damage.status, XP_OK);
    assert_int_equal(xp_reader_size(r), n);
    xp_reader_close(r);
    span_free(gz);
    span_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_equal_the_plain_bytes_at_every_level_and_strategy),
        cmocka_unit_test(reads_equal_the_plain_bytes_across_checkpoints),
        cmocka_unit_test(members_one_after_another_read_as_one),
        cmocka_unit_test(opening_hands_out_every_byte_once_in_order),
        cmocka_unit_test(empty_content_is_an_empty_object),
        cmocka_unit_test(headers_with_name_comment_and_extra_field_are_read),
        cmocka_unit_test(reads_by_more_threads_than_inflaters_are_right),
        cmocka_unit_test(every_cut_is_corrupt_and_says_where),
        cmocka_unit_test(every_flipped_bit_is_noticed_or_harmless),
        cmocka_unit_test(what_is_no_gzip_is_corrupt),
        cmocka_unit_test(zeros_after_the_last_member_are_padding_and_other_bytes_are_not),
        cmocka_unit_test(bombs_stop_at_the_limit),
        cmocka_unit_test(bombs_of_many_empty_members_end),
        cmocka_unit_test(partial_opening_keeps_what_came_before_the_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
