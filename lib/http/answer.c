/* lib/http/answer.c - building an answer; nothing here is sent. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/json_out.h"
#include "lib/http/http_int.h"

void http_answer_init(struct http_answer *a, int status, const char *content_type)
{
    *a = (struct http_answer){.status = status, .content_type = content_type};
}

void http_answer_fini(struct http_answer *a)
{
    for (int i = 0; i < a->nheaders; i++)
        free(a->owned[i]);
    answer_drop_body(a);
    *a = (struct http_answer){0};
}

void answer_drop_body(struct http_answer *a)
{
    if (a->blob)
        xp_blob_unref(a->blob);
    else if (!a->is_static)
        free(a->body);
    a->blob = NULL;
    a->is_static = false;
    a->body = NULL;
    a->body_n = 0;
}

void http_answer_blob(struct http_answer *a, struct xp_blob *blob)
{
    answer_drop_body(a);
    a->blob = blob;
    a->body = blob->p;
    a->body_n = blob->n;
}

void http_answer_header(struct http_answer *a, const char *name, struct xp_span value)
{
    XP_ASSERT(a->nheaders < HTTP_HEADERS_MAX);
    char *copy = h2o_mem_alloc(value.n + 1);
    for (size_t i = 0; i < value.n; i++)
        copy[i] = value.p[i] < 0x20 || value.p[i] == 0x7f ? '_' : (char)value.p[i];
    copy[value.n] = '\0';
    a->names[a->nheaders] = name;
    a->values[a->nheaders] = a->owned[a->nheaders] = copy;
    a->nheaders++;
}

void http_answer_body(struct http_answer *a, struct xp_buf *b)
{
    answer_drop_body(a);
    a->body = xp_buf_take(b, &a->body_n);
}

void answer_problem_json(struct xp_buf *b, int status, const char *code, const char *title,
                         struct xp_span detail, uint64_t offset)
{
    struct xp_json j;

    xp_json_init(&j, b);
    xp_json_obj(&j);
    xp_json_key(&j, "type");
    xp_json_str(&j, "about:blank");
    xp_json_key(&j, "title");
    xp_json_str(&j, title);
    xp_json_key(&j, "status");
    xp_json_i64(&j, status);
    xp_json_key(&j, "code");
    xp_json_str(&j, code);
    xp_json_key(&j, "detail");
    xp_json_span(&j, detail);
    /* Damage has a place, and the first byte is one. */
    if (offset || status == xp_status_http(XP_CORRUPT)) {
        xp_json_key(&j, "offset");
        xp_json_u64(&j, offset);
    }
    xp_json_obj_end(&j);
}

void http_answer_problem(struct http_answer *a, const struct xp_error *err)
{
    int status = xp_status_http(err->status);
    const char *detail = err->text[0] ? err->text : xp_status_text(err->status);
    struct xp_buf b;

    http_answer_init(a, status, "application/problem+json");
    xp_buf_init(&b, 4096);
    answer_problem_json(&b, status, xp_status_code(err->status), http_reason(status),
                        xp_span_str(detail), err->offset);
    http_answer_body(a, &b);
    char after[8];
    snprintf(after, sizeof after, "%u", err->retry_s ? err->retry_s : 1u);
    if (xp_status_retry(err->status))
        http_answer_header(a, "retry-after", xp_span_str(after));
}
