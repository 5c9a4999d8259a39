#include "server/login.h"

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
#include "server/pages.h"

#define LOGIN "xprofd login"
#define LOGIN_S 600
#define PLACE_MAX 1500
#define RANDOM 32
#define URL_MAX ((size_t)8 << 10)
#define REPLY_MAX ((size_t)128 << 10)
#define TOKEN_WAIT_MS 8000

/* --- text --- */

static bool is_unreserved(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

static void add_escaped(struct xp_buf *b, struct xp_span text, const char *also)
{
    for (size_t i = 0; i < text.n; i++)
        if (is_unreserved(text.p[i]) || (text.p[i] && strchr(also, text.p[i])))
            xp_buf_byte(b, text.p[i]);
        else
            xp_buf_fmt(b, "%%%02X", text.p[i]);
}

static void add_field(struct xp_buf *b, const char *name, const char *value)
{
    bool first = b->n == 0 || b->p[b->n - 1] == '?';
    xp_buf_fmt(b, "%s%s=", first ? "" : "&", name);
    add_escaped(b, xp_span_str(value), "");
}

static void random_text(struct xp_buf *b)
{
    uint8_t bytes[RANDOM];
    xp_secret_random(bytes, sizeof bytes);
    xp_base64url_add(b, xp_span_of(bytes, sizeof bytes));
    xp_buf_byte(b, 0);
}

bool login_place_ok(struct xp_span place)
{
    const uint8_t *mark = place.n ? memchr(place.p, '?', place.n) : NULL;
    size_t path = mark ? (size_t)(mark - place.p) : place.n;

    if (place.n > PLACE_MAX || (place.n && (place.p[0] == '/' || place.p[0] == ':')))
        return false;
    for (size_t i = 0; i < place.n; i++)
        if (place.p[i] <= ' ' || place.p[i] >= 0x7f || strchr("\\#\"<>", place.p[i]))
            return false;
    for (size_t i = 0; i < path; i++) {
        struct xp_span rest = xp_span_of(place.p + i, path - i);
        if (xp_span_starts(rest, XP_SPAN_LIT("//")) || xp_span_starts(rest, XP_SPAN_LIT("..")) ||
            (rest.n >= 3 && !strncasecmp((const char *)rest.p, "%2e", 3)) || *rest.p == ':')
            return false;
    }
    return true;
}

/* --- answers --- */

static void redirect(struct http_answer *a, int status, struct xp_span to)
{
    http_answer_init(a, status, "text/plain");
    a->cache_control = "no-store";
    http_answer_header(a, "location", to);
}

static void sorry(const struct gate *g, struct http_answer *a, int status, const char *text)
{
    pages_message(a, status, "Signing in did not work", text, "login", "Try again");
    gate_set_cookie(g, a, g->login_cookie, (struct xp_span){0}, 0);
}

void login_redirect(struct http_exchange *ex)
{
    const struct http_request *req = http_request(ex);
    struct xp_span path = xp_span_of(req->path.p + 1, req->path.n - 1);
    struct xp_buf place, to;
    struct http_answer a;

    xp_buf_init(&place, URL_MAX);
    xp_buf_init(&to, 2 * URL_MAX);
    add_escaped(&place, path, "/");
    if (req->query.n) {
        xp_buf_byte(&place, '?');
        xp_buf_span(&place, req->query);
    }
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '/')
            xp_buf_str(&to, "../");
    xp_buf_str(&to, "auth/login");
    if (!place.failed && place.n && login_place_ok(xp_buf_all(&place))) {
        xp_buf_str(&to, "?to=");
        add_escaped(&to, xp_buf_all(&place), "/");
    }
    redirect(&a, 302, to.failed ? XP_SPAN_LIT("auth/login") : xp_buf_all(&to));
    http_answer(ex, &a);
    xp_buf_fini(&place);
    xp_buf_fini(&to);
}

/* --- to the provider --- */

/* Where the provider sends browsers back to; the host was checked by lib/http. */
static void add_callback(const struct gate *g, const struct http_exchange *ex, struct xp_buf *b)
{
    const struct http_request *req = http_request(ex);
    if (g->base)
        xp_buf_str(b, g->base);
    else
        xp_buf_fmt(b, "http%s://%.*s/", req->tls ? "s" : "", (int)req->host.n,
                   (const char *)req->host.p);
    xp_buf_str(b, "auth/callback");
    xp_buf_byte(b, 0);
}

/* What is kept in the cookie until the browser comes back. */
struct attempt {
    struct xp_buf state, nonce, verifier, place, callback;
};

static void attempt_init(struct attempt *t)
{
    struct xp_buf *all[] = {&t->state, &t->nonce, &t->verifier, &t->place, &t->callback};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        xp_buf_init(all[i], URL_MAX);
}

static void attempt_fini(struct attempt *t)
{
    struct xp_buf *all[] = {&t->state, &t->nonce, &t->verifier, &t->place, &t->callback};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->p)
            xp_secret_wipe(all[i]->p, all[i]->n);
        xp_buf_fini(all[i]);
    }
}

static const char *str(const struct xp_buf *b)
{
    return b->n ? (const char *)b->p : "";
}

static bool attempt_write(const struct gate *g, const struct attempt *t, struct xp_buf *text)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "s", str(&t->state), "n", str(&t->nonce),
                          "v", str(&t->verifier), "p", str(&t->place), "c", str(&t->callback));
    char *bytes = o ? json_dumps(o, JSON_COMPACT) : NULL;
    bool ok = bytes && strlen(bytes) <= SEAL_MAX;
    if (ok)
        xp_seal(g->cookies, LOGIN, time(NULL) + LOGIN_S, xp_span_str(bytes), text);
    free(bytes);
    json_decref(o);
    return ok && !text->failed;
}

static void take(const json_t *o, const char *field, struct xp_buf *b)
{
    const char *s = json_string_value(json_object_get(o, field));
    xp_buf_add(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

static bool attempt_read(const struct gate *g, struct xp_span text, struct attempt *t)
{
    struct xp_buf b;
    json_t *o = NULL;
    xp_buf_init(&b, SEAL_MAX);
    if (xp_unseal(g->cookies, LOGIN, time(NULL), text, &b, NULL))
        o = json_loadb((const char *)b.p, b.n, JSON_REJECT_DUPLICATES, NULL);
    xp_buf_fini(&b);
    if (!o)
        return false;
    take(o, "s", &t->state);
    take(o, "n", &t->nonce);
    take(o, "v", &t->verifier);
    take(o, "p", &t->place);
    take(o, "c", &t->callback);
    json_decref(o);
    return true;
}

static void add_authorize_url(const struct gate *g, const struct xp_provider_view *view,
                              const struct attempt *t, struct xp_buf *url)
{
    uint8_t digest[SECRET_SHA256];
    struct xp_buf challenge;

    xp_buf_init(&challenge, 64);
    xp_secret_sha256(xp_span_str(str(&t->verifier)), digest);
    xp_base64url_add(&challenge, xp_span_of(digest, sizeof digest));
    xp_buf_byte(&challenge, 0);
    xp_buf_str(url, view->authorize);
    xp_buf_byte(url, strchr(view->authorize, '?') ? '&' : '?');
    xp_buf_str(url, "response_type=code");
    add_field(url, "client_id", g->client_id);
    add_field(url, "redirect_uri", str(&t->callback));
    add_field(url, "scope", g->scopes);
    add_field(url, "state", str(&t->state));
    add_field(url, "nonce", str(&t->nonce));
    add_field(url, "code_challenge", str(&challenge));
    xp_buf_str(url, "&code_challenge_method=S256");
    xp_buf_fini(&challenge);
}

static void send_to_provider(const struct gate *g, struct http_exchange *ex,
                             const struct xp_provider_view *view)
{
    struct attempt t;
    struct xp_buf url, cookie, to;
    struct http_answer a;

    attempt_init(&t);
    xp_buf_init(&url, URL_MAX);
    xp_buf_init(&cookie, URL_MAX);
    xp_buf_init(&to, PLACE_MAX * 3);
    random_text(&t.state);
    random_text(&t.nonce);
    random_text(&t.verifier);
    add_callback(g, ex, &t.callback);
    if (http_query_get(http_request(ex)->query, "to", &to) && login_place_ok(xp_buf_all(&to)))
        xp_buf_span(&t.place, xp_buf_all(&to));
    xp_buf_byte(&t.place, 0);
    add_authorize_url(g, view, &t, &url);
    if (!url.failed && attempt_write(g, &t, &cookie)) {
        redirect(&a, 302, xp_buf_all(&url));
        gate_set_cookie(g, &a, g->login_cookie, xp_buf_all(&cookie), LOGIN_S);
    } else {
        sorry(g, &a, 500, "The address to sign in at is too long.");
    }
    http_answer(ex, &a);
    attempt_fini(&t);
    xp_buf_fini(&url);
    xp_buf_fini(&cookie);
    xp_buf_fini(&to);
}

struct start {
    struct gate *gate;
    struct http_exchange *ex;
};

static void start(struct gate *g, struct http_exchange *ex, bool last);

static void start_again(void *ctx)
{
    struct start s = *(struct start *)ctx;
    free(ctx);
    start(s.gate, s.ex, true);
}

static void start(struct gate *g, struct http_exchange *ex, bool last)
{
    const struct xp_provider_view *view = xp_provider_view(g->provider);
    struct http_answer a;

    if (view && view->authorize && view->token) {
        send_to_provider(g, ex, view);
        xp_provider_view_unref(view);
        return;
    }
    xp_provider_view_unref(view);
    if (!last) {
        struct start *s = malloc(sizeof *s);
        XP_ASSERT(s);
        *s = (struct start){g, ex};
        if (gate_wait(g, ex, start_again, s))
            return;
        free(s);
    }
    sorry(g, &a, 503, "The identity provider does not answer. Try again in a moment.");
    http_answer(ex, &a);
}

/* --- from the provider --- */

/* A code being exchanged for a token. */
struct trade {
    struct gate *gate;
    struct audit *audit;
    struct http_exchange *ex;
    struct attempt attempt;
    struct xp_buf form, reply;
    json_t *tokens;
    char address[GATE_ADDRESS_MAX];
};

static void tell(const struct trade *t, const char *who, const char *outcome, const char *detail)
{
    audit(t->audit, &(struct audit_event){.what = "sign_in",
                                          .who = who,
                                          .outcome = outcome,
                                          .detail = detail,
                                          .address = t->address});
}

/* The answer moves. */
static void end_trade(struct trade *t, struct http_answer *a)
{
    struct gate *g = t->gate;
    http_answer_from(t->ex, a);
    attempt_fini(&t->attempt);
    if (t->form.p)
        xp_secret_wipe(t->form.p, t->form.n);
    if (t->reply.p)
        xp_secret_wipe(t->reply.p, t->reply.n);
    xp_buf_fini(&t->form);
    xp_buf_fini(&t->reply);
    json_decref(t->tokens);
    free(t);
    atomic_fetch_sub(&g->open, 1);
}

static void fail_trade(struct trade *t, int status, const char *text)
{
    struct http_answer a;
    tell(t, "nobody", "failed", text);
    sorry(t->gate, &a, status, text);
    end_trade(t, &a);
}

static void end_signed_in(struct trade *t, const struct who *who)
{
    struct gate *g = t->gate;
    struct xp_buf cookie, to;
    struct http_answer a;

    xp_buf_init(&cookie, URL_MAX);
    xp_buf_init(&to, URL_MAX);
    xp_buf_fmt(&to, "../%s", str(&t->attempt.place));
    if (gate_session_write(g, who, time(NULL), &cookie)) {
        redirect(&a, 303, xp_buf_all(&to));
        gate_set_cookie(g, &a, g->session_cookie, xp_buf_all(&cookie), g->session_s);
        gate_set_cookie(g, &a, g->login_cookie, (struct xp_span){0}, 0);
        tell(t, who_name(who), "ok", NULL);
    } else {
        sorry(g, &a, 500, "What the provider says of you is too long.");
    }
    xp_buf_fini(&cookie);
    xp_buf_fini(&to);
    end_trade(t, &a);
}

static void check_token(struct trade *t, bool last);

static void check_again(void *ctx)
{
    check_token(ctx, true);
}

static void check_token(struct trade *t, bool last)
{
    struct gate *g = t->gate;
    const char *audiences[] = {g->client_id, NULL};
    struct xp_jwt_rules rules = {JWT_RS256 | JWT_ES256, g->issuer, audiences};
    struct xp_span token = xp_span_str(json_string_value(json_object_get(t->tokens, "id_token")));
    const struct xp_provider_view *view = xp_provider_view(g->provider);
    struct xp_error err = {0};
    json_t *claims;

    enum xp_jwt_verdict verdict =
        xp_jwt_check(view ? view->keys : NULL, &rules, token, time(NULL), &claims, &err);
    xp_provider_view_unref(view);
    if (verdict == JWT_KEY_UNKNOWN && !last && xp_provider_ask(g->provider, check_again, t))
        return;
    if (verdict != JWT_GOOD) {
        xp_log(XP_LOG_WARN, "auth", "a login was refused: %s", err.text);
        fail_trade(t, 403, "The provider's token was refused.");
        return;
    }
    const char *nonce = json_string_value(json_object_get(claims, "nonce"));
    bool same = nonce && xp_secret_same(xp_span_str(nonce), xp_span_str(str(&t->attempt.nonce)));
    const struct who *who = same ? gate_who_of(g, claims) : NULL;
    json_decref(claims);
    if (who)
        end_signed_in(t, who);
    else
        fail_trade(t, 403, "The provider's token belongs to another login.");
    who_unref(who);
}

static bool on_reply(void *ctx, struct net_call *call, struct xp_span bytes)
{
    struct trade *t = ctx;
    (void)call;
    xp_buf_span(&t->reply, bytes);
    return !t->reply.failed;
}

static void on_done(void *ctx, const struct net_answer *a)
{
    struct trade *t = ctx;
    if (a->status != XP_OK) {
        fail_trade(t, 502, "The identity provider does not answer.");
        return;
    }
    t->tokens = json_loadb(str(&t->reply), t->reply.n, JSON_REJECT_DUPLICATES, NULL);
    if (a->code == 200 && json_is_string(json_object_get(t->tokens, "id_token")))
        check_token(t, false);
    else
        fail_trade(t, 403, "The identity provider did not take the code.");
}

/* Basic authorization, RFC 6749 § 2.3.1: both parts are form-encoded first. */
static void add_basic(struct xp_buf *b, const struct gate *g)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct xp_buf pair;
    xp_buf_init(&pair, URL_MAX);
    add_escaped(&pair, xp_span_str(g->client_id), "");
    xp_buf_byte(&pair, ':');
    add_escaped(&pair, xp_span_str(g->secret), "");
    xp_buf_str(b, "authorization: Basic ");
    for (size_t i = 0; i < pair.n; i += 3) {
        uint32_t v = (uint32_t)pair.p[i] << 16;
        v |= i + 1 < pair.n ? (uint32_t)pair.p[i + 1] << 8 : 0;
        v |= i + 2 < pair.n ? pair.p[i + 2] : 0;
        xp_buf_byte(b, (uint8_t)alphabet[v >> 18]);
        xp_buf_byte(b, (uint8_t)alphabet[v >> 12 & 63]);
        xp_buf_byte(b, i + 1 < pair.n ? (uint8_t)alphabet[v >> 6 & 63] : '=');
        xp_buf_byte(b, i + 2 < pair.n ? (uint8_t)alphabet[v & 63] : '=');
    }
    xp_buf_byte(b, 0);
    xp_secret_wipe(pair.p, pair.n);
    xp_buf_fini(&pair);
}

static bool send_code(struct trade *t, const struct xp_provider_view *view, const char *code)
{
    const struct gate *g = t->gate;
    struct xp_buf basic;

    xp_buf_init(&basic, URL_MAX);
    add_field(&t->form, "grant_type", "authorization_code");
    add_field(&t->form, "code", code);
    add_field(&t->form, "redirect_uri", str(&t->attempt.callback));
    add_field(&t->form, "code_verifier", str(&t->attempt.verifier));
    bool by_header = g->secret[0] && !view->secret_in_body;
    if (by_header)
        add_basic(&basic, g);
    else
        add_field(&t->form, "client_id", g->client_id);
    if (g->secret[0] && !by_header)
        add_field(&t->form, "client_secret", g->secret);
    const char *headers[] = {"content-type: application/x-www-form-urlencoded",
                             "accept: application/json", by_header ? str(&basic) : NULL, NULL};
    struct net_request r = {.method = "POST",
                            .url = view->token,
                            .headers = headers,
                            .body = xp_buf_all(&t->form),
                            .connect_ms = TOKEN_WAIT_MS,
                            .total_ms = TOKEN_WAIT_MS,
                            .ctx = t,
                            .body_fn = on_reply,
                            .done = on_done};
    bool ok = !t->form.failed && net_start(g->net, &r) != NULL;
    if (basic.p)
        xp_secret_wipe(basic.p, basic.n);
    xp_buf_fini(&basic);
    return ok;
}

static bool query_text(const struct http_exchange *ex, const char *name, struct xp_buf *b)
{
    bool there = http_query_get(http_request(ex)->query, name, b);
    bool plain = !b->n || !memchr(b->p, 0, b->n);
    xp_buf_byte(b, 0);
    return there && plain && !b->failed;
}

/* The code of a browser that began here and was let in there; else it is answered. */
static bool check_return(struct gate *g, struct http_exchange *ex, struct attempt *t,
                         struct xp_buf *code)
{
    struct http_answer a;
    struct xp_buf state;
    const char *wrong = NULL;

    xp_buf_init(&state, URL_MAX);
    if (!attempt_read(g, http_cookie(ex, g->login_cookie), t))
        wrong = "This login was not begun here, or too long ago.";
    else if (!query_text(ex, "state", &state) ||
             !xp_secret_same(xp_span_str(str(&state)), xp_span_str(str(&t->state))))
        wrong = "This answer belongs to another login.";
    else if (!query_text(ex, "code", code) || code->n <= 1)
        wrong = "The identity provider did not let you in.";
    xp_buf_fini(&state);
    if (!wrong)
        return true;
    sorry(g, &a, 403, wrong);
    http_answer(ex, &a);
    return false;
}

static void come_back(struct gate *g, struct audit *log, struct http_exchange *ex)
{
    struct trade *t = calloc(1, sizeof *t);
    struct xp_buf code;

    XP_ASSERT(t);
    *t = (struct trade){.gate = g, .audit = log, .ex = ex};
    attempt_init(&t->attempt);
    xp_buf_init(&t->form, 2 * URL_MAX);
    xp_buf_init(&t->reply, REPLY_MAX);
    xp_buf_init(&code, URL_MAX);
    gate_address(g, ex, t->address);
    if (!check_return(g, ex, &t->attempt, &code)) {
        attempt_fini(&t->attempt);
        free(t);
    } else {
        const struct xp_provider_view *view = xp_provider_view(g->provider);
        atomic_fetch_add(&g->open, 1);
        if (!view || !view->token || !send_code(t, view, str(&code)))
            fail_trade(t, 502, "The identity provider cannot be asked.");
        xp_provider_view_unref(view);
    }
    if (code.p)
        xp_secret_wipe(code.p, code.n);
    xp_buf_fini(&code);
}

/* --- signing out --- */

/* To our own page: a form that led on to the provider would be against the pages' policy. */
static void sign_out(struct gate *g, struct audit *log, struct http_exchange *ex,
                     const struct who *who)
{
    struct xp_error err = {0};
    struct http_answer a;

    if (gate_is_own(g, ex, false, &err) != XP_OK) {
        http_answer_problem(&a, &err);
        http_answer(ex, &a);
        return;
    }
    redirect(&a, 303, XP_SPAN_LIT("logout"));
    gate_set_cookie(g, &a, g->session_cookie, (struct xp_span){0}, 0);
    http_answer(ex, &a);
    if (who->kind == WHO_USER)
        audit(log,
              &(struct audit_event){.what = "sign_out", .who = who_name(who), .outcome = "ok"});
}

static void signed_out_page(struct gate *g, struct http_answer *a)
{
    const struct xp_provider_view *view = xp_provider_view(g->provider);
    struct xp_buf text;

    xp_buf_init(&text, URL_MAX);
    xp_buf_str(&text, "You are not signed in here.");
    if (view && view->logout) { /* an address without quotes and brackets */
        bool more = strchr(view->logout, '?') != NULL;
        xp_buf_fmt(&text, " At the provider you may be: <a href=\"%s%cclient_id=", view->logout,
                   more ? '&' : '?');
        add_escaped(&text, xp_span_str(g->client_id), "");
        xp_buf_str(&text, "\">sign out there, too</a>.");
    }
    xp_buf_byte(&text, 0);
    pages_message(a, 200, "Signed out", text.failed ? "You are not signed in here." : str(&text),
                  "login", "Sign in");
    xp_buf_fini(&text);
    xp_provider_view_unref(view);
}

static void logout_page(struct gate *g, struct http_exchange *ex, const struct who *who)
{
    struct http_answer a;
    if (who->kind == WHO_USER)
        pages_sign_out(&a);
    else
        signed_out_page(g, &a);
    http_answer(ex, &a);
}

bool login_answer(struct gate *g, struct audit *log, struct http_exchange *ex,
                  const struct who *who, struct xp_span path)
{
    enum http_method m = http_request(ex)->method;
    bool get = m == HTTP_GET;

    if (!gate_has_login(g))
        return false;
    if (get && xp_span_eq(path, XP_SPAN_LIT("login")))
        start(g, ex, false);
    else if (get && xp_span_eq(path, XP_SPAN_LIT("callback")))
        come_back(g, log, ex);
    else if (get && xp_span_eq(path, XP_SPAN_LIT("logout")))
        logout_page(g, ex, who);
    else if (m == HTTP_POST && xp_span_eq(path, XP_SPAN_LIT("logout")))
        sign_out(g, log, ex, who);
    else
        return false;
    return true;
}
