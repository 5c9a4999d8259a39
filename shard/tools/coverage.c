#include "shard/tools/coverage.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/hash.h"
#include "shard/derive/meta_reader.h"
#include "shard/hlo/hlo.h"
#include "shard/tools/profile.h"

/* Programs that are looked at: reading more of a large profile is not worth what they may tell. */
#define MODULE_BYTES_MAX ((uint64_t)64 << 20)
#define MODULES_BYTES_MAX ((uint64_t)128 << 20)
#define DEVICES_MAX (UINT64_C(1) << 24)
#define NAMES_MAX 1024

/* --- what a program is compiled for --- */

/* HloProto, HloModuleProto, HloComputationProto, DeviceAssignmentProto and the like. */
enum { PROTO_MODULE = 1 };
enum { MODULE_COMPUTATIONS = 3, MODULE_ASSIGNMENT = 15 };
enum { COMPUTATION_INSTRUCTIONS = 2 };
enum { ASSIGNMENT_REPLICAS = 1, ASSIGNMENT_COMPUTATIONS = 2 };
enum { GROUP_IDS = 1 };
enum { IOTA_GROUPS = 1, IOTA_SIZE = 2 };

static uint64_t product(int64_t a, int64_t b)
{
    uint64_t v;
    if (a <= 0 || b <= 0 || __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &v) || v > DEVICES_MAX)
        return 0;
    return v;
}

/* Who takes part in a collective: ids, or so many groups of so many. */
static uint64_t participants(struct xp_span instr)
{
    struct hlo_spans groups = hlo_spans_open(instr, HLO_F_REPLICA_GROUPS);
    struct xp_span g;
    uint64_t most = 0;
    while (hlo_spans_next(&groups, &g)) {
        struct hlo_ints ids = hlo_ints_open(g, GROUP_IDS);
        int64_t id;
        while (hlo_ints_next(&ids, &id))
            if (id >= 0 && (uint64_t)id < DEVICES_MAX && (uint64_t)id >= most)
                most = (uint64_t)id + 1;
    }
    if (hlo_get_span(instr, HLO_F_IOTA_COLLECTIVE_DEVICE_LIST, &g)) {
        uint64_t all = product(hlo_get_int(g, IOTA_GROUPS, 0), hlo_get_int(g, IOTA_SIZE, 0));
        most = all > most ? all : most;
    }
    return most;
}

static uint64_t in_collectives(struct xp_span module)
{
    struct hlo_spans comps = hlo_spans_open(module, MODULE_COMPUTATIONS);
    struct xp_span comp, instr;
    uint64_t most = 0;
    while (hlo_spans_next(&comps, &comp)) {
        struct hlo_spans instrs = hlo_spans_open(comp, COMPUTATION_INSTRUCTIONS);
        while (hlo_spans_next(&instrs, &instr)) {
            uint64_t n = participants(instr);
            most = n > most ? n : most;
        }
    }
    return most;
}

uint64_t coverage_of_module(struct xp_span module)
{
    struct xp_span assignment;
    uint64_t n = 0;
    if (hlo_get_span(module, MODULE_ASSIGNMENT, &assignment))
        n = product(hlo_get_int(assignment, ASSIGNMENT_REPLICAS, 0),
                    hlo_get_int(assignment, ASSIGNMENT_COMPUTATIONS, 0));
    return n ? n : in_collectives(module);
}

static enum xp_status look_at_programs(const struct part *p, const struct part_plane *pl,
                                       struct coverage_host *h, struct xp_arena *a,
                                       struct xp_error *err)
{
    static const char *const names[] = {"Hlo Proto", "HLO Proto", "hlo_proto"};
    struct values_eye eye;
    struct value v;
    uint64_t bytes = 0;
    values_open(&eye, p, pl, names, 3, a);
    for (uint32_t i = 0; i < pl->nevmeta && bytes < MODULES_BYTES_MAX; i++) {
        struct xp_span module;
        if (pl->evmeta[i].len > MODULE_BYTES_MAX)
            continue;
        bytes += pl->evmeta[i].len;
        enum xp_status st = values_of_evmeta(&eye, i, err);
        if (st == XP_TOO_LARGE) { /* than what is read at once */
            *err = (struct xp_error){0};
            continue;
        }
        XP_TRY(st);
        if (!values_next(&eye, &v) || v.type != VALUE_BYTES ||
            !hlo_get_span(v.text, PROTO_MODULE, &module))
            continue;
        uint64_t n = coverage_of_module(module);
        if (n > h->compiled) {
            h->compiled = n;
            h->program = part_str(p, pl->evmeta[i].name);
        }
    }
    return XP_OK;
}

/* --- devices --- */

enum { STAT_DROPPED, STAT_CORE, STAT_CHIP, STAT_DEVICE };

/* Which of all devices it is, of a plane that says so: CoreDetails, or the chip where one is one
 * device. */
enum { CORE_GLOBAL_CHIP = 5, CORE_GLOBAL = 6 };

static void look_at_device(const struct part *p, const struct part_plane *pl,
                           struct coverage_host *h, struct xp_arena *a)
{
    static const char *const names[] = {"dropped_traces", "core_details", "global_chip_id"};
    struct values_eye eye;
    struct value v;
    int64_t core = -1, chip = -1;
    values_open(&eye, p, pl, names, 3, a);
    values_of_plane(&eye);
    while (values_next(&eye, &v)) {
        if (v.which == STAT_CORE && v.type == VALUE_BYTES) {
            core = hlo_get_int(v.text, CORE_GLOBAL, hlo_get_int(v.text, CORE_GLOBAL_CHIP, 0));
        } else if (v.which == STAT_CHIP) {
            chip = (int64_t)value_u64(&v);
        } else if (v.which == STAT_DROPPED && value_u64(&v) <= INT64_MAX &&
                   __builtin_add_overflow(h->dropped, value_u64(&v), &h->dropped)) {
            h->dropped = INT64_MAX;
        }
    }
    int64_t id = core >= 0 ? core : chip;
    if (id >= 0 && (uint64_t)id < DEVICES_MAX && (uint64_t)id >= h->ids)
        h->ids = (uint64_t)id + 1;
}

/* --- what the profiler said --- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* INT64_MAX in place of more. */
static uint64_t add(uint64_t x, uint64_t y)
{
    uint64_t v;
    return __builtin_add_overflow(x, y, &v) || v > INT64_MAX ? INT64_MAX : v;
}

/* The number right before `at`, as in "12 events dropped"; INT64_MAX when it is larger. */
static bool number_before(struct xp_span s, size_t at, uint64_t *v)
{
    size_t end = at, i;
    while (end && s.p[end - 1] == ' ')
        end--;
    for (i = end; i && is_digit(s.p[i - 1]); i--)
        ;
    *v = 0;
    for (size_t k = i; k < end; k++)
        *v = *v > INT64_MAX / 10 ? INT64_MAX : add(*v * 10, (uint64_t)(s.p[k] - '0'));
    return i < end;
}

uint64_t coverage_of_message(struct xp_span text, bool *more)
{
    static const char *const forms[] = {"events dropped", "event dropped", "events were dropped",
                                        "event was dropped", "trace entries dropped"};
    uint64_t sum = 0;
    bool told = false;
    *more = false;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        struct xp_span form = xp_span_str(forms[k]);
        for (size_t i = 0; text.n >= form.n && i <= text.n - form.n; i++) {
            uint64_t v;
            if (memcmp(text.p + i, form.p, form.n) != 0 || !number_before(text, i, &v))
                continue;
            told = true;
            sum = add(sum, v);
        }
    }
    *more = !told && (xp_span_has(text, XP_SPAN_LIT("dropped")) ||
                      xp_span_has(text, XP_SPAN_LIT("Dropped")));
    return sum;
}

/* Texts, each once: collectors of one host repeat what others said. */
struct texts {
    const struct xp_span *v;
    uint32_t *slots; /* index and 1, by hash; 0: free */
    size_t mask;
};

static enum xp_status texts_open(struct texts *t, const struct xp_span *v, uint32_t n,
                                 struct xp_arena *a, struct xp_error *err)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)n)
        slots *= 2;
    *t = (struct texts){v, xp_arena_zalloc(a, slots * sizeof *t->slots), slots - 1};
    return t->slots ? XP_OK : xp_fail(err, XP_BUSY, 0, "no memory left for what the profiler said");
}

/* Whether v[i] is the first of its like. */
static bool texts_add(struct texts *t, uint32_t i)
{
    size_t at = xp_hash(t->v[i]) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask)
        if (xp_span_eq(t->v[t->slots[at] - 1], t->v[i]))
            return false;
    t->slots[at] = i + 1;
    return true;
}

static enum xp_status look_at_messages(const struct xp_span *v, uint32_t n, struct coverage_host *h,
                                       struct xp_arena *a, struct xp_error *err)
{
    struct texts t;
    XP_TRY(texts_open(&t, v, n, a, err));
    for (uint32_t i = 0; i < n; i++) {
        bool more;
        if (!texts_add(&t, i))
            continue;
        h->complaints++;
        h->dropped = add(h->dropped, coverage_of_message(v[i], &more));
        h->dropped_more |= more;
    }
    return XP_OK;
}

static enum xp_status count_names(const struct part *p, struct coverage_host *h, struct xp_arena *a,
                                  struct xp_error *err)
{
    uint32_t n = p->nhostnames < NAMES_MAX ? p->nhostnames : NAMES_MAX;
    struct texts t;
    XP_TRY(texts_open(&t, p->hostnames, n, a, err));
    for (uint32_t i = 0; i < n; i++)
        h->names += texts_add(&t, i);
    return XP_OK;
}

/* --- how it was begun --- */

/* ProfileOptions; an entry of its map of further options. */
enum { OPTIONS_DURATION = 9, OPTIONS_ADVANCED = 12 };
enum { ENTRY_KEY = 1 };

static void look_at_options(struct xp_span options, struct coverage_host *h)
{
    struct hlo_spans entries = hlo_spans_open(options, OPTIONS_ADVANCED);
    struct xp_span entry, key;
    int64_t ms = hlo_get_int(options, OPTIONS_DURATION, 0);
    h->kind = ms > 0 ? COVERAGE_ON_DEMAND : COVERAGE_PROGRAM;
    h->asked_ms = ms > 0 ? (uint64_t)ms : 0;
    while (hlo_spans_next(&entries, &entry))
        if (hlo_get_span(entry, ENTRY_KEY, &key) &&
            xp_span_eq(key, XP_SPAN_LIT("tpu_circular_buffer_tracing")))
            h->kind = COVERAGE_SNAPSHOT;
}

static void look_at_environment(const struct part *p, const struct part_plane *pl,
                                struct coverage_host *h, struct xp_arena *a)
{
    static const char *const names[] = {"profile_options"};
    struct values_eye eye;
    struct value v;
    values_open(&eye, p, pl, names, 1, a);
    values_of_plane(&eye);
    while (values_next(&eye, &v))
        if (v.type == VALUE_BYTES)
            look_at_options(v.text, h);
}

/* --- a host --- */

static enum xp_status look(const struct part *p, struct coverage_host *h, struct xp_arena *a,
                           struct xp_error *err)
{
    for (uint32_t i = 0; i < p->nplanes; i++) {
        const struct part_plane *pl = &p->planes[i];
        struct xp_span name = profile_plane_name(p, pl);
        uint32_t n;
        if ((profile_is_tpu(name) || profile_is_gpu(name)) && profile_ordinal(name, &n)) {
            h->devices++;
            look_at_device(p, pl, h, a);
        } else if (xp_span_eq(name, XP_SPAN_LIT("Task Environment"))) {
            look_at_environment(p, pl, h, a);
        } else if (xp_span_eq(name, XP_SPAN_LIT("/host:metadata"))) {
            XP_TRY(look_at_programs(p, pl, h, a, err));
        }
    }
    XP_TRY(look_at_messages(p->errors, p->nerrors, h, a, err));
    XP_TRY(look_at_messages(p->warnings, p->nwarnings, h, a, err));
    return count_names(p, h, a, err);
}

enum xp_status coverage_map(const struct tool_host *host, const struct tool_args *args,
                            struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct coverage_host h = {0};
    struct facts_out f;
    (void)args;
    XP_TRY(look(host->part, &h, a, err));
    XP_TRY(facts_begin(&f, a, err));
    facts_u64(&f, h.devices);
    facts_u64(&f, h.ids);
    facts_u64(&f, h.compiled);
    facts_text(&f, h.program);
    facts_u64(&f, h.names);
    facts_u64(&f, h.dropped);
    facts_u64(&f, h.dropped_more);
    facts_u64(&f, h.complaints);
    facts_u64(&f, h.kind);
    facts_u64(&f, h.asked_ms);
    return facts_end(&f, host, a, partial, err);
}

enum xp_status coverage_open(struct xp_span merged, struct xp_arena *a, struct coverage *c,
                             struct xp_error *err)
{
    struct facts *f;
    XP_TRY(facts_open(merged, a, &f, &c->n, err));
    c->hosts = xp_arena_zalloc(a, (c->n + 1) * sizeof *c->hosts);
    if (!c->hosts)
        return xp_fail(err, XP_BUSY, 0, "no memory left for what the hosts say");
    for (size_t i = 0; i < c->n; i++) {
        struct coverage_host *h = &c->hosts[i];
        h->name = f[i].host;
        h->devices = facts_get_u64(&f[i]);
        h->ids = facts_get_u64(&f[i]);
        h->compiled = facts_get_u64(&f[i]);
        h->program = facts_get_text(&f[i]);
        h->names = facts_get_u64(&f[i]);
        h->dropped = facts_get_u64(&f[i]);
        h->dropped_more = facts_get_u64(&f[i]) != 0;
        h->complaints = facts_get_u64(&f[i]);
        h->kind = (uint8_t)facts_get_u64(&f[i]);
        h->asked_ms = facts_get_u64(&f[i]);
        XP_TRY(facts_ok(&f[i], err));
    }
    return XP_OK;
}

/* --- of all hosts --- */

struct sum {
    uint64_t devices, ids, compiled, names, dropped;
    uint64_t most, least; /* devices of a host that has any */
    struct xp_span program;
    bool dropped_more;
};

static struct sum add_up(const struct coverage *c)
{
    struct sum s = {0};
    for (size_t i = 0; i < c->n; i++) {
        const struct coverage_host *h = &c->hosts[i];
        s.devices += h->devices;
        s.ids = h->ids > s.ids ? h->ids : s.ids;
        s.names += h->names > 1 ? h->names : 1;
        s.dropped += h->dropped < INT64_MAX - s.dropped ? h->dropped : INT64_MAX - s.dropped;
        s.dropped_more |= h->dropped_more;
        s.most = h->devices > s.most ? h->devices : s.most;
        if (h->devices && (!s.least || h->devices < s.least))
            s.least = h->devices;
        if (h->compiled > s.compiled) {
            s.compiled = h->compiled;
            s.program = h->program;
        }
    }
    return s;
}

#define NAME_SHOWN 100

static int shown(struct xp_span s)
{
    return (int)(s.n < NAME_SHOWN ? s.n : NAME_SHOWN);
}

/* How many devices the run has; 0: reason says why that is not known, else note says whence it is.
 */
static uint64_t expected(const struct sum *s, char note[400], const char **reason)
{
    *reason = "no device has a plane in the profile: how many there should be cannot be told";
    if (!s->devices)
        return 0;
    if (s->compiled >= s->devices && s->compiled >= s->ids) {
        snprintf(note, 400, "inferred: %.*s is compiled for %" PRIu64 " device%s",
                 shown(s->program), (const char *)s->program.p, s->compiled,
                 s->compiled == 1 ? "" : "s");
        return s->compiled;
    }
    if (s->ids) {
        uint64_t n = s->ids > s->devices ? s->ids : s->devices;
        snprintf(note, 400, "inferred, at least: the highest device id that was seen is %" PRIu64,
                 s->ids - 1);
        return n;
    }
    *reason =
        s->compiled
            ? "programs are compiled for fewer devices than there are, and no device has an id"
            : "the profile has no compiled program that can be read and no ids of devices, which "
              "would tell";
    return 0;
}

static void expected_metrics(struct report *r, const struct sum *s, size_t nhosts)
{
    char note[400], hosts[600];
    const char *reason;
    uint64_t n = expected(s, note, &reason);
    if (n)
        report_u64(r, "expected_devices", n, note);
    else
        report_na(r, "expected_devices", "%s", reason);
    uint64_t of_hosts = n && s->most ? (n + s->most - 1) / s->most : 0;
    uint64_t known = s->names > nhosts ? s->names : nhosts;
    if (!of_hosts && s->names <= nhosts) {
        report_na(r, "expected_hosts", "%s", reason);
        return;
    }
    if (of_hosts >= known)
        snprintf(hosts, sizeof hosts, "%s, at %s%" PRIu64 " a host", note,
                 s->most == s->least ? "" : "up to ", s->most);
    else
        snprintf(hosts, sizeof hosts, "at least: as many hosts are named in the profile");
    report_u64(r, "expected_hosts", of_hosts > known ? of_hosts : known, hosts);
}

static void dropped_metric(struct report *r, const struct sum *s)
{
    if (s->dropped)
        report_u64(r, "dropped_events", s->dropped,
                   s->dropped_more ? "as devices count them; the profiler warns of it, too" : NULL);
    else if (s->dropped_more)
        report_na(r, "dropped_events",
                  "the profiler says that events were dropped, but not how many");
    else
        report_u64(r, "dropped_events", 0, "the profiler tells of none");
}

static const char *const kinds[] = {
    [COVERAGE_PROGRAM] = "programmatic",
    [COVERAGE_ON_DEMAND] = "on demand",
    [COVERAGE_SNAPSHOT] = "snapshot",
};

/* Of the first host that says it; others differ only where runs were joined. */
static void kind_metric(struct report *r, const struct coverage *c)
{
    char note[100] = "";
    size_t i = 0;
    while (i < c->n &&
           (c->hosts[i].kind == COVERAGE_UNTOLD || c->hosts[i].kind > COVERAGE_SNAPSHOT))
        i++;
    if (i == c->n) {
        report_na(
            r, "capture_kind",
            "the profile does not hold its options (profile_options, which newer profilers write)");
        return;
    }
    if (c->hosts[i].kind == COVERAGE_ON_DEMAND)
        snprintf(note, sizeof note, "asked for %" PRIu64 " ms", c->hosts[i].asked_ms);
    report_string(r, "capture_kind", xp_span_str(kinds[c->hosts[i].kind]), note[0] ? note : NULL);
}

void coverage_metrics(struct report *r, const struct coverage *c)
{
    struct sum s = add_up(c);
    if (s.devices)
        report_u64(r, "devices", s.devices, NULL);
    else
        report_na(r, "devices", "no device has a plane in the profile");
    expected_metrics(r, &s, c->n);
    dropped_metric(r, &s);
    kind_metric(r, c);
}
