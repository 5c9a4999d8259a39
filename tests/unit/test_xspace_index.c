#include "shard/decode/xspace_index.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

/* Feeds what the indexer asks for, `piece` bytes at a time; forward only when `stream`. */
static struct xspace_index run(struct xp_arena *a, struct xp_span in, size_t piece, bool stream)
{
    struct xspace_indexer *ix = xspace_indexer_new(a, stream ? UINT64_MAX : in.n);
    struct xspace_index out;
    struct xp_error err;
    assert_non_null(ix);
    for (uint64_t at = 0; at < in.n;) {
        size_t n = piece < in.n - at ? piece : in.n - at;
        uint8_t *copy = malloc(n);
        memcpy(copy, in.p + at, n);
        assert_int_equal(xspace_indexer_push(ix, at, xp_span_of(copy, n), &err), XP_OK);
        free(copy);
        at = stream ? at + n : xspace_indexer_at(ix);
    }
    assert_int_equal(xspace_indexer_finish(ix, &out, &err), XP_OK);
    return out;
}

static void same(const struct xspace_index *a, const struct xspace_index *b)
{
    assert_int_equal(a->nplanes, b->nplanes);
    assert_int_equal(a->nlines, b->nlines);
    assert_int_equal(a->nruns, b->nruns);
    assert_int_equal(a->nrest, b->nrest);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->damage.status, b->damage.status);
    assert_int_equal(a->damage.offset, b->damage.offset);
    for (uint32_t i = 0; i < a->nplanes; i++) {
        assert_int_equal(a->planes[i].at, b->planes[i].at);
        assert_int_equal(a->planes[i].len, b->planes[i].len);
        assert_int_equal(a->planes[i].nlines, b->planes[i].nlines);
        assert_int_equal(a->planes[i].first_line, b->planes[i].first_line);
        assert_int_equal(a->planes[i].nruns, b->planes[i].nruns);
        assert_int_equal(a->planes[i].cut, b->planes[i].cut);
    }
    for (uint32_t i = 0; i < a->nlines; i++) {
        assert_int_equal(a->lines[i].at, b->lines[i].at);
        assert_int_equal(a->lines[i].len, b->lines[i].len);
        assert_int_equal(a->lines[i].timestamp_ns, b->lines[i].timestamp_ns);
        assert_int_equal(a->lines[i].cut, b->lines[i].cut);
    }
    for (uint32_t i = 0; i < a->nruns; i++) {
        assert_int_equal(a->runs[i].at, b->runs[i].at);
        assert_int_equal(a->runs[i].len, b->runs[i].len);
        assert_int_equal(a->runs[i].count, b->runs[i].count);
    }
}

static void put_group(struct xp_buf *b)
{
    xp_pb_put_varint(b, 900 << 3 | 3);
    make_text(b, 3, "not a line");
    make_text(b, 1, "not a plane");
    xp_pb_put_varint(b, 900 << 3 | 4);
}

static struct xp_buf sample(void)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "first"), line;
    make_text(&space, 4, "host");
    line = make_line(1, "a line", 77);
    for (int i = 0; i < 300; i++)
        make_add_event(&line, 1, i * 10, 5);
    make_put(&plane, 3, &line);
    put_group(&plane);
    make_add_meta(&plane, 4, 1, "event");
    make_add_meta(&plane, 5, 1, "stat");
    line = make_message(); /* its timestamp comes after an event: not looked for */
    make_add_event(&line, 1, 1, 1);
    xp_pb_put_u64(&line, 3, 5);
    make_put(&plane, 3, &line);
    line = make_message();
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 5, 2, "another");
    make_put(&space, 1, &plane);
    put_group(&space);
    plane = make_message();
    make_put(&space, 1, &plane);
    plane = make_plane(3, "third");
    line = make_line(9, "last", -5);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    make_text(&space, 2, "error");
    return space;
}

static void index_finds_planes_lines_and_runs(void **state)
{
    (void)state;
    struct xp_buf space = sample();
    struct xp_arena *a = xp_arena_new(NULL);
    struct xspace_index ix = run(a, xp_buf_all(&space), 64, false);
    assert_int_equal(ix.damage.status, XP_OK);
    assert_int_equal(ix.nplanes, 3);
    assert_int_equal(ix.nlines, 4);
    assert_int_equal(ix.planes[0].nlines, 3);
    assert_int_equal(ix.planes[0].nruns, 3); /* id and name; group and metadata; metadata */
    assert_int_equal(ix.planes[1].nlines, 0);
    assert_int_equal(ix.planes[1].nruns, 0);
    assert_int_equal(ix.planes[2].first_line, 3);
    assert_int_equal(ix.lines[0].timestamp_ns, 77);
    assert_int_equal(ix.lines[1].timestamp_ns, 0);
    assert_int_equal(ix.lines[2].len, 0);
    assert_int_equal(ix.lines[3].timestamp_ns, -5);
    assert_int_equal(ix.lines[3].plane, 2);
    assert_int_equal(ix.nrest, 3); /* host name; group; error */
    xp_arena_free(a);
    xp_buf_fini(&space);
}

static void index_is_the_same_for_every_piece(void **state)
{
    (void)state;
    struct xp_buf space = sample();
    struct xp_arena *a = xp_arena_new(NULL);
    struct xspace_index whole = run(a, xp_buf_all(&space), space.n, false);
    for (size_t piece = 1; piece < 200; piece++) {
        struct xspace_index hop = run(a, xp_buf_all(&space), piece, false);
        struct xspace_index stream = run(a, xp_buf_all(&space), piece, true);
        same(&whole, &hop);
        same(&whole, &stream);
    }
    xp_arena_free(a);
    xp_buf_fini(&space);
}

static void index_reads_little_of_a_large_line(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_message(), line = make_line(1, "l", 1);
    for (int i = 0; i < 100000; i++)
        make_add_event(&line, 1, i * 10, 5);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct xp_arena *a = xp_arena_new(NULL);
    struct xspace_indexer *ix = xspace_indexer_new(a, space.n);
    struct xp_error err;
    uint64_t read = 0;
    for (uint64_t at = 0; at < space.n; at = xspace_indexer_at(ix)) {
        size_t n = space.n - at < 64 ? space.n - at : 64;
        assert_int_equal(xspace_indexer_push(ix, at, xp_span_of(space.p + at, n), &err), XP_OK);
        read += n;
    }
    assert_true(read < 256);
    xp_arena_free(a);
    xp_buf_fini(&space);
}

static void truncation_at_every_byte_keeps_what_was_before(void **state)
{
    (void)state;
    struct xp_buf space = sample();
    uint32_t planes = 0, lines = 0;
    for (size_t n = 1; n < space.n; n++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct xspace_index hop = run(a, xp_span_of(space.p, n), 64, false);
        struct xspace_index stream = run(a, xp_span_of(space.p, n), 37, true);
        same(&hop, &stream);
        assert_true(hop.nplanes >= planes);
        assert_true(hop.nlines >= lines);
        planes = hop.nplanes;
        lines = hop.nlines;
        for (uint32_t i = 0; i < hop.nlines; i++)
            assert_true(hop.lines[i].at + hop.lines[i].len <= n);
        for (uint32_t i = 0; i < hop.nruns; i++)
            assert_true(hop.runs[i].at + hop.runs[i].len <= n);
        if (hop.damage.status != XP_OK)
            assert_true(hop.damage.offset <= n && hop.damage.text[0]);
        xp_arena_free(a);
    }
    assert_int_equal(planes, 3);
    assert_int_equal(lines, 4);
    xp_buf_fini(&space);
}

static void damage_ends_the_index_where_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t at;
        uint32_t planes, lines;
    } rows[] = {
        {"\x0a\x00\x0f", 3, 2, 1, 0},                        /* wire type 7 */
        {"\x0a\x05\x1a\x01\x08\x1a\x09zzzzzz", 13, 5, 1, 1}, /* a line longer than its plane */
        {"\x0a\x02\x0b\x0b", 4, 4, 1, 0},                    /* groups left open */
        {"\x0c", 1, 0, 0, 0},                                /* a group never begun */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, 0, 0, 0},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0, 0, 0}, /* 2^64 - 1 bytes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xp_arena *a = xp_arena_new(NULL);
        struct xspace_index ix = run(a, xp_span_of(rows[i].bytes, rows[i].n), 4, true);
        assert_int_equal(ix.damage.status, XP_CORRUPT);
        assert_int_equal(ix.damage.offset, rows[i].at);
        assert_int_equal(ix.nplanes, rows[i].planes);
        assert_int_equal(ix.nlines, rows[i].lines);
        xp_arena_free(a);
    }
}

static void flipped_bits_never_crash_nor_leave_the_object(void **state)
{
    (void)state;
    struct xp_buf space = sample();
    uint64_t rng = 99;
    for (int round = 0; round < 4000; round++) {
        size_t at = make_rng(&rng) % space.n;
        uint8_t was = space.p[at];
        space.p[at] ^= (uint8_t)(1 << make_rng(&rng) % 8);
        struct xp_arena *a = xp_arena_new(NULL);
        struct xspace_index ix =
            run(a, xp_buf_all(&space), 1 + make_rng(&rng) % 100, round % 2 == 0);
        for (uint32_t i = 0; i < ix.nlines; i++)
            assert_true(ix.lines[i].at <= space.n && ix.lines[i].len <= space.n - ix.lines[i].at);
        for (uint32_t i = 0; i < ix.nruns; i++)
            assert_true(ix.runs[i].at <= space.n && ix.runs[i].len <= space.n - ix.runs[i].at);
        xp_arena_free(a);
        space.p[at] = was;
    }
    xp_buf_fini(&space);
}

static void a_million_lines_are_indexed_and_a_small_budget_refuses_them(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_message(), line;
    for (int i = 0; i < 1000000; i++) {
        line = make_message();
        make_put(&plane, 3, &line);
    }
    make_put(&space, 1, &plane);
    struct xp_arena *a = xp_arena_new(NULL);
    struct xspace_index ix = run(a, xp_buf_all(&space), 65536, false);
    assert_int_equal(ix.nlines, 1000000);
    assert_int_equal(ix.damage.status, XP_OK);
    xp_arena_free(a);

    struct xp_budget budget;
    xp_budget_init(&budget, 1 << 20);
    a = xp_arena_new(&budget);
    struct xspace_indexer *small = xspace_indexer_new(a, space.n);
    struct xp_error err;
    assert_int_equal(xspace_indexer_push(small, 0, xp_buf_all(&space), &err), XP_BUSY);
    xp_arena_free(a);
    xp_buf_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_finds_planes_lines_and_runs),
        cmocka_unit_test(index_is_the_same_for_every_piece),
        cmocka_unit_test(index_reads_little_of_a_large_line),
        cmocka_unit_test(truncation_at_every_byte_keeps_what_was_before),
        cmocka_unit_test(damage_ends_the_index_where_it_is),
        cmocka_unit_test(flipped_bits_never_crash_nor_leave_the_object),
        cmocka_unit_test(a_million_lines_are_indexed_and_a_small_budget_refuses_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
