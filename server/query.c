#include "server/query.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/base/gzip.h"
#include "lib/base/log.h"
#include "server/options.h"
#include "server/runs.h"
#include "server/terminal.h"
#include "shard/shard.h"

#define ARGS_MAX 33 /* and the table */
#define HOSTS_MAX 64
#define NAMED_MAX 8 /* names in a sentence */

enum form { FORM_JSON, FORM_CSV, FORM_TABLE };

struct query {
    const char *source, *tool, *run, *table;
    bool xprof; /* what XProf's routes answer */
    const char *hosts[HOSTS_MAX];
    enum form form;
    struct shard_arg args[ARGS_MAX];
    size_t nhosts, nargs;
};

static const char *const tools[] = {
#define TOOL(symbol, id, title, view, hosts) id,
#include "shard/tools/tools.def"
#undef TOOL
};

#define TOOLS_N (sizeof tools / sizeof *tools)

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
    struct shard_answer answer;
};

/* --- sentences --- */

/* What is wrong, on stderr. Names in it come from directories and profiles. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fputs("xprofd: ", stderr);
    terminal_text(stderr, xp_span_str(text));
    fputc('\n', stderr);
}

/* "a, b, c and 5 more" in text, from names given one by one; i counts up to n. */
static void add_name(struct xp_buf *text, const char *name, size_t i, size_t n)
{
    if (i < NAMED_MAX)
        xp_buf_fmt(text, "%s%.200s", i ? ", " : "", name);
    else if (i == NAMED_MAX)
        xp_buf_fmt(text, " and %zu more", n - i);
}

static void say_hosts(const struct run *run)
{
    struct xp_buf text;
    xp_buf_init(&text, 65536);
    for (size_t i = 0; i < run->n_hosts; i++)
        add_name(&text, run->hosts[i].name, i, run->n_hosts);
    say("--host is one of: %.*s", (int)text.n, (const char *)text.p);
    xp_buf_fini(&text);
}

static void say_runs(struct run_index *runs)
{
    struct run_page page = {0};
    struct xp_error err;
    struct xp_buf text;

    xp_buf_init(&text, 65536);
    if (run_index_list(runs, (struct xp_span){0}, (struct xp_span){0}, NAMED_MAX, &page, &err) ==
        XP_OK)
        for (size_t i = 0; i <= page.n && i < page.total; i++)
            add_name(&text, i < page.n ? page.runs[i]->name : "", i, page.total);
    if (text.n)
        say("--run is one of: %.*s", (int)text.n, (const char *)text.p);
    run_page_fini(&page);
    xp_buf_fini(&text);
}

static void print_tools(FILE *f)
{
    fputs("tools:", f);
    for (size_t i = 0; i < TOOLS_N; i++)
        fprintf(f, " %s", tools[i]);
    fputc('\n', f);
}

/* --- the command line --- */

static int help(void)
{
    puts("xprofd query - print a tool's report, without a server\n\n"
         "usage: xprofd query SOURCE TOOL [options] [name=value...]\n\n"
         "  SOURCE          a log directory, a folder of profiles or one *.xplane.pb\n"
         "  --json          the report as the server gives it (the default)\n"
         "  --csv           its first table\n"
         "  --table-id ID   this table instead; \"metrics\" is one, too\n"
         "  --table         for people: what it found, then its tables\n"
         "  --xprof         with one of these: what XProf's own route answers\n"
         "  --peak K=V      a peak of the device: flops=9.18e14 or hbm=1.6e12, a second and core\n"
         "  --steps A-B     a report of these steps only, or of one: --steps 12\n"
         "  --t0 PS --t1 PS a report of this time only: picoseconds of the session\n"
         "  --run RUN       this run (the newest, which stderr names)\n"
         "  --host HOST     this host (all); may be repeated\n"
         "  name=value      a parameter of the tool, e.g. module_name=jit_step(12); of any\n"
         "                  report: limit=N sort=COLUMN (or -COLUMN) filter=TEXT\n");
    print_tools(stdout);
    puts("\nEnds with 0, with 1 when there is no such answer, with 2 when the command line is "
         "wrong.");
    return 0;
}

static bool wrong(const char *format, const char *what)
{
    say(format, what);
    fputs("xprofd: query --help says how it is written\n", stderr);
    return false;
}

static bool set_flag(struct query *q, const char *arg)
{
    static const char *const forms[] = {"--json", "--csv", "--table"};
    if (strcmp(arg, "--xprof") == 0)
        return q->xprof = true;
    for (int i = 0; i < 3; i++)
        if (strcmp(arg, forms[i]) == 0) {
            q->form = (enum form)i;
            return true;
        }
    return wrong("there is no option %s", arg);
}

static bool add_arg(struct query *q, const char *name, struct xp_span value)
{
    if (q->nargs == ARGS_MAX - 1)
        return false;
    q->args[q->nargs++] = (struct shard_arg){xp_span_str(name), value};
    return true;
}

static const char *const valued[] = {"--run",   "--host", "--table-id", "--peak",
                                     "--steps", "--t0",   "--t1"};

#define VALUED_N (sizeof valued / sizeof *valued)
#define VALUED_PEAK 3 /* it and those after it are parameters of the report */

static bool take_value(struct query *q, size_t which, const char *value)
{
    switch (which) {
    case 0:
        q->run = value;
        return true;
    case 1:
        if (q->nhosts == HOSTS_MAX)
            return wrong("%s was given too often", "--host");
        q->hosts[q->nhosts++] = value;
        return true;
    case 2:
        q->table = value;
        return true;
    default:
        if (which == VALUED_PEAK && !strchr(value, '='))
            return wrong("--peak is KEY=VALUE, and \"%s\" is not", value);
        return add_arg(q, valued[which] + 2, xp_span_str(value)) ||
               wrong("there are too many parameters, from \"%s\" on", value);
    }
}

/* --run X, --run=X and the like. False: arg is none of them. */
static bool set_value(struct query *q, int argc, char **argv, int *i, bool *ok)
{
    const char *arg = argv[*i];
    for (size_t k = 0; k < VALUED_N; k++) {
        size_t n = strlen(valued[k]);
        if (strncmp(arg, valued[k], n) != 0 || (arg[n] && arg[n] != '='))
            continue;
        const char *value = arg[n] ? arg + n + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        *ok = value && value[0] ? take_value(q, k, value) : wrong("%s needs a value", valued[k]);
        return true;
    }
    return false;
}

static bool set_word(struct query *q, const char *arg)
{
    const char *eq = strchr(arg, '=');
    if (!q->source)
        q->source = arg;
    else if (!q->tool)
        q->tool = arg;
    else if (!eq)
        return wrong("a parameter is written name=value, and \"%s\" is not", arg);
    else if (q->nargs == ARGS_MAX - 1)
        return wrong("there are too many parameters, from \"%s\" on", arg);
    else
        q->args[q->nargs++] =
            (struct shard_arg){xp_span_of(arg, (size_t)(eq - arg)), xp_span_str(eq + 1)};
    return true;
}

static bool known_tool(const char *tool)
{
    for (size_t i = 0; i < TOOLS_N; i++)
        if (strcmp(tools[i], tool) == 0)
            return true;
    say("there is no tool \"%s\"", tool);
    print_tools(stderr);
    return false;
}

static bool parse(struct query *q, int argc, char **argv)
{
    bool ok = true;
    for (int i = 2; i < argc && ok; i++)
        if (argv[i][0] != '-')
            ok = set_word(q, argv[i]);
        else if (!set_value(q, argc, argv, &i, &ok))
            ok = set_flag(q, argv[i]);
    if (ok && !q->tool)
        return wrong("say %s", q->source ? "which tool" : "what to read, and which tool");
    if (ok && q->table)
        q->args[q->nargs++] = (struct shard_arg){XP_SPAN_LIT("table"), xp_span_str(q->table)};
    return ok && known_tool(q->tool);
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

static bool inflate(struct shard_answer *a, struct xp_buf *out)
{
    struct xp_span body = xp_span_of(a->body->p, a->body->n);
    enum xp_status status = XP_OK;
    size_t got = 1;

    if (!a->encoded) {
        xp_buf_span(out, body);
        return !out->failed;
    }
    struct xp_gunzip *gz = xp_gunzip_new(body);
    while (got && status == XP_OK) {
        uint8_t *p = xp_buf_room(out, 65536);
        status = p ? xp_gunzip_read(gz, p, 65536, &got) : XP_TOO_LARGE;
        out->n += status == XP_OK ? got : 0;
    }
    xp_gunzip_free(gz);
    return status == XP_OK;
}

/* --- printing it --- */

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
        terminal_table(stdout, table);
    }
    json_decref(j);
    return shown > 0;
}

static bool is_text(const char *type)
{
    return strncmp(type, "text/", 5) == 0 || strcmp(type, "application/json") == 0;
}

/* As it is into a file or a pipe; what a terminal would obey is taken out for a terminal. */
static int print_whole(struct xp_span text, const char *type)
{
    if (!isatty(STDOUT_FILENO))
        fwrite(text.p, 1, text.n, stdout);
    else if (is_text(type)) {
        terminal_text(stdout, text);
        if (text.n && text.p[text.n - 1] != '\n')
            putchar('\n');
    } else {
        say("the answer is %zu bytes of %s: send it into a file", text.n, type);
        return 1;
    }
    return 0;
}

static int print_answer(const struct query *q, const struct run *run, struct shard_answer *a)
{
    struct xp_buf text;
    int rc = 0;

    if (a->error.status != XP_OK) {
        say("%s", a->error.text);
        if (run->n_hosts > 1 && q->nhosts != 1 && q->xprof)
            say_hosts(run);
        if (!q->xprof && strstr(a->error.text, "has no report"))
            say("--xprof prints what XProf's own route answers");
        return 1;
    }
    xp_buf_init(&text, SIZE_MAX / 2);
    if (!inflate(a, &text)) {
        say("there is not enough memory for the answer");
        rc = 1;
    } else if (q->form != FORM_TABLE)
        rc = print_whole(xp_buf_all(&text), a->content_type);
    else if (!q->xprof)
        terminal_report(stdout, xp_buf_all(&text));
    else if (!print_tables(xp_buf_all(&text))) {
        say("the answer of %s is no table; --json shows it", q->tool);
        rc = 1;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say("the answer could not be written: %s", strerror(errno));
        rc = 1;
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
    if (page.n && page.total > 1)
        say("run \"%s\", the newest of %zu: --run takes another", page.runs[0]->name, page.total);
    if (page.n)
        *run = run_ref(page.runs[0]);
    else
        xp_fail(err, XP_NOT_FOUND, 0, "%s: found %s; expected %s",
                page.read ? page.read : q->source, page.found ? page.found : "nothing",
                page.expected ? page.expected : "a profile");
    run_page_fini(&page);
    return *run ? XP_OK : XP_NOT_FOUND;
}

static bool is_chosen(const struct query *q, const char *host)
{
    for (size_t i = 0; i < q->nhosts; i++)
        if (strcmp(q->hosts[i], host) == 0)
            return true;
    return q->nhosts == 0;
}

/* 0: there is none, and it was said. */
static size_t choose_hosts(const struct query *q, const struct run *run, struct shard_object *o)
{
    size_t n = 0;
    for (size_t i = 0; i < q->nhosts; i++)
        if (!run_host_find(run, xp_span_str(q->hosts[i]))) {
            say("run \"%s\" has no host \"%s\"", run->name, q->hosts[i]);
            say_hosts(run);
            return 0;
        }
    for (size_t i = 0; i < run->n_hosts; i++) {
        const struct run_host *h = &run->hosts[q->xprof ? run->by_name[i] : i];
        if (is_chosen(q, h->name))
            o[n++] =
                (struct shard_object){run->store, h->key, h->name, h->generation, h->size, h->gz};
    }
    if (n == 0)
        say("run \"%s\" holds no profile: %s", run->name,
            run->note ? run->note : "its folder is empty");
    return n;
}

/* What the answer does not say: that a file is empty, or no profile at all. */
static void say_doubts(const struct query *q, const struct run *run)
{
    const char *const *why = run_look(run);
    for (size_t i = 0; i < run->n_hosts; i++)
        if (why[i] && is_chosen(q, run->hosts[i].name))
            say("%s: %s", run->hosts[i].name, why[i]);
}

static enum shard_op op_of(const struct query *q)
{
    if (q->xprof)
        return q->form == FORM_CSV ? SHARD_TOOL_CSV : SHARD_TOOL;
    return q->form == FORM_CSV ? SHARD_REPORT_CSV : SHARD_REPORT;
}

static int ask(const struct query *q, const struct run *run, struct xp_workers *workers)
{
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    struct shard_object *objects = calloc(run->n_hosts + 1, sizeof *objects);

    XP_ASSERT(objects);
    size_t n = choose_hosts(q, run, objects);
    if (n == 0) {
        free(objects);
        return 1;
    }
    struct shard *shard = shard_new(workers, options_memory_limit() / 2);
    struct shard_request req = {.op = op_of(q),
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
    int rc = print_answer(q, run, &w.answer);
    if (rc == 0)
        say_doubts(q, run);
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
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help();
    if (!parse(&q, argc, argv))
        return 2;
    xp_log_set_level(XP_LOG_ERROR); /* a warning would say again what the answer says */
    if (xp_store_open_path(q.source, &store, &err) != XP_OK) {
        say("%s", err.text);
        return 2;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct xp_workers *workers = xp_workers_new(cores > 0 ? (int)cores : 1, 64);
    struct run_index *runs = run_index_new(&store, 1);
    if (find_run(&q, runs, &run, &err) == XP_OK)
        rc = ask(&q, run, workers);
    else {
        say("%s", err.text);
        if (q.run)
            say_runs(runs);
    }
    run_unref(run);
    run_index_free(runs);
    xp_workers_free(workers);
    xp_store_free(store);
    return rc;
}
