#include "shard/tools/perfetto.h"

#include "lib/base/gzip.h"
#include "lib/base/pb_wire.h"

/* Fields of perfetto.protos.Trace and what is in it. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK = 60
};
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5 };
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum { BEGIN = 1, END = 2, INSTANT = 3 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };

#define PIECE ((size_t)64 << 10)

struct writer {
    const struct part *part;
    struct xp_buf plain, packet, inner; /* a piece; one packet; a message in it */
    struct xp_gzip *gz;
    struct out *out;
    uint64_t uuid;
    bool begun;
};

static void put_packet(struct writer *w)
{
    xp_pb_put_u64(&w->packet, PACKET_SEQUENCE, 1);
    xp_pb_put_u64(&w->packet, PACKET_SEQUENCE_FLAGS,
                  w->begun ? NEEDS_STATE : STATE_CLEARED | NEEDS_STATE);
    w->begun = true;
    xp_pb_put_bytes(&w->plain, TRACE_PACKET, xp_buf_all(&w->packet));
    w->packet.n = w->inner.n = 0;
    if (w->plain.n >= PIECE) {
        xp_gzip_add(w->gz, xp_buf_all(&w->plain));
        w->plain.n = 0;
    }
}

static uint64_t put_track(struct writer *w, struct xp_span name, uint64_t parent)
{
    uint64_t uuid = ++w->uuid;
    xp_pb_put_u64(&w->inner, TRACK_UUID, uuid);
    xp_pb_put_bytes(&w->inner, TRACK_NAME, name);
    if (parent)
        xp_pb_put_u64(&w->inner, TRACK_PARENT, parent);
    xp_pb_put_bytes(&w->packet, PACKET_TRACK, xp_buf_all(&w->inner));
    put_packet(w);
    return uuid;
}

static void put_mark(struct writer *w, uint64_t track, int64_t ps, uint64_t type,
                     struct xp_span name)
{
    xp_pb_put_u64(&w->packet, PACKET_TIMESTAMP, ps > 0 ? (uint64_t)ps / 1000 : 0);
    xp_pb_put_u64(&w->inner, EVENT_TYPE, type);
    xp_pb_put_u64(&w->inner, EVENT_TRACK, track);
    if (type != END)
        xp_pb_put_bytes(&w->inner, EVENT_NAME, name);
    xp_pb_put_bytes(&w->packet, PACKET_EVENT, xp_buf_all(&w->inner));
    put_packet(w);
}

static void put_event(struct writer *w, const struct part_line *line, uint64_t track,
                      const struct lane_event *ev)
{
    struct xp_span name = part_event_name(w->part, &w->part->planes[line->plane], ev->name);
    int64_t begin = line->base_ps + ev->begin_ps, end = line->base_ps + ev->end_ps;
    put_mark(w, track, begin, end > begin ? BEGIN : INSTANT, name);
    if (end > begin)
        put_mark(w, track, end, END, name);
}

/* Lanes hold events that do not overlap: each is a track of its own, below the line's. */
static bool put_line(struct writer *w, const struct part_line *line, uint64_t parent,
                     const bool *wanted)
{
    uint64_t top = 0;
    for (uint32_t i = 0; i < line->nlanes; i++) {
        struct lane_cursor c;
        struct lane_event ev;
        uint64_t track = 0;
        lane_seek(&c, line->lanes[i], INT64_MIN);
        while (lane_next(&c, &ev)) {
            if (wanted && (ev.name >= w->part->planes[line->plane].nevmeta || !wanted[ev.name]))
                continue;
            if (!top)
                top = put_track(w, part_line_name(w->part, line), parent);
            if (!track)
                track = i ? put_track(w, part_line_name(w->part, line), top) : top;
            put_event(w, line, track, &ev);
            if (w->plain.failed || out_cancelled(w->out))
                return false;
        }
    }
    return true;
}

static bool put_tpus(struct writer *w)
{
    const struct part *p = w->part;
    uint64_t root = 0;
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        struct xp_span name = profile_plane_name(p, pl);
        if (!profile_is_tpu(name))
            continue;
        if (!root)
            root = put_track(w, XP_SPAN_LIT("2. TPUs"), 0);
        uint64_t plane = put_track(w, name, root);
        for (uint32_t k = pl->first_line; k < pl->first_line + pl->nlines; k++)
            if (!put_line(w, &p->lines[k], plane, NULL))
                return false;
    }
    return true;
}

static bool put_megascale(struct writer *w, struct xp_arena *a)
{
    const struct part_plane *pl = profile_plane(w->part, "/host:CPU");
    bool *wanted = pl ? xp_arena_zalloc(a, (size_t)pl->nevmeta + 1) : NULL, any = false;
    for (uint32_t i = 0; wanted && i < pl->nevmeta; i++)
        any |= wanted[i] =
            xp_span_starts(part_str(w->part, pl->evmeta[i].name), XP_SPAN_LIT("MegaScale:"));
    if (!any)
        return true;
    uint64_t root = put_track(w, XP_SPAN_LIT("Megascale"), 0);
    for (uint32_t k = pl->first_line; k < pl->first_line + pl->nlines; k++)
        if (!put_line(w, &w->part->lines[k], root, wanted))
            return false;
    return true;
}

enum xp_status perfetto_write(const struct part *p, struct xp_arena *a, struct out *out,
                              struct xp_error *err)
{
    struct writer w = {.part = p, .out = out};
    struct xp_buf zipped;
    xp_buf_init(&zipped, PERFETTO_MAX);
    xp_buf_init(&w.plain, (size_t)64 << 20);
    xp_buf_init(&w.packet, (size_t)16 << 20);
    xp_buf_init(&w.inner, (size_t)16 << 20);
    w.gz = xp_gzip_new(&zipped);
    bool ok = put_tpus(&w) && put_megascale(&w, a);
    xp_gzip_add(w.gz, xp_buf_all(&w.plain));
    xp_gzip_end(w.gz);
    enum xp_status st = XP_OK;
    if (out_cancelled(out))
        st = XP_CANCELLED;
    else if (!ok || zipped.failed || w.packet.failed || w.inner.failed)
        st = xp_fail(err, XP_TOO_LARGE, 0, "the trace is too large for Perfetto");
    else
        xp_buf_span(&out->text, xp_buf_all(&zipped));
    out->content_type = "application/octet-stream";
    xp_buf_fini(&w.plain);
    xp_buf_fini(&w.packet);
    xp_buf_fini(&w.inner);
    xp_buf_fini(&zipped);
    return st;
}
