/* server/download.h - a host's file as it lies there, sent as a download.
 *
 * Read piece by piece on workers, each when the client has taken the one before: DOWNLOAD_PIECE of
 * memory each, DOWNLOADS_MAX at a time. A file that changes or cannot be read further meanwhile
 * breaks the answer off, so that nobody takes a half for the whole.
 *
 * Fairness   A user has DOWNLOADS_EACH at a time. Where one is refused, those whose clients did not
 *            take DOWNLOAD_LEAST in DOWNLOAD_LEAST_NS are broken off, so that clients which do not
 *            read keep nobody else from it.
 */
#ifndef SERVER_DOWNLOAD_H
#define SERVER_DOWNLOAD_H

#include "lib/http/http.h"
#include "lib/run/workers.h"
#include "server/runs.h"

struct who;

#define DOWNLOADS_MAX 8
#define DOWNLOADS_EACH 2
/* Half of what waits in a stream is free again before more is sent. */
#define DOWNLOAD_LEAST ((size_t)128 << 10)
#define DOWNLOAD_LEAST_NS (60 * UINT64_C(1000000000))
#define DOWNLOAD_PIECE ((size_t)256 << 10)

/* On XP_OK exchange and run (a reference) are the download's. host is one of run. XP_BUSY: there
 * are too many, of who or of all; else why the file cannot be opened. */
enum xp_status download_start(struct xp_workers *workers, struct http_exchange *ex,
                              const struct who *who, const struct run *run,
                              const struct run_host *host, struct xp_error *err);

/* The header's value for a file of that key; b replaced. Any name is a token there, and in UTF-8 as
 * it is beside that. */
void download_disposition(const char *key, struct xp_buf *b);

#endif
