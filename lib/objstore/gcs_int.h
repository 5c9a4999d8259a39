/* lib/objstore/gcs_int.h - what the files of Cloud Storage share. */
#ifndef XP_OBJSTORE_GCS_INT_H
#define XP_OBJSTORE_GCS_INT_H

#include "lib/objstore/bucket_int.h"

/* --- tokens (gcs_auth.c) --- */

struct gcs_auth;

/* From the environment: see objstore.h. *out NULL: no credentials are sent. Asks nobody. */
enum xp_status gcs_auth_open(bool anonymous, bool writable, struct gcs_auth **out,
                             struct xp_error *err);
void gcs_auth_free(struct gcs_auth *a); /* NULL is fine */

/* A token that holds for a while, malloc'd (to be wiped); asks for one when there is none. One
 * thread asks, the others go on with the last or wait. */
enum xp_status gcs_auth_token(struct gcs_auth *a, struct net_client *net, char **token,
                              struct xp_error *err);
/* The token was refused: the next one will be new. False: it was fetched a moment ago. */
bool gcs_auth_refused(struct gcs_auth *a);

/* The signed claim for token_uri. Exposed for tests. */
char *gcs_auth_jwt(const char *pem, const char *key_id, const char *email, const char *scope,
                   const char *audience, int64_t now_s, struct xp_error *err);

/* --- answers (gcs_json.c) --- */

/* Both fill what they can; XP_IO with a sentence for what is no such answer. */
enum xp_status gcs_parse_list(const struct bucket *b, const char *prefix, struct xp_span body,
                              struct xp_store_page *page, struct xp_error *err);
enum xp_status gcs_parse_object(struct xp_span body, struct xp_object *out, struct xp_error *err);

#endif
