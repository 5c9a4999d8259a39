/* shard/report/report_int.h - what the files of report share. */
#ifndef SHARD_REPORT_INT_H
#define SHARD_REPORT_INT_H

#include "shard/report/report.h"

/* Bytes that the document may still grow by. */
size_t report_room(const struct report *r);

/* A cell as JSON: text cut, not finite as null. */
void report_write_cell(struct xp_json *j, const struct report_cell *c);
/* The columns of a table or tree, as an array. */
void report_write_columns(struct xp_json *j, const struct report_column *c, uint32_t n);
void report_write_key(struct xp_json *j, const char *key, const char *value); /* NULL: null */

static inline double report_value(const struct report_cell *c)
{
    switch (c->kind) {
    case REPORT_U64:
    case REPORT_ID:
        return (double)c->u;
    case REPORT_I64:
        return (double)c->i;
    case REPORT_DOUBLE:
        return c->d;
    case REPORT_BOOL:
        return c->b;
    default:
        return 0;
    }
}

static inline bool report_is_number(const struct report_cell *c)
{
    return c->kind == REPORT_U64 || c->kind == REPORT_I64 ||
           (c->kind == REPORT_DOUBLE && c->d - c->d == 0);
}

#endif
