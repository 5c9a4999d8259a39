#include <stdio.h>

#include "shard/tools/counter_facts.h"
#include "shard/tools/counter_samples.h"
#include "shard/tools/report_chip_units.h"

/* --- a host --- */

/* Whether it has counters at all, be they of a chip whose numbers mean nothing here. */
static enum xp_status is_counted(struct counter_device *d, bool *yes, struct xp_error *err)
{
    for (uint32_t i = d->plane->first_line; i < d->plane->first_line + d->plane->nlines; i++) {
        struct counter_sample s;
        XP_TRY(counter_sample_read(d, &d->part->lines[i], &s, err));
        if (s.values.n) {
            *yes = true;
            return XP_OK;
        }
    }
    return XP_OK;
}

static void add_chip(struct chips_seen *all, struct xp_span type, bool counted)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (xp_span_eq(all->v[i].type, type)) {
            all->v[i].counted |= counted;
            return;
        }
    if (all->n < CHIPS_SEEN_MAX)
        all->v[all->n++] = (struct chip_seen){type, counted};
}

static enum xp_status put_chips(struct facts_out *f, const struct part *p, struct xp_arena *a,
                                struct xp_error *err)
{
    struct chips_seen all = {.n = 0};
    for (uint32_t i = 0; i < p->nplanes; i++) {
        struct counter_device d;
        bool counted = false;
        if (!profile_is_tpu(profile_plane_name(p, &p->planes[i])))
            continue;
        XP_TRY(counter_device_open(&d, p, &p->planes[i], a, err));
        XP_TRY(is_counted(&d, &counted, err));
        if (d.type.n)
            add_chip(&all, d.type, counted);
    }
    facts_u64(f, all.n);
    for (uint32_t i = 0; i < all.n; i++) {
        facts_text(f, all.v[i].type);
        facts_u64(f, all.v[i].counted);
    }
    return XP_OK;
}

enum xp_status chip_units_map(const struct tool_host *host, const struct tool_args *args,
                              struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct facts_out f;
    (void)args;
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = counter_facts_put(&f, host->part, a, err);
    if (st == XP_OK)
        st = put_chips(&f, host->part, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- the report --- */

void chip_units_get(struct facts *f, struct chips_seen *all)
{
    size_t n = f->readable ? facts_get_count(f) : 0;
    for (size_t i = 0; i < n && !f->bad; i++) {
        struct xp_span type = facts_get_text(f);
        add_chip(all, type, facts_get_u64(f) != 0);
    }
}

static const struct chip {
    const char *name, *type;
    unsigned cores, mxus, side, sparse;
    const char *source;
} chips[] = {
#define CHIP(...) {__VA_ARGS__},
#include "shard/tools/tpu_chips.def"
#undef CHIP
};

static const struct chip *chip_of(struct xp_span type)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (xp_span_starts(type, xp_span_str(chips[i].type)))
            return &chips[i];
    return NULL;
}

enum { OF_MXU, OF_VECTOR, OF_SCALAR, OF_SPARSE, UNITS };

static const char *const unit_names[] = {"Matrix units (MXU)", "Vector unit (VPU)", "Scalar unit",
                                         "SparseCores"};
static const char *const unit_words[] = {
    NULL, "Element-wise work on vectors of 8 x 128 lanes; loads and stores of the vector memory.",
    "Steers the program: loops, branches, addresses, transfers.",
    "Gathers, scatters and other work on sparse data, beside the TensorCores."};

static const struct report_column columns[] = {
    {"chip", "Chip", "", REPORT_COL_TEXT, false, ""},
    {"unit", "Unit", "", REPORT_COL_TEXT, false, ""},
    {"count", "How many", "count", REPORT_COL_NUMBER, false,
     "of a TensorCore; SparseCores of a chip; n/a: not published"},
    {"meaning", "What it is", "", REPORT_COL_TEXT, false, ""},
    {"told", "How busy it was", "", REPORT_COL_TEXT, false, "where that is told, or why it is not"},
    {"source", "Source", "", REPORT_COL_TEXT, false, "of the numbers"},
};

struct rows {
    const struct chips_seen *all;
    char (*mxu)[96]; /* of each chip */
};

static bool is_known(struct xp_span type)
{
    enum tpu_chip chip;
    return tpu_chip_of(type, &chip);
}

static const char *told_of(const struct chip_seen *c)
{
    if (is_known(c->type))
        return c->counted ? "in the tables of units" : "n/a: no counters were captured";
    return c->counted ? "n/a: the numbers of this chip's counters are not published"
                      : "n/a: no counters were captured, and the numbers of this chip's counters "
                        "are not published";
}

static void row(void *ctx, uint64_t i, struct report_cell *c)
{
    const struct rows *x = ctx;
    const struct chip_seen *seen = &x->all->v[i / UNITS];
    const struct chip *chip = chip_of(seen->type);
    unsigned unit = i % UNITS;
    c[0] = report_of_text(chip ? xp_span_str(chip->name) : seen->type);
    c[1] = report_of_text(xp_span_str(unit_names[unit]));
    c[3] = report_of_text(xp_span_str(unit == OF_MXU ? x->mxu[i / UNITS] : unit_words[unit]));
    c[4] = report_of_text(xp_span_str(told_of(seen)));
    if (!chip)
        return;
    c[2] = report_of_u64(unit == OF_MXU ? chip->mxus : unit == OF_SPARSE ? chip->sparse : 1);
    c[5] = report_of_text(xp_span_str(chip->source));
}

void chip_units_write(struct report *r, const struct chips_seen *all)
{
    struct rows x = {all, xp_arena_alloc(r->a, (all->n + (size_t)1) * sizeof *x.mxu)};
    if (!x.mxu || !all->n)
        return;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct chip *c = chip_of(all->v[i].type);
        if (c)
            snprintf(x.mxu[i], sizeof x.mxu[i],
                     "Multiplies matrices: %u x %u products a cycle each.", c->side, c->side);
        else
            snprintf(x.mxu[i], sizeof x.mxu[i], "Multiplies matrices and convolves.");
        if (all->v[i].counted && !is_known(all->v[i].type))
            report_note(r, REPORT_WARNING, "units_unknown",
                        "The profile has counters of %.*s, whose numbers are not published: how "
                        "busy its units were is n/a (known: TPU v6e, TPU7x). The table chip_units "
                        "says what the chip has.",
                        (int)(all->v[i].type.n < 60 ? all->v[i].type.n : 60),
                        (const char *)all->v[i].type.p);
    }
    report_table(r, &(struct report_rows){.id = "chip_units",
                                          .title = "What the chip has",
                                          .columns = columns,
                                          .ncolumns = sizeof columns / sizeof *columns,
                                          .n = (uint64_t)all->n * UNITS,
                                          .row = row,
                                          .ctx = &x,
                                          .aside = true});
}
