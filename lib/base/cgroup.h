/* lib/base/cgroup.h - how much memory this process may take, as the kernel's cgroups say.
 *
 * The lowest limit of its own cgroup and of those above it, of either version: a container sees its
 * own as the top one, a service of systemd or a test is somewhere below.
 */
#ifndef XP_BASE_CGROUP_H
#define XP_BASE_CGROUP_H

#include <stdint.h>

/* UINT64_MAX: none. top: where they are mounted, "/sys/fs/cgroup"; self: whose they are,
 * "/proc/self/cgroup". */
uint64_t xp_cgroup_memory(const char *top, const char *self);

#endif
