/* lib/cluster/members_int.h - what members.c and members_k8s.c share. */
#ifndef XP_CLUSTER_MEMBERS_INT_H
#define XP_CLUSTER_MEMBERS_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/cluster/members.h"

#define MEMBER_ADDRESS_MAX 320 /* a DNS name, brackets, a port */

struct known { /* an address that said who it is */
    char address[MEMBER_ADDRESS_MAX], name[RING_NAME_MAX + 1];
};

struct xp_members {
    pthread_mutex_t lock; /* ring, stop, woken */
    pthread_cond_t wake;
    pthread_t thread;
    bool threaded, stop, woken, failing;
    struct xp_ring *ring;
    _Atomic uint64_t version;
    struct xp_members_config config;
    char *host, *port;   /* dns: what is looked up */
    struct known *known; /* the thread's alone */
    size_t n_known;
    struct k8s *k8s;
};

bool members_is_port(const char *s);

/* On the module's thread. Those of the addresses that say who they are become the members; how many
 * did not say it yet. */
size_t members_settle(struct xp_members *m, char (*addresses)[MEMBER_ADDRESS_MAX], size_t n);
/* The addresses of host become the members; false: it cannot be looked up, nothing changes. */
bool members_look_up(struct xp_members *m);
/* Until the time has passed or it is woken; false: the module ends. */
bool members_wait(struct xp_members *m, int ms);

/* Sets host and port for the time when the API server is away. */
enum xp_status members_k8s_open(struct xp_members *m, const char *spec, struct xp_error *err);
/* Brings the members up to date: what the thread does whenever something may have changed. */
void members_k8s_look(struct xp_members *m);
void *members_k8s_run(void *members);  /* the thread */
void members_k8s_close(struct k8s *k); /* NULL is fine */

#endif
