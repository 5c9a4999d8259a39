/* Tokens for Cloud Storage.
 *
 * A token is fetched by the one who finds it missing, and again nearly four minutes before it ends,
 * while the others go on with the old one. Nothing of a token or a key is ever printed: sentences
 * say which file or server was asked, and the code it answered with.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/objstore/count.h"
#include "lib/objstore/gcs_int.h"

#define SCOPE_READ "https://www.googleapis.com/auth/devstorage.read_only"
#define SCOPE_WRITE "https://www.googleapis.com/auth/devstorage.read_write"
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"
#define FILE_MAX 65536
#define ANSWER_MAX 65536
#define TOKEN_MAX 16384
#define EARLY_S 225                   /* before its end a token is replaced */
#define LAST_S 10                     /* before its end it is not used any more */
#define PAUSE_NS UINT64_C(1000000000) /* after a failure nobody is asked for that long */
#define TRIES 3

enum auth_kind { AUTH_METADATA, AUTH_KEY, AUTH_FEDERATED, AUTH_USER };

struct gcs_auth {
    enum auth_kind kind;
    const char *scope;
    char *file; /* where the credentials came from */
    json_t *json;
    char *metadata; /* http://host:port */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asking;
    char *token;
    uint64_t fetched_ns, refresh_ns, end_ns, pause_until_ns;
    struct xp_error failure;
};

/* --- files --- */

static enum xp_status read_file(const char *path, struct xp_buf *out, struct xp_error *err)
{
    FILE *f = fopen(path, "re");
    xp_buf_init(out, FILE_MAX);
    if (!f)
        return xp_fail(err, XP_IO, 0, "cannot read the credentials in %.150s: %m", path);
    for (;;) {
        uint8_t *room = xp_buf_room(out, 4096);
        size_t n = room ? fread(room, 1, 4096, f) : 0;
        out->n += n;
        if (!n)
            break;
    }
    bool failed = ferror(f) || out->failed;
    fclose(f);
    return failed ? xp_fail(err, XP_IO, 0, "%.150s is no file of credentials", path) : XP_OK;
}

static void wipe(struct xp_buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    xp_buf_fini(b);
}

static const char *text_of(const struct gcs_auth *a, const char *name)
{
    return json_string_value(json_object_get(a->json, name));
}

static enum xp_status need(const struct gcs_auth *a, const char *const *names, struct xp_error *err)
{
    for (; *names; names++)
        if (!text_of(a, *names))
            return xp_fail(err, XP_BAD_REQUEST, 0, "the credentials in %.120s lack \"%s\"", a->file,
                           *names);
    return XP_OK;
}

/* Where secrets go is named by the file, which may not come from friends. */
static enum xp_status need_private(const struct gcs_auth *a, const char *name, struct xp_error *err)
{
    const char *url = text_of(a, name);
    if (!url || bucket_url_is_private(url))
        return XP_OK;
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "the credentials in %.120s have a \"%s\" that is not https", a->file, name);
}

static enum xp_status check_federated(const struct gcs_auth *a, struct xp_error *err)
{
    static const char *const names[] = {"audience", "subject_token_type", "token_url", NULL};
    const json_t *source = json_object_get(a->json, "credential_source");
    XP_TRY(need(a, names, err));
    XP_TRY(need_private(a, "token_url", err));
    XP_TRY(need_private(a, "service_account_impersonation_url", err));
    if (!json_string_value(json_object_get(source, "file")))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "the credentials in %.120s take their token from no file; only that kind of "
                       "workload identity is understood",
                       a->file);
    return XP_OK;
}

static enum xp_status take_kind(struct gcs_auth *a, struct xp_error *err)
{
    static const char *const key[] = {"client_email", "private_key", NULL};
    static const char *const user[] = {"client_id", "client_secret", "refresh_token", NULL};
    const char *type = text_of(a, "type");
    if (type && strcmp(type, "service_account") == 0) {
        a->kind = AUTH_KEY;
        XP_TRY(need(a, key, err));
        return need_private(a, "token_uri", err);
    }
    if (type && strcmp(type, "external_account") == 0) {
        a->kind = AUTH_FEDERATED;
        return check_federated(a, err);
    }
    if (type && strcmp(type, "authorized_user") == 0) {
        a->kind = AUTH_USER;
        XP_TRY(need(a, user, err));
        return need_private(a, "token_uri", err);
    }
    return xp_fail(err, XP_BAD_REQUEST, 0,
                   "the credentials in %.100s are of type \"%.40s\": service_account, "
                   "external_account or authorized_user is expected",
                   a->file, type ? type : "");
}

static enum xp_status from_file(struct gcs_auth *a, const char *path, struct xp_error *err)
{
    struct xp_buf text;
    json_error_t why;
    enum xp_status status = read_file(path, &text, err);
    a->file = strdup(path);
    if (status == XP_OK) {
        a->json = json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, &why);
        status = a->file && json_is_object(a->json)
                     ? take_kind(a, err)
                     : xp_fail(err, XP_BAD_REQUEST, 0, "%.150s holds no JSON object", path);
    }
    wipe(&text);
    return status;
}

static char *well_known(void)
{
    const char *config = getenv("CLOUDSDK_CONFIG"), *home = getenv("HOME");
    char path[4096] = "";
    FILE *f;
    if (config && *config)
        snprintf(path, sizeof path, "%s/application_default_credentials.json", config);
    else if (home && *home)
        snprintf(path, sizeof path, "%s/.config/gcloud/application_default_credentials.json", home);
    if (!*path || !(f = fopen(path, "re")))
        return NULL;
    fclose(f);
    return strdup(path);
}

static enum xp_status from_metadata(struct gcs_auth *a, struct xp_error *err)
{
    const char *host = getenv("GCE_METADATA_HOST"), *ip = getenv("GCE_METADATA_IP");
    char url[300];
    if (getenv("NO_GCE_CHECK"))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "there are no credentials for Cloud Storage: set "
                       "GOOGLE_APPLICATION_CREDENTIALS, or read without any");
    if (host && *host)
        snprintf(url, sizeof url, "http://%s", host);
    else
        snprintf(url, sizeof url, "http://%s", ip && *ip ? ip : "169.254.169.254");
    a->kind = AUTH_METADATA;
    return bucket_endpoint_parse(url, "GCE_METADATA_HOST", &a->metadata, err);
}

enum xp_status gcs_auth_open(bool anonymous, bool writable, struct gcs_auth **out,
                             struct xp_error *err)
{
    const char *named = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    *out = NULL;
    if (anonymous)
        return XP_OK;
    struct gcs_auth *a = calloc(1, sizeof *a);
    if (!a)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    a->scope = writable ? SCOPE_WRITE : SCOPE_READ;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    char *known = named && *named ? NULL : well_known();
    enum xp_status status = named && *named ? from_file(a, named, err)
                            : known         ? from_file(a, known, err)
                                            : from_metadata(a, err);
    free(known);
    if (status == XP_OK)
        *out = a;
    else
        gcs_auth_free(a);
    return status;
}

void gcs_auth_free(struct gcs_auth *a)
{
    if (!a)
        return;
    if (a->token)
        explicit_bzero(a->token, strlen(a->token));
    free(a->token);
    json_decref(a->json);
    free(a->file);
    free(a->metadata);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    free(a);
}

/* --- asking --- */

struct grant {
    char *token;
    int64_t seconds;
};

static bool sound_token(const char *t)
{
    size_t n = t ? strlen(t) : 0;
    for (size_t i = 0; i < n; i++)
        if (t[i] <= ' ' || t[i] >= 0x7f)
            return false;
    return n > 0 && n <= TOKEN_MAX;
}

static enum xp_status read_grant(struct xp_span body, const char *from, struct grant *g,
                                 struct xp_error *err)
{
    json_error_t why;
    json_t *o = json_loadb((const char *)body.p, body.n, 0, &why);
    const char *token = json_string_value(json_object_get(o, "access_token"));
    const char *end = json_string_value(json_object_get(o, "expireTime"));
    if (!token)
        token = json_string_value(json_object_get(o, "accessToken"));
    g->seconds = json_integer_value(json_object_get(o, "expires_in"));
    if (end)
        g->seconds = (bucket_time_ms(end) - xp_wall_ms()) / 1000;
    g->token = sound_token(token) ? strdup(token) : NULL;
    json_decref(o);
    if (!g->token || g->seconds <= 0)
        return xp_fail(err, XP_IO, 0, "%.100s answered without a token", from);
    if (g->seconds > 86400)
        g->seconds = 86400;
    return XP_OK;
}

/* Asks with a few attempts. `from` is for the sentence. */
static enum xp_status ask(struct net_client *net, const struct net_request *r, const char *from,
                          struct grant *g, bool metadata, struct xp_error *err)
{
    enum xp_status status = XP_IO;
    for (int i = 0; i < TRIES; i++) {
        struct net_reply reply;
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 100000000L << i}, NULL);
        uint64_t began = xp_now_ns();
        status = net_fetch(net, r, ANSWER_MAX, &reply, NULL);
        store_count_call(XP_CALL_TOKEN, status, reply.code, xp_now_ns() - began);
        if (i)
            store_count_retry(XP_CALL_TOKEN);
        bool again = retry_may_pass(status, reply.code);
        char *flavor = metadata ? net_reply_header(&reply, "metadata-flavor") : NULL;
        if (status != XP_OK)
            status = xp_fail(err, status, 0, "no token: %.120s does not answer", from);
        else if (reply.code != 200)
            status = xp_fail(err, again ? XP_IO : XP_DENIED, 0, "no token: %.120s answers HTTP %d",
                             from, reply.code);
        else if (metadata && (!flavor || strcasecmp(flavor, "Google") != 0))
            status = xp_fail(err, XP_IO, 0,
                             "no token: what answers at %.100s is no metadata server", from);
        else
            status = read_grant(xp_buf_all(&reply.body), from, g, err);
        free(flavor);
        wipe(&reply.body);
        net_reply_fini(&reply);
        if (status == XP_OK || !again)
            break;
    }
    return status;
}

static enum xp_status post(struct net_client *net, const char *url, const char *type,
                           const char *bearer, const struct xp_buf *body, struct grant *g,
                           struct xp_error *err)
{
    char line[64], *auth = NULL;
    const char *headers[] = {line, NULL, NULL};
    struct net_request r = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = xp_buf_all(body),
                            .connect_ms = 5000,
                            .total_ms = 10000};
    if (body->failed)
        return xp_fail(err, XP_TOO_LARGE, 0, "the credentials are too long");
    snprintf(line, sizeof line, "content-type: %s", type);
    if (bearer && asprintf(&auth, "authorization: Bearer %s", bearer) < 0)
        return xp_fail(err, XP_BUSY, 0, "out of memory");
    headers[1] = auth;
    enum xp_status status = ask(net, &r, url, g, false, err);
    if (auth)
        explicit_bzero(auth, strlen(auth));
    free(auth);
    return status;
}

static void form(struct xp_buf *b, const char *name, const char *value)
{
    xp_buf_fmt(b, "%s%s=", b->n ? "&" : "", name);
    bucket_encode(b, value, false);
}

#define FORM_TYPE "application/x-www-form-urlencoded"

static enum xp_status ask_metadata(struct gcs_auth *a, struct net_client *net, struct grant *g,
                                   struct xp_error *err)
{
    static const char *const headers[] = {"metadata-flavor: Google", NULL};
    const char *timeout = getenv("GCE_METADATA_TIMEOUT");
    uint64_t seconds = 3;
    char url[400];
    if (timeout && (!bucket_u64(timeout, &seconds) || !seconds || seconds > 60))
        seconds = 3;
    snprintf(url, sizeof url, "%s%s", a->metadata, METADATA_PATH);
    struct net_request r = {.method = "GET",
                            .url = url,
                            .headers = headers,
                            .connect_ms = (uint32_t)seconds * 1000,
                            .total_ms = (uint32_t)seconds * 1000,
                            .direct = true};
    return ask(net, &r, "the metadata server", g, true, err);
}

static enum xp_status ask_key(struct gcs_auth *a, struct net_client *net, struct grant *g,
                              struct xp_error *err)
{
    const char *uri = text_of(a, "token_uri");
    struct xp_buf b;
    uri = uri ? uri : TOKEN_URI;
    char *jwt = gcs_auth_jwt(text_of(a, "private_key"), text_of(a, "private_key_id"),
                             text_of(a, "client_email"), a->scope, uri, xp_wall_ms() / 1000, err);
    if (!jwt)
        return err ? err->status : XP_BAD_REQUEST;
    xp_buf_init(&b, FILE_MAX);
    form(&b, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    form(&b, "assertion", jwt);
    enum xp_status status = post(net, uri, FORM_TYPE, NULL, &b, g, err);
    explicit_bzero(jwt, strlen(jwt));
    free(jwt);
    wipe(&b);
    return status;
}

static enum xp_status ask_user(struct gcs_auth *a, struct net_client *net, struct grant *g,
                               struct xp_error *err)
{
    const char *uri = text_of(a, "token_uri");
    struct xp_buf b;
    xp_buf_init(&b, FILE_MAX);
    form(&b, "grant_type", "refresh_token");
    form(&b, "client_id", text_of(a, "client_id"));
    form(&b, "client_secret", text_of(a, "client_secret"));
    form(&b, "refresh_token", text_of(a, "refresh_token"));
    enum xp_status status = post(net, uri ? uri : TOKEN_URI, FORM_TYPE, NULL, &b, g, err);
    wipe(&b);
    return status;
}

/* The token of the platform, from a file that it keeps renewing. */
static enum xp_status subject_token(struct gcs_auth *a, char **out, struct xp_error *err)
{
    const json_t *source = json_object_get(a->json, "credential_source");
    const json_t *format = json_object_get(source, "format");
    const char *path = json_string_value(json_object_get(source, "file"));
    const char *type = json_string_value(json_object_get(format, "type"));
    const char *field = json_string_value(json_object_get(format, "subject_token_field_name"));
    struct xp_buf text;
    enum xp_status status = read_file(path, &text, err);
    *out = NULL;
    if (status == XP_OK && type && strcmp(type, "json") == 0 && field) {
        json_error_t why;
        json_t *o = json_loadb((const char *)text.p, text.n, 0, &why);
        const char *v = json_string_value(json_object_get(o, field));
        *out = v ? strdup(v) : NULL;
        json_decref(o);
    } else if (status == XP_OK) {
        while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' '))
            text.n--;
        xp_buf_byte(&text, 0);
        *out = text.n > 1 && !text.failed ? strdup((const char *)text.p) : NULL;
    }
    wipe(&text);
    if (status == XP_OK && !*out)
        status = xp_fail(err, XP_IO, 0, "%.150s holds no token", path);
    return status;
}

static enum xp_status impersonate(struct gcs_auth *a, struct net_client *net, const char *url,
                                  struct grant *g, struct xp_error *err)
{
    struct xp_buf b;
    char *bearer = g->token;
    g->token = NULL;
    xp_buf_init(&b, 1024);
    xp_buf_fmt(&b, "{\"scope\":[\"%s\"],\"lifetime\":\"3600s\"}", a->scope);
    enum xp_status status = post(net, url, "application/json", bearer, &b, g, err);
    xp_buf_fini(&b);
    explicit_bzero(bearer, strlen(bearer));
    free(bearer);
    return status;
}

static enum xp_status ask_federated(struct gcs_auth *a, struct net_client *net, struct grant *g,
                                    struct xp_error *err)
{
    const char *other = text_of(a, "service_account_impersonation_url");
    struct xp_buf b;
    char *subject;
    XP_TRY(subject_token(a, &subject, err));
    xp_buf_init(&b, FILE_MAX);
    form(&b, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    form(&b, "requested_token_type", "urn:ietf:params:oauth:token-type:access_token");
    form(&b, "audience", text_of(a, "audience"));
    form(&b, "scope", other ? "https://www.googleapis.com/auth/cloud-platform" : a->scope);
    form(&b, "subject_token", subject);
    form(&b, "subject_token_type", text_of(a, "subject_token_type"));
    enum xp_status status = post(net, text_of(a, "token_url"), FORM_TYPE, NULL, &b, g, err);
    wipe(&b);
    explicit_bzero(subject, strlen(subject));
    free(subject);
    return status == XP_OK && other ? impersonate(a, net, other, g, err) : status;
}

static enum xp_status ask_any(struct gcs_auth *a, struct net_client *net, struct grant *g,
                              struct xp_error *err)
{
    switch (a->kind) {
    case AUTH_KEY:
        return ask_key(a, net, g, err);
    case AUTH_USER:
        return ask_user(a, net, g, err);
    case AUTH_FEDERATED:
        return ask_federated(a, net, g, err);
    default:
        return ask_metadata(a, net, g, err);
    }
}

/* --- keeping --- */

static void keep(struct gcs_auth *a, const struct grant *g)
{
    uint64_t now = xp_now_ns();
    int64_t early = g->seconds > 2 * EARLY_S ? g->seconds - EARLY_S : g->seconds / 2;
    if (a->token)
        explicit_bzero(a->token, strlen(a->token));
    free(a->token);
    a->token = g->token;
    a->fetched_ns = now;
    a->refresh_ns = now + (uint64_t)early * 1000000000;
    a->end_ns = now + (uint64_t)(g->seconds > 2 * LAST_S ? g->seconds - LAST_S : g->seconds) *
                          UINT64_C(1000000000);
}

/* With the lock held and nobody asking; returns so. */
static enum xp_status renew(struct gcs_auth *a, struct net_client *net)
{
    struct grant g = {0};
    struct xp_error err = {0};
    a->asking = true;
    pthread_mutex_unlock(&a->lock);
    enum xp_status status = ask_any(a, net, &g, &err);
    pthread_mutex_lock(&a->lock);
    a->asking = false;
    if (status == XP_OK) {
        keep(a, &g);
    } else {
        a->failure = err;
        a->failure.status = status;
        a->pause_until_ns = xp_now_ns() + PAUSE_NS;
    }
    pthread_cond_broadcast(&a->changed);
    return status;
}

enum xp_status gcs_auth_token(struct gcs_auth *a, struct net_client *net, char **token,
                              struct xp_error *err)
{
    enum xp_status status = XP_OK;
    *token = NULL;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        uint64_t now = xp_now_ns();
        bool valid = a->token && now < a->end_ns;
        bool pause = now < a->pause_until_ns;
        if (!a->asking && !pause && (!valid || now >= a->refresh_ns)) {
            renew(a, net);
            continue;
        }
        if (valid || !a->asking) {
            if (!valid && err)
                *err = a->failure;
            status = valid ? XP_OK : a->failure.status;
            break;
        }
        pthread_cond_wait(&a->changed, &a->lock);
    }
    if (status == XP_OK && !(*token = strdup(a->token)))
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    pthread_mutex_unlock(&a->lock);
    return status;
}

bool gcs_auth_refused(struct gcs_auth *a)
{
    pthread_mutex_lock(&a->lock);
    bool old = a->token && xp_now_ns() - a->fetched_ns > PAUSE_NS;
    if (old)
        a->end_ns = 0;
    pthread_mutex_unlock(&a->lock);
    return old;
}
