/* Memory over time, and what was alive at the peak of each allocator. */
#include <math.h>
#include <stdio.h>

#include "shard/tools/memory.h"

struct writer {
    struct xp_json j;
    struct memory *m;
    struct out *out;
};

static void put_i64(struct writer *w, const char *key, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    xp_json_key(&w->j, key), xp_json_str(&w->j, text);
}

static void put_u64(struct writer *w, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    xp_json_key(&w->j, key), xp_json_str(&w->j, text);
}

static void put_double(struct writer *w, const char *key, double v)
{
    xp_json_key(&w->j, key);
    if (isnan(v))
        xp_json_str(&w->j, "NaN");
    else if (isinf(v))
        xp_json_str(&w->j, v < 0 ? "-Infinity" : "Infinity");
    else
        xp_json_double(&w->j, v);
}

static void put_text(struct writer *w, const char *key, uint32_t id)
{
    xp_json_key(&w->j, key), xp_json_span(&w->j, xp_strpool_get(&w->m->strings, id));
}

static void put_type(struct writer *w, int64_t type)
{
    char text[MEMORY_TYPE_TEXT];
    memory_type_text(type, text);
    xp_json_key(&w->j, "dataType"), xp_json_str(&w->j, text);
}

static void put_activity(struct writer *w, const struct memory_event *ev)
{
    xp_json_obj(&w->j);
    xp_json_key(&w->j, "memoryActivity");
    xp_json_str(&w->j, ev->frees ? "DEALLOCATION" : "ALLOCATION");
    put_i64(w, "requestedBytes", ev->requested);
    put_i64(w, "allocationBytes", ev->allocated);
    put_u64(w, "address", ev->address);
    put_text(w, "tfOpName", ev->op);
    put_i64(w, "stepId", ev->step);
    put_text(w, "regionType", ev->region);
    put_type(w, ev->type);
    put_text(w, "tensorShape", ev->shape);
    xp_json_obj_end(&w->j);
}

static void put_snapshot(struct writer *w, const struct memory_event *ev)
{
    xp_json_obj(&w->j);
    put_i64(w, "timeOffsetPs", ev->time_ps);
    xp_json_key(&w->j, "aggregationStats");
    xp_json_obj(&w->j);
    put_i64(w, "stackReservedBytes", ev->reserved);
    put_i64(w, "heapAllocatedBytes", ev->heap);
    put_i64(w, "freeMemoryBytes", ev->available);
    put_double(w, "fragmentation", ev->fragmentation);
    put_i64(w, "peakBytesInUse", ev->peak);
    xp_json_obj_end(&w->j);
    xp_json_key(&w->j, "activityMetadata");
    put_activity(w, ev);
    xp_json_obj_end(&w->j);
    out_flush(w->out);
}

static void put_summary(struct writer *w, const struct memory_peak *p)
{
    xp_json_key(&w->j, "profileSummary");
    xp_json_obj(&w->j);
    put_i64(w, "peakBytesUsageLifetime", p->lifetime);
    xp_json_key(&w->j, "peakStats");
    xp_json_obj(&w->j);
    put_i64(w, "stackReservedBytes", p->reserved);
    put_i64(w, "heapAllocatedBytes", p->heap);
    put_i64(w, "freeMemoryBytes", p->available);
    put_double(w, "fragmentation", p->fragmentation);
    put_i64(w, "peakBytesInUse", p->bytes);
    xp_json_obj_end(&w->j);
    put_i64(w, "peakStatsTimePs", p->time_ps);
    put_i64(w, "memoryCapacity", p->capacity);
    xp_json_obj_end(&w->j);
}

static void put_active(struct writer *w, const struct memory_analysis *an)
{
    int64_t shown = 0;
    xp_json_key(&w->j, "activeAllocations");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < an->nactive; i++) {
        const struct memory_active *a = &an->active[i];
        xp_json_obj(&w->j);
        put_i64(w, "snapshotIndex", a->special < 0 ? shown++ : -1 - a->special);
        put_i64(w, "specialIndex", a->special);
        put_u64(w, "numOccurrences", a->count);
        xp_json_obj_end(&w->j);
        out_flush(w->out);
    }
    xp_json_arr_end(&w->j);
}

static void put_allocator(struct writer *w, const struct memory_allocator *al,
                          const struct memory_analysis *an)
{
    xp_json_obj(&w->j);
    xp_json_key(&w->j, "memoryProfileSnapshots");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < an->nactive; i++)
        if (an->active[i].special < 0)
            put_snapshot(w, an->active[i].event);
    xp_json_arr_end(&w->j);
    put_summary(w, &al->peak);
    put_active(w, an);
    xp_json_key(&w->j, "specialAllocations");
    xp_json_arr(&w->j);
    for (int i = 0; i < an->nspecials; i++)
        put_activity(w, &an->specials[i]);
    xp_json_arr_end(&w->j);
    xp_json_key(&w->j, "sampledTimelineSnapshots");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < an->ntimeline; i++)
        put_snapshot(w, an->timeline[i]);
    xp_json_arr_end(&w->j);
    xp_json_obj_end(&w->j);
}

/* --- modules that ran --- */

static bool any(void *ctx, const struct lane_event *ev)
{
    (void)ctx, (void)ev;
    return true;
}

static void put_module(struct writer *w, const struct part *p, const struct part_plane *pl,
                       const struct lane_event *ev, int64_t number)
{
    static const size_t device = sizeof "/device:" - 1;
    struct xp_span plane = profile_plane_name(p, pl);
    xp_json_obj(&w->j);
    xp_json_key(&w->j, "name");
    xp_json_span(&w->j, ev->name < pl->nevmeta ? part_str(p, pl->evmeta[ev->name].name)
                                               : (struct xp_span){0});
    put_i64(w, "startTimePs", ev->begin_ps);
    put_i64(w, "endTimePs", ev->end_ps);
    put_i64(w, "id", number);
    xp_json_key(&w->j, "planeName");
    xp_json_span(&w->j, xp_span_of(plane.p + device, plane.n - device));
    xp_json_obj_end(&w->j);
    out_flush(w->out);
}

static enum xp_status put_modules(struct writer *w, const struct part *p, struct xp_arena *a,
                                  struct xp_error *err)
{
    int64_t number = 0;
    xp_json_key(&w->j, "hloModules");
    xp_json_arr(&w->j);
    for (uint32_t i = 0; i < p->nlines; i++) {
        const struct part_line *line = &p->lines[i];
        const struct part_plane *pl = &p->planes[line->plane];
        struct lane_event *events;
        size_t n;
        if (!profile_is_tpu(profile_plane_name(p, pl)) ||
            !xp_span_eq(part_str(p, line->name), XP_SPAN_LIT("XLA Modules")))
            continue;
        XP_TRY(profile_events(line, any, NULL, a, &events, &n, err));
        for (size_t k = 0; k < n; k++)
            put_module(w, p, pl, &events[k], number++);
    }
    xp_json_arr_end(&w->j);
    return XP_OK;
}

static enum xp_status put_allocators(struct writer *w, struct xp_error *err)
{
    struct memory_analysis *an = xp_arena_alloc(w->m->arena, sizeof *an);
    if (!an)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the memory profile");
    xp_json_key(&w->j, "memoryProfilePerAllocator");
    xp_json_obj(&w->j);
    for (size_t i = 0; i < w->m->nallocators; i++) {
        struct memory_allocator *al = &w->m->allocators[i];
        XP_TRY(memory_analyse(w->m, al, an, err));
        xp_json_key_span(&w->j, xp_strpool_get(&w->m->strings, al->name));
        put_allocator(w, al, an);
        if (out_cancelled(w->out))
            return XP_CANCELLED;
    }
    xp_json_obj_end(&w->j);
    return XP_OK;
}

static enum xp_status answer(const struct tool_host *hosts, size_t n, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct memory m;
    struct writer w = {.m = &m, .out = out};
    if (args->csv)
        return tool_no_csv(err);
    if (n != 1)
        return xp_fail(err, XP_NOT_FOUND, 0, "a memory profile is of one host at a time");
    XP_TRY(profile_all_readable(hosts, n, err));
    struct part *p = hosts[0].part;
    const struct part_plane *plane = profile_plane(p, "/host:CPU");
    if (!plane)
        return xp_fail(err, XP_NOT_FOUND, 0, "the profile has no host threads");
    XP_TRY(memory_read(p, plane, scratch, out, &m, err));
    xp_json_init(&w.j, &out->text);
    xp_json_obj(&w.j);
    XP_TRY(put_allocators(&w, err));
    xp_json_key(&w.j, "numHosts"), xp_json_i64(&w.j, 1);
    xp_json_key(&w.j, "memoryIds");
    xp_json_arr(&w.j);
    for (size_t i = 0; i < m.nallocators; i++)
        xp_json_span(&w.j, xp_strpool_get(&m.strings, m.allocators[i].name));
    xp_json_arr_end(&w.j);
    xp_json_key(&w.j, "version"), xp_json_i64(&w.j, 1);
    XP_TRY(put_modules(&w, p, scratch, err));
    xp_json_obj_end(&w.j);
    return XP_OK;
}

const struct tool tool_memory_profile = {.id = "memory_profile", .answer = answer};
