#include "lib/base/json_out.h"
#include "shard/tools/tpu_counters_int.h"

enum list {
    LIST_tcs6,
    LIST_hbmc6,
    LIST_icr6,
    LIST_sct6_tec,
    LIST_scs6_cycles,
    LIST_sct6_cycles,
    LIST_scs6,
    LIST_sct6_vector,
    LIST_pwrmgr7,
    LIST_tcs7,
    LIST_hbmc7,
    LIST_scs7,
    LIST_sctc7,
    LIST_sctd7_cycles,
    LIST_sctd7,
    LIST_icr7,
    LIST_sctc_cycles7,
    LIST_tcs_more7,
    LIST_scs_more7,
    LIST_sctd_more7,
    LIST_sctc_more7,
    LIST_cmnur7,
    LIST_links7
};

const struct tpu_block tpu_blocks[BLOCK_COUNT] = {
#define BLOCK(id, chip, prefix, list, base, outer, ostride, inner, istride, by_name)               \
    {chip, prefix, LIST_##list, base, outer, ostride, inner, istride, by_name},
#include "shard/tools/tpu_counters.def"
};

#define NONE UINT16_MAX

static const struct counter {
    const char *name;
    int32_t offset;
    uint16_t list, set, text;
} counters[] = {
#define COUNTER(list, name, offset, set, text) {#name, offset, LIST_##list, set, text},
#include "shard/tools/tpu_counters.def"
};
#define NCOUNTERS (sizeof counters / sizeof counters[0])

static const char *const sets[] = {
#define SET(words) words,
#include "shard/tools/tpu_counter_texts.def"
};

static const char *const texts[] = {
#define TEXT(words) words,
#include "shard/tools/tpu_counter_texts.def"
};

bool tpu_chip_of(struct xp_span device_type, enum tpu_chip *chip)
{
    static const char *const types[TPU_CHIPS] = {"TPU v6 Lite", "TPU v7x"};
    for (int i = 0; i < TPU_CHIPS; i++)
        if (xp_span_eq(device_type, xp_span_str(types[i])))
            return *chip = (enum tpu_chip)i, true;
    return false;
}

/* --- names --- */

static void put_prefix(struct xp_buf *b, const char *prefix, uint32_t o, uint32_t i, bool both)
{
    uint32_t numbers[2] = {both ? o : i, i};
    size_t n = 0;
    xp_buf_str(b, "vf_chip_");
    for (; *prefix; prefix++) {
        if (prefix[0] == '%' && n < 2) {
            xp_text_u64(b, numbers[n++]);
            prefix++;
        } else {
            xp_buf_byte(b, (uint8_t)*prefix);
        }
    }
}

static void put_counter(struct xp_json *j, const struct tpu_block *k, uint32_t o, uint32_t i,
                        const struct counter *c)
{
    struct xp_buf name;
    xp_buf_init(&name, 512);
    put_prefix(&name, k->prefix, o, i, strchr(k->prefix, '%') != strrchr(k->prefix, '%'));
    xp_buf_str(&name, c->name);
    xp_json_obj(j);
    xp_json_key(j, "name"), xp_json_span(j, xp_buf_all(&name));
    xp_json_key(j, "val");
    xp_json_u64(j, tpu_counter_id(k, o, i, c->offset));
    xp_json_obj_end(j);
    xp_buf_fini(&name);
}

/* The k-th of 0..n-1 in the order of "k_" as texts: 0, 10, 11, ..., 1, 2, ... (n <= 20). */
static uint32_t by_text(uint32_t k, uint32_t n)
{
    uint32_t teens = n > 10 ? n - 10 : 0;
    if (k == 0)
        return 0;
    return k <= teens ? 9 + k : k - teens;
}

static void put_names(struct xp_json *j, const struct tpu_block *k, uint32_t o, uint32_t i)
{
    for (size_t c = 0; c < NCOUNTERS; c++)
        if (counters[c].list == k->list)
            put_counter(j, k, o, i, &counters[c]);
}

static void put_places(struct xp_json *j, const struct tpu_block *k, const struct counter *c)
{
    for (uint32_t o = 0; o < k->outer; o++)
        for (uint32_t i = 0; i < k->inner; i++) {
            uint32_t at = by_text(i, k->inner);
            if (c)
                put_counter(j, k, o, at, c);
            else
                put_names(j, k, o, at);
        }
}

static void put_block(struct xp_json *j, const struct tpu_block *k)
{
    if (!k->by_name) {
        put_places(j, k, NULL);
        return;
    }
    for (size_t c = 0; c < NCOUNTERS; c++)
        if (counters[c].list == k->list)
            put_places(j, k, &counters[c]);
}

enum xp_status tpu_counter_names(struct xp_span chip, struct out *out, struct xp_error *err)
{
    struct xp_json j;
    bool v6e = xp_span_eq(chip, XP_SPAN_LIT("v6e"));
    if (!chip.n)
        return xp_fail(err, XP_INTERNAL, 0,
                       "device_type is required for perf_counters with names_only");
    if (!v6e && !xp_span_eq(chip, XP_SPAN_LIT("v7x")))
        return xp_fail(err, XP_INTERNAL, 0, "Unsupported device_type: %.*s",
                       (int)(chip.n < 100 ? chip.n : 100), (const char *)chip.p);
    xp_json_init(&j, &out->text);
    xp_json_arr(&j);
    for (size_t i = 0; i < BLOCK_COUNT; i++)
        if (tpu_blocks[i].chip == (v6e ? TPU_V6E : TPU_V7X)) {
            put_block(&j, &tpu_blocks[i]);
            out_flush(out);
        }
    xp_json_arr_end(&j);
    return XP_OK;
}

/* --- words --- */

/* The rest of name behind the block's prefix, whatever its places' numbers; false if it begins
 * otherwise. */
static bool behind_prefix(struct xp_span name, const char *prefix, struct xp_span *rest)
{
    size_t i = 0;
    for (; *prefix; prefix++) {
        if (prefix[0] == '%') {
            size_t digits = i;
            while (i < name.n && name.p[i] >= '0' && name.p[i] <= '9')
                i++;
            if (i == digits)
                return false;
            prefix++;
        } else if (i == name.n || name.p[i++] != (uint8_t)*prefix) {
            return false;
        }
    }
    *rest = xp_span_of(name.p + i, name.n - i);
    return true;
}

bool tpu_counter_words(struct xp_span name, const char **set, const char **text)
{
    static const struct xp_span chip = {(const uint8_t *)"vf_chip_", 8};
    struct xp_span rest;
    if (!xp_span_starts(name, chip))
        return false;
    name = xp_span_of(name.p + chip.n, name.n - chip.n);
    for (size_t b = 0; b < BLOCK_COUNT; b++) {
        if (!behind_prefix(name, tpu_blocks[b].prefix, &rest))
            continue;
        for (size_t i = 0; i < NCOUNTERS; i++)
            if (counters[i].list == tpu_blocks[b].list && counters[i].text != NONE &&
                xp_span_eq(rest, xp_span_str(counters[i].name))) {
                *set = sets[counters[i].set];
                *text = texts[counters[i].text];
                return true;
            }
    }
    return false;
}
