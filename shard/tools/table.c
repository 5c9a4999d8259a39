#include "shard/tools/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { IN_NOTHING, IN_COLS, IN_ROWS, IN_PROPS };

#define FLUSH_ROWS 32

/* --- CSV --- */

static void csv_open(struct tables *t)
{
    if (!t->first)
        xp_buf_byte(&t->out->text, ',');
    t->first = false;
    xp_buf_byte(&t->out->text, '"');
}

static void csv_text(struct tables *t, struct xp_span s)
{
    struct xp_buf *b = &t->out->text;
    csv_open(t);
    while (s.n) {
        const uint8_t *quote = memchr(s.p, '"', s.n);
        size_t n = quote ? (size_t)(quote - s.p) + 1 : s.n;
        xp_buf_add(b, s.p, n);
        if (quote)
            xp_buf_byte(b, '"');
        s = xp_span_of(s.p + n, s.n - n);
    }
    xp_buf_byte(b, '"');
}

/* Digits of the shortest text that reads back, and its decimal exponent: v = 0.d1d2... * 10^exp */
static int shortest(double v, char digits[20], int *exp)
{
    char t[40];
    int n = 0;
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(t, sizeof t, "%.*e", precision - 1, v);
        if (strtod(t, NULL) == v)
            break;
    }
    const char *p = t;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    *exp = (int)strtol(p + 1, NULL, 10) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

/* As Python's repr of a float. */
static void csv_num(struct tables *t, double v)
{
    struct xp_buf *b = &t->out->text;
    char digits[20];
    int exp, n = shortest(fabs(v), digits, &exp);

    csv_open(t);
    if (signbit(v))
        xp_buf_byte(b, '-');
    if (v == 0) {
        xp_buf_str(b, "0.0");
    } else if (exp > -4 && exp <= 0) {
        xp_buf_str(b, "0.");
        for (int i = exp; i < 0; i++)
            xp_buf_byte(b, '0');
        xp_buf_add(b, digits, (size_t)n);
    } else if (exp > 0 && exp <= 16) {
        for (int i = 0; i < exp || i < n; i++) {
            if (i == exp)
                xp_buf_byte(b, '.');
            xp_buf_byte(b, i < n ? (uint8_t)digits[i] : '0');
        }
        if (n <= exp)
            xp_buf_str(b, ".0");
    } else {
        xp_buf_byte(b, (uint8_t)digits[0]);
        if (n > 1) {
            xp_buf_byte(b, '.');
            xp_buf_add(b, digits + 1, (size_t)n - 1);
        }
        xp_buf_fmt(b, "e%c%02d", exp - 1 < 0 ? '-' : '+', abs(exp - 1));
    }
    xp_buf_byte(b, '"');
}

/* --- the parts of a table --- */

static void end_row(struct tables *t)
{
    if (!t->in_row)
        return;
    t->in_row = false;
    if (t->csv) {
        xp_buf_byte(&t->out->text, '\n');
    } else {
        xp_json_arr_end(&t->j);
        xp_json_obj_end(&t->j);
    }
    if (++t->rows == FLUSH_ROWS) {
        t->rows = 0;
        out_flush(t->out);
    }
}

static void go_to(struct tables *t, uint8_t part)
{
    static const char *const keys[] = {[IN_COLS] = "cols", [IN_ROWS] = "rows", [IN_PROPS] = "p"};
    end_row(t);
    while (t->part < part) {
        if (t->csv) {
            if (t->part == IN_COLS)
                xp_buf_byte(&t->out->text, '\n');
            t->part++;
            continue;
        }
        if (t->part == IN_COLS || t->part == IN_ROWS)
            xp_json_arr_end(&t->j);
        t->part++;
        xp_json_key(&t->j, keys[t->part]);
        if (t->part == IN_PROPS)
            xp_json_obj(&t->j);
        else
            xp_json_arr(&t->j);
    }
}

void tables_begin(struct tables *t, struct out *out, bool csv, bool list)
{
    *t = (struct tables){.out = out, .csv = csv, .list = list};
    xp_json_init(&t->j, &out->text);
    if (list && !csv)
        xp_json_arr(&t->j);
}

void tables_end(struct tables *t)
{
    if (t->list && !t->csv)
        xp_json_arr_end(&t->j);
    t->out->content_type = t->csv ? "text/csv" : "application/json";
}

void tables_raw(struct tables *t, struct xp_span json)
{
    if (!t->csv)
        xp_json_raw(&t->j, json);
}

void table_begin(struct tables *t)
{
    t->part = IN_NOTHING;
    t->in_row = false;
    t->first = true;
    if (t->mute)
        return;
    if (!t->csv)
        xp_json_obj(&t->j);
    go_to(t, IN_COLS);
}

void table_col_role(struct tables *t, const char *id, enum table_type type, const char *label,
                    const char *role)
{
    static const char *const types[] = {"number", "string", "boolean"};
    if (t->mute)
        return;
    if (t->csv) {
        csv_text(t, xp_span_str(label));
        return;
    }
    xp_json_obj(&t->j);
    xp_json_key(&t->j, "id"), xp_json_str(&t->j, id);
    xp_json_key(&t->j, "label"), xp_json_str(&t->j, label);
    xp_json_key(&t->j, "type"), xp_json_str(&t->j, types[type]);
    if (role) {
        xp_json_key(&t->j, "p");
        xp_json_obj(&t->j);
        xp_json_key(&t->j, "role"), xp_json_str(&t->j, role);
        xp_json_obj_end(&t->j);
    }
    xp_json_obj_end(&t->j);
}

void table_col(struct tables *t, const char *id, enum table_type type, const char *label)
{
    table_col_role(t, id, type, label, NULL);
}

void table_row(struct tables *t)
{
    if (t->mute)
        return;
    go_to(t, IN_ROWS);
    t->in_row = t->first = true;
    if (t->csv)
        return;
    xp_json_obj(&t->j);
    xp_json_key(&t->j, "c");
    xp_json_arr(&t->j);
}

/* --- cells --- */

/* True when the value is to be written here, as JSON. */
static bool cell_open(struct tables *t)
{
    if (t->mute || t->csv)
        return false;
    xp_json_obj(&t->j);
    xp_json_key(&t->j, "v");
    return true;
}

void table_num_text(struct tables *t, double v, const char *formatted)
{
    if (t->csv && !t->mute && isfinite(v))
        csv_num(t, v);
    else if (t->csv && !t->mute)
        csv_text(t, (struct xp_span){0});
    if (!cell_open(t))
        return;
    xp_json_double(&t->j, v);
    if (formatted)
        xp_json_key(&t->j, "f"), xp_json_str(&t->j, formatted);
    xp_json_obj_end(&t->j);
}

void table_num(struct tables *t, double v)
{
    table_num_text(t, v, NULL);
}

void table_str(struct tables *t, struct xp_span s)
{
    if (t->csv && !t->mute)
        csv_text(t, s);
    if (!cell_open(t))
        return;
    xp_json_span(&t->j, s);
    xp_json_obj_end(&t->j);
}

void table_bool(struct tables *t, bool v)
{
    if (t->csv && !t->mute)
        csv_text(t, xp_span_str(v ? "True" : "False"));
    if (!cell_open(t))
        return;
    xp_json_bool(&t->j, v);
    xp_json_obj_end(&t->j);
}

void table_null(struct tables *t)
{
    table_str(t, (struct xp_span){0});
}

void table_prop(struct tables *t, const char *name, struct xp_span value)
{
    if (t->mute || t->csv)
        return;
    go_to(t, IN_PROPS);
    xp_json_key(&t->j, name), xp_json_span(&t->j, value);
}

void table_propf(struct tables *t, const char *name, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_prop(t, name, xp_span_str(text));
}

void table_prop_num(struct tables *t, const char *name, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%g", v);
    table_prop(t, name, xp_span_str(text));
}

void table_end(struct tables *t)
{
    if (t->mute)
        return;
    if (t->csv) {
        go_to(t, IN_ROWS);
        t->mute = true;
        return;
    }
    if (t->part < IN_ROWS)
        go_to(t, IN_ROWS);
    end_row(t);
    if (t->part == IN_PROPS)
        xp_json_obj_end(&t->j);
    else
        xp_json_arr_end(&t->j);
    xp_json_obj_end(&t->j);
}
