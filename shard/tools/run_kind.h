/* shard/tools/run_kind.h - whether a run trains or answers requests, and what tells so.
 *
 * The first that applies:
 *   training    an op of a device computes gradients, by its name in the framework
 *   training    a program has such an op (framework_is_gradient), though none was timed
 *   inference   the profile has requests or batches of a server
 *   training    a program or a step is called so: train, training or trainer is a word of its name
 *               (name_words.h)
 *   inference   a program or a step is called so: prefill, decode, generate, serve, serving,
 *               predict, prediction, infer, inference, sample, sampling
 * Else it cannot be told: a program that only computes forward may be either's.
 */
#ifndef SHARD_RUN_KIND_H
#define SHARD_RUN_KIND_H

#include "shard/report/report.h"
#include "shard/stats/figures.h"

/* Metric run_kind. requests: the profile has some. */
void report_run_kind(struct report *r, const struct figures *f, bool requests);

#endif
