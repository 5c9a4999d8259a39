/* TLS with a certificate of the test's own making. */
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/http/http.h"
#include "tests/unit/h2_client.h"
#include "tests/unit/http_client.h"
#include "tests/unit/http_fixture.h"
#include "tests/unit/unit.h"

#define ALPN_BOTH "\x02h2\x08http/1.1"
#define ALPN_HTTP1 "\x08http/1.1"

static char folder[] = "/tmp/test_http_tls_XXXXXX", cert[64], key[64], other_key[64], text[64];
static struct fixture f;
static SSL_CTX *client;

static EVP_PKEY *write_key(const char *path)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    FILE *file = fopen(path, "w");
    assert_non_null(k);
    assert_int_equal(PEM_write_PrivateKey(file, k, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    return k;
}

static void write_certificate(const char *path, EVP_PKEY *k)
{
    X509 *x = X509_new();
    FILE *file = fopen(path, "w");

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, k);
    assert_true(X509_sign(x, k, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, x), 1);
    fclose(file);
    X509_free(x);
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(cert, sizeof cert, "%s/cert.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    snprintf(other_key, sizeof other_key, "%s/other.pem", folder);
    snprintf(text, sizeof text, "%s/text.pem", folder);
    EVP_PKEY *k = write_key(key);
    write_certificate(cert, k);
    EVP_PKEY_free(k);
    EVP_PKEY_free(write_key(other_key));
    FILE *file = fopen(text, "w");
    fputs("no certificate\n", file);
    fclose(file);
    client = SSL_CTX_new(TLS_client_method());
    fixture_start(&f, &(struct http_config){.tls_cert = cert, .tls_key = key});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_stop(&f);
    SSL_CTX_free(client);
    unlink(cert);
    unlink(key);
    unlink(other_key);
    unlink(text);
    rmdir(folder);
    return 0;
}

static void assert_protocol(struct peer *p, const char *want)
{
    const unsigned char *name;
    unsigned n;
    SSL_get0_alpn_selected(p->ssl, &name, &n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(name, want, n);
}

static void alpn_chooses_http2_when_offered(void **state)
{
    struct peer p;
    struct h2_reply r;
    (void)state;
    peer_open_tls(&p, f.port, client, ALPN_BOTH);
    assert_protocol(&p, "h2");
    h2_start(&p, 1 << 20, 1 << 20);
    h2_request(&p, 1, "GET", "/hello");
    h2_read_reply(&p, 1, &r);
    assert_true(r.ended && r.n == 6 && r.status == 200);
    peer_close(&p);
}

static void http1_is_spoken_to_the_others(void **state)
{
    static const char *const alpn[] = {ALPN_HTTP1, ""};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct peer p;
        struct reply r;
        peer_open_tls(&p, f.port, client, alpn[i]);
        if (alpn[i][0])
            assert_protocol(&p, "http/1.1");
        peer_say(&p, "GET /size?n=1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        reply_read(&p, &r, false);
        assert_int_equal(r.body.n, 1000000);
        reply_fini(&r);
        peer_close(&p);
    }
}

static void old_versions_are_refused(void **state)
{
    SSL_CTX *old = SSL_CTX_new(TLS_client_method());
    struct peer p;
    (void)state;
    SSL_CTX_set_security_level(old, 0);
    SSL_CTX_set_max_proto_version(old, TLS1_1_VERSION);
    peer_open(&p, f.port, 0);
    p.ssl = SSL_new(old);
    SSL_set_fd(p.ssl, p.fd);
    assert_int_not_equal(SSL_connect(p.ssl), 1);
    peer_close(&p);
    SSL_CTX_free(old);
}

static void start_fails(const char *c, const char *k, const char *want)
{
    struct http_config config = {.tls_cert = c, .tls_key = k};
    struct http_server *s = NULL;
    struct xp_error err;
    assert_int_equal(http_server_start(&config, &s, &err), XP_IO);
    if (!strstr(err.text, want))
        fail_msg("have <%s>, want <%s>", err.text, want);
}

static void bad_files_give_a_sentence(void **state)
{
    char missing[64];
    (void)state;
    snprintf(missing, sizeof missing, "%s/missing.pem", folder);
    start_fails(missing, key, "cannot read the certificate");
    start_fails(cert, missing, "cannot read the key");
    start_fails(text, key, "holds no PEM certificate");
    start_fails(cert, text, "holds no PEM key");
    start_fails(cert, other_key, "does not belong to the certificate");
    start_fails(cert, NULL, "both a certificate and its key");
}

static void *stop_in_thread(void *own)
{
    fixture_stop(own);
    return NULL;
}

static void answer_is_read_whole_by_a_slow_client_while_the_server_drains(void **state)
{
    static struct fixture own;
    struct peer p;
    struct h2_frame frame;
    pthread_t draining;
    size_t n = 0;
    bool ended = false, began = false;
    (void)state;

    fixture_start(&own, &(struct http_config){.tls_cert = cert, .tls_key = key});
    peer_open_tls(&p, own.port, client, ALPN_BOTH);
    h2_start(&p, 1 << 20, 1 << 20);
    h2_request(&p, 1, "GET", "/static?n=20000000");
    while (!ended && h2_read(&p, &frame)) {
        if (frame.type != H2_DATA)
            continue;
        n += frame.n;
        ended = frame.flags & H2_END_STREAM;
        h2_window(&p, 0, (uint32_t)frame.n);
        h2_window(&p, 1, (uint32_t)frame.n);
        if (!began)
            pthread_create(&draining, NULL, stop_in_thread, &own);
        began = true;
        if (n % (1 << 20) < 16384)
            usleep(40000);
    }
    assert_true(ended);
    assert_int_equal(n, 20000000);
    peer_close(&p);
    pthread_join(draining, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alpn_chooses_http2_when_offered),
        cmocka_unit_test(http1_is_spoken_to_the_others),
        cmocka_unit_test(old_versions_are_refused),
        cmocka_unit_test(bad_files_give_a_sentence),
        cmocka_unit_test(answer_is_read_whole_by_a_slow_client_while_the_server_drains),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
