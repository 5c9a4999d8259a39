/* tests/fuzz/fuzz_store_lists.c - what a store answers to a list: its keys are keys of the folder
 * that was asked for, whatever it says, or it is refused.
 *
 * Input: '{' for Cloud Storage's JSON or anything else for S3's XML.
 */
#include <stdlib.h>

#include "lib/objstore/gcs_int.h"
#include "lib/objstore/s3_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct xp_store_page *page)
{
    for (size_t i = 0; i < page->n; i++) {
        const struct xp_object *o = &page->items[i];
        XP_ASSERT(strncmp(o->key, "d/", 2) == 0);
        XP_ASSERT(o->prefix ? xp_store_prefix_ok(o->key) : xp_store_key_ok(o->key));
        XP_ASSERT(o->prefix || o->generation);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char root[] = "r/", name[] = "bucket";
    struct bucket b = {.root = root, .bucket = name};
    struct xp_store_page page = {0};
    struct xp_object o;
    struct xp_error err = {0};
    uint8_t *copy = malloc(size ? size : 1);
    XP_ASSERT(copy);
    if (size)
        memcpy(copy, data, size);
    struct xp_span body = xp_span_of(copy, size);
    bool json = size && data[0] == '{';
    enum xp_status status = json ? gcs_parse_list(&b, "r/d/", body, &page, &err)
                                 : s3_parse_list(&b, "r/d/", body, &page, &err);
    XP_ASSERT(status == XP_OK || status == XP_IO);
    XP_ASSERT(status == XP_OK || err.text[0]);
    check(&page);
    xp_store_page_fini(&page);
    if (json && gcs_parse_object(body, &o, &err) == XP_OK)
        XP_ASSERT(o.generation);
    free(copy);
    return 0;
}
