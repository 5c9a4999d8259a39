#include "lib/base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_N 4096

static uint64_t read_limit(const char *path)
{
    char text[64] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT64_MAX;
    if (!fgets(text, sizeof text, f))
        text[0] = 0;
    fclose(f);
    return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Of the cgroup below `base`, of each above it, and of base itself; path is used up. */
static uint64_t lowest(const char *base, char *path, const char *file)
{
    uint64_t limit = UINT64_MAX;
    char name[LINE_MAX_N + 256];
    for (;;) {
        snprintf(name, sizeof name, "%s%s/%s", base, path, file);
        uint64_t one = read_limit(name);
        limit = one < limit ? one : limit;
        char *slash = strrchr(path, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

/* Whether "memory" is one of them, between commas. */
static bool has_memory(const char *controllers)
{
    const char *at = strstr(controllers, "memory");
    return at && (at == controllers || at[-1] == ',') && (at[6] == 0 || at[6] == ',');
}

/* A line is "number:controllers:path"; the second version's has no controllers. */
static uint64_t of_line(const char *top, char *line)
{
    char base[256];
    char *controllers = strchr(line, ':'),
         *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || strstr(path, "/.."))
        return UINT64_MAX;
    *controllers++ = *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (!*controllers)
        return lowest(top, path, "memory.max");
    if (!has_memory(controllers))
        return UINT64_MAX;
    snprintf(base, sizeof base, "%s/memory", top);
    return lowest(base, path, "memory.limit_in_bytes");
}

uint64_t xp_cgroup_memory(const char *top, const char *self)
{
    char line[LINE_MAX_N], none[] = "", memory[256];
    snprintf(memory, sizeof memory, "%s/memory", top);
    uint64_t limit = UINT64_MAX, one;
    FILE *f = fopen(self, "re");
    while (f && fgets(line, sizeof line, f)) {
        one = of_line(top, line);
        limit = one < limit ? one : limit;
    }
    if (f)
        fclose(f);
    /* Without that file, or where its paths are of another namespace: what is mounted. */
    one = lowest(top, none, "memory.max");
    limit = one < limit ? one : limit;
    one = lowest(memory, none, "memory.limit_in_bytes");
    return one < limit ? one : limit;
}
