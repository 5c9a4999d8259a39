#include "server/capture/capture_int.h"

#include <stdio.h>

#define MESSAGE_CUT 120
#define ELLIPSIS "\xe2\x80\xa6"

static const char *const phases[] = {"waiting", "capturing", "collecting", "done"};

static void key_text(struct xp_json *j, const char *key, const char *text)
{
    xp_json_key(j, key);
    if (text)
        xp_json_str(j, text);
    else
        xp_json_null(j);
}

static void key_outcome(struct xp_json *j, enum outcome o)
{
    key_text(j, "outcome", o == OUTCOME_NONE ? NULL : outcome_text(o));
}

/* Of the list, which has up to 25,600: its beginning, and a sign that there is more. */
static void write_cut(struct xp_json *j, const char *text)
{
    char cut[MESSAGE_CUT + sizeof ELLIPSIS];
    size_t n = MESSAGE_CUT;
    if (strnlen(text, n + 1) <= n) {
        xp_json_str(j, text);
        return;
    }
    while (n && ((uint8_t)text[n] & 0xc0) == 0x80) /* not inside of a character */
        n--;
    snprintf(cut, sizeof cut, "%.*s" ELLIPSIS, (int)n, text);
    xp_json_str(j, cut);
}

static void write_target(const struct captures *c, const struct capture_target *t, bool whole,
                         struct xp_json *j)
{
    const char *message = t->message ? t->message : "";
    xp_json_obj(j);
    key_text(j, "target", c->targets[t->target].name);
    key_text(j, "phase", phases[t->phase]);
    key_outcome(j, t->outcome);
    xp_json_key(j, "grpc_status");
    if (t->grpc_status >= 0)
        xp_json_i64(j, t->grpc_status);
    else
        xp_json_null(j);
    xp_json_key(j, "message");
    if (whole)
        xp_json_str(j, message);
    else
        write_cut(j, message);
    key_text(j, "hint", t->hint);
    xp_json_key(j, "bytes");
    if (t->has_bytes)
        xp_json_u64(j, t->bytes);
    else
        xp_json_null(j);
    xp_json_key_u64(j, "attempts", t->attempts);
    xp_json_obj_end(j);
}

/* As they were asked for, so that it can be asked for again. */
static void write_options(const struct capture *k, struct xp_json *j)
{
    xp_json_key(j, "options");
    xp_json_obj(j);
    for (size_t i = 0; i < k->n_options; i++) {
        const struct target_option *o = &k->options[i];
        xp_json_key_span(j, xp_span_str(o->name));
        if (o->type == OPTION_STRING)
            xp_json_str(j, o->text);
        else if (o->type == OPTION_BOOL)
            xp_json_bool(j, o->number != 0);
        else
            xp_json_i64(j, o->number);
    }
    xp_json_obj_end(j);
}

void capture_write(const struct capture *k, bool whole, struct xp_json *j)
{
    xp_json_obj(j);
    key_text(j, "id", k->id);
    key_text(j, "kind", k->kind == CAPTURE_SNAPSHOT ? "snapshot" : "on_demand");
    key_text(j, "run", k->run);
    key_text(j, "phase", phases[k->phase]);
    key_outcome(j, k->outcome);
    xp_json_key_i64(j, "began_ms", k->began_ms);
    xp_json_key_i64(j, "ends_ms", k->ends_ms);
    xp_json_key(j, "ended_ms");
    if (k->ended_ms)
        xp_json_i64(j, k->ended_ms);
    else
        xp_json_null(j);
    xp_json_key_i64(j, "duration_ms", k->duration_ms);
    xp_json_key_i64(j, "delay_ms", k->delay_ms);
    key_text(j, "by", k->by);
    key_text(j, "note", k->note);
    xp_json_key(j, "levels");
    xp_json_obj(j);
    xp_json_key_i64(j, "host", k->levels.host);
    xp_json_key_i64(j, "device", k->levels.device);
    xp_json_key_i64(j, "python", k->levels.python);
    xp_json_obj_end(j);
    write_options(k, j);
    xp_json_key(j, "targets");
    xp_json_arr(j);
    for (size_t i = 0; i < k->n; i++)
        write_target(k->c, &k->targets[i], whole, j);
    xp_json_arr_end(j);
    xp_json_obj_end(j);
}

static bool is_busy(const struct captures *c, size_t target)
{
    for (const struct capture *k = c->first; k; k = k->next)
        for (size_t i = 0; k->phase != PHASE_DONE && i < k->n; i++)
            if (k->targets[i].target == target && k->targets[i].phase != PHASE_DONE)
                return true;
    return false;
}

void captures_write_continuous(const struct captures *c, struct xp_json *j)
{
    xp_json_arr(j);
    for (size_t i = 0; i < c->n; i++) {
        const struct session *s = &c->sessions[i];
        if (!s->runs)
            continue;
        xp_json_obj(j);
        key_text(j, "target", c->targets[i].name);
        xp_json_key(j, "since_ms");
        if (s->since_ms)
            xp_json_i64(j, s->since_ms);
        else
            xp_json_null(j);
        key_text(j, "state", s->unknown ? "unknown" : "running");
        key_text(j, "by", s->by);
        key_text(j, "message", s->message);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

static void write_targets(const struct captures *c, struct xp_json *j)
{
    xp_json_arr(j);
    for (size_t i = 0; i < c->n; i++) {
        xp_json_obj(j);
        key_text(j, "name", c->targets[i].name);
        key_text(j, "address", c->targets[i].address);
        xp_json_key(j, "bytes_per_s");
        if (c->rates[i])
            xp_json_u64(j, c->rates[i]);
        else
            xp_json_null(j);
        xp_json_key_bool(j, "busy", is_busy(c, i));
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

/* Locked. */
static size_t list_ids(const struct captures *c, char ids[][CAPTURE_ID_N + 1], size_t most)
{
    size_t n = 0;
    for (const struct capture *k = c->first; k && n < most; k = k->next)
        memcpy(ids[n++], k->id, sizeof k->id);
    return n;
}

/* The lock is let go between captures, so that none of those under way waits for the whole list:
 * each is of one moment, and one that is forgotten meanwhile is not told. */
void captures_write(struct captures *c, struct xp_json *j)
{
    char ids[CAPTURES_KEPT][CAPTURE_ID_N + 1];
    pthread_mutex_lock(&c->lock);
    size_t n = list_ids(c, ids, CAPTURES_KEPT);
    xp_json_obj(j);
    xp_json_key_bool(j, "enabled", true);
    xp_json_key(j, "reason");
    xp_json_null(j);
    key_text(j, "mode", c->pull ? "pull" : "write");
    key_text(j, "location", xp_store_name(c->store));
    xp_json_key(j, "targets");
    write_targets(c, j);
    xp_json_key(j, "continuous");
    captures_write_continuous(c, j);
    pthread_mutex_unlock(&c->lock);
    xp_json_key(j, "captures");
    xp_json_arr(j);
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&c->lock);
        const struct capture *k = capture_find(c, xp_span_str(ids[i]));
        if (k)
            capture_write(k, false, j);
        pthread_mutex_unlock(&c->lock);
    }
    xp_json_arr_end(j);
    xp_json_obj_end(j);
}
