/* lib/base/status.h - one table of outcomes, and the error that carries one.
 *
 * Every function that can fail returns enum xp_status and, where its caller can
 * use the words, takes a struct xp_error to fill. The finder of a problem fills
 * the error; everyone above passes it on unchanged. The HTTP status, the reason
 * code and "may the caller try again" come from this table and nowhere else.
 *
 * A broken invariant is no status: XP_ASSERT (always on) prints the expression
 * and ends the process. The bytes of a profile or a request can never reach one.
 *
 * Threads: everything here is free of shared state.
 */
#ifndef XP_BASE_STATUS_H
#define XP_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/*      name         http retry reason code       meaning */
#define XP_STATUS_MAP(X)                                                                           \
    X(OK, 200, 0, "ok", "done")                                                                    \
    X(BAD_REQUEST, 400, 0, "bad_request", "the request is malformed")                              \
    X(SIGNED_OUT, 401, 0, "signed_out", "the caller has to say who it is")                         \
    X(DENIED, 403, 0, "denied", "the caller may not read this")                                    \
    X(NOT_FOUND, 404, 0, "not_found", "no such run, session, host, event or tool")                 \
    X(METHOD, 405, 0, "method_not_allowed", "the resource does not take this method")              \
    X(CONFLICT, 409, 0, "conflict", "something that is there or under way is in the way")          \
    X(STALE, 412, 1, "stale", "the object changed while it was being read")                        \
    X(TOO_LARGE, 413, 0, "too_large", "the request or its answer exceeds a limit")                 \
    X(MISDIRECTED, 421, 0, "wrong_host", "the Host header is not one this server answers to")      \
    X(CORRUPT, 422, 0, "corrupt_profile", "the object is not a valid XSpace")                      \
    X(LIMITED, 429, 1, "limited", "the caller asks too often")                                     \
    X(CANCELLED, 499, 0, "cancelled", "nobody is waiting for the answer")                          \
    X(INTERNAL, 500, 0, "internal", "the server failed")                                           \
    X(IO, 502, 1, "storage", "the storage failed")                                                 \
    X(BUSY, 503, 1, "busy", "the memory budget or a queue is full")                                \
    X(TIMEOUT, 504, 1, "timeout", "the deadline passed")

enum xp_status {
#define X(name, http, retry, code, text) XP_##name,
    XP_STATUS_MAP(X)
#undef X
        XP_STATUS_COUNT
};

#define XP_RETRY_MAX_S 30

struct xp_error {
    enum xp_status status;
    uint16_t retry_s; /* when to ask again, up to XP_RETRY_MAX_S; 0: nothing is known */
    uint64_t offset;  /* byte in the object the error is about, or 0 */
    char text[240];   /* a sentence for people; never parsed; UTF-8 or raw bytes of a name */
};

/* Fills *err (if any) and returns status, so that
 * `return xp_fail(err, XP_CORRUPT, at, "tag %u", tag);` is one line. */
enum xp_status xp_fail(struct xp_error *err, enum xp_status status, uint64_t offset,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Says when to ask again: what is known, in whole seconds, at least one. err may be NULL. */
void xp_error_retry(struct xp_error *err, uint64_t ms);

int xp_status_http(enum xp_status status);
bool xp_status_retry(enum xp_status status);
const char *xp_status_code(enum xp_status status); /* "not_found" */
const char *xp_status_text(enum xp_status status); /* "no such run, ..." */

_Noreturn void xp_assert_failed(const char *expr, const char *file, int line);
#define XP_ASSERT(e) ((e) ? (void)0 : xp_assert_failed(#e, __FILE__, __LINE__))

/* Returns from the enclosing function with the status of a call that failed. */
#define XP_TRY(call)                                                                               \
    do {                                                                                           \
        enum xp_status xp_try_status = (call);                                                     \
        if (xp_try_status != XP_OK)                                                                \
            return xp_try_status;                                                                  \
    } while (0)

#endif
