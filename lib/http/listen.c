/* lib/http/listen.c - sockets that listen, one a loop, all on one port.
 *
 * SO_REUSEPORT lets every process of a user join a port. Two servers that share one by accident
 * would each answer half of the requests, so the first socket is tried without it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>

#include "lib/http/http_int.h"

static int port_of(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)a)->sin_port);
}

static int bind_fd(const struct sockaddr *a, socklen_t n, bool share)
{
    int on = 1, off = 0, fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (share)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (a->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, a, n) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static enum xp_status bind_failed(const char *host, int port, struct xp_error *err)
{
    switch (errno) {
    case EADDRINUSE:
        return xp_fail(err, XP_IO, 0,
                       "port %d on %s is taken by another process; choose another one, or 0 for "
                       "any",
                       port, host);
    case EADDRNOTAVAIL:
        return xp_fail(err, XP_IO, 0, "this machine has no address %s", host);
    case EACCES:
        return xp_fail(err, XP_IO, 0, "port %d may only be opened by root", port);
    default:
        return xp_fail(err, XP_IO, 0, "cannot listen on %s port %d: %s", host, port,
                       strerror(errno));
    }
}

static int open_at(const struct addrinfo *ai, bool share)
{
    if (share && port_of(ai->ai_addr) != 0) {
        int probe = bind_fd(ai->ai_addr, ai->ai_addrlen, false);
        if (probe < 0)
            return -1;
        close(probe);
    }
    return bind_fd(ai->ai_addr, ai->ai_addrlen, share);
}

/* "[::1]" is as good as "::1". */
static void bare_name(const char *host, char *name, size_t room)
{
    size_t n = strlen(host);
    if (n > 2 && host[0] == '[' && host[n - 1] == ']')
        snprintf(name, room, "%.*s", (int)(n - 2), host + 1);
    else
        snprintf(name, room, "%s", host);
}

int listen_open(const char *host, int port, bool share, struct sockaddr_storage *bound,
                struct xp_error *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char name[256], service[16];
    int fd = -1;

    if (port < 0 || port > 65535) {
        xp_fail(err, XP_IO, 0, "%d is no port: 0 to 65535 is expected", port);
        return -1;
    }
    bare_name(host, name, sizeof name);
    snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(name, service, &hints, &list);
    if (rc != 0) {
        xp_fail(err, XP_IO, 0, "no address is known for %s: %s", host, gai_strerror(rc));
        return -1;
    }
    for (struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next)
        fd = open_at(ai, share);
    if (fd < 0)
        bind_failed(host, port, err);
    freeaddrinfo(list);
    socklen_t n = sizeof *bound;
    if (fd >= 0)
        getsockname(fd, (struct sockaddr *)bound, &n);
    return fd;
}

int listen_join(const struct sockaddr_storage *bound, struct xp_error *err)
{
    socklen_t n =
        bound->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = bind_fd((const struct sockaddr *)bound, n, true);
    if (fd < 0)
        bind_failed("the address", port_of((const struct sockaddr *)bound), err);
    return fd;
}
