#include "tests/unit/bucket_fixture.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_python(struct fake *f, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves none behind */
    dup2(out, 1);
    execlp("python3", "python3", "tests/integration/fake_store.py", "--dir",
           tree_path(&f->t, "store"), (char *)NULL);
    _exit(127);
}

void fake_open(struct fake *f)
{
    int fd[2];
    FILE *in;
    tree_init(&f->t);
    tree_dir(&f->t, "store");
    assert_int_equal(pipe(fd), 0);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0)
        run_python(f, fd[1]);
    close(fd[1]);
    in = fdopen(fd[0], "r");
    assert_non_null(in);
    assert_int_equal(fscanf(in, "listening on %d", &f->port), 1);
    fclose(in);
    snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d", f->port);
    setenv("STORAGE_EMULATOR_HOST", f->url, 1);
    unsetenv("http_proxy");
    f->net = net_client_open();
}

void fake_close(struct fake *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    net_client_close(f->net);
    tree_fini(&f->t);
}

uint8_t fake_byte(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

void fake_object(struct fake *f, const char *bucket, const char *name, size_t n)
{
    char key[512], was[600];
    snprintf(key, sizeof key, "store/%s/%s", bucket, name);
    snprintf(was, sizeof was, "%s.tmp~", key);
    tree_file(&f->t, was, "");
    FILE *out = fopen(tree_path(&f->t, was), "we");
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        putc_unlocked(fake_byte(i), out);
    assert_int_equal(fclose(out), 0);
    char *from = strdup(tree_path(&f->t, was));
    assert_int_equal(rename(from, tree_path(&f->t, key)), 0);
    free(from);
}

char *fake_tell(struct fake *f, const char *what, const char *json)
{
    char url[128];
    struct net_reply reply;
    struct xp_error err;
    size_t n;
    snprintf(url, sizeof url, "%s/_fake/%s", f->url, what);
    struct net_request r = {
        .method = "POST", .url = url, .body = xp_span_str(json), .total_ms = 10000};
    assert_int_equal(net_fetch(f->net, &r, 16 << 20, &reply, &err), XP_OK);
    assert_int_equal(reply.code, 200);
    xp_buf_byte(&reply.body, 0);
    char *text = (char *)xp_buf_take(&reply.body, &n);
    net_reply_fini(&reply);
    return text;
}

int fake_calls(struct fake *f, const char *text, uint64_t *sent)
{
    char *log = fake_tell(f, "log", "");
    json_t *list = json_loads(log, 0, NULL), *e;
    size_t i;
    int n = 0;
    uint64_t bytes = 0;
    assert_non_null(list);
    json_array_foreach(list, i, e)
    {
        if (!strstr(json_string_value(json_object_get(e, "path")), text))
            continue;
        n++;
        bytes += (uint64_t)json_integer_value(json_object_get(e, "sent"));
    }
    if (sent)
        *sent = bytes;
    json_decref(list);
    free(log);
    return n;
}

struct xp_store *fake_store(struct fake *f, const char *url, bool writable)
{
    struct xp_bucket_options o = {.s3_endpoint = f->url, .anonymous = true, .writable = writable};
    struct xp_store *s;
    struct xp_error err = {0};
    enum xp_status status = xp_store_open_bucket(url, &o, &s, &err);
    if (status != XP_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, XP_OK);
    return s;
}
