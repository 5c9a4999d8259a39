/* shard/stats/hlo_cost.h - what one run of an HLO instruction costs on a GPU: flops and bytes.
 *
 * The rules are those of XLA's cost analysis for GPUs as XProf uses it. Elementwise operations
 * count some flops an element, a reduction as many as its function for every element that goes, a
 * dot two for every product. A fusion costs what its instructions cost, each as often as the
 * fusion's root needs it, and the bytes of its parameters and its output.
 *
 * Operations that take many cycles (exponential, ...) count these, of one device (gpu_cycles.def).
 * What is not known costs 0: most custom calls, control flow.
 */
#ifndef SHARD_HLO_COST_H
#define SHARD_HLO_COST_H

#include "shard/hlo/hlo.h"

struct hlo_cost {
    double flops;        /* as the model has them */
    double device_flops; /* 8 bit operands count half, 4 bit ones a quarter */
    uint64_t read_bytes, write_bytes;
    uint64_t other_bytes; /* in the total, but XProf's parts by memory leave them out */
    /* Of a library's matrix product, which XProf takes to cost nothing. */
    double call_flops, call_device_flops;
    uint64_t call_bytes;
};

/* False: memory is out. */
bool hlo_cost_of(const struct hlo_module *m, const struct hlo_instr *in, struct hlo_cost *out);

#endif
