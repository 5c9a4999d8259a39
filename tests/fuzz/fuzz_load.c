/* tests/fuzz/fuzz_load.c - any bytes through the whole shard: object, load, part, queries.
 *
 * What is checked stands in shard_check.h; and the same bytes compressed give the same part.
 *
 * Input: two bytes that choose a window and its width, then the profile.
 */
#include <zlib.h>

#include "tests/fuzz/shard_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *compress_all(const uint8_t *p, size_t n, size_t *out_n)
{
    z_stream z = {0};
    XP_ASSERT(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    *out_n = deflateBound(&z, n) + 32;
    uint8_t *out = malloc(*out_n);
    XP_ASSERT(out);
    z.next_in = (uint8_t *)p;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = (unsigned)*out_n;
    XP_ASSERT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    *out_n = z.total_out;
    deflateEnd(&z);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct totals plain = load(data + 2, size - 2, false, data);
    size_t n;
    uint8_t *gz = compress_all(data + 2, size - 2, &n);
    struct totals packed = load(gz, n, true, NULL);
    XP_ASSERT(plain.planes == packed.planes && plain.lines == packed.lines);
    XP_ASSERT(plain.events == packed.events && plain.digest == packed.digest);
    free(gz);
    return 0;
}
