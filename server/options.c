#include "server/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/cgroup.h"
#include "server/capture/profile_target.h"

enum kind { TEXT, NUMBER, BYTES, LIST, FLAG, HELP, VERSION };

struct option {
    const char *name, *value, *help;
    enum kind kind;
    size_t field;
    int64_t min, max;
};

#define FIELD(f) offsetof(struct options, f)

static const struct option table[] = {
    {"logdir", "DIR",
     "directory with profiles, one *.xplane.pb file, gs:// or s3://BUCKET/PREFIX; repeat", LIST,
     FIELD(logdir), 0, 0},
    {"projects", "FILE", "several projects: a table of them, or its gs:// or s3:// object", TEXT,
     FIELD(projects), 0, 0},
    {"default-project", "NAME", "the one of /api/v1/ and XProf's routes (local, or the only one)",
     TEXT, FIELD(default_project), 0, 0},
    {"host", "ADDR", "address to listen on (127.0.0.1)", TEXT, FIELD(host), 0, 0},
    {"port", "N", "port; 0 takes any free one and prints it (8791)", NUMBER, FIELD(port), 0, 65535},
    {"threads", "N", "threads that decode and answer (one a core)", NUMBER, FIELD(threads), 1, 256},
    {"memory-budget", "SIZE", "memory for profiles, e.g. 2GB (60 % of the machine's)", BYTES,
     FIELD(memory_budget), INT64_C(16) << 20, INT64_MAX},
    {"allow-host", "NAME", "further name to accept in the Host header; may be repeated; * is any",
     LIST, FIELD(allow_hosts), 0, 0},
    {"peak", "KEY=VALUE",
     "a device's peak for reports: flops=9.18e14 or hbm=1.6e12, a second; repeat", LIST,
     FIELD(peaks), 0, 0},
    {"target", "[NAME=]HOST:PORT",
     "a workload's profiler server, for captures; NAME is the host of its profiles; repeat", LIST,
     FIELD(targets), 0, OPTIONS_TARGETS_MAX},
    {"tls-cert", "FILE", "certificate chain (PEM): serve HTTPS; needs --tls-key", TEXT,
     FIELD(tls_cert), 0, 0},
    {"tls-key", "FILE", "private key (PEM)", TEXT, FIELD(tls_key), 0, 0},
    {"ui", "stock=DIR", "also serve XProf's own pages at /, from an installed xprof/static folder",
     TEXT, FIELD(ui), 0, 0},
    {"admin-port", "N", "port for /livez, /readyz and /metrics; 0 takes any (none)", NUMBER,
     FIELD(admin_port), 0, 65535},
    {"drain-seconds", "N", "go on for so long after SIGTERM, while /readyz says no (0)", NUMBER,
     FIELD(drain_seconds), 0, 3600},
    {"shards", "SPEC",
     "frontend: static:HOST:PORT,..., dns:NAME:PORT or k8s:[NAMESPACE/]SERVICE[:PORT]", TEXT,
     FIELD(shards), 0, 0},
    {"rpc-key", "FILE", "frontend, shard: keys they share, one a line, the first signs", TEXT,
     FIELD(rpc_key), 0, 0},
    {"identity", "NAME", "shard: its name among the others (host name and port)", TEXT,
     FIELD(identity), 0, 0},
    {"link-keys", "FILE", "make and open share links, signed with these keys; needs --state", TEXT,
     FIELD(link_keys), 0, 0},
    {"state", "DIR", "where records of share links are kept: a directory, gs:// or s3://", TEXT,
     FIELD(state), 0, 0},
    {"gcs-endpoint", "URL", "another server of Cloud Storage's JSON API (the public one)", TEXT,
     FIELD(gcs_endpoint), 0, 0},
    {"s3-endpoint", "URL", "a server that speaks S3 (AWS); buckets are parts of its paths", TEXT,
     FIELD(s3_endpoint), 0, 0},
    {"bucket-auth", "HOW", "auto finds credentials for buckets; none sends none (auto)", TEXT,
     FIELD(bucket_auth), 0, 0},
    {"bucket-memory", "SIZE", "memory for what is fetched ahead from buckets (64MiB)", BYTES,
     FIELD(bucket_memory), INT64_C(16) << 20, INT64_MAX},
    {"auth", "MODE", "who may come in: none (on loopback only), oidc, iap or header (none)", TEXT,
     FIELD(auth), 0, 0},
    {"oidc-issuer", "URL", "oidc: the provider", TEXT, FIELD(oidc_issuer), 0, 0},
    {"oidc-client-id", "ID", "oidc: what the provider knows us as; for login by browser", TEXT,
     FIELD(oidc_client_id), 0, 0},
    {"oidc-client-secret-file", "FILE", "oidc: its secret, where the client has one", TEXT,
     FIELD(oidc_client_secret), 0, 0},
    {"oidc-audience", "AUD", "oidc: further audience of bearer tokens; may be repeated", LIST,
     FIELD(oidc_audience), 0, 0},
    {"oidc-groups-claim", "NAME", "oidc: the claim with groups (groups)", TEXT,
     FIELD(oidc_groups_claim), 0, 0},
    {"oidc-scopes", "LIST", "oidc: what is asked for (openid email profile)", TEXT,
     FIELD(oidc_scopes), 0, 0},
    {"oidc-trust-email", NULL, "oidc: addresses count though email_verified is not there", FLAG,
     FIELD(oidc_trust_email), 0, 0},
    {"iap-audience", "AUD", "iap: /projects/N/global/backendServices/ID", TEXT, FIELD(iap_audience),
     0, 0},
    {"iap-keys", "URL", "iap: another place of Google's keys", TEXT, FIELD(iap_keys), 0, 0},
    {"trusted-header", "NAME", "header: where the proxy says who it is", TEXT,
     FIELD(trusted_header), 0, 0},
    {"trusted-groups-header", "NAME", "header: groups, by commas (x-xprofd-groups)", TEXT,
     FIELD(trusted_groups_header), 0, 0},
    {"trusted-secret-file", "FILE", "header: what the proxy sends as x-xprofd-secret", TEXT,
     FIELD(trusted_secret), 0, 0},
    {"trusted-from", "NETWORK", "address or network of the proxy, 10.0.0.0/8; may be repeated",
     LIST, FIELD(trusted_from), 0, 0},
    {"public-url", "URL", "what browsers know this site as, with the prefix of a proxy", TEXT,
     FIELD(public_url), 0, 0},
    {"cookie-key", "FILE", "keys that seal sessions, one a line, the first seals (random)", TEXT,
     FIELD(cookie_key), 0, 0},
    {"session-hours", "N", "how long a login lasts (12)", NUMBER, FIELD(session_hours), 1, 720},
    {"rate-limit", "N", "requests a second of one identity; 0: any (200, with --auth)", NUMBER,
     FIELD(rate_limit), 0, 1000000},
    {"rate-limit-address", "N",
     "requests a second of one address without an identity; 0: any (20, with --auth)", NUMBER,
     FIELD(rate_limit_address), 0, 1000000},
    {"upload-limit", "BYTES", "largest file that may be uploaded to look at it; 0: none (512MiB)",
     BYTES, FIELD(upload_limit), 0, INT64_C(1) << 40},
    {"upload-minutes", "N", "how long an uploaded file is kept after its last use (60)", NUMBER,
     FIELD(upload_minutes), 1, 1440},
    {"figures-limit", "SIZE",
     "read runs up to this size for the figures in their list, by and by; 0: none (64MiB)", BYTES,
     FIELD(figures_limit), 0, INT64_C(1) << 40},
    {"figures-dir", "DIR", "keep these figures in that directory, for the next start (memory only)",
     TEXT, FIELD(figures_dir), 0, 0},
    {"audit-log", "FILE", "who did what, a JSON object a line (stderr, with --auth)", TEXT,
     FIELD(audit_log), 0, 0},
    {"access-log", "FILE", "a JSON object a request and line; - is stderr (none)", TEXT,
     FIELD(access_log), 0, 0},
    {"otlp-endpoint", "URL", "send spans there by OTLP/HTTP, e.g. http://collector:4318 (none)",
     TEXT, FIELD(otlp_endpoint), 0, 0},
    {"trace-percent", "N", "of traces that begin here, how many are sampled (10)", NUMBER,
     FIELD(trace_percent), 0, 100},
    {"log-level", "LEVEL", "debug, info, warn or error (info)", TEXT, FIELD(log_level), 0, 0},
    {"config", "FILE", "more options, a line each: name = value; also XPROFD_NAME=value", TEXT,
     FIELD(config), 0, 0},
    {"print-config", NULL, "print all options, their values and where these are from", HELP, 0, 0,
     0},
    {"help", NULL, "print this", HELP, 0, 0, 0},
    {"version", NULL, "print the version", VERSION, 0, 0, 0},
};

#define TABLE_N (sizeof table / sizeof *table)

static void print_help(void)
{
    printf(
        "xprofd - serve XProf profiles\n\n"
        "usage: xprofd --logdir DIR [options]\n"
        "       xprofd PROFILE.xplane.pb\n"
        "       xprofd shard --logdir DIR [options]                   (answers frontends; port "
        "8792)\n"
        "       xprofd frontend --logdir DIR --shards SPEC [options]  (answers browsers)\n"
        "       xprofd query SOURCE TOOL [--json|--csv|--table]    (see xprofd query --help)\n\n");
    for (size_t i = 0; i < TABLE_N; i++) {
        char left[40];
        snprintf(left, sizeof left, "--%s %s", table[i].name, table[i].value ? table[i].value : "");
        printf("  %-24s %s\n", left, table[i].help);
    }
    printf("\nProfiles are looked for in DIR/plugins/profile/<run>/<host>.xplane.pb (or .pb.gz, "
           ".riegeli),\n"
           "in nested experiments, and in DIR/<run>/. Nothing is ever written there but captures "
           "(--target).\n");
}

static bool wrong(const char *format, const char *a, const char *b)
{
    fputs("xprofd: ", stderr);
    fprintf(stderr, format, a, b);
    fputs("\nxprofd: --help lists the options\n", stderr);
    return false;
}

bool options_parse_bytes(const char *text, int64_t *bytes)
{
    static const struct {
        const char *suffix;
        double scale;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"K", 1e3},
                 {"KB", 1e3},
                 {"M", 1e6},
                 {"MB", 1e6},
                 {"G", 1e9},
                 {"GB", 1e9},
                 {"T", 1e12},
                 {"TB", 1e12},
                 {"KiB", 1024.0},
                 {"MiB", 1048576.0},
                 {"GiB", 1073741824.0},
                 {"TiB", 1099511627776.0}};
    char *end;
    double v;

    if (text[0] < '0' || text[0] > '9')
        return false;
    v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].suffix) == 0 && v * units[i].scale < 9e18) {
            *bytes = (int64_t)(v * units[i].scale);
            return true;
        }
    return false;
}

static bool parse_number(const char *text, int64_t *v)
{
    char *end;
    errno = 0;
    *v = strtoll(text, &end, 10);
    return text[0] && !*end && !errno;
}

static bool set_value(const struct option *opt, const char *value, struct options *o)
{
    void *field = (char *)o + opt->field;
    const char **list = field;
    int64_t v = 0;
    size_t n = 0;
    char range[96];

    switch (opt->kind) {
    case TEXT:
        *list = value;
        return value[0] ? true : wrong("--%s needs a value", opt->name, "");
    case LIST:
        if (!value[0])
            return wrong("--%s needs a value", opt->name, "");
        while (list[n])
            n++;
        if (n == (size_t)(opt->max ? opt->max : OPTIONS_HOSTS_MAX))
            return wrong("--%s was given too often", opt->name, "");
        list[n] = value;
        return true;
    case NUMBER:
    case BYTES:
        if (!(opt->kind == BYTES ? options_parse_bytes(value, &v) : parse_number(value, &v)))
            return wrong("--%s=%s is not a number of the kind expected", opt->name, value);
        snprintf(range, sizeof range, "%s, but must be %lld%s", value, (long long)opt->min,
                 opt->kind == BYTES ? " bytes or more" : " or more");
        if (v > opt->max)
            snprintf(range, sizeof range, "%s, but must be at most %lld", value,
                     (long long)opt->max);
        if (v < opt->min || v > opt->max)
            return wrong("--%s is %s", opt->name, range);
        *(int64_t *)field = v;
        return true;
    default:
        return true;
    }
}

bool options_row_at(size_t i, struct options_row *row)
{
    if (i >= TABLE_N)
        return false;
    *row = (struct options_row){.name = table[i].name,
                                .takes_value = table[i].value != NULL,
                                .repeats = table[i].kind == LIST,
                                .asks = table[i].kind == HELP || table[i].kind == VERSION};
    return true;
}

bool options_row_named(const char *name, size_t n, struct options_row *row)
{
    for (size_t i = 0; options_row_at(i, row); i++)
        if (strlen(row->name) == n && strncmp(row->name, name, n) == 0)
            return true;
    return false;
}

static const struct option *find(const char *name, size_t n)
{
    for (size_t i = 0; i < TABLE_N; i++)
        if (strlen(table[i].name) == n && strncmp(table[i].name, name, n) == 0)
            return &table[i];
    return NULL;
}

enum xp_status options_blame(const char *option, enum xp_status status, struct xp_error *err)
{
    struct xp_error why = *err;
    if (status != XP_OK)
        xp_fail(err, why.status, why.offset, "--%s: %.200s", option, why.text);
    return status;
}

bool options_is_loopback(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

static bool check_role(const struct options *o)
{
    if (o->role == ROLE_FRONTEND && !o->shards)
        return wrong("say where the shards are: xprofd frontend --shards SPEC%s%s", "", "");
    if (o->role != ROLE_FRONTEND && o->shards)
        return wrong("--shards is for xprofd frontend%s%s", "", "");
    if (o->role != ROLE_SHARD && o->identity)
        return wrong("--identity is for xprofd shard%s%s", "", "");
    if (!o->link_keys != !o->state)
        return wrong("--link-keys and --state go together%s%s", "", "");
    if (o->role == ROLE_ALL && o->rpc_key)
        return wrong("--rpc-key is for xprofd frontend and xprofd shard%s%s", "", "");
    if (o->role == ROLE_SHARD && !o->rpc_key && !options_is_loopback(o->host))
        return wrong("a shard that listens on %s needs --rpc-key%s", o->host, "");
    if (o->role == ROLE_SHARD && (o->tls_cert || o->ui))
        return wrong("--tls-cert and --ui are not for xprofd shard%s%s", "", "");
    return true;
}

static bool is_auth(const struct options *o, const char *mode)
{
    return strcmp(o->auth ? o->auth : "none", mode) == 0;
}

/* What a mode of --auth needs, and what is of another one. */
static bool check_auth(const struct options *o)
{
    bool oidc = is_auth(o, "oidc"), iap = is_auth(o, "iap"), header = is_auth(o, "header");

    if (!oidc && !iap && !header && !is_auth(o, "none"))
        return wrong("--auth=%s is not none, oidc, iap or header%s", o->auth, "");
    if (o->role == ROLE_SHARD)
        return o->auth ? wrong("--auth is not for xprofd shard: --rpc-key is%s%s", "", "") : true;
    if (!oidc && !iap && !header && !options_is_loopback(o->host))
        return wrong("whoever reaches %s would see all profiles: say with --auth who may%s",
                     o->host, "");
    if (oidc != (o->oidc_issuer != NULL))
        return wrong("--auth oidc and --oidc-issuer go together%s%s", "", "");
    if (oidc && !o->oidc_client_id && !o->oidc_audience[0])
        return wrong("--auth oidc needs --oidc-client-id or --oidc-audience%s%s", "", "");
    if (o->role == ROLE_FRONTEND && o->oidc_client_id && !o->cookie_key)
        return wrong("frontends share sessions: they need one --cookie-key%s%s", "", "");
    if (iap != (o->iap_audience != NULL))
        return wrong("--auth iap and --iap-audience go together%s%s", "", "");
    if (header != (o->trusted_header != NULL))
        return wrong("--auth header and --trusted-header go together%s%s", "", "");
    return true;
}

static bool is_peak(const char *text)
{
    const char *value = strchr(text, '=');
    char *end = NULL;
    size_t n = value ? (size_t)(value - text) : 0;
    bool known =
        (n == 5 && strncmp(text, "flops", n) == 0) || (n == 3 && strncmp(text, "hbm", n) == 0);
    return known && value[1] >= '0' && value[1] <= '9' && strtod(value + 1, &end) > 0 && !*end;
}

static bool check_targets(const struct options *o)
{
    struct target *v = NULL;
    struct xp_error err;
    size_t n;
    if (o->targets[0] && o->role != ROLE_ALL)
        return wrong("--target is for an xprofd that does everything in one process%s%s", "", "");
    enum xp_status status = target_parse_all(o->targets, OPTIONS_TARGETS_MAX, &v, &n, &err);
    free(v);
    return status == XP_OK || wrong("%s%s", err.text, "");
}

static bool check(const struct options *o)
{
    for (int i = 0; o->peaks[i]; i++)
        if (!is_peak(o->peaks[i]))
            return wrong("--peak=%s is not flops=VALUE or hbm=VALUE%s", o->peaks[i], "");
    if (!o->logdir[0] && !o->projects)
        return wrong("say where the profiles are: xprofd --logdir DIR%s%s", "", "");
    if (o->logdir[0] && o->projects)
        return wrong("--projects and --logdir (%s) are not for one process%s", o->logdir[0], "");
    if (o->default_project && !o->projects)
        return wrong("--default-project is one of --projects%s%s", "", "");
    if (o->ui && strncmp(o->ui, "stock=", 6) != 0)
        return wrong("--ui=%s is not of the form stock=DIR%s", o->ui, "");
    if (o->bucket_auth && strcmp(o->bucket_auth, "auto") != 0 &&
        strcmp(o->bucket_auth, "none") != 0)
        return wrong("--bucket-auth=%s is not auto or none%s", o->bucket_auth, "");
    if (!o->tls_cert != !o->tls_key)
        return wrong("--tls-cert and --tls-key go together%s%s", "", "");
    return check_role(o) && check_targets(o) && check_auth(o);
}

static const char *in_full(const char *arg)
{
    return strcmp(arg, "-h") == 0 ? "--help" : arg;
}

enum options_result options_parse(int argc, char **argv, const char *version, struct options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (struct options){.host = "127.0.0.1",
                          .port = 8791,
                          .log_level = "info",
                          .admin_port = -1,
                          .trace_percent = 10,
                          .session_hours = 12,
                          .upload_limit = INT64_C(512) << 20,
                          .upload_minutes = 60,
                          .figures_limit = INT64_C(64) << 20,
                          .rate_limit = -1,
                          .rate_limit_address = -1};
    o->threads = cores > 0 ? cores : 1;
    if (argc > 1 && strcmp(argv[1], "frontend") == 0)
        o->role = ROLE_FRONTEND;
    if (argc > 1 && strcmp(argv[1], "shard") == 0)
        o->role = ROLE_SHARD, o->port = 8792;

    for (int i = o->role == ROLE_ALL ? 1 : 2; i < argc; i++) {
        const char *arg = in_full(argv[i]), *eq = strchr(arg, '=');
        if (strncmp(arg, "--", 2) != 0) {
            if (arg[0] == '-' && arg[1])
                return wrong("%s is not an option; options begin with --%s", arg, ""),
                       OPTIONS_WRONG;
            if (o->logdir[0])
                return wrong("%s and %s: several places are --logdir each", o->logdir[0], arg),
                       OPTIONS_WRONG;
            o->logdir[0] = arg;
            continue;
        }
        const struct option *opt = find(arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2));
        if (!opt)
            return wrong("there is no option %s%s", arg, ""), OPTIONS_WRONG;
        if (opt->kind == HELP && strcmp(opt->name, "help") == 0)
            return print_help(), OPTIONS_HELP;
        if (opt->kind == HELP)
            continue; /* config.h's: after all were read */
        if (opt->kind == VERSION)
            return printf("xprofd %s\n", version), OPTIONS_VERSION;
        if (opt->kind == FLAG) {
            if (eq)
                return wrong("--%s takes no value%s", opt->name, ""), OPTIONS_WRONG;
            *(bool *)((char *)o + opt->field) = true;
            continue;
        }
        if (!eq && ++i == argc)
            return wrong("--%s needs a value%s", opt->name, ""), OPTIONS_WRONG;
        if (!set_value(opt, eq ? eq + 1 : argv[i], o))
            return OPTIONS_WRONG;
    }
    return check(o) ? OPTIONS_OK : OPTIONS_WRONG;
}

uint64_t options_memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t limit = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(4) << 30;
    uint64_t cgroup = xp_cgroup_memory("/sys/fs/cgroup", "/proc/self/cgroup");
    return cgroup < limit ? cgroup : limit;
}
