#include <math.h>

#include "server/runfacts_int.h"
#include "server/runs_int.h"

enum type { NUMBER, TEXT };

static const struct {
    const char *metric;
    enum type type;
} rows[FACTS_N] = {
#define FACT(symbol, metric, type) {metric, type},
#include "server/runfacts.def"
#undef FACT
};

void run_facts_free(struct run_facts *f)
{
    for (int i = 0; i < FACTS_N; i++)
        free(f->v[i].text);
    free(f->problem);
    free(f->missing);
    free(f);
}

void run_facts_unref(const struct run_facts *f)
{
    struct run_facts *own = (struct run_facts *)f;
    if (f && atomic_fetch_sub(&own->refs, 1) == 1)
        run_facts_free(own);
}

static struct run_facts *facts_new(void)
{
    struct run_facts *f = must(calloc(1, sizeof *f));
    atomic_store(&f->refs, 1);
    return f;
}

/* Cut before a character that does not fit. */
static char *text_of(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (!n)
        return NULL;
    if (n > RUNFACTS_TEXT_MAX)
        for (n = RUNFACTS_TEXT_MAX; n && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
            ;
    return must(strndup(s, n));
}

const struct run_facts *run_facts_failed(const char *sentence)
{
    struct run_facts *f = facts_new();
    f->problem = text_of(sentence);
    return f;
}

/* --- from a report --- */

static int row_of(const char *metric)
{
    for (int i = 0; metric && i < FACTS_N; i++)
        if (strcmp(rows[i].metric, metric) == 0)
            return i;
    return -1;
}

static bool is_number(const json_t *v)
{
    return json_is_number(v) && isfinite(json_number_value(v));
}

static void take_value(struct run_fact_value *v, enum type type, const json_t *value,
                       const char *beside)
{
    if (type == TEXT && json_is_string(value)) {
        v->known = true;
        v->text = text_of(json_string_value(value));
        return;
    }
    if (type == NUMBER && is_number(value)) {
        v->known = true;
        v->number = json_number_value(value);
    }
    v->text = text_of(beside);
}

static void take_metric(struct run_facts *f, const json_t *m)
{
    int row = row_of(json_string_value(json_object_get(m, "id")));
    const json_t *value = json_object_get(m, "value");
    if (row < 0 || f->v[row].known || f->v[row].text)
        return;
    const char *note = json_string_value(json_object_get(m, "note"));
    const char *reason = json_string_value(json_object_get(m, "reason"));
    take_value(&f->v[row], rows[row].type, value, json_is_null(value) ? reason : note);
}

/* Of hosts that cannot be read: whether one may be, later. */
static bool may_pass(const json_t *hosts)
{
    const json_t *h;
    bool any = false;
    size_t i;
    json_array_foreach(hosts, i, h)
    {
        const char *code = json_string_value(json_object_get(h, "code"));
        any |= !code || (strcmp(code, xp_status_code(XP_CORRUPT)) != 0 &&
                         strcmp(code, xp_status_code(XP_TOO_LARGE)) != 0);
    }
    return any;
}

static void take_missing(struct run_facts *f, const json_t *hosts)
{
    const json_t *first = json_array_get(hosts, 0);
    const char *host = json_string_value(json_object_get(first, "host"));
    const char *detail = json_string_value(json_object_get(first, "detail"));
    struct xp_buf b;
    f->n_missing = (uint32_t)json_array_size(hosts);
    if (!f->n_missing)
        return;
    f->passing = may_pass(hosts);
    xp_buf_init(&b, 4096);
    xp_buf_fmt(&b, "%s: %s", host ? host : "", detail ? detail : "it cannot be read");
    if (!b.failed) {
        xp_buf_byte(&b, 0);
        f->missing = text_of((const char *)b.p);
    }
    xp_buf_fini(&b);
}

const struct run_facts *run_facts_parse(struct xp_span report)
{
    json_t *j = json_loadb((const char *)report.p, report.n,
                           JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    const json_t *metrics = json_object_get(j, "metrics");
    struct run_facts *f = NULL;
    size_t i;
    json_t *m;
    if (json_is_array(metrics)) {
        f = facts_new();
        json_array_foreach(metrics, i, m) take_metric(f, m);
        take_missing(f, json_object_get(j, "missing_hosts"));
    }
    json_decref(j);
    return f;
}

/* --- to the list --- */

const char *run_capture_kind(const struct run *r, const struct run_facts *f)
{
    const char *slash = strrchr(r->name, '/');
    if (strncmp(slash ? slash + 1 : r->name, "auto-", 5) == 0)
        return "automatic";
    return f && f->v[FACT_KIND].known ? f->v[FACT_KIND].text : NULL;
}

static void write_value(struct xp_json *j, const struct run *r, const struct run_facts *f, int i)
{
    const struct run_fact_value *v = &f->v[i];
    const char *text = i == FACT_KIND ? run_capture_kind(r, f) : v->text;
    bool known = i == FACT_KIND ? text != NULL : v->known;
    xp_json_key(j, rows[i].metric);
    if (!known || (rows[i].type == TEXT && !text))
        xp_json_null(j);
    else if (rows[i].type == TEXT)
        xp_json_str(j, text);
    else if (v->number >= 0 && v->number < 9e15 && v->number == floor(v->number))
        xp_json_u64(j, (uint64_t)v->number);
    else
        xp_json_double(j, v->number);
}

/* Why values are null, or what is said beside numbers. */
static void write_beside(struct xp_json *j, const char *key, const struct run_facts *f, bool known,
                         const char *secret)
{
    xp_json_key(j, key);
    xp_json_obj(j);
    for (int i = 0; i < FACTS_N; i++) {
        const struct run_fact_value *v = &f->v[i];
        if (v->known != known || !v->text || (known && rows[i].type == TEXT))
            continue;
        xp_json_key(j, rows[i].metric);
        xp_json_str(j, secret && strstr(v->text, secret) ? "it cannot be told" : v->text);
    }
    xp_json_obj_end(j);
}

void run_facts_write(struct xp_json *j, const struct run *r, const struct run_facts *f,
                     const char *secret)
{
    if (!f || f->problem) {
        xp_json_null(j);
        return;
    }
    xp_json_obj(j);
    for (int i = 0; i < FACTS_N; i++)
        write_value(j, r, f, i);
    write_beside(j, "why", f, false, secret);
    write_beside(j, "notes", f, true, secret);
    xp_json_obj_end(j);
}

/* --- to and from the file --- */

static void set_text(json_t *to, const char *key, const char *text)
{
    json_t *v = text ? json_string(text) : NULL;
    if (text) /* v is NULL of what is no UTF-8 */
        json_object_set_new(to, key, v ? v : json_string("what it says is no text"));
}

json_t *run_facts_to_json(const struct run_facts *f)
{
    json_t *j = json_object(), *values = json_object(), *texts = json_object();
    for (int i = 0; i < FACTS_N; i++) {
        const struct run_fact_value *v = &f->v[i];
        if (v->known)
            json_object_set_new(values, rows[i].metric,
                                rows[i].type == TEXT ? json_true() : json_real(v->number));
        set_text(texts, rows[i].metric, v->text);
    }
    json_object_set_new(j, "values", values);
    json_object_set_new(j, "texts", texts);
    set_text(j, "problem", f->problem);
    set_text(j, "missing", f->missing);
    json_object_set_new(j, "n_missing", json_integer(f->n_missing));
    return j;
}

const struct run_facts *run_facts_of_json(json_t *j)
{
    const json_t *values = json_object_get(j, "values"), *texts = json_object_get(j, "texts");
    if (!json_is_object(values) || !json_is_object(texts))
        return NULL;
    struct run_facts *f = facts_new();
    for (int i = 0; i < FACTS_N; i++) {
        struct run_fact_value *v = &f->v[i];
        const json_t *value = json_object_get(values, rows[i].metric);
        v->text = text_of(json_string_value(json_object_get(texts, rows[i].metric)));
        v->known = rows[i].type == TEXT ? json_is_true(value) && v->text : is_number(value);
        if (v->known && rows[i].type == NUMBER)
            v->number = json_number_value(value);
    }
    f->problem = text_of(json_string_value(json_object_get(j, "problem")));
    f->missing = text_of(json_string_value(json_object_get(j, "missing")));
    json_int_t n = json_integer_value(json_object_get(j, "n_missing"));
    f->n_missing = n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
    return f;
}
