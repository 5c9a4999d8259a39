/* loadtest/users.c - many users at one server: they open profiles, zoom, pan and ask for tools.
 *
 * Arrivals are open-loop: actions come at the times of a Poisson process, whatever became of those
 * before, and each is some user's, who has a connection of his own. What a user asks for while he
 * still waits is queued, and its latency counts from when it was to start, so that a server that
 * stalls is not asked less and does not look better for it (no coordinated omission).
 *
 * --plan names what is looked at: a line each, "run host t0 t1" in picoseconds, separated by tabs.
 * A user has a line of it, by number, or the first ones more often (--zipf). --mix weighs the
 * actions. Prints one JSON object: figures of each action, and of each second. HTTP/1.1 with
 * keep-alive, one thread and epoll.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "loadtest/lib/xs.h"

#define HEAD_MAX 8192
#define QUEUE_MAX 64
#define SECONDS_MAX 3600
#define GIVE_UP_NS UINT64_C(60000000000)
#define SAMPLES_MAX 4000000

#define ACTIONS(X) X(OPEN, "open") X(ZOOM, "zoom") X(PAN, "pan") X(TOOL, "tool") X(LIST, "list")

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

struct user {
    int fd;
    bool busy, in_body, chunked, failed, close, again;
    const struct target *target;
    int64_t t0, t1; /* what he looks at */
    struct due queue[QUEUE_MAX];
    size_t first, n;
    struct due now;
    char out[2048], head[HEAD_MAX];
    size_t out_n, out_at, head_n;
    uint64_t left;
    uint8_t tail[5]; /* of a chunked body */
    int status;
};

struct sample {
    uint32_t us;
    uint16_t second;
    uint8_t action, ok;
};

struct load {
    const char *plan, *prefix;
    int port, users_n;
    double rate, seconds, zipf;
    int mix[ACTIONS_N];
    uint64_t known, seed;

    struct target *targets;
    size_t n_targets;
    struct user *users;
    struct rng rng;
    int epoll;
    uint64_t began, next, end;
    struct sample *samples;
    size_t n;
    uint64_t errors, busy, retries, dropped, bytes;
    size_t open;
};

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

static void write_path(struct load *l, struct user *u, struct xp_buf *b)
{
    const struct target *t = u->target;
    xp_buf_fmt(b, "%s/api/v1/", l->prefix);
    switch (u->now.action) {
    case OPEN:
        xp_buf_fmt(b, "tracks?run=%s&host=%s&wait=all", t->run, t->host);
        whole(u);
        return;
    case TOOL:
        xp_buf_fmt(b, "report?run=%s&tool=%s", t->run,
                   tools[rng_below(&l->rng, sizeof tools / sizeof *tools)]);
        return;
    case LIST:
        xp_buf_str(b, "runs?limit=50");
        return;
    case ZOOM:
        zoom(l, u);
        break;
    default:
        if (l->known)
            zoom(l, u);
        else
            pan(l, u);
    }
    xp_buf_fmt(b, "window?run=%s&host=%s&px=1500&wait=all&t0=%lld&t1=%lld", t->run, t->host,
               (long long)u->t0, (long long)u->t1);
}

static void write_request(struct load *l, struct user *u)
{
    struct xp_buf b;
    xp_buf_init(&b, sizeof u->out);
    xp_buf_str(&b, "GET ");
    write_path(l, u, &b);
    xp_buf_fmt(&b, " HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept-Encoding: gzip\r\n\r\n", l->port);
    XP_ASSERT(!b.failed);
    memcpy(u->out, b.p, b.n);
    u->out_n = b.n;
    xp_buf_fini(&b);
}

/* --- connections --- */

static bool dial(struct load *l, struct user *u)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = u};
    int on = 1;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    u->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0)
        return false;
    setsockopt(u->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    l->open++;
    return (connect(u->fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS) &&
           epoll_ctl(l->epoll, EPOLL_CTL_ADD, u->fd, &ev) == 0;
}

static void hang_up(struct load *l, struct user *u)
{
    if (u->fd >= 0) {
        close(u->fd);
        l->open--;
    }
    u->fd = -1;
}

static void flush(struct load *l, struct user *u);
static void begin(struct load *l, struct user *u);

static void note(struct load *l, const struct user *u, bool ok)
{
    uint64_t us = (xp_now_ns() - u->now.at) / 1000;
    l->errors += !ok;
    l->busy += u->status == 503;
    if (l->n < SAMPLES_MAX)
        l->samples[l->n++] = (struct sample){
            us < UINT32_MAX ? (uint32_t)us : UINT32_MAX,
            (uint16_t)((u->now.at - l->began) / UINT64_C(1000000000)), (uint8_t)u->now.action, ok};
}

/* The connection is of no use. An ask on one that was kept, of which no byte came back, is made
 * again on a new one, as browsers do: the server may have closed it meanwhile. */
static void lose(struct load *l, struct user *u)
{
    hang_up(l, u);
    if (!u->busy)
        return;
    if (!u->again && u->head_n == 0 && !u->in_body) {
        u->again = true;
        l->retries++;
        begin(l, u);
        return;
    }
    u->busy = false;
    note(l, u, false);
}

static void begin(struct load *l, struct user *u)
{
    u->busy = true;
    u->in_body = u->failed = u->close = u->chunked = false;
    u->status = 0;
    u->head_n = u->out_at = 0;
    if (u->fd < 0 && !dial(l, u)) {
        u->again = true;
        lose(l, u);
        return;
    }
    flush(l, u);
}

static void next(struct load *l, struct user *u)
{
    while (!u->busy && u->n) {
        u->now = u->queue[u->first];
        u->first = (u->first + 1) % QUEUE_MAX;
        u->n--;
        u->again = false;
        write_request(l, u);
        begin(l, u);
    }
}

static void flush(struct load *l, struct user *u)
{
    while (u->busy && u->out_at < u->out_n) {
        ssize_t n = send(u->fd, u->out + u->out_at, u->out_n - u->out_at, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (n <= 0) {
            lose(l, u);
            return;
        }
        u->out_at += (size_t)n;
    }
}

/* --- answers --- */

static const char *header(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(head, "\r\n"); p; p = strstr(p + 2, "\r\n"))
        if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':')
            return p + 3 + n + strspn(p + 3 + n, " ");
    return NULL;
}

static void read_head(struct user *u)
{
    const char *length = header(u->head, "content-length");
    const char *coding = header(u->head, "transfer-encoding");
    const char *keep = header(u->head, "connection");
    u->status = u->head_n > 12 ? (int)strtol(u->head + 9, NULL, 10) : 0;
    u->failed = u->status != 200 && u->status != 304;
    u->chunked = coding && strncasecmp(coding, "chunked", 7) == 0;
    u->left = length ? strtoull(length, NULL, 10) : 0;
    u->close = keep && strncasecmp(keep, "close", 5) == 0;
    u->in_body = true;
    memset(u->tail, 0, sizeof u->tail);
}

/* A chunked body ends with the last five bytes of "\r\n0\r\n\r\n"; it is gzip, which may hold them
 * elsewhere once in 10^12 bytes. True: it is whole. */
static bool read_body(struct user *u, const uint8_t *p, size_t n)
{
    if (!u->chunked) {
        u->left -= n < u->left ? n : u->left;
        return u->left == 0;
    }
    for (size_t i = n > 5 ? n - 5 : 0; i < n; i++) {
        memmove(u->tail, u->tail + 1, 4);
        u->tail[4] = p[i];
    }
    return memcmp(u->tail, "0\r\n\r\n", 5) == 0;
}

static bool take(struct user *u, const uint8_t *p, size_t n)
{
    if (u->in_body)
        return read_body(u, p, n);
    size_t old = u->head_n, k = n < HEAD_MAX - 1 - old ? n : HEAD_MAX - 1 - old;
    memcpy(u->head + old, p, k);
    u->head_n += k;
    u->head[u->head_n] = 0;
    char *end = strstr(u->head, "\r\n\r\n");
    if (!end)
        return false;
    size_t head_n = (size_t)(end - u->head) + 4;
    end[2] = 0;
    read_head(u);
    return read_body(u, p + (head_n - old), n - (head_n - old));
}

static void on_event(struct load *l, struct user *u, uint8_t *room, size_t max)
{
    if (u->busy)
        flush(l, u);
    while (u->fd >= 0) {
        ssize_t n = read(u->fd, room, max);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            lose(l, u);
            break;
        }
        l->bytes += (uint64_t)n;
        if (u->busy && take(u, room, (size_t)n)) {
            u->busy = false;
            note(l, u, !u->failed);
            if (u->close)
                hang_up(l, u);
            next(l, u);
        }
    }
    next(l, u);
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

static bool any_busy(const struct load *l)
{
    for (int i = 0; i < l->users_n; i++)
        if (l->users[i].busy || l->users[i].n)
            return true;
    return false;
}

static void run(struct load *l)
{
    enum { ROOM = 262144 };
    uint8_t *room = malloc(ROOM);
    XP_ASSERT(room);
    for (;;) {
        uint64_t now = xp_now_ns();
        while (l->next <= now && l->next < l->end) {
            arrive(l);
            l->next += (uint64_t)(-log(1 - uniform(&l->rng)) / l->rate * 1e9);
        }
        if (l->next >= l->end && (!any_busy(l) || now > l->end + GIVE_UP_NS))
            break;
        struct epoll_event ev[256];
        uint64_t wait = l->next > now && l->next < l->end ? (l->next - now) / 1000000 : 50;
        int n = epoll_wait(l->epoll, ev, 256, (int)(wait < 50 ? wait : 50));
        for (int i = 0; i < n; i++)
            on_event(l, ev[i].data.ptr, room, ROOM);
    }
    for (int i = 0; i < l->users_n; i++) /* who still waits was not served */
        if (l->users[i].busy)
            note(l, &l->users[i], false);
    free(room);
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
        printf("%s[%zu,%zu,%.3f,%.3f]", s ? "," : "", n, failed, part(v, n, 0.5), part(v, n, 0.99));
    }
    printf("]");
}

static void report(const struct load *l)
{
    uint32_t *v = malloc((l->n + 1) * sizeof *v);
    XP_ASSERT(v);
    printf("{\"users\":%d,\"rate\":%.1f,\"run_s\":%.3f,\"errors\":%llu,\"busy\":%llu,"
           "\"retries\":%llu,\"dropped\":%llu,\"bytes\":%llu,\"ms\":{",
           l->users_n, l->rate, l->seconds, (unsigned long long)l->errors,
           (unsigned long long)l->busy, (unsigned long long)l->retries,
           (unsigned long long)l->dropped, (unsigned long long)l->bytes);
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
        l->users[i].fd = -1;
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
        l->port = (int)strtol(arg, NULL, 10);
        return l->port > 0 && l->port < 65536;
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
    default:
        return c == 'm' && read_mix(l, arg);
    }
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
    if (!ok || !l.port || !l.plan || optind != argc || !read_plan(&l)) {
        fprintf(stderr, "usage: users --port P --plan FILE [--users N] [--rate ACTIONS_A_SECOND]\n"
                        "  [--seconds S] [--mix open=5,zoom=55,pan=30,tool=5,list=5] [--known N]\n"
                        "  [--zipf EXPONENT] [--seed N] [--prefix /p/PROJECT]\n");
        return 2;
    }
    l.users = calloc((size_t)l.users_n, sizeof *l.users);
    l.samples = malloc(SAMPLES_MAX * sizeof *l.samples);
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    XP_ASSERT(l.users && l.samples && l.epoll >= 0);
    l.rng = rng_for(l.seed, 10, 0);
    place_users(&l);
    l.began = l.next = xp_now_ns();
    l.end = l.began + (uint64_t)(l.seconds * 1e9);
    run(&l);
    report(&l);
    return 0;
}
