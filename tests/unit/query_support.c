#include "tests/unit/query_support.h"

#include "lib/base/pb_wire.h"

struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->arena = xp_arena_new(NULL);
    xp_buf_init(&f->file, (size_t)1 << 30);
    f->part.arena = f->arena;
    f->part.planes = f->planes;
    f->part.lines = f->lines;
    assert_true(xp_strpool_init(&f->part.strings, f->arena));
    return f;
}

void fixture_free(struct fixture *f)
{
    xp_reader_close(f->part.reader);
    if (f->part.derived_free)
        f->part.derived_free(f->part.derived);
    xp_buf_fini(&f->file);
    xp_arena_free(f->arena);
    free(f);
}

static uint32_t string(struct fixture *f, const char *s)
{
    return xp_strpool_add(&f->part.strings, xp_span_str(s));
}

struct part_plane *fixture_plane(struct fixture *f, const char *name, const char *const *names,
                                 uint32_t n)
{
    assert_true(f->part.nplanes < FIXTURE_PLANES);
    struct part_plane *pl = &f->planes[f->part.nplanes++];
    pl->name = string(f, name);
    pl->first_line = f->part.nlines;
    pl->evmeta = xp_arena_zalloc(f->arena, (n + 1) * sizeof *pl->evmeta);
    pl->nevmeta = n;
    for (uint32_t i = 0; i < n; i++) {
        pl->evmeta[i].id = i + 1;
        pl->evmeta[i].name = string(f, names[i]);
    }
    pl->nstatmeta = 32;
    pl->statmeta = xp_arena_zalloc(f->arena, pl->nstatmeta * sizeof *pl->statmeta);
    for (uint32_t i = 0; i < pl->nstatmeta; i++) {
        char text[16];
        snprintf(text, sizeof text, "stat%u", i + 1);
        pl->statmeta[i] = (struct part_statmeta){i + 1, string(f, text), STAT_NOT_KEPT};
    }
    atomic_store(&pl->state, PART_READY);
    return pl;
}

static int by_time(const void *x, const void *y)
{
    const struct fixture_event *a = x, *b = y;
    if (a->begin_ps != b->begin_ps)
        return a->begin_ps < b->begin_ps ? -1 : 1;
    if (a->end_ps != b->end_ps)
        return a->end_ps > b->end_ps ? -1 : 1;
    return a < b ? -1 : 1;
}

static void write_event(struct fixture *f, struct fixture_event *ev)
{
    struct xp_buf b;
    xp_buf_init(&b, 1 << 20);
    xp_pb_put_u64(&b, 1, ev->name + 1);
    xp_pb_put_u64(&b, 2, (uint64_t)ev->begin_ps);
    xp_pb_put_u64(&b, 3, (uint64_t)(ev->end_ps - ev->begin_ps));
    xp_buf_span(&b, ev->stats);
    xp_pb_put_bytes(&f->file, 4, xp_buf_all(&b));
    ev->at = f->file.n - b.n;
    xp_buf_fini(&b);
}

struct part_line *fixture_line(struct fixture *f, const char *name, int64_t base_ps,
                               struct fixture_event *ev, size_t n)
{
    assert_true(f->part.nlines < FIXTURE_LINES);
    struct part_plane *pl = &f->planes[f->part.nplanes - 1];
    struct part_line *l = &f->lines[f->part.nlines++];
    struct line_builder *b = line_builder_new(f->arena);
    xp_buf_byte(&f->file, 0); /* a byte between lines, so that none begins at 0 */
    *l = (struct part_line){.plane = f->part.nplanes - 1, .name = string(f, name)};
    l->id = pl->nlines++;
    l->base_ps = base_ps;
    l->at = f->file.n;
    qsort(ev, n, sizeof *ev, by_time);
    for (size_t i = 0; i < n; i++) {
        write_event(f, &ev[i]);
        assert_int_equal(line_builder_add(b, ev[i].begin_ps, ev[i].end_ps, ev[i].name, ev[i].at),
                         XP_OK);
    }
    l->len = f->file.n - l->at;
    assert_int_equal(line_builder_end(b, l), XP_OK);
    pl->nevents += n;
    return l;
}

void fixture_done(struct fixture *f)
{
    struct xp_error err;
    f->part.size = f->file.n;
    atomic_store(&f->part.state, PART_READY);
    assert_int_equal(xp_reader_open_mem(xp_buf_all(&f->file), 1, &f->part.reader, &err), XP_OK);
}

static void put_stat(struct xp_buf *b, uint32_t field, struct xp_buf *stat)
{
    xp_pb_put_bytes(b, field, xp_buf_all(stat));
    xp_buf_fini(stat);
}

void fixture_stat_u64(struct xp_buf *b, uint32_t field, uint64_t id, uint64_t v)
{
    struct xp_buf s;
    xp_buf_init(&s, 64);
    xp_pb_put_u64(&s, 1, id);
    xp_pb_put_u64(&s, 3, v);
    put_stat(b, field, &s);
}

void fixture_stat_str(struct xp_buf *b, uint32_t field, uint64_t id, const char *str)
{
    struct xp_buf s;
    xp_buf_init(&s, 1 << 20);
    xp_pb_put_u64(&s, 1, id);
    xp_pb_put_bytes(&s, 5, xp_span_str(str));
    put_stat(b, field, &s);
}

uint64_t fixture_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct fixture_event *fixture_random_events(uint64_t *state, size_t n, uint64_t spread,
                                            uint32_t names)
{
    struct fixture_event *ev = calloc(n + 1, sizeof *ev);
    assert_non_null(ev);
    for (size_t i = 0; i < n; i++) {
        uint64_t r = fixture_random(state);
        uint64_t longest = r % 100 ? spread : spread * 40;
        ev[i].begin_ps = (int64_t)(fixture_random(state) % (n * spread));
        ev[i].end_ps = ev[i].begin_ps + (int64_t)(r % 7 ? fixture_random(state) % longest : 0);
        ev[i].name = (uint32_t)(fixture_random(state) % names);
    }
    return ev;
}

json_t *fixture_json(struct out *out)
{
    json_error_t err;
    assert_null(out->gz);
    json_t *j = json_loadb((const char *)out->text.p, out->text.n, 0, &err);
    if (!j)
        fail_msg("%s in %.*s", err.text, (int)out->text.n, (const char *)out->text.p);
    return j;
}

int64_t fixture_int(json_t *obj, const char *key)
{
    json_t *v = json_object_get(obj, key);
    if (!json_is_integer(v))
        fail_msg("%s is no integer", key);
    return json_integer_value(v);
}
