#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "lib/objstore/bucket_int.h"

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

bool bucket_is_url(const char *text)
{
    return strncmp(text, "gs://", 5) == 0 || strncmp(text, "s3://", 5) == 0;
}

/* The prefix with one '/' at its end and none at its start; parts as keys have them. */
static char *root_of(const char *p)
{
    while (*p == '/')
        p++;
    size_t n = strlen(p);
    while (n > 0 && p[n - 1] == '/')
        n--;
    char *root = malloc(n + 2);
    if (!root)
        return NULL;
    memcpy(root, p, n);
    memcpy(root + n, n ? "/" : "", n ? 2 : 1);
    return root;
}

enum xp_status bucket_url_parse(const char *text, struct bucket_url *out, struct xp_error *err)
{
    *out = (struct bucket_url){0};
    XP_ASSERT(bucket_is_url(text));
    const char *name = text + 5, *end = name;
    while (name_char(*end))
        end++;
    if (end - name < 3 || end - name > 222 || (*end && *end != '/'))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "\"%.120s\" names no bucket: %.2s://BUCKET or %.2s://BUCKET/PREFIX is "
                       "expected",
                       text, text, text);
    memcpy(out->scheme, text, 2);
    out->bucket = strndup(name, (size_t)(end - name));
    out->root = root_of(end);
    if (!out->bucket || !out->root) {
        bucket_url_fini(out);
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    if (strlen(out->root) > 1024 || (*out->root && !xp_store_prefix_ok(out->root))) {
        bucket_url_fini(out);
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "the prefix in \"%.120s\" is too long or has an empty, \".\" or \"..\" part",
                       text);
    }
    return XP_OK;
}

void bucket_url_fini(struct bucket_url *u)
{
    free(u->bucket);
    free(u->root);
    *u = (struct bucket_url){0};
}

/* --- addresses of servers --- */

static size_t scheme_length(const char *url)
{
    if (strncasecmp(url, "https://", 8) == 0)
        return 8;
    return strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
}

enum xp_status bucket_endpoint_parse(const char *text, const char *flag, char **out,
                                     struct xp_error *err)
{
    size_t at = scheme_length(text), n = strlen(text);
    *out = NULL;
    while (n > at && text[n - 1] == '/')
        n--;
    bool ok = at && n > at && text[at] != '/' && !memchr(text + at, '@', n - at) &&
              !memchr(text, '?', n) && !memchr(text, '#', n);
    for (size_t i = 0; ok && i < n; i++)
        ok = text[i] > ' ' && text[i] < 0x7f;
    if (!ok)
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "%s=%.100s is no address: http://HOST:PORT or https://HOST is expected",
                       flag, text);
    *out = strndup(text, n);
    return *out ? XP_OK : xp_fail(err, XP_BUSY, 0, "out of memory");
}

bool bucket_url_is_private(const char *url)
{
    size_t at = scheme_length(url);
    if (at == 8)
        return true;
    const char *host = url + at;
    size_t n = strcspn(host, ":/");
    if (at && strncmp(host, "[::1]", 5) == 0 && (host[5] == ':' || host[5] == '/' || !host[5]))
        return true;
    return at && ((n == 9 && strncmp(host, "localhost", 9) == 0) ||
                  (n > 4 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n));
}

void bucket_encode(struct xp_buf *b, const char *s, bool slashes)
{
    for (; *s; s++) {
        if (name_char(*s) || *s == '~' || (slashes && *s == '/'))
            xp_buf_byte(b, (uint8_t)*s);
        else
            xp_buf_fmt(b, "%%%02X", (unsigned char)*s);
    }
}

/* --- small values --- */

int64_t bucket_time_ms(const char *text)
{
    struct tm tm = {0};
    int ms = 0, used = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &used) != 6)
        return 0;
    const char *p = text + used;
    if (*p == '.') {
        int scale = 100;
        for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10)
            ms += (*p - '0') * scale;
    }
    tm.tm_year -= 1900;
    tm.tm_mon--;
    time_t t = timegm(&tm);
    int hours, minutes;
    if ((*p == '+' || *p == '-') && sscanf(p + 1, "%2d:%2d", &hours, &minutes) == 2)
        t -= (*p == '-' ? -1 : 1) * (hours * 60 + minutes) * 60;
    return (int64_t)t * 1000 + ms;
}

bool bucket_u64(const char *text, uint64_t *v)
{
    *v = 0;
    if (!text || !*text)
        return false;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(*v, (uint64_t)10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*text - '0'), v))
            return false;
    return !*text;
}
