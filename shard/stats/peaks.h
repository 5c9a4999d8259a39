/* shard/stats/peaks.h - what a device could do at most: one table for all tools (peaks.def).
 *
 * Figures are of one device as a profile shows it: a TensorCore of TPU v2, v3, v7x, a chip of
 * other TPUs, a GPU. A device is known by its name. What the table does not know is taken from
 * the profile, if that says it; --peak KEY=VALUE (peak= of a request) goes before both.
 */
#ifndef SHARD_PEAKS_H
#define SHARD_PEAKS_H

#include "lib/base/status.h"
#include "shard/stats/op_stats.h"

struct peak_override {
    char key[16];
    double value;
};

/* "flops=9.18e14", "hbm=1.6e12". XP_BAD_REQUEST with a sentence. */
enum xp_status peak_parse(struct xp_span text, struct peak_override *out, struct xp_error *err);

struct device_peaks {
    double flops, hbm;                 /* a second; 0: not known */
    double fp32, bf16, int8, fp8;      /* by data type, from the table; 0: it has none */
    const char *name;                  /* row of the table; NULL: none */
    const char *source;                /* where its figures are from */
    const char *flops_from, *hbm_from; /* "table", "profile", "--peak"; NULL: not known */
};

/* chip: what the device calls itself. from_profile: what the profile says. */
void device_peaks_of(struct xp_span chip, const struct op_limits *from_profile,
                     const struct peak_override *o, uint32_t n, struct device_peaks *out);

#endif
