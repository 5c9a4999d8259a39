/* server/runs_query.h - what q asks of runs, word by word; all words have to hold.
 *
 *   train            the name holds it (ASCII letters of either case are one)
 *   "two words"      the same, with what is between
 *   device:v5        a text holds it: device, kind, state, program, work
 *   size>1GiB        a number: size, hosts, step, mfu, memory, findings, p0, p1, p2, dropped,
 * cores; > >= < <= =, with ns us ms s, kB MB GB KiB MiB GiB, k M G, % -word            it does not
 * hold
 *
 * A word of another form is part of a name, be there a ':' or '=' in it. What is not known of a run
 * holds for no word, so that it does hold for each with '-'.
 */
#ifndef SERVER_RUNS_QUERY_H
#define SERVER_RUNS_QUERY_H

#include "server/runfacts.h"

#define RUN_TERMS_MAX 32

/* Columns of the list, also to order by: RUN_COLUMN(symbol, "id", type). */
#define RUN_COLUMNS(X)                                                                             \
    X(NAME, "run", TEXT)                                                                           \
    X(CAPTURED, "captured", NUMBER)                                                                \
    X(HOSTS, "hosts", NUMBER)                                                                      \
    X(SIZE, "size", NUMBER)                                                                        \
    X(STATE, "state", TEXT)                                                                        \
    X(DEVICE, "device", TEXT)                                                                      \
    X(KIND, "kind", TEXT)                                                                          \
    X(STEP, "step", NUMBER)                                                                        \
    X(MFU, "mfu", NUMBER)                                                                          \
    X(MEMORY, "memory", NUMBER)                                                                    \
    X(FINDINGS, "findings", NUMBER)                                                                \
    X(DROPPED, "dropped", NUMBER)                                                                  \
    X(DEVICES, "devices", NUMBER)                                                                  \
    X(CORES, "cores", NUMBER)                                                                      \
    X(PROGRAM, "program", TEXT)                                                                    \
    X(WORK, "work", TEXT)                                                                          \
    X(P0, "p0", NUMBER)                                                                            \
    X(P1, "p1", NUMBER)                                                                            \
    X(P2, "p2", NUMBER)

enum run_column {
#define X(symbol, id, type) RUN_COLUMN_##symbol,
    RUN_COLUMNS(X)
#undef X
        RUN_COLUMNS_N
};

/* RUN_COLUMNS_N: there is none of that name. */
enum run_column run_column_named(struct xp_span id);
bool run_column_is_text(enum run_column c);

struct run_value {
    bool known;
    double number;
    const char *text; /* of a text column; the run's or the facts' */
};

/* f may be NULL. */
struct run_value run_column_value(enum run_column c, const struct run *r,
                                  const struct run_facts *f);

/* What can be said of the run without opening it: ready, unreadable, empty. */
const char *run_state_of(const struct run *r, const struct run_facts *f);

struct run_term {
    bool negated;
    enum run_column column;
    char op;       /* ':' '=' '>' '<', 'g' for >=, 'l' for <= */
    char *text;    /* of ':' */
    double number; /* of the others */
};

struct run_terms {
    struct run_term v[RUN_TERMS_MAX];
    size_t n;
    bool only_names; /* no term is about more */
};

/* XP_BAD_REQUEST: too many. run_terms_fini in any case. */
enum xp_status run_terms_parse(struct xp_span q, struct run_terms *t, struct xp_error *err);
void run_terms_fini(struct run_terms *t);
bool run_terms_hold_name(const struct run_terms *t, const char *name); /* those about names */
bool run_terms_hold(const struct run_terms *t, const struct run *r, const struct run_facts *f);

#endif
