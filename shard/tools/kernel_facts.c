#include "shard/tools/kernel_facts.h"

#include "shard/tools/counter_facts.h"

/* --- writing --- */

struct writer {
    struct facts_out *f;
    const struct part *p;
    const struct kernel_inside *k;
};

static void put_kernel(struct facts_out *f, const struct kernel_call *k)
{
    facts_text(f, k->op);
    facts_text(f, k->target);
    facts_text(f, k->source);
    facts_text(f, k->stack);
    facts_text(f, k->tf_op);
    facts_text(f, k->first_plane);
    facts_u64(f, k->has_program);
    facts_u64(f, k->program);
    facts_u64(f, k->runs);
    facts_u64(f, k->recorded);
    facts_u64(f, k->best);
    facts_i64(f, k->time_ps);
    facts_i64(f, k->begun_ps);
    facts_i64(f, k->least_ps);
    facts_i64(f, k->most_ps);
    facts_i64(f, k->first_ps);
    facts_i64(f, k->first_duration_ps);
}

static struct xp_span text_of(const struct kernel_inside *k, uint32_t id)
{
    return xp_strpool_get(&k->texts, id);
}

static void put_row(struct writer *w, const struct kernel_tally_row *r, uint32_t parent,
                    uint32_t source)
{
    for (int i = 0; i < KERNEL_TALLY_KEYS; i++)
        facts_text(w->f, text_of(w->k, r->key[i]));
    facts_u64(w->f, r->count);
    facts_i64(w->f, r->time_ps);
    facts_i64(w->f, r->self_ps);
    facts_i64(w->f, r->longest_ps);
    facts_i64(w->f, r->first_ps);
    facts_u64(w->f, parent);
    facts_text(w->f, text_of(w->k, source));
}

/* The longest ones. */
static bool put_rows(struct writer *w, const struct kernel_tally *t)
{
    uint32_t n, *order = kernel_tally_sorted(t, KERNEL_ROWS, &n);
    if (!order)
        return false;
    facts_u64(w->f, t->n - 1);
    facts_u64(w->f, n);
    for (uint32_t i = 0; i < n; i++)
        put_row(w, &t->rows[order[i]], 0, 0);
    return true;
}

/* In order of first appearance: what is around a region comes before it. */
static void put_regions(struct writer *w)
{
    const struct kernel_tally *t = &w->k->regions;
    uint32_t n = t->n - 1 < KERNEL_REGIONS ? t->n - 1 : KERNEL_REGIONS;
    facts_u64(w->f, t->n - 1);
    facts_u64(w->f, n);
    for (uint32_t i = 1; i <= n; i++) {
        struct kernel_tally_row r = t->rows[i];
        uint32_t parent = r.key[0];
        r.key[0] = 0;
        put_row(w, &r, parent, kernel_source_of(w->k, r.key[1]));
    }
}

static void put_unit(struct writer *w, const struct kernel_unit *u)
{
    facts_text(w->f, u->name);
    facts_u64(w->f, u->instructions);
    facts_i64(w->f, u->busy_ps);
    facts_i64(w->f, u->told_ps);
    facts_double(w->f, u->fill_ps);
    for (uint32_t i = 0; i < w->k->bins.n && u->busy; i++) {
        facts_i64(w->f, u->busy[i]);
        facts_u64(w->f, u->issued[i]);
    }
    for (uint32_t i = 0; i < w->k->bins.n && u->fill; i++) {
        facts_i64(w->f, u->told[i]);
        facts_double(w->f, u->fill[i]);
    }
}

static void put_units(struct writer *w)
{
    const struct kernel_inside *k = w->k;
    facts_u64(w->f, k->nunits);
    for (uint32_t i = 0; i < k->nunits; i++)
        put_unit(w, &k->units[i]);
    facts_u64(w->f, k->nscheduled);
    for (uint32_t i = 0; i < k->nscheduled; i++)
        put_unit(w, &k->scheduled[i]);
}

static void put_lines(struct writer *w)
{
    facts_u64(w->f, w->k->nlines);
    for (uint32_t i = 0; i < w->k->nlines; i++) {
        const struct kernel_line *l = &w->k->lines[i];
        facts_text(w->f, l->name);
        facts_u64(w->f, l->kind);
        facts_u64(w->f, l->events);
        facts_i64(w->f, l->first_ps);
        facts_i64(w->f, l->last_ps);
    }
}

static void put_bundles(struct writer *w)
{
    const struct kernel_inside *k = w->k;
    facts_u64(w->f, k->nbundle);
    for (uint32_t i = 0; i < k->nbundle; i++) {
        const struct kernel_bundle *b = &k->bundle[i];
        facts_u64(w->f, b->number);
        facts_u64(w->f, b->runs);
        facts_u64(w->f, b->instructions);
        facts_i64(w->f, b->time_ps);
        facts_i64(w->f, b->first_ps);
        facts_text(w->f, b->opcodes);
        facts_text(w->f, text_of(k, b->source));
    }
}

static bool put_inside(struct writer *w)
{
    const struct kernel_inside *k = w->k;
    struct facts_out *f = w->f;
    facts_i64(f, k->begin_ps);
    facts_i64(f, k->end_ps);
    facts_u64(f, k->has);
    facts_i64(f, k->bins.from_ps);
    facts_i64(f, k->bins.to_ps);
    facts_u64(f, k->bins.n);
    facts_i64(f, k->record_ps);
    facts_i64(f, k->recorded_ps);
    facts_u64(f, (uint64_t)(k->has_details | k->has_numbers << 1 | k->bundles_cut << 2 |
                            k->finalize_waits << 3));
    facts_u64(f, k->units_cut);
    facts_u64(f, k->instructions);
    facts_u64(f, k->sourced);
    facts_u64(f, k->bundles);
    facts_u64(f, k->bundle_numbers);
    for (uint32_t i = 0; i < k->bins.n; i++)
        facts_u64(f, k->bundle_bins[i]);
    for (int c = 0; c < KERNEL_CAUSES; c++)
        facts_i64(f, k->causes.ps[c]);
    for (uint32_t i = 0; i < k->bins.n * KERNEL_CAUSES; i++)
        facts_i64(f, k->causes.bins[i]);
    put_units(w);
    put_lines(w);
    put_bundles(w);
    put_regions(w);
    return put_rows(w, &k->opcodes) && put_rows(w, &k->sources) && put_rows(w, &k->codes);
}

/* The first ones; the chosen one is told by itself. */
static void put_runs(struct facts_out *f, const struct part *p, const struct kernel_calls *c,
                     uint32_t kernel)
{
    size_t n = 0;
    for (size_t i = 0; i < c->nruns; i++)
        n += c->runs[i].kernel == kernel;
    n = n < KERNEL_RUNS ? n : KERNEL_RUNS;
    facts_u64(f, n);
    for (size_t i = 0; i < c->nruns && n; i++) {
        const struct kernel_run *r = &c->runs[i];
        if (r->kernel != kernel)
            continue;
        facts_text(f, part_str(p, p->planes[r->plane].name));
        facts_i64(f, r->begin_ps);
        facts_i64(f, r->end_ps);
        facts_u64(f, r->has);
        n--;
    }
}

static enum xp_status put_detail(struct facts_out *f, const struct part *p,
                                 const struct kernel_calls *c, const struct kernel_choice *choice,
                                 struct xp_arena *a, struct xp_error *err)
{
    struct kernel_inside *k;
    facts_u64(f, choice->found);
    if (!choice->found)
        return XP_OK;
    const struct kernel_run *run = &c->runs[choice->run];
    const struct part_plane *pl = &p->planes[run->plane];
    XP_TRY(kernel_inside_read(p, pl, run->begin_ps, run->end_ps, a, &k, err));
    facts_u64(f, choice->kernel);
    facts_u64(f, choice->fit);
    facts_u64(f, choice->run_other);
    facts_u64(f, choice->number);
    facts_u64(f, choice->of);
    facts_text(f, part_str(p, pl->name));
    if (!put_inside(&(struct writer){f, p, k}))
        return xp_fail(err, XP_BUSY, 0, "no memory left for the inside of a kernel");
    put_runs(f, p, c, choice->kernel);
    return XP_OK;
}

static enum xp_status put_kernels(struct facts_out *f, const struct tool_host *host,
                                  const struct tool_args *args, struct xp_arena *a,
                                  struct xp_error *err)
{
    struct kernel_calls calls;
    struct kernel_choice choice;
    struct kernel_ask ask;
    XP_TRY(kernel_ask_of(args, &ask, err));
    XP_TRY(kernel_calls_find(host->part, a, &calls, err));
    facts_u64(f, calls.tpu);
    facts_u64(f, calls.n);
    for (uint32_t i = 0; i < calls.n; i++)
        put_kernel(f, &calls.kernels[i]);
    kernel_calls_choose(&calls, &ask, !ask.host.n || xp_span_eq(ask.host, host->name), a, &choice);
    return put_detail(f, host->part, &calls, &choice, a, err);
}

enum xp_status kernel_facts_map(const struct tool_host *host, const struct tool_args *args,
                                struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct facts_out f;
    XP_TRY(facts_begin(&f, a, err));
    enum xp_status st = counter_facts_put(&f, host->part, a, err);
    if (st == XP_OK)
        st = put_kernels(&f, host, args, a, err);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

/* --- reading --- */

struct reader {
    struct facts *f;
    struct xp_arena *a;
    bool full; /* no memory */
};

static void *array(struct reader *r, size_t n, size_t size)
{
    void *v = xp_arena_zalloc(r->a, (n + 1) * size);
    r->full |= !v;
    return v;
}

static void get_kernel(struct facts *f, struct kernel_call *k)
{
    k->op = facts_get_text(f);
    k->target = facts_get_text(f);
    k->source = facts_get_text(f);
    k->stack = facts_get_text(f);
    k->tf_op = facts_get_text(f);
    k->first_plane = facts_get_text(f);
    k->has_program = facts_get_u64(f) != 0;
    k->program = facts_get_u64(f);
    k->runs = facts_get_u64(f);
    k->recorded = facts_get_u64(f);
    k->best = (uint32_t)facts_get_u64(f);
    k->time_ps = facts_get_i64(f);
    k->begun_ps = facts_get_i64(f);
    k->least_ps = facts_get_i64(f);
    k->most_ps = facts_get_i64(f);
    k->first_ps = facts_get_i64(f);
    k->first_duration_ps = facts_get_i64(f);
}

static void get_rows(struct reader *r, struct kernel_rows *rows)
{
    rows->total = facts_get_u64(r->f);
    size_t n = facts_get_count(r->f);
    rows->v = array(r, n, sizeof *rows->v);
    for (size_t i = 0; rows->v && i < n; i++) {
        struct kernel_row *row = &rows->v[i];
        for (int k = 0; k < KERNEL_TALLY_KEYS; k++)
            row->text[k] = facts_get_text(r->f);
        row->count = facts_get_u64(r->f);
        row->time_ps = facts_get_i64(r->f);
        row->self_ps = facts_get_i64(r->f);
        row->longest_ps = facts_get_i64(r->f);
        row->first_ps = facts_get_i64(r->f);
        row->parent = (uint32_t)facts_get_u64(r->f);
        row->parent = row->parent <= i ? row->parent : 0;
        row->source = facts_get_text(r->f);
        rows->n = i + 1;
    }
}

static void get_unit(struct reader *r, struct kernel_unit *u, uint32_t bins, bool scheduled)
{
    u->name = facts_get_text(r->f);
    u->instructions = facts_get_u64(r->f);
    u->busy_ps = facts_get_i64(r->f);
    u->told_ps = facts_get_i64(r->f);
    u->fill_ps = facts_get_double(r->f);
    u->busy = array(r, bins, sizeof *u->busy);
    u->issued = array(r, bins, sizeof *u->issued);
    u->told = array(r, bins, sizeof *u->told);
    u->fill = array(r, bins, sizeof *u->fill);
    for (uint32_t i = 0; i < bins && !r->full; i++) {
        if (scheduled) {
            u->told[i] = facts_get_i64(r->f);
            u->fill[i] = facts_get_double(r->f);
        } else {
            u->busy[i] = facts_get_i64(r->f);
            u->issued[i] = facts_get_u64(r->f);
        }
    }
}

static uint32_t bounded(struct reader *r, uint32_t max)
{
    size_t n = facts_get_count(r->f);
    r->f->bad |= n > max;
    return n > max ? 0 : (uint32_t)n;
}

static void get_parts(struct reader *r, struct kernel_detail *d)
{
    struct kernel_inside *k = &d->in;
    k->nunits = bounded(r, KERNEL_UNITS);
    for (uint32_t i = 0; i < k->nunits; i++)
        get_unit(r, &k->units[i], k->bins.n, false);
    k->nscheduled = bounded(r, KERNEL_UNITS);
    for (uint32_t i = 0; i < k->nscheduled; i++)
        get_unit(r, &k->scheduled[i], k->bins.n, true);
    k->nlines = bounded(r, KERNEL_LINES);
    for (uint32_t i = 0; i < k->nlines; i++) {
        struct kernel_line *l = &k->lines[i];
        l->name = facts_get_text(r->f);
        l->kind = (uint32_t)facts_get_u64(r->f);
        l->events = facts_get_u64(r->f);
        l->first_ps = facts_get_i64(r->f);
        l->last_ps = facts_get_i64(r->f);
    }
    size_t n = facts_get_count(r->f);
    k->bundle = array(r, n, sizeof *k->bundle);
    d->bundle_source = array(r, n, sizeof *d->bundle_source);
    for (size_t i = 0; i < n && !r->full; i++) {
        struct kernel_bundle *b = &k->bundle[i];
        b->number = (uint32_t)facts_get_u64(r->f);
        b->runs = facts_get_u64(r->f);
        b->instructions = facts_get_u64(r->f);
        b->time_ps = facts_get_i64(r->f);
        b->first_ps = facts_get_i64(r->f);
        b->opcodes = facts_get_text(r->f);
        d->bundle_source[i] = facts_get_text(r->f);
        k->nbundle = (uint32_t)i + 1;
    }
}

static void get_inside(struct reader *r, struct kernel_detail *d)
{
    struct kernel_inside *k = &d->in;
    k->begin_ps = facts_get_i64(r->f);
    k->end_ps = facts_get_i64(r->f);
    k->has = (uint32_t)facts_get_u64(r->f);
    k->bins.from_ps = facts_get_i64(r->f);
    k->bins.to_ps = facts_get_i64(r->f);
    k->bins.n = bounded(r, KERNEL_BINS);
    k->record_ps = facts_get_i64(r->f);
    k->recorded_ps = facts_get_i64(r->f);
    uint64_t flags = facts_get_u64(r->f);
    k->has_details = flags & 1;
    k->has_numbers = flags & 2;
    k->bundles_cut = flags & 4;
    k->finalize_waits = flags & 8;
    k->units_cut = (uint32_t)facts_get_u64(r->f);
    k->instructions = facts_get_u64(r->f);
    k->sourced = facts_get_u64(r->f);
    k->bundles = facts_get_u64(r->f);
    k->bundle_numbers = facts_get_u64(r->f);
    k->bundle_bins = array(r, k->bins.n, sizeof *k->bundle_bins);
    k->causes.bins = array(r, (size_t)k->bins.n * KERNEL_CAUSES, sizeof *k->causes.bins);
    for (uint32_t i = 0; i < k->bins.n && !r->full; i++)
        k->bundle_bins[i] = facts_get_u64(r->f);
    for (int c = 0; c < KERNEL_CAUSES; c++)
        k->causes.ps[c] = facts_get_i64(r->f);
    for (uint32_t i = 0; i < k->bins.n * KERNEL_CAUSES && !r->full; i++)
        k->causes.bins[i] = facts_get_i64(r->f);
    get_parts(r, d);
    get_rows(r, &d->regions);
    get_rows(r, &d->opcodes);
    get_rows(r, &d->sources);
    get_rows(r, &d->codes);
}

static struct kernel_detail *get_detail(struct reader *r, uint32_t nkernels)
{
    struct kernel_detail *d = array(r, 1, sizeof *d);
    if (!d)
        return NULL;
    d->kernel = (uint32_t)facts_get_u64(r->f);
    r->f->bad |= d->kernel >= nkernels;
    d->fit = (uint8_t)facts_get_u64(r->f);
    d->run_other = facts_get_u64(r->f) != 0;
    d->number = facts_get_u64(r->f);
    d->of = facts_get_u64(r->f);
    d->plane = facts_get_text(r->f);
    get_inside(r, d);
    size_t n = facts_get_count(r->f);
    d->runs = array(r, n, sizeof *d->runs);
    for (size_t i = 0; i < n && !r->full; i++) {
        d->runs[i].plane = facts_get_text(r->f);
        d->runs[i].begin_ps = facts_get_i64(r->f);
        d->runs[i].end_ps = facts_get_i64(r->f);
        d->runs[i].has = (uint32_t)facts_get_u64(r->f);
        d->nruns = i + 1;
    }
    return d;
}

enum xp_status kernel_facts_read(struct facts *f, struct xp_arena *a, struct kernel_host *out,
                                 struct xp_error *err)
{
    struct reader r = {.f = f, .a = a};
    *out = (struct kernel_host){.name = f->host};
    if (!f->readable)
        return XP_OK;
    out->calls.tpu = facts_get_u64(f) != 0;
    size_t n = facts_get_count(f);
    out->calls.kernels = array(&r, n, sizeof *out->calls.kernels);
    for (size_t i = 0; i < n && !r.full; i++)
        get_kernel(f, &out->calls.kernels[i]);
    out->calls.n = (uint32_t)n;
    if (facts_get_u64(f) && !r.full)
        out->detail = get_detail(&r, out->calls.n);
    if (r.full)
        return xp_fail(err, XP_BUSY, 0, "no memory left for what the hosts say of kernels");
    return facts_ok(f, err);
}

static int rank(const struct kernel_detail *d)
{
    return (d->fit * 2 + !d->run_other) * 4 + kernel_worth(d->in.has);
}

const struct kernel_host *kernel_facts_pick(const struct kernel_host *hosts, size_t n)
{
    const struct kernel_host *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (hosts[i].detail && (!best || rank(hosts[i].detail) > rank(best->detail)))
            best = &hosts[i];
    return best;
}
