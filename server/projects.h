/* server/projects.h - the table of projects: what each shows and who may see it.
 *
 * One instance serves many projects, each below /p/<name>/. The table is one JSON document, in a
 * file or a bucket object, that is read again when it changes:
 *
 *     {"projects": {
 *        "vision": {"roots": ["gs://bucket/prefix", "logs/vision"],
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
 * Order      projects_new -> projects_find, _default, _list from any thread -> every project is
 *            given back -> projects_free.
 * Ownership  struct project is shared and never changes: project_unref what you were given. A
 *            project whose roots are the same in a new table keeps its run index. Stores live as
 *            long as the process' projects: caches and runs refer to them.
 * Threads    Any. projects_find and its like never wait for a file or a bucket: a thread of its
 *            own looks whether the table has changed, and opens what is new.
 * Limits     PROJECTS_TABLE_MAX bytes, PROJECTS_MAX projects, ROOTS_MAX roots in the process' life.
 */
#ifndef SERVER_PROJECTS_H
#define SERVER_PROJECTS_H

#include "lib/base/span.h"
#include "lib/base/status.h"
#include "lib/objstore/objstore.h"

struct audit;
struct run_index;
struct who;

enum right { RIGHT_NONE, RIGHT_VIEW, RIGHT_EDIT, RIGHT_ADMIN };

#define PROJECT_NAME_MAX 63
#define PROJECTS_TABLE_MAX ((size_t)1 << 20)
#define PROJECTS_MAX 4096
#define ROOTS_MAX 8192
#define LINK_DAYS_MAX 90

struct project {
    char *name;
    char *location; /* its roots, for people */
    char **roots;
    struct xp_store **stores; /* one a root */
    size_t n_roots;
    struct run_index *runs; /* over all roots */
    bool links_anyone;      /* share links may be for anyone */
    int links_max_days;     /* a link lives no longer; 90 unless the table says less */
};

struct projects;

struct projects_config {
    const char *const *roots; /* NULL-terminated: of the project "local"; without a table */
    const char *table;        /* a file or an object of a bucket; NULL: none */
    const char *first;        /* the default project's name; NULL: "local", or the only one */
    struct audit *audit;      /* where changes of the table are told; NULL: nowhere */
};

/* Reads the table and opens all roots: blocks. XP_BAD_REQUEST and the like with a sentence. */
enum xp_status projects_new(const struct projects_config *config, struct projects **out,
                            struct xp_error *err);
void projects_free(struct projects *ps); /* NULL is fine */

/* Looks whether the table has changed, now. Blocks. True when there is another one since. */
bool projects_look(struct projects *ps);

const struct project *project_ref(const struct project *p);
void project_unref(const struct project *p); /* NULL is fine */

/* The project of that name as of now, referenced; NULL when there is none. */
const struct project *projects_find(struct projects *ps, struct xp_span name);

/* The one that is meant where none is named; NULL: there are several and none is the default. */
const struct project *projects_default(struct projects *ps);

/* Those that who may see, by name; each referenced. The array is to be freed. */
const struct project **projects_list(struct projects *ps, const struct who *who, size_t *n);

/* The store of that name (xp_store_name), if it is a root of a project; for a shard. Looks at the
 * table when it is none: blocks. */
struct xp_store *projects_store(struct projects *ps, const char *name);
/* The same of what is known; never waits. */
struct xp_store *projects_store_known(struct projects *ps, const char *name);

/* What who may do in it: the greatest right that its lists give. */
enum right project_right(const struct project *p, const struct who *who);

#endif
