/* Memory over time, and what was alive at the peak of each allocator. */
#include <math.h>
#include <stdio.h>

#include "shard/tools/memory_facts.h"
#include "shard/tools/reports_more.h"

struct writer {
    struct xp_json j;
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

static void put_text(struct writer *w, const char *key, struct xp_span text)
{
    xp_json_key(&w->j, key), xp_json_span(&w->j, text);
}

static void put_type(struct writer *w, int64_t type)
{
    char text[MEMORY_TYPE_TEXT];
    memory_type_text(type, text);
    xp_json_key(&w->j, "dataType"), xp_json_str(&w->j, text);
}

static void put_activity(struct writer *w, const struct memory_fact *ev)
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

static void put_snapshot(struct writer *w, const struct memory_fact *ev)
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

static void put_active(struct writer *w, const struct memory_fact_allocator *al)
{
    int64_t shown = 0;
    xp_json_key(&w->j, "activeAllocations");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < al->nactive; i++) {
        const struct memory_fact_active *a = &al->active[i];
        xp_json_obj(&w->j);
        put_i64(w, "snapshotIndex", a->special < 0 ? shown++ : -1 - a->special);
        put_i64(w, "specialIndex", a->special);
        put_u64(w, "numOccurrences", a->count);
        xp_json_obj_end(&w->j);
        out_flush(w->out);
    }
    xp_json_arr_end(&w->j);
}

static void put_specials(struct writer *w, const struct memory_fact_allocator *al)
{
    xp_json_key(&w->j, "specialAllocations");
    xp_json_arr(&w->j);
    for (int special = 0; special < 2; special++)
        for (size_t i = 0; i < al->nactive; i++)
            if (al->active[i].special == special)
                put_activity(w, &al->active[i].fact);
    xp_json_arr_end(&w->j);
}

static void put_allocator(struct writer *w, const struct memory_fact_allocator *al)
{
    xp_json_obj(&w->j);
    xp_json_key(&w->j, "memoryProfileSnapshots");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < al->nactive; i++)
        if (al->active[i].special < 0)
            put_snapshot(w, &al->active[i].fact);
    xp_json_arr_end(&w->j);
    put_summary(w, &al->peak);
    put_active(w, al);
    put_specials(w, al);
    xp_json_key(&w->j, "sampledTimelineSnapshots");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < al->ntimeline; i++)
        put_snapshot(w, &al->timeline[i]);
    xp_json_arr_end(&w->j);
    xp_json_obj_end(&w->j);
}

static void put_module(struct writer *w, const struct memory_fact_module *m, int64_t number)
{
    static const size_t device = sizeof "/device:" - 1;
    size_t skip = m->plane.n < device ? m->plane.n : device;
    xp_json_obj(&w->j);
    put_text(w, "name", m->name);
    put_i64(w, "startTimePs", m->begin_ps);
    put_i64(w, "endTimePs", m->end_ps);
    put_i64(w, "id", number);
    put_text(w, "planeName", xp_span_of(m->plane.p + skip, m->plane.n - skip));
    xp_json_obj_end(&w->j);
    out_flush(w->out);
}

static void put_profile(struct writer *w, const struct memory_facts *m)
{
    xp_json_obj(&w->j);
    xp_json_key(&w->j, "memoryProfilePerAllocator");
    xp_json_obj(&w->j);
    for (size_t i = 0; i < m->nallocators; i++) {
        xp_json_key_span(&w->j, m->allocators[i].name);
        put_allocator(w, &m->allocators[i]);
    }
    xp_json_obj_end(&w->j);
    xp_json_key(&w->j, "numHosts"), xp_json_i64(&w->j, 1);
    xp_json_key(&w->j, "memoryIds");
    xp_json_arr(&w->j);
    for (size_t i = 0; i < m->nallocators; i++)
        xp_json_span(&w->j, m->allocators[i].name);
    xp_json_arr_end(&w->j);
    xp_json_key(&w->j, "version"), xp_json_i64(&w->j, 1);
    xp_json_key(&w->j, "hloModules"); /* runs of modules */
    xp_json_arr(&w->j);
    for (size_t i = 0; i < m->nmodules && !out_cancelled(w->out); i++)
        put_module(w, &m->modules[i], (int64_t)i);
    xp_json_arr_end(&w->j);
    xp_json_obj_end(&w->j);
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (args->csv)
        return tool_no_csv(err);
    return memory_facts_map(host, args, a, partial, err);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct writer w = {.out = out};
    struct memory_facts m;
    struct facts *hosts;
    size_t n;
    (void)args;
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    if (n != 1)
        return xp_fail(err, XP_NOT_FOUND, 0, "a memory profile is of one host at a time");
    XP_TRY(facts_need_readable(hosts, err));
    XP_TRY(memory_facts_read(hosts, scratch, &m, err));
    if (!m.has_threads)
        return xp_fail(err, XP_NOT_FOUND, 0, "the profile has no host threads");
    xp_json_init(&w.j, &out->text);
    put_profile(&w, &m);
    return XP_OK;
}

const struct tool tool_memory_profile = {.id = "memory_profile",
                                         .map = map,
                                         .merge = facts_merge,
                                         .render = render,
                                         .report = &report_memory_profile};
