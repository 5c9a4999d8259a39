/* shard/derive/hlo.h - what the HLO modules in a profile say about their instructions: the
 * framework op and the line of source each came from.
 *
 * Read once for a part, from the bytes in /host:metadata; kept in scratch memory. Modules that are
 * no protobuf are left out.
 */
#ifndef SHARD_DERIVE_HLO_H
#define SHARD_DERIVE_HLO_H

#include "shard/derive/derive_int.h"

struct hlo_symbol {
    struct xp_span op;     /* "name:type" */
    struct xp_span source; /* "file:line", or empty */
};

struct hlo_map;
enum xp_status hlo_map_new(struct derive_work *w, struct hlo_map **out);
/* False: the program or the instruction is not known. */
bool hlo_find(const struct hlo_map *m, uint64_t program, struct xp_span instruction,
              struct hlo_symbol *out);
void hlo_map_free(struct hlo_map *m);

#endif
