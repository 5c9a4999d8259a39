/* server/warm.h - profiles loaded ahead of anyone who looks: what XProf's generate_cache asks for.
 *
 * A job is a run; its hosts are loaded one after the other, and jobs one after the other, so that
 * warming takes no more than one load's share from those who wait. A queue of WARM_JOBS_MAX.
 */
#ifndef SERVER_WARM_H
#define SERVER_WARM_H

#include "server/ask.h"

#define WARM_JOBS_MAX 64

struct warm *warm_new(void);
void warm_free(struct warm *w); /* no job may be left: app->asks counts them */

/* Takes a reference of its own. XP_BUSY: too many jobs wait. */
enum xp_status warm_start(struct app *app, const struct run *run, struct xp_error *err);

#endif
