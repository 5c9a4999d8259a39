#include "lib/base/gzip_pen.h"

#include <stdio.h>
#include <zlib.h>

#include "tests/unit/unit.h"

#define TEXT_MAX ((size_t)4 << 20)

/* A pen, and the plain text of what it was given. */
struct both {
    struct xp_buf out, text;
    struct xp_gzip *gz;
    struct xp_pen *pen;
    uint64_t rng;
};

static uint32_t draw(struct both *b, uint32_t below)
{
    b->rng = b->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((b->rng >> 33) % below);
}

static void begin(struct both *b, uint64_t seed)
{
    *b = (struct both){.rng = seed};
    xp_buf_init(&b->out, TEXT_MAX);
    xp_buf_init(&b->text, TEXT_MAX);
    b->gz = xp_gzip_new(&b->out);
}

static void add(struct both *b, const char *s)
{
    xp_gzip_add(b->gz, xp_span_str(s));
    xp_buf_str(&b->text, s);
}

static void take_pen(struct both *b)
{
    b->pen = xp_pen_new(b->gz);
}

static void put_text(struct both *b, struct xp_span s, uint64_t like)
{
    xp_pen_text(b->pen, s, like);
    xp_buf_span(&b->text, s);
}

static void record(struct both *b, const uint8_t *p, size_t n, const struct xp_pen_field *f,
                   size_t nf)
{
    if (n)
        memcpy(xp_pen_room(b->pen, n), p, n);
    xp_pen_record(b->pen, n, f, nf);
    xp_buf_add(&b->text, p, n);
}

static void put_pen_back(struct both *b)
{
    xp_pen_free(b->pen);
    b->pen = NULL;
}

/* Ends the stream: zlib, which checks CRC and length, reads the text. */
static void comes_back(struct both *b)
{
    xp_gzip_end(b->gz);
    assert_false(b->out.failed);
    uint8_t *back = malloc(b->text.n + 1);
    z_stream z = {.next_in = b->out.p, .avail_in = (uInt)b->out.n};
    z.next_out = back;
    z.avail_out = (uInt)b->text.n + 1;
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, b->text.n);
    assert_memory_equal(back, b->text.p, b->text.n);
    inflateEnd(&z);
    free(back);
    xp_buf_fini(&b->out);
    xp_buf_fini(&b->text);
}

static void a_pen_that_writes_nothing_leaves_the_stream_whole(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 1);
    take_pen(&b);
    put_pen_back(&b);
    comes_back(&b);
    begin(&b, 1);
    add(&b, "before ");
    take_pen(&b);
    put_pen_back(&b);
    add(&b, "and after");
    comes_back(&b);
}

/* Events as the trace viewer writes them: the fields are like the last event's. */
static void events(struct both *b, int n)
{
    uint64_t like[4] = {0};
    for (int i = 0; i < n; i++) {
        char text[512];
        uint64_t place = xp_pen_place(b->pen);
        struct xp_pen_field f[4] = {{0, like[0], 0}};
        int at = snprintf(text, sizeof text, ",{\"pid\":%u,\"name\":", 1000 + draw(b, 3));
        f[1] = (struct xp_pen_field){(uint32_t)at, like[1], 0};
        at += snprintf(text + at, sizeof text - (size_t)at, "\"fusion.%u\"", draw(b, 40));
        f[2] = (struct xp_pen_field){(uint32_t)at, like[2], 0};
        at += snprintf(text + at, sizeof text - (size_t)at, ",\"ts\":%u.%u", 123456 + i,
                       draw(b, 1000000));
        f[3] = (struct xp_pen_field){(uint32_t)at, like[3], 0};
        at += snprintf(text + at, sizeof text - (size_t)at, ",\"ph\":\"X\",\"args\":{\"uid\":%u}}",
                       draw(b, 4));
        for (int k = 0; k < 4; k++)
            like[k] = place + f[k].at;
        record(b, (const uint8_t *)text, (size_t)at, f, 4);
    }
}

static void records_come_back_and_are_short(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 3);
    add(&b, "{\"traceEvents\":[");
    size_t before = b.out.n;
    take_pen(&b);
    events(&b, 20000);
    put_pen_back(&b);
    assert_true((b.out.n - before) * 3 < b.text.n);
    add(&b, "]}");
    comes_back(&b);
}

static void pens_may_follow_each_other_with_text_between(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 5);
    for (int i = 0; i < 20; i++) {
        add(&b, "text that the search of the gzip finds again; text that the search finds again");
        take_pen(&b);
        events(&b, i * 7);
        put_pen_back(&b);
    }
    comes_back(&b);
}

/* Bytes of all kinds, fields anywhere, likes near, far, wrong, ahead and too far back. */
static void whatever_it_is_told_the_text_comes_back(void **state)
{
    (void)state;
    static uint8_t p[XP_PEN_RECORD_MAX];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct both b;
        begin(&b, seed);
        take_pen(&b);
        uint32_t kinds = 1 + draw(&b, 256), records = 1 + draw(&b, 60);
        for (uint32_t i = 0; i < records; i++) {
            uint32_t n = draw(&b, draw(&b, 10) ? 300 : 20000), nf = 1 + draw(&b, 8), at = 0;
            struct xp_pen_field f[8];
            uint64_t place = xp_pen_place(b.pen);
            for (uint32_t k = 0; k < n; k++)
                p[k] = (uint8_t)(draw(&b, 4) ? 'a' + k % 7 : draw(&b, kinds));
            for (uint32_t k = 0; k < nf; k++) {
                uint64_t back = draw(&b, draw(&b, 2) ? 400 : 70000);
                f[k] = (struct xp_pen_field){at, place + at + 20 - back, 0};
                at += draw(&b, n - at + 1);
            }
            record(&b, p, n, f, nf);
        }
        put_pen_back(&b);
        comes_back(&b);
    }
}

/* Matches of every length and distance that deflate knows. */
static void matches_of_all_lengths_and_distances_come_back(void **state)
{
    (void)state;
    struct both b;
    static uint8_t p[XP_PEN_RECORD_MAX];
    begin(&b, 9);
    take_pen(&b);
    for (uint32_t k = 0; k < sizeof p; k++)
        p[k] = (uint8_t)draw(&b, 256);
    record(&b, p, 40000, (struct xp_pen_field[]){{0, 0, 0}}, 1);
    for (uint32_t i = 1; i <= 1200; i++) {
        uint32_t back = i <= 600 ? i : i * 27, n = 1 + i % 530;
        if (back > XP_PEN_REACH)
            back = XP_PEN_REACH;
        const uint8_t *from = b.text.p + b.text.n - back;
        for (uint32_t k = 0; k < n; k++)
            p[k] = k < back ? from[k] : p[k - back];
        p[n] = (uint8_t)draw(&b, 256);
        record(&b, p, n + 1, (struct xp_pen_field[]){{0, xp_pen_place(b.pen) - back, 0}}, 1);
    }
    put_pen_back(&b);
    comes_back(&b);
}

static void a_match_goes_on_over_any_number_of_records(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 11);
    take_pen(&b);
    uint64_t like = 0;
    for (int i = 0; i < 5000; i++) {
        uint64_t place = xp_pen_place(b.pen);
        record(&b, (const uint8_t *)"the same again, ", 16, (struct xp_pen_field[]){{0, like, 0}},
               1);
        like = place;
    }
    put_pen_back(&b);
    assert_true(b.out.n < 2000);
    comes_back(&b);
}

/* Fields whose begin is known to be what it was, in records near and too far from each other, among
 * them some that are like none. */
static void what_is_sure_need_not_be_looked_at(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 17);
    take_pen(&b);
    static const char *const heads[] = {"{\"pid\":1000,\"name\":\"fusion\"", "{\"pid\":7,\"x\":"};
    uint64_t last[2] = {0};
    for (int i = 0; i < 20000; i++) {
        char text[128];
        uint32_t which = draw(&b, 500) == 0;
        uint64_t like = last[which], place = xp_pen_place(b.pen);
        uint32_t n = (uint32_t)strlen(heads[which]);
        int all = snprintf(text, sizeof text, "%s,\"dur\":%u}", heads[which], draw(&b, 100000));
        struct xp_pen_field f[] = {{0, like, n},
                                   {n, like ? like + n : 0, like ? 7 : 0},
                                   {n + 7, 0, 3}}; /* like nothing, whatever it says */
        record(&b, (const uint8_t *)text, (size_t)all, f, 3);
        last[which] = place;
    }
    put_pen_back(&b);
    assert_true(b.out.n < b.text.n / 4);
    comes_back(&b);
}

static void texts_of_any_length_come_back(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 13);
    take_pen(&b);
    static uint8_t p[200000];
    for (size_t k = 0; k < sizeof p; k++)
        p[k] = ",{}0123456789\"name:"[draw(&b, 19)];
    uint64_t like = 0;
    static const size_t sizes[] = {0, 1, 5, 100, 100, 65535, 65536, 65537, 200000, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t place = xp_pen_place(b.pen);
        put_text(&b, xp_span_of(p, sizes[i]), like);
        like = place;
    }
    put_pen_back(&b);
    comes_back(&b);
}

static void a_full_buffer_is_no_crash(void **state)
{
    (void)state;
    struct both b;
    begin(&b, 15);
    b.out.max = 3000;
    take_pen(&b);
    events(&b, 5000);
    put_pen_back(&b);
    xp_gzip_end(b.gz);
    assert_true(b.out.failed);
    assert_true(b.out.n <= 3000);
    xp_buf_fini(&b.out);
    xp_buf_fini(&b.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pen_that_writes_nothing_leaves_the_stream_whole),
        cmocka_unit_test(records_come_back_and_are_short),
        cmocka_unit_test(pens_may_follow_each_other_with_text_between),
        cmocka_unit_test(whatever_it_is_told_the_text_comes_back),
        cmocka_unit_test(matches_of_all_lengths_and_distances_come_back),
        cmocka_unit_test(a_match_goes_on_over_any_number_of_records),
        cmocka_unit_test(what_is_sure_need_not_be_looked_at),
        cmocka_unit_test(texts_of_any_length_come_back),
        cmocka_unit_test(a_full_buffer_is_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
