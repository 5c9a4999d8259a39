#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/gate.h"
#include "server/projects_int.h"

#define PROJECT_ROOTS_MAX 64
#define MEMBERS_MAX 4096
#define MEMBER_MAX 320

struct parse {
    struct xp_span text;
    const char *project; /* the one being read, or NULL */
    struct xp_error *err;
};

static void *must(void *p)
{
    XP_ASSERT(p);
    return p;
}

/* --- sentences --- */

/* The line of the first "word" behind that of the project, else the project's own; 0 when neither
 * is written so. The parser keeps no lines of what it has read. */
static size_t line_of(const struct parse *p, const char *word)
{
    const char *words[] = {p->project, word};
    struct xp_span rest = p->text;
    char quoted[MEMBER_MAX + 3];
    bool found = false;

    for (size_t i = 0; i < 2; i++) {
        if (!words[i])
            continue;
        int n = snprintf(quoted, sizeof quoted, "\"%s\"", words[i]);
        bool fits = n > 0 && (size_t)n < sizeof quoted;
        const uint8_t *at = fits && rest.n ? memmem(rest.p, rest.n, quoted, (size_t)n) : NULL;
        if (!at)
            break;
        rest = xp_span_of(at, rest.n - (size_t)(at - rest.p));
        found = true;
    }
    if (!found)
        return 0;
    size_t line = 1;
    for (const uint8_t *c = p->text.p; c < rest.p; c++)
        line += *c == '\n';
    return line;
}

__attribute__((format(printf, 3, 4))) static enum xp_status
wrong(const struct parse *p, const char *word, const char *format, ...)
{
    char text[160], where[128] = "";
    size_t line = line_of(p, word);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (p->project)
        snprintf(where, sizeof where, "project \"%.63s\": ", p->project);
    if (line)
        return xp_fail(p->err, XP_BAD_REQUEST, 0, "line %zu: %s%s", line, where, text);
    return xp_fail(p->err, XP_BAD_REQUEST, 0, "%s%s", where, text);
}

/* --- values --- */

/* A list of strings; absent is an empty one. */
static enum xp_status check_list(const struct parse *p, const char *field, const json_t *list,
                                 size_t max)
{
    if (list && !json_is_array(list))
        return wrong(p, field, "%s is a list of strings", field);
    if (json_array_size(list) > max)
        return wrong(p, field, "%s has more than %zu entries", field, max);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!s || !s[0])
            return wrong(p, field, "%s is a list of strings, none of them empty", field);
    }
    return XP_OK;
}

static char *lower(const char *s)
{
    char *copy = must(strdup(s));
    for (char *c = copy; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c += 'a' - 'A';
    return copy;
}

static bool has_text(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return name[0] != 0;
}

static enum xp_status read_member(const struct parse *p, const char *text, struct member *m)
{
    static const struct {
        const char *prefix;
        enum member_kind kind;
    } kinds[] = {{"user:", MEMBER_USER}, {"group:", MEMBER_GROUP}, {"domain:", MEMBER_DOMAIN}};

    if (strlen(text) > MEMBER_MAX)
        return wrong(p, text, "a member is longer than %d bytes", MEMBER_MAX);
    if (!strcmp(text, "members")) {
        m->kind = MEMBER_SIGNED_IN;
        return XP_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, n) != 0)
            continue;
        const char *name = text + n;
        bool at = strchr(name, '@') != NULL;
        if (!has_text(name) || (kinds[i].kind == MEMBER_USER && !at) ||
            (kinds[i].kind == MEMBER_DOMAIN && at))
            break;
        *m = (struct member){kinds[i].kind, lower(name)};
        return XP_OK;
    }
    return wrong(p, text, "\"%.80s\" is not user:E-MAIL, group:NAME, domain:MAIL-DOMAIN or members",
                 text);
}

static enum xp_status read_members(const struct parse *p, const char *field, const json_t *list,
                                   struct member_list *to)
{
    XP_TRY(check_list(p, field, list, MEMBERS_MAX));
    size_t n = json_array_size(list);
    to->v = must(calloc(n + 1, sizeof *to->v));
    for (; to->n < n; to->n++)
        XP_TRY(read_member(p, json_string_value(json_array_get(list, to->n)), &to->v[to->n]));
    return XP_OK;
}

static enum xp_status read_roots(const struct parse *p, const json_t *list, struct table_row *row)
{
    XP_TRY(check_list(p, "roots", list, PROJECT_ROOTS_MAX));
    size_t n = json_array_size(list);
    if (n == 0)
        return wrong(p, "roots", "it has no roots");
    row->roots = must(calloc(n, sizeof *row->roots));
    for (; row->n_roots < n; row->n_roots++)
        row->roots[row->n_roots] =
            must(strdup(json_string_value(json_array_get(list, row->n_roots))));
    return XP_OK;
}

static enum xp_status read_links(const struct parse *p, json_t *links, struct table_row *row)
{
    const char *key;
    json_t *v;

    if (!json_is_object(links))
        return wrong(p, "links", "links is an object");
    json_object_foreach(links, key, v)
    {
        if (!strcmp(key, "anyone") && json_is_boolean(v))
            row->links_anyone = json_is_true(v);
        else if (!strcmp(key, "max_days") && json_is_integer(v) && json_integer_value(v) >= 1 &&
                 json_integer_value(v) <= LINK_DAYS_MAX)
            row->links_max_days = (int)json_integer_value(v);
        else
            return wrong(p, key, "links has anyone (true or false) and max_days (1 to %d)",
                         LINK_DAYS_MAX);
    }
    return XP_OK;
}

static enum xp_status read_row(const struct parse *p, json_t *o, struct table_row *row)
{
    static const char *const lists[LISTS] = {"viewers", "editors", "admins"};
    const char *key;
    json_t *v;

    row->links_max_days = LINK_DAYS_MAX;
    if (!json_is_object(o))
        return wrong(p, NULL, "it is not an object");
    json_object_foreach(o, key, v) if (strcmp(key, "roots") != 0 && strcmp(key, "links") != 0 &&
                                       strcmp(key, lists[0]) != 0 && strcmp(key, lists[1]) != 0 &&
                                       strcmp(key, lists[2]) !=
                                           0) return wrong(p, key, "the field \"%.60s\" is unknown",
                                                           key);
    XP_TRY(read_roots(p, json_object_get(o, "roots"), row));
    for (int i = 0; i < LISTS; i++)
        XP_TRY(read_members(p, lists[i], json_object_get(o, lists[i]), &row->lists[i]));
    json_t *links = json_object_get(o, "links");
    return links ? read_links(p, links, row) : XP_OK;
}

/* --- the document --- */

bool project_is_name(struct xp_span name)
{
    if (name.n == 0 || name.n > PROJECT_NAME_MAX || name.p[0] == '-')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct table_row *)a)->name, ((const struct table_row *)b)->name);
}

static enum xp_status read_rows(struct parse *p, json_t *projects, struct table_rows *rows)
{
    const char *name;
    json_t *o;

    if (!json_is_object(projects) || json_object_size(projects) == 0)
        return wrong(p, "projects", "the table is {\"projects\": {NAME: {...}, ...}}");
    if (json_object_size(projects) > PROJECTS_MAX)
        return wrong(p, NULL, "there are more than %d projects", PROJECTS_MAX);
    rows->v = must(calloc(json_object_size(projects), sizeof *rows->v));
    json_object_foreach(projects, name, o)
    {
        p->project = NULL;
        if (!project_is_name(xp_span_str(name)))
            return wrong(p, name, "\"%.70s\" is no name: a-z, 0-9 and '-', at most %d", name,
                         PROJECT_NAME_MAX);
        p->project = name;
        struct table_row *row = &rows->v[rows->n++];
        row->name = must(strdup(name));
        XP_TRY(read_row(p, o, row));
    }
    qsort(rows->v, rows->n, sizeof *rows->v, by_name);
    return XP_OK;
}

enum xp_status table_parse(struct xp_span text, struct table_rows *rows, struct xp_error *err)
{
    struct parse p = {.text = text, .err = err};
    json_error_t je;
    const char *key;
    json_t *v;

    *rows = (struct table_rows){0};
    json_t *o = json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, &je);
    if (!o)
        return xp_fail(err, XP_BAD_REQUEST, 0, "line %d: %.180s", je.line, je.text);
    enum xp_status status = XP_OK;
    json_object_foreach(o, key, v) if (status == XP_OK && strcmp(key, "projects") != 0) status =
        wrong(&p, key, "the field \"%.60s\" is unknown", key);
    if (status == XP_OK)
        status = read_rows(&p, json_object_get(o, "projects"), rows);
    json_decref(o);
    return status;
}

void table_fini(struct table_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct table_row *row = &rows->v[i];
        for (size_t k = 0; k < row->n_roots; k++)
            free(row->roots[k]);
        for (int l = 0; l < LISTS; l++) {
            for (size_t k = 0; k < row->lists[l].n; k++)
                free(row->lists[l].v[k].name);
            free(row->lists[l].v);
        }
        free(row->roots);
        free(row->name);
    }
    free(rows->v);
    *rows = (struct table_rows){0};
}

/* --- members --- */

static bool same(const char *lowered, const char *name)
{
    for (; *lowered && *name; lowered++, name++)
        if (*lowered != (*name >= 'A' && *name <= 'Z' ? *name + ('a' - 'A') : *name))
            return false;
    return *lowered == *name;
}

static bool is_member(const struct member *m, const struct who *who)
{
    const char *at = strrchr(who->email, '@');
    switch (m->kind) {
    case MEMBER_SIGNED_IN:
        return true;
    case MEMBER_USER:
        return same(m->name, who->email);
    case MEMBER_DOMAIN:
        return at && same(m->name, at + 1);
    case MEMBER_GROUP:
        for (size_t i = 0; i < who->n_groups; i++)
            if (same(m->name, who->groups[i]))
                return true;
        return false;
    }
    return false;
}

bool member_list_has(const struct member_list *list, const struct who *who)
{
    for (size_t i = 0; who->kind == WHO_USER && i < list->n; i++)
        if (is_member(&list->v[i], who))
            return true;
    return false;
}
