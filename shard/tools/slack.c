#include "shard/tools/slack.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/pb_wire.h"
#include "shard/tools/modules.h"
#include "shard/tools/slack_peers.h"

enum { CATEGORY, COLLECTIVE, NAMES };
static const char *const names[NAMES] = {"hlo_category", "dcn_collective_info"};

/* What an op is, from its module; found when it is first met. */
struct op {
    bool transfers; /* its category says so */
    bool looked, known;
    const struct part_evmeta *meta;
    int64_t group; /* members of a replica group; 0: not told */
    uint32_t slices;
    enum hlo_opcode opcode;
    uint64_t channel;
    uint32_t rendezvous, type; /* strings; 0: none */
    int64_t bytes;
};

/* A rendezvous under way. */
struct open {
    uint32_t rendezvous, type, send_op, slices;
    bool sent;
    uint64_t start_ns, stall_ns;
    uint64_t clock_ns; /* what all transfers' ops had taken before it was sent */
    uint64_t send_ps, recv_ps, send_done_ps;
    int64_t group;
    bool grouped;
    uint32_t row; /* + 1 in rows of this host */
    int64_t start_ps;
    uint64_t seen;
    struct slack_sample slowest;
};

struct tracker {
    struct slack *s;
    const struct tool_host *host;
    const struct part_plane *plane;
    struct op *ops; /* by event name, of the module that they were met in first */
    uint32_t *op_module;
    struct vec open, modules; /* struct open; const struct hlo_module * or NULL */
    /* rendezvous, module's name -> those; channel -> name */
    struct idmap open_by, module_by, channels;
    struct vec rows;   /* struct slack_row, sums */
    uint64_t clock_ns; /* taken by all ops so far */
    uint64_t every;    /* of so many transfers of a rendezvous one is kept as a sample */
    struct vec *log;   /* slack_ops: ops are listed, not summed */
    uint32_t ordinal;
};

static enum xp_status no_memory(struct xp_error *err)
{
    return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
}

bool slack_init(struct slack *s, struct xp_arena *a)
{
    *s = (struct slack){.a = a};
    idmap_init(&s->by_rendezvous, a);
    return xp_strpool_init(&s->strings, a);
}

void slack_fini(struct slack *s)
{
    vec_free(&s->rows);
    vec_free(&s->samples);
}

/* --- what ops are --- */

static bool has_text(struct xp_span s, const char *part)
{
    return s.n && memmem(s.p, s.n, part, strlen(part)) != NULL;
}

/* Members of the first group of a DcnCollectiveInfoProto. */
static int64_t group_size(struct xp_span info)
{
    struct xp_span group;
    int64_t n = 0;
    if (hlo_get_span(info, 3, &group))
        return 1; /* from one to one */
    struct hlo_spans groups = hlo_spans_open(info, 2);
    if (!hlo_spans_next(&groups, &group))
        return 0;
    struct xp_span member;
    for (struct hlo_spans m = hlo_spans_open(group, 1); hlo_spans_next(&m, &member);)
        n++;
    return n;
}

#define SLICES_TEXT 96

/* Adds to a list, once; where there is no room, dots. */
static void list(char *text, size_t *n, const char *item)
{
    size_t len = strlen(item);
    for (const char *at = strstr(text, item); at; at = strstr(at + 1, item))
        if ((at == text || at[-1] == ' ') && (at[len] == ',' || !at[len]))
            return;
    if (*n + len + 8 >= SLICES_TEXT) {
        if (!strstr(text, "..."))
            *n += (size_t)snprintf(text + *n, SLICES_TEXT - *n, ", ...");
        return;
    }
    *n += (size_t)snprintf(text + *n, SLICES_TEXT - *n, "%s%s", *n ? ", " : "", item);
}

/* Which slices take part, as far as there is room; 0: it does not tell. */
static uint32_t slices_of(struct slack *s, struct xp_span info)
{
    char text[SLICES_TEXT] = "", item[48];
    struct xp_span pair, group, from, to;
    size_t n = 0;
    for (struct hlo_spans p = hlo_spans_open(info, 3); hlo_spans_next(&p, &pair);)
        if (hlo_get_span(pair, 1, &from) && hlo_get_span(pair, 2, &to)) {
            snprintf(item, sizeof item, "%lld->%lld", (long long)hlo_get_int(from, 1, 0),
                     (long long)hlo_get_int(to, 1, 0));
            list(text, &n, item);
        }
    for (struct hlo_spans g = hlo_spans_open(info, 2); hlo_spans_next(&g, &group);)
        for (struct hlo_spans m = hlo_spans_open(group, 1); hlo_spans_next(&m, &from);) {
            snprintf(item, sizeof item, "%lld", (long long)hlo_get_int(from, 1, 0));
            list(text, &n, item);
        }
    return n ? xp_strpool_add(&s->strings, xp_span_str(text)) : 0;
}

static enum xp_status read_ops(struct tracker *t, struct xp_error *err)
{
    struct values_eye eye;
    struct value v;
    size_t n = (size_t)t->plane->nevmeta + 1;
    t->ops = xp_arena_zalloc(t->s->a, n * sizeof *t->ops);
    t->op_module = xp_arena_zalloc(t->s->a, n * sizeof *t->op_module);
    if (!t->ops || !t->op_module)
        return no_memory(err);
    values_open(&eye, t->host->part, t->plane, names, NAMES, t->s->a);
    for (uint32_t i = 0; i < t->plane->nevmeta; i++) {
        bool category = false, collective = false;
        XP_TRY(values_of_evmeta(&eye, i, err));
        t->ops[i].meta = &t->plane->evmeta[i];
        while (values_next(&eye, &v)) {
            if (v.which == CATEGORY && !category) {
                category = true;
                t->ops[i].transfers = v.type == VALUE_TEXT && (has_text(v.text, "host send") ||
                                                               has_text(v.text, "host recv"));
            } else if (v.which == COLLECTIVE && !collective) {
                collective = true;
                t->ops[i].group = v.type == VALUE_BYTES ? group_size(v.text) : 0;
                t->ops[i].slices = v.type == VALUE_BYTES ? slices_of(t->s, v.text) : 0;
                if (t->ops[i].slices == XP_STRPOOL_FULL)
                    return no_memory(err);
            }
        }
    }
    return XP_OK;
}

/* A frontend attribute of an instruction, as a string id; 0: it has none. */
static uint32_t attribute(struct tracker *t, const struct hlo_instr *in, const char *key)
{
    struct xp_span attributes, entry, k, v;
    if (!hlo_get_span(in->raw, HLO_F_FRONTEND_ATTRIBUTES, &attributes))
        return 0;
    for (struct hlo_spans e = hlo_spans_open(attributes, 1); hlo_spans_next(&e, &entry);)
        if (hlo_get_span(entry, 1, &k) && xp_span_eq(k, xp_span_str(key)) &&
            hlo_get_span(entry, 2, &v))
            return xp_strpool_add(&t->s->strings, v);
    return 0;
}

static enum xp_status module_of(struct tracker *t, uint32_t name, const struct hlo_module **hlo,
                                struct xp_error *err)
{
    uint32_t at,
        id = xp_strpool_add(&t->s->strings, part_str(t->host->part, t->plane->evmeta[name].name));
    if (id == XP_STRPOOL_FULL)
        return no_memory(err);
    if (idmap_get(&t->module_by, id, &at)) {
        *hlo = VEC(t->modules, const struct hlo_module *)[at];
        return XP_OK;
    }
    struct tool_arg arg = {XP_SPAN_LIT("module_name"),
                           part_str(t->host->part, t->plane->evmeta[name].name)};
    struct tool_args args = {.args = &arg, .n = 1};
    struct xp_error own = {0};
    struct xp_span proto;
    struct hlo_module *found = NULL;
    *hlo = NULL;
    enum xp_status st = modules_find(t->host, 1, &args, t->s->a, &proto, &own);
    if (st == XP_OK)
        st = hlo_decode(proto, t->s->a, &found, &own);
    if (st == XP_OK)
        *hlo = found;
    const struct hlo_module **m = st == XP_BUSY ? NULL : vec_push(&t->modules, sizeof *m);
    if (!m || !idmap_put(&t->module_by, id, (uint32_t)t->modules.n - 1))
        return no_memory(err);
    *m = *hlo;
    return XP_OK;
}

static enum xp_status look_up(struct tracker *t, struct op *op, uint32_t module,
                              struct xp_error *err)
{
    const struct hlo_module *m = NULL;
    op->looked = true;
    op->known = false;
    XP_TRY(module_of(t, module, &m, err));
    struct xp_span name = part_str(t->host->part, op->meta->display_name);
    const struct hlo_instr *in = m && name.n ? hlo_instr_at(m, hlo_instr_by_name(m, name)) : NULL;
    if (!in)
        return XP_OK;
    int64_t channel = hlo_get_int(in->raw, HLO_F_CHANNEL_ID, 0);
    op->opcode = in->opcode;
    op->channel = channel > 0 ? (uint64_t)channel : 0;
    op->rendezvous = attribute(t, in, "_xla_host_transfer_rendezvous");
    op->type = attribute(t, in, "_xla_megascale_transfer_type");
    op->bytes = hlo_shape_bytes(m, in->shape, 0);
    op->known = op->rendezvous != XP_STRPOOL_FULL && op->type != XP_STRPOOL_FULL;
    return op->known ? XP_OK : no_memory(err);
}

/* --- transfers --- */

static uint64_t bytes_sent(const struct slack *s, uint32_t type, int64_t group, int64_t bytes)
{
    struct xp_span t = xp_strpool_get(&s->strings, type);
    double g = (double)group, b = (double)bytes, sent = 0;
    if (group <= 0 || bytes < 0)
        return 0;
    if (xp_span_eq(t, XP_SPAN_LIT("ONE_TO_ONE")))
        sent = g * b;
    else if (xp_span_eq(t, XP_SPAN_LIT("ALL_GATHER")) || xp_span_eq(t, XP_SPAN_LIT("ALL_TO_ALL")))
        sent = (g - 1) / g * b;
    else if (xp_span_eq(t, XP_SPAN_LIT("ALL_REDUCE")))
        sent = 2 * ((g - 1) / g) * b;
    else if (xp_span_eq(t, XP_SPAN_LIT("REDUCE_SCATTER")))
        sent = (g - 1) * b;
    return sent < 0x1p63 ? (uint64_t)sent : 0;
}

/* Time of day does not matter here, but what is cut off does. */
static uint64_t whole(double v)
{
    return v > 0 && v < 0x1p63 ? (uint64_t)v : 0;
}

static struct open *open_of(struct tracker *t, uint32_t rendezvous)
{
    uint32_t at;
    if (idmap_get(&t->open_by, rendezvous, &at))
        return &VEC(t->open, struct open)[at];
    struct open *o = vec_push(&t->open, sizeof *o);
    if (!o || !idmap_put(&t->open_by, rendezvous, (uint32_t)t->open.n - 1))
        return NULL;
    *o = (struct open){.rendezvous = rendezvous, .clock_ns = t->clock_ns};
    return o;
}

/* The op's own rendezvous, else that of its channel; 0: neither is known. */
static bool rendezvous_of(struct tracker *t, const struct op *op, uint32_t *rendezvous)
{
    *rendezvous = op->rendezvous;
    if (op->rendezvous)
        return idmap_put(&t->channels, op->channel, op->rendezvous);
    idmap_get(&t->channels, op->channel, rendezvous);
    return true;
}

static uint64_t add_us(uint64_t sum, uint64_t ps, double per_us)
{
    return whole((double)sum + (double)ps / per_us);
}

static bool keep_sample(struct tracker *t, struct open *o, int64_t end_ps, uint64_t done_ps)
{
    struct slack_sample m = {.rendezvous = o->rendezvous,
                             .host = t->host->index,
                             .begin_ps = o->start_ps,
                             .done_ps = done_ps};
    if (end_ps > o->start_ps)
        m.observed_ps = (uint64_t)end_ps - (uint64_t)o->start_ps;
    if (m.observed_ps >= o->slowest.observed_ps) {
        o->slowest = m;
        o->slowest.slowest = true;
    }
    if (o->seen++ % t->every)
        return true;
    struct slack_sample *to = vec_push(&t->s->samples, sizeof *to);
    if (to)
        *to = m;
    return to != NULL;
}

static bool keep_slowest(struct tracker *t)
{
    for (size_t i = 0; i < t->open.n; i++) {
        const struct open *o = &VEC(t->open, struct open)[i];
        struct slack_sample *to = o->seen ? vec_push(&t->s->samples, sizeof *to) : NULL;
        if (o->seen && !to)
            return false;
        if (o->seen)
            *to = o->slowest;
    }
    return true;
}

/* recv-done closes an occurrence. */
static bool close_transfer(struct tracker *t, struct open *o, const struct op *op, double begin_ns,
                           double end_ns, uint64_t done_ps)
{
    if (!o->sent)
        return true;
    if (!o->row) {
        struct slack_row *fresh = vec_push(&t->rows, sizeof *fresh);
        if (!fresh)
            return false;
        *fresh = (struct slack_row){.rendezvous = o->rendezvous};
        o->row = (uint32_t)t->rows.n;
    }
    struct slack_row *r = &VEC(t->rows, struct slack_row)[o->row - 1];
    uint32_t recv = xp_strpool_add(&t->s->strings, part_str(t->host->part, op->meta->display_name));
    if (recv == XP_STRPOOL_FULL)
        return false;
    r->occurrences++;
    r->transfer_type = o->type;
    r->send_op = o->send_op;
    r->slices = o->slices;
    r->recv_op = recv;
    r->bytes = bytes_sent(t->s, o->type, o->group, op->bytes);
    r->slack_us +=
        whole((begin_ns - (double)o->start_ns - (double)(t->clock_ns - o->clock_ns)) / 1e3);
    r->stall_us += whole((double)o->stall_ns / 1e3);
    r->observed_us += whole(end_ns / 1e3) - whole((double)o->start_ns / 1e3);
    r->send_us = add_us(r->send_us, o->send_ps, 1e6);
    r->recv_us = add_us(r->recv_us, o->recv_ps, 1e12); /* XProf divides once too often */
    r->own_recv_us = add_us(r->own_recv_us, o->recv_ps, 1e6);
    r->send_done_us = add_us(r->send_done_us, o->send_done_ps, 1e6);
    r->recv_done_us = add_us(r->recv_done_us, done_ps, 1e6);
    return true;
}

static bool visit(struct tracker *t, const struct op *op, int64_t begin_ps, int64_t end_ps)
{
    uint32_t rendezvous;
    uint64_t ps = (uint64_t)end_ps - (uint64_t)begin_ps, ns = ps / 1000;
    double begin_ns = (double)begin_ps / 1e3, end_ns = (double)end_ps / 1e3;
    if (!rendezvous_of(t, op, &rendezvous))
        return false;
    if (!rendezvous)
        return true;
    struct open *o = open_of(t, rendezvous);
    if (!o)
        return false;
    o->stall_ns += ns;
    if (op->opcode == HLO_OP_SEND) {
        uint32_t name =
            xp_strpool_add(&t->s->strings, part_str(t->host->part, op->meta->display_name));
        if (name == XP_STRPOOL_FULL)
            return false;
        o->sent = true;
        o->start_ns = whole(begin_ns);
        o->start_ps = begin_ps;
        o->clock_ns = t->clock_ns;
        o->stall_ns = ns;
        o->type = op->type;
        o->send_op = name;
        o->send_ps = ps;
        if (!o->grouped) {
            o->group = op->group;
            o->slices = op->slices;
        }
        o->grouped = true;
    } else if (op->opcode == HLO_OP_RECV) {
        o->recv_ps = ps;
    } else if (op->opcode == HLO_OP_SEND_DONE) {
        o->send_done_ps = ps;
    } else if (op->opcode == HLO_OP_RECV_DONE && (!close_transfer(t, o, op, begin_ns, end_ns, ps) ||
                                                  (o->sent && !keep_sample(t, o, end_ps, ps)))) {
        return false;
    }
    t->clock_ns += ns;
    return true;
}

static bool log_op(struct tracker *t, const struct op *op, int64_t begin_ps, int64_t end_ps)
{
    struct slack_op v = {.ordinal = t->ordinal, .begin_ps = begin_ps, .end_ps = end_ps};
    if (!rendezvous_of(t, op, &v.rendezvous))
        return false;
    struct open *o = v.rendezvous ? open_of(t, v.rendezvous) : NULL;
    if (!o)
        return !v.rendezvous;
    if (op->opcode == HLO_OP_SEND) {
        v.role = SLACK_SEND;
        o->type = op->type;
        o->group = op->group;
    } else if (op->opcode == HLO_OP_SEND_DONE) {
        v.role = SLACK_SEND_DONE;
    } else if (op->opcode == HLO_OP_RECV) {
        v.role = SLACK_RECV;
    } else if (op->opcode == HLO_OP_RECV_DONE) {
        v.role = SLACK_RECV_DONE;
        v.bytes = bytes_sent(t->s, o->type, o->group, op->bytes);
    } else {
        return true;
    }
    v.name = xp_strpool_add(&t->s->strings, part_str(t->host->part, op->meta->display_name));
    struct slack_op *to = v.name == XP_STRPOOL_FULL ? NULL : vec_push(t->log, sizeof *to);
    if (to)
        *to = v;
    return to != NULL;
}

/* --- a host --- */

static const struct part_line *line_named(const struct part *p, const struct part_plane *pl,
                                          const char *name)
{
    for (uint32_t i = pl->first_line; i < pl->first_line + pl->nlines; i++)
        if (xp_span_eq(part_str(p, p->lines[i].name), xp_span_str(name)))
            return &p->lines[i];
    return NULL;
}

static bool any(void *ctx, const struct lane_event *ev)
{
    (void)ctx, (void)ev;
    return true;
}

static bool transfers(void *ctx, const struct lane_event *ev)
{
    const struct tracker *t = ctx;
    return ev->name < t->plane->nevmeta && t->ops[ev->name].transfers;
}

/* The first event from *at on that holds [begin, end); *at moves on, as time does. */
static const struct lane_event *around(const struct lane_event *v, size_t n, size_t *at,
                                       int64_t begin, int64_t end)
{
    for (size_t i = *at; i < n && v[i].begin_ps <= end; i++) {
        if (v[i].end_ps < begin)
            continue;
        *at = i;
        if (v[i].begin_ps <= begin && end <= v[i].end_ps)
            return &v[i];
    }
    return NULL;
}

static enum xp_status visit_line(struct tracker *t, const struct part_line *line,
                                 const struct part_line *modules, struct out *out,
                                 struct xp_error *err)
{
    struct lane_event *ops, *runs;
    size_t nops, nruns, at = 0;
    XP_TRY(profile_events(line, transfers, t, t->s->a, &ops, &nops, err));
    XP_TRY(profile_events(modules, any, NULL, t->s->a, &runs, &nruns, err));
    int64_t shift = line->base_ps - modules->base_ps;
    t->every = nops / 4 / SLACK_SAMPLES + 1;
    for (size_t i = 0; i < nops; i++) {
        const struct lane_event *run =
            around(runs, nruns, &at, ops[i].begin_ps + shift, ops[i].end_ps + shift);
        if (!run || run->name >= t->plane->nevmeta)
            continue;
        struct op *op = &t->ops[ops[i].name];
        if (!op->looked || t->op_module[ops[i].name] != run->name) {
            t->op_module[ops[i].name] = run->name;
            XP_TRY(look_up(t, op, run->name, err));
        }
        int64_t begin = line->base_ps + ops[i].begin_ps, end = line->base_ps + ops[i].end_ps;
        if (t->log && t->log->n >= SLACK_OPS)
            break;
        if (t->log && !part_begins(t->host->part, ops[i].at, begin))
            continue;
        if (op->known && !(t->log ? log_op(t, op, begin, end) : visit(t, op, begin, end)))
            return no_memory(err);
        if (out_cancelled(out))
            return XP_CANCELLED;
    }
    return XP_OK;
}

static enum xp_status visit_plane(struct tracker *t, struct out *out, struct xp_error *err)
{
    const struct part *p = t->host->part;
    const struct part_line *modules = line_named(p, t->plane, "XLA Modules");
    if (!modules)
        return XP_OK;
    XP_TRY(read_ops(t, err));
    for (uint32_t i = t->plane->first_line; i < t->plane->first_line + t->plane->nlines; i++)
        if (xp_span_eq(part_str(p, p->lines[i].name), XP_SPAN_LIT("XLA Ops")))
            XP_TRY(visit_line(t, &p->lines[i], modules, out, err));
    return XP_OK;
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
    return n ? whole((double)sum / (double)n) : 0;
}

static void each_field(struct slack_row *to, const struct slack_row *from,
                       uint64_t (*fn)(uint64_t a, uint64_t b, uint64_t n), uint64_t n)
{
    to->slack_us = fn(to->slack_us, from->slack_us, n);
    to->stall_us = fn(to->stall_us, from->stall_us, n);
    to->observed_us = fn(to->observed_us, from->observed_us, n);
    to->send_us = fn(to->send_us, from->send_us, n);
    to->recv_us = fn(to->recv_us, from->recv_us, n);
    to->send_done_us = fn(to->send_done_us, from->send_done_us, n);
    to->recv_done_us = fn(to->recv_done_us, from->recv_done_us, n);
    to->own_recv_us = fn(to->own_recv_us, from->own_recv_us, n);
}

static uint64_t mean_field(uint64_t a, uint64_t b, uint64_t n)
{
    (void)a;
    return mean(b, n);
}

static uint64_t zero_field(uint64_t a, uint64_t b, uint64_t n)
{
    (void)a, (void)b, (void)n;
    return 0;
}

static uint64_t weighted_field(uint64_t a, uint64_t b, uint64_t n)
{
    return a + b * n;
}

bool slack_join(struct slack *to, const struct slack_row *r)
{
    struct slack_row *mine;
    uint32_t at;
    if (idmap_get(&to->by_rendezvous, r->rendezvous, &at)) {
        mine = &VEC(to->rows, struct slack_row)[at];
    } else {
        mine = vec_push(&to->rows, sizeof *mine);
        if (!mine || !idmap_put(&to->by_rendezvous, r->rendezvous, (uint32_t)to->rows.n - 1))
            return false;
        *mine = (struct slack_row){.rendezvous = r->rendezvous};
    }
    each_field(mine, r, weighted_field, 1);
    mine->occurrences += r->occurrences;
    mine->bytes = r->bytes;
    mine->transfer_type = r->transfer_type;
    mine->send_op = r->send_op;
    mine->slices = r->slices;
    mine->recv_op = r->recv_op;
    return true;
}

/* The host's means, weighted by how often each happened, to those of the others. */
static bool add_rows(struct slack *s, const struct vec *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct slack_row r = VEC(*rows, struct slack_row)[i], weighted = r;
        each_field(&r, &r, mean_field, r.occurrences);
        each_field(&weighted, &weighted, zero_field, 0);
        each_field(&weighted, &r, weighted_field, r.occurrences);
        if (!slack_join(s, &weighted))
            return false;
    }
    return true;
}

enum xp_status slack_add(struct slack *s, const struct tool_host *host, struct out *out,
                         struct xp_error *err)
{
    struct tracker t = {.s = s, .host = host};
    t.plane = profile_plane(host->part, "/device:TPU:0");
    if (!t.plane)
        return XP_OK;
    idmap_init(&t.open_by, s->a);
    idmap_init(&t.module_by, s->a);
    idmap_init(&t.channels, s->a);
    enum xp_status st = visit_plane(&t, out, err);
    if (st == XP_OK && (!add_rows(s, &t.rows) || !keep_slowest(&t)))
        st = no_memory(err);
    vec_free(&t.open);
    vec_free(&t.modules);
    vec_free(&t.rows);
    return st;
}

enum xp_status slack_ops(struct slack *s, const struct tool_host *host, struct vec *ops,
                         struct out *out, struct xp_error *err)
{
    struct tracker t = {.s = s, .host = host, .log = ops};
    enum xp_status st = XP_OK;
    idmap_init(&t.module_by, s->a);
    for (uint32_t i = 0; i < host->part->nplanes && st == XP_OK; i++) {
        struct xp_span name;
        t.plane = &host->part->planes[i];
        name = profile_plane_name(host->part, t.plane);
        if (!profile_is_tpu(name) || !profile_ordinal(name, &t.ordinal))
            continue;
        t.open.n = 0;
        idmap_init(&t.open_by, s->a);
        idmap_init(&t.channels, s->a);
        st = visit_plane(&t, out, err);
    }
    vec_free(&t.open);
    vec_free(&t.modules);
    vec_free(&t.rows);
    return st;
}

void slack_finish(struct slack *s)
{
    for (size_t i = 0; i < s->rows.n; i++) {
        struct slack_row *r = &VEC(s->rows, struct slack_row)[i];
        each_field(r, r, mean_field, r->occurrences);
    }
}
