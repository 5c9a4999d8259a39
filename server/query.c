#include "server/query.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/base/gzip.h"
#include "server/options.h"
#include "server/runs.h"
#include "shard/shard.h"

#define ARGS_MAX 32
#define CELL_WIDTH_MAX 60

enum form { FORM_JSON, FORM_CSV, FORM_TABLE };

struct query {
    const char *source, *tool, *run, *host;
    enum form form;
    struct shard_arg args[ARGS_MAX];
    size_t nargs;
};

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
    struct shard_answer answer;
};

/* --- the command line --- */

static int usage(const char *why)
{
    if (why)
        fprintf(stderr, "xprofd: %s\n", why);
    fprintf(why ? stderr : stdout,
            "usage: xprofd query SOURCE TOOL [--json|--csv|--table] [--run RUN] [--host HOST] "
            "[name=value...]\n"
            "SOURCE is a log directory, a folder of profiles or one *.xplane.pb; the newest run "
            "and all its hosts unless told otherwise.\n"
            "tools:");
#define TOOL(symbol, id, title, view, hosts) fprintf(why ? stderr : stdout, " " id);
#include "shard/tools/tools.def"
#undef TOOL
    fputc('\n', why ? stderr : stdout);
    return why ? 2 : 0;
}

static bool set_flag(struct query *q, const char *arg)
{
    static const char *const forms[] = {"--json", "--csv", "--table"};
    for (int i = 0; i < 3; i++)
        if (strcmp(arg, forms[i]) == 0) {
            q->form = (enum form)i;
            return true;
        }
    return false;
}

static const char *parse(struct query *q, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        char *arg = argv[i], *eq = strchr(arg, '=');
        const char **value = strcmp(arg, "--run") == 0    ? &q->run
                             : strcmp(arg, "--host") == 0 ? &q->host
                                                          : NULL;
        if (value && ++i == argc)
            return "--run and --host need a value";
        if (value)
            *value = argv[i];
        else if (arg[0] == '-' && !set_flag(q, arg))
            return "an option is unknown";
        else if (arg[0] == '-')
            continue;
        else if (!q->source)
            q->source = arg;
        else if (!q->tool)
            q->tool = arg;
        else if (!eq || q->nargs == ARGS_MAX)
            return "parameters are written name=value";
        else
            q->args[q->nargs++] =
                (struct shard_arg){xp_span_of(arg, (size_t)(eq - arg)), xp_span_str(eq + 1)};
    }
    return q->tool ? NULL : "say what to read and which tool";
}

/* --- the answer --- */

static void on_answer(void *ctx, struct shard_answer *a)
{
    struct waiting *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->answer = *a;
    w->over = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void inflate(struct shard_answer *a, struct xp_buf *out)
{
    struct xp_span body = xp_span_of(a->body->p, a->body->n);
    size_t got = 1;

    if (!a->encoded) {
        xp_buf_span(out, body);
        return;
    }
    struct xp_gunzip *gz = xp_gunzip_new(body);
    while (got) {
        uint8_t *p = xp_buf_room(out, 65536);
        if (!p || xp_gunzip_read(gz, p, 65536, &got) != XP_OK)
            break;
        out->n += got;
    }
    xp_gunzip_free(gz);
}

/* --- as a table --- */

static const char *cell_text(const json_t *cell, char buf[64])
{
    const json_t *f = json_object_get(cell, "f"), *v = f ? f : json_object_get(cell, "v");
    if (json_is_string(v))
        return json_string_value(v);
    if (json_is_integer(v))
        snprintf(buf, 64, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(buf, 64, "%.6g", json_real_value(v));
    else
        snprintf(buf, 64, "%s", json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : "");
    return buf;
}

static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n < CELL_WIDTH_MAX ? n : CELL_WIDTH_MAX;
}

/* Text of a profile on a terminal: no control bytes, at most CELL_WIDTH_MAX characters. */
static void print_cell(const char *text, int width, bool right, bool last)
{
    int n = width_of(text), shown = 0;
    if (right)
        printf("%*s", width - n, "");
    for (; *text; text++) {
        bool more = ((unsigned char)*text & 0xc0) == 0x80;
        if (!more && shown++ == CELL_WIDTH_MAX)
            break;
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
    }
    if (!last)
        printf("%*s", right ? 2 : width - n + 2, "");
}

static void print_table(const json_t *table)
{
    const json_t *cols = json_object_get(table, "cols"), *rows = json_object_get(table, "rows");
    size_t n = json_array_size(cols);
    int *width = calloc(n + 1, sizeof *width);
    char buf[64];

    XP_ASSERT(width);
    for (size_t c = 0; c < n; c++) {
        const char *label = json_string_value(json_object_get(json_array_get(cols, c), "label"));
        width[c] = width_of(label ? label : "");
        for (size_t r = 0; r < json_array_size(rows); r++) {
            const json_t *cells = json_object_get(json_array_get(rows, r), "c");
            int w = width_of(cell_text(json_array_get(cells, c), buf));
            width[c] = w > width[c] ? w : width[c];
        }
    }
    for (size_t r = 0; r <= json_array_size(rows); r++) {
        const json_t *cells = r ? json_object_get(json_array_get(rows, r - 1), "c") : NULL;
        for (size_t c = 0; c < n; c++) {
            const json_t *col = json_array_get(cols, c);
            const char *type = json_string_value(json_object_get(col, "type"));
            const char *label = json_string_value(json_object_get(col, "label"));
            const char *text = r ? cell_text(json_array_get(cells, c), buf) : label;
            print_cell(text ? text : "", width[c], type && strcmp(type, "number") == 0, c + 1 == n);
        }
        putchar('\n');
    }
    free(width);
}

static bool print_tables(struct xp_span text)
{
    json_t *j = json_loadb((const char *)text.p, text.n, 0, NULL);
    size_t shown = 0;

    for (size_t i = 0; i < (json_is_array(j) ? json_array_size(j) : 1); i++) {
        const json_t *table = json_is_array(j) ? json_array_get(j, i) : j;
        if (!json_object_get(table, "cols"))
            continue;
        if (shown++)
            putchar('\n');
        print_table(table);
    }
    json_decref(j);
    return shown > 0;
}

static int print_answer(const struct query *q, struct shard_answer *a)
{
    struct xp_buf text;
    int rc = 0;

    if (a->error.status != XP_OK) {
        fprintf(stderr, "xprofd: %s\n", a->error.text);
        return 1;
    }
    xp_buf_init(&text, SIZE_MAX / 2);
    inflate(a, &text);
    if (q->form == FORM_TABLE && !print_tables(xp_buf_all(&text))) {
        fprintf(stderr, "xprofd: the answer of %s is no table; --json shows it\n", q->tool);
        rc = 1;
    } else if (q->form != FORM_TABLE) {
        fwrite(text.p, 1, text.n, stdout);
        if (isatty(STDOUT_FILENO))
            putchar('\n');
    }
    xp_buf_fini(&text);
    xp_blob_unref(a->body);
    return rc;
}

/* --- the run --- */

static enum xp_status find_run(const struct query *q, struct run_index *runs,
                               const struct run **run, struct xp_error *err)
{
    struct run_page page = {0};
    if (q->run)
        return run_index_get(runs, xp_span_str(q->run), run, err);
    XP_TRY(run_index_list(runs, (struct xp_span){0}, (struct xp_span){0}, 1, &page, err));
    if (page.n)
        *run = run_ref(page.runs[0]);
    else
        xp_fail(err, XP_NOT_FOUND, 0, "%s: found %s; expected %s",
                page.read ? page.read : q->source, page.found ? page.found : "nothing",
                page.expected ? page.expected : "a profile");
    run_page_fini(&page);
    return *run ? XP_OK : XP_NOT_FOUND;
}

static size_t choose_hosts(const struct query *q, const struct run *run, struct shard_object *o,
                           struct xp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n_hosts; i++) {
        const struct run_host *h = &run->hosts[run->by_name[i]];
        if (!q->host || strcmp(q->host, h->name) == 0)
            o[n++] =
                (struct shard_object){run->store, h->key, h->name, h->generation, h->size, h->gz};
    }
    if (n == 0)
        xp_fail(err, XP_NOT_FOUND, 0, "run \"%s\" has no host%s%s", run->name, q->host ? " " : "",
                q->host ? q->host : "");
    return n;
}

static int ask(const struct query *q, const struct run *run, struct xp_workers *workers)
{
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    struct shard_object *objects = calloc(run->n_hosts + 1, sizeof *objects);
    struct xp_error err = {0};

    XP_ASSERT(objects);
    size_t n = choose_hosts(q, run, objects, &err);
    if (n == 0) {
        fprintf(stderr, "xprofd: %s\n", err.text);
        free(objects);
        return 1;
    }
    struct shard *shard = shard_new(workers, options_memory_limit() / 2);
    struct shard_request req = {.op = q->form == FORM_CSV ? SHARD_TOOL_CSV : SHARD_TOOL,
                                .tool = q->tool,
                                .objects = objects,
                                .nobjects = n,
                                .args = q->args,
                                .nargs = q->nargs};
    shard_call(shard, &req, on_answer, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.over)
        pthread_cond_wait(&w.done, &w.lock);
    pthread_mutex_unlock(&w.lock);
    int rc = print_answer(q, &w.answer);
    shard_free(shard);
    free(objects);
    return rc;
}

int query_main(int argc, char **argv)
{
    struct query q = {0};
    struct xp_error err = {0};
    struct xp_store *store = NULL;
    const struct run *run = NULL;
    int rc = 1;

    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return usage(NULL);
    const char *wrong = parse(&q, argc, argv);
    if (wrong)
        return usage(wrong);
    if (xp_store_open_path(q.source, &store, &err) != XP_OK) {
        fprintf(stderr, "xprofd: %s\n", err.text);
        return 2;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct xp_workers *workers = xp_workers_new(cores > 0 ? (int)cores : 1, 64);
    struct run_index *runs = run_index_new(&store, 1);
    if (find_run(&q, runs, &run, &err) == XP_OK)
        rc = ask(&q, run, workers);
    else
        fprintf(stderr, "xprofd: %s\n", err.text);
    run_unref(run);
    run_index_free(runs);
    xp_workers_free(workers);
    xp_store_free(store);
    return rc;
}
