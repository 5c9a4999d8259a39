/* shard/tools/suggestions.h - what the rules of smart_suggestion found, for the parts of its
 * report: the rules (report_smart_suggestion.c), what shows each (suggestion_evidence.c), and what
 * all of them say together (suggestion_status.c).
 *
 * Shares are of the devices' time (their windows), unless a rule says otherwise.
 */
#ifndef SHARD_SUGGESTIONS_H
#define SHARD_SUGGESTIONS_H

#include "shard/tools/report_figures.h"
#include "shard/tools/run_facts.h"

#define TEXT_MAX 320
#define TOP 3 /* ops named as evidence */

enum state { UNKNOWN, FINE, APPLIES };

struct rule {
    const char *id, *tool, *what, *fix;
    double threshold;
};

/* Where it is seen best. */
struct place {
    struct xp_span host, plane; /* host empty: nowhere in particular */
    int64_t begin_ps;
    uint64_t duration_ps;
};

struct finding {
    const struct rule *rule;
    double share;
    uint8_t state; /* enum state */
    char evidence[TEXT_MAX];
    const struct op_metrics *op; /* the first of the evidence, or NULL */
    const struct op_metrics *top[TOP];
    double top_share[TOP];
    uint32_t ntop;
    const char *tool; /* instead of the rule's; NULL: that */
    struct place at;
};

enum {
    INPUT,
    IDLE,
    COLLECTIVES,
    BARRIERS,
    STRAGGLER,
    COPIES,
    SHUFFLE,
    TRANSFER,
    REMAT,
    LOOSE,
    SPARSE,
    MEMORY_NEAR,
    MEMORY_BOUND, /* from here on: what is left, not what is in the way */
    COMPUTE_BOUND,
    LOW_USE,
    RULES
};

struct view {
    const struct figures *f;
    const struct run_memory *memory;
    const struct op_metrics **ops; /* by self time */
    uint32_t nops;
    double self_ps; /* of all */
    struct finding v[RULES];
    uint32_t applies;
};

/* Is its share one of time, so that something could be won of a step? */
bool suggestion_is_time(const struct view *v, const struct finding *d);
const char *suggestion_whole(const struct view *v,
                             const struct finding *d); /* of what it is a share */
/* "P0", "P1" or "P2". */
const char *suggestion_priority(const struct view *v, const struct finding *d);
/* What could be won of a step at most, in ps; 0: no step is known, or it is no time. */
double suggestion_impact_ps(const struct view *v, const struct finding *d);
/* The share of ops of which `is` holds, of the devices' time. */
double suggestion_share(const struct view *v, bool (*is)(const struct op_metrics *m));
/* Where a run of the op is; host empty: not known. */
struct place suggestion_op_place(const struct view *v, const struct op_metrics *m);

/* The table `evidence`: of each finding ops, moments and figures that show it. */
void suggestion_evidence(struct report *r, const struct view *v);
/* Metric `status`, tables `summary`, `gate` and `programs`. */
void suggestion_status(struct report *r, const struct view *v);

#endif
