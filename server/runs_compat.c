/* The runs and hosts that XProf 2.24.2 lists, for its own pages and for scripts. */
#include <stdio.h>

#include "server/runs_int.h"

static void names_add(struct run_names *names, char *name)
{
    RUNS_ROOM(names->v, names->n);
    names->v[names->n++] = name;
}

void run_names_fini(struct run_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->v[i]);
    free(names->v);
    *names = (struct run_names){0};
}

static int compare_up(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_down(const void *a, const void *b)
{
    return compare_up(b, a);
}

static void names_sort(struct run_names *names, int (*compare)(const void *, const void *))
{
    if (names->n)
        qsort(names->v, names->n, sizeof *names->v, compare);
}

/* --- paths of a scope --- */

/* A folder of one of the stores. */
struct place {
    uint32_t store_no;
    char *prefix;
};

/* Where a session_path or run_path lies. XP_NOT_FOUND: below a root, but no folder. */
static enum xp_status locate(struct run_index *ri, struct xp_span path, struct place *at,
                             struct xp_error *err)
{
    enum xp_status status = XP_DENIED;
    *at = (struct place){0};
    if (memchr(path.p, 0, path.n)) {
        xp_fail(err, XP_DENIED, 0, "a path cannot hold a NUL byte");
        return XP_DENIED;
    }
    char *text = run_span_dup(path);
    xp_fail(err, XP_DENIED, 0, "\"%.150s\" is outside of the configured locations", text);
    for (size_t i = 0; i < ri->n_stores && status == XP_DENIED; i++) {
        struct xp_error why;
        status = xp_store_locate(ri->stores[i], text, &at->prefix, &why);
        at->store_no = (uint32_t)i;
        if (status != XP_OK && status != XP_DENIED && err)
            *err = why;
    }
    free(text);
    return status;
}

/* The last part of a path as it is written, as pathlib's Path(...).name: "." parts and slashes
 * at its end do not count. */
static char *base_name(struct xp_span path)
{
    const char *p = (const char *)path.p;
    size_t n = path.n;
    for (;;) {
        while (n > 0 && p[n - 1] == '/')
            n--;
        if (n >= 2 && p[n - 1] == '.' && p[n - 2] == '/')
            n--;
        else
            break;
    }
    size_t from = n;
    while (from > 0 && p[from - 1] != '/')
        from--;
    if (n - from == 1 && p[from] == '.')
        from = n;
    return must(strndup(p + from, n - from));
}

/* What is in the folder, from the index when it is known there. */
static struct run_box *place_box(struct run_index *ri, struct run_listing *l,
                                 const struct place *at, const char *name)
{
    struct run_folder f;
    struct run_entry *e = run_listing_by_prefix(l, at->store_no, at->prefix);
    if (e && strcmp(e->name, name) == 0)
        return run_entry_box(ri, e, false);
    run_folder_read(ri->stores[at->store_no], at->prefix, &f);
    struct run_box *box = run_box_new(ri->stores[at->store_no], at->prefix, name, &f);
    run_folder_fini(&f);
    return box;
}

static bool holds_profiles(const struct run_box *box)
{
    return box->run.n_hosts != 0;
}

/* The run that session_path is; *box is NULL when the folder holds no profile. */
static enum xp_status session_box(struct run_index *ri, struct xp_span path, struct run_box **box,
                                  struct xp_error *err)
{
    struct place at;
    *box = NULL;
    enum xp_status status = locate(ri, path, &at, err);
    if (status != XP_OK)
        return status == XP_NOT_FOUND ? XP_OK : status;
    struct run_listing *l = run_index_listing(ri);
    char *name = base_name(path);
    *box = place_box(ri, l, &at, name);
    if (!holds_profiles(*box)) {
        run_unref(&(*box)->run);
        *box = NULL;
    }
    free(name);
    free(at.prefix);
    run_listing_unref(l);
    return XP_OK;
}

/* The run of that name below run_path; NULL when there is none or it holds no profile. */
static struct run_box *child_box(struct run_index *ri, struct run_listing *l,
                                 const struct place *parent, struct xp_span name)
{
    if (!name.n || memchr(name.p, '/', name.n) || memchr(name.p, 0, name.n) ||
        (name.p[0] == '.' && (name.n == 1 || (name.n == 2 && name.p[1] == '.'))))
        return NULL;
    struct place at = {.store_no = parent->store_no};
    char *text = run_span_dup(name);
    size_t n = strlen(parent->prefix) + name.n + 2;
    at.prefix = must(malloc(n));
    snprintf(at.prefix, n, "%s%s/", parent->prefix, text);
    struct run_box *box = place_box(ri, l, &at, text);
    if (!holds_profiles(box)) {
        run_unref(&box->run);
        box = NULL;
    }
    free(at.prefix);
    free(text);
    return box;
}

/* Names of the folders below run_path that hold profiles. */
static enum xp_status run_path_names(struct run_index *ri, struct xp_span path,
                                     struct run_names *names, struct xp_error *err)
{
    struct place at;
    struct run_folder f;
    enum xp_status status = locate(ri, path, &at, err);
    if (status != XP_OK)
        return status == XP_NOT_FOUND ? XP_OK : status;
    struct run_listing *l = run_index_listing(ri);
    run_folder_read(ri->stores[at.store_no], at.prefix, &f);
    for (size_t i = 0; i < f.n_subs; i++) {
        struct run_box *box = child_box(ri, l, &at, xp_span_str(f.subs[i].name));
        if (!box)
            continue;
        names_add(names, must(strdup(f.subs[i].name)));
        run_unref(&box->run);
    }
    run_folder_fini(&f);
    free(at.prefix);
    run_listing_unref(l);
    return XP_OK;
}

/* --- /runs --- */

static void plugin_names(struct run_index *ri, struct run_names *names)
{
    struct run_listing *l = run_index_listing(ri);
    for (size_t i = 0; i < l->n; i++)
        if (l->entries[i].plugin)
            names_add(names, must(strdup(l->entries[i].name)));
    run_listing_unref(l);
}

enum xp_status run_index_compat_list(struct run_index *ri, const struct run_scope *scope,
                                     struct run_names *names, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    *names = (struct run_names){0};
    if (scope && scope->session_path.n) {
        struct run_box *box;
        status = session_box(ri, scope->session_path, &box, err);
        if (box) {
            names_add(names, must(strdup(box->run.name)));
            run_unref(&box->run);
        }
    } else if (scope && scope->run_path.n) {
        status = run_path_names(ri, scope->run_path, names, err);
    } else {
        plugin_names(ri, names);
    }
    names_sort(names, compare_down);
    return status;
}

/* --- one run --- */

/* Python's repr of a text, near enough. */
static void add_repr(struct xp_buf *b, struct xp_span dir, struct xp_span name)
{
    size_t n = dir.n;
    xp_buf_byte(b, '\'');
    xp_buf_span(b, dir);
    if (n && name.n && dir.p[n - 1] != '/')
        xp_buf_byte(b, '/');
    xp_buf_span(b, name);
    xp_buf_byte(b, '\'');
}

/* XProf's sentence. It holds the paths that the caller sent, none of ours. */
static enum xp_status fail_not_in_map(struct run_index *ri, const struct run_scope *scope,
                                      struct xp_span run, struct xp_error *err)
{
    struct run_names names;
    struct xp_buf b;
    bool session = scope->session_path.n > 0;
    XP_TRY(run_index_compat_list(ri, scope, &names, err));
    xp_buf_init(&b, 4096);
    for (size_t i = 0; i < names.n && b.n < sizeof err->text; i++) {
        struct xp_span name = xp_span_str(names.v[i]), none = {0};
        xp_buf_str(&b, i ? ", " : "");
        add_repr(&b, none, name);
        xp_buf_str(&b, ": ");
        if (session)
            add_repr(&b, scope->session_path, none);
        else
            add_repr(&b, scope->run_path, name);
    }
    xp_fail(err, XP_NOT_FOUND, 0, "Run %.*s not found in run map: {%.*s}", (int)run.n,
            run.n ? (const char *)run.p : "", b.n > 200 ? 200 : (int)b.n,
            b.n ? (const char *)b.p : "");
    xp_buf_fini(&b);
    run_names_fini(&names);
    return XP_NOT_FOUND;
}

static enum xp_status scope_get(struct run_index *ri, const struct run_scope *scope,
                                struct xp_span name, struct run_box **box, struct xp_error *err)
{
    struct place at;
    *box = NULL;
    if (scope->session_path.n) {
        XP_TRY(session_box(ri, scope->session_path, box, err));
        if (*box && !xp_span_eq(xp_span_str((*box)->run.name), name)) {
            run_unref(&(*box)->run);
            *box = NULL;
        }
        return XP_OK;
    }
    enum xp_status status = locate(ri, scope->run_path, &at, err);
    if (status != XP_OK)
        return status == XP_NOT_FOUND ? XP_OK : status;
    struct run_listing *l = run_index_listing(ri);
    *box = child_box(ri, l, &at, name);
    run_listing_unref(l);
    free(at.prefix);
    return XP_OK;
}

enum xp_status run_index_compat_get(struct run_index *ri, const struct run_scope *scope,
                                    struct xp_span name, const struct run **out,
                                    struct xp_error *err)
{
    struct run_box *box;
    *out = NULL;
    if (!scope || (!scope->session_path.n && !scope->run_path.n)) {
        while (name.n && name.p[name.n - 1] == '/') /* as os.path.split(run.rstrip('/')) */
            name.n--;
        return run_index_get(ri, name, out, err);
    }
    XP_TRY(scope_get(ri, scope, name, &box, err));
    if (!box)
        return fail_not_in_map(ri, scope, name, err);
    *out = &box->run;
    return XP_OK;
}

/* --- /hosts --- */

enum all_hosts { NEVER, ALSO, ONLY };

static enum all_hosts all_hosts_of(struct xp_span tag)
{
    static const struct {
        const char *tag;
        enum all_hosts all;
    } tools[] = {
        {"overview_page", ONLY},           {"pod_viewer", ONLY},         {"smart_suggestion", ONLY},
        {"input_pipeline_analyzer", ALSO}, {"framework_op_stats", ALSO}, {"kernel_stats", ALSO},
        {"megascale_stats", ALSO},
    };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (xp_span_eq(tag, xp_span_str(tools[i].tag)))
            return tools[i].all;
    return NEVER;
}

enum xp_status run_compat_hosts(const struct run *r, struct xp_span tag, struct run_names *names,
                                struct xp_error *err)
{
    enum all_hosts all = r->n_hosts > 1 ? all_hosts_of(tag) : NEVER;
    (void)err; /* nothing can fail today: the hosts are listed already */
    *names = (struct run_names){0};
    for (size_t i = 0; i < r->n_hosts && all != ONLY; i++)
        names_add(names, must(strdup(r->hosts[i].name)));
    if (all != NEVER)
        names_add(names, must(strdup("ALL_HOSTS")));
    names_sort(names, compare_up);
    return XP_OK;
}
