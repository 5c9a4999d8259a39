#include "shard/decode/xspace_index.h"

#include "shard/decode/xspace_wire.h"

/* Fields of a line that are looked at in search of its timestamp; writers put it third. */
#define LINE_FIELDS 16

/* An array that doubles; the old copies stay in the arena, which is scratch. */
struct vec {
    void *p;
    uint32_t n, cap;
};

enum where { IN_SPACE, IN_PLANE, IN_LINE };

struct xspace_indexer {
    struct xp_arena *arena;
    uint64_t size, seen; /* of the object if known; bytes shown so far */
    uint64_t pos;        /* where the next header begins */
    uint64_t plane_end, line_end;
    enum where where;
    uint32_t groups;      /* open groups */
    uint32_t line_fields; /* of the open line, looked at so far */
    bool in_run;
    bool stopped; /* damage was found, nothing more is wanted */
    struct vec planes, lines, runs, rest;
    struct xp_error damage;
    uint32_t ncarry;
    uint8_t carry[XSPACE_HEADER_MAX];
};

struct xspace_indexer *xspace_indexer_new(struct xp_arena *a, uint64_t size)
{
    struct xspace_indexer *ix = xp_arena_zalloc(a, sizeof *ix);
    if (!ix)
        return NULL;
    ix->arena = a;
    ix->size = size;
    return ix;
}

uint64_t xspace_indexer_at(const struct xspace_indexer *ix)
{
    return ix->stopped ? UINT64_MAX : ix->pos + ix->ncarry;
}

static void *vec_push(struct xp_arena *a, struct vec *v, size_t item)
{
    if (v->n == v->cap) {
        uint32_t cap = v->cap ? v->cap * 2 : 16;
        void *p = xp_arena_alloc(a, cap * item);
        if (!p)
            return NULL;
        if (v->n)
            memcpy(p, v->p, v->n * item);
        v->p = p;
        v->cap = cap;
    }
    void *slot = (uint8_t *)v->p + v->n++ * item;
    memset(slot, 0, item);
    return slot;
}

static struct xspace_ix_plane *last_plane(struct xspace_indexer *ix)
{
    return (struct xspace_ix_plane *)ix->planes.p + ix->planes.n - 1;
}

static struct xspace_ix_line *last_line(struct xspace_indexer *ix)
{
    return (struct xspace_ix_line *)ix->lines.p + ix->lines.n - 1;
}

static struct xspace_ix_run *last_of(struct vec *runs)
{
    return (struct xspace_ix_run *)runs->p + runs->n - 1;
}

static enum xp_status stop(struct xspace_indexer *ix, uint64_t at, const char *what)
{
    ix->stopped = true;
    if (ix->damage.status == XP_OK)
        xp_fail(&ix->damage, XP_CORRUPT, at, "%s", what);
    if (ix->where != IN_SPACE)
        last_plane(ix)->cut = true;
    return XP_OK;
}

static enum xp_status open_plane(struct xspace_indexer *ix, uint64_t at, uint64_t len)
{
    if (ix->planes.n == XSPACE_MAX_PLANES)
        return stop(ix, at, "the profile has more planes than are read");
    struct xspace_ix_plane *p = vec_push(ix->arena, &ix->planes, sizeof *p);
    if (!p)
        return XP_BUSY;
    p->at = at;
    p->len = len;
    p->first_line = ix->lines.n;
    p->first_run = ix->runs.n;
    ix->where = IN_PLANE;
    ix->in_run = false;
    ix->plane_end = at + len;
    ix->pos = at;
    return XP_OK;
}

static enum xp_status open_line(struct xspace_indexer *ix, uint64_t at, uint64_t len)
{
    if (ix->lines.n == XSPACE_MAX_LINES)
        return stop(ix, at, "the profile has more lines than are read");
    struct xspace_ix_line *l = vec_push(ix->arena, &ix->lines, sizeof *l);
    if (!l)
        return XP_BUSY;
    l->at = at;
    l->len = len;
    l->plane = ix->planes.n - 1;
    last_plane(ix)->nlines++;
    ix->where = IN_LINE;
    ix->in_run = false;
    ix->line_fields = 0;
    ix->line_end = at + len;
    ix->pos = at;
    return XP_OK;
}

/* A field that is no line and no plane: [at, end). */
static enum xp_status add_to_run(struct xspace_indexer *ix, uint64_t at, uint64_t end)
{
    struct vec *runs = ix->where == IN_PLANE ? &ix->runs : &ix->rest;
    if (!ix->in_run) {
        struct xspace_ix_run *fresh = vec_push(ix->arena, runs, sizeof *fresh);
        if (!fresh)
            return XP_BUSY;
        fresh->at = at;
        if (ix->where == IN_PLANE)
            last_plane(ix)->nruns++;
        ix->in_run = true;
    }
    struct xspace_ix_run *r = last_of(runs);
    r->len = end - r->at;
    r->count += ix->groups == 0;
    return XP_OK;
}

/* A field of the head of a line; past it, the rest of the line is of no interest. */
static void line_field(struct xspace_indexer *ix, const struct xspace_field *f, uint64_t end)
{
    bool group = f->type == XSPACE_GROUP_BEGIN || f->type == XSPACE_GROUP_END;
    bool timestamp = f->num == 3 && f->type == XP_PB_VARINT;
    if (timestamp)
        last_line(ix)->timestamp_ns = (int64_t)f->value;
    ix->pos = end;
    if (timestamp || group || (f->num == 4 && f->type == XP_PB_LEN) || end > ix->line_end ||
        ++ix->line_fields == LINE_FIELDS)
        ix->pos = ix->line_end;
}

static uint64_t parent_end(const struct xspace_indexer *ix)
{
    if (ix->where == IN_LINE)
        return ix->line_end;
    return ix->where == IN_PLANE ? ix->plane_end : UINT64_MAX; /* where bytes end, finish tells */
}

static enum xp_status on_field(struct xspace_indexer *ix, const struct xspace_field *f, size_t head)
{
    uint64_t at = ix->pos, data = at + head, end = data;
    if (f->type == XP_PB_LEN && __builtin_add_overflow(data, f->value, &end))
        return stop(ix, at, "a length leaves the profile");
    if (ix->where == IN_LINE) {
        line_field(ix, f, end);
        return XP_OK;
    }
    if (ix->where == IN_PLANE && end > ix->plane_end)
        return stop(ix, at, "a length leaves the plane it is in");
    if (f->type == XSPACE_GROUP_END && ix->groups-- == 0)
        return stop(ix, at, "a group ends that was not begun");
    if (f->type == XSPACE_GROUP_BEGIN && ++ix->groups > 100)
        return stop(ix, at, "groups are nested too deep");
    bool message = f->type == XP_PB_LEN && !ix->groups;
    if (ix->where == IN_SPACE && message && f->num == 1)
        return open_plane(ix, data, f->value);
    if (ix->where == IN_PLANE && message && f->num == 3)
        return open_line(ix, data, f->value);
    XP_TRY(add_to_run(ix, at, end));
    ix->pos = end;
    return XP_OK;
}

static void close_ended(struct xspace_indexer *ix)
{
    if (ix->where == IN_LINE && ix->pos >= ix->line_end) {
        ix->pos = ix->line_end;
        ix->where = IN_PLANE;
    }
    if (ix->where == IN_PLANE && ix->pos >= ix->plane_end) {
        if (ix->groups)
            stop(ix, ix->pos, "the plane ends inside a group");
        ix->where = IN_SPACE;
        ix->in_run = false;
    }
}

/* Reads one header of which [p, end) is there. *used is 0 when that is too little. */
static enum xp_status step(struct xspace_indexer *ix, const uint8_t *p, const uint8_t *end,
                           size_t *used)
{
    struct xspace_field f;
    bool bad;
    uint64_t left = parent_end(ix) - ix->pos;
    bool all = (uint64_t)(end - p) >= left;
    *used = 0;
    if (all)
        end = p + left;
    const uint8_t *q = xspace_header(p, end, &f, &bad);
    if (q) {
        *used = (size_t)(q - p);
        return on_field(ix, &f, *used);
    }
    if (!bad && !all)
        return XP_OK;
    if (ix->where == IN_LINE) { /* the decoder will say what is wrong with it */
        ix->pos = ix->line_end;
        *used = 1;
        return XP_OK;
    }
    return stop(ix, ix->pos,
                bad ? "the tag and value of a field were expected here"
                    : "a field leaves the message it is in");
}

enum xp_status xspace_indexer_push(struct xspace_indexer *ix, uint64_t at, struct xp_span bytes,
                                   struct xp_error *err)
{
    enum xp_status st = XP_OK;
    uint64_t end = at + bytes.n;
    if (end > ix->seen)
        ix->seen = end;
    while (st == XP_OK && !ix->stopped && ix->pos + ix->ncarry < end) {
        uint64_t from = ix->pos + ix->ncarry;
        XP_ASSERT(from >= at);
        const uint8_t *p = bytes.p + (from - at);
        size_t n = (size_t)(end - from), used;
        if (ix->ncarry || n < XSPACE_HEADER_MAX) {
            size_t room = XSPACE_HEADER_MAX - ix->ncarry;
            n = n < room ? n : room;
            memcpy(ix->carry + ix->ncarry, p, n);
            ix->ncarry += (uint32_t)n;
            st = step(ix, ix->carry, ix->carry + ix->ncarry, &used);
        } else {
            st = step(ix, p, p + n, &used);
        }
        if (used) {
            ix->ncarry = 0;
            close_ended(ix);
        }
    }
    if (st != XP_OK)
        return xp_fail(err, st, ix->pos, "no memory left for the index of the profile");
    return XP_OK;
}

/* The last field of the run stays in it, cut; the decoder tells. */
static void cut_run(struct vec *runs, uint64_t size)
{
    if (runs->n && last_of(runs)->at + last_of(runs)->len > size)
        last_of(runs)->len = size - last_of(runs)->at;
}

/* What reaches beyond the end of the object is cut there. */
static void cut_at_end(struct xspace_indexer *ix, uint64_t size)
{
    uint64_t missing = ix->pos > size ? ix->pos - size : 0;
    cut_run(&ix->runs, size);
    cut_run(&ix->rest, size);
    if (ix->lines.n && last_line(ix)->at + last_line(ix)->len > size) {
        last_line(ix)->len = size - last_line(ix)->at;
        last_line(ix)->cut = true;
    }
    if (ix->planes.n && last_plane(ix)->at + last_plane(ix)->len > size) {
        missing = last_plane(ix)->at + last_plane(ix)->len - size;
        last_plane(ix)->len = size - last_plane(ix)->at;
        last_plane(ix)->cut = true;
    }
    if (ix->damage.status == XP_OK && missing)
        xp_fail(&ix->damage, XP_CORRUPT, size,
                "the profile ends here, %llu bytes before the end of what it holds",
                (unsigned long long)missing);
    else if (ix->damage.status == XP_OK && (ix->ncarry || ix->groups))
        xp_fail(&ix->damage, XP_CORRUPT, size, "the profile ends inside a field");
}

enum xp_status xspace_indexer_finish(struct xspace_indexer *ix, struct xspace_index *out,
                                     struct xp_error *err)
{
    (void)err;
    uint64_t size = ix->size != UINT64_MAX ? ix->size : ix->seen;
    cut_at_end(ix, size);
    *out = (struct xspace_index){.planes = ix->planes.p,
                                 .nplanes = ix->planes.n,
                                 .lines = ix->lines.p,
                                 .nlines = ix->lines.n,
                                 .runs = ix->runs.p,
                                 .nruns = ix->runs.n,
                                 .rest = ix->rest.p,
                                 .nrest = ix->rest.n,
                                 .size = size,
                                 .damage = ix->damage};
    return XP_OK;
}
