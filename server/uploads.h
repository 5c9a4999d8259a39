/* server/uploads.h - files that people bring: taken in pieces, kept for a while, opened as runs.
 *
 * h2o reads a request's body whole before anybody sees it, so a file comes in pieces of
 * UPLOAD_PIECE_MAX bytes at most, one after the other, and no more of it is ever in memory. Pieces
 * go to a private directory below $TMPDIR (or /tmp), never beside the profiles. A file that is
 * whole is a run of one host, "upload-<32 hex digits>", which no list shows: who knows the name and
 * may view the project may open it. Only its maker adds to it or removes it.
 *
 * Order      uploads_new -> uploads_begin -> uploads_piece until received == bytes -> uploads_run
 *            any number of times. uploads_free when no request is under way and the shard is gone:
 *            runs refer to its store.
 * Life       keep_ms after the last use, stall_ms after the last piece of one that is not whole,
 *            first_ms until the first one, and in any case until uploads_free. A thread of its own
 *            removes what has expired; what a process that was killed has left is removed by the
 *            next one that starts.
 * Limits     `limit` bytes a file, UPLOADS_TOTAL times that in all, UPLOADS_MAX files. What was
 *            announced counts, sent or not; so with `shares` a maker has `limit` bytes and
 *            UPLOADS_SHARE files at most, and takes the place of no other.
 * Names      Of a file's name only the last part is used, and of that what is text: it becomes the
 *            host's name. Whether it is gzip its bytes say, not its name.
 * Errors     The first piece tells what the file is: XP_CORRUPT with a sentence, and the upload is
 *            gone, when it is no profile. A file that ends early is kept: its load says where.
 * Threads    Any. All but uploads_is_name may block: on workers.
 */
#ifndef SERVER_UPLOADS_H
#define SERVER_UPLOADS_H

#include "lib/base/span.h"
#include "lib/base/status.h"
#include "server/runs.h"

#define UPLOAD_PIECE_MAX ((size_t)1 << 20)
#define UPLOADS_MAX 32
#define UPLOADS_TOTAL 4
#define UPLOADS_SHARE 8
#define UPLOAD_RUN_N 39 /* "upload-" and 32 digits */

struct uploads;

struct uploads_config {
    uint64_t limit;
    int64_t keep_ms, stall_ms, first_ms;
    bool shares; /* makers have identities, and a share each */
};

/* Nothing is written before the first upload. */
struct uploads *uploads_new(const struct uploads_config *config);
void uploads_free(struct uploads *u); /* NULL is fine; removes all of them */

struct upload_state {
    char run[UPLOAD_RUN_N + 1];
    uint64_t bytes, received;
    int64_t expires_ms; /* wall clock, if nobody uses it until then */
};

/* by: who_name of the maker. XP_TOO_LARGE, XP_BAD_REQUEST, XP_BUSY when there are too many, of
 * all or of the maker. */
enum xp_status uploads_begin(struct uploads *u, const char *project, const char *by,
                             struct xp_span file, uint64_t bytes, struct upload_state *state,
                             struct xp_error *err);
/* The piece has to begin where the last one ended; one that came already is taken as done.
 * XP_NOT_FOUND for others than the maker, too. */
enum xp_status uploads_piece(struct uploads *u, const char *project, const char *by,
                             struct xp_span run, uint64_t at, struct xp_span piece,
                             struct upload_state *state, struct xp_error *err);
enum xp_status uploads_drop(struct uploads *u, const char *project, const char *by,
                            struct xp_span run, struct xp_error *err);

/* Whether a run of that name would be an upload's. */
bool uploads_is_name(struct xp_span run);
/* The run, referenced: a use. XP_NOT_FOUND says that it has expired, or is not whole. state may be
 * NULL. */
enum xp_status uploads_run(struct uploads *u, const char *project, struct xp_span name,
                           const struct run **out, struct upload_state *state,
                           struct xp_error *err);

/* The host's name that a file of that name gets; b replaced. */
struct xp_buf;
void upload_host_name(struct xp_span file, struct xp_buf *b);
/* What the beginning of a file is: XP_OK for a profile, plain, or gzip or Riegeli
 * (*packed). */
enum xp_status upload_look(struct xp_span head, bool *packed, struct xp_error *err);

#endif
