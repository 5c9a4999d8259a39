/* lib/objstore/s3_int.h - what the files of S3-compatible stores share. */
#ifndef XP_OBJSTORE_S3_INT_H
#define XP_OBJSTORE_S3_INT_H

#include "lib/objstore/bucket_int.h"

/* The generation of an ETag, never 0. */
uint64_t s3_generation(const char *etag);

/* A page of ListObjectsV2. XP_IO with a sentence for what is none. */
enum xp_status s3_parse_list(const struct bucket *b, const char *prefix, struct xp_span body,
                             struct xp_store_page *page, struct xp_error *err);

#endif
