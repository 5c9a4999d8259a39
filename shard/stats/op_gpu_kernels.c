#include "shard/stats/op_gpu_kernels.h"

#include <stdlib.h>

#include "lib/base/hash.h"
#include "shard/derive/framework_op.h"

void gpu_kernels_init(struct gpu_kernels *k, struct op_build *b)
{
    *k = (struct gpu_kernels){.b = b};
}

void gpu_kernels_fini(struct gpu_kernels *k)
{
    vec_free(&k->kernels);
    free(k->slots);
    free(k->known);
}

/* --- instructions --- */

static bool grow_known(struct gpu_kernels *k)
{
    size_t n = k->known_mask ? (k->known_mask + 1) * 2 : 256;
    struct gpu_instruction **v = calloc(n, sizeof(struct gpu_instruction *));
    if (!v)
        return false;
    for (size_t i = 0; k->known && i <= k->known_mask; i++) {
        if (!k->known[i])
            continue;
        size_t at = xp_hash_u64(k->known[i]->program ^ xp_hash(k->known[i]->name)) & (n - 1);
        while (v[at])
            at = (at + 1) & (n - 1);
        v[at] = k->known[i];
    }
    free(k->known);
    k->known = v;
    k->known_mask = n - 1;
    return true;
}

enum xp_status gpu_instruction_get(struct gpu_kernels *k, uint64_t program, struct xp_span name,
                                   const struct gpu_instruction **out)
{
    if (k->nknown * 2 >= k->known_mask && !grow_known(k))
        return op_busy(k->b);
    size_t at = xp_hash_u64(program ^ xp_hash(name)) & k->known_mask;
    for (; k->known[at]; at = (at + 1) & k->known_mask)
        if (k->known[at]->program == program && xp_span_eq(k->known[at]->name, name)) {
            *out = k->known[at];
            return XP_OK;
        }
    struct gpu_instruction *x = xp_arena_zalloc(k->b->scratch, sizeof *x);
    if (!x)
        return op_busy(k->b);
    x->program = program;
    x->name = name;
    XP_TRY(op_hlo_instruction(k->b, program, name, &x->op, &x->framework_op, &x->found));
    k->known[at] = x;
    k->nknown++;
    *out = x;
    return XP_OK;
}

/* --- what a launch says --- */

static bool number(struct xp_span s, uint32_t *v)
{
    uint64_t x = 0;
    if (!s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        x = x * 10 + (uint64_t)(s.p[i] - '0');
        if (x > UINT32_MAX)
            return false;
    }
    *v = (uint32_t)x;
    return true;
}

static struct xp_span next_of(struct xp_span *rest, const char *separators)
{
    size_t n = 0;
    while (n < rest->n && !(rest->p[n] && strchr(separators, rest->p[n])))
        n++;
    struct xp_span token = xp_span_of(rest->p, n);
    *rest = n < rest->n ? xp_span_of(rest->p + n + 1, rest->n - n - 1) : (struct xp_span){0};
    return token;
}

/* "x,y,z"; all or nothing. */
static void dims(struct xp_span s, uint32_t d[3])
{
    uint32_t v[3];
    for (int i = 0; i < 3; i++)
        if (!number(next_of(&s, ","), &v[i]))
            return;
    if (!s.p)
        memcpy(d, v, sizeof v);
}

static void percent(struct xp_span s, float *out)
{
    char text[32], *end;
    if (!s.n || s.n >= sizeof text)
        return;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    double v = strtod(text, &end);
    if (!*end)
        *out = (float)v;
}

void gpu_launch_params(struct xp_span details, struct op_kernel *out)
{
    for (int i = 0; i < 3; i++)
        out->block[i] = out->grid[i] = 1;
    while (details.n) {
        struct xp_span value = next_of(&details, " \n"), key = next_of(&value, ":");
        if (!value.p || memchr(value.p, ':', value.n))
            continue;
        if (xp_span_eq(key, XP_SPAN_LIT("regs")))
            number(value, &out->registers);
        else if (xp_span_eq(key, XP_SPAN_LIT("static_shared")))
            number(value, &out->static_shmem);
        else if (xp_span_eq(key, XP_SPAN_LIT("dynamic_shared")))
            number(value, &out->dynamic_shmem);
        else if (xp_span_eq(key, XP_SPAN_LIT("block")))
            dims(value, out->block);
        else if (xp_span_eq(key, XP_SPAN_LIT("grid")))
            dims(value, out->grid);
        else if (xp_span_eq(key, XP_SPAN_LIT("occ_pct")))
            percent(value, &out->occupancy);
    }
}

static bool contains(struct xp_span s, const char *what)
{
    return s.n && memmem(s.p, s.n, what, strlen(what));
}

static bool contains_one(struct xp_span s, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (contains(s, parts[i]))
            return true;
    return false;
}

/* Names of kernels that run on tensor cores: volta_h884gemm, turing_fp16_s1688cudnn_fp16; on AMD's
 * matrix cores (as recorded answers have it): those of hipBLASLt with MI in their name, products
 * made by Triton, fused attention. */
bool gpu_kernel_uses_tensor_core(struct xp_span kernel)
{
    static const char *const nvidia[] = {"16816",
                                         "c1688",
                                         "conv1x1",
                                         "conv2d_c1_k1",
                                         "dgrad_1x1_stride_2x2",
                                         "direct_group",
                                         "first_layer_wgrad_kernel",
                                         "h1688",
                                         "h884",
                                         "hmma",
                                         "i16832",
                                         "i8816",
                                         "s884",
                                         "s1688",
                                         "xmma_gemm",
                                         "xmma_implicit_gemm",
                                         "xmma_sparse_conv",
                                         "xmma_sparse_gemm",
                                         "xmma_warp_specialized_implicit_gemm"};
    static const char *const amd[] = {"_MI16x16x", "_MI32x32x", "FmhaFwdKernel",
                                      "FmhaBwdDQDKDVKernel"};
    return contains_one(kernel, nvidia, sizeof nvidia / sizeof *nvidia) ||
           contains_one(kernel, amd, sizeof amd / sizeof *amd) ||
           (contains(kernel, "gemm_fusion") && xp_span_ends(kernel, XP_SPAN_LIT(".kd")));
}

bool gpu_op_is_eligible(struct xp_span op)
{
    static const char *const ends[] = {"Conv2D",
                                       "Conv2DBackpropFilter",
                                       "Conv2DBackpropInput",
                                       "Conv3D",
                                       "DepthwiseConv2dNative",
                                       "DepthwiseConv2dNativeBackpropFilter",
                                       "DepthwiseConv2dNativeBackpropInput",
                                       "/MatMul",
                                       "FusedMatMul",
                                       "/CudnnRNN",
                                       "XlaDot",
                                       "XlaDotV2",
                                       "dot_general",
                                       "conv_general_dilated"};
    static const char *const parts[] = {"BatchMatMul", "CudnnRNNV", "CudnnRNNForward",
                                        "CudnnRNNBackprop"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (xp_span_ends(op, xp_span_str(ends[i])))
            return true;
    return contains_one(op, parts, sizeof parts / sizeof *parts);
}

/* "ab,bc->ac": two inputs. */
static bool einsum_is_eligible(struct xp_span equation)
{
    const uint8_t *arrow = equation.n ? memmem(equation.p, equation.n, "->", 2) : NULL;
    size_t commas = 0;
    if (!arrow)
        return false;
    size_t inputs = (size_t)(arrow - equation.p);
    if (memmem(arrow + 2, equation.n - inputs - 2, "->", 2))
        return false;
    for (size_t i = 0; i < inputs; i++)
        commas += equation.p[i] == ',';
    return commas == 1;
}

/* --- kernels --- */

static uint64_t kernel_hash(const struct op_kernel *x)
{
    uint64_t h = xp_hash(x->name) ^ xp_hash_u64(xp_hash(x->op_name));
    for (int i = 0; i < 3; i++)
        h = xp_hash_u64(h ^ x->grid[i] ^ (uint64_t)x->block[i] << 32);
    return xp_hash_u64(h ^ x->registers ^ (uint64_t)x->dynamic_shmem << 32);
}

static bool grow(struct gpu_kernels *k)
{
    size_t n = k->mask ? (k->mask + 1) * 2 : 256;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < k->kernels.n; i++) {
        size_t at = kernel_hash(&VEC(k->kernels, struct op_kernel)[i]) & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(k->slots);
    k->slots = slots;
    k->mask = n - 1;
    return true;
}

static void attribute(const struct gpu_launch *l, struct op_kernel *x)
{
    if (l->tf_op.n) {
        x->op_name = framework_op_parse(l->tf_op).name;
        x->eligible =
            einsum_is_eligible(l->equation) || gpu_op_is_eligible(x->op_name) || x->tensor_core;
    }
    if (l->hlo && l->hlo->found) {
        x->op_name = framework_op_parse(l->hlo->framework_op).name;
        x->eligible |= gpu_op_is_eligible(x->op_name);
    }
}

static void add_to_sums(struct op_kernel_sums *s, const struct op_kernel *x, uint32_t bin)
{
    s->total_ns += x->total_ns;
    s->tensor_ns += x->tensor_core ? x->total_ns : 0;
    s->unnamed_ns += x->op_name.n ? 0 : x->total_ns;
    s->occurrences += x->occurrences;
    s->bins[bin] += x->occurrences;
}

bool gpu_kernel_add(struct gpu_kernels *k, const struct gpu_launch *l)
{
    uint32_t bin = op_kernel_bin(l->ns);
    struct op_kernel x = {.name = l->name, .occurrences = l->begins};
    x.total_ns = x.min_ns = x.max_ns = l->ns;
    x.tensor_core = gpu_kernel_uses_tensor_core(l->name);
    gpu_launch_params(l->details, &x);
    attribute(l, &x);
    add_to_sums(&k->sums, &x, bin);
    if (k->kernels.n * 2 >= k->mask && !grow(k))
        return false;
    size_t at = kernel_hash(&x) & k->mask;
    for (; k->slots[at]; at = (at + 1) & k->mask) {
        struct op_kernel *o = &VEC(k->kernels, struct op_kernel)[k->slots[at] - 1];
        if (op_kernel_compare(o, &x))
            continue;
        o->occurrences += l->begins;
        o->bins[bin] += l->begins;
        o->total_ns += l->ns;
        o->min_ns = l->ns < o->min_ns ? l->ns : o->min_ns;
        o->max_ns = l->ns > o->max_ns ? l->ns : o->max_ns;
        return true;
    }
    struct op_kernel *to = vec_push(&k->kernels, sizeof *to);
    if (!to)
        return false;
    *to = x;
    to->bins[bin] = l->begins;
    k->slots[at] = (uint32_t)k->kernels.n;
    return true;
}

bool gpu_kernels_keep(struct gpu_kernels *k)
{
    struct op_kernel *v = VEC(k->kernels, struct op_kernel);
    k->b->stats->kernel_sums = k->sums;
    if (k->kernels.n)
        k->kernels.n = op_kernels_sort(v, (uint32_t)k->kernels.n);
    return op_keep(k->b, &k->kernels, sizeof *v, &k->b->stats->kernels, &k->b->stats->nkernels);
}
