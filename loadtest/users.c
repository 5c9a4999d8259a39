/* loadtest/users.c - many users at one server: they open profiles, zoom, pan, ask for tools, and
 * share what they see by links, which others open and they revoke.
 *
 * Arrivals are open-loop: actions come at the times of a Poisson process, whatever became of those
 * before, and each is some user's, who has a connection of his own. What a user asks for while he
 * still waits is queued (on HTTP/2 when he waits for WIRE_STREAMS answers), and its latency counts
 * from when it was to start, so that a server that stalls is not asked less and does not look
 * better for it (no coordinated omission).
 *
 * --plan names what is looked at: a line each, "run host t0 t1" in picoseconds, separated by tabs.
 * A user has a line of it, by number, or the first ones more often (--zipf). --mix weighs the
 * actions. A link has to lead to the view that it was made from, and a revoked one nowhere: what
 * does not is counted as wrong. --warm has every user connected before the clock starts. --idle
 * does nothing else: it prints a line when all are, waits, and says how many still are.
 *
 * Prints one JSON object: figures of each action, and of each second. One thread.
 */
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "loadtest/lib/wire.h"
#include "loadtest/lib/xs.h"

#define QUEUE_MAX 64
#define LINKS_MAX 8
#define SECONDS_MAX 3600
#define GIVE_UP_NS UINT64_C(60000000000)
#define CONNECT_NS UINT64_C(30000000000)
#define SAMPLES_MAX 4000000
#define PATH_MAX_N 2048

#define ACTIONS(X)                                                                                 \
    X(OPEN, "open")                                                                                \
    X(ZOOM, "zoom")                                                                                \
    X(PAN, "pan")                                                                                  \
    X(TOOL, "tool")                                                                                \
    X(LIST, "list")                                                                                \
    X(LINK, "link")                                                                                \
    X(FOLLOW, "follow")                                                                            \
    X(REVOKE, "revoke")

enum action {
#define X(name, text) name,
    ACTIONS(X)
#undef X
        ACTIONS_N
};

static const char *const names[] = {
#define X(name, text) text,
    ACTIONS(X)
#undef X
};

static const char *const tools[] = {"overview_page", "op_profile", "hlo_stats",
                                    "framework_op_stats", "roofline_model"};

struct target {
    char *run, *host; /* as they stand in a query */
    int64_t lo, hi;
};

struct due {
    enum action action;
    uint64_t at;
};

struct link {
    char *url, *id, *view;
};

struct user {
    struct wire *wire;
    const struct target *target;
    int64_t t0, t1; /* what he looks at */
    struct due queue[QUEUE_MAX];
    size_t first, n;
    struct link links[LINKS_MAX]; /* that he made, and nobody revoked */
    size_t n_links;
};

struct sample {
    uint32_t us;
    uint16_t second;
    uint8_t action, ok;
};

struct load {
    const char *plan, *prefix;
    struct wire_config wire;
    bool warm;
    int users_n;
    double rate, seconds, zipf, idle;
    int mix[ACTIONS_N];
    uint64_t known, seed;

    struct target *targets;
    size_t n_targets;
    struct user *users;
    struct rng rng;
    struct wires *wires;
    uint64_t began, next, end;
    struct sample *samples;
    size_t n, under_way;
    uint64_t errors, busy, dropped, wrong;
};

/* An ask under way. */
struct asked {
    struct load *l;
    struct user *u;
    struct due due;
    struct link link; /* that is made, followed or revoked; this ask's own */
    bool revoked;     /* it is opened to see that it leads nowhere */
};

static void next(struct load *l, struct user *u);

/* --- what is asked for --- */

static double uniform(struct rng *r)
{
    return (double)(rng_next(r) >> 11) / 9007199254740992.0;
}

static void whole(struct user *u)
{
    u->t0 = u->target->lo;
    u->t1 = u->target->hi;
}

/* Half as wide, somewhere within; out again when it is narrow. With --known, one of so many. */
static void zoom(struct load *l, struct user *u)
{
    int64_t span = u->target->hi - u->target->lo, width = (u->t1 - u->t0) / 2;
    if (l->known) {
        struct rng fixed = rng_for(l->seed, 9, rng_below(&l->rng, (uint32_t)l->known));
        width = span >> (1 + rng_below(&fixed, 8));
        u->t0 = u->target->lo + (int64_t)((double)(span - width) * uniform(&fixed));
        u->t1 = u->t0 + width;
        return;
    }
    if (width < span / 4096) {
        whole(u);
        width = span / 2;
    }
    u->t0 += (int64_t)((double)(u->t1 - u->t0 - width) * uniform(&l->rng));
    u->t1 = u->t0 + width;
}

static void pan(struct load *l, struct user *u)
{
    int64_t width = u->t1 - u->t0;
    int64_t step = (int64_t)((double)width * (uniform(&l->rng) - 0.5));
    if (u->t0 + step < u->target->lo || u->t1 + step > u->target->hi)
        step = -step / 8;
    u->t0 = u->t0 + step > u->target->lo ? u->t0 + step : u->target->lo;
    u->t1 = u->t0 + width;
}

static bool is_window(enum action action)
{
    return action == ZOOM || action == PAN;
}

static void write_path(struct load *l, struct user *u, const struct asked *a, struct xp_buf *b)
{
    const struct target *t = u->target;
    if (a->due.action == FOLLOW) {
        xp_buf_fmt(b, "%s/%s", l->prefix[0] ? l->prefix : "/p/local", a->link.url);
        return;
    }
    xp_buf_fmt(b, "%s/api/v1/", l->prefix);
    if (a->due.action == OPEN)
        xp_buf_fmt(b, "tracks?run=%s&host=%s&wait=all", t->run, t->host);
    else if (a->due.action == TOOL)
        xp_buf_fmt(b, "report?run=%s&tool=%s", t->run,
                   tools[rng_below(&l->rng, sizeof tools / sizeof *tools)]);
    else if (a->due.action == LIST)
        xp_buf_str(b, "runs?limit=50");
    else if (a->due.action == LINK)
        xp_buf_str(b, "links");
    else if (a->due.action == REVOKE)
        xp_buf_fmt(b, "links?run=%s&id=%s", t->run, a->link.id);
    else
        xp_buf_fmt(b, "window?run=%s&host=%s&px=1500&wait=all&t0=%lld&t1=%lld", t->run, t->host,
                   (long long)u->t0, (long long)u->t1);
}

/* What the user sees, as a page that a link leads to. */
static void write_link(const struct user *u, struct asked *a, struct xp_buf *b)
{
    char view[PATH_MAX_N];
    snprintf(view, sizeof view, "trace?run=%s&t0=%lld&t1=%lld", u->target->run, (long long)u->t0,
             (long long)u->t1);
    a->link.view = strdup(view);
    XP_ASSERT(a->link.view);
    xp_buf_fmt(b, "{\"run\":\"%s\",\"view\":\"%s\",\"minutes\":60}", u->target->run, view);
}

/* Where the user looks from here on, and which of his links an ask is about. */
static void move(struct load *l, struct user *u, struct asked *a)
{
    enum action action = a->due.action;
    if (action == OPEN)
        whole(u);
    else if (action == PAN && !l->known)
        pan(l, u);
    else if (is_window(action))
        zoom(l, u);
    if (action < LINK)
        return;
    if (action != LINK && u->n_links == 0)
        a->due.action = LINK; /* one has to be made first, */
    else if (action == LINK && u->n_links == LINKS_MAX)
        a->due.action = FOLLOW; /* and he has enough of them */
    if (a->due.action == LINK)
        return;
    size_t i = rng_below(&l->rng, (uint32_t)u->n_links);
    struct link *link = &u->links[i];
    if (a->due.action == FOLLOW) {
        a->link = (struct link){strdup(link->url), NULL, strdup(link->view)};
        XP_ASSERT(a->link.url && a->link.view);
    } else {
        a->link = *link;
        *link = u->links[--u->n_links];
    }
}

/* --- what came --- */

static void free_link(struct link *link)
{
    free(link->url);
    free(link->id);
    free(link->view);
    *link = (struct link){0};
}

static void note(struct load *l, const struct asked *a, bool ok)
{
    uint64_t us = (xp_now_ns() - a->due.at) / 1000;
    l->errors += !ok;
    if (l->n < SAMPLES_MAX)
        l->samples[l->n++] = (struct sample){
            us < UINT32_MAX ? (uint32_t)us : UINT32_MAX,
            (uint16_t)((a->due.at - l->began) / UINT64_C(1000000000)), (uint8_t)a->due.action, ok};
}

/* Opens the one that the user made; false: that is no such answer. */
static bool take_link(struct asked *a, struct xp_span body)
{
    json_t *j = json_loadb((const char *)body.p, body.n, 0, NULL);
    const char *url = json_string_value(json_object_get(j, "url"));
    const char *id = json_string_value(json_object_get(j, "id"));
    struct user *u = a->u;
    bool ok = url && id;
    if (ok && u->n_links < LINKS_MAX) {
        u->links[u->n_links] = (struct link){strdup(url), strdup(id), a->link.view};
        XP_ASSERT(u->links[u->n_links].url && u->links[u->n_links].id);
        u->n_links++;
        a->link.view = NULL;
    }
    json_decref(j);
    return ok;
}

/* Whether the answer is what was to come. */
static bool is_good(struct asked *a, const struct wire_answer *got)
{
    switch (a->due.action) {
    case LINK:
        return got->status == 201 && take_link(a, got->body);
    case FOLLOW:
        if (a->revoked) {
            a->l->wrong += got->status == 303;
            return got->status == 410;
        }
        if (got->status == 303 && (strncmp(got->location, "./", 2) != 0 ||
                                   strcmp(got->location + 2, a->link.view) != 0)) {
            a->l->wrong++;
            return false;
        }
        return got->status == 303;
    case REVOKE:
        return got->status == 204;
    default:
        return got->status == 200 || got->status == 304;
    }
}

static void ask(struct asked *a);

static void on_answer(void *ctx, const struct wire_answer *got)
{
    struct asked *a = ctx;
    struct load *l = a->l;
    struct user *u = a->u;
    bool ok = is_good(a, got);
    note(l, a, ok);
    l->under_way--;
    l->busy += got->status == 503;
    if (ok && a->due.action == REVOKE) { /* and at once it leads nowhere */
        a->due = (struct due){FOLLOW, xp_now_ns()};
        a->revoked = true;
        ask(a);
    } else {
        free_link(&a->link);
        free(a);
    }
    next(l, u);
}

static void ask(struct asked *a)
{
    struct xp_buf path, body;
    enum action action = a->due.action;
    struct wire_request r = {.method = action == LINK     ? "POST"
                                       : action == REVOKE ? "DELETE"
                                                          : "GET",
                             .look = action == LINK};
    xp_buf_init(&path, PATH_MAX_N);
    xp_buf_init(&body, 2 * PATH_MAX_N);
    write_path(a->l, a->u, a, &path);
    if (action == LINK)
        write_link(a->u, a, &body);
    xp_buf_byte(&path, 0);
    XP_ASSERT(!path.failed && !body.failed);
    r.path = (const char *)path.p;
    r.body = xp_buf_all(&body);
    a->l->under_way++;
    wire_ask(a->u->wire, &r, on_answer, a);
    xp_buf_fini(&path);
    xp_buf_fini(&body);
}

static void next(struct load *l, struct user *u)
{
    while (u->n && wire_room(u->wire)) {
        struct asked *a = calloc(1, sizeof *a);
        XP_ASSERT(a);
        a->l = l;
        a->u = u;
        a->due = u->queue[u->first];
        u->first = (u->first + 1) % QUEUE_MAX;
        u->n--;
        move(l, u, a);
        ask(a);
    }
}

/* --- arrivals --- */

static enum action draw(struct load *l)
{
    int sum = 0, at;
    for (int i = 0; i < ACTIONS_N; i++)
        sum += l->mix[i];
    at = (int)rng_below(&l->rng, (uint32_t)sum);
    for (int i = 0; i < ACTIONS_N; i++)
        if ((at -= l->mix[i]) < 0)
            return (enum action)i;
    return ZOOM;
}

static void arrive(struct load *l)
{
    struct user *u = &l->users[rng_below(&l->rng, (uint32_t)l->users_n)];
    if (u->n == QUEUE_MAX) {
        l->dropped++;
        l->errors++;
        return;
    }
    u->queue[(u->first + u->n++) % QUEUE_MAX] = (struct due){draw(l), l->next};
    next(l, u);
}

static void run(struct load *l)
{
    for (;;) {
        uint64_t now = xp_now_ns();
        while (l->next <= now && l->next < l->end) {
            arrive(l);
            l->next += (uint64_t)(-log(1 - uniform(&l->rng)) / l->rate * 1e9);
        }
        if (l->next >= l->end && (!l->under_way || now > l->end + GIVE_UP_NS))
            break;
        uint64_t wait = l->next < l->end ? l->next - (now < l->next ? now : l->next) : 50000000;
        wires_wait(l->wires, wait < 50000000 ? wait : 50000000);
    }
    for (size_t i = l->under_way; i > 0; i--) /* who still waits was not served */
        l->errors++;
}

/* --- connections before anything else --- */

static void on_connected(void *ctx, const struct wire_answer *a)
{
    struct load *l = ctx;
    l->under_way--;
    l->errors += a->status != 200;
}

static void connect_all(struct load *l)
{
    char path[PATH_MAX_N];
    uint64_t end = xp_now_ns() + CONNECT_NS;
    snprintf(path, sizeof path, "%s/api/v1/me", l->prefix);
    for (int i = 0; i < l->users_n; i++) {
        l->under_way++;
        wire_ask(l->users[i].wire, &(struct wire_request){.method = "GET", .path = path},
                 on_connected, l);
        while (l->under_way >= 64 && xp_now_ns() < end)
            wires_wait(l->wires, 10000000);
    }
    while (l->under_way && xp_now_ns() < end)
        wires_wait(l->wires, 10000000);
}

static void stay_idle(struct load *l)
{
    size_t up = wires_up(l->wires);
    printf("{\"connected\":%zu,\"errors\":%llu}\n", up, (unsigned long long)l->errors);
    fflush(stdout);
    uint64_t end = xp_now_ns() + (uint64_t)(l->idle * 1e9);
    while (xp_now_ns() < end)
        wires_wait(l->wires, 50000000);
    printf("{\"still\":%zu}\n", wires_up(l->wires));
}

/* --- what came of it --- */

static int by_time(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double part(const uint32_t *v, size_t n, double p)
{
    size_t i = (size_t)ceil(p * (double)n);
    return n ? v[i > 0 ? i - 1 : 0] / 1e3 : 0;
}

/* Of one action, or of all (ACTIONS_N). */
static void write_action(const struct load *l, int action, uint32_t *v)
{
    size_t n = 0, failed = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct sample *s = &l->samples[i];
        if (action != ACTIONS_N && s->action != action)
            continue;
        failed += !s->ok;
        if (s->ok)
            v[n++] = s->us;
    }
    qsort(v, n, sizeof *v, by_time);
    printf("\"%s\":{\"n\":%zu,\"errors\":%zu,\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"p999\":%.3f,"
           "\"max\":%.3f}",
           action == ACTIONS_N ? "all" : names[action], n, failed, part(v, n, 0.5),
           part(v, n, 0.95), part(v, n, 0.99), part(v, n, 0.999), n ? v[n - 1] / 1e3 : 0);
}

static void write_seconds(const struct load *l, uint32_t *v)
{
    printf(",\"seconds\":[");
    for (size_t s = 0; s < (size_t)ceil(l->seconds); s++) {
        size_t n = 0, failed = 0;
        for (size_t i = 0; i < l->n; i++)
            if (l->samples[i].second == s) {
                failed += !l->samples[i].ok;
                v[n++] = l->samples[i].us;
            }
        qsort(v, n, sizeof *v, by_time);
        printf("%s[%zu,%zu,%.3f,%.3f,%.3f,%.3f]", s ? "," : "", n, failed, part(v, n, 0.5),
               part(v, n, 0.95), part(v, n, 0.99), part(v, n, 0.999));
    }
    printf("]");
}

static void report(const struct load *l)
{
    uint32_t *v = malloc((l->n + 1) * sizeof *v);
    XP_ASSERT(v);
    printf("{\"users\":%d,\"rate\":%.1f,\"run_s\":%.3f,\"errors\":%llu,\"busy\":%llu,"
           "\"retries\":%llu,\"dropped\":%llu,\"wrong\":%llu,\"bytes\":%llu,\"ms\":{",
           l->users_n, l->rate, l->seconds, (unsigned long long)l->errors,
           (unsigned long long)l->busy, (unsigned long long)wires_retries(l->wires),
           (unsigned long long)l->dropped, (unsigned long long)l->wrong,
           (unsigned long long)wires_bytes(l->wires));
    for (int i = 0; i <= ACTIONS_N; i++) {
        if (i)
            printf(",");
        write_action(l, i, v);
    }
    printf("}");
    write_seconds(l, v);
    printf("}\n");
    free(v);
}

/* --- life --- */

static bool read_plan(struct load *l)
{
    FILE *f = fopen(l->plan, "re");
    char *line = NULL;
    size_t room = 0;
    while (f && getline(&line, &room, f) > 0) {
        struct target t;
        char *run = line, *host = strchr(run, '\t');
        char *lo = host ? strchr(host + 1, '\t') : NULL, *hi = lo ? strchr(lo + 1, '\t') : NULL;
        if (!hi)
            break;
        *host++ = *lo++ = *hi++ = 0;
        t = (struct target){strdup(run), strdup(host), strtoll(lo, NULL, 10),
                            strtoll(hi, NULL, 10)};
        l->targets = realloc(l->targets, (l->n_targets + 1) * sizeof t);
        XP_ASSERT(l->targets && t.run && t.host);
        l->targets[l->n_targets++] = t;
    }
    free(line);
    if (f)
        fclose(f);
    return l->n_targets > 0;
}

/* Each user's line of the plan: all alike, or as Zipf's law has it. */
static void place_users(struct load *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n_targets; i++)
        sum += pow((double)(i + 1), -l->zipf);
    for (int i = 0; i < l->users_n; i++) {
        double at = uniform(&l->rng) * sum;
        size_t t = 0;
        while (t + 1 < l->n_targets && (at -= pow((double)(t + 1), -l->zipf)) > 0)
            t++;
        l->users[i].target = &l->targets[l->zipf > 0 ? t : (size_t)i % l->n_targets];
        l->users[i].wire = wire_new(l->wires);
        whole(&l->users[i]);
    }
}

static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                        {"plan", required_argument, NULL, 'f'},
                                        {"users", required_argument, NULL, 'u'},
                                        {"rate", required_argument, NULL, 'r'},
                                        {"known", required_argument, NULL, 'k'},
                                        {"seconds", required_argument, NULL, 's'},
                                        {"mix", required_argument, NULL, 'm'},
                                        {"zipf", required_argument, NULL, 'z'},
                                        {"seed", required_argument, NULL, 'e'},
                                        {"prefix", required_argument, NULL, 'x'},
                                        {"http2", no_argument, NULL, '2'},
                                        {"tls", no_argument, NULL, 't'},
                                        {"warm", no_argument, NULL, 'w'},
                                        {"idle", required_argument, NULL, 'i'},
                                        {NULL, 0, NULL, 0}};

/* "open=5,zoom=60,..." */
static bool read_mix(struct load *l, const char *text)
{
    memset(l->mix, 0, sizeof l->mix);
    while (*text) {
        int i = 0;
        size_t n = strcspn(text, "=");
        while (i < ACTIONS_N && (strlen(names[i]) != n || strncmp(names[i], text, n) != 0))
            i++;
        if (i == ACTIONS_N || text[n] != '=')
            return false;
        char *end;
        l->mix[i] = (int)strtol(text + n + 1, &end, 10);
        text = *end == ',' ? end + 1 : end;
        if (l->mix[i] < 0 || l->mix[i] > 1000000 || (*end && *end != ','))
            return false;
    }
    return true;
}

static bool set(struct load *l, int c, const char *arg)
{
    switch (c) {
    case 'p':
        l->wire.port = (int)strtol(arg, NULL, 10);
        return l->wire.port > 0 && l->wire.port < 65536;
    case 'f':
        l->plan = arg;
        return true;
    case 'u':
        l->users_n = (int)strtol(arg, NULL, 10);
        return l->users_n > 0 && l->users_n <= 20000;
    case 'r':
        l->rate = strtod(arg, NULL);
        return l->rate > 0 && l->rate <= 100000;
    case 's':
        l->seconds = strtod(arg, NULL);
        return l->seconds > 0 && l->seconds <= SECONDS_MAX;
    case 'k':
        l->known = strtoull(arg, NULL, 10);
        return l->known <= UINT32_MAX;
    case 'z':
        l->zipf = strtod(arg, NULL);
        return l->zipf >= 0 && l->zipf < 10;
    case 'e':
        l->seed = strtoull(arg, NULL, 10);
        return true;
    case 'x':
        l->prefix = arg;
        return true;
    case '2':
        l->wire.h2 = true;
        return true;
    case 't':
        l->wire.tls = true;
        return true;
    case 'w':
        l->warm = true;
        return true;
    case 'i':
        l->idle = strtod(arg, NULL);
        return l->idle > 0 && l->idle <= SECONDS_MAX;
    default:
        return c == 'm' && read_mix(l, arg);
    }
}

static void load_run(struct load *l)
{
    place_users(l);
    if (l->warm || l->idle > 0)
        connect_all(l);
    if (l->idle > 0) {
        stay_idle(l);
        return;
    }
    l->began = l->next = xp_now_ns();
    l->end = l->began + (uint64_t)(l->seconds * 1e9);
    run(l);
    report(l);
}

static void load_fini(struct load *l)
{
    wires_close(l->wires);
    for (int i = 0; i < l->users_n; i++)
        while (l->users[i].n_links)
            free_link(&l->users[i].links[--l->users[i].n_links]);
    for (size_t i = 0; i < l->n_targets; i++) {
        free(l->targets[i].run);
        free(l->targets[i].host);
    }
    free(l->targets);
    free(l->users);
    free(l->samples);
}

int main(int argc, char **argv)
{
    struct load l = {.prefix = "",
                     .users_n = 100,
                     .rate = 100,
                     .seconds = 10,
                     .seed = 1,
                     .mix = {5, 55, 30, 5, 5}};
    bool ok = true;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
        ok = set(&l, c, optarg) && ok;
    if (!ok || !l.wire.port || !l.plan || optind != argc || !read_plan(&l)) {
        fprintf(stderr, "usage: users --port P --plan FILE [--http2] [--tls] [--users N]\n"
                        "  [--rate ACTIONS_A_SECOND] [--seconds S] [--known N] [--zipf EXPONENT]\n"
                        "  [--mix open=5,zoom=55,pan=30,tool=5,list=5,link=0,follow=0,revoke=0]\n"
                        "  [--seed N] [--prefix /p/PROJECT] [--warm] [--idle SECONDS]\n");
        return 2;
    }
    l.wires = wires_open(&l.wire);
    if (!l.wires)
        return 2;
    l.users = calloc((size_t)l.users_n, sizeof *l.users);
    l.samples = malloc(SAMPLES_MAX * sizeof *l.samples);
    XP_ASSERT(l.users && l.samples);
    l.rng = rng_for(l.seed, 10, 0);
    load_run(&l);
    load_fini(&l);
    return 0;
}
