/* POST uploads, POST upload_piece, DELETE uploads (docs/api.md). */
#include <jansson.h>
#include <stdio.h>

#include "lib/base/json_out.h"
#include "server/api.h"
#include "server/audit.h"
#include "server/uploads.h"

#define BODY_MAX 65536
#define ANSWER_MAX 4096

/* Pieces are not told of, only who may not send them: a file would be a thousand lines. */
static void tell(const struct ask *ask, const char *what, const char *outcome, const char *detail)
{
    audit(ask->app->audit, &(struct audit_event){.what = what,
                                                 .who = who_name(ask->who),
                                                 .project = ask->project->name,
                                                 .outcome = outcome,
                                                 .detail = detail});
}

/* The uploads; NULL: the ask has been answered with why there are none. */
static struct uploads *uploads_of(struct ask *ask)
{
    struct xp_error err = {0};
    if (ask->app->uploads && project_right(ask->project, ask->who) >= RIGHT_EDIT)
        return ask->app->uploads;
    if (ask->app->uploads) {
        xp_fail(&err, XP_DENIED, 0, "to upload a file takes the right to edit in the project");
        tell(ask, ask->route->path, "refused", "the right is missing");
    } else if (ask->app->upstream) {
        xp_fail(&err, XP_DENIED, 0,
                "no uploads here: frontends keep nothing, so the next one would not have the file; "
                "put it below %.80s",
                ask->project->location);
    } else {
        xp_fail(&err, XP_DENIED, 0, "uploads are off here (--upload-limit 0)");
    }
    ask_problem(ask, &err);
    return NULL;
}

static void answer_state(struct ask *ask, int status, const struct upload_state *s)
{
    struct http_answer a;
    struct xp_buf body;
    struct xp_json j;

    xp_buf_init(&body, ANSWER_MAX);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    xp_json_key(&j, "run");
    xp_json_str(&j, s->run);
    xp_json_key(&j, "bytes");
    xp_json_u64(&j, s->bytes);
    xp_json_key(&j, "received");
    xp_json_u64(&j, s->received);
    xp_json_key(&j, "piece_bytes");
    xp_json_u64(&j, UPLOAD_PIECE_MAX);
    xp_json_key(&j, "expires_ms");
    xp_json_i64(&j, s->expires_ms);
    xp_json_obj_end(&j);
    http_answer_init(&a, status, "application/json");
    http_answer_body(&a, &body);
    ask_answer(ask, &a);
}

static enum xp_status read_wish(struct xp_span body, json_t **out, struct xp_error *err)
{
    json_error_t at;
    json_t *o = NULL;
    if (body.n && body.n <= BODY_MAX)
        o = json_loadb((const char *)body.p, body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    const json_t *bytes = json_object_get(o, "bytes");
    if (json_is_string(json_object_get(o, "name")) && json_is_integer(bytes) &&
        json_integer_value(bytes) >= 0) {
        *out = o;
        return XP_OK;
    }
    json_decref(o);
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "the body is {\"name\":\"host.xplane.pb\",\"bytes\":123}: the file's name and "
                   "its size");
}

void api_uploads_begin(struct ask *ask)
{
    struct uploads *u = uploads_of(ask);
    struct upload_state s;
    struct xp_error err = {0};
    json_t *o = NULL;

    if (!u)
        return;
    enum xp_status status = read_wish(http_request(ask->ex)->body, &o, &err);
    if (status == XP_OK) {
        const json_t *name = json_object_get(o, "name");
        struct xp_span file =
            xp_span_of((const uint8_t *)json_string_value(name), json_string_length(name));
        uint64_t bytes = (uint64_t)json_integer_value(json_object_get(o, "bytes"));
        status = uploads_begin(u, ask->project->name, who_name(ask->who), file, bytes, &s, &err);
    }
    json_decref(o);
    if (status != XP_OK) {
        ask_problem(ask, &err);
        return;
    }
    tell(ask, "upload_made", "ok", s.run);
    answer_state(ask, 201, &s);
}

static bool number(struct xp_span s, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || *v > UINT64_MAX / 10 - 10)
            return false;
        else
            *v = *v * 10 + (uint64_t)(s.p[i] - '0');
    return s.n > 0;
}

void api_upload_piece(struct ask *ask)
{
    struct uploads *u = uploads_of(ask);
    enum xp_status status;
    struct upload_state s;
    struct xp_error err = {0};
    uint64_t at;

    if (!u)
        return;
    if (number(ask_arg(ask, "at"), &at))
        status = uploads_piece(u, ask->project->name, who_name(ask->who), ask_arg(ask, "run"), at,
                               http_request(ask->ex)->body, &s, &err);
    else
        status = xp_fail(&err, XP_BAD_REQUEST, 0, "at is the byte of the file where this begins");
    if (status == XP_OK)
        answer_state(ask, 200, &s);
    else
        ask_problem(ask, &err);
}

void api_uploads_drop(struct ask *ask)
{
    struct uploads *u = uploads_of(ask);
    struct xp_span run = ask_arg(ask, "run");
    struct xp_error err = {0};
    struct http_answer a;
    char name[UPLOAD_RUN_N + 1];

    if (!u)
        return;
    if (uploads_drop(u, ask->project->name, who_name(ask->who), run, &err) != XP_OK) {
        ask_problem(ask, &err);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)run.n, (const char *)run.p);
    tell(ask, "upload_removed", "ok", name);
    http_answer_init(&a, 204, "application/json");
    ask_answer(ask, &a);
}
