/* lib/cluster/members.h - who is there: the members behind a name, asked again and again.
 *
 * A spec says where members are found:
 *
 *     static:HOST:PORT[,HOST:PORT]...        these, always; NAME=HOST:PORT gives one an identity
 *     dns:NAME:PORT                          whatever NAME resolves to (a headless service)
 *     k8s:[NAMESPACE/]SERVICE[:PORT]         the ready endpoints of a service, from inside a pod
 *
 * k8s: lists and then watches EndpointSlices with the pod's own token and CA, so that a pod is
 * known as soon as it is ready. Its account must be allowed to get, list and watch endpointslices
 * of discovery.k8s.io. While the API server does not answer or refuses, the service's DNS name is
 * looked up as dns: does. PORT: 8792 where it is not given. KUBERNETES_SERVICE_HOST and _PORT say
 * where the API server is; XPROFD_SERVICEACCOUNT where token, ca.crt and namespace lie instead of
 * the place where Kubernetes puts them.
 *
 * A DNS name is looked up every `poll_ms` by a thread of this module's own, not when a connection
 * breaks: members that come are seen although all others are well. A new address is asked once
 * for its identity (`identify`); until it answers it is no member, so that one which is still
 * starting gets no keys. A lookup that fails leaves the last set in place: names go away for
 * seconds in any cluster, and a member that is really gone shows when it is called.
 *
 * Each set is an immutable ring (ring.h); a request holds the one it began with.
 *
 * Order      xp_members_new -> xp_members_ring from any thread -> xp_members_free.
 * Threads    identify is called on the module's thread and may block for a second or so.
 * Limits     RING_MEMBERS_MAX addresses; more are an error of the lookup.
 */
#ifndef XP_CLUSTER_MEMBERS_H
#define XP_CLUSTER_MEMBERS_H

#include "lib/cluster/ring.h"

struct xp_members;

struct xp_members_config {
    const char *spec;
    int poll_ms; /* 0: 2000 */
    /* Fills name (of RING_NAME_MAX + 1 bytes) with the identity of who listens there. NULL:
     * the address is the identity. */
    bool (*identify)(void *ctx, const char *address, char *name);
    void *ctx;
};

/* XP_BAD_REQUEST with a sentence for a spec that is none. A DNS name that does not resolve yet is
 * fine: the first ring is empty then. */
enum xp_status xp_members_new(const struct xp_members_config *config, struct xp_members **out,
                              struct xp_error *err);
void xp_members_free(struct xp_members *m); /* NULL is fine */

/* The members of now: a reference, the caller's to xp_ring_unref. */
struct xp_ring *xp_members_ring(struct xp_members *m);

/* Changes by one with each new set, from any thread. */
uint64_t xp_members_version(struct xp_members *m);

#endif
