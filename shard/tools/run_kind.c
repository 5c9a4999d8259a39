#include "shard/tools/run_kind.h"

#include <stdio.h>

#include "shard/derive/framework_op.h"

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Is it a word of the name, maybe the begin of one ("serving")? A word begins where no letter is
 * before it. */
static bool has_word(struct xp_span name, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= name.n; i++)
        if (memcmp(name.p + i, word, n) == 0 && !(i && is_letter(name.p[i - 1])))
            return true;
    return false;
}

static const char *word_of(struct xp_span name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_word(name, words[i]))
            return words[i];
    return NULL;
}

static bool is_gradient(const struct op_metrics *m)
{
    return framework_is_gradient(m->provenance, (struct xp_span){0}) ||
           framework_is_gradient(m->name, m->category);
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

/* A program or a step that is called by one of the words. */
static struct xp_span named(const struct figures *f, const char *const *words, size_t n)
{
    for (uint32_t i = 0; i < f->stats->nprograms; i++)
        if (word_of(f->stats->programs[i].name, words, n))
            return f->stats->programs[i].name;
    for (uint32_t h = 0; h < f->nhosts; h++)
        for (uint32_t i = 0; i < f->hosts[h].nmodules; i++)
            if (word_of(f->hosts[h].modules[i].name, words, n))
                return f->hosts[h].modules[i].name;
    for (uint32_t i = 0; i < f->nsteps; i++)
        if (word_of(f->steps[i].name, words, n))
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
    static const char *const training[] = {"train", "Train"};
    static const char *const inference[] = {"prefill", "decode",  "generate", "serve",
                                            "serving", "predict", "infer",    "sample"};
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
    } else if ((name = named(f, training, sizeof training / sizeof *training)).n) {
        say_named(r, "training", name);
    } else if ((name = named(f, inference, sizeof inference / sizeof *inference)).n) {
        say_named(r, "inference", name);
    } else {
        report_na(r, "run_kind",
                  "no op computes gradients, there are no requests, and no program is called "
                  "train, prefill, decode or the like");
    }
}
