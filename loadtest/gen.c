/* loadtest/gen.c - makes profiles: DIR/plugins/profile/RUN/host-I.xplane.pb
 *
 * For the sample of a first start, for tests and for benchmarks. See loadtest/lib/gen.h for what
 * is in them. Output depends on the options only; memory stays flat.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "loadtest/lib/gen.h"

static const char usage[] =
    "usage: gen --out DIR --run NAME [options]\n"
    "  --hosts N        files to make (1)\n"
    "  --steps N        training steps (24: about 3 MB)\n"
    "  --events N       as many steps as give about N events a host\n"
    "  --size BYTES     as many steps as give about BYTES a host (suffix KB, MB, GB)\n"
    "  --kind KIND      mixed (default), tpu (no Python frames), python (a host with six threads)\n"
    "  --gz             compress: host-I.xplane.pb.gz\n"
    "  --wall-clock     lines carry wall-clock timestamps\n"
    "  --seed S         1\n"
    "  --hostile KIND   a profile for tests of damage and limits:\n                  ";

static int fail(const char *what)
{
    fprintf(stderr, "gen: %s\n%s", what, usage);
    for (int i = 0; gen_hostile_kinds[i]; i++)
        fprintf(stderr, " %s", gen_hostile_kinds[i]);
    fputc('\n', stderr);
    return 2;
}

static bool number(const char *text, uint64_t *out)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {{"", 1}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}};
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || *text == '-')
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].suffix) == 0)
            return !__builtin_mul_overflow((uint64_t)v, units[i].factor, out);
    }
    return false;
}

static bool kind(const char *text, enum gen_kind *out)
{
    static const char *const names[] = {"mixed", "tpu", "python"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum gen_kind)i;
            return true;
        }
    }
    return false;
}

enum { OUT = 256, RUN, HOSTS, STEPS, EVENTS, SIZE, KIND, GZ, WALL, SEED, HOSTILE };

static const struct option options[] = {
    {"out", required_argument, NULL, OUT},         {"run", required_argument, NULL, RUN},
    {"hosts", required_argument, NULL, HOSTS},     {"steps", required_argument, NULL, STEPS},
    {"events", required_argument, NULL, EVENTS},   {"size", required_argument, NULL, SIZE},
    {"kind", required_argument, NULL, KIND},       {"gz", no_argument, NULL, GZ},
    {"wall-clock", no_argument, NULL, WALL},       {"seed", required_argument, NULL, SEED},
    {"hostile", required_argument, NULL, HOSTILE}, {NULL, 0, NULL, 0}};

static bool take(struct gen_options *o, int c, const char *arg)
{
    uint64_t v = 0;
    bool is_number = c == HOSTS || c == STEPS || c == EVENTS || c == SIZE || c == SEED;
    if (is_number && !number(arg, &v))
        return false;
    switch (c) {
    case OUT:
        o->out = arg;
        return true;
    case RUN:
        o->run = arg;
        return true;
    case HOSTS:
        o->hosts = v <= 100000 ? (int)v : 0;
        return o->hosts > 0;
    case STEPS:
        o->steps = (int64_t)v;
        return v > 0 && v <= 100000000;
    case EVENTS:
        o->events = v;
        return true;
    case SIZE:
        o->size = v;
        return true;
    case SEED:
        o->seed = v;
        return true;
    case KIND:
        return kind(arg, &o->kind);
    case GZ:
        return o->gz = true;
    case WALL:
        return o->wall_clock = true;
    case HOSTILE:
        o->hostile = arg;
        return true;
    default:
        return false;
    }
}

/* Makes the folder and those above it. */
static bool make_folders(const char *path)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return false;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i])
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static int write_host(const struct gen_options *o, const char *path, int host, int64_t steps)
{
    struct xs x;
    bool written;
    uint64_t t0 = xp_now_ns();
    if (o->hostile) {
        if (!gen_hostile(path, o, &written))
            return fail("unknown kind of hostile profile");
    } else {
        if (!xs_open(&x, path, o->gz)) {
            perror(path);
            return 1;
        }
        gen_profile(&x, o, host, steps);
        written = xs_close(&x);
    }
    if (!written) {
        perror(path);
        return 1;
    }
    struct stat st;
    if (stat(path, &st) == 0)
        printf("%s  %.1f MB, %.2f s\n", path, (double)st.st_size / 1e6,
               (double)(xp_now_ns() - t0) / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    struct gen_options o = {.hosts = 1, .seed = 1};
    int c, rc = 0;
    char folder[3800], path[4096];
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(&o, c, optarg))
            return fail("a wrong option or value");
    }
    if (!o.out || !o.run || optind != argc)
        return fail("--out and --run are needed");
    if ((size_t)snprintf(folder, sizeof folder, "%s/plugins/profile/%s", o.out, o.run) >=
            sizeof folder ||
        !make_folders(folder)) {
        perror(o.out);
        return 1;
    }
    gen_program_init(o.seed);
    int64_t steps = o.hostile ? 0 : gen_steps(&o);
    for (int host = 0; host < o.hosts && rc == 0; host++) {
        snprintf(path, sizeof path, "%s/host-%d.xplane.pb%s", folder, host, o.gz ? ".gz" : "");
        rc = write_host(&o, path, host, steps);
    }
    gen_program_fini();
    return rc;
}
