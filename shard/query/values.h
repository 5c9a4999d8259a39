/* shard/query/values.h - statistics of events, of their metadata and of planes, by name.
 *
 * What tools see of the wire: an eye is opened on a plane with the names that are wanted; looking
 * at an event gives those of its stats that are, in the file's order. References are resolved.
 * For many events ask in ascending order of `at` (store/body.h).
 *
 * Spans die at the next look. Scratch memory comes from the arena.
 */
#ifndef SHARD_VALUES_H
#define SHARD_VALUES_H

#include "shard/decode/xspace_decoder.h"
#include "shard/store/body.h"

#define VALUES_NAMES_MAX 64

enum value_type { VALUE_NONE, VALUE_DOUBLE, VALUE_U64, VALUE_I64, VALUE_TEXT, VALUE_BYTES };

struct value {
    uint8_t which; /* index of the name */
    uint8_t type;  /* enum value_type */
    uint64_t num;  /* bits of a double, uint64, int64 */
    struct xp_span text;
};

struct values_eye {
    const struct part *part;
    const struct part_plane *plane;
    struct body_reader body;
    struct xspace_stats it;
    uint8_t small[256]; /* which + 1, by stat id */
    struct values_id {
        int64_t id;
        uint8_t which;
    } large[VALUES_NAMES_MAX];
    uint32_t nlarge;
};

/* n <= VALUES_NAMES_MAX; a name may stand for several ids of the plane. */
void values_open(struct values_eye *eye, const struct part *part, const struct part_plane *plane,
                 const char *const *names, uint32_t n, struct xp_arena *a);

enum xp_status values_of_event(struct values_eye *eye, uint64_t at, struct xp_error *err);
enum xp_status values_of_evmeta(struct values_eye *eye, uint32_t name, struct xp_error *err);
void values_of_plane(struct values_eye *eye);
/* The next of what was looked at last; false at the end. */
bool values_next(struct values_eye *eye, struct value *v);
/* The first of a name; false if there is none. Looking goes on behind it. */
bool values_find(struct values_eye *eye, uint8_t which, struct value *v);

/* As XProf reads them: 0 or "" for a value of another type. */
static inline int64_t value_i64(const struct value *v)
{
    return v->type == VALUE_I64 ? (int64_t)v->num : 0;
}
static inline uint64_t value_u64(const struct value *v) /* int64 too */
{
    return v->type == VALUE_U64 || v->type == VALUE_I64 ? v->num : 0;
}
double value_double(const struct value *v);

#endif
