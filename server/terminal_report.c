#include <math.h>
#include <string.h>

#include "server/terminal.h"

/* --- numbers with their unit --- */

struct scale {
    double from;
    const char *suffix;
};

static void scaled(char *out, size_t n, double v, const struct scale *s, size_t ns)
{
    size_t k = 0;
    while (k + 1 < ns && fabs(v) >= s[k + 1].from)
        k++;
    double shown = v / (s[k].from > 0 ? s[k].from : 1);
    snprintf(out, n, "%.*f %s", shown == floor(shown) && k == 0 ? 0 : 3, shown, s[k].suffix);
}

static void with_unit(char *out, size_t n, double v, const char *unit)
{
    static const struct scale ps[] = {
        {1, "ps"}, {1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}};
    static const struct scale ns[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
    static const struct scale bytes[] = {
        {1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824.0, "GiB"}, {1099511627776.0, "TiB"}};
    static const struct scale rate[] = {
        {1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}};
    static const struct scale flop[] = {{1, "FLOP"},    {1e3, "kFLOP"},  {1e6, "MFLOP"},
                                        {1e9, "GFLOP"}, {1e12, "TFLOP"}, {1e15, "PFLOP"}};
    static const struct scale flops[] = {{1, "FLOP/s"},    {1e3, "kFLOP/s"},  {1e6, "MFLOP/s"},
                                         {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}};
    static const struct {
        const char *unit;
        const struct scale *scale;
        size_t n;
    } units[] = {{"ps", ps, 5},        {"ns", ns, 4},     {"bytes", bytes, 5},
                 {"bytes/s", rate, 5}, {"flop", flop, 6}, {"flop/s", flops, 6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].unit) == 0) {
            scaled(out, n, v, units[i].scale, units[i].n);
            return;
        }
    if (strcmp(unit, "fraction") == 0)
        snprintf(out, n, "%.2f %%", 100 * v);
    else if (v == floor(v) && fabs(v) < 1e15)
        snprintf(out, n, "%.0f", v);
    else
        snprintf(out, n, "%.6g", v);
}

static const char *text_at(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* What a cell of that unit shows; n/a: "". */
static json_t *cell_of(const json_t *v, const char *unit)
{
    char text[64];
    if (json_is_number(v)) {
        with_unit(text, sizeof text, json_number_value(v), unit);
        return json_pack("{s:O,s:s}", "v", v, "f", text);
    }
    return json_is_null(v) || !v ? json_pack("{s:s}", "v", "") : json_pack("{s:O}", "v", v);
}

static void line(FILE *f, const char *before, const char *text)
{
    fputs(before, f);
    terminal_text(f, xp_span_str(text));
    fputc('\n', f);
}

/* --- metrics --- */

static int widest(const json_t *metrics)
{
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        size_t n = strlen(text_at(json_array_get(metrics, i), "label"));
        most = n > most ? n : most;
    }
    return (int)(most < 60 ? most : 60);
}

static void print_metrics(FILE *f, const json_t *metrics)
{
    int width = widest(metrics);
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const json_t *m = json_array_get(metrics, i), *v = json_object_get(m, "value");
        const char *remark = text_at(m, json_is_null(v) ? "reason" : "note");
        json_t *cell = cell_of(v, text_at(m, "unit"));
        const char *text = json_is_null(v) ? "n/a" : text_at(cell, "f");
        if (!text[0])
            text = text_at(cell, "v");
        fprintf(f, "%-*s  ", width, text_at(m, "label"));
        size_t n = strlen(text);
        fprintf(f, "%*s", n < 18 ? (int)(18 - n) : 0, "");
        terminal_text(f, xp_span_str(text));
        line(f, remark[0] ? "  " : "", remark);
        json_decref(cell);
    }
}

/* --- tables --- */

static json_t *cells_of(const json_t *row, const json_t *columns)
{
    json_t *cells = json_array();
    for (size_t c = 0; c < json_array_size(columns); c++)
        json_array_append_new(
            cells, cell_of(json_array_get(row, c), text_at(json_array_get(columns, c), "unit")));
    return json_pack("{s:o}", "c", cells);
}

static void print_table(FILE *f, const json_t *t)
{
    const json_t *columns = json_object_get(t, "columns"), *from = json_object_get(t, "rows");
    const json_t *rest = json_object_get(t, "rest");
    json_t *cols = json_array(), *rows = json_array();
    for (size_t c = 0; c < json_array_size(columns); c++) {
        const json_t *col = json_array_get(columns, c);
        const char *type = text_at(col, "type");
        bool number = strcmp(type, "number") == 0 || strcmp(type, "bytes") == 0;
        json_array_append_new(cols, json_pack("{s:s,s:s}", "label", text_at(col, "label"), "type",
                                              number ? "number" : "string"));
    }
    for (size_t r = 0; r < json_array_size(from); r++)
        json_array_append_new(rows, cells_of(json_array_get(from, r), columns));
    fputc('\n', f);
    line(f, "", text_at(t, "title"));
    if (text_at(t, "note")[0])
        line(f, "  ", text_at(t, "note"));
    json_t *table = json_pack("{s:o,s:o}", "cols", cols, "rows", rows);
    terminal_table(f, table);
    json_decref(table);
    if (json_is_object(rest))
        fprintf(f, "  and %lld rows that are not shown\n",
                (long long)json_integer_value(json_object_get(rest, "rows")));
}

/* --- all of it --- */

/* Which part of the run it is about: in words, and as the arguments that ask for it. */
static void print_range(FILE *f, const json_t *range)
{
    if (!json_is_object(range))
        return;
    fputs("Range: ", f);
    terminal_text(f, xp_span_str(text_at(range, "label")));
    fprintf(f, " (t0=%lld t1=%lld", (long long)json_integer_value(json_object_get(range, "t0")),
            (long long)json_integer_value(json_object_get(range, "t1")));
    if (text_at(range, "steps")[0])
        fprintf(f, " steps=%s", text_at(range, "steps"));
    fputs(")\n", f);
}

static void print_missing(FILE *f, const json_t *missing)
{
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const json_t *m = json_array_get(missing, i);
        fputs("missing: ", f);
        terminal_text(f, xp_span_str(text_at(m, "host")));
        line(f, ": ", text_at(m, "detail"));
    }
}

static void print_notes(FILE *f, const json_t *notes)
{
    for (size_t i = 0; i < json_array_size(notes); i++) {
        const json_t *n = json_array_get(notes, i);
        fputs(i ? "" : "\n", f);
        terminal_text(f, xp_span_str(text_at(n, "severity")));
        line(f, ": ", text_at(n, "text"));
    }
}

void terminal_report(FILE *f, struct xp_span text)
{
    json_t *j = json_loadb((const char *)text.p, text.n, 0, NULL);
    const json_t *tables = json_object_get(j, "tables"), *metrics = json_object_get(j, "metrics");

    line(f, "", text_at(j, "title"));
    if (text_at(j, "verdict")[0])
        line(f, "", text_at(j, "verdict"));
    print_range(f, json_object_get(j, "range"));
    print_missing(f, json_object_get(j, "missing_hosts"));
    if (json_array_size(metrics)) {
        fputc('\n', f);
        print_metrics(f, metrics);
    }
    for (size_t i = 0; i < json_array_size(tables); i++)
        print_table(f, json_array_get(tables, i));
    if (text_at(j, "text")[0])
        line(f, "\n", text_at(j, "text"));
    print_notes(f, json_object_get(j, "notes"));
    json_decref(j);
}
