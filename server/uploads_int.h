/* server/uploads_int.h - what the files of the uploads share.
 *
 *   uploads.c         the table: who brings what, how much of it is there, until when
 *   uploads_place.c   the private folder: their bytes, and the store that reads them
 *   uploads_look.c    what a file is called here, and whether it is a profile
 *   uploads_routes.c  the API
 */
#ifndef SERVER_UPLOADS_INT_H
#define SERVER_UPLOADS_INT_H

#include "server/uploads.h"

#define UPLOAD_RUN_PREFIX "upload-"
#define UPLOAD_FILE_MAX 256
#define UPLOAD_PATH_MAX 4096

struct upload_place {
    char path[UPLOAD_PATH_MAX];
    int folder; /* locked as long as this process lives; -1: none yet */
    struct xp_store *store;
};

/* No folder yet; removes those that killed processes have left. */
void upload_place_init(struct upload_place *p);
void upload_place_fini(struct upload_place *p); /* of an empty one */
/* The folder and its store, unless they are there. After an error there is none, as before. */
enum xp_status upload_place_have(struct upload_place *p, struct xp_error *err);

/* The rest needs the folder; any thread, any number at once of different runs. */
enum xp_status upload_place_add(const struct upload_place *p, const char *run,
                                struct xp_error *err);
enum xp_status upload_place_write(const struct upload_place *p, const char *run, uint64_t at,
                                  struct xp_span piece, struct xp_error *err);
/* What was written becomes the file of a host, and a run that the caller gets. */
enum xp_status upload_place_finish(const struct upload_place *p, const char *run, const char *host,
                                   bool gz, const struct run **out, struct xp_error *err);
/* May take seconds: all its blocks are freed. */
void upload_place_remove(const struct upload_place *p, const char *run);

#endif
