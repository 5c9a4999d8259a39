#include <stdio.h>

#include "shard/tools/reports_more.h"
#include "shard/tools/session.h"

/* What each core did in each step, for comparing cores. */

enum pod_kind {
    COMPUTE,
    TO_DEVICE,
    COLLECTIVES,
    HOST_COMPUTE,
    LAUNCH,
    INPUT,
    OUTPUT,
    COMPILE,
    OTHERS,
    POD_KINDS
};

static const char *const names[POD_KINDS] = {
    "Device compute", "Device to device", "Device collective communication",
    "Host compute",   "Kernel launch",    "Input",
    "Output",         "Compilation",      "All others",
};

static void kinds_of_events(const uint64_t of[STEP_TYPES], uint64_t ps[POD_KINDS])
{
    ps[COMPUTE] = of[STEP_COMPUTE_32] + of[STEP_COMPUTE_16];
    ps[TO_DEVICE] = of[STEP_DEVICE_TO_DEVICE] + of[STEP_WAIT_DEVICE];
    ps[COLLECTIVES] = of[STEP_COLLECTIVES];
    ps[HOST_COMPUTE] = of[STEP_HOST_COMPUTE];
    ps[LAUNCH] = of[STEP_PREPARE];
    ps[INPUT] = of[STEP_WAIT_INPUT] + of[STEP_HOST_TO_DEVICE] + of[STEP_WAIT_HOST];
    ps[OUTPUT] = of[STEP_DEVICE_TO_HOST];
    ps[COMPILE] = of[STEP_COMPILE];
    ps[OTHERS] = of[STEP_UNKNOWN];
}

/* Not in the published source: found by asking XProf 2.24.2 about ops of each category. */
static enum pod_kind kind_of_category(struct xp_span category)
{
    static const struct {
        const char *category;
        enum pod_kind kind;
    } kinds[] = {
        {"async-done", TO_DEVICE},
        {"send", TO_DEVICE},
        {"send-done", TO_DEVICE},
        {"recv", TO_DEVICE},
        {"recv-done", TO_DEVICE},
        {"megacore fusion", TO_DEVICE},
        {"all-reduce", COLLECTIVES},
        {"all-reduce fusion", COLLECTIVES},
        {"all-to-all", COLLECTIVES},
        {"infeed", INPUT},
        {"host recv", INPUT},
        {"host recv-done", INPUT},
        {"sparsecorev0 infeed", INPUT},
        {"sparsecorev0 infeed wait", INPUT},
        {"outfeed", OUTPUT},
        {"host send", OUTPUT},
        {"host send-done", OUTPUT},
        {"sparsecorev0 outfeed", OUTPUT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (xp_span_eq(category, xp_span_str(kinds[i].category)))
            return kinds[i].kind;
    return COMPUTE;
}

static void kinds_of_ops(const struct step_core *c, uint64_t ps[POD_KINDS])
{
    uint64_t infeed = 0;
    for (uint32_t i = 0; i < c->ops->ncategories; i++) {
        const struct op_category_time *t = &c->ops->categories[i];
        ps[kind_of_category(t->category)] += t->self_ps;
        if (xp_span_eq(t->category, XP_SPAN_LIT("infeed")))
            infeed += t->self_ps;
    }
    ps[INPUT] += c->tpu.infeed_ps - infeed; /* idle time in which the host sent input */
    ps[OTHERS] += c->tpu.idle_ps;
}

/* Of equals the one whose name is greater. */
static const char *bottleneck(const uint64_t ps[POD_KINDS])
{
    int best = 0;
    for (int i = 1; i < POD_KINDS; i++)
        if (ps[i] > ps[best] || (ps[i] == ps[best] && strcmp(names[i], names[best]) > 0))
            best = i;
    return names[best];
}

static void write_core(struct xp_json *j, const struct step *s, const struct step_core *c)
{
    uint64_t ps[POD_KINDS] = {0};
    char key[16];
    if (c->ops)
        kinds_of_ops(c, ps);
    else
        kinds_of_events(c->type_ps, ps);
    snprintf(key, sizeof key, "%u", c->key);
    xp_json_key_span(j, xp_span_str(key));
    xp_json_obj(j);
    xp_json_key(j, "hostName");
    xp_json_span(j, c->host->hostname);
    xp_json_key(j, "chipId");
    xp_json_u64(j, 0);
    xp_json_key(j, "nodeId");
    xp_json_u64(j, 0);
    xp_json_key(j, "stepNum");
    xp_json_u64(j, s->num);
    xp_json_key(j, "totalDurationUs");
    xp_json_double(j, (double)c->duration_ps / 1e6);
    xp_json_key(j, "stepBreakdownUs");
    xp_json_obj(j);
    for (int i = 0; i < POD_KINDS; i++) {
        snprintf(key, sizeof key, "%d", i + 1);
        xp_json_key_span(j, xp_span_str(key));
        xp_json_double(j, (double)ps[i] / 1e6);
    }
    xp_json_obj_end(j);
    xp_json_key(j, "bottleneck");
    xp_json_str(j, bottleneck(ps));
    xp_json_obj_end(j);
}

static void empty_array(struct xp_json *j, const char *key)
{
    xp_json_key(j, key);
    xp_json_arr(j);
    xp_json_arr_end(j);
}

/* TPU cores that the profile does not describe are left out. */
static void write_step(struct xp_json *j, const struct step *s)
{
    xp_json_obj(j);
    xp_json_key(j, "stepNum");
    xp_json_u64(j, s->num);
    xp_json_key(j, "podStatsPerCore");
    xp_json_obj(j);
    for (uint32_t i = 0; i < s->ncores; i++)
        if (!s->cores[i].sparse && (!s->cores[i].core || s->cores[i].core->has_details))
            write_core(j, s, &s->cores[i]);
    xp_json_obj_end(j);
    empty_array(j, "channelDb");
    xp_json_key(j, "coreIdToReplicaIdMap");
    xp_json_obj(j);
    xp_json_obj_end(j);
    empty_array(j, "allReduceOpDb");
    xp_json_obj_end(j);
}

static void write_diagnostics(struct xp_json *j, const struct step_db *db)
{
    const char *warning = session_step_warning(db);
    xp_json_key(j, "diagnostics");
    xp_json_obj(j);
    empty_array(j, "info");
    xp_json_key(j, "warnings");
    xp_json_arr(j);
    if (warning)
        xp_json_str(j, warning);
    xp_json_arr_end(j);
    empty_array(j, "errors");
    xp_json_obj_end(j);
}

static void write_kinds(struct xp_json *j)
{
    xp_json_key(j, "stepBreakdownEvents");
    xp_json_arr(j);
    for (int i = 0; i < POD_KINDS; i++) {
        xp_json_obj(j);
        xp_json_key(j, "id");
        xp_json_i64(j, i + 1);
        xp_json_key(j, "name");
        xp_json_str(j, names[i]);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

static enum xp_status render(struct xp_span merged, const struct tool_args *args,
                             struct xp_arena *scratch, struct out *out, struct xp_error *err)
{
    struct session s;
    struct step_db db;
    struct xp_json j;
    if (args->csv)
        return tool_no_csv(err);
    XP_TRY(session_open(merged, scratch, &s, err));
    XP_TRY(steps_combine(&s.steps, s.stats, false, scratch, &db, err));
    xp_json_init(&j, &out->text);
    xp_json_obj(&j);
    xp_json_key(&j, "deviceType");
    xp_json_span(&j, s.all.device_type);
    write_diagnostics(&j, &db);
    xp_json_key(&j, "podStatsSequence");
    xp_json_obj(&j);
    xp_json_key(&j, "podStatsMap");
    xp_json_arr(&j);
    for (uint32_t i = 0; i < db.n; i++) {
        write_step(&j, &db.steps[i]);
        out_flush(out);
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    write_kinds(&j);
    xp_json_obj_end(&j);
    return XP_OK;
}

const struct tool tool_pod_viewer = {
    .id = "pod_viewer",
    .map = session_map,
    .merge = session_merge,
    .render = render,
    .report = &report_pod_viewer,
};
