#include "lib/cluster/members.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/cluster/members_int.h"

#define POLL_MS 2000

static void set_ring(struct xp_members *m, struct xp_ring *ring)
{
    pthread_mutex_lock(&m->lock);
    struct xp_ring *old = m->ring;
    bool same = old && xp_ring_same(old, ring);
    if (!same)
        m->ring = ring;
    pthread_mutex_unlock(&m->lock);
    xp_ring_unref(same ? ring : old);
    if (!same) {
        atomic_fetch_add(&m->version, 1);
        xp_log(XP_LOG_INFO, "members", "%zu shards", xp_ring_size(ring));
    }
}

/* --- static --- */

bool members_is_port(const char *s)
{
    char *end;
    long n = strtol(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && n > 0 && n <= 65535;
}

/* HOST:PORT, the host may be [an IPv6 address]. */
static bool is_address(const char *s)
{
    const char *colon = strrchr(s, ':');
    return colon && colon > s && members_is_port(colon + 1) && strlen(s) < MEMBER_ADDRESS_MAX &&
           (*s == '[' ? colon[-1] == ']' : memchr(s, ':', (size_t)(colon - s)) == NULL);
}

static enum xp_status read_static(struct xp_members *m, const char *list, struct xp_error *err)
{
    struct xp_ring_member *members = NULL;
    struct xp_ring *ring = NULL;
    size_t n = 0;
    enum xp_status status = XP_OK;
    char *copy = strdup(list), *rest = copy, *one;

    XP_ASSERT(copy);
    while ((one = strsep(&rest, ",")) != NULL) {
        char *eq = strchr(one, '=');
        if (eq)
            *eq = 0;
        const char *address = eq ? eq + 1 : one;
        if (!is_address(address)) {
            status = xp_fail(err, XP_BAD_REQUEST, 0, "\"%s\" is not HOST:PORT", address);
            goto out;
        }
        members = realloc(members, (n + 1) * sizeof *members);
        XP_ASSERT(members);
        members[n++] = (struct xp_ring_member){one, address};
    }
    status = xp_ring_new(members, n, &ring, err);
    if (status == XP_OK)
        set_ring(m, ring);
out:
    free(members);
    free(copy);
    return status;
}

/* --- dns --- */

static const struct known *find_known(const struct known *v, size_t n, const char *address)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i].address, address))
            return &v[i];
    return NULL;
}

static bool ask_name(struct xp_members *m, const char *address, struct known *k)
{
    const struct known *before = find_known(m->known, m->n_known, address);
    if (before) {
        *k = *before;
        return true;
    }
    snprintf(k->address, sizeof k->address, "%s", address);
    snprintf(k->name, sizeof k->name, "%s", address);
    return !m->config.identify || m->config.identify(m->config.ctx, address, k->name);
}

static bool write_address(const struct addrinfo *a, const char *port, char *out)
{
    char host[256];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    snprintf(out, MEMBER_ADDRESS_MAX, a->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

/* Two addresses of one identity: a member that was replaced and one lookup that saw both. The
 * first wins, the next poll settles it. */
static bool name_taken(const struct known *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i].name, name))
            return true;
    return false;
}

static void use(struct xp_members *m, struct known *found, size_t n)
{
    struct xp_ring_member *members = calloc(n + 1, sizeof *members);
    struct xp_ring *ring;
    struct xp_error err;

    XP_ASSERT(members);
    for (size_t i = 0; i < n; i++)
        members[i] = (struct xp_ring_member){found[i].name, found[i].address};
    if (xp_ring_new(members, n, &ring, &err) == XP_OK)
        set_ring(m, ring);
    else
        xp_log(XP_LOG_WARN, "members", "%s", err.text);
    free(members);
    free(m->known);
    m->known = found;
    m->n_known = n;
}

size_t members_settle(struct xp_members *m, char (*addresses)[MEMBER_ADDRESS_MAX], size_t n)
{
    struct known *found = calloc(n + 1, sizeof *found);
    size_t named = 0, unnamed = 0;
    XP_ASSERT(found);
    for (size_t i = 0; i < n; i++) {
        if (find_known(found, named, addresses[i]))
            continue;
        if (!ask_name(m, addresses[i], &found[named]))
            unnamed++;
        else if (!name_taken(found, named, found[named].name))
            named++;
    }
    use(m, found, named);
    return unnamed;
}

bool members_look_up(struct xp_members *m)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(m->host, m->port, &hints, &list);
    if (rc != 0) {
        if (!m->failing)
            xp_log(XP_LOG_WARN, "members", "cannot look up \"%s\": %s; the last members stay",
                   m->host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        m->failing = true;
        return false;
    }
    m->failing = false;
    char(*addresses)[MEMBER_ADDRESS_MAX] = NULL;
    size_t n = 0;
    for (const struct addrinfo *a = list; a && n < RING_MEMBERS_MAX; a = a->ai_next) {
        addresses = realloc(addresses, (n + 1) * sizeof *addresses);
        XP_ASSERT(addresses);
        if (write_address(a, m->port, addresses[n]))
            n++;
    }
    freeaddrinfo(list);
    members_settle(m, addresses, n);
    free(addresses);
    return true;
}

bool members_wait(struct xp_members *m, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&m->lock);
    while (!m->stop && !m->woken && pthread_cond_timedwait(&m->wake, &m->lock, &until) == 0)
        ;
    m->woken = false;
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

static void *poll_names(void *arg)
{
    struct xp_members *m = arg;
    while (members_wait(m, m->config.poll_ms))
        members_look_up(m);
    return NULL;
}

static enum xp_status read_dns(struct xp_members *m, const char *name, struct xp_error *err)
{
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || !members_is_port(colon + 1) || strlen(name) >= 256)
        return xp_fail(err, XP_BAD_REQUEST, 0, "\"dns:%s\" is not dns:NAME:PORT", name);
    m->host = strndup(name, (size_t)(colon - name));
    m->port = strdup(colon + 1);
    XP_ASSERT(m->host && m->port);
    return XP_OK;
}

/* --- life --- */

enum xp_status xp_members_new(const struct xp_members_config *config, struct xp_members **out,
                              struct xp_error *err)
{
    struct xp_members *m = calloc(1, sizeof *m);
    pthread_condattr_t attr;
    enum xp_status status;

    XP_ASSERT(m);
    m->config = *config;
    if (m->config.poll_ms <= 0)
        m->config.poll_ms = POLL_MS;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (!strncmp(config->spec, "static:", 7))
        status = read_static(m, config->spec + 7, err);
    else if (!strncmp(config->spec, "dns:", 4))
        status = read_dns(m, config->spec + 4, err);
    else if (!strncmp(config->spec, "k8s:", 4))
        status = members_k8s_open(m, config->spec + 4, err);
    else
        status = xp_fail(err, XP_BAD_REQUEST, 0,
                         "\"%s\" is none of static:HOST:PORT,..., dns:NAME:PORT and "
                         "k8s:[NAMESPACE/]SERVICE[:PORT]",
                         config->spec);
    m->config.spec = NULL; /* was the caller's */
    if (status == XP_OK && m->host) {
        use(m, NULL, 0); /* so that there is a ring, whatever the lookup says */
        if (m->k8s)
            members_k8s_look(m);
        else
            members_look_up(m);
        m->threaded =
            pthread_create(&m->thread, NULL, m->k8s ? members_k8s_run : poll_names, m) == 0;
        XP_ASSERT(m->threaded);
    }
    if (status != XP_OK) {
        xp_members_free(m);
        return status;
    }
    *out = m;
    return XP_OK;
}

void xp_members_free(struct xp_members *m)
{
    if (!m)
        return;
    if (m->threaded) {
        pthread_mutex_lock(&m->lock);
        m->stop = true;
        pthread_cond_signal(&m->wake);
        pthread_mutex_unlock(&m->lock);
        pthread_join(m->thread, NULL);
    }
    members_k8s_close(m->k8s);
    xp_ring_unref(m->ring);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
    free(m->host);
    free(m->port);
    free(m->known);
    free(m);
}

struct xp_ring *xp_members_ring(struct xp_members *m)
{
    pthread_mutex_lock(&m->lock);
    struct xp_ring *r = xp_ring_ref(m->ring);
    pthread_mutex_unlock(&m->lock);
    return r;
}

uint64_t xp_members_version(struct xp_members *m)
{
    return atomic_load(&m->version);
}
