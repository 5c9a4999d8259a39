#include "server/gate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "lib/auth/base64url.h"
#include "lib/auth/seal.h"
#include "lib/auth/secret.h"
#include "lib/base/log.h"
#include "lib/net/client.h"
#include "server/gate_int.h"
#include "server/login.h"

#define REMEMBER_S 300        /* what was good */
#define REMEMBER_REFUSED_S 30 /* what was not */
#define WAITING_MAX 1024
#define COOKIE_MAX 3900 /* browsers take 4096 with its name and attributes */
#define IAP_ISSUER "https://cloud.google.com/iap"
#define IAP_KEYS "https://www.gstatic.com/iap/verify/public_key-jwk"
#define SESSION "xprofd session"

static void *must(void *p)
{
    XP_ASSERT(p);
    return p;
}

/* --- who --- */

struct who_box {
    struct who pub; /* first */
    _Atomic int refs;
    char *name;
};

const struct who who_local = {.kind = WHO_LOCAL, .subject = "", .email = ""};
const struct who who_nobody = {.kind = WHO_NOBODY, .subject = "", .email = ""};

static bool is_counted(const struct who *w)
{
    return w && (w->kind == WHO_USER || w->kind == WHO_LINK);
}

static char *copy(const char *text, bool lower)
{
    char *c = must(strdup(text && strlen(text) <= WHO_TEXT_MAX ? text : ""));
    for (char *p = c; lower && *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p += 'a' - 'A';
    return c;
}

const struct who *who_new(enum who_kind kind, const char *subject, const char *email,
                          const char *const *groups, size_t n_groups)
{
    struct who_box *b = must(calloc(1, sizeof *b));
    char **list = must(calloc(WHO_GROUPS_MAX, sizeof *list));

    atomic_init(&b->refs, 1);
    b->pub = (struct who){kind, copy(subject, false), copy(email, true), (const char **)list, 0};
    for (size_t i = 0; i < n_groups && b->pub.n_groups < WHO_GROUPS_MAX; i++)
        if (groups[i][0] && strlen(groups[i]) <= WHO_TEXT_MAX)
            list[b->pub.n_groups++] = copy(groups[i], false);
    XP_ASSERT(asprintf(&b->name, "%s:%s", kind == WHO_LINK ? "link" : "user",
                       b->pub.email[0] ? b->pub.email : b->pub.subject) > 0);
    return &b->pub;
}

const struct who *who_ref(const struct who *w)
{
    if (is_counted(w))
        atomic_fetch_add(&((struct who_box *)w)->refs, 1);
    return w;
}

void who_unref(const struct who *w)
{
    struct who_box *b = (struct who_box *)w;
    if (!is_counted(w) || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    for (size_t i = 0; i < w->n_groups; i++)
        free((void *)w->groups[i]);
    free((void *)w->groups);
    free((void *)w->subject);
    free((void *)w->email);
    free(b->name);
    free(b);
}

const char *who_name(const struct who *w)
{
    if (is_counted(w))
        return ((const struct who_box *)w)->name;
    return w->kind == WHO_LOCAL ? "local" : "nobody";
}

/* --- claims --- */

static bool is_verified(const json_t *claims)
{
    const json_t *v = json_object_get(claims, "email_verified");
    const char *text = json_string_value(v);
    return json_is_true(v) || (text && !strcmp(text, "true"));
}

const struct who *gate_who_of(const struct gate *g, const json_t *claims)
{
    const char *groups[WHO_GROUPS_MAX];
    const json_t *list = json_object_get(claims, g->groups_claim);
    const char *subject = json_string_value(json_object_get(claims, "sub"));
    const char *email = json_string_value(json_object_get(claims, "email"));
    size_t n = 0;

    if (!subject || !subject[0])
        return NULL;
    if (json_is_string(list))
        groups[n++] = json_string_value(list);
    for (size_t i = 0; i < json_array_size(list) && n < WHO_GROUPS_MAX; i++)
        if (json_is_string(json_array_get(list, i)))
            groups[n++] = json_string_value(json_array_get(list, i));
    if (!g->trust_email && !is_verified(claims))
        email = NULL;
    return who_new(WHO_USER, subject, email, groups, n);
}

/* --- cookies --- */

void gate_set_cookie(const struct gate *g, struct http_answer *a, const char *name,
                     struct xp_span value, int64_t seconds)
{
    struct xp_buf b;
    xp_buf_init(&b, 2 * COOKIE_MAX);
    xp_buf_fmt(&b, "%s=%.*s; Path=%s; Max-Age=%lld; HttpOnly; SameSite=Lax%s", name, (int)value.n,
               value.n ? (const char *)value.p : "", g->path, (long long)(value.n ? seconds : 0),
               g->secure ? "; Secure" : "");
    if (!b.failed)
        http_answer_header(a, "set-cookie", xp_buf_all(&b));
    xp_buf_fini(&b);
}

/* Groups that make the cookie too long are left out; it is said in the log. */
bool gate_session_write(const struct gate *g, const struct who *who, int64_t now_s,
                        struct xp_buf *text)
{
    json_t *groups = json_array();
    size_t room = COOKIE_MAX * 3 / 4 - 128 - strlen(who->subject) - strlen(who->email), i = 0;

    for (; i < who->n_groups && strlen(who->groups[i]) + 4 < room; i++) {
        json_array_append_new(groups, json_string(who->groups[i]));
        room -= strlen(who->groups[i]) + 4;
    }
    if (i < who->n_groups)
        xp_log(XP_LOG_WARN, "auth", "%s is in more groups than a cookie holds: %zu of %zu kept",
               who_name(who), i, who->n_groups);
    json_t *o = json_pack("{s:s, s:s, s:o}", "s", who->subject, "e", who->email, "g", groups);
    char *bytes = o ? json_dumps(o, JSON_COMPACT) : NULL;
    bool ok = bytes && strlen(bytes) < SEAL_MAX;
    if (ok)
        xp_seal(g->cookies, SESSION, now_s + g->session_s, xp_span_str(bytes), text);
    free(bytes);
    json_decref(o);
    return ok && !text->failed;
}

bool gate_session_read(const struct gate *g, struct xp_span text, int64_t now_s,
                       const struct who **who, int64_t *until_s)
{
    const char *groups[WHO_GROUPS_MAX];
    struct xp_buf b;
    json_t *o = NULL;
    size_t n = 0;

    xp_buf_init(&b, SEAL_MAX);
    if (xp_unseal(g->cookies, SESSION, now_s, text, &b, until_s))
        o = json_loadb((const char *)b.p, b.n, JSON_REJECT_DUPLICATES, NULL);
    xp_buf_fini(&b);
    if (!o)
        return false;
    const json_t *list = json_object_get(o, "g");
    for (; n < json_array_size(list) && n < WHO_GROUPS_MAX; n++)
        groups[n] = json_string_value(json_array_get(list, n));
    *who = who_new(WHO_USER, json_string_value(json_object_get(o, "s")),
                   json_string_value(json_object_get(o, "e")), groups, n);
    json_decref(o);
    return true;
}

/* --- what was checked before --- */

/* kind keeps a text that is one thing from being taken for another. */
static void digest_of(char kind, struct xp_span text, uint8_t digest[32])
{
    xp_secret_sha256(text, digest);
    digest[0] ^= (uint8_t)kind;
}

static struct known *slot_of(struct gate *g, const uint8_t digest[32], pthread_mutex_t **lock)
{
    size_t i = ((size_t)digest[1] | (size_t)digest[2] << 8) % KNOWN_MAX;
    *lock = &g->locks[i % KNOWN_LOCKS];
    return &g->known[i];
}

static bool recall(struct gate *g, const uint8_t digest[32], int64_t now_s, const struct who **who,
                   const char **why)
{
    pthread_mutex_t *lock;
    struct known *k = slot_of(g, digest, &lock);
    pthread_mutex_lock(lock);
    bool found =
        now_s < k->until_s && xp_secret_same(xp_span_of(k->digest, 32), xp_span_of(digest, 32));
    if (found) {
        *who = k->who ? who_ref(k->who) : NULL;
        *why = k->why;
    }
    pthread_mutex_unlock(lock);
    return found;
}

static void remember(struct gate *g, const uint8_t digest[32], const struct who *who,
                     const char *why, int64_t until_s)
{
    pthread_mutex_t *lock;
    struct known *k = slot_of(g, digest, &lock);
    pthread_mutex_lock(lock);
    const struct who *old = k->who;
    *k = (struct known){.who = who ? who_ref(who) : NULL, .until_s = until_s, .why = why};
    memcpy(k->digest, digest, 32);
    pthread_mutex_unlock(lock);
    who_unref(old);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- each mode --- */

static enum gate_verdict refused(struct xp_error *err, const char *why)
{
    xp_fail(err, XP_SIGNED_OUT, 0, "%s", why);
    return GATE_REFUSED;
}

/* A token or an assertion. */
static enum gate_verdict check_token(struct gate *g, char kind, struct xp_span token,
                                     int algorithms, bool last, const struct who **who,
                                     struct xp_error *err)
{
    int64_t now = time(NULL);
    uint8_t digest[32];
    const char *why = NULL;
    struct xp_jwt_rules rules = {algorithms, g->issuer, g->audiences};
    struct xp_error said = {0};
    json_t *claims;

    if (token.n > JWT_MAX)
        return refused(err, "the token is too long");
    digest_of(kind, token, digest);
    if (recall(g, digest, now, who, &why))
        return *who ? GATE_KNOWN : refused(err, why);
    const struct xp_provider_view *view = xp_provider_view(g->provider);
    enum xp_jwt_verdict verdict =
        xp_jwt_check(view ? view->keys : NULL, &rules, token, now, &claims, &said);
    bool keyless = !view;
    xp_provider_view_unref(view);
    if (verdict == JWT_KEY_UNKNOWN && !last)
        return GATE_LATER;
    if (verdict == JWT_KEY_UNKNOWN && keyless)
        return xp_fail(err, XP_BUSY, 0, "the identity provider does not answer"), GATE_REFUSED;
    if (verdict == JWT_KEY_UNKNOWN)
        return refused(err, said.text);
    if (verdict == JWT_BAD) {
        remember(g, digest, NULL, "the token was refused", now + REMEMBER_REFUSED_S);
        return refused(err, said.text);
    }
    int64_t ends = (int64_t)json_number_value(json_object_get(claims, "exp")) + JWT_SKEW_S;
    *who = gate_who_of(g, claims);
    json_decref(claims);
    if (!*who)
        return refused(err, "the token does not say whose it is");
    remember(g, digest, *who, NULL, least(ends, now + REMEMBER_S));
    return GATE_KNOWN;
}

static bool bearer_token(const struct http_exchange *ex, struct xp_span *token)
{
    struct xp_span v = http_header(ex, "authorization");
    if (v.n < 7 || strncasecmp((const char *)v.p, "bearer ", 7) != 0)
        return false;
    while (v.n > 7 && v.p[7] == ' ')
        v = xp_span_of(v.p + 1, v.n - 1);
    *token = xp_span_of(v.p + 7, v.n - 7);
    return true;
}

static enum gate_verdict by_session(struct gate *g, struct xp_span text, const struct who **who)
{
    int64_t now = time(NULL), until = 0;
    uint8_t digest[32];
    const char *why;

    *who = &who_nobody;
    if (text.n == 0 || text.n > COOKIE_MAX)
        return GATE_KNOWN;
    digest_of('s', text, digest);
    if (recall(g, digest, now, who, &why)) {
        *who = *who ? *who : &who_nobody;
        return GATE_KNOWN;
    }
    if (gate_session_read(g, text, now, who, &until))
        remember(g, digest, *who, NULL, least(until, now + REMEMBER_S));
    else
        remember(g, digest, NULL, "", now + REMEMBER_REFUSED_S);
    return GATE_KNOWN;
}

static enum gate_verdict by_oidc(struct gate *g, struct http_exchange *ex, bool last,
                                 const struct who **who, struct xp_error *err)
{
    struct xp_span token;
    if (http_header_count(ex, "authorization") > 1)
        return refused(err, "there is more than one Authorization header");
    if (bearer_token(ex, &token))
        return check_token(g, 'b', token, JWT_RS256 | JWT_ES256, last, who, err);
    return by_session(g, http_cookie(ex, g->session_cookie), who);
}

static enum gate_verdict by_iap(struct gate *g, struct http_exchange *ex, bool last,
                                const struct who **who, struct xp_error *err)
{
    static const char header[] = "x-goog-iap-jwt-assertion";
    size_t n = http_header_count(ex, header);
    if (n == 1)
        return check_token(g, 'i', http_header(ex, header), JWT_ES256, last, who, err);
    *who = &who_nobody;
    return n ? refused(err, "there is more than one assertion") : GATE_KNOWN;
}

static bool is_plain(struct xp_span v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] <= ' ' || v.p[i] == ',' || v.p[i] == 0x7f)
            return false;
    return v.n > 0 && v.n <= WHO_TEXT_MAX;
}

/* The elements of a comma list, in place. */
static size_t split_groups(char *text, const char **groups)
{
    size_t n = 0;
    while (text && n < WHO_GROUPS_MAX) {
        char *one = text + strspn(text, " \t");
        char *comma = strchr(one, ',');
        text = comma ? comma + 1 : NULL;
        one[strcspn(one, " \t,")] = 0;
        if (*one)
            groups[n++] = one;
    }
    return n;
}

static const struct who *who_of_headers(struct xp_span name, struct xp_span list)
{
    const char *groups[WHO_GROUPS_MAX];
    char *subject = must(strndup((const char *)name.p, name.n));
    char *text = must(strndup(list.n ? (const char *)list.p : "", list.n));
    size_t n = split_groups(text, groups);
    const struct who *who =
        who_new(WHO_USER, subject, strchr(subject, '@') ? subject : "", groups, n);
    free(subject);
    free(text);
    return who;
}

static bool is_from_proxy(const struct gate *g, const struct http_exchange *ex)
{
    struct xp_span secret = http_header(ex, "x-xprofd-secret");
    uint8_t a[32], b[32];
    if (!gate_is_trusted(g, ex))
        return false;
    if (!g->secret[0])
        return true;
    xp_secret_sha256(secret, a);
    xp_secret_sha256(xp_span_str(g->secret), b);
    return xp_secret_same(xp_span_of(a, 32), xp_span_of(b, 32));
}

static enum gate_verdict by_header(struct gate *g, struct http_exchange *ex, const struct who **who,
                                   struct xp_error *err)
{
    size_t n = http_header_count(ex, g->header);
    struct xp_span name = http_header(ex, g->header);

    *who = &who_nobody;
    if (n == 0)
        return GATE_KNOWN;
    if (!is_from_proxy(g, ex))
        return refused(err, "identities are taken from the trusted proxy only");
    if (n > 1 || !is_plain(name))
        return refused(err, "the header with the identity is doubled or malformed");
    if (http_header_count(ex, g->groups_header) > 1)
        return refused(err, "the header with the groups is doubled");
    *who = who_of_headers(name, http_header(ex, g->groups_header));
    return GATE_KNOWN;
}

enum gate_verdict gate_who(struct gate *g, struct http_exchange *ex, bool last,
                           const struct who **who, struct xp_error *err)
{
    *who = &who_nobody;
    switch (g->mode) {
    case MODE_OIDC:
        return by_oidc(g, ex, last, who, err);
    case MODE_IAP:
        return by_iap(g, ex, last, who, err);
    case MODE_HEADER:
        return by_header(g, ex, who, err);
    case MODE_NONE:
        break;
    }
    *who = &who_local;
    return GATE_KNOWN;
}

/* --- waiting for keys --- */

struct waiting {
    struct gate *gate;
    struct http_exchange *ex;
    void (*again)(void *ctx);
    void *ctx;
};

static void on_loop(void *p)
{
    struct waiting w = *(struct waiting *)p;
    free(p);
    w.again(w.ctx);
    atomic_fetch_sub(&w.gate->open, 1);
}

static void on_keys(void *p)
{
    struct waiting *w = p;
    http_on_loop(w->ex, on_loop, w);
}

bool gate_wait(struct gate *g, struct http_exchange *ex, void (*again)(void *ctx), void *ctx)
{
    if (atomic_fetch_add(&g->open, 1) < WAITING_MAX) {
        struct waiting *w = must(malloc(sizeof *w));
        *w = (struct waiting){g, ex, again, ctx};
        if (xp_provider_ask(g->provider, on_keys, w))
            return true;
        free(w);
    }
    atomic_fetch_sub(&g->open, 1);
    return false;
}

/* --- refusals --- */

static bool wants_page(const struct http_exchange *ex)
{
    struct xp_span accept = http_header(ex, "accept");
    return http_request(ex)->method == HTTP_GET && xp_span_has(accept, XP_SPAN_LIT("text/html"));
}

void gate_challenge(struct gate *g, struct http_exchange *ex, const struct xp_error *err)
{
    static const char *const asks[] = {
        "", "sign in, or send a token: Authorization: Bearer",
        "this server is for those who come through its Identity-Aware Proxy",
        "this server takes identities from its proxy, and there is none in this request"};
    struct xp_error said = {0};
    struct http_answer a;

    if (gate_has_login(g) && wants_page(ex) && (!err || err->status == XP_SIGNED_OUT)) {
        login_redirect(ex);
        return;
    }
    if (!err) {
        xp_fail(&said, XP_SIGNED_OUT, 0, "%s", asks[g->mode]);
        err = &said;
    }
    http_answer_problem(&a, err);
    a.cache_control = "no-store";
    if (err->status == XP_SIGNED_OUT)
        http_answer_header(&a, "www-authenticate",
                           err == &said ? XP_SPAN_LIT("Bearer realm=\"xprofd\"")
                                        : XP_SPAN_LIT("Bearer realm=\"xprofd\", "
                                                      "error=\"invalid_token\""));
    http_answer(ex, &a);
}

const char *gate_mode_name(const struct gate *g)
{
    static const char *const names[] = {"none", "oidc", "iap", "header"};
    return names[g->mode];
}

bool gate_has_login(const struct gate *g)
{
    return g->mode == MODE_OIDC && g->client_id;
}

bool gate_is_open(const struct gate *g)
{
    return g->mode == MODE_NONE;
}

/* --- life --- */

enum xp_status gate_read_secret(const char *option, const char *path, char secret[SECRET_MAX],
                                struct xp_error *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return xp_fail(err, XP_IO, 0, "%s: cannot open \"%s\": %s", option, path, strerror(errno));
    if (!fgets(secret, SECRET_MAX, f))
        secret[0] = 0;
    fclose(f);
    size_t n = strcspn(secret, "\r\n");
    bool whole = secret[n] || n < SECRET_MAX - 1;
    secret[n] = 0;
    if (n == 0 || !whole)
        return xp_fail(err, XP_BAD_REQUEST, 0, "%s: the first line of \"%s\" is no secret", option,
                       path);
    return XP_OK;
}

static enum xp_status open_provider(struct gate *g, const char *keys_url, struct xp_error *err)
{
    g->net = net_client_open();
    XP_ASSERT(g->net);
    return xp_provider_new(g->net, g->issuer, keys_url, &g->provider, err);
}

/* https://host/prefix: where browsers are sent back to, and the path of cookies. */
static enum xp_status set_base(struct gate *g, const struct options *o, struct xp_error *err)
{
    const char *url = o->public_url;
    snprintf(g->path, sizeof g->path, "/");
    g->secure = o->tls_cert != NULL;
    if (url) {
        size_t n = strlen(url);
        const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
        if (!xp_provider_url_ok(url) || strpbrk(url, "?#;\"\\"))
            return xp_fail(err, XP_BAD_REQUEST, 0,
                           "--public-url=%.100s is no https address (http is for this machine)",
                           url);
        XP_ASSERT(asprintf(&g->base, "%s%s", url, url[n - 1] == '/' ? "" : "/") > 0);
        g->secure = strncmp(url, "https://", 8) == 0;
        if (path)
            snprintf(g->path, sizeof g->path, "%s%s", path,
                     path[strlen(path) - 1] == '/' ? "" : "/");
    }
    const char *prefix = g->secure && !strcmp(g->path, "/") ? "__Host-" : "";
    snprintf(g->session_cookie, sizeof g->session_cookie, "%sxprofd-session", prefix);
    snprintf(g->login_cookie, sizeof g->login_cookie, "%sxprofd-login", prefix);
    return XP_OK;
}

static enum xp_status set_oidc(struct gate *g, const struct options *o, struct xp_error *err)
{
    size_t n = 0;
    g->mode = MODE_OIDC;
    g->issuer = o->oidc_issuer;
    g->client_id = o->oidc_client_id;
    if (g->client_id)
        g->audiences[n++] = g->client_id;
    for (size_t i = 0; o->oidc_audience[i]; i++)
        g->audiences[n++] = o->oidc_audience[i];
    g->groups_claim = o->oidc_groups_claim ? o->oidc_groups_claim : "groups";
    g->scopes = o->oidc_scopes ? o->oidc_scopes : "openid email profile";
    g->trust_email = o->oidc_trust_email;
    if (o->oidc_client_secret)
        XP_TRY(
            gate_read_secret("--oidc-client-secret-file", o->oidc_client_secret, g->secret, err));
    if (o->cookie_key)
        XP_TRY(options_blame("cookie-key", xp_keyring_open(o->cookie_key, &g->cookies, err), err));
    else
        g->cookies = xp_keyring_random();
    return open_provider(g, NULL, err);
}

static enum xp_status set_iap(struct gate *g, const struct options *o, struct xp_error *err)
{
    g->mode = MODE_IAP;
    g->issuer = IAP_ISSUER;
    g->audiences[0] = o->iap_audience;
    g->groups_claim = "groups";
    g->trust_email = true; /* Google's own word */
    return open_provider(g, o->iap_keys ? o->iap_keys : IAP_KEYS, err);
}

static char *lowered(const char *name)
{
    char *c = must(strdup(name));
    for (char *p = c; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p += 'a' - 'A';
    return c;
}

static enum xp_status set_header(struct gate *g, const struct options *o, struct xp_error *err)
{
    g->mode = MODE_HEADER;
    g->header = lowered(o->trusted_header);
    g->groups_header =
        lowered(o->trusted_groups_header ? o->trusted_groups_header : "x-xprofd-groups");
    if (o->trusted_secret)
        XP_TRY(gate_read_secret("--trusted-secret-file", o->trusted_secret, g->secret, err));
    if (!g->n_trusted && !o->trusted_secret && !options_is_loopback(o->host))
        xp_log(XP_LOG_WARN, "auth",
               "whoever reaches this port can say to be anybody: --trusted-from or "
               "--trusted-secret-file lets in the proxy alone");
    return XP_OK;
}

enum xp_status gate_new(const struct options *o, struct gate **out, struct xp_error *err)
{
    struct gate *g = must(calloc(1, sizeof *g));
    for (int i = 0; i < KNOWN_LOCKS; i++)
        pthread_mutex_init(&g->locks[i], NULL);
    g->session_s = o->session_hours * 3600;
    enum xp_status status = set_base(g, o, err);
    if (status == XP_OK)
        status = gate_read_networks(g, o->trusted_from, err);
    if (status == XP_OK && o->auth && !strcmp(o->auth, "oidc"))
        status = set_oidc(g, o, err);
    else if (status == XP_OK && o->auth && !strcmp(o->auth, "iap"))
        status = set_iap(g, o, err);
    else if (status == XP_OK && o->auth && !strcmp(o->auth, "header"))
        status = set_header(g, o, err);
    if (status != XP_OK) {
        gate_free(g);
        return status;
    }
    *out = g;
    return XP_OK;
}

void gate_settle(struct gate *g)
{
    while (atomic_load(&g->open) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void gate_free(struct gate *g)
{
    if (!g)
        return;
    gate_settle(g);
    xp_provider_free(g->provider);
    net_client_close(g->net);
    for (size_t i = 0; i < KNOWN_MAX; i++)
        who_unref(g->known[i].who);
    for (int i = 0; i < KNOWN_LOCKS; i++)
        pthread_mutex_destroy(&g->locks[i]);
    xp_keyring_close(g->cookies);
    free((void *)g->header);
    free((void *)g->groups_header);
    free(g->trusted);
    free(g->base);
    xp_secret_wipe(g->secret, sizeof g->secret);
    free(g);
}
