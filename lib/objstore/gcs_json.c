/* What Cloud Storage says, in JSON. */
#include <jansson.h>
#include <stdlib.h>

#include "lib/objstore/gcs_int.h"

static enum xp_status fail_answer(struct xp_error *err, const char *what)
{
    return xp_fail(err, XP_IO, 0, "the store's answer cannot be understood: %s", what);
}

static enum xp_status load(struct xp_span body, json_t **out, struct xp_error *err)
{
    json_error_t why;
    *out = json_loadb((const char *)body.p, body.n, JSON_REJECT_DUPLICATES, &why);
    if (*out && json_is_object(*out))
        return XP_OK;
    json_decref(*out);
    *out = NULL;
    return fail_answer(err, "it is no JSON object");
}

/* Numbers of 64 bits come as strings. */
static bool get_u64(const json_t *o, const char *name, uint64_t *v)
{
    const json_t *j = json_object_get(o, name);
    if (json_is_integer(j) && json_integer_value(j) >= 0) {
        *v = (uint64_t)json_integer_value(j);
        return true;
    }
    return bucket_u64(json_string_value(j), v);
}

static bool read_object(const json_t *o, struct xp_object *out)
{
    const char *updated = json_string_value(json_object_get(o, "updated"));
    const char *encoding = json_string_value(json_object_get(o, "contentEncoding"));
    *out = (struct xp_object){0};
    out->mtime_ms = updated ? bucket_time_ms(updated) : 0;
    out->gzip = encoding && strcmp(encoding, "gzip") == 0;
    return get_u64(o, "size", &out->size) && get_u64(o, "generation", &out->generation) &&
           out->generation;
}

enum xp_status gcs_parse_object(struct xp_span body, struct xp_object *out, struct xp_error *err)
{
    json_t *o;
    XP_TRY(load(body, &o, err));
    bool ok = read_object(o, out);
    json_decref(o);
    return ok ? XP_OK : fail_answer(err, "an object without size or generation");
}

static enum xp_status add_items(const struct bucket *b, const char *prefix, const json_t *items,
                                struct xp_store_page *page, struct xp_error *err)
{
    size_t i;
    json_t *item;
    struct xp_object what;
    json_array_foreach(items, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (!name || !read_object(item, &what))
            return fail_answer(err, "an item without name, size or generation");
        if (!bucket_page_add(b, prefix, name, &what, page))
            return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    return XP_OK;
}

static enum xp_status add_prefixes(const struct bucket *b, const char *prefix, const json_t *list,
                                   struct xp_store_page *page, struct xp_error *err)
{
    static const struct xp_object folder = {.prefix = true};
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(item);
        size_t n = name ? strlen(name) : 0;
        if (!n || name[n - 1] != '/')
            return fail_answer(err, "a prefix that does not end in '/'");
        if (!bucket_page_add(b, prefix, name, &folder, page))
            return xp_fail(err, XP_BUSY, 0, "out of memory");
    }
    return XP_OK;
}

enum xp_status gcs_parse_list(const struct bucket *b, const char *prefix, struct xp_span body,
                              struct xp_store_page *page, struct xp_error *err)
{
    json_t *o;
    XP_TRY(load(body, &o, err));
    const char *next = json_string_value(json_object_get(o, "nextPageToken"));
    enum xp_status status = add_items(b, prefix, json_object_get(o, "items"), page, err);
    if (status == XP_OK)
        status = add_prefixes(b, prefix, json_object_get(o, "prefixes"), page, err);
    if (status == XP_OK && next && *next && !(page->next = strdup(next)))
        status = xp_fail(err, XP_BUSY, 0, "out of memory");
    json_decref(o);
    return status;
}
