#include "lib/auth/link.h"

#include <openssl/rand.h>
#include <stdlib.h>

#include "lib/auth/base64url.h"
#include "lib/base/hex.h"
#include "link.pb-c.h"

#define PAYLOAD_MAX ((size_t)3000)

static const char *const purposes[] = {
    [LINK_URL] = "xprofd link 1", [LINK_COOKIE] = "xprofd link cookie 1"};

const char *const link_audience_names[LINK_AUDIENCES] = {"members", "domain", "anyone"};

enum xp_status link_new_id(struct link_claims *c, struct xp_error *err)
{
    if (RAND_bytes(c->id, sizeof c->id) != 1)
        return xp_fail(err, XP_INTERNAL, 0, "the system gives no random bytes");
    return XP_OK;
}

void link_id_text(const struct link_claims *c, char text[LINK_ID_TEXT])
{
    xp_hex(c->id, LINK_ID_BYTES, text);
}

/* --- claims --- */

static struct xp_span bytes_of(ProtobufCBinaryData d)
{
    return xp_span_of(d.data, d.len);
}

/* An input string without NUL that fits. */
static bool take(char *to, size_t max, struct xp_span from)
{
    if (from.n > max || (from.n && memchr(from.p, 0, from.n)))
        return false;
    if (from.n)
        memcpy(to, from.p, from.n);
    to[from.n] = 0;
    return true;
}

static bool take_all(struct link_claims *c, const Xprofd__LinkClaims *m)
{
    if (m->id.len != LINK_ID_BYTES || m->audience >= LINK_AUDIENCES)
        return false;
    memcpy(c->id, m->id.data, LINK_ID_BYTES);
    c->audience = (enum link_audience)m->audience;
    c->issued_s = m->issued_s;
    c->expires_s = m->expires_s;
    return take(c->project, LINK_NAME_MAX, xp_span_str(m->project)) &&
           take(c->run, LINK_RUN_MAX, bytes_of(m->run)) &&
           take(c->tool, LINK_NAME_MAX, xp_span_str(m->tool)) &&
           take(c->domain, LINK_NAME_MAX, xp_span_str(m->domain)) &&
           take(c->view, LINK_VIEW_MAX, xp_span_str(m->view));
}

static size_t pack(const struct link_claims *c, uint8_t *out)
{
    Xprofd__LinkClaims m = XPROFD__LINK_CLAIMS__INIT;
    m.id = (ProtobufCBinaryData){LINK_ID_BYTES, (uint8_t *)c->id};
    m.project = (char *)c->project;
    m.run = (ProtobufCBinaryData){strlen(c->run), (uint8_t *)c->run};
    m.tool = (char *)c->tool;
    m.view = (char *)c->view;
    m.audience = c->audience;
    m.domain = (char *)c->domain;
    m.issued_s = c->issued_s;
    m.expires_s = c->expires_s;
    size_t n = xprofd__link_claims__get_packed_size(&m);
    return n <= PAYLOAD_MAX ? xprofd__link_claims__pack(&m, out) : 0;
}

enum xp_status link_seal(const struct xp_keyring *k, enum link_kind kind,
                         const struct link_claims *c, struct xp_buf *token, struct xp_error *err)
{
    uint8_t bytes[KEYRING_MAC + PAYLOAD_MAX];
    size_t n = pack(c, bytes + KEYRING_MAC);

    if (n == 0)
        return xp_fail(err, XP_TOO_LARGE, 0, "the link would be longer than %d bytes",
                       LINK_TOKEN_MAX);
    xp_keyring_sign(k, purposes[kind], xp_span_of(bytes + KEYRING_MAC, n), bytes);
    xp_buf_byte(token, '1');
    xp_base64url_add(token, xp_span_of(bytes, KEYRING_MAC + n));
    return token->failed ? xp_fail(err, XP_TOO_LARGE, 0, "the link is too long") : XP_OK;
}

enum xp_status link_open(const struct xp_keyring *k, enum link_kind kind, struct xp_span token,
                         struct link_claims *c, struct xp_error *err)
{
    struct xp_buf bytes;
    Xprofd__LinkClaims *m = NULL;

    xp_buf_init(&bytes, LINK_TOKEN_MAX);
    if (token.n > 1 && token.n <= LINK_TOKEN_MAX && token.p[0] == '1' &&
        xp_base64url_decode(&bytes, xp_span_of(token.p + 1, token.n - 1)) &&
        bytes.n > KEYRING_MAC) {
        struct xp_span payload = xp_span_of(bytes.p + KEYRING_MAC, bytes.n - KEYRING_MAC);
        if (xp_keyring_check(k, purposes[kind], payload, bytes.p))
            m = xprofd__link_claims__unpack(NULL, payload.n, payload.p);
    }
    bool good = m && take_all(c, m);
    if (m)
        xprofd__link_claims__free_unpacked(m, NULL);
    xp_buf_fini(&bytes);
    return good ? XP_OK : xp_fail(err, XP_BAD_REQUEST, 0, "this is no share link of this server");
}

/* --- views --- */

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '@';
}

bool link_view_good(struct xp_span view)
{
    size_t i = 0;
    if (view.n > LINK_VIEW_MAX)
        return false;
    while (i < view.n && is_word(view.p[i]))
        i++;
    if (i == 0 || i == view.n || view.p[i] != '?')
        return false;
    for (; i < view.n; i++)
        if (view.p[i] <= ' ' || view.p[i] >= 0x7f || strchr("\\\"<>#", view.p[i]))
            return false;
    return true;
}
