#include "lib/base/gzip_pen.h"
#include "lib/base/hash.h"
#include "lib/base/json_out.h"
#include "shard/tools/trace.h"
#include "shard/tools/trace_text.h"

#define FLUSH_AT ((size_t)32 << 10)
#define EVENT_ROOM 320 /* bytes of an event but for its name and arguments */
#define PEN_EVENTS 128 /* answers of more are written by the pen */
#define PEN_NAME_MAX 4096
#define PREFIXES 256
#define NAME_SLACK 32
#define LINE_HEAD_MAX 64
#define GROUP_ROOM 48   /* an event's group as text, with room to write it */
#define ARGS_BATCH 1024 /* events between which the memory of their arguments is dropped */

struct json_name {
    struct xp_span text;
    uint64_t place; /* where the pen wrote it last */
};

/* What the events of a line have in common. */
struct line_head {
    uint8_t text[LINE_HEAD_MAX];
    uint8_t n; /* 0: not made yet */
};

/* What these parts begin with in every event. */
#define TS_KEY 6  /* ,"ts": */
#define DUR_KEY 7 /* ,"dur": */
#define UID_KEY 6 /* "uid": */

/* The parts of an event's text that are like those of other events. */
enum { PART_HEAD, PART_NAME, PART_TS, PART_DUR, PART_FLOW, PART_PH, PART_UID, PART_Z, PARTS };

struct json_work {
    struct trace *t;
    struct trace_host *h;
    struct xp_buf *b;
    struct trace_frames frames;
    struct trace_place *places;
    struct derive_eye *eyes;
    bool *looked;
    struct json_name **cache; /* names of each plane, and of derive last */
    struct line_head *heads;
    struct xp_pen *pen;   /* NULL: the answer is small, or has all arguments */
    uint64_t like[PARTS]; /* places of the last event's parts */
    uint32_t like_line;   /* that event's line, */
    int64_t like_group;   /* its group, of which the text is */
    uint8_t group_text[GROUP_ROOM];
    uint8_t group_n;
    bool grouped;       /* there is such an event */
    uint32_t like_lead; /* and how long what came before it was */
    uint64_t like_other;
    uint64_t prefixes[PREFIXES]; /* places of names, by how they begin */
    struct json_name other_name;
    struct xp_bump bump;
    struct xp_buf escaped; /* the name looked at last */
    struct xp_arena *args_memory;
    struct vec args;
    bool comma;
    bool unclosed;    /* the pen's last event lacks its brace */
    struct vec *refs; /* of a piece: where numbers of frames are left out; else NULL */
    uint64_t nargs, ncounters;
};

/* --- texts --- */

static void put(struct xp_buf *b, const char *s)
{
    xp_buf_add(b, s, strlen(s));
}

static void put_double(struct xp_buf *b, double v)
{
    if (v != v)
        put(b, "\"NaN\"");
    else if (v > 1.7976931348623157e308)
        put(b, "\"Infinity\"");
    else if (v < -1.7976931348623157e308)
        put(b, "\"-Infinity\"");
    else
        xp_buf_fmt(b, "%.17g", v);
}

static bool two_digits(struct xp_span name)
{
    return xp_span_ends(name, XP_SPAN_LIT("(util %)")) ||
           xp_span_ends(name, XP_SPAN_LIT(" (MB/sec)"));
}

static void put_value(struct xp_buf *b, const struct trace_arg *a)
{
    const uint64_t exact = UINT64_C(1) << 53;
    double v;
    switch (a->type) {
    case TRACE_ARG_I64:
        if ((int64_t)a->num > (int64_t)exact || (int64_t)a->num < -(int64_t)exact)
            xp_buf_fmt(b, "\"%lld\"", (long long)a->num);
        else
            xp_buf_fmt(b, "%lld", (long long)a->num);
        break;
    case TRACE_ARG_U64:
        xp_buf_fmt(b, a->num > exact ? "\"%llu\"" : "%llu", (unsigned long long)a->num);
        break;
    case TRACE_ARG_DOUBLE:
        memcpy(&v, &a->num, sizeof v);
        if (two_digits(a->name) && v - v == 0)
            xp_buf_fmt(b, "%.2f", v);
        else
            put_double(b, v);
        break;
    default:
        xp_json_escape(b, a->text);
    }
}

static void flush(struct json_work *w)
{
    if (w->b->n >= FLUSH_AT && !w->pen && !w->refs)
        out_flush(w->t->out);
}

static void separate(struct json_work *w)
{
    if (w->unclosed)
        xp_buf_byte(w->b, '}');
    w->unclosed = false;
    if (w->comma)
        xp_buf_byte(w->b, ',');
    w->comma = true;
}

/* --- head and metadata --- */

void trace_json_frames(struct out *out, const struct xp_strpool *frames)
{
    struct xp_buf *b = &out->text;
    put(b, "\"stackFrames\":{");
    for (uint32_t i = 1; i < frames->n; i++) {
        xp_buf_fmt(b, "%s\"%u\":{\"name\":", i > 1 ? "," : "", i);
        xp_json_escape(b, xp_strpool_get(frames, i));
        xp_buf_byte(b, '}');
        if (b->n >= FLUSH_AT)
            out_flush(out);
    }
    put(b, "},\"traceEvents\":[");
}

void trace_json_head(struct xp_buf *b, const struct trace_sum *sum, bool full_dma)
{
    put(b,
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true}, \"codeLink\":\"\","
        "\"useNewBackend\": false,\"details\":[{\"name\":\"mpmd_pipeline_view\",\"value\":false}");
    if (sum->tpu)
        xp_buf_fmt(b, ",{\"name\":\"full_dma\",\"value\":%s}", full_dma ? "true" : "false");
    xp_buf_fmt(b,
               "],\"returnedEventsSize\":%llu,\"filteredByVisibility\":true,"
               "\"fullTimespan\":[%g,%g],",
               (unsigned long long)sum->shown, (double)sum->begin_ps / 1e9,
               (double)sum->end_ps / 1e9);
}

void trace_json_end(struct xp_buf *b, uint64_t ncounters)
{
    if (ncounters == 10000000)
        put(b, "], \"showCounterMessage\": \"Only 10000000 counter events are shown. Zoom in or "
               "pan to see more.\" ");
    else
        put(b, "], \"showCounterMessage\": \"\" ");
    xp_buf_fmt(b, ",\"totalCounterEvents\":%llu}", (unsigned long long)ncounters);
}

static void write_device(struct json_work *w, const struct trace_host *h,
                         const struct trace_device *d)
{
    uint32_t pid = 1000 * h->index + d->id;
    struct xp_buf name;
    xp_buf_init(&name, OUT_MAX);
    xp_buf_span(&name, h->name);
    xp_buf_byte(&name, ' ');
    xp_buf_span(&name, d->name);
    separate(w);
    put(w->b, "{\"args\":{\"name\":");
    xp_json_escape(w->b, xp_buf_all(&name));
    xp_buf_fini(&name);
    xp_buf_fmt(w->b, "},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"thread_count\":%u}",
               pid, d->nthreads);
    xp_buf_fmt(
        w->b,
        ",{\"args\":{\"sort_index\":%u},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%u}",
        pid, pid);
    for (uint32_t i = 0; i < d->nthreads; i++) {
        const struct trace_thread *th = &VEC(h->threads, struct trace_thread)[d->first_thread + i];
        put(w->b, ",{\"args\":{\"name\":");
        xp_json_escape(w->b, th->name);
        xp_buf_fmt(w->b, "},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u}", pid,
                   th->tid);
        xp_buf_fmt(w->b,
                   ",{\"args\":{\"sort_index\":%u},\"name\":\"thread_sort_index\",\"ph\":\"M\","
                   "\"pid\":%u,\"tid\":%u}",
                   th->tid, pid, th->tid);
        flush(w);
    }
}

/* --- events --- */

static const struct trace_moved *moved(const struct json_work *w, const struct trace_event *e)
{
    return e->moved ? &VEC(w->h->moved, struct trace_moved)[e->moved - 1] : NULL;
}

static int64_t shown_begin(const struct json_work *w, const struct trace_event *e)
{
    return e->moved ? moved(w, e)->begin_ps : e->begin_ps;
}

static struct derive_eye *eye_of(struct json_work *w, uint32_t line)
{
    if (!w->looked[line]) {
        derive_look(&w->eyes[line], w->h->d, &w->h->d->lines[line]);
        w->looked[line] = true;
    }
    return &w->eyes[line];
}

/* Names have room behind them, so that they can be copied in large pieces. */
static const uint8_t quotes[NAME_SLACK + 2] = "\"\"";
static const struct xp_span no_name = {quotes, 2};

static inline uint8_t *put_name(uint8_t *p, struct xp_span name)
{
    for (size_t i = 0; i < name.n; i += NAME_SLACK)
        memcpy(p + i, name.p + i, NAME_SLACK);
    return p + name.n;
}

static struct xp_span escape(struct json_work *w, struct xp_span name)
{
    struct xp_buf *b = &w->escaped;
    b->n = 0;
    xp_json_escape(b, name);
    uint8_t *p = b->failed ? NULL : xp_bump_alloc(&w->bump, b->n + NAME_SLACK, 1);
    if (!p)
        return no_name;
    memcpy(p, b->p, b->n);
    memset(p + b->n, 0, NAME_SLACK);
    return xp_span_of(p, b->n);
}

/* The event's name as JSON: kept, but for those called by a step (memory: until the answer ends).
 */
static struct json_name *name_of(struct json_work *w, struct derive_eye *eye,
                                 const struct derive_event *ev)
{
    const struct derive *d = w->h->d;
    const struct derive_line *l = eye->line;
    uint32_t k = l->own_names ? w->h->part->nplanes : l->plane;
    uint32_t n = l->own_names ? d->nnames : w->h->part->planes[l->plane].nevmeta;
    struct xp_span step = derive_step_name(eye, ev);
    w->other_name = (struct json_name){no_name, 0};
    if (step.n || ev->name >= n) {
        w->other_name.text = escape(w, step.n ? step : derive_event_name(eye, ev, NULL));
        return &w->other_name;
    }
    if (!w->cache[k] && !(w->cache[k] = xp_arena_zalloc(w->t->scratch, n * sizeof **w->cache)))
        return &w->other_name;
    struct json_name *name = &w->cache[k][ev->name];
    if (!name->text.n)
        name->text = escape(w, derive_event_name(eye, ev, NULL));
    return name;
}

/* group_id and serial, after what `comma` says. */
static uint8_t *put_ids(const struct json_work *w, uint8_t *p, const struct trace_event *e,
                        int64_t group, const char **comma)
{
    if (group != DERIVE_NO_GROUP) {
        p = trace_put_lit(p, "\"group_id\":");
        p = trace_put_i64(p, group);
        *comma = ",";
    }
    if (w->t->uid || (e->moved && !moved(w, e)->has_args)) {
        if (**comma)
            *p++ = ',';
        p = trace_put_lit(p, "\"uid\":");
        p = trace_put_u64(p, e->serial);
        *comma = ",";
    }
    return p;
}

static void write_frame(struct json_work *w, uint32_t frame)
{
    put(w->b, ",\"sf\":");
    if (!w->refs) {
        xp_buf_fmt(w->b, "%u", frame);
        return;
    }
    struct trace_ref *ref = vec_push(w->refs, sizeof *ref);
    if (ref)
        *ref = (struct trace_ref){w->b->n, frame, 0};
    else
        w->b->failed = true;
}

static void write_args(struct json_work *w, const struct trace_event *e, int64_t group)
{
    struct xp_buf *b = w->b;
    const char *comma = "";
    uint32_t frame = 0;
    if (group == DERIVE_NO_GROUP && !w->t->uid && !w->t->all_args)
        return;
    uint8_t *p = xp_buf_room(b, 128);
    if (!p)
        return;
    p = trace_put_lit(p, ",\"args\":{");
    p = put_ids(w, p, e, group, &comma);
    b->n = (size_t)(p - b->p);
    bool all = w->t->all_args && (!e->moved || moved(w, e)->has_args);
    for (size_t i = 0; all && i < w->args.n; i++) {
        const struct trace_arg *a = &VEC(w->args, struct trace_arg)[i];
        if (a->special || a->type == TRACE_ARG_BYTES)
            continue;
        if (trace_is_frame(a) && !frame) {
            frame = trace_frame_of(&w->frames, a);
            continue;
        }
        put(b, comma);
        xp_json_escape(b, a->name);
        xp_buf_byte(b, ':');
        put_value(b, a);
        comma = ",";
    }
    xp_buf_byte(b, '}');
    if (frame)
        write_frame(w, frame);
}

static uint8_t *put_flow(uint8_t *p, const struct derive_flow *f)
{
    const char *category = derive_category(f->category);
    p = trace_put_lit(p, ",\"bind_id\":");
    p = trace_put_u64(p, f->id);
    if (*category) {
        p = trace_put_lit(p, ",\"cat\":\"");
        size_t n = strlen(category);
        p = (uint8_t *)memcpy(p, category, n) + n;
        *p++ = '"';
    }
    if (f->dir & DERIVE_DIR_IN)
        p = trace_put_lit(p, ",\"flow_in\":true");
    if (f->dir & DERIVE_DIR_OUT)
        p = trace_put_lit(p, ",\"flow_out\":true");
    return p;
}

static void write_serial(struct json_work *w, const struct trace_event *e)
{
    if (e->serial) {
        put(w->b, ",\"z\":");
        xp_text_u64(w->b, e->serial);
    }
}

static const struct line_head *head_of(struct json_work *w, uint32_t line)
{
    struct line_head *head = &w->heads[line];
    if (!head->n) {
        uint8_t *p = trace_put_lit(head->text, "{\"pid\":");
        p = trace_put_u64(p, w->places[line].pid);
        p = trace_put_lit(p, ",\"tid\":");
        p = trace_put_u64(p, w->places[line].tid);
        p = trace_put_lit(p, ",\"name\":");
        head->n = (uint8_t)(p - head->text);
    }
    return head;
}

/* The event up to its arguments; at: where its parts begin. */
static uint8_t *put_complete(struct json_work *w, uint8_t *p, struct derive_eye *eye,
                             const struct trace_event *e, const struct derive_event *de,
                             struct xp_span name, const uint8_t *at[PARTS])
{
    const struct line_head *head = head_of(w, e->line);
    struct derive_flow flow;
    p = (uint8_t *)memcpy(p, head->text, LINE_HEAD_MAX) + head->n;
    at[PART_NAME] = p;
    p = put_name(p, name);
    at[PART_TS] = p;
    p = trace_put_lit(p, ",\"ts\":");
    p = trace_put_us(p, shown_begin(w, e));
    at[PART_DUR] = p;
    p = trace_put_lit(p, ",\"dur\":");
    int64_t dur = e->end_ps - e->begin_ps;
    p = trace_put_us(p, dur > 0 ? dur : 1);
    at[PART_FLOW] = p;
    if (!e->no_flow && derive_flow(eye, de, &flow))
        p = put_flow(p, &flow);
    at[PART_PH] = p;
    return trace_put_lit(p, ",\"ph\":\"X\"");
}

static void write_complete(struct json_work *w, struct derive_eye *eye, const struct trace_event *e,
                           const struct derive_event *de, int64_t group)
{
    struct xp_span name = name_of(w, eye, de)->text;
    const uint8_t *at[PARTS];
    uint8_t *p = xp_buf_room(w->b, name.n + EVENT_ROOM);
    if (!p)
        return;
    w->b->n = (size_t)(put_complete(w, p, eye, e, de, name, at) - w->b->p);
    write_args(w, e, group);
    write_serial(w, e);
    xp_buf_byte(w->b, '}');
}

/* The group as text is made when it changes, which is seldom. */
static void set_group(struct json_work *w, int64_t group)
{
    uint8_t *p = w->group_text;
    if (group != DERIVE_NO_GROUP) {
        p = trace_put_lit(p, "\"group_id\":");
        p = trace_put_i64(p, group);
        *p++ = ',';
    }
    w->group_n = (uint8_t)(p - w->group_text);
    w->like_group = group;
    w->grouped = true;
}

/* The end of an event that shows its group and serial only. */
static uint8_t *put_tail(const struct json_work *w, uint8_t *p, const struct trace_event *e,
                         const uint8_t *at[PARTS])
{
    p = trace_put_lit(p, ",\"args\":{");
    p = (uint8_t *)memcpy(p, w->group_text, GROUP_ROOM) + w->group_n;
    at[PART_UID] = p;
    p = trace_put_lit(p, "\"uid\":");
    p = trace_put_small(p, e->serial);
    at[PART_Z] = p;
    *p++ = '}';
    if (e->serial) {
        p = trace_put_lit(p, ",\"z\":");
        p = trace_put_small(p, e->serial);
    }
    return p;
}

/* Where a name like this one stands: the same, then it is known, or one that begins as it does. */
static uint64_t like_name(struct json_work *w, struct json_name *name, uint64_t place, bool *known)
{
    uint64_t prefix = 0;
    memcpy(&prefix, name->text.p, name->text.n < 8 ? name->text.n : 8);
    uint64_t *slot = &w->prefixes[xp_hash_u64(prefix) % PREFIXES];
    *known = name->place && place - name->place < XP_PEN_REACH;
    uint64_t like = *known ? name->place : *slot;
    name->place = *slot = place;
    return like;
}

/* What of an event is like others, for the pen. What follows from its line, name and group need not
 * be compared. */
static size_t pen_fields(struct json_work *w, const struct trace_event *e, bool same_group,
                         struct json_name *name, const uint8_t *text, const uint8_t *at[PARTS],
                         struct xp_pen_field f[PARTS])
{
    uint64_t place = xp_pen_place(w->pen);
    uint32_t off[PARTS], lead = (uint32_t)w->unclosed + w->comma;
    bool known, same_line = e->line == w->like_line && lead == w->like_lead;
    size_t n = 0;
    for (int i = 0; i < PARTS; i++)
        off[i] = (uint32_t)(at[i] - text);
    uint64_t like = like_name(w, name, place + off[PART_NAME], &known);
    f[n++] = (struct xp_pen_field){0, w->like[PART_HEAD], same_line ? off[PART_NAME] : 0};
    f[n++] =
        (struct xp_pen_field){off[PART_NAME], like, known ? (uint32_t)(name->text.n + TS_KEY) : 0};
    f[n++] = (struct xp_pen_field){off[PART_TS], w->like[PART_TS],
                                   !known && w->like[PART_TS] ? TS_KEY : 0};
    f[n++] =
        (struct xp_pen_field){off[PART_DUR], w->like[PART_DUR], w->like[PART_DUR] ? DUR_KEY : 0};
    if (off[PART_PH] > off[PART_FLOW]) {
        f[n++] = (struct xp_pen_field){off[PART_FLOW], w->like[PART_FLOW], 0};
        w->like[PART_FLOW] = place + off[PART_FLOW];
    }
    f[n++] = (struct xp_pen_field){off[PART_PH], w->like[PART_PH],
                                   same_group ? off[PART_UID] - off[PART_PH] + UID_KEY : 0};
    if (!same_group)
        f[n++] = (struct xp_pen_field){off[PART_UID], w->like[PART_UID], 0};
    f[n++] = (struct xp_pen_field){off[PART_Z], w->like[PART_Z], 0};
    for (int i = 0; i < PARTS; i++)
        if (i != PART_FLOW)
            w->like[i] = place + off[i];
    w->like_line = e->line;
    w->like_lead = lead;
    return n;
}

/* The same, by the pen, with what is between it and the event before. The brace that ends it is
 * left to the next, for whose begin it then is: matches go on over it. */
static void pen_complete(struct json_work *w, struct derive_eye *eye, const struct trace_event *e,
                         const struct derive_event *de, int64_t group, struct json_name *name)
{
    const uint8_t *at[PARTS];
    struct xp_pen_field f[PARTS];
    uint8_t *text = xp_pen_room(w->pen, name->text.n + 2 * EVENT_ROOM), *p = text;
    at[PART_HEAD] = text;
    if (w->unclosed)
        *p++ = '}';
    if (w->comma)
        *p++ = ',';
    p = put_complete(w, p, eye, e, de, name->text, at);
    bool same_group = w->grouped && group == w->like_group;
    if (!same_group)
        set_group(w, group);
    p = put_tail(w, p, e, at);
    size_t n = pen_fields(w, e, same_group, name, text, at, f);
    xp_pen_record(w->pen, (size_t)(p - text), f, n);
    w->comma = w->unclosed = true;
}

/* What an end of an asynchronous event is about. */
struct async_end {
    uint64_t id;
    const char *category, *ph;
    struct xp_span name;
    int64_t begin_ps, group;
    bool args; /* all of the event's, and not its group alone */
};

static uint8_t *put_text(uint8_t *p, const char *s)
{
    size_t n = strlen(s);
    return (uint8_t *)memcpy(p, s, n) + n;
}

static void write_async_end(struct json_work *w, const struct trace_event *e,
                            const struct async_end *x)
{
    struct xp_buf *b = w->b;
    uint8_t *p = xp_buf_room(b, x->name.n + EVENT_ROOM);
    if (!p)
        return;
    p = trace_put_lit(p, "{\"pid\":");
    p = trace_put_u64(p, w->places[e->line].pid);
    p = trace_put_lit(p, ",\"name\":");
    p = put_name(p, x->name);
    p = trace_put_lit(p, ",\"ts\":");
    p = trace_put_us(p, x->begin_ps);
    p = trace_put_lit(p, ",\"id\":");
    p = trace_put_u64(p, x->id);
    p = trace_put_lit(p, ",\"cat\":\"");
    p = put_text(p, x->category);
    *p++ = '"';
    if (*x->ph) {
        p = trace_put_lit(p, ",\"ph\":\"");
        p = put_text(p, x->ph);
        *p++ = '"';
    }
    if (!x->args && x->group != DERIVE_NO_GROUP) {
        p = trace_put_lit(p, ",\"args\":{\"group_id\":");
        p = trace_put_i64(p, x->group);
        *p++ = '}';
    }
    b->n = (size_t)(p - b->p);
    if (x->args)
        write_args(w, e, x->group);
    write_serial(w, e);
    xp_buf_byte(b, '}');
}

static void write_async(struct json_work *w, struct derive_eye *eye, const struct trace_event *e,
                        const struct derive_event *de, int64_t group)
{
    static const char *const ph[] = {"", "e", "b", "b"};
    struct derive_flow f;
    if (!derive_flow(eye, de, &f))
        return;
    struct async_end end = {.id = f.id,
                            .category = derive_category(f.category),
                            .ph = ph[f.dir & 3],
                            .name = name_of(w, eye, de)->text,
                            .begin_ps = shown_begin(w, e),
                            .group = group,
                            .args = true};
    write_async_end(w, e, &end);
    if (f.dir != DERIVE_DIR_BOTH)
        return;
    xp_buf_byte(w->b, ',');
    end.ph = "e";
    end.args = false;
    end.begin_ps += e->end_ps - e->begin_ps;
    write_async_end(w, e, &end);
}

static enum xp_status load_args(struct json_work *w, struct derive_eye *eye,
                                const struct trace_event *e)
{
    if (w->nargs++ % ARGS_BATCH == 0) {
        xp_arena_free(w->args_memory);
        w->args_memory = xp_arena_new(NULL);
        if (!w->args_memory)
            return trace_busy(w->t->err);
    }
    return trace_args(w->h, eye, e, w->args_memory, &w->args, w->t->err);
}

static enum xp_status write_counter(struct json_work *w, const struct trace_event *e, bool first)
{
    struct xp_buf *b = w->b;
    struct derive_eye *eye = eye_of(w, e->line);
    struct derive_event de = trace_derive_event(e);
    XP_TRY(load_args(w, eye, e));
    if (first) {
        xp_buf_fmt(b, "{\"pid\":%u,\"name\":", w->places[e->line].pid);
        xp_buf_span(b, name_of(w, eye, &de)->text);
        put(b, ",\"ph\":\"C\"");
    }
    const char *comma = "";
    bool any = false;
    for (size_t i = 0; i < w->args.n; i++) {
        const struct trace_arg *a = &VEC(w->args, struct trace_arg)[i];
        if (a->special || a->type == TRACE_ARG_BYTES)
            continue;
        if (first && !any) {
            put(b, ",\"event_stats\":");
            xp_json_escape(b, a->name);
        }
        if (!any) {
            put(b, first ? ",\"entries\":[[" : ",[");
            xp_text_us_from_ps(b, e->begin_ps);
            comma = ",";
        }
        put(b, comma);
        put_value(b, a);
        any = true;
    }
    if (first && !any)
        put(b, ",\"entries\":[");
    if (any)
        xp_buf_byte(b, ']');
    w->ncounters++;
    return XP_OK;
}

/* To the pen, what was not written by it. */
static void hand_over(struct json_work *w)
{
    if (!w->pen)
        return;
    uint64_t place = xp_pen_place(w->pen);
    xp_pen_text(w->pen, xp_buf_all(w->b), w->like_other);
    w->like_other = place;
    w->b->n = 0;
}

static bool is_counter(const struct json_work *w, const struct trace_event *e)
{
    return e->track && VEC(w->h->tracks, struct trace_track)[e->track - 1].kind == TRACE_COUNTER;
}

static enum xp_status write_event(struct json_work *w, const struct trace_event *e)
{
    struct derive_eye *eye = eye_of(w, e->line);
    struct derive_event de = trace_derive_event(e);
    int64_t group = derive_group(eye, &de);
    const struct trace_event *from = e->moved && moved(w, e)->has_args ? &moved(w, e)->args : e;
    if (w->t->all_args)
        XP_TRY(load_args(w, eye_of(w, from->line), from));
    if (w->pen && !e->track && !e->moved) {
        struct json_name *name = name_of(w, eye, &de);
        if (name->text.n <= PEN_NAME_MAX) {
            pen_complete(w, eye, e, &de, group, name);
            return XP_OK;
        }
    }
    separate(w);
    if (e->track)
        write_async(w, eye, e, &de, group);
    else
        write_complete(w, eye, e, &de, group);
    hand_over(w);
    flush(w);
    return XP_OK;
}

static enum xp_status write_counters(struct json_work *w)
{
    struct trace_host *h = w->h;
    uint32_t *at = trace_order(h, w->places, w->t->scratch);
    uint32_t track = 0;
    bool first = true;
    if (!at)
        return trace_busy(w->t->err);
    for (size_t i = 0; i < h->events.n; i++) {
        const struct trace_event *e = &VEC(h->events, struct trace_event)[at[i]];
        if (!is_counter(w, e))
            continue;
        first = e->track != track;
        if (first) {
            if (track)
                put(w->b, "]}");
            separate(w);
        }
        track = e->track;
        XP_TRY(write_counter(w, e, first));
        hand_over(w);
        flush(w);
    }
    if (track)
        put(w->b, "]}");
    hand_over(w); /* another host's events may go to the pen at once */
    return XP_OK;
}

static enum xp_status host_events(struct json_work *w, struct trace_host *h)
{
    struct xp_arena *a = w->t->scratch;
    w->h = h;
    w->places = trace_places(h, a);
    w->eyes = xp_arena_alloc(a, (h->d->nlines + 1) * sizeof *w->eyes);
    w->looked = xp_arena_zalloc(a, (h->d->nlines + 1) * sizeof *w->looked);
    w->cache = xp_arena_zalloc(a, (h->part->nplanes + 1) * sizeof *w->cache);
    w->heads = xp_arena_zalloc(a, (h->d->nlines + 1) * sizeof *w->heads);
    if (!w->places || !w->eyes || !w->looked || !w->cache || !w->heads)
        return trace_busy(w->t->err);
    if (w->t->uid && h->events.n >= PEN_EVENTS && !w->pen)
        w->pen = xp_pen_new(out_gzip(w->t->out));
    w->like_line = UINT32_MAX; /* lines of another host have other texts */
    bool counters = false;
    for (size_t i = 0; i < h->events.n; i++) {
        const struct trace_event *e = &VEC(h->events, struct trace_event)[i];
        if (is_counter(w, e))
            counters = true;
        else
            XP_TRY(write_event(w, e));
        if ((i & 1023) == 0 && out_cancelled(w->t->out))
            return xp_fail(w->t->err, XP_CANCELLED, 0, "nobody waits for the trace any more");
    }
    return counters ? write_counters(w) : XP_OK;
}

/* Of a window all that the host's events may refer to. */
static enum xp_status find_frames_of_host(struct json_work *w, const struct trace_host *h)
{
    const struct trace *t = w->t;
    if (!t->uid && t->req.event_name.n)
        return XP_OK;
    return trace_frames_add_host(&w->frames, h, t->err);
}

/* With all arguments, the frames are known only after the events were looked at. */
static enum xp_status find_frames_of_events(struct json_work *w, struct trace_host *h)
{
    struct trace *t = w->t;
    w->h = h;
    for (size_t k = 0; t->all_args && k < h->events.n; k++) {
        const struct trace_event *e = &VEC(h->events, struct trace_event)[k];
        struct derive_eye eye;
        derive_look(&eye, h->d, &h->d->lines[e->line]);
        XP_TRY(load_args(w, &eye, e));
        for (size_t n = 0; n < w->args.n; n++)
            if (trace_is_frame(&VEC(w->args, struct trace_arg)[n]) &&
                trace_frame_of(&w->frames, &VEC(w->args, struct trace_arg)[n]) == UINT32_MAX)
                return trace_busy(t->err);
    }
    return XP_OK;
}

static void end_pen(struct json_work *w)
{
    if (w->unclosed)
        xp_buf_byte(w->b, '}');
    w->unclosed = false;
    if (w->pen)
        hand_over(w);
    xp_pen_free(w->pen);
    w->pen = NULL;
}

static void write_devices(struct json_work *w, const struct trace_host *h)
{
    for (size_t k = 0; k < h->devices.n; k++)
        write_device(w, h, &VEC(h->devices, struct trace_device)[k]);
}

static enum xp_status write_all(struct json_work *w)
{
    struct trace *t = w->t;
    struct trace_sum sum = {0};
    XP_TRY(trace_frames_init(&w->frames, t->scratch, t->err));
    for (size_t i = 0; i < t->nhosts; i++)
        XP_TRY(find_frames_of_host(w, &t->hosts[i]));
    for (size_t i = 0; i < t->nhosts; i++)
        XP_TRY(find_frames_of_events(w, &t->hosts[i]));
    for (size_t i = 0; i < t->nhosts; i++)
        trace_sum_add(&sum, trace_sum_of(&t->hosts[i]));
    trace_json_head(w->b, &sum, t->req.full_dma);
    trace_json_frames(t->out, &w->frames.pool);
    for (size_t i = 0; i < t->nhosts; i++)
        write_devices(w, &t->hosts[i]);
    for (size_t i = 0; i < t->nhosts; i++)
        XP_TRY(host_events(w, &t->hosts[i]));
    end_pen(w);
    trace_json_end(w->b, w->ncounters);
    return XP_OK;
}

static void work_fini(struct json_work *w)
{
    end_pen(w);
    xp_arena_free(w->args_memory);
    xp_buf_fini(&w->escaped);
    vec_free(&w->args);
}

enum xp_status trace_write_json(struct trace *t)
{
    struct json_work w = {.t = t, .b = &t->out->text};
    xp_bump_init(&w.bump, t->scratch);
    xp_buf_init(&w.escaped, OUT_MAX);
    enum xp_status st = write_all(&w);
    work_fini(&w);
    return st;
}

static enum xp_status write_piece(struct json_work *w, struct trace_piece *p)
{
    struct trace *t = w->t;
    struct trace_host *h = &t->hosts[0];
    XP_TRY(trace_frames_init(&w->frames, t->scratch, t->err));
    XP_TRY(find_frames_of_host(w, h));
    p->nfirst = w->frames.pool.n;
    XP_TRY(find_frames_of_events(w, h));
    w->b = &p->devices;
    write_devices(w, h);
    w->b = &t->out->text;
    w->comma = false;
    XP_TRY(host_events(w, h));
    end_pen(w);
    p->strings = w->frames.pool;
    p->ncounters = w->ncounters;
    return XP_OK;
}

enum xp_status trace_json_piece(struct trace *t, struct trace_piece *p)
{
    struct json_work w = {.t = t, .b = &t->out->text, .refs = t->all_args ? &p->refs : NULL};
    xp_bump_init(&w.bump, t->scratch);
    xp_buf_init(&w.escaped, OUT_MAX);
    enum xp_status st = write_piece(&w, p);
    work_fini(&w);
    return st;
}
