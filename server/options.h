/* server/options.h - the command line, from one table that also prints the help.
 *
 * `xprofd frontend` and `xprofd shard` take the same table; a row says which roles it is for.
 *
 * Order      options_parse fills a struct with defaults and what argv says. Strings point into
 *            argv. OPTIONS_HELP and OPTIONS_VERSION: the text was printed, exit with 0.
 *            OPTIONS_WRONG: a sentence was printed to stderr, exit with 2.
 */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/status.h"

#define OPTIONS_HOSTS_MAX 16
#define OPTIONS_TARGETS_MAX 256

/* What this process is: everything, or one half of it. */
enum options_role { ROLE_ALL, ROLE_FRONTEND, ROLE_SHARD };

struct options {
    enum options_role role; /* the word before the options */
    const char
        *logdir[OPTIONS_HOSTS_MAX + 1]; /* directory, one file, or a bucket; NULL-terminated */
    const char *config;                 /* read already: config.h */
    const char *projects;               /* their table, in place of logdir; or NULL */
    const char *auth;                   /* "none", "oidc", "iap", "header" or NULL */
    const char *oidc_issuer, *oidc_client_id, *oidc_client_secret; /* the last a file */
    const char *oidc_audience[OPTIONS_HOSTS_MAX + 1], *oidc_groups_claim, *oidc_scopes;
    bool oidc_trust_email;
    const char *iap_audience, *iap_keys;
    const char *trusted_header, *trusted_groups_header, *trusted_secret; /* the last a file */
    const char *trusted_from[OPTIONS_HOSTS_MAX + 1];
    const char *public_url, *cookie_key, *audit_log;
    int64_t session_hours;
    int64_t rate_limit, rate_limit_address; /* a second; 0: none; -1: by the mode */
    const char *default_project;            /* the one of /api/v1/; or NULL */
    const char *host;
    const char *allow_hosts[OPTIONS_HOSTS_MAX + 1];
    const char *peaks[OPTIONS_HOSTS_MAX + 1];     /* KEY=VALUE */
    const char *targets[OPTIONS_TARGETS_MAX + 1]; /* [NAME=]HOST:PORT */
    const char *tls_cert, *tls_key;
    const char *log_level;
    const char *access_log, *otlp_endpoint; /* NULL: none */
    int64_t trace_percent;
    const char *ui;                /* "stock=DIR", or NULL */
    const char *shards;            /* frontend: lib/cluster/members.h's spec */
    const char *rpc_key;           /* file of keys, or NULL */
    const char *identity;          /* shard: its name among the others; NULL: host name and port */
    const char *link_keys, *state; /* share links: both or neither */
    int64_t upload_limit;          /* bytes of one file that is uploaded; 0: none */
    int64_t figures_limit;         /* bytes of a run that is read for its figures; 0: none */
    const char *figures_dir;       /* where they are kept; NULL: in memory only */
    int64_t upload_minutes;        /* how long it is kept after its last use */
    const char *gcs_endpoint, *s3_endpoint;
    const char *bucket_auth; /* "auto", "none" or NULL */
    int64_t bucket_memory;   /* bytes; 0: the default */
    int64_t port, threads;
    int64_t admin_port;    /* -1: none */
    int64_t drain_seconds; /* between "not ready" and the end */
    int64_t memory_budget; /* bytes; 0: 60 % of what the machine or cgroup has */
};

enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

enum options_result options_parse(int argc, char **argv, const char *version, struct options *o);

/* The table, for config.h. */
struct options_row {
    const char *name;
    bool takes_value, repeats;
    bool asks; /* help and the like: no setting */
};
bool options_row_at(size_t i, struct options_row *row); /* false past the end */
bool options_row_named(const char *name, size_t n, struct options_row *row);

/* Puts the option that an error is about before its sentence; returns status. */
enum xp_status options_blame(const char *option, enum xp_status status, struct xp_error *err);

/* Whether an address to listen on can be reached from this machine only. */
bool options_is_loopback(const char *host);

/* Bytes of memory that this process may use: the cgroup's limit or the machine's memory. */
uint64_t options_memory_limit(void);
/* "512MB", "1.5GiB", "800M", "1000000": bytes; false if it is none of these. */
bool options_parse_bytes(const char *text, int64_t *bytes);

#endif
