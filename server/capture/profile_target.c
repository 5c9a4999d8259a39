#include "server/capture/profile_target.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/pb_wire.h"

#define SERVICE "/tensorflow.ProfilerService/"

const char method_profile[] = SERVICE "Profile";
const char method_terminate[] = SERVICE "Terminate";
const char method_start[] = SERVICE "StartContinuousProfiling";
const char method_snapshot[] = SERVICE "GetSnapshot";
const char method_stop[] = SERVICE "StopContinuousProfiling";
const char method_hello[] = "/xprofd.Hello/Hello";

/* --- names and addresses --- */

static bool is_word(struct xp_span s, size_t max, const char *also)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr(also, c)))
            return false;
    }
    return s.n > 0 && s.n <= max;
}

/* What begins with a dot is hidden, and no list shows it. */
bool target_name_ok(struct xp_span name)
{
    return is_word(name, TARGET_NAME_MAX, "._-") && name.p[0] != '.';
}

bool target_run_ok(struct xp_span run)
{
    return is_word(run, TARGET_RUN_MAX, "_-");
}

static bool is_port(const char *text)
{
    uint32_t v = 0;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 5 || text[n])
        return false;
    for (size_t i = 0; i < n; i++)
        v = 10 * v + (uint32_t)(text[i] - '0');
    return v > 0 && v <= 65535;
}

/* "name", "10.0.0.1", "[fd00::1]" */
static bool is_host(struct xp_span host)
{
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        return is_word(xp_span_of(host.p + 1, host.n - 2), 45, ":.");
    return is_word(host, TARGET_NAME_MAX, ".-_") && host.p[0] != '-';
}

enum xp_status target_parse(const char *text, struct target *t, struct xp_error *err)
{
    const char *equals = strchr(text, '='), *address = equals ? equals + 1 : text;
    const char *colon = strrchr(address, ':');
    struct xp_span host = xp_span_of(address, colon ? (size_t)(colon - address) : 0);
    struct xp_span name = equals ? xp_span_of(text, (size_t)(equals - text)) : host;

    if (!colon || !is_host(host) || !is_port(colon + 1))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "--target=%.100s is not of the form [NAME=]HOST:PORT, such as "
                       "worker-0=10.0.0.1:9999",
                       text);
    if (!target_name_ok(name))
        return xp_fail(err, XP_BAD_REQUEST, 0,
                       "--target=%.100s: \"%.*s\" is no name for its profiles: say NAME=HOST:PORT, "
                       "NAME being letters, digits, '.', '_' and '-'",
                       text, name.n < 60 ? (int)name.n : 60, (const char *)name.p);
    snprintf(t->name, sizeof t->name, "%.*s", (int)name.n, (const char *)name.p);
    snprintf(t->address, sizeof t->address, "%s", address);
    return XP_OK;
}

enum xp_status target_parse_all(const char *const *texts, size_t max, struct target **v, size_t *n,
                                struct xp_error *err)
{
    *v = calloc(max ? max : 1, sizeof **v);
    XP_ASSERT(*v);
    for (*n = 0; texts[*n]; (*n)++) {
        struct target *t = &(*v)[*n];
        if (*n == max)
            return xp_fail(err, XP_BAD_REQUEST, 0, "--target was given more than %zu times", max);
        XP_TRY(target_parse(texts[*n], t, err));
        for (size_t i = 0; i < *n; i++)
            if (!strcmp((*v)[i].name, t->name))
                return xp_fail(err, XP_BAD_REQUEST, 0,
                               "--target=%.100s: the name %.60s is another target's: profiles of "
                               "both would be one file",
                               texts[*n], t->name);
    }
    return XP_OK;
}

/* --- messages --- */

#define OPTIONS_BYTES ((size_t)65536)
#define MAX_EVENTS 1000000
#define CONTINUOUS_MS 2000

static void put_text(struct xp_buf *b, uint32_t field, const char *text)
{
    xp_pb_put_bytes(b, field, xp_span_str(text));
}

/* One entry of advanced_configuration: map<string, oneof{string, bool, int64}>. */
static void put_option(struct xp_buf *b, const struct target_option *o)
{
    uint8_t room[2 * TARGET_OPTION_BYTES];
    struct xp_buf value, entry;
    xp_buf_init(&value, sizeof room);
    xp_buf_init(&entry, sizeof room);
    if (o->type == OPTION_STRING)
        put_text(&value, 1, o->text);
    else
        xp_pb_put_u64(&value, o->type == OPTION_BOOL ? 2 : 3, (uint64_t)o->number);
    put_text(&entry, 1, o->name);
    xp_pb_put_bytes(&entry, 2, xp_buf_all(&value));
    xp_pb_put_bytes(b, 12, xp_buf_all(&entry));
    xp_buf_fini(&value);
    xp_buf_fini(&entry);
}

static void put_options(struct xp_buf *b, const struct target_profile *p)
{
    struct xp_buf o;
    xp_buf_init(&o, OPTIONS_BYTES);
    xp_pb_put_u64(&o, 1, 1); /* include_dataset_ops */
    xp_pb_put_u64(&o, 2, (uint64_t)p->levels.host);
    xp_pb_put_u64(&o, 3, (uint64_t)p->levels.device);
    xp_pb_put_u64(&o, 4, (uint64_t)p->levels.python);
    xp_pb_put_u64(&o, 5, 1); /* version: below 1 the levels are replaced by defaults */
    xp_pb_put_u64(&o, 7, 1); /* enable_hlo_proto */
    xp_pb_put_u64(&o, 8, p->start_ns);
    xp_pb_put_u64(&o, 9, p->duration_ms);
    put_text(&o, 10, p->repository);
    for (size_t i = 0; i < p->n_options; i++)
        put_option(&o, &p->options[i]);
    put_text(&o, 14, p->session);
    put_text(&o, 15, p->host);
    xp_pb_put_bytes(b, 4, xp_buf_all(&o));
    b->failed |= o.failed;
    xp_buf_fini(&o);
}

void target_put_profile(struct xp_buf *b, const struct target_profile *p)
{
    xp_pb_put_u64(b, 1, p->duration_ms);
    xp_pb_put_u64(b, 2, MAX_EVENTS);
    put_options(b, p);
    put_text(b, 5, p->repository); /* even if the answer brings it: old servers know nothing else */
    put_text(b, 6, p->session);
    put_text(b, 7, p->host);
    if (p->pull)
        xp_pb_put_u64(b, 9, 1);
}

void target_put_start(struct xp_buf *b, const struct target_profile *p)
{
    const struct target_option ring = {"tpu_circular_buffer_tracing", OPTION_BOOL, "", 1};
    struct target_profile mine = *p;
    mine.levels.host = mine.levels.python = 0;
    mine.duration_ms = CONTINUOUS_MS; /* ignored */
    mine.start_ns = 0;
    mine.options = &ring;
    mine.n_options = 1;
    mine.pull = false;
    target_put_profile(b, &mine);
}

void target_put_terminate(struct xp_buf *b, const char *session)
{
    put_text(b, 1, session);
}

void target_put_snapshot(struct xp_buf *b, const char *session)
{
    if (session)
        put_text(b, 1, session);
}

/* --- outcomes --- */

enum {
    OK = 0,
    DEADLINE_EXCEEDED = 4,
    NOT_FOUND = 5,
    ALREADY_EXISTS = 6,
    UNIMPLEMENTED = 12,
    INTERNAL = 13,
    UNAVAILABLE = 14
};

const char *outcome_text(enum outcome o)
{
    static const char *const texts[] = {
#define X(id, text) text,
        OUTCOMES(X)
#undef X
    };
    return texts[o];
}

static void say(struct target_verdict *v, enum outcome o, const char *message, const char *hint)
{
    v->outcome = o;
    snprintf(v->message, sizeof v->message, "%s", message);
    v->hint = hint;
}

/* There was no answer. */
static void judge_transport(const struct target_facts *f, struct target_verdict *v)
{
    const struct grpc_reply *r = f->reply;
    bool profile = f->call == CALL_PROFILE;
    if (r->transport == XP_CANCELLED) /* however far it had got */
        say(v, OUTCOME_CANCELLED, "it was ended here, and nothing is kept", "");
    else if (r->transport == XP_TIMEOUT && r->stage == NET_RESOLVING)
        say(v, OUTCOME_TIMEOUT, "the name of the host could not be looked up in time",
            "is the host of --target spelled right, and do the name servers here answer?");
    else if (r->transport == XP_TIMEOUT)
        say(v, OUTCOME_TIMEOUT,
            r->stage == NET_CONNECTING ? "nothing answers at the address"
                                       : "it took the call, and no answer came in time",
            r->stage == NET_CONNECTING
                ? "is the address right, and does a firewall or network policy let us through?"
                : "does a profiler server listen on that port, and is the workload still making "
                  "progress?");
    else if (r->stage == NET_RESOLVING)
        say(v, OUTCOME_UNREACHABLE, "the name of the host is not known",
            "is the host of --target spelled right, and does it resolve here?");
    else if (r->stage == NET_CONNECTING)
        say(v, OUTCOME_UNREACHABLE, "no profiler server listens there",
            "call jax.profiler.start_server(9999) in the workload, keep what it returns, and see "
            "that --target names that port");
    else if (profile && f->pull && f->window_over && r->profile_n == 0)
        say(v, OUTCOME_TOO_LARGE,
            "the connection broke while the profile was made: it probably passed 2 GiB, which ends "
            "the workload",
            "see whether the workload still runs, and take a shorter window or lower levels");
    else
        say(v, OUTCOME_FAILED, r->text,
            r->profile_n || profile
                ? "see whether the workload still runs: it may have ended while "
                  "it was profiled"
                : "is it a profiler server that listens on that port?");
}

static void judge_status(const struct target_facts *f, struct target_verdict *v)
{
    const struct grpc_reply *r = f->reply;
    bool profile = f->call == CALL_PROFILE;
    bool another = strstr(r->text, "Another profiling session") != NULL;
    char number[GRPC_TEXT_MAX + 32];
    snprintf(number, sizeof number, "%s%sgRPC status %d", r->text, r->text[0] ? ": " : "",
             r->status);
    if (r->status == ALREADY_EXISTS || (r->status == INTERNAL && another))
        say(v, OUTCOME_BUSY, r->text[0] ? r->text : "another profiling session is active",
            profile ? "somebody else profiles this process: wait until it ends, or stop its "
                      "continuous profiling"
                    : "it was not started here, or before this server was: take a snapshot of it, "
                      "or stop it");
    else if (r->status == DEADLINE_EXCEEDED)
        say(v, OUTCOME_TIMEOUT, "no answer came in time",
            profile && !f->pull
                ? "can the workload reach the bucket, and may it write there? It tries for minutes"
                : "take a shorter window; is the workload still making progress?");
    else if (r->status == UNIMPLEMENTED)
        say(v, profile ? OUTCOME_FAILED : OUTCOME_UNSUPPORTED,
            profile ? "the server there does not profile"
                    : "its profiler server is too old for "
                      "continuous profiling",
            profile ? "is it a profiler server that listens on that port?"
                    : "update jax in the workload; captures on demand work meanwhile");
    else if (r->status == NOT_FOUND && !profile)
        say(v, OUTCOME_FAILED, "no continuous profiling runs there (any more)",
            "the workload was restarted, or somebody else stopped it: start it again");
    else if (r->status == UNAVAILABLE)
        say(v, OUTCOME_UNREACHABLE, number, "is the workload about to end, or behind a proxy?");
    else
        say(v, OUTCOME_FAILED, number,
            profile && !f->pull ? "may the workload write to the bucket of this project?" : "");
}

static void judge_empty(const struct target_facts *f, struct target_verdict *v)
{
    if (f->call != CALL_SNAPSHOT)
        say(v, OUTCOME_EMPTY, "nothing happened in the window",
            "does the workload make progress? Take a longer window, or higher levels");
    else
        say(v, OUTCOME_EMPTY,
            f->again ? "nothing was recorded since the last snapshot, which takes with it what "
                       "there was"
                     : "nothing was recorded yet",
            "continuous profiling records devices only: on a CPU there is nothing, and right after "
            "a snapshot there is nothing either");
}

static void judge_file(const struct target_facts *f, struct target_verdict *v)
{
    if (!f->looked)
        say(v, OUTCOME_FAILED,
            "whether there is a profile could not be told: the place could not "
            "be looked at",
            "look at the list of runs in a while");
    else if (!f->found)
        say(v, OUTCOME_FAILED,
            "it says that it has written a profile, but there is none in the run",
            f->pull
                ? "its profiler server is too old to send profiles, and wrote to its own disk: "
                  "update jax in the workload"
                : "does the workload reach the same bucket, and has it gs:// or s3:// built in?");
    else if (f->size == 0)
        say(v, OUTCOME_TOO_LARGE, "the profile was larger than 2 GiB, and its file is empty",
            "take a shorter window or lower levels");
    else
        say(v, OUTCOME_SUCCEEDED, "", "");
}

void target_judge(const struct target_facts *f, struct target_verdict *v)
{
    const struct grpc_reply *r = f->reply;
    bool profile = f->call == CALL_PROFILE || f->call == CALL_SNAPSHOT;
    if (r->transport != XP_OK)
        judge_transport(f, v);
    else if (r->status != OK)
        judge_status(f, v);
    else if (!r->whole)
        say(v, OUTCOME_FAILED, "the answer broke off", "see whether the workload still runs");
    else if (profile && (r->empty || (r->profile && r->profile_n == 0)))
        judge_empty(f, v);
    else if (profile && !r->profile)
        judge_file(f, v);
    else
        say(v, OUTCOME_SUCCEEDED, "", "");
}

enum outcome outcome_of_all(const enum outcome *v, size_t n, bool cancelled)
{
    size_t good = 0;
    for (size_t i = 0; i < n; i++)
        good += v[i] == OUTCOME_SUCCEEDED;
    if (n && good == n)
        return OUTCOME_SUCCEEDED;
    if (good)
        return OUTCOME_PARTIAL;
    return cancelled ? OUTCOME_CANCELLED : OUTCOME_FAILED;
}

uint32_t target_window_for(const uint32_t ms[2], const uint64_t bytes[2], uint64_t limit)
{
    double a = ms[0], b = ms[1], rate = (double)bytes[0] / a, always = 0;
    if (ms[1] && ms[1] != ms[0]) {
        double more = ((double)bytes[1] - (double)bytes[0]) / (b - a);
        rate = more > 0 ? more : 0;
        always = (double)bytes[0] - rate * a;
    }
    always = always > 0 ? always : 0;
    if ((double)limit <= always)
        return 0;
    double most = rate > 0 ? ((double)limit - always) / rate : UINT32_MAX;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}
