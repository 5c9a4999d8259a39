/* lib/http/filter.c - what every answer carries, h2o's own error pages included.
 *
 * h2o answers some requests itself (an entity that is too large, a bad header, an unknown
 * Expect), in plain text. They become problem+json here, so that a client sees one kind of error.
 */
#include "lib/base/json_out.h"
#include "lib/http/http_int.h"

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } table[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].status == status)
            return table[i].reason;
    return "Unknown";
}

static enum xp_status status_of(int http)
{
    for (int s = XP_OK; s < XP_STATUS_COUNT; s++)
        if (xp_status_http((enum xp_status)s) == http)
            return (enum xp_status)s;
    return http < 500 ? XP_BAD_REQUEST : XP_INTERNAL;
}

/* Stands before h2o's error body and sends ours instead. */
struct replacement {
    h2o_ostream_t super;
    h2o_iovec_t body;
};

static void replacement_send(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t bufcnt,
                             h2o_send_state_t state)
{
    struct replacement *r = (struct replacement *)self;
    bool head = bufcnt == 0;
    (void)bufs;
    (void)state;
    h2o_ostream_send_next(self, req, &r->body, head ? 0 : 1, H2O_SEND_STATE_FINAL);
}

/* h2o_send_error_generic sends its whole page at once. */
static void replace_error_page(h2o_req_t *req, h2o_ostream_t ***slot)
{
    struct replacement *r = (struct replacement *)h2o_add_ostream(req, sizeof *r, *slot);
    enum xp_status status = status_of(req->res.status);
    struct xp_buf b;

    xp_buf_init(&b, 1024);
    answer_problem_json(&b, req->res.status, xp_status_code(status), http_reason(req->res.status),
                        xp_span_str(xp_status_text(status)), 0);
    r->body = h2o_strdup(&req->pool, (const char *)b.p, b.n);
    xp_buf_fini(&b);
    r->super.do_send = replacement_send;
    req->res.content_length = r->body.len;
    req->res.reason = http_reason(req->res.status);
    h2o_set_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE,
                   H2O_STRLIT("application/problem+json"), 1);
    h2o_set_header(&req->pool, &req->res.headers, H2O_TOKEN_CACHE_CONTROL, H2O_STRLIT("no-store"),
                   1);
    *slot = &r->super.next;
}

static void on_setup_ostream(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    static const char *const names[][2] = {
        {"x-content-type-options", "nosniff"},
        {"referrer-policy", "no-referrer"},
        {"cross-origin-resource-policy", "same-origin"},
    };
    bool ours = req->_generator && req->_generator->proceed == send_proceed;
    (void)self;

    if (!ours && req->res.status >= 400) {
        replace_error_page(req, &slot);
        /* The client may still be sending what was refused; a plain close would answer that with
         * a reset, and the reset would take this very answer with it. */
        if (req->version < 0x200 && !req->http1_is_persistent)
            conn_will_linger(conn_of(req));
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        h2o_add_header_by_str(&req->pool, &req->res.headers, names[i][0], strlen(names[i][0]), 0,
                              NULL, names[i][1], strlen(names[i][1]));
    h2o_setup_next_ostream(req, slot);
}

void filter_register(h2o_pathconf_t *path)
{
    h2o_create_filter(path, sizeof(h2o_filter_t))->on_setup_ostream = on_setup_ostream;
}
