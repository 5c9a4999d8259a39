#include "server/pages.h"

#include <stdio.h>

#include "server/static.h"

/* One page, its own script and style, nothing from elsewhere, no HTML made from strings. The one
 * policy for trusted types names the script of the timeline's worker. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types worker";

/* Of pages without scripts, whose style is in them. */
static const char plain_policy[] =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'";

#define PLAIN_MAX ((size_t)1 << 20)

static void answer_asset(struct http_exchange *ex, const struct static_asset *asset, bool page)
{
    struct http_answer a;

    http_answer_init(&a, 200, asset->type);
    a.body = (uint8_t *)asset->gz;
    a.body_n = asset->gz_n;
    a.is_static = true;
    a.encoded = true;
    a.cache_control = asset->hashed ? "public, max-age=31536000, immutable" : "no-cache";
    snprintf(a.etag, sizeof a.etag, "%s", asset->etag);
    if (page) {
        http_answer_header(&a, "content-security-policy", xp_span_str(policy));
        http_answer_header(&a, "cross-origin-opener-policy", XP_SPAN_LIT("same-origin"));
        http_answer_header(&a, "permissions-policy",
                           XP_SPAN_LIT("camera=(), geolocation=(), microphone=()"));
    }
    http_answer(ex, &a);
}

bool pages_answer(struct http_exchange *ex, struct xp_span path)
{
    const struct static_asset *asset;
    bool dot = path.n && memchr(path.p, '.', path.n) != NULL;
    bool page = !dot && !xp_span_starts(path, XP_SPAN_LIT("assets/"));

    /* A page finds its assets beside itself: one level deeper it would find nothing. */
    if (page && path.n && memchr(path.p, '/', path.n))
        return false;
    asset = static_find(page ? XP_SPAN_LIT("index.html") : path);
    if (!asset)
        return false;
    answer_asset(ex, asset, page || xp_span_eq(path, XP_SPAN_LIT("index.html")));
    return true;
}

static void begin_plain(struct xp_buf *b, const char *title)
{
    xp_buf_init(b, PLAIN_MAX);
    xp_buf_fmt(b,
               "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>"
               "<style>:root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}"
               "body{max-width:40rem;margin:3rem auto;padding:0 1rem}</style><h1>%s</h1>",
               title, title);
}

static void end_plain(struct http_answer *a, int status, struct xp_buf *b)
{
    http_answer_init(a, status, "text/html; charset=utf-8");
    a->cache_control = "private, no-store";
    http_answer_header(a, "content-security-policy", xp_span_str(plain_policy));
    http_answer_body(a, b);
}

void pages_message(struct http_answer *a, int status, const char *title, const char *text,
                   const char *href, const char *link)
{
    struct xp_buf b;
    begin_plain(&b, title);
    xp_buf_fmt(&b, "<p>%s</p><p><a href=\"%s\">%s</a></p>", text, href, link);
    end_plain(a, status, &b);
}

void pages_sign_out(struct http_answer *a)
{
    struct xp_buf b;
    begin_plain(&b, "Sign out");
    xp_buf_str(&b, "<form method=\"post\" action=\"logout\"><button>Sign out</button></form>");
    end_plain(a, 200, &b);
}

void pages_projects(struct http_exchange *ex, const struct project *const *v, size_t n)
{
    struct http_answer a;
    struct xp_buf b;
    begin_plain(&b, "Projects");
    xp_buf_str(&b, n ? "<ul>" : "<p>There is no project here that you may see.");
    for (size_t i = 0; i < n; i++) /* a name needs no escaping */
        xp_buf_fmt(&b, "<li><a href=\"p/%s/\">%s</a>", v[i]->name, v[i]->name);
    xp_buf_str(&b, n ? "</ul>" : "</p>");
    end_plain(&a, 200, &b);
    http_answer(ex, &a);
}

void pages_redirect(struct http_exchange *ex, const char *to)
{
    struct http_answer a;
    http_answer_init(&a, 302, "text/plain");
    http_answer_header(&a, "location", xp_span_str(to));
    http_answer(ex, &a);
}
