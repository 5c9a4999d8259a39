#include "server/terminal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/status.h"
#include "lib/base/utf8.h"

#define CELL_MAX 60

/* --- characters --- */

static uint32_t code_of(const uint8_t *p, size_t n)
{
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static bool is_harmless(uint32_t c)
{
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool direction =
        c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return !control && !direction;
}

/* Writes one character of [p, end) as a terminal may have it; its bytes. f NULL: only steps. */
static size_t one(FILE *f, const uint8_t *p, const uint8_t *end, bool lines)
{
    bool ok;
    size_t n = xp_utf8_step(p, end, &ok);
    if (!f)
        return n;
    if (ok && (is_harmless(code_of(p, n)) || (lines && (*p == '\n' || *p == '\t'))))
        fwrite(p, 1, n, f);
    else
        fputc(ok && (*p == '\n' || *p == '\t') ? ' ' : '?', f);
    return n;
}

void terminal_text(FILE *f, struct xp_span text)
{
    for (const uint8_t *p = text.p, *end = p + text.n; p < end;)
        p += one(f, p, end, true);
}

/* --- cells --- */

/* Characters, counted up to CELL_MAX + 1. */
static int length_of(struct xp_span s)
{
    int n = 0;
    for (const uint8_t *p = s.p, *end = p + s.n; p < end && n <= CELL_MAX; n++)
        p += one(NULL, p, end, false);
    return n;
}

static int width_of(struct xp_span s)
{
    int n = length_of(s);
    return n < CELL_MAX ? n : CELL_MAX;
}

static void print_cell(FILE *f, struct xp_span s)
{
    int n = length_of(s), shown = n > CELL_MAX ? CELL_MAX - 3 : n;
    const uint8_t *p = s.p, *end = s.p + s.n;

    for (int i = 0; i < shown; i++)
        p += one(f, p, end, false);
    if (n > CELL_MAX)
        fputs("...", f);
}

static struct xp_span text_of(const json_t *v, char buf[64])
{
    if (json_is_string(v))
        return xp_span_of(json_string_value(v), json_string_length(v));
    if (json_is_integer(v))
        snprintf(buf, 64, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(buf, 64, "%.6g", json_real_value(v));
    else
        snprintf(buf, 64, "%s", json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : "");
    return xp_span_str(buf);
}

/* `f` is how the tool wants `v` to be shown. */
static struct xp_span cell_text(const json_t *cell, char buf[64])
{
    const json_t *f = json_object_get(cell, "f");
    return text_of(f ? f : json_object_get(cell, "v"), buf);
}

/* --- tables --- */

static struct xp_span label_of(const json_t *col)
{
    const char *label = json_string_value(json_object_get(col, "label"));
    if (!label || !label[0])
        label = json_string_value(json_object_get(col, "id"));
    return xp_span_str(label ? label : "");
}

static void print_properties(FILE *f, const json_t *properties)
{
    const char *key;
    json_t *v;
    char buf[64];

    json_object_foreach((json_t *)properties, key, v)
    {
        struct xp_span text = text_of(v, buf);
        if (text.n == 0)
            continue;
        print_cell(f, xp_span_str(key));
        fputs(": ", f);
        terminal_text(f, text);
        fputc('\n', f);
    }
}

static int *measure(const json_t *cols, const json_t *rows)
{
    size_t n = json_array_size(cols);
    int *width = calloc(n + 1, sizeof *width);
    char buf[64];

    XP_ASSERT(width);
    for (size_t c = 0; c < n; c++)
        width[c] = width_of(label_of(json_array_get(cols, c)));
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *cells = json_object_get(json_array_get(rows, r), "c");
        for (size_t c = 0; c < n; c++) {
            int w = width_of(cell_text(json_array_get(cells, c), buf));
            width[c] = w > width[c] ? w : width[c];
        }
    }
    return width;
}

/* cells NULL: the line of labels. */
static void print_line(FILE *f, const json_t *cols, const json_t *cells, const int *width)
{
    size_t n = json_array_size(cols);
    char buf[64];

    for (size_t c = 0; c < n; c++) {
        const json_t *col = json_array_get(cols, c);
        const char *type = json_string_value(json_object_get(col, "type"));
        struct xp_span text = cells ? cell_text(json_array_get(cells, c), buf) : label_of(col);
        int space = width[c] - width_of(text);
        bool right = type && strcmp(type, "number") == 0;

        fprintf(f, "%*s", right ? space : 0, "");
        print_cell(f, text);
        if (c + 1 < n)
            fprintf(f, "%*s", right ? 2 : space + 2, "");
    }
    fputc('\n', f);
}

void terminal_table(FILE *f, const json_t *table)
{
    const json_t *cols = json_object_get(table, "cols"), *rows = json_object_get(table, "rows");
    int *width = measure(cols, rows);

    print_properties(f, json_object_get(table, "p"));
    print_line(f, cols, NULL, width);
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const json_t *cells = json_object_get(json_array_get(rows, r), "c");
        if (json_array_size(cells))
            print_line(f, cols, cells, width);
    }
    free(width);
}
