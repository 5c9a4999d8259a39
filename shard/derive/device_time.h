/* shard/derive/device_time.h - a TPU op's time by the device's own clock, among an event's stats.
 *
 * Kept beside the events of a few lines (store/device.h), since only tools about ops ask for them.
 * A load that is begun by somebody else leaves them in the file (part->device_later); they are read
 * when they are first asked for, which costs what decoding those lines does.
 */
#ifndef SHARD_DEVICE_TIME_H
#define SHARD_DEVICE_TIME_H

#include "lib/base/pb_wire.h"
#include "shard/decode/xspace_decoder.h"
#include "shard/store/part.h"

/* Is it one of the lines whose events' times are kept? */
bool device_time_wanted(struct xp_span line);

/* Sees to it that the part's lines have them. Blocks while another worker reads; then, and when
 * nothing was left, it costs nothing. */
enum xp_status device_times_get(struct part *p, struct xp_error *err);

struct device_time {
    uint64_t value[2]; /* STAT_DEVICE_OFFSET_PS, STAT_DEVICE_DURATION_PS */
    uint8_t has;       /* bits */
};

static inline void device_note(struct device_time *dev, uint8_t kind, uint64_t value)
{
    dev->value[kind] = value;
    dev->has |= (uint8_t)(1 << kind);
}

/* The varint that is exactly the n bytes before `after`; `begin` is as far as may be read. Without
 * a branch on n: lengths of times vary. */
static inline bool varint_before(const uint8_t *begin, const uint8_t *after, size_t n, uint64_t *v)
{
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t w;
    if (n > 8 || after - begin < 8)
        return xp_varint_read(after - n, after, v) == after;
    memcpy(&w, after - 8, 8);
    w >>= 64 - 8 * n;
    if ((w & tops) != (tops >> (64 - 8 * n) & ~(UINT64_C(0x80) << (8 * n - 8))))
        return false;
    w &= ~tops;
    w = (w & UINT64_C(0x007f007f007f007f)) | (w & UINT64_C(0x7f007f007f007f00)) >> 1;
    w = (w & UINT64_C(0x00003fff00003fff)) | (w & UINT64_C(0x3fff00003fff0000)) >> 2;
    *v = (w & UINT64_C(0x0fffffff)) | (w & UINT64_C(0x0fffffff00000000)) >> 4;
    return true;
}

/* The stats of an event that writers put first, which need no general reader: of the shape they
 * give them (tag, short length, id of one or two bytes first), and either not kept or a time on the
 * device. On device planes that is all there are, two an event. */
static inline const uint8_t *skip_common(const struct xspace_event *ev, const uint8_t *p,
                                         const uint8_t *kinds, struct device_time *dev)
{
    const uint8_t *begin = ev->body.p, *end = begin + ev->body.n;
    while (end - p >= 6) {
        uint32_t head;
        memcpy(&head, p, sizeof head);
        if ((head & 0x00ff80ff) != 0x00080022)
            break;
        uint32_t id = head >> 24;
        const uint8_t *q = p + 4, *after = p + 2 + (head >> 8 & 0x7f);
        if (id >= 0x80) {
            if (*q >= 0x80)
                break;
            id = (id & 0x7f) | (uint32_t)*q++ << 7;
        }
        if (after > end || after < p + 5)
            break;
        if (kinds[id] <= STAT_DEVICE_DURATION_PS) {
            uint64_t value;
            if (after - q < 2 || (*q != 0x18 && *q != 0x20) ||
                !varint_before(begin, after, (size_t)(after - q - 1), &value))
                break;
            device_note(dev, kinds[id], value);
        } else if (kinds[id] != STAT_NOT_KEPT) {
            break;
        }
        p = after;
    }
    return p;
}

/* An event of a device line whose stats are its time there and nothing else, both of one-byte ids:
 * nearly all are. False: not so, or not in this shape. */
static inline bool device_pair(const struct xspace_event *ev, const uint8_t *kinds,
                               struct device_time *dev)
{
    const uint8_t *begin = ev->body.p, *end = begin + ev->body.n, *p = begin + ev->stats;
    const uint32_t shape = 0x00ff80ff, stat = 0x00080022; /* tag, length below 128, tag of the id */
    uint32_t first, second;
    if (end - p < 12)
        return false;
    memcpy(&first, p, sizeof first);
    const uint8_t *q = p + 2 + (first >> 8 & 0x7f);
    if ((first & shape) != stat || end - q < 6)
        return false;
    memcpy(&second, q, sizeof second);
    size_t nfirst = (size_t)(q - p) - 5, nsecond = (size_t)(end - q) - 5;
    if ((second & shape) != stat || (second >> 8 & 0x7f) != nsecond + 3 || nfirst - 1 > 7 ||
        p[4] != 0x18 || q[4] != 0x18 || (first | second) >> 31 ||
        kinds[first >> 24] != STAT_DEVICE_OFFSET_PS ||
        kinds[second >> 24] != STAT_DEVICE_DURATION_PS)
        return false;
    dev->has = 3;
    return varint_before(begin, q, nfirst, &dev->value[STAT_DEVICE_OFFSET_PS]) &&
           varint_before(begin, end, nsecond, &dev->value[STAT_DEVICE_DURATION_PS]);
}

#endif
