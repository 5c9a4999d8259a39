/* server/capture/grpc_frame.h - the answer of a unary gRPC call, cut while it streams.
 *
 * The answers that we ask for are ProfileResponse messages, whose field 8, the profile, may have
 * two gigabytes: its bytes are handed on as they come, field 7 is kept, all else is stepped over.
 * Nothing of the message is held. An answer of another type is just stepped over.
 *
 * Order      frame_init, frame_feed with bytes as they come, in pieces of any size, then
 *            frame_is_whole once the stream has ended. After the first false of frame_feed `why`
 *            says what is wrong, and more bytes are refused.
 * Limits     A message of FRAME_MESSAGE_MAX bytes: protobuf has none that are longer, whatever the
 *            prefix says. No allocation, no recursion.
 * Threads    One answer, one thread.
 */
#ifndef SERVER_CAPTURE_GRPC_FRAME_H
#define SERVER_CAPTURE_GRPC_FRAME_H

#include "lib/base/buf.h"

#define FRAME_PREFIX 5
#define FRAME_MESSAGE_MAX UINT32_C(0x7fffffff)

enum frame_state { FRAME_HEAD, FRAME_TAG, FRAME_VARINT, FRAME_LENGTH, FRAME_SKIP, FRAME_PROFILE };

struct grpc_frame {
    enum frame_state state;
    uint32_t head_n;
    uint8_t head[FRAME_PREFIX];
    uint32_t left;  /* of the message */
    uint64_t field; /* bytes that are left of a field */
    uint64_t number;
    uint64_t varint;
    unsigned shift; /* of the next bits of varint */
    const char *why;
    bool seen;          /* there was a message, maybe of no bytes */
    bool profile;       /* there was a field 8, */
    uint64_t profile_n; /* of so many bytes */
    bool empty;         /* field 7 */
    uint64_t message_n; /* bytes of the message, as the prefix says */
    void (*profile_fn)(void *ctx, struct xp_span bytes); /* may be NULL */
    void *ctx;
};

void frame_init(struct grpc_frame *f, void (*profile_fn)(void *ctx, struct xp_span bytes),
                void *ctx);
bool frame_feed(struct grpc_frame *f, struct xp_span bytes);
/* A message came, all of it, and no field is cut. */
bool frame_is_whole(const struct grpc_frame *f);

/* A request: prefix and message. b is appended to. */
void frame_put(struct xp_buf *b, struct xp_span message);

/* grpc-message as text: percent signs resolved, control characters made blanks, cut at a character
 * to the room there is. to[n], n > 0, always ends in NUL. */
void grpc_text(const char *message, char *to, size_t n);

/* A status of gRPC, 0 to 16; -1: it is none. */
int grpc_number(const char *text);

/* "1S", "600000m": what grpc-timeout says of that many ms. */
void grpc_timeout_text(uint32_t ms, char to[16]);

#endif
