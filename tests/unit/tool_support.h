/* tests/unit/tool_support.h - small profiles written by hand, and what a tool says of them. */
#ifndef TESTS_UNIT_TOOL_SUPPORT_H
#define TESTS_UNIT_TOOL_SUPPORT_H

#include <jansson.h>

#include "lib/base/status.h"
#include "tests/unit/unit.h"
#include "tests/unit/xspace_make.h"

/* XStats, appended to an event (field 4), a metadata (5) or a plane (6). */
void put_i64(struct xp_buf *b, uint32_t field, int64_t id, int64_t v);
void put_u64(struct xp_buf *b, uint32_t field, int64_t id, uint64_t v);
void put_double(struct xp_buf *b, uint32_t field, int64_t id, double v);
void put_text(struct xp_buf *b, uint32_t field, int64_t id, const char *text);
void put_blob(struct xp_buf *b, uint32_t field, int64_t id, struct xp_span bytes);

/* An event metadata with a display name and stats (may be NULL; freed). */
void put_meta(struct xp_buf *plane, int64_t id, const char *name, const char *display,
              struct xp_buf *stats);
/* Stat names with ids 1, 2, ... */
void put_stat_names(struct xp_buf *plane, const char *const *names, size_t n);

/* One host's profile; freed by tool_ask. */
struct tool_file {
    const char *host;
    struct xp_buf space;
};

/* What the tool answers for the hosts; args are "name=value" and end with NULL (may be NULL). The
 * answer must be JSON. */
json_t *tool_ask(const char *tool, struct tool_file *files, size_t n, const char *const *args);
/* Its text, unzipped; at_once: by the tool's `answer`, which sees all hosts together. The answer is
 * the caller's if the status is XP_OK. */
enum xp_status tool_text(const char *tool, bool at_once, struct tool_file *files, size_t n,
                         const char *const *args, struct xp_buf *answer);
/* The status where it refuses. */
enum xp_status tool_refuses(const char *tool, struct tool_file *files, size_t n,
                            const char *const *args);

/* The tool's report. */
json_t *report_ask(const char *tool, struct tool_file *files, size_t n, const char *const *args);
/* The status where it refuses. */
enum xp_status report_refuses(const char *tool, struct tool_file *files, size_t n,
                              const char *const *args);
/* Of a report: a metric's value (null only with a reason), rows of a table, a cell, whether there
 * is a note of that code. */
json_t *report_value(json_t *doc, const char *metric);
size_t report_rows(json_t *doc, const char *table);
json_t *report_at(json_t *doc, const char *table, size_t row, const char *column);
bool report_notes(json_t *doc, const char *code);

/* The value in row and column of a table. */
json_t *cell(json_t *table, size_t row, const char *column);
double cell_num(json_t *table, size_t row, const char *column);
const char *cell_text(json_t *table, size_t row, const char *column);
size_t table_rows(json_t *table);
/* The row where column has this text. */
size_t row_with(json_t *table, const char *column, const char *text);

#endif
