#include "server/static.h"

const struct static_asset *static_find(struct xp_span path)
{
    size_t lo = 0, hi = static_assets_n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = xp_span_cmp(path, xp_span_str(static_assets[mid].path));
        if (c == 0)
            return &static_assets[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
