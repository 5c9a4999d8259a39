/* server/xprof.h - the handlers of XProf's routes: its shapes, its status codes, its zeros.
 *
 * Contract: XProf 2.24.2, as its server answers it. Errors are text/plain lines; an unknown run is
 * an empty list. Where XProf drops the connection we answer 500. Each runs on a worker and ends its
 * ask.
 */
#ifndef SERVER_XPROF_H
#define SERVER_XPROF_H

#include "server/ask.h"

#define XPROF_VERSION "2.24.2" /* the version whose answers we give */

void xprof_config(struct ask *ask);
void xprof_version(struct ask *ask);
void xprof_runs(struct ask *ask);
void xprof_hosts(struct ask *ask);
void xprof_data(struct ask *ask); /* data and data_csv */
void xprof_capture_profile(struct ask *ask);
void xprof_generate_cache(struct ask *ask);
void xprof_run_tools_route(struct ask *ask);
void xprof_module_list_route(struct ask *ask);

#endif
