/* lib/objstore/sigv4.h - AWS Signature Version 4, as S3 wants it (paths encoded once).
 *
 * Our own, on OpenSSL's HMAC: libcurl's CURLOPT_AWS_SIGV4 of 7.88 neither sorts nor encodes the
 * query as the signature demands, so that ListObjectsV2 with a prefix is refused.
 */
#ifndef XP_OBJSTORE_SIGV4_H
#define XP_OBJSTORE_SIGV4_H

#include "lib/base/buf.h"

#define SIGV4_HEX 65 /* of SHA-256, with NUL */
#define SIGV4_DATE 17

struct sigv4 {
    const char *key_id, *secret, *region;
    const char *method;
    const char *path;  /* percent-encoded, begins with '/' */
    const char *query; /* encoded, names in byte order, each "name=value"; may be "" */
    /* Lower-case names in byte order, "host", "x-amz-content-sha256" and "x-amz-date" among them.
     */
    const struct sigv4_header {
        const char *name, *value;
    } * headers;
    size_t n_headers;
    const char *payload_hex; /* SHA-256 of the body */
    const char *date;        /* "20130524T000000Z" */
};

void sigv4_hex(struct xp_span bytes, char out[SIGV4_HEX]);
void sigv4_date(int64_t now_s, char out[SIGV4_DATE]);

/* The value of the header "authorization". False when it does not fit or OpenSSL fails. */
bool sigv4_sign(const struct sigv4 *s, struct xp_buf *out);

#endif
