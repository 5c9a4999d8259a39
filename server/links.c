#include "server/links.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/base/json_out.h"
#include "server/audit.h"
#include "server/options.h"

#define DAY_S 86400
#define DEFAULT_DAYS 7
#define MINUTE_S 60
#define COOKIE "xprofd-link-"
#define COOKIES_MAX 6 /* of links, that a request may carry; the rest is not looked at */
#define COOKIES_DROPPED 4
#define LIST_BYTES ((size_t)1 << 20)
#define LINK_AFTER_MAX 2048 /* of a store's word for where a page begins */

struct links {
    struct xp_keyring *keys;
    struct linkstore *store;
};

enum xp_status links_new(const struct links_config *config, struct links **out,
                         struct xp_error *err)
{
    struct links *l = calloc(1, sizeof *l);
    XP_ASSERT(l);
    enum xp_status status =
        options_blame("link-keys", xp_keyring_open(config->keys, &l->keys, err), err);
    if (status == XP_OK)
        status = options_blame(
            "state",
            linkstore_open(config->state, config->bucket, LINKSTORE_LOOK_MS, &l->store, err), err);
    if (status != XP_OK) {
        links_free(l);
        return status;
    }
    *out = l;
    return XP_OK;
}

void links_free(struct links *l)
{
    if (!l)
        return;
    linkstore_close(l->store);
    xp_keyring_close(l->keys);
    free(l);
}

void links_stats(struct links *l, struct linkstore_stats *out)
{
    linkstore_stats(l->store, out);
}

static int64_t now_s(void)
{
    return xp_wall_ms() / 1000;
}

/* --- whom a link lets in --- */

static bool in_domain(const struct who *who, const char *domain)
{
    const char *at = who->kind == WHO_USER ? strrchr(who->email, '@') : NULL;
    return at && domain[0] && strcasecmp(at + 1, domain) == 0;
}

/* Why the link is not good for this project now; XP_OK: it is. *gone: it was once. */
static enum xp_status judge(struct links *l, const struct project *p, const struct link_claims *c,
                            bool *gone, struct xp_error *err)
{
    *gone = false;
    if (strcmp(c->project, p->name) != 0)
        return xp_fail(err, XP_DENIED, 0, "this link is of another project");
    if (c->expires_s <= now_s()) {
        *gone = true;
        return xp_fail(err, XP_DENIED, 0, "this link has expired: ask its maker for a new one");
    }
    if (c->audience == LINK_ANYONE && !p->links_anyone)
        return xp_fail(err, XP_DENIED, 0, "this project no longer lets links be for anyone");
    switch (linkstore_judge(l->store, c)) {
    case LINK_GOOD:
        return XP_OK;
    case LINK_REVOKED:
        *gone = true;
        return xp_fail(err, XP_DENIED, 0, "this link was revoked");
    default:
        return xp_fail(err, XP_BUSY, 0,
                       "it is not known at the moment which links are revoked; try again soon");
    }
}

static bool reaches(const struct link_claims *c, const struct who *who)
{
    return c->audience == LINK_ANYONE || (c->audience == LINK_DOMAIN && in_domain(who, c->domain));
}

bool links_admit(struct links *l, struct http_exchange *ex, const struct project *p,
                 const struct who *who, struct link_claims *c)
{
    struct xp_span header = http_header(ex, "cookie"), name, value, run;
    struct xp_buf wanted;
    bool found = false, gone;
    int seen = 0;

    xp_buf_init(&wanted, LINK_RUN_MAX);
    run = http_query_get(http_request(ex)->query, "run", &wanted) ? xp_buf_all(&wanted)
                                                                  : (struct xp_span){0};
    while (l && seen < COOKIES_MAX && http_cookie_next(&header, &name, &value)) {
        struct link_claims one;
        if (!xp_span_starts(name, XP_SPAN_LIT(COOKIE)))
            continue;
        seen++;
        if (link_open(l->keys, LINK_COOKIE, value, &one, NULL) != XP_OK ||
            judge(l, p, &one, &gone, NULL) != XP_OK || !reaches(&one, who))
            continue;
        /* Several links may be open: the one of this run is meant. */
        if (!found || run_same_name(xp_span_str(one.run), run))
            *c = one;
        found = true;
    }
    xp_buf_fini(&wanted);
    return found;
}

static bool is_one_of(const char *path, const char *const *v)
{
    for (; *v; v++)
        if (strcmp(path, *v) == 0)
            return true;
    return false;
}

static bool is_same(const char *name, struct xp_span a, struct xp_span b)
{
    return strcmp(name, "run") == 0 ? run_same_name(a, b) : xp_span_eq(a, b);
}

/* Each value of the parameter, and there is one. */
static bool always(struct xp_span query, const char *name, const char *value)
{
    struct xp_buf n, v;
    bool all = true, any = false;

    xp_buf_init(&n, ASK_QUERY_MAX);
    xp_buf_init(&v, ASK_QUERY_MAX);
    while (http_query_next(&query, &n, &v))
        if (xp_span_eq(xp_buf_all(&n), xp_span_str(name))) {
            any = true;
            all &= is_same(name, xp_buf_all(&v), xp_span_str(value));
        }
    all &= !n.failed && !v.failed;
    xp_buf_fini(&n);
    xp_buf_fini(&v);
    return any && all;
}

bool links_cover(const struct link_claims *c, const struct route *route, bool compatible,
                 struct xp_span query)
{
    static const char *const any[] = {"run", "progress", "events", NULL};
    static const char *const timeline[] = {"aggregate", "curve",  "event", "search",
                                           "tracks",    "window", NULL};
    static const char *const reports[] = {"report", "report_csv", NULL};
    bool all = c->tool[0] == 0;

    if (compatible || !(route->methods & METHOD_READ) || !always(query, "run", c->run))
        return false;
    if (is_one_of(route->path, any))
        return true;
    if (is_one_of(route->path, timeline))
        return all || strcmp(c->tool, "trace") == 0;
    /* Every page says how much of the run it is from. */
    return is_one_of(route->path, reports) &&
           (all || always(query, "tool", c->tool) || always(query, "tool", "coverage"));
}

/* --- opening one --- */

static void refuse(struct http_exchange *ex, int status, const struct xp_error *err)
{
    struct http_answer a;
    struct xp_buf body;

    if (err->status == XP_BUSY) {
        http_answer_problem(&a, err);
        http_answer(ex, &a);
        return;
    }
    xp_buf_init(&body, sizeof err->text + 2);
    xp_buf_fmt(&body, "%s\n", err->text);
    http_answer_init(&a, status, "text/plain; charset=utf-8");
    http_answer_body(&a, &body);
    http_answer(ex, &a);
}

/* What a browser without rights of its own keeps: the claims without the view. */
static void set_cookie(struct links *l, struct http_exchange *ex, const struct link_claims *c,
                       struct http_answer *a)
{
    struct link_claims kept = *c;
    struct xp_buf text;
    char id[LINK_ID_TEXT];

    link_id_text(c, id);
    memset(kept.view, 0, sizeof kept.view);
    xp_buf_init(&text, 2 * LINK_TOKEN_MAX);
    xp_buf_fmt(&text, COOKIE "%.8s=", id);
    link_seal(l->keys, LINK_COOKIE, &kept, &text, NULL);
    int64_t left = c->expires_s - now_s();
    /* No Path: the browser takes the folder of what was asked for, which is the project's, whatever
     * prefix a proxy puts before it. */
    xp_buf_fmt(&text, "; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
               (long long)(left < DAY_S ? left : DAY_S), http_request(ex)->tls ? "; Secure" : "");
    if (!text.failed)
        http_answer_header(a, "set-cookie", xp_buf_all(&text));
    xp_buf_fini(&text);
}

/* Of links opened before, so that they never fill a request's head: the browser forgets those that
 * come last in it. */
static void drop_cookies(struct http_exchange *ex, struct http_answer *a)
{
    struct xp_span header = http_header(ex, "cookie"), name, value;
    int seen = 0;

    while (http_cookie_next(&header, &name, &value) && seen < COOKIES_MAX + COOKIES_DROPPED) {
        char text[64];
        if (!xp_span_starts(name, XP_SPAN_LIT(COOKIE)) || name.n > 40 || ++seen < COOKIES_MAX)
            continue;
        snprintf(text, sizeof text, "%.*s=; Max-Age=0", (int)name.n, (const char *)name.p);
        http_answer_header(a, "set-cookie", xp_span_str(text));
    }
}

static void open_view(struct links *l, struct http_exchange *ex, const struct link_claims *c,
                      bool cookie)
{
    char to[LINK_VIEW_MAX + 8];
    struct http_answer a;

    snprintf(to, sizeof to, "./%s", c->view);
    http_answer_init(&a, 303, "text/plain");
    http_answer_header(&a, "location", xp_span_str(to));
    if (cookie) {
        drop_cookies(ex, &a);
        set_cookie(l, ex, c, &a);
    }
    http_answer(ex, &a);
}

bool links_answer(struct links *l, struct http_exchange *ex, const struct project *p,
                  const struct who *who, enum right right, struct xp_span token,
                  char id[LINK_ID_TEXT])
{
    struct link_claims c;
    struct xp_error err = {0};
    bool gone = false, cookie;

    id[0] = 0;
    if (!l) {
        xp_fail(&err, XP_DENIED, 0, "this server has no share links");
        refuse(ex, 404, &err);
        return true;
    }
    if (link_open(l->keys, LINK_URL, token, &c, &err) != XP_OK) {
        refuse(ex, 403, &err);
        return true;
    }
    if (judge(l, p, &c, &gone, &err) != XP_OK) {
        refuse(ex, gone ? 410 : 403, &err);
        return true;
    }
    cookie = right < RIGHT_VIEW;
    if (cookie && !reaches(&c, who)) {
        if (who->kind == WHO_NOBODY)
            return false;
        xp_fail(&err, XP_DENIED, 0,
                c.audience == LINK_DOMAIN ? "this link is for signed-in people of %s"
                                          : "this link is for members of the project",
                c.domain);
        refuse(ex, 403, &err);
        return true;
    }
    link_id_text(&c, id);
    open_view(l, ex, &c, cookie);
    return true;
}

/* --- the API --- */

static void tell(const struct ask *ask, const char *what, const char *id)
{
    audit(ask->app->audit, &(struct audit_event){.what = what,
                                                 .who = who_name(ask->who),
                                                 .project = ask->project->name,
                                                 .outcome = "ok",
                                                 .detail = id});
}

static struct links *links_of(struct ask *ask)
{
    struct xp_error err;
    if (ask->app->links)
        return ask->app->links;
    xp_fail(&err, XP_NOT_FOUND, 0,
            "this server makes no share links: it was started without --link-keys and --state");
    ask_problem(ask, &err);
    return NULL;
}

static void write_link(struct xp_json *j, const struct link_claims *c)
{
    char id[LINK_ID_TEXT];

    link_id_text(c, id);
    xp_json_key(j, "id");
    xp_json_str(j, id);
    xp_json_key(j, "run");
    xp_json_str(j, c->run);
    xp_json_key(j, "tool");
    if (c->tool[0])
        xp_json_str(j, c->tool);
    else
        xp_json_null(j);
    xp_json_key(j, "view");
    xp_json_str(j, c->view);
    xp_json_key(j, "audience");
    xp_json_str(j, link_audience_names[c->audience]);
    xp_json_key(j, "domain");
    if (c->domain[0])
        xp_json_str(j, c->domain);
    else
        xp_json_null(j);
    xp_json_key(j, "issued_ms");
    xp_json_i64(j, c->issued_s * 1000);
    xp_json_key(j, "expires_ms");
    xp_json_i64(j, c->expires_s * 1000);
}

static bool text_arg(const json_t *o, const char *name, char *to, size_t size, struct xp_error *err)
{
    const json_t *v = json_object_get(o, name);
    to[0] = 0;
    if (!v || json_is_null(v))
        return true;
    if (!json_is_string(v) || json_string_length(v) >= size ||
        strlen(json_string_value(v)) != json_string_length(v)) {
        xp_fail(err, XP_BAD_REQUEST, 0, "\"%s\" is no text of at most %zu bytes", name, size - 1);
        return false;
    }
    memcpy(to, json_string_value(v), json_string_length(v) + 1);
    return true;
}

static enum xp_status read_audience(const json_t *o, struct link_claims *c, struct xp_error *err)
{
    char word[16];
    if (!text_arg(o, "audience", word, sizeof word, err) ||
        !text_arg(o, "domain", c->domain, sizeof c->domain, err))
        return XP_BAD_REQUEST;
    int i = 0;
    while (i < LINK_AUDIENCES && strcmp(link_audience_names[i], word[0] ? word : "members") != 0)
        i++;
    if (i == LINK_AUDIENCES)
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"audience\" is members, domain or anyone");
    c->audience = (enum link_audience)i;
    if ((c->audience == LINK_DOMAIN) != (c->domain[0] != 0))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "\"domain\" is named for the audience domain, and only for it");
    if (strspn(c->domain, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
        strlen(c->domain))
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"domain\" is no name of a domain");
    return XP_OK;
}

static enum xp_status read_expiry(const json_t *o, const struct project *p, struct link_claims *c,
                                  struct xp_error *err)
{
    const json_t *v = json_object_get(o, "minutes");
    int64_t longest = (int64_t)p->links_max_days * DAY_S / MINUTE_S;
    int64_t minutes = DEFAULT_DAYS * DAY_S / MINUTE_S;

    if (minutes > longest)
        minutes = longest;
    if (v && (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > longest))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "\"minutes\" is how long the link lives: 1 to %lld here",
                       (long long)longest);
    if (v)
        minutes = json_integer_value(v);
    c->expires_s = now_s() + minutes * MINUTE_S;
    return XP_OK;
}

static enum xp_status read_claims(const json_t *o, const struct project *p, struct link_claims *c,
                                  struct xp_error *err)
{
    static const char *const known[] = {"run",    "tool",    "view", "audience",
                                        "domain", "minutes", NULL};
    const char *name;
    json_t *v;

    json_object_foreach((json_t *)o, name, v) if (!is_one_of(name, known)) return xp_fail(
        err, XP_BAD_REQUEST, 0, "unknown field \"%.40s\"", name);
    if (!text_arg(o, "run", c->run, sizeof c->run, err) ||
        !text_arg(o, "tool", c->tool, sizeof c->tool, err) ||
        !text_arg(o, "view", c->view, sizeof c->view, err))
        return XP_BAD_REQUEST;
    struct xp_span view = xp_span_str(c->view);
    const uint8_t *query = view.n ? memchr(view.p, '?', view.n) : NULL;
    if (!link_view_good(view) ||
        !always(xp_span_of(query + 1, view.n - (size_t)(query + 1 - view.p)), "run", c->run))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "\"view\" is a page of the run, such as trace?run=..., that names it");
    run_canonical_name(c->run);
    enum xp_status status = read_audience(o, c, err);
    return status == XP_OK ? read_expiry(o, p, c, err) : status;
}

static enum xp_status may_make(const struct ask *ask, const struct link_claims *c,
                               struct xp_error *err)
{
    if (c->audience == LINK_ANYONE && !ask->project->links_anyone)
        return xp_fail(err, XP_DENIED, 0, "this project does not let links be for anyone");
    if (c->audience != LINK_MEMBERS && project_right(ask->project, ask->who) < RIGHT_EDIT)
        return xp_fail(err, XP_DENIED, 0, "only an editor shares with people outside the project");
    return XP_OK;
}

static enum xp_status make(struct ask *ask, struct links *l, struct link_claims *c,
                           struct xp_buf *token, struct xp_error *err)
{
    struct xp_span body = http_request(ask->ex)->body;
    json_error_t at;
    json_t *o = json_loadb(body.n ? (const char *)body.p : "", body.n, JSON_REJECT_DUPLICATES, &at);
    enum xp_status status;

    if (!json_is_object(o))
        status = xp_fail(err, XP_BAD_REQUEST, 0, "the body is no JSON object: %.100s",
                         o ? "something else" : at.text);
    else
        status = read_claims(o, ask->project, c, err);
    json_decref(o);
    snprintf(c->project, sizeof c->project, "%s", ask->project->name);
    if (status == XP_OK)
        status = may_make(ask, c, err);
    if (status == XP_OK)
        status = ask_take_run(ask, xp_span_str(c->run), NULL, err);
    if (status == XP_OK)
        status = link_new_id(c, err);
    if (status != XP_OK)
        return status;
    c->issued_s = linkstore_issue_time(l->store, c->project, c->run, now_s());
    status = link_seal(l->keys, LINK_URL, c, token, err);
    return status == XP_OK ? linkstore_add(l->store, c, who_name(ask->who), err) : status;
}

void api_links_make(struct ask *ask)
{
    struct links *l = links_of(ask);
    struct link_claims c = {0};
    char id[LINK_ID_TEXT];
    struct xp_buf token, body;
    struct xp_error err = {0};
    struct http_answer a;
    struct xp_json j;

    if (!l)
        return;
    xp_buf_init(&token, LINK_TOKEN_MAX + 8);
    xp_buf_fmt(&token, LINKS_PATH);
    if (make(ask, l, &c, &token, &err) != XP_OK) {
        xp_buf_fini(&token);
        ask_problem(ask, &err);
        return;
    }
    link_id_text(&c, id);
    tell(ask, "link_made", id);
    xp_buf_init(&body, LIST_BYTES);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    write_link(&j, &c);
    xp_json_key(&j, "url");
    xp_json_span(&j, xp_buf_all(&token));
    xp_json_obj_end(&j);
    xp_buf_fini(&token);
    http_answer_init(&a, 201, "application/json");
    http_answer_body(&a, &body);
    ask_answer(ask, &a);
}

/* The parameter as text. */
static bool arg_text(const struct ask *ask, const char *name, char *to, size_t size)
{
    struct xp_span v = ask_arg(ask, name);
    if (v.n == 0 || v.n >= size || memchr(v.p, 0, v.n))
        return false;
    memcpy(to, v.p, v.n);
    to[v.n] = 0;
    if (strcmp(name, "run") == 0)
        run_canonical_name(to);
    return true;
}

static bool is_maker(const struct ask *ask, const char *by)
{
    return strcmp(by, who_name(ask->who)) == 0;
}

static void write_record(struct xp_json *j, const struct ask *ask, const struct link_record *r,
                         bool editor)
{
    xp_json_obj(j);
    write_link(j, &r->claims);
    xp_json_key(j, "by");
    xp_json_str(j, r->by);
    xp_json_key(j, "revoked");
    xp_json_bool(j, r->revoked);
    xp_json_key(j, "expired");
    xp_json_bool(j, r->claims.expires_s <= now_s());
    xp_json_key(j, "may_revoke");
    xp_json_bool(j, editor || is_maker(ask, r->by));
    xp_json_obj_end(j);
}

static void write_page(struct ask *ask, const struct link_page *page, struct xp_buf *body)
{
    bool editor = project_right(ask->project, ask->who) >= RIGHT_EDIT;
    struct xp_json j;

    xp_json_init(&j, body);
    xp_json_obj(&j);
    xp_json_key(&j, "max_minutes");
    xp_json_i64(&j, (int64_t)ask->project->links_max_days * DAY_S / MINUTE_S);
    xp_json_key(&j, "anyone");
    xp_json_bool(&j, editor && ask->project->links_anyone);
    xp_json_key(&j, "domain");
    xp_json_bool(&j, editor);
    xp_json_key(&j, "more");
    xp_json_bool(&j, page->next);
    xp_json_key(&j, "next");
    if (page->next)
        xp_json_str(&j, page->next);
    else
        xp_json_null(&j);
    xp_json_key(&j, "links");
    xp_json_arr(&j);
    for (size_t i = 0; i < page->n; i++)
        write_record(&j, ask, &page->v[i], editor);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
}

/* Of a run, or of all: who administers the project sees what of it is shared. */
static enum xp_status list(struct ask *ask, struct links *l, struct link_page *page,
                           struct xp_error *err)
{
    char run[LINK_RUN_MAX + 1], after[LINK_AFTER_MAX];
    bool all = !ask_arg(ask, "run").p, on = ask_arg(ask, "after").p;

    if (!all && !arg_text(ask, "run", run, sizeof run))
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"run\" is no run's name");
    if (on && !arg_text(ask, "after", after, sizeof after))
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"after\" is the next of the page before");
    if (all && project_right(ask->project, ask->who) < RIGHT_ADMIN)
        return xp_fail(err, XP_DENIED, 0,
                       "only an admin lists the links of all runs: run says of which one");
    return linkstore_list(l->store, ask->project->name, all ? NULL : run, on ? after : NULL, page,
                          err);
}

void api_links(struct ask *ask)
{
    struct links *l = links_of(ask);
    struct link_page page = {0};
    struct xp_error err = {0};
    struct xp_buf body;

    if (!l)
        return;
    if (list(ask, l, &page, &err) != XP_OK) {
        ask_problem(ask, &err);
        return;
    }
    xp_buf_init(&body, LIST_BYTES);
    write_page(ask, &page, &body);
    link_page_fini(&page);
    ask_json(ask, &body);
}

static enum xp_status revoke(struct ask *ask, struct links *l, struct xp_error *err)
{
    char run[LINK_RUN_MAX + 1], id[LINK_ID_TEXT];
    bool editor = project_right(ask->project, ask->who) >= RIGHT_EDIT;
    struct link_record r;

    if (!arg_text(ask, "run", run, sizeof run))
        return xp_fail(err, XP_BAD_REQUEST, 0, "run is needed: a link is one of a run's");
    if (!ask_arg(ask, "id").p) {
        if (!editor)
            return xp_fail(err, XP_DENIED, 0, "only an editor revokes all links of a run");
        XP_TRY(linkstore_revoke_run(l->store, ask->project->name, run, now_s(), err));
        tell(ask, "links_of_run_revoked", run);
        return XP_OK;
    }
    if (!arg_text(ask, "id", id, sizeof id))
        return xp_fail(err, XP_BAD_REQUEST, 0, "a link's id is 32 hexadecimal digits");
    enum xp_status status = linkstore_get(l->store, ask->project->name, run, id, &r, err);
    if (status != XP_OK)
        return status;
    if (!editor && !is_maker(ask, r.by))
        return xp_fail(err, XP_DENIED, 0, "a link is revoked by who made it, or by an editor");
    XP_TRY(linkstore_revoke(l->store, &r.claims, err));
    tell(ask, "link_revoked", id);
    return XP_OK;
}

void api_links_revoke(struct ask *ask)
{
    struct links *l = links_of(ask);
    struct xp_error err = {0};
    struct http_answer a;

    if (!l)
        return;
    if (revoke(ask, l, &err) != XP_OK) {
        ask_problem(ask, &err);
        return;
    }
    http_answer_init(&a, 204, "application/json");
    ask_answer(ask, &a);
}
