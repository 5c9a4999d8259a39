/* Whether the files of a run can be read: a listing tells their names only. */
#include "lib/base/clock.h"
#include "server/runs_int.h"
#include "server/uploads.h"

#define EMPTY "the file is empty"
#define HEAD_BYTES 512
/* A slow disk is not waited for longer; what it holds is not judged. */
#define LOOK_NS UINT64_C(500000000)

static enum xp_status look(const struct run *r, const struct run_host *h, struct xp_error *err)
{
    uint8_t head[HEAD_BYTES];
    struct xp_reader *reader;
    size_t got = 0;
    bool gz;

    if (h->size == 0)
        return xp_fail(err, XP_CORRUPT, 0, "%s", EMPTY);
    if (xp_store_is_remote(r->store))
        return XP_OK;
    XP_TRY(xp_store_open_sized(r->store, h->key, h->generation, h->size, &reader, err));
    enum xp_status status = xp_reader_read(reader, 0, head, sizeof head, &got, err);
    xp_reader_close(reader);
    return status == XP_OK ? upload_look(xp_span_of(head, got), &gz, err) : status;
}

static char **look_at_all(const struct run *r)
{
    char **looks = must(calloc(r->n_hosts + 1, sizeof *looks));
    uint64_t until = xp_now_ns() + LOOK_NS;
    for (size_t i = 0; i < r->n_hosts && xp_now_ns() < until; i++) {
        struct xp_error err = {0};
        enum xp_status status = look(r, &r->hosts[i], &err);
        if (status != XP_OK && status != XP_STALE) /* it is being written */
            looks[i] = must(strdup(err.text));
    }
    return looks;
}

static void free_looks(char **looks, size_t n)
{
    for (size_t i = 0; looks && i < n; i++)
        free(looks[i]);
    free(looks);
}

bool run_is_looked_at(const struct run *r)
{
    return atomic_load(&((struct run_box *)r)->looks) != NULL;
}

const char *const *run_look(const struct run *r)
{
    struct run_box *box = (struct run_box *)r;
    char **looks = atomic_load(&box->looks), **mine = NULL;
    if (!looks) {
        mine = look_at_all(r);
        if (atomic_compare_exchange_strong(&box->looks, &looks, mine))
            looks = mine;
        else
            free_looks(mine, r->n_hosts);
    }
    return (const char *const *)looks;
}

size_t run_unreadable_hosts(const struct run *r, const struct run_host **first, const char **why)
{
    char **looks = atomic_load(&((struct run_box *)r)->looks);
    size_t n = 0;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const char *text = looks ? looks[i] : r->hosts[i].size == 0 ? EMPTY : NULL;
        if (text && !n++ && first) {
            *first = &r->hosts[i];
            *why = text;
        }
    }
    return n;
}

void run_look_fini(struct run_box *box)
{
    free_looks(atomic_load(&box->looks), box->run.n_hosts);
}
