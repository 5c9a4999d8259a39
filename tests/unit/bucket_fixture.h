/* tests/unit/bucket_fixture.h - tests/integration/fake_store.py as a process, on a tree of its own.
 *
 * Buckets are folders of the tree "store". fake_open sets STORAGE_EMULATOR_HOST. */
#ifndef TESTS_BUCKET_FIXTURE_H
#define TESTS_BUCKET_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/net/client.h"
#include "lib/objstore/objstore.h"
#include "tests/unit/tree.h"

struct fake {
    struct tree t;
    pid_t pid;
    int port;
    char url[64];
    struct net_client *net;
};

void fake_open(struct fake *f);
void fake_close(struct fake *f);

/* Bytes that tell where they are, as an object of the bucket. */
void fake_object(struct fake *f, const char *bucket, const char *name, size_t n);
uint8_t fake_byte(size_t at);

/* POST /_fake/<what>; the answer, to be freed. */
char *fake_tell(struct fake *f, const char *what, const char *json);
/* Requests that hold this text, and the bytes that were sent in answer to them. */
int fake_calls(struct fake *f, const char *text, uint64_t *sent);

struct xp_store *fake_store(struct fake *f, const char *url, bool writable);

#endif
