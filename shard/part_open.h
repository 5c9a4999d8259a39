/* shard/part_open.h - a part from a file, for tests and tools. Blocks.
 *
 * workers NULL: decoded on this thread. Sets the same errors as load.h; the part is freed with
 * part_close, which closes the store too.
 */
#ifndef SHARD_PART_OPEN_H
#define SHARD_PART_OPEN_H

#include "lib/run/workers.h"
#include "shard/store/part.h"

struct part_file; /* the part and the store that it is read from */

enum xp_status part_open_file(const char *path, struct xp_workers *workers,
                              struct xp_budget *budget, struct part_file **out,
                              struct xp_error *err);
struct part *part_file_part(struct part_file *f);
void part_close(struct part_file *f);

#endif
