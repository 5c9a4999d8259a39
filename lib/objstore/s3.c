/* S3 and what speaks like it. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "lib/base/clock.h"
#include "lib/objstore/s3_int.h"
#include "lib/objstore/sigv4.h"

#define ANSWER_BYTES ((size_t)256 << 10)
#define PUT_MAX ((size_t)64 << 20)
#define URL_MAX 16384
#define EMPTY_HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct s3_keys {
    char *id, *secret, *session, *region;
};

static char *env(const char *a, const char *b, const char *otherwise)
{
    const char *v = getenv(a);
    if ((!v || !*v) && b)
        v = getenv(b);
    return strdup(v && *v ? v : otherwise);
}

static bool region_ok(const char *r)
{
    size_t n = strlen(r);
    return n > 0 && n <= 64 && strspn(r, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static enum xp_status find_endpoint(struct bucket *b, const struct xp_bucket_options *o,
                                    const char *region, struct xp_error *err)
{
    char *named = o->s3_endpoint ? strdup(o->s3_endpoint)
                                 : env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "");
    char url[400];
    if (!named)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    b->path_style = *named || strchr(b->bucket, '.');
    if (b->path_style)
        snprintf(url, sizeof url, "https://s3.%s.amazonaws.com", region);
    else
        snprintf(url, sizeof url, "https://%s.s3.%s.amazonaws.com", b->bucket, region);
    enum xp_status status =
        bucket_endpoint_parse(*named ? named : url, "--s3-endpoint", &b->endpoint, err);
    free(named);
    return status;
}

static enum xp_status open_s3(struct bucket *b, const struct xp_bucket_options *o,
                              struct xp_error *err)
{
    struct s3_keys *k = calloc(1, sizeof *k);
    if (!k)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    b->own = k;
    k->id = env("AWS_ACCESS_KEY_ID", NULL, "");
    k->secret = env("AWS_SECRET_ACCESS_KEY", NULL, "");
    k->session = env("AWS_SESSION_TOKEN", NULL, "");
    k->region = env("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");
    if (!k->id || !k->secret || !k->session || !k->region)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    if (!region_ok(k->region))
        return xp_fail(err, XP_BAD_REQUEST, 0, "AWS_REGION=%.70s is no region", k->region);
    XP_TRY(find_endpoint(b, o, k->region, err));
    if (!b->anonymous && (!*k->id || !*k->secret))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "there are no credentials for s3://%.100s: set AWS_ACCESS_KEY_ID and "
                       "AWS_SECRET_ACCESS_KEY, or read without any",
                       b->bucket);
    if (!b->anonymous && *k->session && !bucket_url_is_private(b->endpoint))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "a session token is sent over https only, and %.100s is not", b->endpoint);
    return XP_OK;
}

static void free_s3(struct bucket *b)
{
    struct s3_keys *k = b->own;
    if (!k)
        return;
    if (k->secret)
        explicit_bzero(k->secret, strlen(k->secret));
    free(k->id);
    free(k->secret);
    free(k->session);
    free(k->region);
    free(k);
}

/* --- one request --- */

struct parts {
    struct xp_buf path, query;
};

/* The part of an address after scheme and host: what an endpoint has of a path comes first. */
static const char *endpoint_path(const struct bucket *b)
{
    const char *slash = strchr(strstr(b->endpoint, "://") + 3, '/');
    return slash ? slash : "";
}

static void parts_init(struct parts *p, const struct bucket *b, const char *name)
{
    xp_buf_init(&p->path, URL_MAX);
    xp_buf_init(&p->query, URL_MAX);
    xp_buf_str(&p->path, endpoint_path(b));
    xp_buf_byte(&p->path, '/');
    if (b->path_style) {
        bucket_encode(&p->path, b->bucket, false);
        xp_buf_str(&p->path, name ? "/" : "");
    }
    if (name)
        bucket_encode(&p->path, name, true);
}

static void parts_fini(struct parts *p)
{
    xp_buf_fini(&p->path);
    xp_buf_fini(&p->query);
}

/* Values in the order of their names. */
static void query_add(struct parts *p, const char *name, const char *value)
{
    xp_buf_fmt(&p->query, "%s%s=", p->query.n ? "&" : "", name);
    bucket_encode(&p->query, value, false);
}

static void host_of(const struct bucket *b, char out[300])
{
    const char *host = strstr(b->endpoint, "://") + 3;
    snprintf(out, 300, "%.*s", (int)strcspn(host, "/"), host);
}

static enum xp_status sign(struct bucket *b, struct parts *p, struct ask *a, struct xp_error *err)
{
    const struct s3_keys *k = b->own;
    char host[300], date[SIGV4_DATE], hex[SIGV4_HEX] = EMPTY_HEX;
    struct sigv4_header h[4] = {
        {"host", host}, {"x-amz-content-sha256", hex}, {"x-amz-date", date}};
    struct xp_buf auth;
    host_of(b, host);
    sigv4_date(xp_wall_ms() / 1000, date);
    if (a->body.n)
        sigv4_hex(a->body, hex);
    h[3] = (struct sigv4_header){"x-amz-security-token", k->session};
    struct sigv4 s = {.key_id = k->id,
                      .secret = k->secret,
                      .region = k->region,
                      .method = a->method,
                      .path = (const char *)p->path.p,
                      .query = (const char *)p->query.p,
                      .headers = h,
                      .n_headers = *k->session ? 4 : 3,
                      .payload_hex = hex,
                      .date = date};
    xp_buf_init(&auth, 4096);
    if (!sigv4_sign(&s, &auth)) {
        xp_buf_fini(&auth);
        return xp_fail(err, XP_INTERNAL, 0, "a request to s3://%.100s cannot be signed", b->bucket);
    }
    ask_header(a, "x-amz-date: %s", date);
    ask_header(a, "x-amz-content-sha256: %s", hex);
    if (*k->session)
        ask_header(a, "x-amz-security-token: %s", k->session);
    ask_header(a, "authorization: %.*s", (int)auth.n, (const char *)auth.p);
    xp_buf_fini(&auth);
    return XP_OK;
}

/* Makes the address of the parts, signs, and frees them. */
static enum xp_status finish(struct bucket *b, struct parts *p, struct ask *a, struct xp_error *err)
{
    enum xp_status status = XP_OK;
    xp_buf_byte(&p->path, 0);
    xp_buf_byte(&p->query, 0);
    if (p->path.failed || p->query.failed) {
        parts_fini(p);
        return xp_fail(err, XP_TOO_LARGE, 0, "the name is too long");
    }
    const char *path = (const char *)p->path.p, *query = (const char *)p->query.p;
    size_t origin = strlen(b->endpoint) - strlen(endpoint_path(b));
    if (asprintf(&a->url, "%.*s%s%s%s", (int)origin, b->endpoint, path, *query ? "?" : "", query) <
        0) {
        a->url = NULL;
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    if (status == XP_OK && !b->anonymous)
        status = sign(b, p, a, err);
    parts_fini(p);
    return status;
}

static bool refresh(struct bucket *b)
{
    (void)b;
    return false;
}

/* --- list, stat, read --- */

static enum xp_status list(struct bucket *b, const struct list_ask *l, struct ask *a,
                           struct xp_error *err)
{
    struct parts p;
    char max[24];
    snprintf(max, sizeof max, "%zu", l->max);
    parts_init(&p, b, NULL);
    if (l->token)
        query_add(&p, "continuation-token", l->token);
    if (l->delimiter)
        query_add(&p, "delimiter", "/");
    query_add(&p, "encoding-type", "url");
    query_add(&p, "list-type", "2");
    query_add(&p, "max-keys", max);
    query_add(&p, "prefix", l->prefix);
    return finish(b, &p, a, err);
}

static enum xp_status list_answer(struct bucket *b, const struct list_ask *l, struct xp_span body,
                                  struct xp_store_page *page, struct xp_error *err)
{
    return s3_parse_list(b, l->prefix, body, page, err);
}

static enum xp_status stat_object(struct bucket *b, const char *name, struct ask *a,
                                  struct xp_error *err)
{
    struct parts p;
    parts_init(&p, b, name);
    a->method = "HEAD";
    return finish(b, &p, a, err);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static int64_t http_date_ms(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char month[4] = "", iso[32];
    int d, y, h, m, s;
    if (!text || sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d", &d, month, &y, &h, &m, &s) != 6)
        return 0;
    const char *at = strstr(months, month);
    if (!at || strlen(month) != 3)
        return 0;
    snprintf(iso, sizeof iso, "%04d-%02d-%02dT%02d:%02d:%02dZ", y % 10000,
             (int)(at - months) / 3 + 1, d % 100, h % 100, m % 100, s % 100);
    return bucket_time_ms(iso);
}

static enum xp_status stat_answer(struct bucket *b, const struct net_reply *reply,
                                  struct xp_object *out, struct xp_error *err)
{
    char *etag = net_reply_header(reply, "etag"), *size = net_reply_header(reply, "content-length");
    char *when = net_reply_header(reply, "last-modified");
    char *encoding = net_reply_header(reply, "content-encoding");
    (void)b;
    *out = (struct xp_object){0};
    bool ok = etag && *etag && bucket_u64(size, &out->size);
    if (ok)
        out->generation = s3_generation(etag);
    out->mtime_ms = http_date_ms(when);
    out->gzip = encoding && strcmp(encoding, "gzip") == 0;
    free(etag);
    free(size);
    free(when);
    free(encoding);
    return ok ? XP_OK
              : xp_fail(err, XP_IO, 0, "the store's answer has no ETag or no Content-Length");
}

/* Which content the bytes are of is told by their ETag; bucket_read.c compares. */
static enum xp_status read_range(struct bucket *b, const char *name, uint64_t generation,
                                 uint64_t from, uint64_t to, struct ask *a, struct xp_error *err)
{
    struct parts p;
    (void)generation;
    parts_init(&p, b, name);
    ask_header(a, "range: bytes=%llu-%llu", (unsigned long long)from, (unsigned long long)to - 1);
    return finish(b, &p, a, err);
}

static uint64_t read_generation(struct net_call *call)
{
    const char *etag = net_header(call, "etag");
    return etag && *etag ? s3_generation(etag) : 0;
}

/* --- put --- */

struct put {
    const char *name;
    struct xp_span body;
    char *etag; /* that must be there; NULL: nothing may be */
};

static enum xp_status make_put(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    struct put *put = ctx;
    struct parts p;
    parts_init(&p, b, put->name);
    a->method = "PUT";
    a->body = put->body;
    ask_header(a, "content-type: application/octet-stream");
    if (put->etag)
        ask_header(a, "if-match: %s", put->etag);
    else
        ask_header(a, "if-none-match: *");
    return finish(b, &p, a, err);
}

static enum xp_status make_head(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    return stat_object(b, ((struct put *)ctx)->name, a, err);
}

/* The ETag that has this generation now. */
static enum xp_status find_etag(struct bucket *b, const char *key, struct put *put,
                                uint64_t generation, struct xp_error *err)
{
    struct net_reply reply;
    struct bucket_call c = {BUCKET_PUT, key, make_head, put, ANSWER_BYTES, 404};
    enum xp_status status = bucket_call(b, &c, &reply, err);
    if (status == XP_OK)
        put->etag = net_reply_header(&reply, "etag");
    if (status == XP_OK && (!put->etag || s3_generation(put->etag) != generation))
        status = bucket_fail(b, BUCKET_PUT, key, 412, (struct xp_span){0}, err);
    net_reply_fini(&reply);
    return status;
}

static enum xp_status put(struct bucket *b, const char *key, struct xp_span body,
                          uint64_t if_generation, uint64_t *generation, struct xp_error *err)
{
    char *name = bucket_name_of(b, key);
    struct put p = {name, body, NULL};
    struct net_reply reply;
    struct bucket_call c = {BUCKET_PUT, key, make_put, &p, ANSWER_BYTES, 0};
    enum xp_status status = XP_OK;
    if (!name)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    if (body.n > PUT_MAX)
        status = xp_fail(err, XP_TOO_LARGE, 0, "an object of more than %zu bytes is not written",
                         PUT_MAX);
    if (status == XP_OK && if_generation)
        status = find_etag(b, key, &p, if_generation, err);
    if (status == XP_OK) {
        status = bucket_call(b, &c, &reply, err);
        char *etag = status == XP_OK ? net_reply_header(&reply, "etag") : NULL;
        if (status == XP_OK && !etag)
            status = xp_fail(err, XP_IO, 0, "the store's answer has no ETag");
        else if (etag)
            *generation = s3_generation(etag);
        free(etag);
        net_reply_fini(&reply);
    }
    free(p.etag);
    free(name);
    return status;
}

static const char *permission(enum bucket_op op)
{
    static const char *const rights[] = {"s3:ListBucket", "s3:GetObject", "s3:GetObject",
                                         "s3:PutObject"};
    return rights[op];
}

const struct bucket_kind s3_kind = {
    .scheme = "s3",
    .open = open_s3,
    .free = free_s3,
    .list = list,
    .list_answer = list_answer,
    .stat = stat_object,
    .stat_answer = stat_answer,
    .read = read_range,
    .read_generation = read_generation,
    .put = put,
    .permission = permission,
    .refresh = refresh,
};
