/* shard/tools/table.h - tables as XProf's pages take them: Google charts' DataTable in JSON.
 *
 *     tables_begin(&t, out, args->csv, true);         true: a list of tables; false: one
 *     table_begin(&t);
 *     table_col(&t, "rank", TABLE_NUMBER, "Rank");    columns first
 *     table_row(&t);                                  then rows, a cell for each column in order
 *     table_num(&t, 1);
 *     table_prop(&t, "task_type", text);              then properties
 *     table_end(&t);
 *     tables_end(&t);
 *
 * With csv the first table alone is written, as CSV, and all else is dropped: header line of
 * labels, every field quoted, numbers as Python prints floats. tables_end sets the content type.
 *
 * The calls of a table come in that order; a cell too many or too few is the caller's bug and is
 * not noticed. Errors surface in out_finish (json_out.h).
 */
#ifndef SHARD_TABLE_H
#define SHARD_TABLE_H

#include "shard/out.h"

enum table_type { TABLE_NUMBER, TABLE_STRING, TABLE_BOOLEAN };

struct tables {
    struct out *out;
    struct xp_json j;
    bool csv, list;
    bool mute; /* csv: the first table is over */
    bool in_row;
    bool first;    /* csv: no field of the line yet */
    uint8_t part;  /* of the table: columns, rows, properties */
    uint32_t rows; /* since the last flush */
};

void tables_begin(struct tables *t, struct out *out, bool csv, bool list);
void tables_end(struct tables *t);

void table_begin(struct tables *t);
void table_col(struct tables *t, const char *id, enum table_type type, const char *label);
/* With a property of the column: {"role":"tooltip"}. */
void table_col_role(struct tables *t, const char *id, enum table_type type, const char *label,
                    const char *role);
void table_row(struct tables *t);
void table_num(struct tables *t, double v); /* not finite: null */
void table_num_text(struct tables *t, double v, const char *formatted);
void table_str(struct tables *t, struct xp_span s);
void table_bool(struct tables *t, bool v);
void table_null(struct tables *t); /* "" as XProf writes it */
void table_prop(struct tables *t, const char *name, struct xp_span value);
void table_propf(struct tables *t, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The value as absl's StrCat prints doubles: %g. */
void table_prop_num(struct tables *t, const char *name, double v);
void table_end(struct tables *t);

/* In a list: a member that is no table, such as {}. */
void tables_raw(struct tables *t, struct xp_span json);

static inline void table_cstr(struct tables *t, const char *s)
{
    table_str(t, xp_span_str(s));
}

#endif
