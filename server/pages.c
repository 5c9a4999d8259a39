#include "server/pages.h"

#include <stdio.h>

#include "server/static.h"

/* One page, its own script and style, nothing from elsewhere, no HTML made from strings. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

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

void pages_redirect(struct http_exchange *ex, const char *to)
{
    struct http_answer a;
    http_answer_init(&a, 302, "text/plain");
    http_answer_header(&a, "location", xp_span_str(to));
    http_answer(ex, &a);
}
