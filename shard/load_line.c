#include <stdio.h>

#include "lib/base/utf8.h"
#include "shard/derive/device_time.h"
#include "shard/load_int.h"

/* --- order ---
 *
 * Writers sort a line's events by (begin, longer first), with few exceptions. A window of the
 * last events puts small exceptions right; an event that comes later than the window reaches turns
 * the line to sorting: what the builder has becomes sorted runs, what follows is sorted by the
 * chunk and packed as further runs, and at the line's end all runs are merged into a new
 * builder. Memory is that of the packed line twice, never its events unpacked. */

/* Order of (begin, longer first); equal ones stay as they came. */
static inline bool before(const struct lane_raw *a, const struct lane_raw *b)
{
    return a->begin_ps < b->begin_ps || (a->begin_ps == b->begin_ps && a->end_ps > b->end_ps);
}

static void insertion_sort(struct lane_raw *ev, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct lane_raw x = ev[i];
        uint32_t k = i;
        for (; k && before(&x, &ev[k - 1]); k--)
            ev[k] = ev[k - 1];
        ev[k] = x;
    }
}

static void merge(const struct lane_raw *a, uint32_t na, const struct lane_raw *b, uint32_t nb,
                  struct lane_raw *to)
{
    while (na && nb) {
        if (before(b, a))
            *to++ = *b++, nb--;
        else
            *to++ = *a++, na--;
    }
    memcpy(to, a, na * sizeof *a);
    memcpy(to + na, b, nb * sizeof *b);
}

/* Stable; tmp has room for n. The result is in ev or in tmp, which is returned. */
static struct lane_raw *sort(struct lane_raw *ev, struct lane_raw *tmp, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16)
        insertion_sort(ev + i, n - i < 16 ? n - i : 16);
    for (uint32_t width = 16; width < n; width *= 2) {
        for (uint32_t i = 0; i < n; i += 2 * width) {
            uint32_t na = n - i < width ? n - i : width;
            uint32_t nb = n - i - na < width ? n - i - na : width;
            merge(ev + i, na, ev + i + na, nb, tmp + i);
        }
        struct lane_raw *swap = ev;
        ev = tmp;
        tmp = swap;
    }
    return ev;
}

static bool add_run(struct line_job *j, struct lane *lane)
{
    struct part_line *runs = &j->runs;
    if (!lane)
        return false;
    if (runs->nlanes == j->runs_cap) {
        uint32_t cap = j->runs_cap ? j->runs_cap * 2 : 64;
        struct lane **lanes = xp_arena_alloc(j->sort_arena, cap * sizeof(struct lane *));
        if (!lanes)
            return false;
        if (runs->nlanes)
            memcpy(lanes, runs->lanes, runs->nlanes * sizeof *lanes);
        runs->lanes = lanes;
        j->runs_cap = cap;
    }
    runs->lanes[runs->nlanes++] = lane;
    return true;
}

static bool flush_chunk(struct line_job *j)
{
    if (!j->nchunk)
        return true;
    const struct lane_raw *ev = sort(j->chunk, j->chunk2, j->nchunk);
    for (uint32_t i = 0; i < j->nchunk; i++)
        if (!lane_pen_add(j->pen, &ev[i], j->sort_arena, &j->sort_bump))
            return false;
    j->nchunk = 0;
    return add_run(j, lane_pen_end(j->pen, j->sort_arena, &j->sort_bump));
}

/* The line turns to sorting. */
static bool go_far(struct hand *h)
{
    struct line_job *j = &h->line;
    struct part_line done = {0};
    j->sort_arena = xp_arena_new(h->load->budget);
    if (!j->sort_arena)
        return false;
    xp_bump_init(&j->sort_bump, j->sort_arena);
    j->chunk = xp_arena_alloc(j->sort_arena, LINE_CHUNK * sizeof *j->chunk);
    j->chunk2 = xp_arena_alloc(j->sort_arena, LINE_CHUNK * sizeof *j->chunk2);
    j->pen = xp_arena_zalloc(j->sort_arena, sizeof *j->pen);
    if (!j->chunk || !j->chunk2 || !j->pen)
        return false;
    lane_pen_reset(j->pen);
    j->far = true;
    if (line_builder_end(h->builder, &done) != XP_OK)
        return false;
    for (uint32_t i = 0; i < done.nlanes; i++)
        if (!add_run(j, done.lanes[i]))
            return false;
    return true;
}

static bool add_far(struct line_job *j, const struct lane_raw *ev, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (j->nchunk == LINE_CHUNK && !flush_chunk(j))
            return false;
        j->chunk[j->nchunk++] = ev[i];
    }
    return true;
}

/* Hands the first n events of the window on. */
static bool emit(struct hand *h, uint32_t n)
{
    struct line_job *j = &h->line;
    if (!j->far && n && before(&j->win[0], &j->last) && !go_far(h))
        return false;
    if (j->far) {
        if (!add_far(j, j->win, n))
            return false;
    } else if (n) {
        j->last = j->win[n - 1];
        if (line_builder_add_many(h->builder, j->win, n) != XP_OK)
            return false;
    }
    j->nwin -= n;
    memmove(j->win, j->win + n, j->nwin * sizeof *j->win);
    return true;
}

/* --- events --- */

static int64_t clamp(struct line_job *j, int64_t t)
{
    if (t > LANE_TIME_MAX || t < -LANE_TIME_MAX) {
        j->odd++;
        return t > 0 ? LANE_TIME_MAX : -LANE_TIME_MAX;
    }
    return t;
}

/* Times that are negative or too large: kept as near as can be, and counted once. */
static void odd_times(struct line_job *j, int64_t offset, int64_t duration, struct lane_raw *raw)
{
    uint32_t was = j->odd;
    if (offset < 0 || duration < 0)
        j->odd++;
    raw->begin_ps = clamp(j, offset);
    raw->end_ps = raw->begin_ps;
    int64_t end;
    if (duration > 0 && __builtin_add_overflow(raw->begin_ps, duration, &end))
        end = INT64_MAX;
    if (duration > 0)
        raw->end_ps = clamp(j, end);
    if (j->odd > was)
        j->odd = was + 1;
}

static uint32_t stray_name(struct line_job *j, int64_t id)
{
    if (j->stray == IDMAP_NONE || j->stray_id != id) {
        j->stray = plane_job_stray(j->pj, id);
        j->stray_id = id;
    }
    return j->stray;
}

static inline uint64_t mix_word(uint64_t mix, uint64_t word)
{
    mix = (mix ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return mix ^ mix >> 32;
}

static inline uint64_t text_mix(struct xp_span s)
{
    uint64_t mix = s.n, word = 0;
    if (s.n < 8) {
        for (size_t i = 0; i < s.n; i++)
            word = word << 8 | s.p[i];
        return mix_word(mix, word);
    }
    for (size_t i = 0; i < s.n - 8; i += 8) {
        memcpy(&word, s.p + i, 8);
        mix = mix_word(mix, word);
    }
    memcpy(&word, s.p + s.n - 8, 8);
    return mix_word(mix, word);
}

/* Interning takes a lock and a strong hash; the few strings that an event's stats repeat are found
 * here, if they are UTF-8: then that need not be looked at again. The bytes in the pool outlive the
 * load. */
static uint32_t text_id(struct hand *h, struct xp_span s, uint64_t at)
{
    struct known_text *k = &h->texts[text_mix(s) % LINE_TEXTS];
    if (k->text.p && xp_span_eq(k->text, s))
        return k->id;
    uint32_t id = part_intern(h->load->part, s);
    if (!xp_utf8_valid(s))
        load_check_utf8(h->load, s, at);
    else if (id != XP_STRPOOL_FULL)
        *k = (struct known_text){part_str(h->load->part, id), id};
    return id;
}

static bool side_value(struct hand *h, const struct xspace_stat *s, uint64_t at,
                       struct side_stat *out)
{
    struct plane_job *pj = h->line.pj;
    out->num = s->num;
    switch (s->type) {
    case XSPACE_U64:
        out->type = SIDE_U64;
        return true;
    case XSPACE_I64:
        out->type = SIDE_I64;
        return true;
    case XSPACE_DOUBLE:
        out->type = SIDE_DOUBLE;
        return true;
    case XSPACE_STR:
        out->type = SIDE_STR;
        out->num = s->bytes.n ? text_id(h, s->bytes, at) : 0;
        return true;
    case XSPACE_REF: {
        uint32_t i = idmap_get(&pj->stats, (int64_t)s->num);
        out->type = SIDE_STR;
        out->num = i == IDMAP_NONE ? 0 : pj->statmeta[i].name;
        return true;
    }
    default:
        return false;
    }
}

/* --- time on the device --- */

static inline bool device_keep(struct hand *h, const struct xspace_event *ev,
                               const struct device_time *dev)
{
    uint64_t shift = h->line.own_shift, longer = 0;
    if (dev->has == 3) {
        shift = dev->value[STAT_DEVICE_OFFSET_PS] - (uint64_t)ev->offset_ps;
        longer = dev->value[STAT_DEVICE_DURATION_PS] - (uint64_t)ev->duration_ps;
    }
    return device_pen_add(&h->device, &h->out, shift, longer);
}

/* A line whose name comes after its events keeps them. */
static bool device_wanted(struct hand *h)
{
    struct xspace_line known;
    return h->pj->device_times && xspace_decoder_line(h->dec, &known) &&
           (!known.name.n || device_time_wanted(known.name));
}

static void bad_stat(struct hand *h, const struct xspace_event *ev, const uint8_t *p)
{
    struct xp_error err;
    xp_fail(&err, XP_CORRUPT, ev->at + (uint64_t)(p - ev->body.p),
            "the fields of an event's stat were expected here");
    load_damage(h->load, &err);
}

/* Stats that say nothing are not kept. */
static bool worth_keeping(const struct side_stat *s)
{
    return s->kind != STAT_TIME_SCALE || s->type != SIDE_DOUBLE || xp_pb_double(s->num) != 1.0;
}

/* --- what allocators tell --- */

static void take_number(struct memory_row *row, int stat, int64_t number)
{
    if (stat == MEMORY_BYTES_RESERVED)
        row->reserved = number;
    else if (stat == MEMORY_BYTES_ALLOCATED)
        row->heap = number;
    else if (stat == MEMORY_ALLOCATION_BYTES)
        row->allocated = number;
    else
        row->address = (uint64_t)number;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`head` is read as it lies in the file");

/* Past stats in the shape that writers give them: those that are not kept, and numbers.
 *
 *     22 len 08 id  20 varint ...    stats {metadata_id, int64_value}: `head`, then the value at q
 *     22 len 08 id  ...              of any type, when it is not kept
 *
 * `head` is the first four bytes, little-endian: 22 is in its lowest byte, id in its highest. The
 * mask demands the tags 22 (field 4, a message) and 08 (field 1, a varint), and a len of one byte;
 * an id of two bytes, or any other order of fields, is left to xspace_stats_next. */
static const uint8_t *take_common(const struct xspace_event *ev, const uint8_t *p,
                                  const uint8_t *kinds, struct memory_row *row)
{
    const uint8_t *begin = ev->body.p, *end = begin + ev->body.n;
    while (end - p >= 6) {
        uint32_t head;
        uint64_t value;
        memcpy(&head, p, sizeof head);
        uint32_t id = head >> 24;
        const uint8_t *q = p + 4, *after = p + 2 + (head >> 8 & 0x7f);
        if ((head & 0x00ff80ff) != 0x00080022 || id >= 0x80 || after > end || after < p + 6)
            break;
        if (kinds[id] >= KIND_MEMORY + MEMORY_BYTES_RESERVED && kinds[id] != STAT_NOT_KEPT) {
            if (*q != 0x20 || !varint_before(begin, after, (size_t)(after - q - 1), &value))
                break;
            take_number(row, kinds[id] - KIND_MEMORY, (int64_t)value);
        } else if (kinds[id] != STAT_NOT_KEPT) {
            break;
        }
        p = after;
    }
    return p;
}

/* False: there is no room for the name. */
static bool take_memory(struct hand *h, const struct xspace_stat *s, int stat, uint64_t at,
                        struct memory_row *row)
{
    int64_t number = s->type == XSPACE_I64 ? (int64_t)s->num : 0;
    struct side_stat text = {.num = 0};
    char digits[24];

    switch (stat) {
    case MEMORY_ALLOCATOR_NAME:
        if (s->type == XSPACE_STR || s->type == XSPACE_REF)
            side_value(h, s, at, &text);
        row->allocator = (uint32_t)text.num;
        return text.num != XP_STRPOOL_FULL;
    case MEMORY_INDEX_ON_HOST:
    case MEMORY_DEVICE_ORDINAL:
        snprintf(digits, sizeof digits, "%lld", (long long)number);
        row->allocator = text_id(h, xp_span_str(digits), at);
        return row->allocator != XP_STRPOOL_FULL;
    default:
        take_number(row, stat, number);
        return true;
    }
}

/* Of an allocator's event: all that is kept, in one pass. Others have no need of a second stream.
 */
static bool keep_memory(struct hand *h, const struct xspace_event *ev, const struct lane_raw *raw,
                        enum memory_act act)
{
    const struct plane_job *pj = h->line.pj;
    const uint8_t *from = ev->body.p + ev->stats, *end = ev->body.p + ev->body.n;
    struct xspace_stats it = xspace_stats_open(xp_span_of(from, (size_t)(end - from)), 4);
    struct memory_row row = {.at = ev->at,
                             .begin_ps = raw->begin_ps,
                             .duration_ps = raw->end_ps - raw->begin_ps,
                             .frees = act == MEMORY_FREES};
    struct side_stat kept[SIDE_MAX];
    struct device_time dev = {.has = 0};
    struct xspace_stat s;
    int n = 0;
    for (;;) {
        it.p = take_common(ev, it.p, pj->kinds, &row);
        if (!xspace_stats_next(&it, &s))
            break;
        uint8_t kind = plane_job_kind(pj, h->load->part, s.metadata_id);
        bool ordinal = kind == STAT_DEVICE_ORDINAL, memory = kind >= KIND_MEMORY;
        if (kind <= STAT_DEVICE_DURATION_PS && (s.type == XSPACE_U64 || s.type == XSPACE_I64))
            device_note(&dev, kind, s.num);
        if (kind == STAT_NOT_KEPT || kind <= STAT_DEVICE_DURATION_PS)
            continue;
        if ((ordinal || memory) &&
            !take_memory(h, &s, ordinal ? MEMORY_DEVICE_ORDINAL : kind - KIND_MEMORY, ev->at, &row))
            return false;
        if (memory || n == SIDE_MAX || !side_value(h, &s, ev->at, &kept[n]))
            continue;
        if (kept[n].type == SIDE_STR && kept[n].num == XP_STRPOOL_FULL)
            return false;
        kept[n].kind = kind;
        n += worth_keeping(&kept[n]);
    }
    if (it.bad)
        bad_stat(h, ev, it.p);
    return (!n || side_pen_add(&h->side, ev->at, kept, n, h->scratch, &h->out)) &&
           memory_pen_add(&h->memory, &row, &h->out) &&
           (!h->line.device || device_keep(h, ev, &dev));
}

/* Keeps what is to be kept of the event's stats from p on. */
static bool keep_stats(struct hand *h, const struct xspace_event *ev, const uint8_t *p,
                       struct device_time *dev)
{
    const uint8_t *end = ev->body.p + ev->body.n;
    const struct plane_job *pj = h->line.pj;
    struct xspace_stats it = xspace_stats_open(xp_span_of(p, (size_t)(end - p)), 4);
    struct side_stat kept[SIDE_MAX];
    struct xspace_stat s;
    int n = 0;
    while (it.p < end && xspace_stats_next(&it, &s)) {
        uint8_t kind = plane_job_kind(pj, h->load->part, s.metadata_id);
        if (kind <= STAT_DEVICE_DURATION_PS) {
            if (s.type == XSPACE_U64 || s.type == XSPACE_I64)
                device_note(dev, kind, s.num);
        } else if (kind < KIND_MEMORY && n < SIDE_MAX && side_value(h, &s, ev->at, &kept[n])) {
            if (kept[n].type == SIDE_STR && kept[n].num == XP_STRPOOL_FULL)
                return false;
            kept[n].kind = kind;
            n += worth_keeping(&kept[n]);
        }
        it.p = skip_common(ev, it.p, pj->kinds, dev);
    }
    if (it.bad)
        bad_stat(h, ev, it.p);
    return !n || side_pen_add(&h->side, ev->at, kept, n, h->scratch, &h->out);
}

static inline bool look_at_stats(struct hand *h, const struct xspace_event *ev,
                                 const struct plane_job *pj)
{
    const uint8_t *end = ev->body.p + ev->body.n;
    struct device_time dev;
    if (!h->line.device && ev->stats == ev->body.n) /* most, when times on the device stay there */
        return true;
    if (h->line.device && device_pair(ev, pj->kinds, &dev))
        return device_keep(h, ev, &dev);
    dev.has = 0;
    const uint8_t *p = skip_common(ev, ev->body.p + ev->stats, pj->kinds, &dev);
    if (p != end && !keep_stats(h, ev, p, &dev))
        return false;
    return !h->line.device || device_keep(h, ev, &dev);
}

static inline bool look_at(struct hand *h, const struct xspace_event *ev,
                           const struct lane_raw *raw, const struct plane_job *pj)
{
    if (pj->acts && raw->name < pj->nevmeta && pj->acts[raw->name])
        return keep_memory(h, ev, raw, pj->acts[raw->name]);
    return look_at_stats(h, ev, pj);
}

static enum xp_status on_events(void *ctx, const struct xspace_event *ev, size_t n)
{
    struct hand *h = ctx;
    struct line_job *j = &h->line;
    const struct plane_job *pj = j->pj;
    struct lane_raw *to = j->win + j->nwin;
    struct lane_raw prev = j->nwin ? to[-1] : j->last;
    bool ordered = true;
    if (!j->nevents)
        j->device = device_wanted(h);
    for (size_t i = 0; i < n; i++, to++) {
        uint64_t offset = (uint64_t)ev[i].offset_ps, duration = (uint64_t)ev[i].duration_ps;
        to->begin_ps = (int64_t)offset;
        to->end_ps = (int64_t)(offset + duration);
        if ((offset | duration) > LANE_TIME_MAX / 2)
            odd_times(j, ev[i].offset_ps, ev[i].duration_ps, to);
        to->at = ev[i].at;
        to->name = idmap_get(&pj->events, ev[i].metadata_id);
        if (to->name == IDMAP_NONE && (to->name = stray_name(j, ev[i].metadata_id)) == IDMAP_NONE)
            return XP_BUSY;
        if (pj->keeps && !look_at(h, &ev[i], to, pj))
            return XP_BUSY;
        ordered &= !before(to, &prev);
        prev = *to;
    }
    j->nwin += (uint32_t)n;
    j->nevents += n;
    if (!ordered) {
        j->sorted = false;
        if (!j->far)
            insertion_sort(j->win, j->nwin);
    }
    uint32_t keep = j->far ? 0 : LINE_WINDOW;
    return j->nwin <= keep || emit(h, j->nwin - keep) ? XP_OK : XP_BUSY;
}

/* --- a line's begin and end --- */

static enum xp_status on_line_end(void *ctx, const struct xspace_line *l)
{
    struct hand *h = ctx;
    struct part_line *line = h->line.line;
    line->id = l->id;
    line->display_id = l->display_id;
    /* The index stops looking at the first event; a timestamp may come after it. */
    if (line->timestamp_ns != l->timestamp_ns)
        line->base_ps = load_base_of(h->load, l->timestamp_ns);
    line->timestamp_ns = l->timestamp_ns;
    line->duration_ps = l->duration_ps;
    load_check_utf8(h->load, l->name, l->at);
    load_check_utf8(h->load, l->display_name, l->at);
    line->name = l->name.n ? part_intern(h->load->part, l->name) : 0;
    line->display_name = l->display_name.n ? part_intern(h->load->part, l->display_name) : 0;
    return line->name == XP_STRPOOL_FULL || line->display_name == XP_STRPOOL_FULL ? XP_BUSY : XP_OK;
}

_Static_assert(STAT_NOT_KEPT == XSPACE_DULL, "a plane's kinds tell the decoder what is not kept");

static const struct xspace_sink line_sink = {.on_events = on_events, .on_line_end = on_line_end};

static void line_open(struct hand *h, struct part_line *line)
{
    struct line_job *j = &h->line;
    j->line = line;
    j->pj = h->pj;
    j->nwin = 0;
    j->sorted = true;
    j->device = false;
    j->own_shift = (uint64_t)h->load->index.lines[line - h->load->part->lines].timestamp_ns * 1000;
    device_pen_reset(&h->device);
    memory_pen_reset(&h->memory);
    j->far = j->merging = false;
    j->nevents = 0;
    j->last = (struct lane_raw){.begin_ps = INT64_MIN, .end_ps = INT64_MAX};
    j->odd = 0;
    j->stray = IDMAP_NONE;
    j->runs = (struct part_line){0};
    j->runs_cap = j->nchunk = 0;
    xspace_decoder_init(h->dec, &line_sink, h, XSPACE_AT_LINE, line->at, line->len);
    xspace_decoder_dull(h->dec, h->pj->kinds);
    h->pos = line->at;
    h->end = line->at + line->len;
    h->open = true;
}

/* Merges runs, some each time. True when there is no more. */
static bool merge_some(struct hand *h, uint64_t *budget, bool *ok)
{
    struct line_job *j = &h->line;
    struct lane_event ev;
    struct lane_raw raw[XSPACE_BATCH];
    uint64_t most = *budget / 32;
    size_t n = 0;
    bool more = true;
    *ok = true;
    while (*ok && more && most--) {
        more = line_next(&j->merge, &ev, NULL);
        if (more)
            raw[n++] = (struct lane_raw){ev.begin_ps, ev.end_ps, ev.at, ev.name};
        if (n == XSPACE_BATCH || !more) {
            *ok = line_builder_add_many(h->builder, raw, n) == XP_OK;
            n = 0;
        }
    }
    if (*ok && n)
        *ok = line_builder_add_many(h->builder, raw, n) == XP_OK;
    *budget = 0;
    return !more;
}

/* All events are there: sorts what is left to sort, then closes lanes and stats. */
static bool line_close(struct hand *h, uint64_t *budget, bool *ok)
{
    struct line_job *j = &h->line;
    struct part_line *line = j->line;
    if (!j->merging) {
        *ok = emit(h, j->nwin);
        if (*ok && j->far) {
            *ok =
                flush_chunk(j) && line_seek(&j->merge, &j->runs, INT64_MIN, j->sort_arena) == XP_OK;
            j->merging = true;
        }
    }
    if (*ok && j->merging && !merge_some(h, budget, ok) && *ok)
        return false;
    *ok = *ok && line_builder_end(h->builder, line) == XP_OK &&
          side_pen_end(&h->side, h->scratch, &h->out, &line->side) &&
          device_pen_end(&h->device, &h->out, &line->device) &&
          memory_pen_end(&h->memory, &h->out, &line->memory);
    xp_arena_free(j->sort_arena);
    j->sort_arena = NULL;
    line->odd = j->odd;
    line->sorted = j->sorted;
    return true;
}

/* The decoder is done with the line, or gave up; what it gave stays. */
static bool line_decoded(struct hand *h, enum xp_status st, const struct xp_error *err)
{
    struct xspace_line known;
    if (st == XP_CORRUPT) {
        load_damage(h->load, err);
        if (xspace_decoder_line(h->dec, &known))
            st = on_line_end(h, &known);
        else
            st = XP_OK;
    }
    return st == XP_OK;
}

bool hand_lines(struct hand *h, uint64_t *budget)
{
    struct load *l = h->load;
    while (h->group.nlines) {
        enum xp_status st;
        struct xp_error err;
        bool ok = true;
        if (!h->open && !h->line.merging)
            line_open(h, &l->part->lines[h->group.first_line]);
        if (h->open) {
            if (!hand_decode(h, budget, &st, &err))
                return false;
            h->open = false;
            if (!line_decoded(h, st, &err)) {
                load_busy(l);
                return true;
            }
        }
        if (!line_close(h, budget, &ok))
            return false;
        h->line.merging = false;
        if (!ok) {
            load_busy(l);
            return true;
        }
        atomic_fetch_add_explicit(&l->part->events_done, h->line.nevents, memory_order_relaxed);
        h->group.first_line++;
        h->group.nlines--;
        if (!*budget)
            return !h->group.nlines;
    }
    return true;
}
