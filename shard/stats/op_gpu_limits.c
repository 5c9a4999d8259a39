#include "shard/stats/op_gpu_limits.h"

#include <ctype.h>
#include <stdio.h>

struct per_core {
    int major, minor;
    double flops;        /* a cycle */
    double shared_bytes; /* a cycle */
};

/* Ascending; a capability that is not here counts as the one before it, or as the first. */
static const struct per_core nvidia[] = {
    {2, 0, 64, 64},    {3, 0, 384, 256},  {5, 0, 256, 256},  {6, 0, 256, 256},
    {6, 1, 256, 256},  {7, 0, 1024, 256}, {7, 5, 1024, 256}, {8, 0, 2048, 256},
    {8, 6, 1024, 256}, {8, 9, 1024, 256}, {9, 0, 4096, 256}, {10, 0, 8192, 256},
};

/* By architecture; the last two are told by their capability too. */
static const struct {
    const char *name;
    struct per_core core;
} amd[] = {
    {"gfx908", {0, 0, 1024, 128}},
    {"gfx90a", {0, 0, 1024, 128}},
    {"gfx942", {9, 4, 2048, 128}},
    {"gfx950", {9, 5, 4096, 256}},
};

static bool is_nvidia(const struct gpu_caps *caps)
{
    return xp_span_eq(caps->vendor, XP_SPAN_LIT("Nvidia"));
}

static bool is_amd(const struct gpu_caps *caps)
{
    return xp_span_eq(caps->vendor, XP_SPAN_LIT("AMD"));
}

/* "gfx" and hexadecimal digits; else what the capability tells; else empty. */
static struct xp_span amd_architecture(const struct gpu_caps *caps)
{
    bool fits =
        xp_span_starts(caps->name, XP_SPAN_LIT("gfx")) && caps->name.n >= 6 && caps->name.n <= 16;
    for (size_t i = 3; fits && i < caps->name.n; i++)
        fits = isxdigit(caps->name.p[i]);
    if (fits)
        return caps->name;
    for (size_t i = 0; i < sizeof amd / sizeof *amd; i++)
        if (amd[i].core.major && amd[i].core.major == caps->major &&
            amd[i].core.minor == caps->minor)
            return xp_span_str(amd[i].name);
    return (struct xp_span){0};
}

static const struct per_core *amd_core(const struct gpu_caps *caps)
{
    struct xp_span name = amd_architecture(caps);
    for (size_t i = 0; i < sizeof amd / sizeof *amd; i++)
        if (xp_span_eq(name, xp_span_str(amd[i].name)))
            return &amd[i].core;
    return NULL;
}

static const struct per_core *core_of(const struct gpu_caps *caps)
{
    const struct per_core *best = &nvidia[0];
    if (is_amd(caps))
        return amd_core(caps);
    if (!is_nvidia(caps))
        return NULL;
    for (size_t i = 0; i < sizeof nvidia / sizeof *nvidia; i++)
        if (nvidia[i].major < caps->major ||
            (nvidia[i].major == caps->major && nvidia[i].minor <= caps->minor))
            best = &nvidia[i];
    return best;
}

double gpu_core_gflops(const struct gpu_caps *caps)
{
    const struct per_core *c = core_of(caps);
    return c ? c->flops * caps->clock_ghz : 0;
}

double gpu_shared_gbs(const struct gpu_caps *caps)
{
    const struct per_core *c = core_of(caps);
    if (!c)
        return 0;
    return (is_nvidia(caps) && caps->major <= 2 ? 64 : c->shared_bytes) * caps->clock_ghz;
}

static const char *nvidia_model(const struct gpu_caps *caps)
{
    switch (caps->major) {
    case 2:
        return "Nvidia GPU (Fermi)";
    case 3:
        return "Nvidia GPU (Kepler)";
    case 5:
        return "Nvidia GPU (Maxwell)";
    case 6:
        return "Nvidia GPU (Pascal)";
    case 7:
        return caps->minor < 5 ? "Nvidia GPU (Volta)" : "Nvidia GPU (Turing)";
    case 8:
        return caps->minor < 9 ? "Nvidia GPU (Ampere)" : "Nvidia GPU (Ada Lovelace)";
    case 9:
        return "Nvidia GPU (Hopper)";
    case 10:
        return "Nvidia GPU (Blackwell)";
    default:
        return "Nvidia GPU";
    }
}

static const char *amd_model(const struct gpu_caps *caps)
{
    switch (caps->major) {
    case 9:
        return "AMD GPU - gfx-9XX series";
    case 10:
        return "AMD GPU - gfx-10XX series";
    case 11:
        return "AMD GPU - gfx-11XX series";
    default:
        return "AMD GPU";
    }
}

void gpu_model(const struct gpu_caps *caps, char out[GPU_MODEL_MAX])
{
    struct xp_span architecture = amd_architecture(caps);
    if (is_nvidia(caps))
        snprintf(out, GPU_MODEL_MAX, "%s", nvidia_model(caps));
    else if (!is_amd(caps))
        snprintf(out, GPU_MODEL_MAX, "GPU");
    else if (architecture.n)
        snprintf(out, GPU_MODEL_MAX, "AMD GPU - %.*s", (int)architecture.n,
                 (const char *)architecture.p);
    else
        snprintf(out, GPU_MODEL_MAX, "%s", amd_model(caps));
}
