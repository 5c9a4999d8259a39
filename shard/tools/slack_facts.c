#include "shard/tools/slack_facts.h"

#include "shard/tools/mega.h"
#include "shard/tools/slack_peers.h"

static bool has_transfers(const struct part *p)
{
    const struct part_plane *pl = profile_plane(p, "/host:CPU");
    for (uint32_t i = 0; pl && i < pl->nevmeta; i++)
        if (xp_span_starts(part_str(p, pl->evmeta[i].name), XP_SPAN_LIT("MegaScale:")))
            return true;
    return false;
}

static void put_row(struct facts_out *f, const struct slack *s, const struct slack_row *r)
{
    facts_text(f, xp_strpool_get(&s->strings, r->rendezvous));
    facts_text(f, xp_strpool_get(&s->strings, r->transfer_type));
    facts_text(f, xp_strpool_get(&s->strings, r->send_op));
    facts_text(f, xp_strpool_get(&s->strings, r->recv_op));
    facts_text(f, xp_strpool_get(&s->strings, r->slices));
    facts_u64(f, r->occurrences);
    facts_u64(f, r->bytes);
    facts_u64(f, r->slack_us);
    facts_u64(f, r->stall_us);
    facts_u64(f, r->observed_us);
    facts_u64(f, r->send_us);
    facts_u64(f, r->recv_us);
    facts_u64(f, r->send_done_us);
    facts_u64(f, r->recv_done_us);
    facts_u64(f, r->own_recv_us);
}

/* args: samples, peers and each time it happened, too, for which XProf's answer has no place. */
static enum xp_status map(const struct tool_host *host, const struct tool_args *args,
                          struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    struct mega_wanted wanted = {0};
    struct out nobody = {0}; /* who could cancel it */
    struct facts_out f;
    struct slack s;
    struct slack_peers peers = {0};
    XP_TRY(facts_begin(&f, a, err));
    bool any = has_transfers(host->part);
    enum xp_status st = XP_OK;
    if (!slack_init(&s, a))
        st = xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
    if (st == XP_OK && any)
        st = slack_add(&s, host, &nobody, err);
    if (st == XP_OK && any && args)
        st = slack_peers_read(&peers, &s, host, err);
    facts_u64(&f, any);
    facts_u64(&f, s.rows.n);
    for (size_t i = 0; i < s.rows.n; i++)
        put_row(&f, &s, &VEC(s.rows, struct slack_row)[i]);
    if (args)
        slack_peers_put(&f, &s, &peers);
    if (st == XP_OK && args)
        st = mega_wanted_of(args, &wanted, err);
    if (st == XP_OK && args)
        st = mega_map(host, &wanted, a, &f, err);
    slack_peers_free(&peers);
    slack_fini(&s);
    if (st == XP_OK)
        return facts_end(&f, host, a, partial, err);
    facts_drop(&f);
    return st;
}

enum xp_status slack_facts_map_any(const struct tool_host *host, const struct tool_args *args,
                                   struct xp_arena *a, struct xp_span *partial,
                                   struct xp_error *err)
{
    return map(host, args, a, partial, err);
}

enum xp_status slack_facts_map(const struct tool_host *host, const struct tool_args *args,
                               struct xp_arena *a, struct xp_span *partial, struct xp_error *err)
{
    if (!profile_readable(host->part))
        return facts_unreadable(host, a, partial, err);
    (void)args;
    return map(host, NULL, a, partial, err);
}

static bool get_text(struct facts *f, struct slack *s, uint32_t *id)
{
    *id = xp_strpool_add(&s->strings, facts_get_text(f));
    return *id != XP_STRPOOL_FULL;
}

static bool get_row(struct facts *f, struct slack *s)
{
    struct slack_row r = {0};
    if (!get_text(f, s, &r.rendezvous) || !get_text(f, s, &r.transfer_type) ||
        !get_text(f, s, &r.send_op) || !get_text(f, s, &r.recv_op) || !get_text(f, s, &r.slices))
        return false;
    r.occurrences = facts_get_u64(f);
    r.bytes = facts_get_u64(f);
    r.slack_us = facts_get_u64(f);
    r.stall_us = facts_get_u64(f);
    r.observed_us = facts_get_u64(f);
    r.send_us = facts_get_u64(f);
    r.recv_us = facts_get_u64(f);
    r.send_done_us = facts_get_u64(f);
    r.recv_done_us = facts_get_u64(f);
    r.own_recv_us = facts_get_u64(f);
    return slack_join(s, &r);
}

enum xp_status slack_facts_add(struct slack *s, struct facts *f, bool *any, struct xp_error *err)
{
    *any = facts_get_u64(f) != 0;
    for (size_t n = facts_get_count(f); n && !f->bad; n--)
        if (!get_row(f, s))
            return xp_fail(err, XP_BUSY, 0, "no memory left for the transfers between slices");
    return facts_ok(f, err);
}
