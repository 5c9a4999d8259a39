/* lib/base/gzip_pen.h - text and its deflate stream, written together.
 *
 * For long runs of records that are alike, as the events of a trace are: most of a record's text
 * stands in the one before, at a place that the writer knows. So nothing is searched: the writer
 * puts a record's text into the pen and says for each field where its like stands. What agrees
 * becomes a match, the rest literals, in one fixed Huffman code whose lengths were counted on
 * traces (gzip_pen_code.h). Half the time of ISA-L's search at level 1 (0.65 ns a byte beside 1.4);
 * the stream is 10 to 30 % longer.
 *
 *     struct xp_pen *pen = xp_pen_new(gz);       // what was added to gz comes first
 *     uint8_t *p = xp_pen_room(pen, most);       // write up to `most` bytes there
 *     struct xp_pen_field f[] = {{0, like, 9}, {9, like_name, 0}};
 *     xp_pen_record(pen, n, f, 2);
 *     xp_pen_free(pen);                          // gz goes on
 *
 * Places are counted from 1 over the whole text of a pen; 0 is no place. A place may be any: a
 * field that does not agree with it, or that lies too far back, costs bytes and nothing else. But
 * what is said to be sure is believed: if it is not so, another text comes back.
 *
 * Threads    As the gzip it writes into.
 */
#ifndef XP_BASE_GZIP_PEN_H
#define XP_BASE_GZIP_PEN_H

#include "lib/base/gzip.h"

#define XP_PEN_REACH 32768      /* how far back what is alike may be */
#define XP_PEN_RECORD_MAX 65536 /* bytes of a record; longer ones are added to the gzip itself */

struct xp_pen;

struct xp_pen_field {
    uint32_t at;   /* in the record, ascending, the first at 0 */
    uint64_t like; /* place of what may be alike, or 0 */
    uint32_t sure; /* bytes of the field that are known to agree with it, and are not compared */
};

struct xp_pen *xp_pen_new(struct xp_gzip *gz); /* gz is not touched until the pen is freed */
void xp_pen_free(struct xp_pen *pen);          /* NULL is fine */

/* Room for a record of up to n <= XP_PEN_RECORD_MAX bytes. */
uint8_t *xp_pen_room(struct xp_pen *pen, size_t n);
/* The place of the byte that the next record begins with. */
uint64_t xp_pen_place(const struct xp_pen *pen);
/* Takes the n bytes that were written into the room. At most 64 fields. */
void xp_pen_record(struct xp_pen *pen, size_t n, const struct xp_pen_field *fields, size_t nfields);
/* Adds a text of any kind and length, which may be like what stands at `like`. */
void xp_pen_text(struct xp_pen *pen, struct xp_span text, uint64_t like);

#endif
