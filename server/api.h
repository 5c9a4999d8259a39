/* server/api.h - the handlers of our own API (docs/api.md). Each runs on a worker and ends its ask.
 */
#ifndef SERVER_API_H
#define SERVER_API_H

#include "server/ask.h"

void api_me(struct ask *ask);
void api_projects(struct ask *ask);
void api_runs(struct ask *ask);
void api_run(struct ask *ask);
void api_events(struct ask *ask);
void api_file(struct ask *ask);   /* a host's file, as a download */
void api_host(struct ask *ask);   /* whatever asks the shard about one host */
void api_report(struct ask *ask); /* a tool's report, of any hosts */
void api_status(struct ask *ask);

/* server/uploads_routes.c */
void api_uploads_begin(struct ask *ask);
void api_upload_piece(struct ask *ask);
void api_uploads_drop(struct ask *ask);

/* server/capture/capture_routes.c */
void api_captures(struct ask *ask);
void api_captures_begin(struct ask *ask);
void api_captures_end(struct ask *ask);
void api_captures_continuous(struct ask *ask);
void api_captures_snapshot(struct ask *ask);

#endif
