#include "server/api.h"
#include "server/download.h"
#include "server/metrics.h"
#include "server/runs_query.h"
#include "server/uploads.h"
#include "server/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "server/events.h"

#define JSON_MAX ((size_t)32 << 20)
#define PAGE_LOOK_NS UINT64_C(30000000)

static void key_str(struct xp_json *j, const char *key, const char *value)
{
    xp_json_key(j, key);
    if (value)
        xp_json_str(j, value);
    else
        xp_json_null(j);
}

/* --- projects --- */

static const char *right_name(enum right right)
{
    static const char *const names[] = {"none", "view", "edit", "admin"};
    return names[right];
}

void api_projects(struct ask *ask)
{
    struct xp_buf body;
    struct xp_json j;
    size_t n;
    const struct project **v = projects_list(ask->app->projects, ask->who, &n);
    const struct project *first = projects_default(ask->app->projects);

    if (first && project_right(first, ask->who) == RIGHT_NONE)
        project_unref(first), first = NULL;
    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    key_str(&j, "default", first ? first->name : NULL);
    xp_json_key(&j, "projects");
    xp_json_arr(&j);
    for (size_t i = 0; i < n; i++) {
        xp_json_obj(&j);
        key_str(&j, "project", v[i]->name);
        key_str(&j, "location", v[i]->location);
        key_str(&j, "right", right_name(project_right(v[i], ask->who)));
        xp_json_obj_end(&j);
        project_unref(v[i]);
    }
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    project_unref(first);
    free(v);
    ask_json(ask, &body);
}

void api_me(struct ask *ask)
{
    static const char *const kinds[] = {"nobody", "local", "user", "link"};
    const struct who *who = ask->who;
    struct xp_buf body;
    struct xp_json j;

    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    key_str(&j, "kind", kinds[who->kind]);
    key_str(&j, "name", who_name(who));
    key_str(&j, "email", who->email[0] ? who->email : NULL);
    key_str(&j, "auth", gate_mode_name(ask->app->gate));
    xp_json_key_bool(&j, "login", gate_has_login(ask->app->gate));
    xp_json_obj_end(&j);
    ask_json(ask, &body);
}

/* --- runs --- */

static const char *run_state(const struct run *r)
{
    if (r->n_hosts)
        return "ready";
    return r->unreadable ? "unreadable" : "empty";
}

static void write_captured(struct xp_json *j, const struct run *r)
{
    xp_json_key(j, "captured_ms");
    if (r->captured_ms)
        xp_json_i64(j, r->captured_ms);
    else
        xp_json_null(j);
    key_str(j, "captured_from", r->captured_by_name ? "name" : "mtime");
}

/* What keeps the run, or some of its hosts, from being read; else what else is odd. */
static void write_note(struct xp_json *j, const struct run *r, const struct run_facts *f)
{
    const struct run_host *host = NULL;
    const char *why = NULL;
    size_t n = run_unreadable_hosts(r, &host, &why);
    struct xp_buf b;

    xp_buf_init(&b, (size_t)64 << 10);
    if (n == 1 && r->n_hosts == 1)
        xp_buf_str(&b, why);
    else if (n)
        xp_buf_fmt(&b, "%zu of %zu hosts cannot be read; %s: %s", n, r->n_hosts, host->name, why);
    else if (f && f->problem)
        xp_buf_str(&b, f->problem);
    else if (f && f->missing)
        xp_buf_fmt(&b, "%u of %zu hosts cannot be read; %s", f->n_missing, r->n_hosts, f->missing);
    if (r->note)
        xp_buf_fmt(&b, "%s%s", b.n ? "; " : "", r->note);
    xp_json_key(j, "note");
    xp_json_span(j, b.failed ? (struct xp_span){0} : xp_buf_all(&b));
    xp_buf_fini(&b);
}

static void write_state(struct xp_json *j, const struct run *r, const struct run_facts *f)
{
    bool ready = r->n_hosts > 0; /* as far as its folder tells */
    key_str(j, "state", ready ? run_state_of(r, f) : run_state(r));
}

static void write_run(struct xp_json *j, const struct run *r, struct runfacts *facts)
{
    const struct run_facts *f = runfacts_get(facts, r);
    xp_json_obj(j);
    key_str(j, "run", r->name);
    write_captured(j, r);
    xp_json_key_i64(j, "hosts", (int64_t)r->n_hosts);
    xp_json_key(j, "bytes");
    xp_json_u64(j, r->bytes);
    write_state(j, r, f);
    write_note(j, r, f);
    key_str(j, "kind", run_capture_kind(r, f));
    xp_json_key(j, "facts");
    run_facts_write(j, r, f, NULL);
    xp_json_obj_end(j);
    run_facts_unref(f);
}

static void write_joins(struct xp_json *j, const struct run_page *page)
{
    xp_json_key(j, "joins");
    xp_json_arr(j);
    for (size_t i = 0; i < page->n_joins; i++) {
        xp_json_obj(j);
        key_str(j, "run", page->joins[i].name);
        xp_json_key_i64(j, "hosts", (int64_t)page->joins[i].n_hosts);
        xp_json_key_i64(j, "span_ms", page->joins[i].span_ms);
        xp_json_obj_end(j);
    }
    xp_json_arr_end(j);
}

static void write_page(struct xp_json *j, const struct ask *ask, const struct run_page *page)
{
    struct runfacts *facts = ask->app->facts;
    xp_json_obj(j);
    key_str(j, "location", ask->project->location);
    xp_json_key(j, "runs");
    xp_json_arr(j);
    for (size_t i = 0; i < page->n; i++)
        write_run(j, page->runs[i], facts);
    for (size_t i = 0; i < page->n_empty; i++)
        write_run(j, page->empty[i], facts);
    xp_json_arr_end(j);
    xp_json_key_i64(j, "total", (int64_t)page->total);
    xp_json_key_bool(j, "total_exact", page->total_exact);
    xp_json_key_i64(j, "looked", (int64_t)page->looked);
    xp_json_key_u64(j, "figures_limit", runfacts_limit(facts));
    key_str(j, "next", page->next);
    write_joins(j, page);
    key_str(j, "cut", page->cut);
    xp_json_key(j, "empty");
    if (page->read) {
        xp_json_obj(j);
        key_str(j, "reason", page->reason);
        key_str(j, "read", page->read);
        key_str(j, "found", page->found);
        key_str(j, "expected", page->expected);
        xp_json_obj_end(j);
    } else {
        xp_json_null(j);
    }
    xp_json_obj_end(j);
}

static enum xp_status page_limit(const struct ask *ask, size_t *limit, struct xp_error *err)
{
    struct xp_span s = ask_arg(ask, "limit");
    size_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || v > RUN_PAGE_MAX)
            return xp_fail(err, XP_BAD_REQUEST, 0, "limit is a number from 1 to %d", RUN_PAGE_MAX);
        v = v * 10 + (size_t)(s.p[i] - '0');
    }
    if (s.n)
        *limit = v;
    return XP_OK;
}

/* At the first bytes of files: what is none is said to be. Those that were looked at before cost
 * nothing; of more, later lists tell. */
static void look_at_page(const struct run_page *page)
{
    uint64_t until = xp_now_ns() + PAGE_LOOK_NS;
    for (size_t i = 0; i < page->n && xp_now_ns() < until; i++)
        run_look(page->runs[i]);
}

void api_runs(struct ask *ask)
{
    struct xp_error err = {0};
    struct run_page page = {0};
    struct xp_buf body;
    struct xp_json j;
    size_t limit = 50;

    enum xp_status status = page_limit(ask, &limit, &err);
    struct run_query query = {.q = ask_arg(ask, "q"),
                              .token = ask_arg(ask, "page"),
                              .sort = ask_arg(ask, "sort"),
                              .limit = limit,
                              .facts = ask->app->facts};
    if (status == XP_OK)
        status = run_index_query(ask->project->runs, &query, &page, &err);
    if (status != XP_OK) {
        ask_problem(ask, &err);
        return;
    }
    runfacts_listed(ask->app->facts, ask->project);
    look_at_page(&page);
    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    write_page(&j, ask, &page);
    run_page_fini(&page);
    ask_json(ask, &body);
}

/* Takes the run that ?run= names; false: the ask has been answered with the reason, or is a
 * worker's. upload, which may be NULL: untouched unless the run was uploaded. */
static bool take_run(struct ask *ask, struct upload_state *upload)
{
    struct xp_error err = {0};
    struct xp_span name = ask_arg(ask, "run");

    if (ask->later && name.n && !ask_is_upload(ask, name))
        ask->run = run_index_known(ask->project->runs, name);
    if (ask->run)
        return true;
    if (!ask_may_wait(ask))
        return false;
    if (name.n == 0)
        xp_fail(&err, XP_BAD_REQUEST, 0, "run is missing: the name of a run");
    else if (ask_take_run(ask, name, upload, &err) == XP_OK)
        return true;
    ask_problem(ask, &err);
    return false;
}

/* why: it cannot be read, or NULL. */
static void write_host(struct xp_json *j, const struct run_host *h, const char *why)
{
    xp_json_obj(j);
    key_str(j, "host", h->name);
    xp_json_key(j, "bytes");
    xp_json_u64(j, h->size);
    xp_json_key_bool(j, "compressed", h->gz);
    xp_json_key_i64(j, "modified_ms", h->mtime_ms);
    key_str(j, "state", why ? "unreadable" : "ready");
    key_str(j, "note", why ? why : "");
    xp_json_obj_end(j);
}

/* A sentence, but for those who were let in by a link not one that says where the run lies. */
static const char *of_place(bool by_link, const struct run *r, const char *text)
{
    const char *place = xp_store_name(r->store);
    if (!text)
        return "";
    return by_link && (r->unreadable || strstr(text, place)) ? "it cannot be read" : text;
}

/* Where it lies, as people call it; where uploads are kept is nobody's business, and those who were
 * let in by a link see the run, not how the server keeps it. A joined one lies in several places.
 */
static void write_location(struct xp_json *j, const struct ask *ask, bool uploaded)
{
    const struct run *r = ask->run;
    struct xp_buf b;
    xp_json_key(j, "location");
    bool by_link = project_right(ask->project, ask->who) == RIGHT_NONE;
    if (uploaded || by_link || run_is_joined(xp_span_str(r->name))) {
        xp_json_null(j);
        return;
    }
    xp_buf_init(&b, (size_t)64 << 10);
    xp_buf_str(&b, xp_store_name(r->store));
    if (r->prefix[0]) {
        if (b.n && b.p[b.n - 1] != '/')
            xp_buf_byte(&b, '/');
        xp_buf_add(&b, r->prefix, strlen(r->prefix) - 1);
    }
    xp_json_span(j, xp_buf_all(&b));
    xp_buf_fini(&b);
}

void api_run(struct ask *ask)
{
    struct xp_buf body;
    struct xp_json j;
    struct upload_state upload = {0};

    if (!take_run(ask, &upload) || (!run_is_looked_at(ask->run) && !ask_may_wait(ask)))
        return;
    const char *const *why = run_look(ask->run);
    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    key_str(&j, "run", ask->run->name);
    write_captured(&j, ask->run);
    write_location(&j, ask, upload.expires_ms != 0);
    xp_json_key(&j, "expires_ms");
    if (upload.expires_ms)
        xp_json_i64(&j, upload.expires_ms);
    else
        xp_json_null(&j);
    key_str(&j, "decoder", ask->app->version);
    bool by_link = project_right(ask->project, ask->who) == RIGHT_NONE;
    /* They are of other pages, too. */
    const struct run_facts *f = ask->one_page ? NULL : runfacts_get(ask->app->facts, ask->run);
    write_state(&j, ask->run, f);
    key_str(&j, "note", of_place(by_link, ask->run, ask->run->note));
    key_str(&j, "kind", ask->one_page ? NULL : run_capture_kind(ask->run, f));
    xp_json_key(&j, "facts");
    run_facts_write(&j, ask->run, f, by_link ? xp_store_name(ask->run->store) : NULL);
    run_facts_unref(f);
    xp_json_key(&j, "hosts");
    xp_json_arr(&j);
    for (size_t i = 0; i < ask->run->n_hosts; i++)
        write_host(&j, &ask->run->hosts[i], why[i] ? of_place(by_link, ask->run, why[i]) : NULL);
    xp_json_arr_end(&j);
    xp_json_obj_end(&j);
    ask_json(ask, &body);
}

/* --- one host --- */

static bool check_not_empty(const struct run *r, struct xp_error *err)
{
    if (r->n_hosts == 0)
        xp_fail(err, XP_NOT_FOUND, 0, "run \"%s\" has no profile: %s", r->name,
                r->note ? r->note : "it is empty");
    return r->n_hosts > 0;
}

static const struct run_host *pick_host(const struct ask *ask, struct xp_error *err)
{
    const struct run *r = ask->run;
    struct xp_span name = ask_arg(ask, "host");

    if (!check_not_empty(r, err))
        return NULL;
    if (name.n == 0 && r->n_hosts > 1) {
        xp_fail(err, XP_BAD_REQUEST, 0, "run \"%s\" has %zu hosts: say which with host=", r->name,
                r->n_hosts);
        return NULL;
    }
    if (name.n == 0)
        return &r->hosts[0];
    const struct run_host *h = run_host_find(r, name);
    if (!h)
        xp_fail(err, XP_NOT_FOUND, 0, "run \"%s\" has no host \"%.*s\"", r->name,
                (int)(name.n < 100 ? name.n : 100), (const char *)name.p);
    return h;
}

void api_host(struct ask *ask)
{
    struct xp_error err = {0};

    if (!take_run(ask, NULL))
        return;
    const struct run_host *h = pick_host(ask, &err);
    if (!h) {
        ask_problem(ask, &err);
        return;
    }
    struct shard_object o = {ask->run->store, h->key, h->name, h->generation, h->size, h->gz};
    ask_shard(ask, &o, 1);
}

void api_file(struct ask *ask)
{
    struct xp_error err = {0};

    if (!take_run(ask, NULL))
        return;
    const struct run_host *h = pick_host(ask, &err);
    if (h && download_start(ask->app->workers, ask->ex, ask->who, ask->run, h, &err) == XP_OK)
        ask_handed_over(ask);
    else
        ask_problem(ask, &err);
}

/* --- reports --- */

#define HOSTS_AT_A_TIME 4096

static bool is_asked(const struct ask *ask, const char *host, bool *any)
{
    bool found = false;
    for (size_t i = 0; i < ask->nargs; i++) {
        if (!xp_span_eq(ask->args[i].name, XP_SPAN_LIT("host")))
            continue;
        *any = true;
        found |= xp_span_eq(ask->args[i].value, xp_span_str(host));
    }
    return found;
}

/* Every host that is named has to be there. */
static bool check_hosts(const struct ask *ask, struct xp_error *err)
{
    for (size_t i = 0; i < ask->nargs; i++) {
        struct xp_span name = ask->args[i].value;
        if (!xp_span_eq(ask->args[i].name, XP_SPAN_LIT("host")) || run_host_find(ask->run, name))
            continue;
        xp_fail(err, XP_NOT_FOUND, 0, "run \"%s\" has no host \"%.*s\"", ask->run->name,
                (int)(name.n < 100 ? name.n : 100), (const char *)name.p);
        return false;
    }
    return true;
}

/* The server's own peaks come behind those of the request, of which the first counts. They are part
 * of what an answer is, so of its ETag. */
static void add_peaks(struct ask *ask)
{
    for (size_t i = 0; ask->app->peaks && ask->app->peaks[i] && ask->nargs < ASK_ARGS_MAX; i++) {
        struct xp_span v = xp_span_str(ask->app->peaks[i]);
        ask->args[ask->nargs++] = (struct shard_arg){XP_SPAN_LIT("peak"), v};
        ask->identity = xp_fnv(ask->identity, v);
    }
}

void api_report(struct ask *ask)
{
    struct xp_error err = {0};
    size_t n = 0;

    if (!take_run(ask, NULL))
        return;
    add_peaks(ask);
    const struct run *r = ask->run;
    if (!check_not_empty(r, &err) || !check_hosts(ask, &err)) {
        ask_problem(ask, &err);
        return;
    }
    if (r->n_hosts > HOSTS_AT_A_TIME) {
        xp_fail(&err, XP_TOO_LARGE, 0, "run \"%s\" has %zu hosts: choose some with host=", r->name,
                r->n_hosts);
        ask_problem(ask, &err);
        return;
    }
    struct shard_object *o = calloc(r->n_hosts + 1, sizeof *o);
    XP_ASSERT(o);
    for (size_t i = 0; i < r->n_hosts; i++) { /* in natural order */
        const struct run_host *h = &r->hosts[i];
        bool any = false, asked = is_asked(ask, h->name, &any);
        if (asked || !any)
            o[n++] =
                (struct shard_object){r->store, h->key, h->name, h->generation, h->size, h->gz};
    }
    ask_shard(ask, o, n);
    free(o);
}

/* --- events --- */

void api_events(struct ask *ask)
{
    struct xp_error err = {0};
    const struct run_host *h = NULL;

    if (ask_arg(ask, "run").n) {
        if (!take_run(ask, NULL))
            return;
        h = pick_host(ask, &err);
        if (!h) {
            ask_problem(ask, &err);
            return;
        }
    }
    if (events_add(ask->app->events, ask->ex, ask->project, ask->run, h, &err) != XP_OK)
        ask_problem(ask, &err);
    else
        ask_handed_over(ask);
}

/* --- status --- */

static void write_shard_stats(struct xp_json *j, struct shard *shard)
{
    struct shard_stats st;
    shard_stats(shard, &st);
    xp_json_key_i64(j, "budget_bytes", (int64_t)st.budget);
    xp_json_key_i64(j, "profile_bytes", (int64_t)st.bytes);
    xp_json_key_i64(j, "parts", (int64_t)st.parts);
    xp_json_key_i64(j, "pinned", (int64_t)st.pinned);
    xp_json_key_i64(j, "hits", (int64_t)st.hits);
    xp_json_key_i64(j, "loads", (int64_t)st.loads);
    xp_json_key_i64(j, "evictions", (int64_t)st.evictions);
    xp_json_key_i64(j, "refused", (int64_t)st.refused);
    xp_json_key_i64(j, "cancelled", (int64_t)st.cancelled);
    xp_json_key_i64(j, "known", (int64_t)st.known);
}

static void write_upstream_stats(struct xp_json *j, struct upstream *upstream)
{
    struct upstream_stats st;
    upstream_stats(upstream, &st);
    xp_json_key_i64(j, "shards", (int64_t)st.members);
    xp_json_key_i64(j, "asks", (int64_t)st.asks);
    xp_json_key_i64(j, "retries", (int64_t)st.retries);
    xp_json_key_i64(j, "failed", (int64_t)st.failed);
}

void api_status(struct ask *ask)
{
    struct xp_buf body;
    struct xp_json j;

    xp_buf_init(&body, JSON_MAX);
    xp_json_init(&j, &body);
    xp_json_obj(&j);
    key_str(&j, "product", "xprofd");
    key_str(&j, "version", ask->app->version);
    key_str(&j, "role", ask->app->upstream ? "frontend" : "all");
    key_str(&j, "location", ask->project->location);
    xp_json_key_i64(&j, "uptime_ms", (int64_t)((xp_now_ns() - ask->app->started_ns) / 1000000));
    xp_json_key_i64(&j, "resident_bytes", (int64_t)metrics_resident_bytes());
    if (ask->app->upstream)
        write_upstream_stats(&j, ask->app->upstream);
    else
        write_shard_stats(&j, ask->app->shard);
    xp_json_obj_end(&j);
    ask_json(ask, &body);
}
