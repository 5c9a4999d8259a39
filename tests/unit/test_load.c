#include <unistd.h>
#include <zlib.h>

#include "lib/base/hash.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/part_open.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

/* --- a profile to test with, and what is expected of it --- */

struct want {
    int64_t id, begin, end;
};

static struct part_file *open_bytes_as(struct xp_span in, struct xp_workers *w,
                                       struct xp_budget *budget, const char *suffix,
                                       enum xp_status want, struct xp_error *err)
{
    char *path = make_file(in), *named = NULL;
    struct part_file *f = NULL;
    assert_true(asprintf(&named, "%s%s", path, suffix) > 0);
    assert_int_equal(rename(path, named), 0);
    enum xp_status st = part_open_file(named, w, budget, &f, err);
    if (st != want)
        print_error("%s: %s\n", xp_status_code(st), st == XP_OK ? "" : err->text);
    assert_int_equal(st, want);
    unlink(named); /* the reader keeps it open */
    free(path);
    free(named);
    return f;
}

static struct part_file *open_bytes(struct xp_span in, struct xp_workers *w)
{
    struct xp_error err;
    return open_bytes_as(in, w, NULL, ".xplane.pb", XP_OK, &err);
}

static struct part_file *open_buf(struct xp_buf *b)
{
    struct part_file *f = open_bytes(xp_buf_all(b), NULL);
    xp_buf_fini(b);
    return f;
}

/* Space of one plane that has one line. */
static struct xp_buf wrap(struct xp_buf *line)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "/host:CPU");
    make_put(&plane, 3, line);
    for (int i = 0; i < 10; i++)
        make_add_meta(&plane, 4, i, "name");
    make_put(&space, 1, &plane);
    return space;
}

static uint64_t fold(uint64_t h, uint64_t v)
{
    return xp_fnv(h, xp_span_of(&v, sizeof v));
}

static uint64_t fold_span(uint64_t h, struct xp_span s)
{
    return xp_fnv(fold(h, s.n), s);
}

static uint64_t digest_line(const struct part *p, const struct part_line *l, uint64_t h)
{
    struct xp_arena *a = xp_arena_new(NULL);
    const struct part_plane *pl = &p->planes[l->plane];
    struct line_cursor c;
    struct side_cursor side;
    struct lane_event ev;
    uint32_t lane;
    uint64_t n = 0;
    assert_int_equal(line_seek(&c, l, INT64_MIN, a), XP_OK);
    side_open(&side, l->side);
    while (line_next(&c, &ev, &lane)) {
        h = fold(fold(fold(h, (uint64_t)ev.begin_ps), (uint64_t)ev.end_ps), ev.at);
        h = fold_span(fold(h, lane), part_event_name(p, pl, ev.name));
        if (side_find(&side, ev.at))
            for (int i = 0; i < side.n; i++) {
                h = fold(h, side.stats[i].kind);
                h = side.stats[i].type == SIDE_STR
                        ? fold_span(h, part_str(p, (uint32_t)side.stats[i].num))
                        : fold(h, side.stats[i].num);
            }
        n++;
    }
    assert_int_equal(n, l->nevents);
    h = fold_span(fold_span(h, part_str(p, l->name)), part_str(p, l->display_name));
    h = fold(fold(fold(h, (uint64_t)l->begin_ps), (uint64_t)l->end_ps), (uint64_t)l->base_ps);
    xp_arena_free(a);
    return h;
}

/* Everything a reader can see, whatever ids it was given by. */
static uint64_t digest(const struct part *p)
{
    uint64_t h = XP_FNV_INIT;
    assert_true(part_ready(p));
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        assert_true(plane_ready(pl));
        h = fold_span(fold(h, (uint64_t)pl->id), part_str(p, pl->name));
        h = fold_span(fold(fold(h, pl->nevmeta), pl->nevents), pl->stats);
        for (uint32_t k = 0; k < pl->nstatmeta; k++)
            h = fold_span(h, part_str(p, pl->statmeta[k].name));
    }
    for (uint32_t i = 0; i < p->nlines; i++)
        h = digest_line(p, &p->lines[i], h);
    return h;
}

static void expect(const struct part *p, const struct part_line *l, const struct want *want,
                   size_t n)
{
    struct xp_arena *a = xp_arena_new(NULL);
    struct line_cursor c;
    struct lane_event ev;
    assert_int_equal(l->nevents, n);
    assert_int_equal(line_seek(&c, l, INT64_MIN, a), XP_OK);
    for (size_t i = 0; i < n; i++) {
        assert_true(line_next(&c, &ev, NULL));
        assert_int_equal(p->planes[l->plane].evmeta[ev.name].id, want[i].id);
        assert_int_equal(ev.begin_ps, want[i].begin);
        assert_int_equal(ev.end_ps, want[i].end);
    }
    assert_false(line_next(&c, &ev, NULL));
    xp_arena_free(a);
}

/* --- tests --- */

static void every_event_has_its_name_time_and_place(void **state)
{
    (void)state;
    struct xp_buf line = make_line(7, "thread", 5);
    make_add_event(&line, 1, 100, 50);
    make_add_event(&line, 2, 100, 20);
    make_add_event(&line, 3, 200, 0);
    make_add_event(&line, 99, 300, 1); /* no metadata of this id */
    make_add_event(&line, 99, 301, 1);
    make_add_event(&line, -4, 302, 1);
    make_add_event(&line, 1, INT64_C(1) << 31, 1);
    make_add_event(&line, 1, INT64_C(1) << 32, INT64_C(1) << 33);
    struct xp_buf space = wrap(&line);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->nlines, 1);
    const struct part_line *l = &p->lines[0];
    expect(p, l,
           (struct want[]){{1, 100, 150},
                           {2, 100, 120},
                           {3, 200, 200},
                           {99, 300, 301},
                           {99, 301, 302},
                           {-4, 302, 303},
                           {1, INT64_C(1) << 31, (INT64_C(1) << 31) + 1},
                           {1, INT64_C(1) << 32, INT64_C(3) << 32}},
           8);
    assert_true(xp_span_eq(part_line_name(p, l), XP_SPAN_LIT("thread")));
    assert_int_equal(l->base_ps, 5000);
    assert_int_equal(l->begin_ps, 5100);
    assert_int_equal(l->end_ps, 5000 + (INT64_C(3) << 32));
    assert_true(l->sorted);
    const struct part_plane *pl = &p->planes[0];
    assert_int_equal(pl->nevmeta, 12); /* ten and two strays */
    struct line_cursor c;
    struct lane_event ev;
    struct xp_arena *a = xp_arena_new(NULL);
    assert_int_equal(line_seek(&c, l, 300, a), XP_OK);
    assert_true(line_next(&c, &ev, NULL));
    assert_int_equal(pl->evmeta[ev.name].at, 0);
    assert_int_equal(part_event_name(p, pl, ev.name).n, 0);
    assert_ptr_equal(part_line_at(p, ev.at), l);
    struct xp_span body;
    struct xp_error err;
    assert_int_equal(part_event_body(p, ev.at, a, &body, &err), XP_OK);
    struct xp_pb r = xp_pb_open(body);
    struct xp_pb_field field;
    assert_true(xp_pb_next(&r, &field));
    assert_int_equal(field.value, 99);
    assert_int_equal(part_event_body(p, 0, a, &body, &err), XP_NOT_FOUND);
    assert_int_equal(part_evmeta_body(p, &pl->evmeta[1], a, &body, &err), XP_OK);
    assert_true(body.n > 0 && body.p[0] == 0x08);
    xp_arena_free(a);
    part_close(f);
}

static void events_out_of_order_are_put_in_order(void **state)
{
    (void)state;
    /* few and near, within the window; then far; then all, more than a sorted chunk */
    static const struct {
        size_t n, swap, reach;
    } rows[] = {{1000, 10, 20}, {1000, 3, 900}, {70000, 0, 0}, {100000, 2, 99000}};
    uint64_t rng = 7;
    for (size_t row = 0; row < 4; row++) {
        size_t n = rows[row].n;
        struct want *want = malloc(n * sizeof *want);
        uint32_t *order = malloc(n * sizeof *order);
        for (size_t i = 0; i < n; i++) {
            want[i] = (struct want){(int64_t)(i % 10), (int64_t)i * 10, (int64_t)i * 10 + 35};
            order[i] = (uint32_t)(rows[row].swap ? i : n - 1 - i);
        }
        for (size_t k = 0; k < rows[row].swap; k++) {
            size_t i = make_rng(&rng) % (n - rows[row].reach), x = i + rows[row].reach;
            uint32_t t = order[i];
            order[i] = order[x];
            order[x] = t;
        }
        struct xp_buf line = make_line(1, "l", 0);
        for (size_t i = 0; i < n; i++)
            make_add_event(&line, want[order[i]].id, want[order[i]].begin, 35);
        struct xp_buf space = wrap(&line);
        struct part_file *f = open_buf(&space);
        const struct part *p = part_file_part(f);
        assert_false(p->lines[0].sorted);
        assert_int_equal(p->lines[0].nlanes, 4);
        expect(p, &p->lines[0], want, n);
        part_close(f);
        free(want);
        free(order);
    }
}

static void equal_events_stay_in_file_order_and_longer_ones_come_first(void **state)
{
    (void)state;
    struct xp_buf line = make_line(1, "l", 0);
    make_add_event(&line, 1, 10, 5);
    make_add_event(&line, 2, 10, 5);
    make_add_event(&line, 3, 10, 50);
    make_add_event(&line, 4, 10, 0);
    struct xp_buf space = wrap(&line);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    expect(p, &p->lines[0], (struct want[]){{3, 10, 60}, {1, 10, 15}, {2, 10, 15}, {4, 10, 10}}, 4);
    part_close(f);
}

static void times_that_do_not_fit_are_clamped_and_counted(void **state)
{
    (void)state;
    struct xp_buf line = make_line(1, "l", 0);
    make_add_event(&line, 1, INT64_MIN, INT64_MIN);
    make_add_event(&line, 2, -5, 7);
    make_add_event(&line, 3, 10, -7);
    make_add_event(&line, 4, 20, INT64_MAX);
    make_add_event(&line, 5, INT64_MAX, INT64_MAX);
    make_add_event(&line, 6, 30, 1);
    struct xp_buf space = wrap(&line);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    int64_t most = (INT64_C(1) << 62) - 1;
    assert_int_equal(p->lines[0].odd, 5);
    expect(p, &p->lines[0],
           (struct want[]){{1, -most, -most},
                           {2, -5, 2},
                           {3, 10, 10},
                           {4, 20, most},
                           {6, 30, 31},
                           {5, most, most}},
           6);
    part_close(f);
}

static struct part_file *with_origins(const int64_t *ns, size_t n, int64_t told)
{
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line;
    for (size_t i = 0; i < n; i++) {
        line = make_line((int64_t)i, "l", ns[i]);
        make_add_event(&line, 1, 3, 4);
        make_put(&plane, 3, &line);
    }
    make_put(&space, 1, &plane);
    if (told) {
        plane = make_plane(2, "Task Environment");
        struct xp_buf stat = make_message();
        xp_pb_put_u64(&stat, 1, 1);
        xp_pb_put_u64(&stat, 3, (uint64_t)told);
        make_put(&plane, 6, &stat);
        make_add_meta(&plane, 5, 1, "profile_start_time");
        make_put(&space, 1, &plane);
    }
    return open_buf(&space);
}

static void clocks_of_all_kinds_share_one_session_time(void **state)
{
    (void)state;
    const int64_t wall = 1700000000000000000;
    struct part_file *f = with_origins((int64_t[]){wall + 500, 20, wall + 400, -7}, 4, 0);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->origin_ns, wall + 400);
    assert_int_equal(p->lines[0].base_ps, 100000);
    assert_int_equal(p->lines[1].base_ps, 20000);
    assert_int_equal(p->lines[2].base_ps, 0);
    assert_int_equal(p->lines[3].base_ps, -7000);
    assert_int_equal(p->lines[0].begin_ps, 100003);
    assert_int_equal(p->lines[0].end_ps, 100007);
    part_close(f);

    f = with_origins((int64_t[]){wall + 500, 20}, 2, wall + 100);
    p = part_file_part(f);
    assert_int_equal(p->start_wall_ns, wall + 100);
    assert_int_equal(p->lines[0].base_ps, 400000);
    part_close(f);

    /* a start that is years off is not believed; two hundred days since boot fit */
    const int64_t boot = INT64_C(200) * 86400 * 1000000000;
    f = with_origins((int64_t[]){wall, boot + 9, boot, INT64_MIN}, 4, 5);
    p = part_file_part(f);
    assert_int_equal(p->lines[0].base_ps, 0);
    assert_int_equal(p->lines[1].base_ps, 9000);
    assert_int_equal(p->lines[2].base_ps, 0);
    assert_true(p->lines[3].base_ps < 0);
    part_close(f);
}

static void add_stat(struct xp_buf *ev, int64_t id, uint32_t field, uint64_t v)
{
    struct xp_buf st = make_message();
    xp_pb_put_u64(&st, 1, (uint64_t)id);
    if (field == 5)
        make_text(&st, 5, v ? "text" : "");
    else
        xp_pb_put_u64(&st, field, v);
    make_put(ev, 4, &st);
}

static void listed_stats_are_kept_and_references_are_names(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line = make_line(1, "l", 0);
    for (int i = 0; i < 1000; i++) {
        struct xp_buf ev = make_event(1, i * 10, 5);
        add_stat(&ev, 300, 4, 1); /* not kept, an id of two bytes */
        add_stat(&ev, 3, 4, 1);   /* not kept */
        if (i % 3 == 0) {
            add_stat(&ev, 1, 4, (uint64_t)-i);
            add_stat(&ev, 2, 7, 4);
            add_stat(&ev, 20000, 3, (uint64_t)i);
            add_stat(&ev, 5, 5, (uint64_t)i % 2);
        }
        make_put(&line, 4, &ev);
    }
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 5, 1, "group_id");
    make_add_meta(&plane, 5, 2, "tf_op");
    make_add_meta(&plane, 5, 3, "unlisted");
    make_add_meta(&plane, 5, 4, "the referenced name");
    make_add_meta(&plane, 5, 5, "hlo_op");
    make_add_meta(&plane, 5, 300, "unlisted too");
    make_add_meta(&plane, 5, 20000, "run_id");
    make_put(&space, 1, &plane);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    struct xp_arena *a = xp_arena_new(NULL);
    struct side_cursor side;
    struct line_cursor c;
    struct lane_event ev;
    side_open(&side, p->lines[0].side);
    assert_int_equal(line_seek(&c, &p->lines[0], INT64_MIN, a), XP_OK);
    for (int i = 0; i < 1000; i++) {
        assert_true(line_next(&c, &ev, NULL));
        assert_int_equal(side_find(&side, ev.at), i % 3 == 0);
        if (i % 3)
            continue;
        assert_int_equal(side.n, 4);
        assert_int_equal((int64_t)side_get(&side, STAT_GROUP_ID)->num, -i);
        const struct side_stat *ref = side_get(&side, STAT_TF_OP);
        assert_int_equal(ref->type, SIDE_STR);
        assert_true(
            xp_span_eq(part_str(p, (uint32_t)ref->num), XP_SPAN_LIT("the referenced name")));
        assert_int_equal(side_get(&side, STAT_RUN_ID)->num, i);
        assert_true(xp_span_eq(part_str(p, (uint32_t)side_get(&side, STAT_HLO_OP)->num),
                               xp_span_str(i % 2 ? "text" : "")));
    }
    assert_true(xp_span_eq(part_stat_name(p, &p->planes[0], 300), XP_SPAN_LIT("unlisted too")));
    assert_int_equal(part_stat_name(p, &p->planes[0], 301).n, 0);
    xp_arena_free(a);
    part_close(f);
}

static void of_duplicated_metadata_the_last_counts(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line = make_line(1, "l", 0);
    make_add_event(&line, 5, 0, 1);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 5, "first");
    make_add_meta(&plane, 4, INT64_C(1) << 60, "far id");
    make_add_meta(&plane, 4, 5, "second");
    line = make_line(2, "between", 0);
    make_add_event(&line, INT64_C(1) << 60, 0, 1);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 5, "third");
    make_add_meta(&plane, 4, -1, "negative id");
    make_put(&space, 1, &plane);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    const struct part_plane *pl = &p->planes[0];
    assert_int_equal(pl->nevmeta, 3);
    struct lane_event ev;
    struct lane_cursor c;
    lane_seek(&c, p->lines[0].lanes[0], INT64_MIN);
    assert_true(lane_next(&c, &ev));
    assert_true(xp_span_eq(part_event_name(p, pl, ev.name), XP_SPAN_LIT("third")));
    lane_seek(&c, p->lines[1].lanes[0], INT64_MIN);
    assert_true(lane_next(&c, &ev));
    assert_true(xp_span_eq(part_event_name(p, pl, ev.name), XP_SPAN_LIT("far id")));
    part_close(f);
}

static void an_empty_file_is_a_profile_without_planes(void **state)
{
    (void)state;
    struct part_file *f = open_bytes((struct xp_span){0}, NULL);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->nplanes, 0);
    assert_true(part_ready(p));
    assert_false(p->partial);
    part_close(f);
}

static void what_is_no_profile_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"json\": true}",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                        "\x1f\x8b\x08 not inflated here"};
    for (size_t i = 0; i < 3; i++) {
        struct xp_error err = {0};
        open_bytes_as(xp_span_str(texts[i]), NULL, NULL, ".xplane.pb", XP_CORRUPT, &err);
        assert_true(err.text[0] != 0);
    }
}

static void a_truncated_profile_keeps_a_prefix_for_every_length(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line;
    for (int k = 0; k < 3; k++) {
        line = make_line(k, "line", 0);
        for (int i = 0; i < 20; i++)
            make_add_event(&line, 1, i * 10, 5);
        make_put(&plane, 3, &line);
    }
    make_add_meta(&plane, 4, 1, "name");
    make_put(&space, 1, &plane);
    plane = make_plane(2, "q");
    make_put(&space, 1, &plane);
    uint64_t events = 0;
    for (size_t n = 3; n < space.n; n++) {
        struct part_file *f = open_bytes(xp_span_of(space.p, n), NULL);
        const struct part *p = part_file_part(f);
        uint64_t now = 0;
        for (uint32_t i = 0; i < p->nlines; i++)
            now += p->lines[i].nevents;
        digest(p);
        assert_true(now >= events);
        events = now;
        assert_true(p->partial || p->nplanes == 1); /* cut between two planes is not seen */
        if (p->partial)
            assert_true(p->damage.offset <= n && p->damage.text[0]);
        part_close(f);
    }
    assert_int_equal(events, 60);
    xp_buf_fini(&space);
}

static void flipped_bits_never_crash(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"),
                  line = make_line(1, "line", 7);
    for (int i = 0; i < 60; i++) {
        struct xp_buf ev = make_event(i % 4, i * 100, 50);
        add_stat(&ev, 1, 4, 3);
        make_put(&line, 4, &ev);
    }
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "name");
    make_add_meta(&plane, 5, 1, "group_id");
    make_put(&space, 1, &plane);
    make_text(&space, 4, "host");
    char *path = make_file(xp_buf_all(&space));
    uint64_t rng = 3;
    for (int i = 0; i < 1500; i++) {
        size_t at = make_rng(&rng) % space.n;
        uint8_t bit = (uint8_t)(1 << make_rng(&rng) % 8);
        space.p[at] ^= bit;
        FILE *out = fopen(path, "r+");
        fwrite(space.p, 1, space.n, out);
        fclose(out);
        struct part_file *f;
        struct xp_error err;
        enum xp_status st = part_open_file(path, NULL, NULL, &f, &err);
        assert_true(st == XP_OK || st == XP_CORRUPT);
        if (st == XP_OK)
            digest(part_file_part(f));
        part_close(f);
        space.p[at] ^= bit;
    }
    unlink(path);
    free(path);
    xp_buf_fini(&space);
}

static void names_that_are_not_utf8_are_noticed(void **state)
{
    (void)state;
    for (int where = 0; where < 5; where++) {
        static const char *const bad[] = {"\xff", "ok"};
        struct xp_buf space = make_message(), plane, line;
        plane = make_plane(1, bad[where != 0]);
        line = make_line(1, bad[where != 1], 0);
        make_put(&plane, 3, &line);
        make_add_meta(&plane, 4, 1, bad[where != 2]);
        make_add_meta(&plane, 5, 1, bad[where != 3]);
        make_put(&space, 1, &plane);
        struct part_file *f = open_buf(&space);
        assert_int_equal(part_file_part(f)->utf8_bad, where < 4);
        assert_false(part_file_part(f)->partial);
        part_close(f);
    }
}

static void what_the_profiler_said_of_itself_is_kept(void **state)
{
    (void)state;
    struct xp_buf space = make_message();
    make_text(&space, 2, "broken");
    make_text(&space, 3, "dropped");
    make_text(&space, 3, "late");
    make_text(&space, 2, "wrong");
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->nerrors, 2);
    assert_int_equal(p->nwarnings, 2);
    assert_true(xp_span_eq(p->errors[1], XP_SPAN_LIT("wrong")));
    assert_true(xp_span_eq(p->warnings[0], XP_SPAN_LIT("dropped")));
    part_close(f);
}

static void host_names_and_plane_stats_are_there(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), stat = make_stat_i64(3, -8);
    make_text(&space, 4, "one");
    make_put(&plane, 6, &stat);
    stat = make_message();
    xp_pb_put_u64(&stat, 1, 4);
    make_text(&stat, 5, "value");
    make_put(&plane, 6, &stat);
    make_put(&space, 1, &plane);
    make_text(&space, 4, "two");
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->nhostnames, 2);
    assert_true(xp_span_eq(p->hostnames[1], XP_SPAN_LIT("two")));
    struct xp_span stats;
    struct xp_error err;
    assert_int_equal(part_plane_stats(p, &p->planes[0], NULL, &stats, &err), XP_OK);
    struct xspace_stats it = xspace_stats_open(stats, 6);
    struct xspace_stat s;
    assert_true(xspace_stats_next(&it, &s));
    assert_int_equal(s.metadata_id, 3);
    assert_int_equal((int64_t)s.num, -8);
    assert_true(xspace_stats_next(&it, &s));
    assert_true(xp_span_eq(s.bytes, XP_SPAN_LIT("value")));
    assert_false(xspace_stats_next(&it, &s));
    part_close(f);
}

/* Many planes and lines of very different sizes. */
static struct xp_buf large(void)
{
    struct xp_buf space = make_message();
    uint64_t rng = 5;
    for (int p = 0; p < 12; p++) {
        struct xp_buf plane = make_plane(p, p % 3 ? "device" : "host"), line;
        for (int k = 0; k < 20; k++) {
            int n = k == 3 ? 60000 : k * 7;
            line = make_line(k, "line", p * 1000);
            for (int i = 0; i < n; i++) {
                struct xp_buf ev = make_event((int64_t)(make_rng(&rng) % 50), i * 100L,
                                              (int64_t)(make_rng(&rng) % 300));
                if (p == 3)
                    add_stat(&ev, 1, 4, make_rng(&rng) % 100);
                make_put(&line, 4, &ev);
            }
            make_put(&plane, 3, &line);
        }
        for (int i = 0; i < 40; i++) {
            char name[32];
            snprintf(name, sizeof name, "op.%d.%d", p, i);
            make_add_meta(&plane, 4, i, name);
        }
        make_add_meta(&plane, 5, 1, "group_id");
        make_put(&space, 1, &plane);
    }
    return space;
}

static void all_numbers_of_threads_give_the_same_part(void **state)
{
    (void)state;
    struct xp_buf space = large();
    struct part_file *f = open_bytes(xp_buf_all(&space), NULL);
    uint64_t want = digest(part_file_part(f));
    part_close(f);
    for (int threads = 1; threads <= 8; threads *= 2) {
        struct xp_workers *w = xp_workers_new(threads, 16);
        f = open_bytes(xp_buf_all(&space), w);
        assert_int_equal(digest(part_file_part(f)), want);
        part_close(f);
        xp_workers_free(w);
    }
    xp_buf_fini(&space);
}

static void a_compressed_profile_gives_the_same_part(void **state)
{
    (void)state;
    struct xp_buf space = large();
    struct part_file *f = open_bytes(xp_buf_all(&space), NULL);
    uint64_t want = digest(part_file_part(f));
    part_close(f);
    char *path = make_file((struct xp_span){0}), *gz = NULL;
    assert_true(asprintf(&gz, "%s.gz", path) > 0);
    gzFile out = gzopen(gz, "wb1");
    assert_int_equal(gzwrite(out, space.p, (unsigned)space.n), space.n);
    gzclose(out);
    struct xp_workers *w = xp_workers_new(2, 16);
    struct xp_error err;
    assert_int_equal(part_open_file(gz, w, NULL, &f, &err), XP_OK);
    assert_int_equal(digest(part_file_part(f)), want);
    part_close(f);
    xp_workers_free(w);
    unlink(gz);
    unlink(path);
    free(gz);
    free(path);
    xp_buf_fini(&space);
}

static void real_profiles_load_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"real/cpu_jax_train.xplane.pb",
                                        "real/gpu_jax_te_fused_attn.xplane.pb",
                                        "real/gpu_mi300_jax_attention.xplane.pb",
                                        "real/gpu_tf_multi_worker.xplane.pb",
                                        "real/tpu_v6e_inference.xplane.pb",
                                        "real/tpu_v6e_pallas_kernel.xplane.pb",
                                        "profiles/synth_tpu_train/tpu-0.xplane.pb.gz"};
    struct xp_workers *w = xp_workers_new(2, 16);
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct xp_span in = make_load(names[i]);
        if (!in.n)
            continue;
        struct part_file *one = open_bytes(in, NULL), *two = open_bytes(in, w);
        const struct part *p = part_file_part(one);
        assert_false(p->partial);
        assert_true(p->nplanes > 0);
        assert_int_equal(digest(p), digest(part_file_part(two)));
        assert_true(part_file_part(one)->events_done > 0);
        part_close(one);
        part_close(two);
        free((void *)in.p);
        found++;
    }
    xp_workers_free(w);
    if (!found)
        skip();
}

static void a_small_budget_is_busy_and_gives_everything_back(void **state)
{
    (void)state;
    struct xp_buf space = large();
    bool fitted = false;
    for (uint64_t limit = 1 << 16; !fitted; limit += limit / 2) {
        struct xp_budget budget;
        xp_budget_init(&budget, limit);
        struct xp_workers *w = xp_workers_new(2, 16);
        char *path = make_file(xp_buf_all(&space));
        struct part_file *f;
        struct xp_error err;
        enum xp_status st = part_open_file(path, w, &budget, &f, &err);
        assert_true(st == XP_OK || st == XP_BUSY);
        fitted = st == XP_OK;
        assert_true(budget.peak <= limit);
        part_close(f);
        assert_int_equal(budget.used, 0);
        xp_workers_free(w);
        unlink(path);
        free(path);
    }
    xp_buf_fini(&space);
}

static void a_million_planes_or_lines_load(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane;
    for (int i = 0; i < 1000000; i++) {
        plane = make_message();
        make_put(&space, 1, &plane);
    }
    struct part_file *f = open_buf(&space);
    assert_int_equal(part_file_part(f)->nplanes, 1000000);
    assert_true(part_ready(part_file_part(f)));
    part_close(f);

    space = make_message();
    plane = make_plane(1, "p");
    for (int i = 0; i < 1000000; i++) {
        struct xp_buf line = make_message();
        make_add_event(&line, 1, 5, 6);
        make_put(&plane, 3, &line);
    }
    make_put(&space, 1, &plane);
    struct xp_workers *w = xp_workers_new(2, 16);
    f = open_bytes(xp_buf_all(&space), w);
    const struct part *p = part_file_part(f);
    assert_int_equal(p->nlines, 1000000);
    assert_int_equal(p->planes[0].nevents, 1000000);
    assert_int_equal(p->lines[999999].nevents, 1);
    part_close(f);
    xp_workers_free(w);
    xp_buf_fini(&space);
}

/* Fields whose bytes are zeros nobody looks at, made by a hole in the file. */
static void huge_elements_are_stepped_over(void **state)
{
    (void)state;
    const uint64_t huge = (uint64_t)1 << 30;
    struct xp_buf head = make_message(), line = make_line(1, "l", 0), tail = make_message();
    make_add_event(&line, 1, 10, 5);
    /* an event of one stat of a gigabyte */
    struct xp_buf ev = make_event(2, 20, 5), stat = make_message();
    xp_pb_put_u64(&stat, 1, 1);
    xp_pb_put_varint(&stat, 6 << 3 | 2);
    xp_pb_put_varint(&stat, huge);
    xp_pb_put_varint(&ev, 4 << 3 | 2);
    xp_pb_put_varint(&ev, stat.n + huge);
    xp_buf_span(&ev, xp_buf_all(&stat));
    xp_pb_put_varint(&line, 4 << 3 | 2);
    xp_pb_put_varint(&line, ev.n + huge);
    xp_buf_span(&line, xp_buf_all(&ev));
    make_add_event(&tail, 3, 30, 5);
    struct xp_buf plane = make_plane(1, "p");
    xp_pb_put_varint(&plane, 3 << 3 | 2);
    xp_pb_put_varint(&plane, line.n + huge + tail.n);
    xp_pb_put_varint(&head, 1 << 3 | 2);
    xp_pb_put_varint(&head, plane.n + line.n + huge + tail.n);
    xp_buf_span(&head, xp_buf_all(&plane));
    xp_buf_span(&head, xp_buf_all(&line));
    char *path = make_file(xp_buf_all(&head));
    FILE *out = fopen(path, "r+");
    fseek(out, (long)(head.n + huge), SEEK_SET);
    fwrite(tail.p, 1, tail.n, out);
    fclose(out);
    struct xp_budget budget;
    xp_budget_init(&budget, 16 << 20);
    struct part_file *f;
    struct xp_error err;
    assert_int_equal(part_open_file(path, NULL, &budget, &f, &err), XP_OK);
    const struct part *p = part_file_part(f);
    assert_false(p->partial);
    expect(p, &p->lines[0], (struct want[]){{1, 10, 15}, {2, 20, 25}, {3, 30, 35}}, 3);
    part_close(f);
    unlink(path);
    free(path);
    xp_buf_fini(&head);
    xp_buf_fini(&line);
    xp_buf_fini(&tail);
    xp_buf_fini(&ev);
    xp_buf_fini(&stat);
    xp_buf_fini(&plane);
}

static void damage_inside_one_line_leaves_the_others(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "p"), line = make_line(1, "a", 0);
    make_add_event(&line, 1, 1, 1);
    xp_buf_add(&line, "\x22\x01\x0f", 3);
    make_add_event(&line, 1, 2, 1);
    make_put(&plane, 3, &line);
    line = make_line(2, "b", 0);
    make_add_event(&line, 1, 1, 1);
    make_put(&plane, 3, &line);
    make_put(&space, 1, &plane);
    struct part_file *f = open_buf(&space);
    const struct part *p = part_file_part(f);
    assert_true(p->partial);
    assert_true(p->damage.offset > 0);
    assert_int_equal(p->lines[0].nevents, 1);
    assert_true(xp_span_eq(part_line_name(p, &p->lines[0]), XP_SPAN_LIT("a")));
    assert_int_equal(p->lines[1].nevents, 1);
    part_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_has_its_name_time_and_place),
        cmocka_unit_test(events_out_of_order_are_put_in_order),
        cmocka_unit_test(equal_events_stay_in_file_order_and_longer_ones_come_first),
        cmocka_unit_test(times_that_do_not_fit_are_clamped_and_counted),
        cmocka_unit_test(clocks_of_all_kinds_share_one_session_time),
        cmocka_unit_test(listed_stats_are_kept_and_references_are_names),
        cmocka_unit_test(of_duplicated_metadata_the_last_counts),
        cmocka_unit_test(an_empty_file_is_a_profile_without_planes),
        cmocka_unit_test(what_is_no_profile_is_refused_with_a_sentence),
        cmocka_unit_test(a_truncated_profile_keeps_a_prefix_for_every_length),
        cmocka_unit_test(flipped_bits_never_crash),
        cmocka_unit_test(names_that_are_not_utf8_are_noticed),
        cmocka_unit_test(what_the_profiler_said_of_itself_is_kept),
        cmocka_unit_test(host_names_and_plane_stats_are_there),
        cmocka_unit_test(all_numbers_of_threads_give_the_same_part),
        cmocka_unit_test(a_compressed_profile_gives_the_same_part),
        cmocka_unit_test(real_profiles_load_whole),
        cmocka_unit_test(a_small_budget_is_busy_and_gives_everything_back),
        cmocka_unit_test(a_million_planes_or_lines_load),
        cmocka_unit_test(huge_elements_are_stepped_over),
        cmocka_unit_test(damage_inside_one_line_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
