/* GET, POST, DELETE captures, POST captures/continuous, POST captures/snapshot (docs/api.md). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/api.h"
#include "server/audit.h"
#include "server/capture/capture.h"

#define BODY_MAX 131072
#define DURATION_MS 2000
#define HOST_MAX 3 /* levels */
#define DETAIL_MAX 1024

static void tell(const struct ask *ask, const char *what, const char *outcome, const char *detail)
{
    audit(ask->app->audit, &(struct audit_event){.what = what,
                                                 .who = who_name(ask->who),
                                                 .project = ask->project->name,
                                                 .outcome = outcome,
                                                 .detail = detail});
}

/* Of a capture that there is. */
static void tell_capture(const struct ask *ask, const char *what, struct xp_span id)
{
    char detail[DETAIL_MAX];
    captures_name(ask->app->captures, id, detail, sizeof detail);
    tell(ask, what, "ok", detail);
}

static const char *reason_of(const struct ask *ask)
{
    if (!ask->app->captures)
        return "this is one of several frontends, which keep nothing: captures are made by an "
               "xprofd that does everything in one process (xprofd --logdir … --target …)";
    return captures_reason(ask->app->captures, ask->project);
}

/* The captures, for whoever may change something; NULL: the ask has been answered. */
static struct captures *captures_of(struct ask *ask, const char *what)
{
    struct xp_error err = {0};
    const char *reason = reason_of(ask);
    if (project_right(ask->project, ask->who) < RIGHT_EDIT) {
        tell(ask, what, "refused", "the right is missing");
        xp_fail(&err, XP_DENIED, 0, "to capture takes the right to edit in the project");
    } else if (reason) {
        xp_fail(&err, XP_NOT_FOUND, 0, "no captures here: %s", reason);
    } else {
        return ask->app->captures;
    }
    ask_problem(ask, &err);
    return NULL;
}

static void answer_json(struct ask *ask, int status, struct xp_buf *body)
{
    struct http_answer a;
    struct xp_error err = {0};
    if (body->failed) { /* never a part of it */
        xp_buf_fini(body);
        xp_fail(&err, XP_TOO_LARGE, 0, "the answer is too large: ask for one capture, with id=");
        ask_problem(ask, &err);
        return;
    }
    http_answer_init(&a, status, "application/json");
    http_answer_body(&a, body);
    ask_answer(ask, &a);
}

static void answer_one(struct ask *ask, int status, struct xp_span id)
{
    struct xp_error err = {0};
    struct xp_buf body;
    struct xp_json j;
    xp_buf_init(&body, CAPTURE_JSON_MAX);
    xp_json_init(&j, &body);
    if (captures_write_one(ask->app->captures, id, &j, &err) == XP_OK) {
        answer_json(ask, status, &body);
        return;
    }
    xp_buf_fini(&body);
    ask_problem(ask, &err);
}

/* --- GET --- */

static void write_none(struct xp_json *j, const char *reason)
{
    static const char *const lists[] = {"targets", "continuous", "captures"};
    xp_json_obj(j);
    xp_json_key_bool(j, "enabled", false);
    xp_json_key(j, "reason");
    xp_json_str(j, reason);
    xp_json_key(j, "mode");
    xp_json_null(j);
    xp_json_key(j, "location");
    xp_json_null(j);
    for (size_t i = 0; i < 3; i++) {
        xp_json_key(j, lists[i]);
        xp_json_arr(j);
        xp_json_arr_end(j);
    }
    xp_json_obj_end(j);
}

void api_captures(struct ask *ask)
{
    const char *reason = reason_of(ask);
    struct xp_span id = ask_arg(ask, "id");
    struct xp_error err = {0};
    struct xp_buf body;
    struct xp_json j;

    if (id.p && !reason) {
        answer_one(ask, 200, id);
        return;
    }
    if (id.p) {
        xp_fail(&err, XP_NOT_FOUND, 0, "no captures here: %s", reason);
        ask_problem(ask, &err);
        return;
    }
    xp_buf_init(&body, CAPTURE_JSON_MAX);
    xp_json_init(&j, &body);
    if (reason)
        write_none(&j, reason);
    else
        captures_write(ask->app->captures, &j);
    answer_json(ask, 200, &body);
}

/* --- what is wished for --- */

/* The body, and the wish that points into it. */
struct body {
    json_t *o;
    const char *names[CAPTURE_TARGETS_MAX];
    struct target_option options[TARGET_OPTIONS_MAX];
    struct capture_wish wish;
};

static enum xp_status read_names(struct body *b, bool may_lack, struct xp_error *err)
{
    const json_t *list = json_object_get(b->o, "targets"), *name;
    size_t i;
    if (!list && may_lack)
        return XP_OK;
    if (!json_is_array(list) || json_array_size(list) == 0 ||
        json_array_size(list) > CAPTURE_TARGETS_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "targets is a list of 1 to %d names of registered targets",
                       CAPTURE_TARGETS_MAX);
    json_array_foreach(list, i, name)
    {
        struct xp_span text =
            xp_span_of((const uint8_t *)json_string_value(name), json_string_length(name));
        if (!json_is_string(name) || !target_name_ok(text))
            return xp_fail(err, XP_BAD_REQUEST, 0, "targets[%zu] is no name of a target", i);
        b->names[i] = json_string_value(name);
    }
    b->wish.targets = b->names;
    b->wish.n = json_array_size(list);
    return XP_OK;
}

static enum xp_status read_run(struct body *b, struct xp_error *err)
{
    const json_t *run = json_object_get(b->o, "run");
    struct xp_span text =
        xp_span_of((const uint8_t *)json_string_value(run), json_string_length(run));
    if (!run || json_is_null(run) || (json_is_string(run) && text.n == 0))
        return XP_OK;
    if (!json_is_string(run) || !target_run_ok(text))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "run is a name of 1 to %d letters, digits, '_' and '-'", TARGET_RUN_MAX);
    b->wish.run = json_string_value(run);
    return XP_OK;
}

static enum xp_status read_number(const json_t *o, const char *key, int64_t min, int64_t max,
                                  int64_t otherwise, int64_t *v, struct xp_error *err)
{
    const json_t *value = json_object_get(o, key);
    *v = value ? json_integer_value(value) : otherwise;
    if ((!value || json_is_integer(value)) && *v >= min && *v <= max)
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0, "%s is a whole number from %lld to %lld", key,
                   (long long)min, (long long)max);
}

/* A field that is not known is a mistake: it would be left out silently. */
static enum xp_status check_fields(json_t *o, const char *const *known, struct xp_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(o, name, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], name) != 0)
            i++;
        if (!known[i])
            return xp_fail(err, XP_BAD_REQUEST, 0, "\"%.60s\" is no field of this", name);
    }
    return XP_OK;
}

static enum xp_status read_levels(struct body *b, struct xp_error *err)
{
    static const char *const known[] = {"host", "device", "python", NULL};
    json_t *levels = json_object_get(b->o, "levels");
    int64_t host, device, python;
    if (levels && !json_is_object(levels))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "levels is {\"host\":0..3,\"device\":0..1,\"python\":0..1}");
    XP_TRY(check_fields(levels, known, err));
    XP_TRY(read_number(levels, "host", 0, HOST_MAX, 2, &host, err));
    XP_TRY(read_number(levels, "device", 0, 1, 1, &device, err));
    XP_TRY(read_number(levels, "python", 0, 1, 0, &python, err));
    b->wish.levels = (struct target_levels){(int)host, (int)device, (int)python};
    return XP_OK;
}

static bool is_option_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && n <= 64 && !s[n];
}

static enum xp_status read_option(struct target_option *o, const char *name, const json_t *value,
                                  struct xp_error *err)
{
    *o = (struct target_option){.type = OPTION_STRING};
    if (!is_option_name(name))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "options: a name is 1 to 64 letters, digits and '_'");
    snprintf(o->name, sizeof o->name, "%s", name);
    if (json_is_boolean(value)) {
        o->type = OPTION_BOOL;
        o->number = json_is_true(value);
    } else if (json_is_integer(value)) {
        o->type = OPTION_INTEGER;
        o->number = json_integer_value(value);
    } else if (json_is_string(value) && json_string_length(value) <= TARGET_OPTION_BYTES) {
        snprintf(o->text, sizeof o->text, "%s", json_string_value(value));
    } else {
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "options.%.64s is a text of at most %d bytes, true, false or a whole number",
                       name, TARGET_OPTION_BYTES);
    }
    return XP_OK;
}

static enum xp_status read_options(struct body *b, struct xp_error *err)
{
    json_t *options = json_object_get(b->o, "options"), *value;
    const char *name;
    if (!options || json_is_null(options))
        return XP_OK;
    if (!json_is_object(options) || json_object_size(options) > TARGET_OPTIONS_MAX)
        return xp_fail(err, XP_BAD_REQUEST, 0, "options is an object of at most %d options",
                       TARGET_OPTIONS_MAX);
    json_object_foreach(options, name, value)
        XP_TRY(read_option(&b->options[b->wish.n_options++], name, value, err));
    b->wish.options = b->options;
    return XP_OK;
}

static enum xp_status read_body(struct ask *ask, struct body *b, struct xp_error *err)
{
    struct xp_span body = http_request(ask->ex)->body;
    json_error_t at;
    *b = (struct body){.wish.by = ask->who->kind == WHO_USER ? who_name(ask->who) : NULL};
    if (body.n && body.n <= BODY_MAX)
        b->o = json_loadb((const char *)body.p, body.n, JSON_REJECT_DUPLICATES, &at);
    if (json_is_object(b->o))
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "the body is an object of JSON, such as "
                   "{\"targets\":[\"worker-0\"],\"duration_ms\":2000}");
}

static enum xp_status read_wish(struct body *b, struct xp_error *err)
{
    static const char *const known[] = {"targets", "run",     "duration_ms", "delay_ms",
                                        "levels",  "options", NULL};
    int64_t duration, delay;
    XP_TRY(check_fields(b->o, known, err));
    XP_TRY(read_names(b, false, err));
    XP_TRY(read_run(b, err));
    XP_TRY(read_number(b->o, "duration_ms", CAPTURE_MS_MIN, CAPTURE_MS_MAX, DURATION_MS, &duration,
                       err));
    XP_TRY(read_number(b->o, "delay_ms", 0, CAPTURE_MS_MAX, 0, &delay, err));
    XP_TRY(read_levels(b, err));
    b->wish.duration_ms = (uint32_t)duration;
    b->wish.delay_ms = (uint32_t)delay;
    return read_options(b, err);
}

/* --- POST and DELETE captures --- */

static void finish_new(struct ask *ask, const char *what, enum xp_status status, const char *id,
                       const struct xp_error *err)
{
    if (status == XP_OK) {
        tell_capture(ask, what, xp_span_str(id));
        answer_one(ask, 202, xp_span_str(id));
    } else {
        tell(ask, what, "failed", err->text);
        ask_problem(ask, err);
    }
}

void api_captures_begin(struct ask *ask)
{
    struct captures *c = captures_of(ask, "capture_begun");
    char id[CAPTURE_ID_N + 1] = "";
    struct xp_error err = {0};
    struct body b;

    if (!c)
        return;
    enum xp_status status = read_body(ask, &b, &err);
    if (status == XP_OK)
        status = read_wish(&b, &err);
    if (status == XP_OK)
        status = captures_begin(c, &b.wish, id, &err);
    json_decref(b.o);
    finish_new(ask, "capture_begun", status, id, &err);
}

void api_captures_snapshot(struct ask *ask)
{
    static const char *const known[] = {"targets", "run", NULL};
    struct captures *c = captures_of(ask, "capture_snapshot");
    char id[CAPTURE_ID_N + 1] = "";
    struct xp_error err = {0};
    struct body b;

    if (!c)
        return;
    enum xp_status status = read_body(ask, &b, &err);
    if (status == XP_OK)
        status = check_fields(b.o, known, &err);
    if (status == XP_OK)
        status = read_names(&b, true, &err);
    if (status == XP_OK)
        status = read_run(&b, &err);
    b.wish.levels.device = 1;
    if (status == XP_OK)
        status = captures_snapshot(c, &b.wish, id, &err);
    json_decref(b.o);
    finish_new(ask, "capture_snapshot", status, id, &err);
}

void api_captures_end(struct ask *ask)
{
    struct captures *c = captures_of(ask, "capture_ended");
    struct xp_error err = {0};
    char id[CAPTURE_ID_N + 1]; /* the argument's is gone with the ask */

    if (!c)
        return;
    struct xp_span arg = ask_arg(ask, "id");
    bool drop = xp_span_eq(ask_arg(ask, "drop"), XP_SPAN_LIT("1"));
    const char *what = drop ? "capture_dropped" : "capture_ended";
    if (captures_end(c, arg, drop, &err) != XP_OK) {
        tell(ask, what, "failed", err.text);
        ask_problem(ask, &err);
        return;
    }
    snprintf(id, sizeof id, "%.*s", (int)arg.n, (const char *)arg.p);
    tell_capture(ask, what, arg);
    answer_one(ask, 202, xp_span_str(id));
}

/* --- POST captures/continuous --- */

static const char *word_of(bool on)
{
    return on ? "continuous_started" : "continuous_stopped";
}

/* Of each target, before the answer. */
static void on_change(void *ctx, bool on, const char *target, const char *why)
{
    char detail[DETAIL_MAX];
    snprintf(detail, sizeof detail, "%s%s%s", target, why ? ": " : "", why ? why : "");
    tell(ctx, word_of(on), why ? "failed" : "ok", detail);
}

static void on_changed(void *ctx, struct xp_buf *json)
{
    answer_json(ctx, 200, json);
}

void api_captures_continuous(struct ask *ask)
{
    static const char *const known[] = {"targets", "levels", "on", NULL};
    struct captures *c = captures_of(ask, "continuous");
    struct xp_error err = {0};
    struct body b;
    const struct captures_heard heard = {on_change, on_changed, ask};
    const char *what = "continuous";

    if (!c)
        return;
    enum xp_status status = read_body(ask, &b, &err);
    if (status == XP_OK)
        status = check_fields(b.o, known, &err);
    if (status == XP_OK)
        status = read_names(&b, false, &err);
    if (status == XP_OK)
        status = read_levels(&b, &err);
    if (status == XP_OK && !json_is_boolean(json_object_get(b.o, "on")))
        status = xp_fail(&err, XP_BAD_REQUEST, 0, "on is true to start it and false to stop it");
    if (status == XP_OK) {
        bool on = json_is_true(json_object_get(b.o, "on"));
        what = word_of(on);
        status = captures_continuous(c, &b.wish, on, &heard, &err);
    }
    json_decref(b.o);
    if (status != XP_OK) { /* else the ask is, or was, somebody else's */
        tell(ask, what, "failed", err.text);
        ask_problem(ask, &err);
    }
}
