/* lib/http/tls.c - a certificate and its key, or a sentence that says what is wrong with them. */
#include <openssl/err.h>
#include <unistd.h>

#include "lib/http/http_int.h"

static const char *tls_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    return reason ? reason : "no reason given";
}

static enum xp_status tls_load(SSL_CTX *ctx, const char *cert, const char *key,
                               struct xp_error *err)
{
    if (access(cert, R_OK) != 0)
        return xp_fail(err, XP_IO, 0, "cannot read the certificate %s: %s", cert, strerror(errno));
    if (access(key, R_OK) != 0)
        return xp_fail(err, XP_IO, 0, "cannot read the key %s: %s", key, strerror(errno));
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return xp_fail(err, XP_IO, 0, "%s holds no PEM certificate: %s", cert, tls_reason());
    /* The key is checked against the certificate as it is set; tell a mismatch from a file that
     * holds no key at all. */
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509)
            return xp_fail(err, XP_IO, 0, "the key %s does not belong to the certificate %s", key,
                           cert);
        return xp_fail(err, XP_IO, 0, "%s holds no PEM key: %s", key, tls_reason());
    }
    if (SSL_CTX_check_private_key(ctx) != 1)
        return xp_fail(err, XP_IO, 0, "the key %s does not belong to the certificate %s", key,
                       cert);
    return XP_OK;
}

SSL_CTX *tls_open(const char *cert, const char *key, struct xp_error *err)
{
    static const unsigned char session_context[] = "xprofd";

    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) {
        xp_fail(err, XP_INTERNAL, 0, "no TLS context: %s", tls_reason());
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context - 1);
    if (tls_load(ctx, cert, key, err) != XP_OK) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    h2o_ssl_register_alpn_protocols(ctx, h2o_alpn_protocols);
    return ctx;
}
