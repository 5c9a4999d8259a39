/* k8s: members: EndpointSlices of a service, listed once and watched from there. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/cluster/members_int.h"
#include "lib/net/client.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define LIST_MS 5000
#define WATCH_S 300 /* the server ends a watch after that, and we begin another */
#define BODY_MAX ((size_t)32 << 20)
#define LINE_MAX_BYTES ((size_t)4 << 20) /* an EndpointSlice has 1,000 endpoints at most */
#define RETRY_FIRST_MS 500
#define RETRY_MOST_MS 15000
#define PORT "8792"

struct slice {
    char *name;
    char (*addresses)[MEMBER_ADDRESS_MAX]; /* of ready endpoints */
    size_t n;
};

struct k8s {
    struct xp_members *members;
    struct net_client *net;
    char *account, *service, *namespace, *server; /* server: "https://host:port" */
    char *ca;
    /* Under the members' lock: the watch adds to it on lib/net's thread. */
    struct slice *slices;
    size_t n;
    uint64_t pause_ms, due_ns; /* the thread's: until it may list again */
    size_t unnamed;            /* addresses that did not say yet who they are */
    bool changed, watching;
    bool gone; /* the server has forgotten our place: list again */
    struct net_call *watch;
    struct xp_buf line; /* lib/net's thread alone */
    char *version;      /* where a watch goes on */
};

static void free_slice(struct slice *s)
{
    free(s->name);
    free(s->addresses);
}

static void free_slices(struct slice *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free_slice(&v[i]);
    free(v);
}

/* --- JSON --- */

static const char *text_at(const json_t *o, const char *a, const char *b)
{
    const json_t *v = json_object_get(o, a);
    const char *text = json_string_value(b ? json_object_get(v, b) : v);
    return text ? text : "";
}

/* Ready, or not said, which is to be taken as ready. */
static bool is_ready(const json_t *endpoint)
{
    const json_t *ready = json_object_get(json_object_get(endpoint, "conditions"), "ready");
    return !ready || json_is_null(ready) || json_is_true(ready);
}

static void add_address(struct slice *s, const char *ip, const char *port)
{
    s->addresses = realloc(s->addresses, (s->n + 1) * sizeof *s->addresses);
    XP_ASSERT(s->addresses);
    snprintf(s->addresses[s->n++], sizeof *s->addresses, strchr(ip, ':') ? "[%s]:%s" : "%s:%s", ip,
             port);
}

static bool read_slice(const json_t *o, const char *port, struct slice *s)
{
    const json_t *endpoint, *list = json_object_get(o, "endpoints");
    size_t i;
    const char *name = text_at(o, "metadata", "name");
    *s = (struct slice){.name = strdup(name)};
    XP_ASSERT(s->name);
    json_array_foreach((json_t *)list, i, endpoint)
    {
        const char *ip =
            json_string_value(json_array_get(json_object_get(endpoint, "addresses"), 0));
        if (ip && strlen(ip) < 64 && s->n < RING_MEMBERS_MAX && is_ready(endpoint))
            add_address(s, ip, port);
    }
    return name[0] != 0;
}

static void set_version(struct k8s *k, const char *version)
{
    if (!version[0] || strlen(version) > 200)
        return;
    free(k->version);
    k->version = strdup(version);
    XP_ASSERT(k->version);
}

/* --- a list --- */

static bool read_file(const struct k8s *k, const char *name, char *text, size_t max)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", k->account, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, max - 1, f) : 0;
    if (f)
        fclose(f);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    text[n] = 0;
    return n > 0;
}

/* What a list and a watch have in common; url and auth are the caller's. */
static struct net_request request(const struct k8s *k, const char *url, char *auth, size_t max,
                                  const char **headers)
{
    char token[8192];
    size_t n = 0;
    /* Read each time: Kubernetes puts a new one there before the old one ends. */
    if (read_file(k, "token", token, sizeof token)) {
        snprintf(auth, max, "authorization: Bearer %s", token);
        headers[n++] = auth;
    }
    headers[n++] = "accept: application/json";
    headers[n] = NULL;
    return (struct net_request){.method = "GET",
                                .url = url,
                                .headers = headers,
                                .connect_ms = LIST_MS,
                                .direct = true,
                                .ca_file = k->ca};
}

static void write_url(const struct k8s *k, char *url, size_t max, bool watch)
{
    int n = snprintf(url, max,
                     "%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"
                     "?labelSelector=kubernetes.io%%2Fservice-name%%3D%s",
                     k->server, k->namespace, k->service);
    if (watch)
        snprintf(url + n, max - (size_t)n,
                 "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s", WATCH_S,
                 k->version ? k->version : "");
}

static bool take_list(struct k8s *k, struct xp_span body)
{
    json_t *o = json_loadb((const char *)body.p, body.n, 0, NULL), *one;
    const json_t *items = json_object_get(o, "items");
    struct xp_members *m = k->members;
    size_t i, n = 0;
    if (!json_is_array(items)) {
        json_decref(o);
        return false;
    }
    struct slice *v = calloc(json_array_size(items) + 1, sizeof *v);
    XP_ASSERT(v);
    json_array_foreach((json_t *)items, i, one)
    {
        if (read_slice(one, m->port, &v[n]))
            n++;
        else
            free_slice(&v[n]);
    }
    pthread_mutex_lock(&m->lock);
    free_slices(k->slices, k->n);
    k->slices = v;
    k->n = n;
    k->changed = true;
    k->gone = false;
    set_version(k, text_at(o, "metadata", "resourceVersion"));
    pthread_mutex_unlock(&m->lock);
    json_decref(o);
    return true;
}

static bool list(struct k8s *k)
{
    char url[2048], auth[8448];
    const char *headers[4];
    struct net_reply reply;
    struct xp_error err = {0};
    write_url(k, url, sizeof url, false);
    struct net_request r = request(k, url, auth, sizeof auth, headers);
    r.total_ms = LIST_MS;
    enum xp_status status = net_fetch(k->net, &r, BODY_MAX, &reply, &err);
    bool ok = status == XP_OK && reply.code == 200 && take_list(k, xp_buf_all(&reply.body));
    if (!ok && !k->members->failing)
        xp_log(XP_LOG_WARN, "members",
               "the API server does not list endpointslices of \"%s\" in \"%s\" (%s%d); its DNS "
               "name is looked up instead",
               k->service, k->namespace, status == XP_OK ? "" : err.text,
               status == XP_OK ? reply.code : 0);
    net_reply_fini(&reply);
    return ok;
}

/* --- a watch, on lib/net's thread --- */

static void take_slice(struct k8s *k, const json_t *o, bool deleted)
{
    struct slice s;
    size_t i = 0;
    if (!read_slice(o, k->members->port, &s)) {
        free_slice(&s);
        return;
    }
    pthread_mutex_lock(&k->members->lock);
    while (i < k->n && strcmp(k->slices[i].name, s.name) != 0)
        i++;
    if (i < k->n) {
        free_slice(&k->slices[i]);
        k->slices[i] = k->slices[--k->n];
    }
    if (!deleted) {
        k->slices = realloc(k->slices, (k->n + 1) * sizeof *k->slices);
        XP_ASSERT(k->slices);
        k->slices[k->n++] = s;
    } else {
        free_slice(&s);
    }
    k->changed = true;
    k->members->woken = true;
    pthread_cond_signal(&k->members->wake);
    pthread_mutex_unlock(&k->members->lock);
}

static void take_event(struct k8s *k, struct xp_span line)
{
    json_t *e = json_loadb((const char *)line.p, line.n, 0, NULL);
    const json_t *o = json_object_get(e, "object");
    const char *type = text_at(e, "type", NULL);
    bool deleted = !strcmp(type, "DELETED"), error = !strcmp(type, "ERROR");
    if (deleted || !strcmp(type, "ADDED") || !strcmp(type, "MODIFIED"))
        take_slice(k, o, deleted);
    pthread_mutex_lock(&k->members->lock);
    if (error)
        k->gone = true; /* most often 410: too old */
    else
        set_version(k, text_at(json_object_get(o, "metadata"), "resourceVersion", NULL));
    pthread_mutex_unlock(&k->members->lock);
    json_decref(e);
}

static bool on_bytes(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct k8s *k = ctx;
    if (net_code(call) != 200)
        return true;
    while (bytes.n) {
        const uint8_t *end = memchr(bytes.p, '\n', bytes.n);
        size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
        xp_buf_span(&k->line, xp_span_of(bytes.p, n));
        if (k->line.failed)
            return false;
        if (!end)
            break;
        if (k->line.n)
            take_event(k, xp_buf_all(&k->line));
        k->line.n = 0;
        bytes = xp_span_of(bytes.p + n + 1, bytes.n - n - 1);
    }
    return true;
}

static void on_watch_end(void *ctx, const struct net_answer *a)
{
    struct k8s *k = ctx;
    bool good = a->status == XP_OK && a->code == 200;
    pthread_mutex_lock(&k->members->lock);
    k->gone |= !good || k->line.failed;
    k->watching = false;
    k->watch = NULL;
    k->members->woken = true;
    pthread_cond_signal(&k->members->wake);
    pthread_mutex_unlock(&k->members->lock);
}

static void watch(struct k8s *k)
{
    char url[2048], auth[8448];
    const char *headers[4];
    pthread_mutex_lock(&k->members->lock);
    write_url(k, url, sizeof url, true);
    struct net_request r = request(k, url, auth, sizeof auth, headers);
    r.stall_ms = 2 * WATCH_S * 1000;
    r.total_ms = (WATCH_S + 30) * 1000;
    r.ctx = k;
    r.body_fn = on_bytes;
    r.done = on_watch_end;
    xp_buf_fini(&k->line);
    xp_buf_init(&k->line, LINE_MAX_BYTES);
    k->watch = net_start(k->net, &r);
    k->watching = k->watch != NULL;
    pthread_mutex_unlock(&k->members->lock);
}

/* --- the thread --- */

/* The addresses of all slices, if they changed or some did not say yet who they are. */
static void settle(struct k8s *k, size_t *unnamed)
{
    struct xp_members *m = k->members;
    char(*addresses)[MEMBER_ADDRESS_MAX] = NULL;
    size_t n = 0;
    pthread_mutex_lock(&m->lock);
    bool work = k->changed || *unnamed;
    k->changed = false;
    for (size_t i = 0; work && i < k->n; i++) {
        size_t more = k->slices[i].n;
        if (!more || n + more > RING_MEMBERS_MAX)
            continue;
        addresses = realloc(addresses, (n + more) * sizeof *addresses);
        XP_ASSERT(addresses);
        memcpy(addresses + n, k->slices[i].addresses, more * sizeof *addresses);
        n += more;
    }
    pthread_mutex_unlock(&m->lock);
    if (work)
        *unnamed = members_settle(m, addresses, n);
    free(addresses);
}

static void state_of(struct k8s *k, bool *watching, bool *gone)
{
    pthread_mutex_lock(&k->members->lock);
    *watching = k->watching;
    *gone = k->gone;
    pthread_mutex_unlock(&k->members->lock);
}

void members_k8s_look(struct xp_members *m)
{
    struct k8s *k = m->k8s;
    bool watching, gone;
    state_of(k, &watching, &gone);
    if (!watching && gone && xp_now_ns() >= k->due_ns) {
        bool ok = list(k);
        k->pause_ms = ok ? RETRY_FIRST_MS : k->pause_ms * 2;
        if (k->pause_ms > RETRY_MOST_MS)
            k->pause_ms = RETRY_MOST_MS;
        k->due_ns = xp_now_ns() + k->pause_ms * 1000000;
        m->failing = !ok;
        state_of(k, &watching, &gone);
    }
    if (!watching && !gone)
        watch(k);
    if (gone && !watching)
        members_look_up(m), m->failing = true; /* said once */
    else
        settle(k, &k->unnamed);
}

void *members_k8s_run(void *members)
{
    struct xp_members *m = members;
    struct k8s *k = m->k8s;
    bool watching, gone;
    for (;;) {
        state_of(k, &watching, &gone);
        bool soon = gone || k->unnamed;
        if (!members_wait(m, soon ? RETRY_FIRST_MS : m->config.poll_ms))
            return NULL;
        members_k8s_look(m);
    }
}

/* --- life --- */

static char *text(const char *format, const char *a, const char *b)
{
    char *out;
    XP_ASSERT(asprintf(&out, format, a, b) > 0);
    return out;
}

/* Of the kind that names in Kubernetes are. */
static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.");
    return n > 0 && n < 254 && !s[n];
}

static enum xp_status read_spec(struct k8s *k, const char *spec, char **port, struct xp_error *err)
{
    char name[256];
    const char *slash = strchr(spec, '/'), *colon = strrchr(spec, ':');
    const char *service = slash ? slash + 1 : spec;
    size_t n = colon ? (size_t)(colon - service) : strlen(service);
    bool ours = read_file(k, "namespace", name, sizeof name);
    k->namespace = slash ? strndup(spec, (size_t)(slash - spec)) : strdup(ours ? name : "default");
    k->service = strndup(service, n);
    *port = strdup(colon ? colon + 1 : PORT);
    XP_ASSERT(k->namespace && k->service && *port);
    if ((colon && colon < service) || !is_name(k->service) || !is_name(k->namespace) ||
        !members_is_port(*port))
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"k8s:%s\" is not k8s:[NAMESPACE/]SERVICE[:PORT]",
                       spec);
    return XP_OK;
}

enum xp_status members_k8s_open(struct xp_members *m, const char *spec, struct xp_error *err)
{
    struct k8s *k = calloc(1, sizeof *k);
    const char *account = getenv("XPROFD_SERVICEACCOUNT");
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    XP_ASSERT(k);
    m->k8s = k;
    k->members = m;
    k->gone = true; /* nothing was listed yet */
    k->pause_ms = RETRY_FIRST_MS;
    k->account = strdup(account && *account ? account : ACCOUNT);
    XP_ASSERT(k->account);
    XP_TRY(read_spec(k, spec, &m->port, err));
    if (!host || !*host || strlen(host) > 255)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "k8s: is for pods: KUBERNETES_SERVICE_HOST is not set");
    k->server = text(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
                     port && members_is_port(port) ? port : "443");
    k->ca = text("%s/%s", k->account, "ca.crt");
    m->host = text("%s.%s.svc", k->service, k->namespace);
    k->net = net_client_open();
    return XP_OK;
}

void members_k8s_close(struct k8s *k)
{
    if (!k)
        return;
    bool watching = true;
    while (watching) { /* done is called soon after it was ended */
        pthread_mutex_lock(&k->members->lock);
        watching = k->watching;
        if (k->watch)
            net_cancel(k->watch);
        pthread_mutex_unlock(&k->members->lock);
        if (watching)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    net_client_close(k->net);
    free_slices(k->slices, k->n);
    xp_buf_fini(&k->line);
    free(k->version);
    free(k->account);
    free(k->service);
    free(k->namespace);
    free(k->server);
    free(k->ca);
    free(k);
}
