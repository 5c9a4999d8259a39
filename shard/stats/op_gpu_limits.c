#include "shard/stats/op_gpu_limits.h"

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

/* CDNA 3 and 4; no other is told by its capability alone. */
static const struct per_core amd[] = {
    {9, 4, 2048, 128},
    {9, 5, 4096, 256},
};

static bool is_nvidia(const struct gpu_caps *caps)
{
    return xp_span_eq(caps->vendor, XP_SPAN_LIT("Nvidia"));
}

static bool is_amd(const struct gpu_caps *caps)
{
    return xp_span_eq(caps->vendor, XP_SPAN_LIT("AMD"));
}

static const struct per_core *core_of(const struct gpu_caps *caps)
{
    const struct per_core *best = &nvidia[0];
    if (is_amd(caps)) {
        for (size_t i = 0; i < sizeof amd / sizeof *amd; i++)
            if (amd[i].major == caps->major && amd[i].minor == caps->minor)
                return &amd[i];
        return NULL;
    }
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

const char *gpu_model(const struct gpu_caps *caps)
{
    if (is_nvidia(caps))
        return nvidia_model(caps);
    return is_amd(caps) ? amd_model(caps) : "GPU";
}
