/* Hardware counters: a row for each event of a device plane that has a counter's value. */
#include <stdio.h>

#include "shard/tools/facts.h"
#include "shard/tools/profile.h"
#include "shard/tools/reports_more.h"
#include "shard/tools/table.h"
#include "shard/tools/tpu_counters.h"

enum { CHIP, DEVICE, VALUE, DESCRIPTION, SETS };
static const char *const names[] = {"global_chip_id", "device_id", "counter_value",
                                    "performance_counter_description", "performance_counter_sets"};

struct named;

struct work {
    const struct tool_host *host;
    struct values_eye eye;
    int64_t chip;
    struct xp_arena *a;
    struct facts_out *f;
    struct named *named; /* by event name of the plane */
};

/* The last of each kind counts; the chip's number in the whole slice is preferred. */
static int64_t chip_of(struct values_eye *eye)
{
    int64_t chip = -1, device = -1;
    struct value v;
    values_of_plane(eye);
    while (values_next(eye, &v)) {
        if (v.which == CHIP)
            chip = (int64_t)value_u64(&v);
        else if (v.which == DEVICE)
            device = (int64_t)value_u64(&v);
    }
    return chip != -1 ? chip : device;
}

/* Of an event name, made when it is first met: its lower-case text, and XProf's words. */
struct named {
    struct xp_span name;
    const char *set, *text;
    bool known;
};

static const struct named *name_of(struct work *w, const struct part_plane *pl, uint32_t name)
{
    static const struct named none;
    if (name >= pl->nevmeta)
        return &none;
    struct named *n = &w->named[name];
    if (n->known)
        return n;
    struct xp_span own = part_str(w->host->part, pl->evmeta[name].name);
    uint8_t *p = xp_arena_alloc(w->a, own.n ? own.n : 1);
    if (!p)
        return NULL;
    for (size_t i = 0; i < own.n; i++)
        p[i] = own.p[i] >= 'A' && own.p[i] <= 'Z' ? own.p[i] | 0x20 : own.p[i];
    n->name = xp_span_of(p, own.n);
    n->known = true;
    tpu_counter_words(n->name, &n->set, &n->text);
    return n;
}

/* The profile's own words only where XProf has none. */
static struct xp_span words(const struct value *own, const char *xprofs)
{
    if (xprofs)
        return xp_span_str(xprofs);
    return own->type == VALUE_TEXT ? own->text : (struct xp_span){0};
}

static enum xp_status map_event(struct work *w, const struct part_line *line,
                                const struct lane_event *ev, struct xp_error *err)
{
    const struct part *p = w->host->part;
    struct value v, seen[SETS + 1] = {{0}};
    XP_TRY(values_of_event(&w->eye, ev->at, err));
    while (values_next(&w->eye, &v))
        if (seen[v.which].type == VALUE_NONE)
            seen[v.which] = v;
    if (seen[VALUE].type == VALUE_NONE)
        return XP_OK;
    const struct named *named = name_of(w, &p->planes[line->plane], ev->name);
    if (!named)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the counters' names");
    facts_u64(w->f, PERF_COUNTERS_ROW);
    facts_i64(w->f, w->chip);
    facts_text(w->f, part_str(p, line->name));
    facts_i64(w->f, line->id);
    facts_text(w->f, named->name);
    facts_u64(w->f, value_u64(&seen[VALUE]));
    facts_text(w->f, words(&seen[DESCRIPTION], named->text));
    facts_text(w->f, words(&seen[SETS], named->set));
    return XP_OK;
}

static enum xp_status map_plane(struct work *w, const struct part_plane *pl, struct xp_error *err)
{
    const struct part *p = w->host->part;
    values_open(&w->eye, p, pl, names, SETS + 1, w->a);
    w->chip = chip_of(&w->eye);
    w->named = xp_arena_zalloc(w->a, ((size_t)pl->nevmeta + 1) * sizeof *w->named);
    if (!w->named)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the counters' names");
    for (uint32_t i = pl->first_line; w->chip != -1 && i < pl->first_line + pl->nlines; i++) {
        struct lane_event *events;
        size_t n;
        XP_TRY(profile_events_with(&p->lines[i], STAT_COUNTER_VALUE, w->a, &events, &n, err));
        for (size_t k = 0; k < n; k++)
            XP_TRY(map_event(w, &p->lines[i], &events[k], err));
    }
    return XP_OK;
}

static enum xp_status map_planes(struct work *w, struct xp_error *err)
{
    const struct part *p = w->host->part;
    for (uint32_t k = 0; k < p->nplanes; k++) {
        struct xp_span name = profile_plane_name(p, &p->planes[k]);
        if (profile_is_tpu(name) || profile_is_gpu(name))
            XP_TRY(map_plane(w, &p->planes[k], err));
    }
    facts_u64(w->f, PERF_COUNTERS_END);
    return XP_OK;
}

static bool wants_names(const struct tool_args *args)
{
    struct xp_span v = {0};
    return tool_arg(args, "names_only", &v) && xp_span_eq(v, XP_SPAN_LIT("1"));
}

enum xp_status perf_counters_map_any(const struct tool_host *host, const struct tool_args *args,
                                     struct xp_arena *a, struct xp_span *partial,
                                     struct xp_error *err)
{
    struct facts_out f;
    struct work w = {.host = host, .a = a, .f = &f};
    (void)args;
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = map_planes(&w, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (wants_names(args) || !profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    return perf_counters_map_any(host, args, a, partial, err);
}

/* --- the table --- */

static void put_columns(struct tables *t)
{
    table_col(t, "Host", TABLE_STRING, "Host");
    table_col(t, "Chip", TABLE_NUMBER, "Chip");
    table_col(t, "Kernel", TABLE_STRING, "Kernel");
    table_col(t, "Sample", TABLE_NUMBER, "Sample");
    table_col(t, "Counter", TABLE_STRING, "Counter");
    table_col(t, "Value", TABLE_NUMBER, "Value (Hex)");
    table_col(t, "Description", TABLE_STRING, "Description");
    table_col(t, "Set", TABLE_STRING, "Set");
}

static void put_hex(struct tables *t, uint64_t v)
{
    char hex[24];
    snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)v);
    table_num_text(t, (double)v, hex);
}

static void put_row(struct tables *t, struct facts *f)
{
    table_row(t);
    table_str(t, f->host);
    table_num(t, (double)facts_get_i64(f)); /* chip */
    table_str(t, facts_get_text(f));        /* kernel */
    table_num(t, (double)facts_get_i64(f)); /* sample */
    table_str(t, facts_get_text(f));        /* counter */
    put_hex(t, facts_get_u64(f));
    table_str(t, facts_get_text(f)); /* description */
    table_str(t, facts_get_text(f)); /* sets */
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct facts *hosts;
    struct tables t;
    size_t n;
    if (wants_names(args)) {
        struct xp_span v = {0};
        tool_arg(args, "device_type", &v);
        return tpu_counter_names(v, out, err);
    }
    XP_TRY(facts_open(merged, scratch, &hosts, &n, err));
    tables_begin(&t, out, args->csv, false);
    table_begin(&t);
    put_columns(&t);
    for (size_t i = 0; i < n; i++) {
        while (hosts[i].readable && facts_get_u64(&hosts[i]) == PERF_COUNTERS_ROW &&
               !out_cancelled(out))
            put_row(&t, &hosts[i]);
        XP_TRY(facts_ok(&hosts[i], err));
    }
    table_end(&t);
    tables_end(&t);
    return XP_OK;
}

const struct tool tool_perf_counters = {.id = "perf_counters",
                                        .tolerant = true,
                                        .map = map,
                                        .merge = facts_merge,
                                        .render = render,
                                        .report = &report_perf_counters};
