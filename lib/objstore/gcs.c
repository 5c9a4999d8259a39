/* Cloud Storage's JSON API. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/objstore/gcs_int.h"

#define PUBLIC "https://storage.googleapis.com"
#define OBJECT_FIELDS "size,generation,updated,contentEncoding"
#define SIMPLE_MAX ((size_t)8 << 20)  /* larger objects are sent in parts that can be resumed */
#define UPLOAD_PART ((size_t)8 << 20) /* a multiple of 256 KiB */
#define ANSWER_BYTES ((size_t)256 << 10)
#define PART_TRIES 8
#define URL_MAX 16384

static enum xp_status open_gcs(struct bucket *b, const struct xp_bucket_options *o,
                               struct xp_error *err)
{
    const char *emulator = getenv("STORAGE_EMULATOR_HOST");
    struct gcs_auth *auth = NULL;
    char with[300];
    if (o->gcs_endpoint) {
        XP_TRY(bucket_endpoint_parse(o->gcs_endpoint, "--gcs-endpoint", &b->endpoint, err));
    } else if (emulator && *emulator) {
        b->anonymous = true;
        snprintf(with, sizeof with, "%s%s", strstr(emulator, "://") ? "" : "http://", emulator);
        XP_TRY(bucket_endpoint_parse(with, "STORAGE_EMULATOR_HOST", &b->endpoint, err));
    } else {
        XP_TRY(bucket_endpoint_parse(PUBLIC, "endpoint", &b->endpoint, err));
    }
    XP_TRY(gcs_auth_open(b->anonymous, o->writable, &auth, err));
    b->own = auth;
    if (auth && !bucket_url_is_private(b->endpoint))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "tokens are sent over https only, and %.100s is not; to read without "
                       "credentials say so",
                       b->endpoint);
    return XP_OK;
}

static void free_gcs(struct bucket *b)
{
    gcs_auth_free(b->own);
}

static enum xp_status authorize(struct bucket *b, struct ask *a, struct xp_error *err)
{
    char *token;
    if (!b->own)
        return XP_OK;
    XP_TRY(gcs_auth_token(b->own, b->net, &token, err));
    ask_header(a, "authorization: Bearer %s", token);
    explicit_bzero(token, strlen(token));
    free(token);
    return XP_OK;
}

static bool refresh(struct bucket *b)
{
    return b->own && gcs_auth_refused(b->own);
}

/* --- addresses --- */

static void url_begin(struct xp_buf *u, const struct bucket *b, const char *before)
{
    xp_buf_init(u, URL_MAX);
    xp_buf_str(u, b->endpoint);
    xp_buf_str(u, before);
    xp_buf_str(u, "/storage/v1/b/");
    bucket_encode(u, b->bucket, false);
    xp_buf_str(u, "/o");
}

static void url_object(struct xp_buf *u, const struct bucket *b, const char *name)
{
    url_begin(u, b, "");
    xp_buf_byte(u, '/');
    bucket_encode(u, name, false);
}

static void url_end(struct xp_buf *u, struct ask *a)
{
    size_t n;
    xp_buf_byte(u, 0);
    if (u->failed) {
        a->failed = true;
        xp_buf_fini(u);
        return;
    }
    a->url = (char *)xp_buf_take(u, &n);
}

/* --- list and stat --- */

static enum xp_status list(struct bucket *b, const struct list_ask *l, struct ask *a,
                           struct xp_error *err)
{
    struct xp_buf u;
    url_begin(&u, b, "");
    xp_buf_fmt(&u, "?maxResults=%zu&fields=items%%28name%%2C", l->max);
    bucket_encode(&u, OBJECT_FIELDS, false);
    xp_buf_str(&u, "%29%2Cprefixes%2CnextPageToken");
    if (*l->prefix) {
        xp_buf_str(&u, "&prefix=");
        bucket_encode(&u, l->prefix, false);
    }
    if (l->delimiter)
        xp_buf_str(&u, "&delimiter=%2F");
    if (l->token) {
        xp_buf_str(&u, "&pageToken=");
        bucket_encode(&u, l->token, false);
    }
    url_end(&u, a);
    return authorize(b, a, err);
}

static enum xp_status list_answer(struct bucket *b, const struct list_ask *l, struct xp_span body,
                                  struct xp_store_page *page, struct xp_error *err)
{
    return gcs_parse_list(b, l->prefix, body, page, err);
}

static enum xp_status stat_object(struct bucket *b, const char *name, struct ask *a,
                                  struct xp_error *err)
{
    struct xp_buf u;
    url_object(&u, b, name);
    xp_buf_str(&u, "?fields=");
    bucket_encode(&u, OBJECT_FIELDS, false);
    url_end(&u, a);
    return authorize(b, a, err);
}

static enum xp_status stat_answer(struct bucket *b, const struct net_reply *reply,
                                  struct xp_object *out, struct xp_error *err)
{
    (void)b;
    return gcs_parse_object(xp_buf_all(&reply->body), out, err);
}

/* --- read --- */

/* "generation" names one content: an object that was replaced is then not found, or still there in
 * a bucket with versions. */
static enum xp_status read_range(struct bucket *b, const char *name, uint64_t generation,
                                 uint64_t from, uint64_t to, struct ask *a, struct xp_error *err)
{
    struct xp_buf u;
    url_object(&u, b, name);
    xp_buf_str(&u, "?alt=media");
    if (generation)
        xp_buf_fmt(&u, "&generation=%llu", (unsigned long long)generation);
    url_end(&u, a);
    ask_header(a, "range: bytes=%llu-%llu", (unsigned long long)from, (unsigned long long)to - 1);
    ask_header(a, "accept-encoding: gzip"); /* as it is stored: ranges hold for nothing else */
    return authorize(b, a, err);
}

static uint64_t read_generation(struct net_call *call)
{
    uint64_t v = 0;
    return bucket_u64(net_header(call, "x-goog-generation"), &v) ? v : 0;
}

/* --- put --- */

struct put {
    const char *key, *name;
    struct xp_span body;
    uint64_t if_generation;
    char *session; /* address of a resumable upload */
    uint64_t at;   /* bytes that the store has */
    bool query;    /* ask for `at` only */
};

static void upload_url(struct bucket *b, const struct put *p, const char *type, struct ask *a)
{
    struct xp_buf u;
    url_begin(&u, b, "/upload");
    xp_buf_fmt(&u, "?uploadType=%s&ifGenerationMatch=%llu&name=", type,
               (unsigned long long)p->if_generation);
    bucket_encode(&u, p->name, false);
    xp_buf_str(&u, "&fields=");
    bucket_encode(&u, OBJECT_FIELDS, false);
    url_end(&u, a);
}

static enum xp_status make_simple(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    struct put *p = ctx;
    upload_url(b, p, "media", a);
    a->method = "POST";
    a->body = p->body;
    ask_header(a, "content-type: application/octet-stream");
    return authorize(b, a, err);
}

static enum xp_status make_session(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    struct put *p = ctx;
    upload_url(b, p, "resumable", a);
    a->method = "POST";
    a->body = XP_SPAN_LIT("{}");
    ask_header(a, "content-type: application/json");
    ask_header(a, "x-upload-content-type: application/octet-stream");
    ask_header(a, "x-upload-content-length: %zu", p->body.n);
    return authorize(b, a, err);
}

/* The session's address is what authorizes its parts. */
static enum xp_status make_part(struct bucket *b, void *ctx, struct ask *a, struct xp_error *err)
{
    struct put *p = ctx;
    size_t n = p->body.n - p->at;
    (void)b, (void)err;
    n = n > UPLOAD_PART ? UPLOAD_PART : n;
    a->method = "PUT";
    a->url = strdup(p->session);
    a->failed |= !a->url;
    ask_header(a, "content-type: application/octet-stream");
    if (p->query) {
        ask_header(a, "content-range: bytes */%zu", p->body.n);
    } else {
        ask_header(a, "content-range: bytes %llu-%llu/%zu", (unsigned long long)p->at,
                   (unsigned long long)(p->at + n - 1), p->body.n);
        a->body = xp_span_of(p->body.p + p->at, n);
    }
    return XP_OK;
}

static enum xp_status stored(const struct net_reply *reply, uint64_t *generation,
                             struct xp_error *err)
{
    struct xp_object o;
    XP_TRY(gcs_parse_object(xp_buf_all(&reply->body), &o, err));
    *generation = o.generation;
    return XP_OK;
}

/* An answer was lost and the upload repeated: the store then says that there is another generation
 * by now, and it may be ours. Nobody can tell, so that it stays XP_STALE. */
static enum xp_status put_simple(struct bucket *b, struct put *p, uint64_t *generation,
                                 struct xp_error *err)
{
    struct net_reply reply;
    struct bucket_call c = {BUCKET_PUT, p->key, make_simple, p, ANSWER_BYTES, 0};
    enum xp_status status = bucket_call(b, &c, &reply, err);
    if (status == XP_OK)
        status = stored(&reply, generation, err);
    net_reply_fini(&reply);
    return status;
}

static enum xp_status open_session(struct bucket *b, struct put *p, struct xp_error *err)
{
    struct net_reply reply;
    struct bucket_call c = {BUCKET_PUT, p->key, make_session, p, ANSWER_BYTES, 0};
    enum xp_status status = bucket_call(b, &c, &reply, err);
    if (status == XP_OK && !(p->session = net_reply_header(&reply, "location")))
        status = xp_fail(err, XP_IO, 0, "the store began no upload of \"%.100s\"", p->key);
    net_reply_fini(&reply);
    return status;
}

/* How far the store is: "range: bytes=0-N". */
static uint64_t stored_up_to(const struct net_reply *reply)
{
    char *range = net_reply_header(reply, "range");
    const char *dash = range ? strchr(range, '-') : NULL;
    uint64_t last = 0;
    bool some = dash && bucket_u64(dash + 1, &last);
    free(range);
    return some ? last + 1 : 0;
}

/* One part, or the question how far the store is. *over: the object is there. */
static enum xp_status put_part(struct bucket *b, struct put *p, bool *over, uint64_t *generation,
                               struct xp_error *err)
{
    struct net_reply reply;
    struct bucket_call c = {BUCKET_PUT, p->key, make_part, p, ANSWER_BYTES, 308};
    enum xp_status status = bucket_call_once(b, &c, &reply, err);
    if (status == XP_OK && reply.code == 308) {
        uint64_t at = stored_up_to(&reply);
        if (at > p->body.n)
            status =
                xp_fail(err, XP_IO, 0, "the store has more of \"%.100s\" than was sent", p->key);
        p->at = at;
        p->query = false;
    } else if (status == XP_OK) {
        status = stored(&reply, generation, err);
        *over = status == XP_OK;
    }
    net_reply_fini(&reply);
    return status;
}

static enum xp_status put_resumable(struct bucket *b, struct put *p, uint64_t *generation,
                                    struct xp_error *err)
{
    bool over = false;
    int tries = 0;
    XP_TRY(open_session(b, p, err));
    while (!over) {
        uint64_t was = p->at;
        enum xp_status status = put_part(b, p, &over, generation, err);
        if (status == XP_OK && p->at > was)
            tries = 0;
        else if (status == XP_OK && !over && ++tries > PART_TRIES)
            return xp_fail(err, XP_IO, 0, "the upload of \"%.100s\" does not go on", p->key);
        if (status == XP_OK)
            continue;
        if ((status != XP_IO && status != XP_TIMEOUT) || ++tries > PART_TRIES)
            return status;
        bucket_pause(b, tries);
        p->query = true;
    }
    return XP_OK;
}

static enum xp_status put(struct bucket *b, const char *key, struct xp_span body,
                          uint64_t if_generation, uint64_t *generation, struct xp_error *err)
{
    char *name = bucket_name_of(b, key);
    struct put p = {.key = key, .name = name, .body = body, .if_generation = if_generation};
    if (!name)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    enum xp_status status = body.n > SIMPLE_MAX ? put_resumable(b, &p, generation, err)
                                                : put_simple(b, &p, generation, err);
    free(p.session);
    free(name);
    return status;
}

static const char *permission(enum bucket_op op)
{
    static const char *const rights[] = {"storage.objects.list", "storage.objects.get",
                                         "storage.objects.get", "storage.objects.create"};
    return rights[op];
}

const struct bucket_kind gcs_kind = {
    .scheme = "gs",
    .open = open_gcs,
    .free = free_gcs,
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
