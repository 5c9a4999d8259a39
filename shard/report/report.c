#include "shard/report/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/utf8.h"
#include "shard/report/report_int.h"

#define SECTION_MAX (REPORT_MAX + (64 << 10))
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 100000
#define TEXT_MAX ((size_t)1 << 20)

static const struct metric {
    const char *id, *label, *unit, *definition;
} metrics[] = {
#define METRIC(id, label, unit, definition) {#id, label, unit, definition},
#include "shard/report/metrics.def"
#undef METRIC
};

/* --- begin --- */

static enum xp_status number(struct xp_span s, const char *name, uint64_t min, uint64_t max,
                             uint64_t *v, struct xp_error *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        n = s.p[i] >= '0' && s.p[i] <= '9' && n <= max ? n * 10 + (s.p[i] - '0') : UINT64_MAX / 20;
        if (n > max)
            return xp_fail(err, XP_BAD_REQUEST, 0, "%s is a number from %llu to %llu", name,
                           (unsigned long long)min, (unsigned long long)max);
    }
    if (s.n && n < min)
        return xp_fail(err, XP_BAD_REQUEST, 0, "%s is a number from %llu to %llu", name,
                       (unsigned long long)min, (unsigned long long)max);
    if (s.n)
        *v = n;
    return XP_OK;
}

static void section_open(struct report_section *s, bool list)
{
    xp_buf_init(&s->b, SECTION_MAX);
    xp_json_init(&s->j, &s->b);
    if (list)
        xp_json_arr(&s->j);
}

/* filter=/such/ */
static enum xp_status read_pattern(struct report *r, struct xp_error *err)
{
    struct xp_span f = r->filter;
    if (f.n < 3 || f.p[0] != '/' || f.p[f.n - 1] != '/')
        return XP_OK;
    struct xp_regex *x = xp_arena_alloc(r->a, sizeof *x);
    if (!x)
        return xp_fail(err, XP_BUSY, 0, "no memory left for the filter");
    r->pattern = x;
    return xp_regex_parse(x, xp_span_of(f.p + 1, f.n - 2), err);
}

enum xp_status report_begin(struct report *r, const struct report_ask *ask, struct xp_arena *a,
                            struct out *out, struct xp_error *err)
{
    *r = (struct report){.a = a,
                         .out = out,
                         .tool = ask->tool,
                         .title = ask->title,
                         .question = ask->question,
                         .range = ask->range,
                         .hosts = ask->hosts,
                         .nhosts = ask->nhosts,
                         .csv = ask->csv,
                         .limit = ask->csv ? UINT64_MAX : LIMIT_DEFAULT,
                         .sort = ask->sort,
                         .filter = ask->filter,
                         .table = ask->table};
    XP_TRY(number(ask->limit, "limit", 1, LIMIT_MAX, &r->limit, err));
    XP_TRY(number(ask->skip, "skip", 0, UINT64_MAX / 40, &r->skip, err));
    if (r->sort.n > 256 || r->filter.n > 1024)
        return xp_fail(err, XP_BAD_REQUEST, 0, "sort or filter is longer than 256 or 1024 bytes");
    XP_TRY(read_pattern(r, err));
    section_open(&r->metrics, true);
    section_open(&r->tables, true);
    section_open(&r->series, true);
    section_open(&r->notes, true);
    section_open(&r->links, true);
    section_open(&r->tree, false);
    xp_buf_init(&r->verdict, 1024);
    xp_buf_init(&r->text, TEXT_MAX + 1024);
    xp_buf_init(&r->table_ids, 4096);
    if (r->csv)
        out->content_type = "text/csv";
    return XP_OK;
}

size_t report_room(const struct report *r)
{
    size_t used = r->metrics.b.n + r->tables.b.n + r->series.b.n + r->notes.b.n + r->links.b.n +
                  r->tree.b.n + r->text.n;
    return used < REPORT_MAX ? REPORT_MAX - used : 0;
}

/* --- pieces --- */

void report_write_key(struct xp_json *j, const char *key, const char *value)
{
    xp_json_key(j, key);
    if (value)
        xp_json_str(j, value);
    else
        xp_json_null(j);
}

/* At most max bytes of s, cut between characters. */
static struct xp_span cut(struct xp_span s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max && (s.p[max] & 0xc0) == 0x80)
        max--;
    return xp_span_of(s.p, max);
}

void report_write_cell(struct xp_json *j, const struct report_cell *c)
{
    char id[24];
    switch (c->kind) {
    case REPORT_U64:
        xp_json_u64(j, c->u);
        break;
    case REPORT_I64:
        xp_json_i64(j, c->i);
        break;
    case REPORT_DOUBLE:
        xp_json_double(j, c->d);
        break;
    case REPORT_TEXT:
        xp_json_span(j, cut(c->s, REPORT_CELL_MAX));
        break;
    case REPORT_ID:
        snprintf(id, sizeof id, "%llu", (unsigned long long)c->u);
        xp_json_str(j, id);
        break;
    case REPORT_BOOL:
        xp_json_bool(j, c->b);
        break;
    default:
        xp_json_null(j);
    }
}

/* --- metrics --- */

static const struct metric *find(const char *id)
{
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(metrics[i].id, id) == 0)
            return &metrics[i];
    return NULL;
}

static void write_spread(struct xp_json *j, const struct report_spread *s)
{
    xp_json_key(j, "spread");
    if (!s) {
        xp_json_null(j);
        return;
    }
    const struct {
        const char *key;
        double v;
    } of[] = {{"min", s->min}, {"max", s->max}, {"sd", s->sd}};
    xp_json_obj(j);
    for (int i = 0; i < 3; i++) {
        xp_json_key(j, of[i].key);
        if (s->whole && of[i].v > -9e18 && of[i].v < 9e18)
            xp_json_i64(j, (int64_t)(of[i].v + (of[i].v < 0 ? -0.5 : 0.5)));
        else
            xp_json_double(j, of[i].v);
    }
    xp_json_key(j, "max_host");
    if (s->max_host.n)
        xp_json_span(j, s->max_host);
    else
        xp_json_null(j);
    xp_json_obj_end(j);
}

static void csv_metric(struct report *r, const struct metric *m, const struct report_cell *v,
                       const char *reason, const char *note)
{
    struct xp_json j;
    if (!xp_span_eq(r->table, XP_SPAN_LIT("metrics")))
        return;
    if (!r->nmetrics)
        xp_buf_str(&r->out->text, "\"id\",\"value\",\"unit\",\"reason\",\"note\"\r\n");
    xp_buf_fmt(&r->out->text, "\"%s\",", m->id);
    xp_json_init(&j, &r->out->text);
    if (v->kind != REPORT_NONE)
        report_write_cell(&j, v);
    xp_buf_fmt(&r->out->text, ",\"%s\",\"%s\",\"%s\"\r\n", m->unit, reason ? reason : "",
               note ? note : "");
}

void report_metric(struct report *r, const char *id, struct report_cell v, const char *reason,
                   const char *note, const struct report_spread *spread)
{
    const struct metric *m = find(id);
    struct xp_json *j = &r->metrics.j;

    XP_ASSERT(m);
    if (v.kind == REPORT_DOUBLE && v.d - v.d != 0)
        v.kind = REPORT_NONE;
    if (v.kind == REPORT_NONE && !reason)
        reason = "it cannot be computed from this profile";
    if (r->csv) {
        csv_metric(r, m, &v, reason, note);
        r->nmetrics++;
        return;
    }
    xp_json_obj(j);
    report_write_key(j, "id", m->id);
    report_write_key(j, "label", m->label);
    report_write_key(j, "unit", m->unit);
    xp_json_key(j, "value");
    report_write_cell(j, &v);
    report_write_key(j, "reason", v.kind == REPORT_NONE ? reason : NULL);
    report_write_key(j, "note", note && note[0] ? note : NULL);
    report_write_key(j, "definition", m->definition);
    write_spread(j, v.kind == REPORT_NONE ? NULL : spread);
    xp_json_obj_end(j);
    r->nmetrics++;
}

void report_u64(struct report *r, const char *id, uint64_t v, const char *note)
{
    report_metric(r, id, report_of_u64(v), NULL, note, NULL);
}

void report_double(struct report *r, const char *id, double v, const char *note)
{
    report_metric(r, id, report_of_double(v), NULL, note, NULL);
}

void report_string(struct report *r, const char *id, struct xp_span v, const char *note)
{
    report_metric(r, id, report_of_text(v), NULL, note, NULL);
}

void report_na(struct report *r, const char *id, const char *reason, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, reason);
    vsnprintf(text, sizeof text, reason, ap);
    va_end(ap);
    report_metric(r, id, report_none(), text, NULL, NULL);
}

/* --- words --- */

void report_verdict(struct report *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->verdict.n = 0;
    xp_buf_str(&r->verdict, text);
}

void report_note(struct report *r, enum report_severity severity, const char *code, const char *fmt,
                 ...)
{
    static const char *const names[] = {"info", "warning", "error"};
    struct xp_json *j = &r->notes.j;
    char text[768];
    va_list ap;

    if (r->nnotes++ >= REPORT_NOTES_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    xp_json_obj(j);
    report_write_key(j, "severity", names[severity]);
    report_write_key(j, "code", code);
    report_write_key(j, "text", text);
    xp_json_obj_end(j);
}

void report_text(struct report *r, struct xp_span text)
{
    size_t room = report_room(r) / 2; /* escapes take place */
    struct xp_span whole = text;
    r->text.n = 0;
    text = cut(text, room < TEXT_MAX ? room : TEXT_MAX);
    xp_buf_span(&r->text, text);
    if (text.n < whole.n)
        report_note(r, REPORT_INFO, "text_cut", "the text is cut: %zu of %zu bytes are shown",
                    text.n, whole.n);
}

void report_link(struct report *r, const char *table, const char *column)
{
    struct xp_json *j = &r->links.j;
    xp_json_obj(j);
    report_write_key(j, "table", table);
    report_write_key(j, "column", column);
    xp_json_obj_end(j);
}

/* --- end --- */

static void write_hosts(const struct report *r, struct xp_json *j)
{
    xp_json_key(j, "hosts");
    xp_json_arr(j);
    for (uint32_t i = 0; i < r->nhosts; i++)
        if (r->hosts[i].missing.status == XP_OK)
            xp_json_span(j, r->hosts[i].name);
    xp_json_arr_end(j);
    xp_json_key(j, "missing_hosts");
    xp_json_arr(j);
    for (uint32_t i = 0; i < r->nhosts; i++) {
        const struct xp_error *e = &r->hosts[i].missing;
        if (e->status == XP_OK)
            continue;
        xp_json_obj(j);
        xp_json_key(j, "host"), xp_json_span(j, r->hosts[i].name);
        report_write_key(j, "code", xp_status_code(e->status));
        report_write_key(j, "detail", e->text);
        xp_json_key(j, "offset");
        if (e->status == XP_CORRUPT)
            xp_json_u64(j, e->offset);
        else
            xp_json_null(j);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

static void note_damage(struct report *r)
{
    for (uint32_t i = 0; i < r->nhosts; i++) {
        const struct xp_error *e = &r->hosts[i].damage;
        struct xp_span name = cut(r->hosts[i].name, 200);
        if (r->hosts[i].missing.status == XP_OK && e->status != XP_OK)
            report_note(r, REPORT_WARNING, "partial_profile",
                        "%.*s: the profile is damaged at byte %llu (%s): only what is before it "
                        "is counted",
                        (int)name.n, (const char *)name.p, (unsigned long long)e->offset, e->text);
    }
    if (r->nnotes > REPORT_NOTES_MAX)
        r->nnotes = REPORT_NOTES_MAX;
}

static void write_range(const struct report *r, struct xp_json *j)
{
    const struct report_range *g = r->range;
    xp_json_key(j, "range");
    if (!g || g->ignored) {
        xp_json_null(j);
        return;
    }
    xp_json_obj(j);
    xp_json_key(j, "t0"), xp_json_i64(j, g->t0_ps);
    xp_json_key(j, "t1"), xp_json_i64(j, g->t1_ps);
    report_write_key(j, "steps", g->steps[0] ? g->steps : NULL);
    report_write_key(j, "label", g->label);
    xp_json_obj_end(j);
}

static void write_buf(struct xp_json *j, const char *key, const struct xp_buf *b)
{
    xp_json_key(j, key);
    if (b->n)
        xp_json_span(j, xp_buf_all(b));
    else
        xp_json_null(j);
}

static void write_section(struct xp_json *j, const char *key, struct report_section *s)
{
    xp_json_arr_end(&s->j);
    xp_json_key(j, key);
    xp_json_raw(j, xp_buf_all(&s->b));
}

static enum xp_status write_all(struct report *r, struct xp_error *err)
{
    struct xp_json j;
    if (r->range && r->range->ignored)
        report_note(r, REPORT_INFO, "range_ignored",
                    "this is about the whole run, not about %s: programs are the same in any part "
                    "of it",
                    r->range->label);
    note_damage(r);
    xp_json_init(&j, &r->out->text);
    xp_json_obj(&j);
    report_write_key(&j, "tool", r->tool);
    report_write_key(&j, "title", r->title);
    report_write_key(&j, "question", r->question);
    write_hosts(r, &j);
    write_range(r, &j);
    write_buf(&j, "verdict", &r->verdict);
    write_section(&j, "metrics", &r->metrics);
    write_section(&j, "tables", &r->tables);
    write_section(&j, "series", &r->series);
    xp_json_key(&j, "tree");
    if (r->tree.b.n)
        xp_json_raw(&j, xp_buf_all(&r->tree.b));
    else
        xp_json_null(&j);
    write_buf(&j, "text", &r->text);
    write_section(&j, "notes", &r->notes);
    write_section(&j, "links", &r->links);
    xp_json_obj_end(&j);
    if (r->tables.b.failed || r->series.b.failed || r->tree.b.failed || r->metrics.b.failed)
        return xp_fail(err, XP_TOO_LARGE, 0, "the report is larger than %zu bytes", REPORT_MAX);
    return XP_OK;
}

static enum xp_status check_csv(const struct report *r, struct xp_error *err)
{
    if (r->csv_done || (xp_span_eq(r->table, XP_SPAN_LIT("metrics")) && r->nmetrics))
        return XP_OK;
    return xp_fail(err, XP_NOT_FOUND, 0, "%s has no table%s%.*s%s; there are: %.*s metrics",
                   r->tool, r->table.n ? " \"" : "", (int)(r->table.n < 60 ? r->table.n : 60),
                   r->table.n ? (const char *)r->table.p : "", r->table.n ? "\"" : "",
                   (int)(r->table_ids.n < 100 ? r->table_ids.n : 100),
                   r->table_ids.n ? (const char *)r->table_ids.p : "");
}

enum xp_status report_end(struct report *r, enum xp_status status, struct xp_error *err)
{
    if (status == XP_OK && r->busy)
        status = xp_fail(err, XP_BUSY, 0, "no memory left for the report");
    if (status == XP_OK)
        status = r->csv ? check_csv(r, err) : write_all(r, err);
    xp_buf_fini(&r->metrics.b);
    xp_buf_fini(&r->tables.b);
    xp_buf_fini(&r->series.b);
    xp_buf_fini(&r->tree.b);
    xp_buf_fini(&r->notes.b);
    xp_buf_fini(&r->links.b);
    xp_buf_fini(&r->verdict);
    xp_buf_fini(&r->text);
    xp_buf_fini(&r->table_ids);
    return status;
}
