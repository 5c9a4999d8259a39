#include "shard/stats/peaks.h"

#include <stdio.h>
#include <stdlib.h>

static const struct row {
    const char *name, *match, *not ;
    double fp32, bf16, int8, fp8, hbm; /* tera, tera, tera, tera, giga */
    const char *source;
} rows[] = {
#define PEAK(name, match, not, fp32, bf16, int8, fp8, hbm, source)                                 \
    {name, match, not, fp32, bf16, int8, fp8, hbm, source},
#include "shard/stats/peaks.def"
#undef PEAK
};

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

static bool holds(struct xp_span s, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n && i + n <= s.n; i++) {
        size_t k = 0;
        while (k < n && lower(s.p[i + k]) == lower((uint8_t)what[k]))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static const struct row *find(struct xp_span chip)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (holds(chip, rows[i].match) && !(rows[i].not [0] && holds(chip, rows[i].not )))
            return &rows[i];
    return NULL;
}

enum xp_status peak_parse(struct xp_span text, struct peak_override *out, struct xp_error *err)
{
    const uint8_t *eq = text.n ? memchr(text.p, '=', text.n) : NULL;
    size_t n = eq ? (size_t)(eq - text.p) : 0;
    char value[40], *end = value;
    *out = (struct peak_override){0};
    if (eq && n < sizeof out->key && text.n - n - 1 < sizeof value) {
        memcpy(out->key, text.p, n);
        memcpy(value, eq + 1, text.n - n - 1);
        value[text.n - n - 1] = 0;
        out->value = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : 0;
    }
    if ((strcmp(out->key, "flops") == 0 || strcmp(out->key, "hbm") == 0) && end > value && !*end &&
        out->value > 0 && out->value < 1e24)
        return XP_OK;
    return xp_fail(
        err, XP_BAD_REQUEST, 0,
        "a peak is flops=VALUE or hbm=VALUE, a second and device, such as flops=9.18e14");
}

static void from_table(const struct row *row, struct device_peaks *out)
{
    out->name = row->name;
    out->source = row->source;
    out->fp32 = row->fp32 * 1e12;
    out->bf16 = row->bf16 * 1e12;
    out->int8 = row->int8 * 1e12;
    out->fp8 = row->fp8 * 1e12;
    out->flops = out->bf16;
    out->hbm = row->hbm * 1e9;
    out->flops_from = out->hbm_from = "table";
}

void device_peaks_of(struct xp_span chip, const struct op_limits *l, const struct peak_override *o,
                     uint32_t n, struct device_peaks *out)
{
    const struct row *row = find(chip);
    *out = (struct device_peaks){0};
    if (row)
        from_table(row, out);
    if (!out->flops && l->peak_tflops > 0) {
        out->flops = l->peak_tflops * 1e12;
        out->flops_from = "profile";
    }
    if (!out->hbm && l->gbs[OP_BW_HBM] > 0) {
        out->hbm = l->gbs[OP_BW_HBM] * 1e9;
        out->hbm_from = "profile";
    }
    for (uint32_t i = n; i--;) { /* the first of a key counts */
        bool flops = strcmp(o[i].key, "flops") == 0;
        *(flops ? &out->flops : &out->hbm) = o[i].value;
        *(flops ? &out->flops_from : &out->hbm_from) = "--peak";
    }
}
