/* server/projects_int.h - what the files of the project table share.
 *
 *   projects_table.c  the document: JSON into a table, with line and sentence for what is wrong
 *   projects.c        the table in use: reading it again, looking things up, rights
 */
#ifndef SERVER_PROJECTS_INT_H
#define SERVER_PROJECTS_INT_H

#include "server/projects.h"

enum member_kind { MEMBER_USER, MEMBER_GROUP, MEMBER_DOMAIN, MEMBER_SIGNED_IN };

struct member {
    enum member_kind kind;
    char *name; /* lower case; NULL for MEMBER_SIGNED_IN */
};

struct member_list {
    struct member *v;
    size_t n;
};

enum { LIST_VIEWERS, LIST_EDITORS, LIST_ADMINS, LISTS };

/* A row of the document. */
struct table_row {
    char *name;
    char **roots;
    size_t n_roots;
    struct member_list lists[LISTS];
    bool links_anyone;
    int links_max_days;
};

struct table_rows {
    struct table_row *v; /* by name */
    size_t n;
};

/* XP_BAD_REQUEST: the sentence names the line where it can be told, and the project. Whatever is
 * returned, rows are to be finished. */
enum xp_status table_parse(struct xp_span text, struct table_rows *rows, struct xp_error *err);
void table_fini(struct table_rows *rows);

bool project_is_name(struct xp_span name);
bool member_list_has(const struct member_list *list, const struct who *who);

#endif
