#include "shard/tools/tpu_counters_int.h"

#define GIB (1024.0 * 1024.0 * 1024.0)
#define ICI_BYTES_PER_S 294947368421.0526

enum {
#define COUNTER(list, name, offset, set, text) list##_##name = offset,
#include "shard/tools/tpu_counters.def"
};

static const char cycles_unit[] = "cycles", instr_unit[] = "instructions", bytes_unit[] = "bytes",
                  percent_unit[] = "percent";

struct metrics {
    enum tpu_chip chip;
    const struct tpu_counter_values *values;
    struct tpu_metric *out;
    size_t n;
    uint32_t node;
    uint64_t base; /* of the core's counters */
};

static uint64_t value_at(const struct metrics *m, uint64_t id)
{
    size_t lo = 0, hi = m->values->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->values->v[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->values->n && m->values->v[lo].id == id ? m->values->v[lo].value : 0;
}

static uint64_t tc_value(const struct metrics *m, int32_t offset)
{
    return value_at(m, m->base + (uint64_t)(int64_t)offset);
}

/* Of one counter over all places of a block, or over the inner places of its o-th outer one. */
static uint64_t block_sum(const struct metrics *m, int block, int32_t offset, int64_t outer)
{
    const struct tpu_block *k = &tpu_blocks[block];
    uint64_t sum = 0;
    for (uint32_t o = 0; o < k->outer; o++)
        for (uint32_t i = 0; i < k->inner; i++)
            if (outer < 0 || outer == o)
                sum += value_at(m, tpu_counter_id(k, o, i, offset));
    return sum;
}

static void add(struct metrics *m, const char *name, double achieved, double peak, const char *unit)
{
    if (m->n < TPU_METRICS_MAX)
        m->out[m->n++] = (struct tpu_metric){name, unit, m->node, achieved, peak};
}

/* A counter of the TensorCore on both chips. */
struct both {
    int32_t at[TPU_CHIPS];
};
#define TC(name)                                                                                   \
    {                                                                                              \
        {                                                                                          \
            tcs6_##name, tcs7_##name                                                               \
        }                                                                                          \
    }
#define TC4(name) TC(name##_0), TC(name##_1), TC(name##_2), TC(name##_3)

struct tc_metric {
    const char *name, *unit;
    uint32_t per_cycle;
    uint32_t n;
    struct both c[20];
};

static const struct tc_metric tc_before_mxu[] = {
    {"Scalar Unit", instr_unit, 2, 2, {TC(scalar_alu_instruction_0), TC(scalar_alu_instruction_1)}},
    {"Vector ALUs", instr_unit, 4, 4, {TC4(vector_alu_instruction)}},
    {"VPU Utilization",
     instr_unit,
     4,
     20,
     {TC4(vpu_valu_fadd_ops), TC4(vpu_valu_fmul_ops), TC4(vpu_valu_misc_ops), TC4(vpu_valu_int_ops),
      TC4(vpu_valu_fmac_ops)}},
    {"Vmem Stores", instr_unit, 1, 1, {TC(vst_instruction)}},
    {"Vmem Loads", instr_unit, 2, 2, {TC(vld_instruction_0), TC(vld_instruction_1)}},
    {"No MXU Busy", cycles_unit, 1, 1, {TC(mxu_busy_0)}},
    {"1 MXU Busy", cycles_unit, 1, 1, {TC(mxu_busy_1)}},
    {"2 MXU Busy", cycles_unit, 1, 1, {TC(mxu_busy_2)}},
};

static const struct tc_metric tc_after_mxu[] = {
    {"MXU matpush", cycles_unit, 2, 2, {TC(matpush_cycles_mxu_0), TC(matpush_cycles_mxu_1)}},
    {"No XLU Busy", cycles_unit, 1, 1, {TC(xlu_busy_0)}},
    {"1 XLU Busy", cycles_unit, 1, 1, {TC(xlu_busy_1)}},
    {"2 XLUs Busy", cycles_unit, 1, 1, {TC(xlu_busy_2)}},
};

static const struct tc_metric tc_xlu[] = {
    {"XLU0",
     instr_unit,
     1,
     4,
     {TC(packed_xlu_0), TC(rotate_permute_instruction_xlu_0),
      TC(rotate_permute_set_instruction_xlu_0), TC(transpose_xlu_0)}},
    {"XLU1",
     instr_unit,
     1,
     4,
     {TC(packed_xlu_1), TC(rotate_permute_instruction_xlu_1),
      TC(rotate_permute_set_instruction_xlu_1), TC(transpose_xlu_1)}},
};
#define ROWS(table) (sizeof(table) / sizeof(table)[0])

static void add_tc(struct metrics *m, const struct tc_metric *rows, size_t n, uint64_t cycles)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < rows[i].n; k++)
            sum += tc_value(m, rows[i].c[k].at[m->chip]);
        add(m, rows[i].name, (double)sum, (double)(cycles * rows[i].per_cycle), rows[i].unit);
    }
}

static double tc_average(const struct metrics *m, struct both one, struct both two)
{
    return 0.5 * (double)tc_value(m, one.at[m->chip]) + (double)tc_value(m, two.at[m->chip]);
}

/* Matrix units: cycles by type of the multiplied numbers, from the instructions' own costs. */
enum { MXU_BF16, MXU_I8, MXU_I4, MXU_F8, MXU_TYPES };
#define LMR_NARROW 2
#define LMR_BF16 4
#define VREG 8
#define VREG_F32 4

static void mxu_cycles_v6e(const struct metrics *m, int unit, uint64_t c[MXU_TYPES])
{
    int32_t u = unit * 8;
    c[MXU_BF16] = LMR_BF16 * tc_value(m, tcs6_matmul_lmr_bf16_mxu_0 + u) +
                  VREG * tc_value(m, tcs6_matmul_vreg_f8_mxu_0 + u) +
                  VREG * tc_value(m, tcs6_matmul_vreg_bf16_mxu_0 + u) +
                  VREG_F32 * tc_value(m, tcs6_matmul_vreg_f32_mxu_0 + u);
    c[MXU_I8] = LMR_NARROW * tc_value(m, tcs6_matmul_lmr_i8_mxu_0 + u) +
                VREG * tc_value(m, tcs6_matmul_vreg_i8_mxu_0 + u);
    c[MXU_I4] = LMR_NARROW * tc_value(m, tcs6_matmul_lmr_i4_mxu_0 + u) +
                VREG * tc_value(m, tcs6_matmul_vreg_i4_mxu_0 + u);
    c[MXU_F8] = 0;
}

static void mxu_cycles_v7x(const struct metrics *m, int unit, uint64_t c[MXU_TYPES])
{
    int32_t u = unit * 8;
    c[MXU_BF16] = LMR_BF16 * tc_value(m, tcs7_matmul_lmr_bf16_mxu_0 + u) +
                  VREG * tc_value(m, tcs7_matmul_vreg_bf16_mxu_0 + u) +
                  VREG_F32 * tc_value(m, tcs7_matmul_vreg_f32_mxu_0 + u);
    c[MXU_F8] = VREG * tc_value(m, tcs7_matmul_vreg_f8_mxu_0 + u);
    c[MXU_I8] = c[MXU_I4] = 0;
}

static void add_mxu(struct metrics *m, uint64_t cycles)
{
    uint64_t c[2][MXU_TYPES];
    for (int unit = 0; unit < 2; unit++) {
        if (m->chip == TPU_V6E)
            mxu_cycles_v6e(m, unit, c[unit]);
        else
            mxu_cycles_v7x(m, unit, c[unit]);
        add(m, unit ? "MXU1" : "MXU0",
            (double)(c[unit][MXU_BF16] + c[unit][MXU_I8] + c[unit][MXU_I4] + c[unit][MXU_F8]),
            (double)cycles, cycles_unit);
    }
    double peak = (double)(cycles * 2);
    add(m, "MXU BF16", (double)(c[0][MXU_BF16] + c[1][MXU_BF16]), peak, cycles_unit);
    if (m->chip == TPU_V6E) {
        add(m, "MXU I8", (double)(c[0][MXU_I8] + c[1][MXU_I8]), peak, cycles_unit);
        add(m, "MXU I4", (double)(c[0][MXU_I4] + c[1][MXU_I4]), peak, cycles_unit);
    } else {
        add(m, "MXU E4M3 + E5M2", (double)(c[0][MXU_F8] + c[1][MXU_F8]), peak, cycles_unit);
    }
}

static void add_throttle(struct metrics *m, int core, uint64_t cycles)
{
    uint64_t base = tpu_blocks[core ? BLOCK_V7X_PWRMGR1 : BLOCK_V7X_PWRMGR0].base;
    double peak = (double)cycles;
    add(m, "Clocks Skipped", (double)value_at(m, base + pwrmgr7_clocks_skipped), peak, cycles_unit);
    add(m, "Ext Throttle Clocks Skipped",
        (double)value_at(m, base + pwrmgr7_ext_throttle_clocks_skipped), peak, cycles_unit);
    add(m, "LDIDT Droop Clocks Skipped",
        (double)value_at(m, base + pwrmgr7_ldidt_droop_clocks_skipped), peak, cycles_unit);
}

/* Cycles that the power manager counted, throttled ones included. */
static uint64_t power_cycles(const struct metrics *m, int core)
{
    return value_at(m, tpu_blocks[core ? BLOCK_V7X_PWRMGR1 : BLOCK_V7X_PWRMGR0].base +
                           (uint64_t)(int64_t)pwrmgr7_cycle_count);
}

static void add_tensor_core(struct metrics *m, int core)
{
    static const struct both mxu1 = TC(mxu_busy_1), mxu2 = TC(mxu_busy_2), xlu1 = TC(xlu_busy_1),
                             xlu2 = TC(xlu_busy_2);
    bool v6e = m->chip == TPU_V6E;
    uint64_t cycles = v6e ? tc_value(m, tcs6_cycles) : power_cycles(m, core);
    if (!cycles)
        return;
    if (!v6e)
        add_throttle(m, core, cycles);
    add_tc(m, tc_before_mxu, ROWS(tc_before_mxu), cycles);
    add(m, "Avg MXU Busy", tc_average(m, mxu1, mxu2), (double)cycles, cycles_unit);
    add_mxu(m, cycles);
    add_tc(m, tc_after_mxu, ROWS(tc_after_mxu), cycles);
    add(m, "Avg XLU Busy", tc_average(m, xlu1, xlu2), (double)cycles, cycles_unit);
    add_tc(m, tc_xlu, ROWS(tc_xlu), v6e ? cycles / 4 : cycles);
}

static uint64_t hbm_beats(const struct metrics *m, int core, bool write)
{
    int block = core ? BLOCK_V7X_HBMC1 : BLOCK_V7X_HBMC0;
    if (m->chip == TPU_V6E) {
        block = BLOCK_V6E_HBMC;
        return write ? block_sum(m, block, hbmc6_wr_req_ps0, -1) +
                           block_sum(m, block, hbmc6_wr_req_ps1, -1) +
                           block_sum(m, block, hbmc6_partial_write_req_ps0, -1) +
                           block_sum(m, block, hbmc6_partial_write_req_ps1, -1)
                     : block_sum(m, block, hbmc6_rd_resp_ps0, -1) +
                           block_sum(m, block, hbmc6_rd_resp_ps1, -1);
    }
    return write ? block_sum(m, block, hbmc7_wr_req_ps0, -1) +
                       block_sum(m, block, hbmc7_wr_req_ps1, -1) +
                       block_sum(m, block, hbmc7_partial_write_req_ps0, -1) +
                       block_sum(m, block, hbmc7_partial_write_req_ps1, -1)
                 : block_sum(m, block, hbmc7_rd_resp_ps0, -1) +
                       block_sum(m, block, hbmc7_rd_resp_ps1, -1);
}

#define HBM_BEAT_BYTES 32

static void add_hbm(struct metrics *m, int core)
{
    static const double hz[] = {1.75e9, 1.9e9}, gib_per_s[] = {1525.5, 3433.0};
    uint64_t rd = hbm_beats(m, core, false) * HBM_BEAT_BYTES;
    uint64_t wr = hbm_beats(m, core, true) * HBM_BEAT_BYTES;
    uint64_t cycles = tc_value(m, m->chip == TPU_V6E ? tcs6_cycles : tcs7_cycles);
    if (!cycles)
        return;
    m->node = 0;
    add(m, core ? "HBM Rd+Wr - core 1" : "HBM Rd+Wr - core 0", (double)(rd + wr),
        gib_per_s[m->chip] * GIB * ((double)cycles / hz[m->chip]), bytes_unit);
    m->node = (uint32_t)core;
    if (rd + wr) {
        add(m, "HBM Read Ratio", (double)rd, (double)(rd + wr), percent_unit);
        add(m, "HBM Write Ratio", (double)wr, (double)(rd + wr), percent_unit);
    }
}

#define ICI_FLIT_BYTES 128

/* Of the whole chip, but XProf lists it for every core; its clock is taken as 1 GHz. */
static void add_ici(struct metrics *m)
{
    bool v6e = m->chip == TPU_V6E;
    int block = v6e ? BLOCK_V6E_ICR : BLOCK_V7X_ICR;
    uint64_t rd, wr, cycles;
    if (v6e) {
        rd = block_sum(m, block, icr6_bn_rd_req_0_insertion_count, -1) +
             block_sum(m, block, icr6_bn_rd_req_1_insertion_count, -1);
        wr = block_sum(m, block, icr6_bn_wr_req_0_insertion_count, -1) +
             block_sum(m, block, icr6_bn_wr_req_1_insertion_count, -1);
        cycles = value_at(m, tpu_blocks[BLOCK_V6E_TCS].base + tcs6_cycles);
    } else {
        rd = block_sum(m, block, icr7_bn_rd_req_0_insertion_count, -1);
        wr = block_sum(m, block, icr7_bn_wr_req_0_insertion_count, -1);
        cycles = power_cycles(m, 0);
    }
    if (!cycles)
        return;
    double peak = ICI_BYTES_PER_S * ((double)cycles / 1e9);
    m->node = 0;
    add(m, "ICI (Read)", (double)(rd * ICI_FLIT_BYTES), peak, bytes_unit);
    add(m, "ICI (Write)", (double)(wr * ICI_FLIT_BYTES), peak, bytes_unit);
}

/* A slot of a SparseCore's 16 tiles, as XProf spells it for either chip. */
struct sc_metric {
    const char *name[TPU_CHIPS];
    struct both at;
    bool vector; /* counted by the tile's vector half */
};
#define TEC(name)                                                                                  \
    {                                                                                              \
        {                                                                                          \
            sct6_tec_##name, sctd7_##name                                                          \
        }                                                                                          \
    }
#define VEC(name)                                                                                  \
    {                                                                                              \
        {                                                                                          \
            sct6_vector_##name, sctc7_##name                                                       \
        }                                                                                          \
    }

static const struct sc_metric sc_metrics[] = {
    {{"TEC Scalar Issue", "TEC Scalar Issue"}, TEC(tec_scalar_issue), false},
    {{"TEC Scalar Issue: S0 slot", "TEC Scalar Issue: S0 slot"}, TEC(tec_s0_instruction), false},
    {{"TEC Scalar Issue: S1 slot", "TEC Scalar Issue: S1 slot"}, TEC(tec_s1_instruction), false},
    {{"TEC Scalar Issue: Smisc slot", "TEC Scalar Issue: Smisc slot"},
     TEC(tec_smisc_instruction),
     false},
    {{"SC Vector Issue", "SC Vector Issue"}, VEC(vector_issue), true},
    {{"SC Vector Issue:V0 Slot", "SC Vector Issue: V0 Slot"}, VEC(v0_instruction), true},
    {{"SC Vector Issue: V1 Slot", "SC Vector Issue: V1 Slot"}, VEC(v1_instruction), true},
    {{"SC Vector Issue: V2 Slot", "SC Vector Issue: V2 Slot"}, VEC(v2_instruction), true},
    {{"SC Vector Issue: VLD Slot", "SC Vector Issue: VLD Slot"}, VEC(vld_instruction), true},
    {{"SC Vector Issue: VST Slot", "SC Vector Issue: VST Slot"}, VEC(vst_instruction), true},
    {{"SC Vector Issue:VEX Slot", "SC Vector Issue: VEX Slot"}, VEC(vex_instruction), true},
    {{"SC Vector Issue:VRES Slot", "SC Vector Issue: VRES Slot"}, VEC(vres_instruction), true},
};

/* Where a SparseCore's counters are. */
struct sc_place {
    int tec, vector; /* blocks */
    int64_t outer;   /* of theirs, or -1: they are of this core alone */
    uint64_t cycles; /* of the tiles: a counter's number */
    uint64_t scs;    /* base of the sequencer's */
    uint64_t scs_cycles;
};

static void add_sparse_core(struct metrics *m, const struct sc_place *at)
{
    static const struct {
        const char *name;
        struct both at;
    } sequencer[] = {
        {"SCS Scalar Issue", {{scs6_scalar_issue, scs7_scalar_issue}}},
        {"SCS: S0 Slot", {{scs6_s0_instruction, scs7_s0_instruction}}},
        {"SCS: S1 Slot", {{scs6_s1_instruction, scs7_s1_instruction}}},
        {"SCS: Smisc Slot", {{scs6_smisc_instruction, scs7_smisc_instruction}}},
    };
    double peak = (double)(value_at(m, at->cycles) * 16);
    for (size_t i = 0; i < ROWS(sc_metrics); i++) {
        const struct sc_metric *s = &sc_metrics[i];
        int block = s->vector ? at->vector : at->tec;
        add(m, s->name[m->chip], (double)block_sum(m, block, s->at.at[m->chip], at->outer), peak,
            instr_unit);
    }
    for (size_t i = 0; i < ROWS(sequencer); i++)
        add(m, sequencer[i].name,
            (double)value_at(m, at->scs + (uint64_t)(int64_t)sequencer[i].at.at[m->chip]),
            (double)value_at(m, at->scs_cycles), instr_unit);
}

static struct sc_place sc_place_v6e(uint32_t core)
{
    const struct tpu_block *scs = &tpu_blocks[BLOCK_V6E_SCS];
    return (struct sc_place){
        .tec = BLOCK_V6E_SCT_TEC,
        .vector = BLOCK_V6E_SCT_VECTOR,
        .outer = core,
        .cycles = tpu_blocks[core ? BLOCK_V6E_SCT1_CYCLES : BLOCK_V6E_SCT0_CYCLES].base,
        .scs = scs->base + (uint64_t)core * scs->istride,
        .scs_cycles = tpu_blocks[core ? BLOCK_V6E_SCS1_CYCLES : BLOCK_V6E_SCS0_CYCLES].base};
}

static struct sc_place sc_place_v7x(uint32_t core)
{
    static const struct {
        int tec, vector, cycles, scs;
    } at[] = {
        {BLOCK_V7X_SCTD00, BLOCK_V7X_SCTC00, BLOCK_V7X_SCTD_CYCLES00, BLOCK_V7X_SCS00},
        {BLOCK_V7X_SCTD01, BLOCK_V7X_SCTC01, BLOCK_V7X_SCTD_CYCLES01, BLOCK_V7X_SCS01},
        {BLOCK_V7X_SCTD10, BLOCK_V7X_SCTC10, BLOCK_V7X_SCTD_CYCLES10, BLOCK_V7X_SCS10},
        {BLOCK_V7X_SCTD11, BLOCK_V7X_SCTC11, BLOCK_V7X_SCTD_CYCLES11, BLOCK_V7X_SCS11},
    };
    return (struct sc_place){.tec = at[core].tec,
                             .vector = at[core].vector,
                             .outer = -1,
                             .cycles = tpu_blocks[at[core].cycles].base,
                             .scs = tpu_blocks[at[core].scs].base,
                             .scs_cycles = tpu_blocks[at[core].scs].base + scs7_cycles};
}

size_t tpu_metrics(enum tpu_chip chip, const struct tpu_counter_values *values,
                   struct tpu_metric out[TPU_METRICS_MAX])
{
    static const int tcs[TPU_CHIPS][2] = {{BLOCK_V6E_TCS, BLOCK_V6E_TCS},
                                          {BLOCK_V7X_TCS0, BLOCK_V7X_TCS1}};
    struct metrics m = {.chip = chip, .values = values, .out = out};
    bool v6e = chip == TPU_V6E;
    for (int core = 0; core < (v6e ? 1 : 2); core++) {
        m.base = tpu_blocks[tcs[chip][core]].base;
        m.node = (uint32_t)core;
        add_tensor_core(&m, core);
        add_hbm(&m, core);
        add_ici(&m);
    }
    for (uint32_t core = 0; core < (v6e ? 2 : 4); core++) {
        struct sc_place at = v6e ? sc_place_v6e(core) : sc_place_v7x(core);
        m.node = core;
        add_sparse_core(&m, &at);
    }
    return m.n;
}
