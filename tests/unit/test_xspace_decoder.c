#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/hash.h"
#include "shard/decode/xspace_decoder.h"
#include "tests/unit/xspace_make.h"

/* Everything the sink is told, folded into one number; and the last of each, to look at. */
struct seen {
    uint64_t digest;
    uint64_t planes, lines, lines_ended, events, metas, stats, hostnames, messages;
    uint64_t first_bad; /* number of events at which on_events asks to stop, 0 never */
    struct xspace_event last;
    struct xspace_line line;
    struct xspace_meta meta;
    struct xspace_plane plane;
    struct xspace_stat stat;
    char text[64], line_name[64];
    size_t line_name_n, meta_name_n, plane_name_n;
};

static void fold(struct seen *s, const void *p, size_t n)
{
    s->digest = xp_fnv(s->digest, xp_span_of(p, n));
}

static void fold_u64(struct seen *s, uint64_t v)
{
    fold(s, &v, sizeof v);
}

static void fold_span(struct seen *s, struct xp_span v)
{
    fold_u64(s, v.n);
    fold(s, v.p, v.n);
}

static void copy(char out[64], struct xp_span s)
{
    size_t n = s.n < 63 ? s.n : 63;
    memcpy(out, s.p, n);
    out[n] = 0;
}

static enum xp_status plane_begin(void *ctx, uint64_t at, uint64_t len)
{
    struct seen *s = ctx;
    s->planes++;
    fold_u64(s, at);
    fold_u64(s, len);
    return XP_OK;
}

static enum xp_status line_begin(void *ctx, uint64_t at, uint64_t len)
{
    struct seen *s = ctx;
    s->lines++;
    fold_u64(s, at);
    fold_u64(s, len);
    return XP_OK;
}

static enum xp_status events(void *ctx, const struct xspace_event *ev, size_t n)
{
    struct seen *s = ctx;
    for (size_t i = 0; i < n; i++) {
        fold_u64(s, ev[i].at);
        fold_u64(s, ev[i].len);
        fold_u64(s, (uint64_t)ev[i].metadata_id);
        fold_u64(s, (uint64_t)ev[i].offset_ps);
        fold_u64(s, (uint64_t)ev[i].duration_ps);
        fold_u64(s, (uint64_t)ev[i].num_occurrences);
        fold_u64(s, ev[i].big);
        fold_u64(s, ev[i].stats);
        fold_span(s, ev[i].body);
        struct xspace_stats it = xspace_stats_open(ev[i].body, 4);
        struct xspace_stat st;
        while (xspace_stats_next(&it, &st)) {
            s->stat = st;
            s->stats++;
            fold_u64(s, (uint64_t)st.metadata_id);
            fold_u64(s, st.type);
            fold_u64(s, st.num);
            fold_span(s, st.bytes);
        }
        assert_false(it.bad);
    }
    s->events += n;
    s->last = ev[n - 1];
    return s->first_bad && s->events >= s->first_bad ? XP_CANCELLED : XP_OK;
}

static enum xp_status line_end(void *ctx, const struct xspace_line *l)
{
    struct seen *s = ctx;
    s->lines_ended++;
    s->line = *l;
    s->line_name_n = l->name.n;
    copy(s->line_name, l->name);
    fold_span(s, l->name);
    fold_span(s, l->display_name);
    fold_u64(s, (uint64_t)l->id);
    fold_u64(s, (uint64_t)l->display_id);
    fold_u64(s, (uint64_t)l->timestamp_ns);
    fold_u64(s, (uint64_t)l->duration_ps);
    fold_u64(s, l->nevents);
    return XP_OK;
}

static enum xp_status meta(void *ctx, const struct xspace_meta *m)
{
    struct seen *s = ctx;
    s->metas++;
    s->meta = *m;
    s->meta_name_n = m->name.n;
    fold_u64(s, m->kind);
    fold_u64(s, (uint64_t)m->key);
    fold_u64(s, m->at);
    fold_u64(s, m->len);
    fold_span(s, m->name);
    fold_span(s, m->display_name);
    fold_span(s, m->body);
    return XP_OK;
}

static enum xp_status plane_stat(void *ctx, uint64_t at, const struct xspace_stat *st)
{
    struct seen *s = ctx;
    s->stat = *st;
    fold_u64(s, at);
    fold_u64(s, (uint64_t)st->metadata_id);
    fold_u64(s, st->type);
    fold_u64(s, st->num);
    fold_span(s, st->bytes);
    return XP_OK;
}

static enum xp_status plane_end(void *ctx, const struct xspace_plane *p)
{
    struct seen *s = ctx;
    s->plane = *p;
    s->plane_name_n = p->name.n;
    fold_span(s, p->name);
    fold_u64(s, (uint64_t)p->id);
    fold_u64(s, p->nstats);
    return XP_OK;
}

static enum xp_status hostname(void *ctx, struct xp_span name)
{
    struct seen *s = ctx;
    s->hostnames++;
    copy(s->text, name);
    fold_span(s, name);
    return XP_OK;
}

static enum xp_status message(void *ctx, bool is_error, struct xp_span text)
{
    struct seen *s = ctx;
    s->messages++;
    fold_u64(s, is_error);
    fold_span(s, text);
    return XP_OK;
}

static const struct xspace_sink sink = {plane_begin, line_begin, events,   line_end, meta,
                                        plane_stat,  plane_end,  hostname, message};

/* Decodes in pieces of `cut` bytes, or in two pieces when `two`. */
static enum xp_status decode(struct xp_span in, size_t cut, bool two, struct seen *s,
                             struct xp_error *err)
{
    static struct xspace_decoder d;
    enum xp_status st = XP_OK;
    memset(s, 0, sizeof *s);
    s->digest = XP_FNV_INIT;
    xspace_decoder_init(&d, &sink, s, XSPACE_AT_SPACE, 0, UINT64_MAX);
    for (size_t at = 0; at < in.n && st == XP_OK;) {
        size_t n = two && at ? in.n : cut;
        if (n > in.n - at)
            n = in.n - at;
        uint8_t *piece = malloc(n); /* so that a sanitizer sees every byte read too far */
        memcpy(piece, in.p + at, n);
        st = xspace_decoder_push(&d, xp_span_of(piece, n), err);
        free(piece);
        at += n;
    }
    return st == XP_OK ? xspace_decoder_finish(&d, err) : st;
}

static void varint_field(struct xp_buf *b, uint32_t num, const char *bytes, size_t n)
{
    xp_pb_put_varint(b, num << 3);
    xp_buf_add(b, bytes, n);
}

/* Unknown fields of every wire type, groups within groups, and known numbers of a wrong type. */
static void put_noise(struct xp_buf *b)
{
    xp_pb_put_u64(b, 1000, UINT64_MAX);
    xp_pb_put_double(b, 1001, 3.5);
    make_text(b, 1002, "unknown text, long enough to span a piece or two");
    xp_pb_put_varint(b, 1003 << 3 | 5);
    xp_buf_add(b, "\1\2\3\4", 4);
    xp_pb_put_varint(b, 1004 << 3 | 3);
    xp_pb_put_u64(b, 4, 77);
    make_text(b, 3, "not a line");
    xp_pb_put_varint(b, 1005 << 3 | 3);
    xp_pb_put_varint(b, 1005 << 3 | 4);
    xp_pb_put_varint(b, 1004 << 3 | 4);
    xp_pb_put_double(b, 1, 1.0); /* field 1 is a varint or a message */
    xp_pb_put_double(b, 4, 1.0);
}

static struct xp_buf nasty_line(void)
{
    struct xp_buf line = make_message(), ev;
    put_noise(&line);
    make_add_event(&line, 1, 10, 20); /* before the line's own fields */
    xp_pb_put_u64(&line, 1, 3);
    xp_pb_put_u64(&line, 1, (uint64_t)-7); /* the last counts */
    make_text(&line, 2, "first name");
    make_text(&line, 2, "line");
    make_text(&line, 11, "");
    for (int i = 0; i < 400; i++)
        make_add_event(&line, i % 7, i * 1000003L, i % 3 ? i * 77L : 0);
    make_add_event(&line, INT64_MIN, -1, INT64_MAX);
    make_add_event(&line, 5, INT64_C(1) << 31, INT64_C(1) << 33);
    ev = make_message(); /* empty */
    make_put(&line, 4, &ev);
    ev = make_message(); /* shuffled, repeated, with noise and occurrences */
    struct xp_buf stat = make_stat_i64(9, -5);
    make_put(&ev, 4, &stat);
    put_noise(&ev);
    xp_pb_put_u64(&ev, 3, 11);
    xp_pb_put_u64(&ev, 2, 12);
    xp_pb_put_u64(&ev, 1, 13);
    xp_pb_put_u64(&ev, 5, 14);
    xp_pb_put_u64(&ev, 3, 15);
    make_put(&line, 4, &ev);
    ev = make_message(); /* varints longer than they need be */
    varint_field(&ev, 1, "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10);
    varint_field(&ev, 2, "\x82\x80\x80\x80\x80\x80\x80\x80\x00", 9);
    varint_field(&ev, 3, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
    make_put(&line, 4, &ev);
    ev = make_event(21, 22, 23); /* too large to be whole */
    struct xp_buf big = make_message();
    xp_pb_put_u64(&big, 1, 9);
    struct xp_buf text = make_message();
    memset(xp_buf_room(&text, 70000), 'x', 70000);
    text.n = 70000;
    make_put(&big, 5, &text);
    make_put(&ev, 4, &big);
    put_noise(&ev);
    xp_pb_put_u64(&ev, 3, 24);
    make_put(&line, 4, &ev);
    make_add_event(&line, 2, 3, 4);
    xp_pb_put_u64(&line, 3, 1234567890123456789);
    xp_pb_put_u64(&line, 9, 55);
    xp_pb_put_u64(&line, 10, 56);
    return line;
}

static void put_big_meta(struct xp_buf *plane, uint32_t field, size_t n)
{
    struct xp_buf value = make_message(), entry = make_message(), text = make_message();
    make_text(&value, 2, "big metadata");
    memset(xp_buf_room(&text, n), 'm', n);
    text.n = n;
    make_put(&value, field == 4 ? 3 : 9, &text);
    xp_pb_put_u64(&value, 1, 4711);
    put_noise(&value);
    make_put(&entry, 2, &value);
    xp_pb_put_u64(&entry, 1, 4712);
    make_put(plane, field, &entry);
}

static struct xp_buf nasty_space(void)
{
    struct xp_buf space = make_message(), plane = make_message(), line = nasty_line();
    put_noise(&plane);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "one");
    make_add_meta(&plane, 4, 1, "one again");
    make_add_meta(&plane, 5, 9, "stat");
    put_big_meta(&plane, 4, 100000);
    put_big_meta(&plane, 5, 70000);
    line = make_message();
    make_put(&plane, 3, &line);
    struct xp_buf stat = make_stat_i64(9, 99);
    make_put(&plane, 6, &stat);
    xp_pb_put_u64(&plane, 1, 8);
    struct xp_buf name = make_message();
    memset(xp_buf_room(&name, 6000), 'n', 6000);
    name.n = 6000;
    make_put(&plane, 2, &name);
    make_put(&space, 1, &plane);
    plane = make_message();
    make_put(&space, 1, &plane);
    xp_pb_put_varint(&space, 1004 << 3 | 3);
    xp_pb_put_varint(&space, 1004 << 3 | 4);
    make_text(&space, 2, "an error");
    make_text(&space, 3, "a warning");
    make_text(&space, 4, "host");
    return space;
}

static void decoder_reads_what_was_written(void **state)
{
    (void)state;
    struct xp_buf space = nasty_space();
    struct seen s;
    struct xp_error err;
    assert_int_equal(decode(xp_buf_all(&space), space.n, false, &s, &err), XP_OK);
    assert_int_equal(s.planes, 2);
    assert_int_equal(s.lines, 2);
    assert_int_equal(s.lines_ended, 2);
    assert_int_equal(s.events, 1 + 400 + 7);
    assert_int_equal(s.metas, 5);
    assert_int_equal(s.meta.key, 4712);
    assert_true(s.meta.big);
    assert_int_equal(s.hostnames, 1);
    assert_string_equal(s.text, "host");
    assert_int_equal(s.messages, 2);
    xp_buf_fini(&space);
}

static void lines_and_events_keep_the_last_of_repeated_fields(void **state)
{
    (void)state;
    struct xp_buf line = nasty_line();
    struct seen s = {.digest = XP_FNV_INIT};
    static struct xspace_decoder d;
    struct xp_error err;
    xspace_decoder_init(&d, &sink, &s, XSPACE_AT_LINE, 1000, line.n);
    assert_int_equal(xspace_decoder_push(&d, xp_buf_all(&line), &err), XP_OK);
    assert_int_equal(xspace_decoder_finish(&d, &err), XP_OK);
    assert_int_equal(s.line.id, -7);
    assert_string_equal(s.line_name, "line");
    assert_int_equal(s.line.timestamp_ns, 1234567890123456789);
    assert_int_equal(s.line.duration_ps, 55);
    assert_int_equal(s.line.display_id, 56);
    assert_int_equal(s.line.nevents, 408);
    assert_int_equal(s.last.metadata_id, 2);
    assert_int_equal(s.last.duration_ps, 4);
    xp_buf_fini(&line);
}

struct stats_seen {
    uint64_t digest;
    size_t events, passed, bare; /* of those: with dull stats stepped over, with none left */
};

static enum xp_status stats_events(void *ctx, const struct xspace_event *ev, size_t n)
{
    struct stats_seen *s = ctx;
    for (size_t i = 0; i < n; i++, s->events++) {
        struct xp_span rest = xp_span_of(ev[i].body.p + ev[i].stats, ev[i].body.n - ev[i].stats);
        struct xspace_stats it = xspace_stats_open(rest, 4);
        struct xspace_stat stat;
        int64_t times[] = {ev[i].metadata_id, ev[i].offset_ps, ev[i].duration_ps};
        s->digest = xp_fnv(s->digest, xp_span_of((const uint8_t *)times, sizeof times));
        s->bare += !rest.n;
        if (xspace_stats_next(&it, &stat))
            s->passed += stat.metadata_id == 6;
        while (xspace_stats_next(&it, &stat))
            assert_int_equal(stat.metadata_id, 5 + (stat.num == 6));
        assert_false(it.bad);
    }
    return XP_OK;
}

/* Events of stats 5, 5, 6, 5, and each third of 5 alone; times of all lengths. */
static struct stats_seen stats_read(const uint8_t *dull, bool plain)
{
    static const struct xspace_sink stats_sink = {.on_events = stats_events};
    static struct xspace_decoder d;
    struct stats_seen s = {.digest = XP_FNV_INIT};
    struct xp_buf line = make_message();
    struct xp_error err;
    for (int i = 0; i < 300; i++) {
        struct xp_buf ev = make_event(i, INT64_C(1) << i % 56, (INT64_C(1) << i % 55) - 1);
        for (int k = 0; k < (i % 3 ? 4 : 1); k++) {
            struct xp_buf stat = make_stat_i64(k == 2 ? 6 : 5, k == 2 ? 6 : i * INT64_C(1000003));
            make_put(&ev, 4, &stat);
        }
        make_put(&line, 4, &ev);
    }
    xspace_decoder_init(&d, &stats_sink, &s, XSPACE_AT_LINE, 0, line.n);
    xspace_decoder_dull(&d, dull);
    d.pext = d.pext && !plain;
    assert_int_equal(xspace_decoder_push(&d, xp_buf_all(&line), &err), XP_OK);
    assert_int_equal(xspace_decoder_finish(&d, &err), XP_OK);
    xp_buf_fini(&line);
    return s;
}

static void stats_that_nobody_asks_about_are_stepped_over(void **state)
{
    (void)state;
    uint8_t dull[128] = {[5] = XSPACE_DULL};
    struct stats_seen all = stats_read(NULL, false), some = stats_read(dull, false);
    assert_int_equal(all.events, 300);
    assert_int_equal(all.passed + all.bare, 0);
    assert_int_equal(some.events, 300);
    assert_in_range(some.passed, 195, 200); /* the last few have no room behind them */
    assert_in_range(some.bare, 98, 100);
    assert_true(all.digest == some.digest);
    assert_true(all.digest == stats_read(NULL, true).digest);
    assert_true(all.digest == stats_read(dull, true).digest);
}

static enum xp_status one_event(const struct xp_buf *ev, struct seen *s, struct xp_error *err)
{
    struct xp_buf line = make_message(), copy = make_message();
    xp_buf_add(&copy, ev->p, ev->n);
    make_put(&line, 4, &copy);
    static struct xspace_decoder d;
    *s = (struct seen){.digest = XP_FNV_INIT};
    xspace_decoder_init(&d, &sink, s, XSPACE_AT_LINE, 0, line.n);
    enum xp_status st = xspace_decoder_push(&d, xp_buf_all(&line), err);
    if (st == XP_OK)
        st = xspace_decoder_finish(&d, err);
    xp_buf_fini(&line);
    return st;
}

static void numbers_of_an_event_are_exact(void **state)
{
    (void)state;
    static const int64_t values[] = {
        0,        1,         127,       128,      16383,          16384,    INT32_MAX,
        -1,       INT64_MIN, INT64_MAX, 1L << 31, 1L << 32,       1L << 34, 1L << 35,
        1L << 42, 1L << 49,  1L << 55,  1L << 56, (1L << 56) - 1, 1L << 62};
    size_t n = sizeof values / sizeof *values;
    struct seen s;
    struct xp_error err;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            struct xp_buf ev = make_event(values[i], values[k], values[(i + k) % n]);
            assert_int_equal(one_event(&ev, &s, &err), XP_OK);
            assert_int_equal(s.last.metadata_id, values[i]);
            assert_int_equal(s.last.offset_ps, values[k]);
            assert_int_equal(s.last.duration_ps, values[(i + k) % n]);
            assert_int_equal(s.last.stats, ev.n);
            xp_buf_fini(&ev);
        }
    }
    struct xp_buf ev = make_event(1, 2, 3);
    xp_pb_put_u64(&ev, 5, 9);
    assert_int_equal(one_event(&ev, &s, &err), XP_OK);
    assert_true(s.last.has_occurrences);
    assert_int_equal(s.last.num_occurrences, 9);
    assert_int_equal(s.last.offset_ps, 0); /* one of the two */
    xp_buf_fini(&ev);
}

static void stats_of_every_type_are_read(void **state)
{
    (void)state;
    struct xp_buf ev = make_event(1, 2, 3), st;
    struct xp_span body;
    struct xspace_stat got;
    static const struct {
        uint32_t field;
        enum xspace_value type;
    } rows[] = {{2, XSPACE_DOUBLE}, {3, XSPACE_U64},   {4, XSPACE_I64},
                {5, XSPACE_STR},    {6, XSPACE_BYTES}, {7, XSPACE_REF}};
    for (size_t i = 0; i < 6; i++) {
        st = make_message();
        xp_pb_put_u64(&st, 1, 40 + i);
        if (rows[i].field == 2)
            xp_pb_put_double(&st, 2, 2.5);
        else if (rows[i].field == 5 || rows[i].field == 6)
            make_text(&st, rows[i].field, "text");
        else
            xp_pb_put_u64(&st, rows[i].field, (uint64_t)-3);
        make_put(&ev, 4, &st);
    }
    st = make_message(); /* a stat with an id alone */
    xp_pb_put_u64(&st, 1, 50);
    make_put(&ev, 4, &st);
    body = xp_buf_all(&ev);
    struct xspace_stats it = xspace_stats_open(body, 4);
    for (size_t i = 0; i < 6; i++) {
        assert_true(xspace_stats_next(&it, &got));
        assert_int_equal(got.metadata_id, 40 + i);
        assert_int_equal(got.type, rows[i].type);
        if (got.type == XSPACE_DOUBLE)
            assert_true(xp_pb_double(got.num) == 2.5);
        else if (got.type == XSPACE_STR || got.type == XSPACE_BYTES)
            assert_true(xp_span_eq(got.bytes, XP_SPAN_LIT("text")));
        else
            assert_int_equal(got.num, (uint64_t)-3);
    }
    assert_true(xspace_stats_next(&it, &got));
    assert_int_equal(got.type, XSPACE_NONE);
    assert_false(xspace_stats_next(&it, &got));
    assert_false(it.bad);
    for (size_t n = 1; n < body.n; n++) { /* cut anywhere: an end or bad, never a crash */
        uint8_t *cut = malloc(n);
        memcpy(cut, body.p, n);
        it = xspace_stats_open(xp_span_of(cut, n), 4);
        while (xspace_stats_next(&it, &got))
            ;
        free(cut);
    }
    xp_buf_fini(&ev);
}

static void same_for_every_cut(struct xp_span in, size_t step)
{
    struct seen whole, cut;
    struct xp_error err;
    assert_int_equal(decode(in, in.n, false, &whole, &err), XP_OK);
    assert_true(whole.planes > 0);
    for (size_t k = 1; k < in.n; k += step) {
        assert_int_equal(decode(in, k, true, &cut, &err), XP_OK);
        assert_int_equal(cut.digest, whole.digest);
    }
    static const size_t pieces[] = {1, 2, 3, 7, 19, 20, 21, 63, 1000, 4096, 65535, 65536, 65537};
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        assert_int_equal(decode(in, pieces[k], false, &cut, &err), XP_OK);
        assert_int_equal(cut.digest, whole.digest);
        assert_int_equal(cut.events, whole.events);
    }
}

static void decoder_gives_same_events_for_every_cut(void **state)
{
    (void)state;
    struct xp_buf space = nasty_space();
    same_for_every_cut(xp_buf_all(&space), 211); /* a prime: every phase of 300 KB is met */
    xp_buf_fini(&space);
    struct xp_buf small = make_message(), plane = make_plane(1, "p"), line = make_line(1, "l", 5);
    for (int i = 0; i < 20; i++)
        make_add_event(&line, i, i * 100, 50);
    put_noise(&line);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "name");
    put_noise(&plane);
    make_put(&small, 1, &plane);
    same_for_every_cut(xp_buf_all(&small), 1);
    xp_buf_fini(&small);
}

static void decoder_gives_same_events_for_cuts_of_a_real_profile(void **state)
{
    (void)state;
    struct xp_span in = make_load("real/gpu_jax_te_fused_attn.xplane.pb");
    if (!in.n)
        skip();
    same_for_every_cut(in, 2003);
    free((void *)in.p);
}

static void truncation_at_every_byte_yields_a_prefix_and_where(void **state)
{
    (void)state;
    struct xp_buf small = make_message(), plane = make_plane(1, "p"), line = make_line(1, "l", 5);
    for (int i = 0; i < 200; i++)
        make_add_event(&line, i, i * 100, 50);
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "name");
    make_put(&small, 1, &plane);
    uint64_t events = 0;
    for (size_t n = 1; n < small.n; n++) {
        struct seen s;
        struct xp_error err;
        assert_int_equal(decode(xp_span_of(small.p, n), n, false, &s, &err), XP_CORRUPT);
        assert_true(err.offset <= n);
        assert_true(err.text[0] != 0);
        assert_true(s.events >= events);
        events = s.events;
    }
    assert_int_equal(events, 200);
    xp_buf_fini(&small);
}

static void flipped_bits_never_crash(void **state)
{
    (void)state;
    struct xp_buf space = make_message(), plane = make_plane(1, "plane"), line = nasty_line();
    make_put(&plane, 3, &line);
    make_add_meta(&plane, 4, 1, "name");
    make_add_meta(&plane, 5, 1, "stat");
    struct xp_buf stat = make_stat_i64(9, 99);
    make_put(&plane, 6, &stat);
    make_put(&space, 1, &plane);
    uint64_t rng = 42;
    for (int i = 0; i < 4000; i++) {
        size_t at = make_rng(&rng) % (i % 2 ? 300 : space.n);
        uint8_t was = space.p[at];
        space.p[at] ^= (uint8_t)(1 << make_rng(&rng) % 8);
        static struct xspace_decoder d;
        struct xp_error err;
        static const struct xspace_sink none = {0};
        xspace_decoder_init(&d, &none, NULL, XSPACE_AT_SPACE, 0, space.n);
        size_t cut = make_rng(&rng) % space.n;
        enum xp_status st = xspace_decoder_push(&d, xp_span_of(space.p, cut), &err);
        if (st == XP_OK)
            st = xspace_decoder_push(&d, xp_span_of(space.p + cut, space.n - cut), &err);
        if (st == XP_OK)
            st = xspace_decoder_finish(&d, &err);
        assert_true(st == XP_OK || st == XP_CORRUPT);
        space.p[at] = was;
    }
    xp_buf_fini(&space);
}

static void errors_name_the_byte_and_stick(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t at;
    } rows[] = {
        {"\x0f", 1, 0},                             /* wire type 7 */
        {"\x00\x01", 2, 0},                         /* field 0 */
        {"\x0a\x02\x1a\x05zzzzz", 9, 2},            /* a line longer than its plane */
        {"\x0a\x04\x1a\x02\x22\x05zzzzz", 11, 4},   /* an event longer than its line */
        {"\x0a\x06\x1a\x04\x22\x02\x08\xff", 8, 6}, /* a varint cut by its event */
        {"\x0c", 1, 0},                             /* the end of a group never begun */
        {"\x0a\x01\x0b", 3, 3},                     /* a group cut by its plane */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct xspace_decoder d;
        static const struct xspace_sink none = {0};
        struct xp_error err = {0}, again = {0};
        xspace_decoder_init(&d, &none, NULL, XSPACE_AT_SPACE, 0, UINT64_MAX);
        struct xp_span in = xp_span_of(rows[i].bytes, rows[i].n);
        assert_int_equal(xspace_decoder_push(&d, in, &err), XP_CORRUPT);
        assert_int_equal(err.offset, rows[i].at);
        assert_int_equal(xspace_decoder_push(&d, in, &again), XP_CORRUPT);
        assert_int_equal(again.offset, err.offset);
        assert_int_equal(xspace_decoder_finish(&d, &again), XP_CORRUPT);
        assert_string_equal(again.text, err.text);
    }
}

static void events_before_damage_are_handed_on(void **state)
{
    (void)state;
    struct xp_buf line = make_line(4, "cut", 5);
    for (int i = 0; i < 10; i++)
        make_add_event(&line, i, i, 1);
    xp_buf_add(&line, "\x22\x01\x0f", 3);
    static struct xspace_decoder d;
    struct seen s = {.digest = XP_FNV_INIT};
    struct xp_error err;
    xspace_decoder_init(&d, &sink, &s, XSPACE_AT_LINE, 0, line.n);
    assert_int_equal(xspace_decoder_push(&d, xp_buf_all(&line), &err), XP_CORRUPT);
    assert_int_equal(s.events, 10);
    assert_int_equal(s.lines_ended, 0);
    struct xspace_line known;
    assert_true(xspace_decoder_line(&d, &known));
    assert_int_equal(known.id, 4);
    assert_int_equal(known.nevents, 10);
    assert_true(xp_span_eq(known.name, XP_SPAN_LIT("cut")));
    xp_buf_fini(&line);
}

static void the_sink_can_stop_the_decoder(void **state)
{
    (void)state;
    struct xp_buf line = make_line(4, "l", 5);
    for (int i = 0; i < 1000; i++)
        make_add_event(&line, i, i, 1);
    static struct xspace_decoder d;
    struct seen s = {.digest = XP_FNV_INIT, .first_bad = 300};
    struct xp_error err;
    xspace_decoder_init(&d, &sink, &s, XSPACE_AT_LINE, 0, line.n);
    assert_int_equal(xspace_decoder_push(&d, xp_buf_all(&line), &err), XP_CANCELLED);
    assert_in_range(s.events, 300, 300 + XSPACE_BATCH);
    assert_int_equal(xspace_decoder_finish(&d, &err), XP_CANCELLED);
    xp_buf_fini(&line);
}

static void an_empty_profile_is_valid(void **state)
{
    (void)state;
    struct seen s;
    struct xp_error err;
    assert_int_equal(decode((struct xp_span){0}, 1, false, &s, &err), XP_OK);
    assert_int_equal(s.planes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoder_reads_what_was_written),
        cmocka_unit_test(lines_and_events_keep_the_last_of_repeated_fields),
        cmocka_unit_test(numbers_of_an_event_are_exact),
        cmocka_unit_test(stats_of_every_type_are_read),
        cmocka_unit_test(decoder_gives_same_events_for_every_cut),
        cmocka_unit_test(decoder_gives_same_events_for_cuts_of_a_real_profile),
        cmocka_unit_test(truncation_at_every_byte_yields_a_prefix_and_where),
        cmocka_unit_test(flipped_bits_never_crash),
        cmocka_unit_test(stats_that_nobody_asks_about_are_stepped_over),
        cmocka_unit_test(errors_name_the_byte_and_stick),
        cmocka_unit_test(events_before_damage_are_handed_on),
        cmocka_unit_test(the_sink_can_stop_the_decoder),
        cmocka_unit_test(an_empty_profile_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
