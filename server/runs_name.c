#include <time.h>

#include "server/runs_int.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* --- times --- */

/* Reads `digits` digits at *p and one separator after them, if there is one. */
static bool read_number(const char **p, int digits, int *v)
{
    *v = 0;
    for (int i = 0; i < digits; i++, (*p)++) {
        if (!is_digit(**p))
            return false;
        *v = *v * 10 + (**p - '0');
    }
    return true;
}

/* The time at which local clocks show what clocks of UTC show at `utc`. Not by mktime, which
 * looks at /etc/localtime each time: with thousands of names that is half of a listing. */
static time_t from_local(time_t utc)
{
    struct tm tm;
    time_t t = utc;
    for (int i = 0; i < 2 && localtime_r(&t, &tm); i++) /* again: the offset at t, not at utc */
        t = utc - tm.tm_gmtoff;
    return t;
}

/* A time that begins at p: year, month, day, hour, minute, second, with or without one of
 * "_-:.T " between them. */
static bool time_at(const char *p, int64_t *ms)
{
    static const struct {
        int digits, min, max;
    } parts[6] = {{4, 1970, 2199}, {2, 1, 12}, {2, 1, 31}, {2, 0, 23}, {2, 0, 59}, {2, 0, 59}};
    int v[6];
    for (int i = 0; i < 6; i++) {
        if (i && *p && strchr("_-:.T ", *p))
            p++;
        if (!read_number(&p, parts[i].digits, &v[i]) || v[i] < parts[i].min || v[i] > parts[i].max)
            return false;
    }
    if (is_digit(*p))
        return false;
    struct tm tm = {.tm_year = v[0] - 1900,
                    .tm_mon = v[1] - 1,
                    .tm_mday = v[2],
                    .tm_hour = v[3],
                    .tm_min = v[4],
                    .tm_sec = v[5]};
    time_t utc = timegm(&tm);
    if (tm.tm_mday != v[2]) /* the 31st of a month of 30 days */
        return false;
    *ms = (int64_t)from_local(utc) * 1000;
    return true;
}

bool run_time_from_name(const char *name, int64_t *ms)
{
    const char *slash = strrchr(name, '/');
    const char *from = slash ? slash + 1 : name;
    for (const char *p = from; *p; p++)
        if (is_digit(*p) && (p == from || !is_digit(p[-1])) && time_at(p, ms))
            return true;
    return false;
}

/* --- order --- */

int run_natural_cmp(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        if (!is_digit(*x) || !is_digit(*y)) {
            if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++, y++;
            continue;
        }
        while (*x == '0')
            x++;
        while (*y == '0')
            y++;
        size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");
        int c = nx != ny ? (nx < ny ? -1 : 1) : memcmp(x, y, nx);
        if (c)
            return c < 0 ? -1 : 1;
        x += nx;
        y += ny;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    int c = strcmp(a, b); /* w-1 and w-01 */
    return (c > 0) - (c < 0);
}

/* --- suffixes --- */

enum run_file run_file_of(const char *file, size_t *host_n)
{
    static const struct {
        const char *suffix;
        enum run_file kind;
    } suffixes[] = {
        {".xplane.pb", RUN_FILE_PLAIN},
        {".xplane.pb.gz", RUN_FILE_PACKED},
        {".xplane.riegeli", RUN_FILE_PACKED},
    };
    size_t n = strlen(file);
    *host_n = n;
    for (size_t i = 0; file[0] != '.' && i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t ns = strlen(suffixes[i].suffix);
        if (n <= ns || memcmp(file + n - ns, suffixes[i].suffix, ns) != 0)
            continue;
        *host_n = n - ns;
        return suffixes[i].kind;
    }
    return RUN_FILE_OTHER;
}

char *run_span_dup(struct xp_span s)
{
    char *p = must(malloc(s.n + 1));
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}
