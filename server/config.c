#include "server/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/status.h"

#define ARGS_MAX 512
#define ENV_NAME_MAX 72

static bool wrong(const char *format, const char *a, const char *b)
{
    fputs("xprofd: ", stderr);
    fprintf(stderr, format, a, b);
    fputc('\n', stderr);
    return false;
}

static char *own(struct config *c, char *text)
{
    XP_ASSERT(text);
    c->owned = reallocarray(c->owned, (size_t)c->n_owned + 1, sizeof *c->owned);
    XP_ASSERT(c->owned);
    return c->owned[c->n_owned++] = text;
}

static bool add(struct config *c, const char *name, const char *value)
{
    char *arg;
    if (c->argc == ARGS_MAX)
        return wrong("more than 512 values of options%s%s", "", "");
    XP_ASSERT(asprintf(&arg, value ? "--%s=%s" : "--%s", name, value) > 0);
    c->argv[c->argc++] = own(c, arg);
    return true;
}

/* --- what the command line names --- */

static bool is_named(char **argv, int argc, const struct options_row *row)
{
    struct options_row other;
    size_t n = strlen(row->name);

    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strncmp(arg, "--", 2) != 0) {
            bool role = i == 1 && (strcmp(arg, "frontend") == 0 || strcmp(arg, "shard") == 0);
            if (!role && strcmp(row->name, "logdir") == 0)
                return true;
            continue;
        }
        size_t len = strcspn(arg + 2, "=");
        if (len == n && strncmp(arg + 2, row->name, n) == 0)
            return true;
        if (!arg[2 + len] && options_row_named(arg + 2, len, &other) && other.takes_value)
            i++;
    }
    return false;
}

/* The value of a flag on the command line, or NULL. */
static const char *flag_value(char **argv, int argc, const char *name)
{
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, n) == 0) {
            if (argv[i][2 + n] == '=')
                return argv[i] + 3 + n;
            if (!argv[i][2 + n])
                return i + 1 < argc ? argv[i + 1] : NULL;
        }
    return NULL;
}

/* --- the environment --- */

static const char *environment(const char *name)
{
    char text[ENV_NAME_MAX] = "XPROFD_";
    size_t n = strlen(text);
    for (const char *p = name; *p && n + 1 < sizeof text; p++)
        text[n++] = *p == '-' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    text[n] = 0;
    const char *value = getenv(text);
    /* What Kubernetes puts into every pod beside a Service that is called xprofd. */
    return value && strcmp(name, "port") == 0 && strncmp(value, "tcp://", 6) == 0 ? NULL : value;
}

/* --- values --- */

static bool add_value(struct config *c, const struct options_row *row, const char *value)
{
    if (row->takes_value)
        return add(c, row->name, value);
    if (strcasecmp(value, "yes") == 0 || strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0)
        return add(c, row->name, NULL);
    if (strcasecmp(value, "no") == 0 || strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0)
        return true;
    return wrong("%s is %s, but must be yes or no", row->name, value);
}

static bool add_each(struct config *c, const struct options_row *row, const char *value)
{
    if (!row->repeats)
        return add_value(c, row, value);
    char *copy = own(c, strdup(value)), *rest = copy, *one;
    while ((one = strsep(&rest, ",")))
        if (*one && !add_value(c, row, one))
            return false;
    return true;
}

/* --- the file --- */

static char *trimmed(char *s)
{
    s += strspn(s, " \t\r");
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = 0;
    return s;
}

static bool read_file(struct config *c, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return wrong("--config: cannot open %s: %s", path, strerror(errno));
    c->text = calloc(1, CONFIG_FILE_MAX + 1);
    XP_ASSERT(c->text);
    size_t n = fread(c->text, 1, CONFIG_FILE_MAX + 1, f);
    fclose(f);
    if (n > CONFIG_FILE_MAX)
        return wrong("--config: %s is longer than 64 KiB%s", path, "");
    if (strlen(c->text) < n)
        return wrong("--config: %s holds a zero byte%s", path, "");
    return true;
}

struct line {
    char *name, *value;
    int number;
};

static bool wrong_line(const char *path, const struct line *l, const char *why)
{
    fprintf(stderr, "xprofd: %s:%d: %s\n", path, l->number, why);
    return false;
}

/* Adds what the file says, but for what is named above it. */
static bool add_file(struct config *c, const char *path, char **argv, int argc)
{
    struct line l = {0};
    char *rest = c->text, *text;

    while ((text = strsep(&rest, "\n"))) {
        struct options_row row;
        l.number++;
        text = trimmed(text);
        if (!*text || *text == '#')
            continue;
        char *eq = strchr(text, '=');
        if (!eq)
            return wrong_line(path, &l, "a line is \"name = value\", or begins with #");
        *eq = 0;
        l.name = trimmed(text);
        l.value = trimmed(eq + 1);
        if (!options_row_named(l.name, strlen(l.name), &row) || row.asks ||
            strcmp(row.name, "config") == 0)
            return wrong_line(path, &l, "there is no such option");
        if (!*l.value)
            return wrong_line(path, &l, "the value is missing");
        if (is_named(argv, argc, &row) || environment(row.name))
            continue;
        if (!add_value(c, &row, l.value))
            return wrong_line(path, &l, "the value is wrong");
    }
    return true;
}

static bool add_environment(struct config *c, char **argv, int argc)
{
    struct options_row row;
    for (size_t i = 0; options_row_at(i, &row); i++) {
        const char *value = row.asks ? NULL : environment(row.name);
        if (value && *value && strcmp(row.name, "config") != 0 && !is_named(argv, argc, &row) &&
            !add_each(c, &row, value))
            return false;
    }
    return true;
}

enum options_result config_read(int argc, char **argv, struct config *c)
{
    int first = 1;

    *c = (struct config){.argv = calloc((size_t)(ARGS_MAX + argc + 1), sizeof *c->argv)};
    XP_ASSERT(c->argv);
    c->argv[c->argc++] = argv[0];
    if (argc > 1 && (strcmp(argv[1], "frontend") == 0 || strcmp(argv[1], "shard") == 0))
        c->argv[c->argc++] = argv[first++];
    const char *path = flag_value(argv, argc, "config");
    if (!path)
        path = environment("config");
    if (path && *path && (!read_file(c, path) || !add_file(c, path, argv, argc)))
        return OPTIONS_WRONG;
    c->file_end = c->argc;
    if (!add_environment(c, argv, argc))
        return OPTIONS_WRONG;
    c->environment_end = c->argc;
    for (int i = first; i < argc; i++) {
        if (strcmp(argv[i], "--print-config") == 0)
            c->print = true;
        c->argv[c->argc++] = argv[i];
    }
    return OPTIONS_OK;
}

/* --- the table --- */

static const char *source_at(const struct config *c, int i)
{
    return i < c->file_end ? "file" : i < c->environment_end ? "environment" : "flag";
}

/* Prints what argument i says of the option; false when it is about another. */
static bool print_value(const struct config *c, const struct options_row *row, int i)
{
    const char *arg = c->argv[i];
    size_t n = strlen(row->name);
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, row->name, n) != 0 ||
        (arg[2 + n] && arg[2 + n] != '='))
        return false;
    const char *value = arg[2 + n] == '='                     ? arg + 3 + n
                        : row->takes_value && i + 1 < c->argc ? c->argv[i + 1]
                                                              : "yes";
    printf("%-24s %-40s %s\n", row->name, value, source_at(c, i));
    return true;
}

void config_print(const struct config *c)
{
    struct options_row row;
    printf("%-24s %-40s %s\n", "option", "value", "from");
    for (size_t k = 0; options_row_at(k, &row); k++) {
        bool found = false;
        if (row.asks)
            continue;
        for (int i = 1; i < c->argc; i++)
            found |= print_value(c, &row, i);
        if (!found)
            printf("%-24s %-40s %s\n", row.name, "-", "default");
    }
}

void config_free(struct config *c)
{
    for (int i = 0; i < c->n_owned; i++)
        free(c->owned[i]);
    free(c->owned);
    free(c->argv);
    free(c->text);
}
