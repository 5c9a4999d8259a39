/* server/projects.h - the table of projects: what each shows and who may see it.
 *
 * One instance serves many projects, each below /p/<name>/. The table is one JSON document, in a
 * file or a bucket object, that is read again when it changes:
 *
 *     {"projects": {
 *        "vision": {"roots": ["gs://bucket/prefix", "/mnt/logs"],
 *                   "viewers": ["domain:example.com"],
 *                   "editors": ["group:vision-eng@example.com"],
 *                   "admins":  ["user:ann@example.com"],
 *                   "links":   {"anyone": false, "max_days": 30}}}}
 *
 * Without a table there is one project, "local", of --logdir, that everyone who may come in may
 * see and edit.
 *
 * Members    "user:<e-mail>", "group:<name>", "domain:<mail domain>", "members" (whoever is signed
 *            in). Compared without regard to ASCII case. Admins are editors, editors are viewers.
 * Names      [a-z0-9][a-z0-9-]{0,62}. A name that is none, a member of unknown form, an unknown
 *            field: the table is refused as a whole, with line and sentence, and the last good one
 *            stays (at start: the process ends with the sentence).
 * Ownership  struct project is shared and never changes: project_unref what you were given. A
 *            project that is unchanged in a new table keeps its stores and run index.
 * Threads    Any. projects_find never blocks; reading and opening happen on a worker.
 */
#ifndef SERVER_PROJECTS_H
#define SERVER_PROJECTS_H

#include "lib/base/span.h"
#include "lib/base/status.h"
#include "lib/objstore/objstore.h"

struct run_index;
struct who;

enum right { RIGHT_NONE, RIGHT_VIEW, RIGHT_EDIT, RIGHT_ADMIN };

#define PROJECT_NAME_MAX 63

struct project {
    char *name;
    char **roots;
    struct xp_store **stores; /* one a root */
    size_t n_roots;
    struct run_index *runs; /* over all roots */
    bool links_anyone;      /* share links may be for anyone */
    int links_max_days;     /* a link lives no longer; 90 unless the table says less */
};

struct projects;

const struct project *project_ref(const struct project *p);
void project_unref(const struct project *p); /* NULL is fine */

/* The project of that name as of now, referenced; NULL when there is none. */
const struct project *projects_find(struct projects *ps, struct xp_span name);

/* What who may do in it: the greatest right that its lists give. */
enum right project_right(const struct project *p, const struct who *who);

#endif
