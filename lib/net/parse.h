/* lib/net/parse.h - an answer of HTTP/1.1 as it comes in: its head, and where its body is.
 *
 * Order      net_parse_init, then for bytes that came net_parse_step until it wants more of them:
 *            PARSE_BODY says that the bytes begin with p->piece bytes of the body, which are passed
 *            over by net_parse_took once they have been used. net_parse_init again for the next.
 * Limits     A head of PARSE_HEAD_MAX bytes and PARSE_FIELDS_MAX fields; more is PARSE_BROKEN.
 * Threads    One answer, one thread.
 */
#ifndef NET_PARSE_H
#define NET_PARSE_H

#include "lib/base/buf.h"

#define PARSE_HEAD_MAX ((size_t)64 << 10)
#define PARSE_FIELDS_MAX 64

enum parse_state {
    PARSE_HEAD,
    PARSE_LENGTH,
    PARSE_CHUNK_SIZE,
    PARSE_CHUNK,
    PARSE_CHUNK_END,
    PARSE_TRAILER,
    PARSE_TO_THE_END, /* of the connection */
    PARSE_OVER,
};

enum parse_says { PARSE_MORE, PARSE_BODY, PARSE_DONE, PARSE_BROKEN };

struct parse_field {
    const char *name, *value;
};

struct net_parse {
    enum parse_state state;
    struct xp_buf head; /* cut into texts once it is whole */
    struct parse_field fields[PARSE_FIELDS_MAX];
    size_t n_fields;
    int code;               /* 0: no head yet */
    bool keep;              /* the connection may be used again */
    uint64_t left;          /* of the body, or of the chunk */
    size_t piece;           /* body bytes that are there */
    size_t line_n;          /* of a chunk's size, or a trailer */
    bool digits, extension; /* on a chunk's line: there were some; after ';' */
    bool cr;                /* outside of head and body: the byte before was one */
};

void net_parse_init(struct net_parse *p);
void net_parse_fini(struct net_parse *p);
enum parse_says net_parse_step(struct net_parse *p, struct xp_span *bytes);
void net_parse_took(struct net_parse *p, struct xp_span *bytes, size_t n);
/* The connection has ended: whether that is where the answer ends. */
bool net_parse_end(const struct net_parse *p);
/* NULL: there is none. */
const char *net_parse_field(const struct net_parse *p, const char *name);

#endif
