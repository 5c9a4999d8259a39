/* lib/base/json_out.h - writing JSON into a buffer, fast and always well formed.
 *
 * Commas and colons are placed by the writer; the caller opens, closes and names. Depth is
 * at most 31: deeper fails the buffer. Strings are escaped; bytes that are not UTF-8 become U+FFFD;
 * '<' and U+2028/9 are escaped too, so that an answer may be put into a page. Doubles that are not
 * finite are written as null by xp_json_double.
 *
 * The buffer's limit applies (buf.h). One writer, one thread.
 */
#ifndef XP_BASE_JSON_OUT_H
#define XP_BASE_JSON_OUT_H

#include "lib/base/buf.h"

struct xp_json {
    struct xp_buf *b;
    uint32_t comma; /* bit d: the container at depth d has a member already */
    int depth;
    bool named; /* a key was written, its value is due */
};

void xp_json_init(struct xp_json *j, struct xp_buf *b);

void xp_json_obj(struct xp_json *j);
void xp_json_obj_end(struct xp_json *j);
void xp_json_arr(struct xp_json *j);
void xp_json_arr_end(struct xp_json *j);
void xp_json_key(struct xp_json *j, const char *key); /* key: a literal, needs no escaping */
void xp_json_key_span(struct xp_json *j, struct xp_span key);

void xp_json_span(struct xp_json *j, struct xp_span s);
void xp_json_str(struct xp_json *j, const char *s);
void xp_json_i64(struct xp_json *j, int64_t v);
void xp_json_u64(struct xp_json *j, uint64_t v);
void xp_json_bool(struct xp_json *j, bool v);
void xp_json_null(struct xp_json *j);
/* The shortest text that reads back (%.17g or less). */
void xp_json_double(struct xp_json *j, double v);
void xp_json_raw(struct xp_json *j, struct xp_span text); /* already JSON */

/* A key and its value. */
static inline void xp_json_key_i64(struct xp_json *j, const char *key, int64_t v)
{
    xp_json_key(j, key);
    xp_json_i64(j, v);
}

static inline void xp_json_key_u64(struct xp_json *j, const char *key, uint64_t v)
{
    xp_json_key(j, key);
    xp_json_u64(j, v);
}

static inline void xp_json_key_bool(struct xp_json *j, const char *key, bool v)
{
    xp_json_key(j, key);
    xp_json_bool(j, v);
}

/* ps as decimal microseconds, exact: 1234567 -> 1.234567, 1500000 -> 1.5 */
void xp_json_us_from_ps(struct xp_json *j, int64_t ps);

/* The quoted, escaped text of s alone, for hot loops that place their own commas. */
void xp_json_escape(struct xp_buf *b, struct xp_span s);
/* The decimal text of v alone. */
void xp_text_u64(struct xp_buf *b, uint64_t v);
void xp_text_us_from_ps(struct xp_buf *b, int64_t ps);

#endif
