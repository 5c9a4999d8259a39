#include "shard/tools/run_kind.h"

#include <stdio.h>

#include "shard/derive/framework_op.h"
#include "shard/stats/name_words.h"
#include "shard/tools/op_layer.h"

static bool says_training(struct xp_span name)
{
    static const char *const words[] = {"train", "training", "trainer"};
    return name_has_any(name, words, sizeof words / sizeof *words);
}

static bool says_inference(struct xp_span name)
{
    static const char *const words[] = {"serve", "serving",   "predict", "prediction",
                                        "infer", "inference", "sample",  "sampling"};
    return name_says_prefill(name) || name_says_decode(name) ||
           name_has_any(name, words, sizeof words / sizeof *words);
}

static bool is_gradient(const struct op_metrics *m)
{
    return op_is_backward(m->provenance) || framework_is_gradient(m->name, m->category);
}

/* Share of the device's time; below 0: no op computes any. */
static double gradient_share(const struct op_db *db)
{
    uint64_t gradients = 0, all = 0;
    bool any = false;
    for (uint32_t i = 0; i < db->n; i++) {
        const struct op_metrics *m = &db->ops[i];
        if (op_is_idle(m))
            continue;
        all += m->self_ps;
        if (is_gradient(m)) {
            gradients += m->self_ps;
            any = true;
        }
    }
    return !any ? -1 : all ? (double)gradients / (double)all : 0;
}

static bool has_training_host(const struct op_stats *s)
{
    for (uint32_t i = 0; i < s->nhosts; i++)
        if (s->hosts[i].training)
            return true;
    return false;
}

/* A program or a step that is called so. */
static struct xp_span named(const struct figures *f, bool (*says)(struct xp_span name))
{
    for (uint32_t i = 0; i < f->stats->nprograms; i++)
        if (says(f->stats->programs[i].name))
            return f->stats->programs[i].name;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t i = 0; i < f->hosts[h].nmodules; i++)
            if (says(f->hosts[h].modules[i].name))
                return f->hosts[h].modules[i].name;
    for (uint32_t i = 0; i < f->nsteps; i++)
        if (says(f->steps[i].name))
            return f->steps[i].name;
    return (struct xp_span){0};
}

static void say(struct report *r, const char *kind, const char *note)
{
    report_string(r, "run_kind", xp_span_str(kind), note);
}

static void say_named(struct report *r, const char *kind, struct xp_span name)
{
    char note[160];
    snprintf(note, sizeof note, "by the name of %.*s", (int)(name.n < 100 ? name.n : 100),
             (const char *)name.p);
    say(r, kind, note);
}

void report_run_kind(struct report *r, const struct figures *f, bool requests)
{
    double share = gradient_share(&f->stats->device);
    struct xp_span name;
    char note[160];
    if (share >= 0) {
        snprintf(note, sizeof note, "ops that compute gradients take %.1f %% of the time of ops",
                 100 * share);
        say(r, "training", note);
    } else if (has_training_host(f->stats)) {
        say(r, "training", "a program of the profile computes gradients");
    } else if (requests) {
        say(r, "inference", "the profile has requests of a server");
    } else if ((name = named(f, says_training)).n) {
        say_named(r, "training", name);
    } else if ((name = named(f, says_inference)).n) {
        say_named(r, "inference", name);
    } else {
        report_na(r, "run_kind",
                  "no op computes gradients, there are no requests, and no program is called "
                  "train, prefill, decode or the like");
    }
}
