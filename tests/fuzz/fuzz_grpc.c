/* tests/fuzz/fuzz_grpc.c - an answer of a profiler server, cut while it streams: the pieces in
 * which it comes change nothing, and a profile is never longer than the message that holds it.
 *
 * Input: a byte for the size of pieces, then the answer; what it begins with is a message of
 * grpc-message, too.
 */
#include <string.h>

#include "server/capture/grpc_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *ctx, struct xp_span bytes)
{
    *(uint64_t *)ctx += bytes.n;
}

static uint64_t feed(struct grpc_frame *f, struct xp_span s, size_t n)
{
    uint64_t bytes = 0;
    frame_init(f, count, &bytes);
    for (size_t at = 0; at < s.n; at += n)
        if (!frame_feed(f, xp_span_of(s.p + at, s.n - at < n ? s.n - at : n)))
            break;
    f->ctx = NULL;
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct grpc_frame whole, cut;
    char text[128], to[48];
    if (size < 1)
        return 0;
    struct xp_span s = xp_span_of(data + 1, size - 1);
    uint64_t a = feed(&whole, s, s.n ? s.n : 1), b = feed(&cut, s, 1 + data[0] % 16);
    if (a != b || whole.why != cut.why || frame_is_whole(&whole) != frame_is_whole(&cut) ||
        whole.empty != cut.empty || whole.profile != cut.profile || a != whole.profile_n ||
        a > whole.message_n)
        __builtin_trap();
    size_t n = s.n < sizeof text ? s.n : sizeof text - 1;
    if (n)
        memcpy(text, s.p, n);
    text[n] = '\0';
    grpc_text(text, to, sizeof to);
    for (size_t i = 0; i < sizeof to && to[i]; i++)
        if ((unsigned char)to[i] < 0x20)
            __builtin_trap();
    grpc_number(text);
    return 0;
}
