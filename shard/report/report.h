/* shard/report/report.h - the report of a tool: our own answer, in one shape for all of them.
 *
 * A tool fills a struct report with what it found; this module bounds, sorts, filters, sums up
 * what it leaves out, and writes JSON (docs/api.md, "report") or one table as CSV. The numbers are
 * the right ones; XProf's own are on its compatible routes and have nothing to do with these.
 *
 *     static enum xp_status write(struct xp_span merged, const struct tool_args *args,
 *                                 struct report *r, struct xp_error *err)
 *     {
 *         ... unpack merged, with memory of r->a ...
 *         report_verdict(r, "Input bound: the device waits %.1f %% of a step.", share);
 *         report_u64(r, "steps", n, NULL);
 *         report_na(r, "peak_memory", "the profile has no allocator events: capture with ...");
 *         report_table(r, &(struct report_rows){.id = "ops", .title = "HLO ops",
 *                                               .columns = columns, .ncolumns = COLUMNS_N,
 *                                               .n = nops, .row = row, .ctx = &view,
 *                                               .sort = "self_time", .descending = true});
 *         report_note(r, REPORT_WARNING, "no_steps", "...");
 *         return XP_OK;
 *     }
 *
 * Row        A tool has a report when its row (tool.h) points to a struct tool_report. Its map and
 *            merge are its own, or those of the row where it names none: but those refuse files
 *            that XProf would not read, and ours reads what is there.
 * Missing    What cannot be computed is n/a with a reason that says how to capture it: report_na,
 *            or report_none() in a cell. Never 0. A number that is not finite is n/a, too.
 * Metrics    Every id is a row of metrics.def (label, unit, definition), so that one id means one
 *            thing in every tool; add rows there. One id must have one value in all tools: take
 *            it from stats/figures.h if it is there. Units: "ps" "ns" "bytes" "bytes/s" "flop"
 *            "flop/s" "fraction" (0 to 1) "count" "". Picoseconds are whole numbers.
 * Tables     Rows are pulled: row() fills the cells of row i, in column order, and may be called
 *            several times for one i. Its texts must live until report_table returns. Give all
 *            rows: limit, order, filter and the sums of the rest are done here, for each request.
 * Series     Points are pulled likewise, in order of x, and reduced to REPORT_POINTS with the least
 *            and the greatest of each stretch kept.
 * Bounds     An answer stays below REPORT_MAX bytes: rows and nodes that do not fit are counted
 *            in total_rows, rest, total_nodes. Texts in cells are cut at REPORT_CELL_MAX bytes.
 * Arguments  Read here: limit, skip, sort, filter (part of a text, or /regular expression/, see
 *            lib/base/regex.h), table. All others are the tool's (tool_arg).
 * Errors     Calls do not fail; what went wrong (memory) comes out of report_end.
 * Threads    One worker.
 */
#ifndef SHARD_REPORT_H
#define SHARD_REPORT_H

#include "lib/base/arena.h"
#include "lib/base/json_out.h"
#include "lib/base/regex.h"
#include "lib/base/status.h"
#include "shard/out.h"

#define REPORT_MAX ((size_t)1900 << 10)
#define REPORT_TABLE_MAX ((size_t)900 << 10) /* of one table among several */
#define REPORT_CELL_MAX 1024
#define REPORT_POINTS 2000
#define REPORT_COLUMNS_MAX 64
#define REPORT_NOTES_MAX 100

/* --- cells --- */

enum report_kind {
    REPORT_NONE,
    REPORT_U64,
    REPORT_I64,
    REPORT_DOUBLE,
    REPORT_TEXT,
    REPORT_BOOL,
    REPORT_ID /* a number of 64 bits that names something: in JSON a string */
};

struct report_cell {
    uint8_t kind; /* enum report_kind */
    union {
        uint64_t u;
        int64_t i;
        double d;
        struct xp_span s;
        bool b;
    };
};

static inline struct report_cell report_none(void)
{
    return (struct report_cell){.kind = REPORT_NONE};
}
static inline struct report_cell report_of_u64(uint64_t v)
{
    return (struct report_cell){.kind = REPORT_U64, .u = v};
}
static inline struct report_cell report_of_i64(int64_t v)
{
    return (struct report_cell){.kind = REPORT_I64, .i = v};
}
static inline struct report_cell report_of_double(double v) /* not finite: n/a */
{
    return (struct report_cell){.kind = REPORT_DOUBLE, .d = v};
}
/* a / b, and n/a where b is 0. */
static inline struct report_cell report_ratio(double a, double b)
{
    return b > 0 ? report_of_double(a / b) : report_none();
}
static inline struct report_cell report_of_text(struct xp_span s)
{
    return (struct report_cell){.kind = REPORT_TEXT, .s = s};
}
static inline struct report_cell report_text_or_none(struct xp_span s)
{
    return s.n ? report_of_text(s) : report_none();
}
static inline struct report_cell report_of_id(uint64_t v)
{
    return (struct report_cell){.kind = REPORT_ID, .u = v};
}
static inline struct report_cell report_of_bool(bool v)
{
    return (struct report_cell){.kind = REPORT_BOOL, .b = v};
}

/* --- a document --- */

struct report_host {
    struct xp_span name;
    struct xp_error missing; /* status XP_OK: it was read, else why not */
    struct xp_error damage;  /* read up to here; status XP_OK: none */
};

/* What part of the run it is about: tools/range.h. */
struct report_range {
    int64_t t0_ps, t1_ps;
    char steps[40]; /* "10-20"; "": asked for by time */
    char label[100];
    bool ignored; /* the report is about the whole run nonetheless */
    bool cuts;    /* events of the run lie outside of it */
};

struct report_section {
    struct xp_buf b;
    struct xp_json j;
};

struct report {
    struct xp_arena *a; /* scratch of the whole report */
    struct out *out;
    const struct report_host *hosts; /* in the order asked; natural order */
    uint32_t nhosts;
    /* the rest is report_*.c's */
    const char *tool, *title, *question;
    const struct report_range *range; /* NULL: all of the run */
    uint64_t limit, skip;
    struct xp_span sort, filter, table; /* table: only this one; empty: all */
    const struct xp_regex *pattern;     /* that the filter is; NULL: it is part of a text */
    bool csv, csv_done, busy;
    struct report_section metrics, tables, series, tree, notes, links;
    struct xp_buf verdict, text, table_ids;
    uint32_t nnotes, nmetrics;
};

/* --- metrics --- */

struct report_spread {
    double min, max, sd;
    struct xp_span max_host; /* may be empty */
    bool whole;              /* whole numbers, as picoseconds are */
};

void report_u64(struct report *r, const char *id, uint64_t v, const char *note);
void report_double(struct report *r, const char *id, double v, const char *note);
void report_string(struct report *r, const char *id, struct xp_span v, const char *note);
void report_na(struct report *r, const char *id, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));
/* All of it: v none and a reason, or v and maybe a note and a spread; each may be NULL. */
void report_metric(struct report *r, const char *id, struct report_cell v, const char *reason,
                   const char *note, const struct report_spread *spread);

/* --- tables --- */

enum report_type {
    REPORT_COL_NUMBER,
    REPORT_COL_TEXT,
    REPORT_COL_BOOL,
    REPORT_COL_OP, /* the name of an HLO op; the table has a column program_id too */
    REPORT_COL_BYTES
};

struct report_column {
    const char *id, *label, *unit;
    enum report_type type;
    bool sum; /* adding it over rows makes sense: it is part of `rest` */
    const char *definition;
};

struct report_rows {
    const char *id, *title, *note; /* note may be NULL */
    const struct report_column *columns;
    uint32_t ncolumns;
    uint64_t n;
    void (*row)(void *ctx, uint64_t i, struct report_cell *cells);
    void *ctx;
    const char *sort; /* column it is sorted by unless asked otherwise; NULL: as the rows come */
    bool descending;
    /* It stands beside what is asked for: limit, order and filter are not about it, unless it is
     * asked for by its name. */
    bool aside;
};
void report_table(struct report *r, const struct report_rows *t);

/* Cells of that column open the timeline, at the row's begin (see docs/api.md). */
void report_link(struct report *r, const char *table, const char *column);

/* --- series --- */

#define REPORT_NAMES_MAX 16

struct report_points {
    const char *id, *title;
    const char *x_label, *x_unit, *y_label, *y_unit;
    const char *kind; /* "stack" "line" "bar" "scatter" "heat" */
    bool x_text;
    const char *const *names; /* of the y */
    uint32_t nnames;
    uint64_t n;
    uint64_t total; /* of what the n are a choice: the answer says that it is reduced; 0: of n */
    /* x and nnames of y. */
    void (*point)(void *ctx, uint64_t i, struct report_cell *x, struct report_cell *y);
    void *ctx;
};
void report_series(struct report *r, const struct report_points *s);

/* --- the tree --- */

struct report_nodes {
    const char *id;
    const struct report_column *columns; /* of the values */
    uint32_t ncolumns;
    uint64_t n; /* parents come before their children; below 2^31 */
    /* Which nodes stay where there are too many: those with the most in this column, in which a
     * parent has at least what each child has. Number of the column + 1; 0: the first ones. */
    uint32_t weight;
    void (*node)(void *ctx, uint64_t i, int64_t *parent, struct xp_span *name,
                 struct report_cell *values);
    void *ctx;
};
/* Once a report. At most `limit` nodes; the others are counted. */
void report_tree(struct report *r, const struct report_nodes *t);

/* --- words --- */

enum report_severity { REPORT_INFO, REPORT_WARNING, REPORT_ERROR };

void report_verdict(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* code: a word that stays, for programs. */
void report_note(struct report *r, enum report_severity severity, const char *code, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
/* HLO text and the like; cut where it does not fit, with a note. */
void report_text(struct report *r, struct xp_span text);

/* --- for the one who runs tools (tools/tool.c) --- */

struct report_ask {
    const char *tool, *title, *question;
    bool csv;
    const struct report_host *hosts;
    uint32_t nhosts;
    const struct report_range *range;                /* NULL: all of the run */
    struct xp_span limit, skip, sort, filter, table; /* as asked; empty: absent */
};
/* XP_BAD_REQUEST, and nothing to end, when an argument is not of its form. */
enum xp_status report_begin(struct report *r, const struct report_ask *ask, struct xp_arena *a,
                            struct out *out, struct xp_error *err);
/* Writes it to out, unless status is not XP_OK (then it is returned), and frees all. */
enum xp_status report_end(struct report *r, enum xp_status status, struct xp_error *err);

#endif
