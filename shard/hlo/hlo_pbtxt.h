/* shard/hlo/hlo_pbtxt.h - an HloProto in protobuf's text format.
 *
 * Fields come by number; those that the schema (schema.def) does not know are left out, as XProf
 * does. `flush`, if any, is called between messages.
 * Errors: XP_CORRUPT with the offset in bytes, XP_BUSY.
 */
#ifndef SHARD_HLO_PBTXT_H
#define SHARD_HLO_PBTXT_H

#include "lib/base/buf.h"
#include "lib/base/status.h"

enum xp_status hlo_pbtxt(struct xp_span bytes, struct xp_buf *out, void (*flush)(void *ctx),
                         void *ctx, struct xp_error *err);

#endif
