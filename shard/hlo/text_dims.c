/* Windows, dimension numbers and the like: small messages that print as one attribute. */
#include "shard/hlo/text_int.h"

void hlo_text_ints(struct xp_buf *out, struct xp_span msg, uint32_t field, const char *separator)
{
    struct hlo_ints it = hlo_ints_open(msg, field);
    int64_t v;
    for (bool first = true; hlo_ints_next(&it, &v); first = false)
        xp_buf_fmt(out, "%s%lld", first ? "" : separator, (long long)v);
}

void hlo_text_set(struct xp_buf *out, struct xp_span msg, uint32_t field)
{
    xp_buf_byte(out, '{');
    hlo_text_ints(out, msg, field, ",");
    xp_buf_byte(out, '}');
}

bool hlo_has_ints(struct xp_span msg, uint32_t field)
{
    struct hlo_ints it = hlo_ints_open(msg, field);
    int64_t v;
    return hlo_ints_next(&it, &v);
}

/* --- windows --- */

enum { WIN_SIZE = 1, WIN_STRIDE, WIN_LOW, WIN_HIGH, WIN_DILATE, BASE_DILATE, WIN_REVERSAL };

static bool any_dim_differs(struct xp_span window, uint32_t field, int64_t usual)
{
    struct hlo_spans it = hlo_spans_open(window, 1);
    struct xp_span dim;
    while (hlo_spans_next(&it, &dim))
        if (hlo_get_int(dim, field, 0) != usual)
            return true;
    return false;
}

static void window_field(struct xp_buf *out, struct xp_span window, const char *head,
                         uint32_t field, uint32_t also)
{
    struct hlo_spans it = hlo_spans_open(window, 1);
    struct xp_span dim;

    xp_buf_str(out, head);
    for (const char *x = ""; hlo_spans_next(&it, &dim); x = "x") {
        xp_buf_fmt(out, "%s%lld", x, (long long)hlo_get_int(dim, field, 0));
        if (also)
            xp_buf_fmt(out, "_%lld", (long long)hlo_get_int(dim, also, 0));
    }
}

void hlo_text_window(struct xp_buf *out, struct xp_span window)
{
    if (any_dim_differs(window, WIN_SIZE, INT64_MIN))
        window_field(out, window, "size=", WIN_SIZE, 0);
    if (any_dim_differs(window, WIN_STRIDE, 1))
        window_field(out, window, " stride=", WIN_STRIDE, 0);
    if (any_dim_differs(window, WIN_LOW, 0) || any_dim_differs(window, WIN_HIGH, 0))
        window_field(out, window, " pad=", WIN_LOW, WIN_HIGH);
    if (any_dim_differs(window, BASE_DILATE, 1))
        window_field(out, window, " lhs_dilate=", BASE_DILATE, 0);
    if (any_dim_differs(window, WIN_DILATE, 1))
        window_field(out, window, " rhs_dilate=", WIN_DILATE, 0);
    if (any_dim_differs(window, WIN_REVERSAL, 0))
        window_field(out, window, " rhs_reversal=", WIN_REVERSAL, 0);
}

void hlo_text_padding(struct xp_buf *out, struct xp_span config)
{
    struct hlo_spans it = hlo_spans_open(config, 1);
    bool interior = any_dim_differs(config, 3, 0);
    struct xp_span dim;

    for (const char *x = ""; hlo_spans_next(&it, &dim); x = "x") {
        xp_buf_fmt(out, "%s%lld_%lld", x, (long long)hlo_get_int(dim, 1, 0),
                   (long long)hlo_get_int(dim, 2, 0));
        if (interior)
            xp_buf_fmt(out, "_%lld", (long long)hlo_get_int(dim, 3, 0));
    }
}

/* --- convolutions: a letter or a digit a dimension --- */

#define CONV_DIMS_MAX 32

static void put_label(char *labels, int64_t at, char label)
{
    if (at >= 0 && at < CONV_DIMS_MAX)
        labels[at] = label;
}

static void conv_labels(struct xp_buf *out, struct xp_span dims, const uint32_t field[3],
                        const char letters[2])
{
    char labels[CONV_DIMS_MAX] = {0};
    struct hlo_ints it = hlo_ints_open(dims, field[2]);
    int64_t at, n = 0;

    for (; hlo_ints_next(&it, &at); n++)
        put_label(labels, at, n < 10 ? (char)('0' + n) : '?');
    put_label(labels, hlo_get_int(dims, field[0], 0), letters[0]);
    put_label(labels, hlo_get_int(dims, field[1], 0), letters[1]);
    for (int64_t i = 0; i < n + 2 && i < CONV_DIMS_MAX; i++)
        xp_buf_byte(out, labels[i] ? (uint8_t)labels[i] : '?');
}

void hlo_text_conv_dims(struct xp_buf *out, struct xp_span dims)
{
    conv_labels(out, dims, (const uint32_t[]){7, 8, 11}, "bf");
    xp_buf_byte(out, '_');
    conv_labels(out, dims, (const uint32_t[]){3, 4, 6}, "io");
    xp_buf_str(out, "->");
    conv_labels(out, dims, (const uint32_t[]){9, 10, 12}, "bf");
}

/* --- dots, gathers, scatters --- */

void hlo_text_dot_dims(struct xp_buf *out, struct xp_span dims)
{
    if (hlo_has_ints(dims, 3)) {
        xp_buf_str(out, "lhs_batch_dims=");
        hlo_text_set(out, dims, 3);
        xp_buf_str(out, ", ");
    }
    xp_buf_str(out, "lhs_contracting_dims=");
    hlo_text_set(out, dims, 1);
    if (hlo_has_ints(dims, 4)) {
        xp_buf_str(out, ", rhs_batch_dims=");
        hlo_text_set(out, dims, 4);
    }
    xp_buf_str(out, ", rhs_contracting_dims=");
    hlo_text_set(out, dims, 2);
}

static void optional_set(struct xp_buf *out, struct xp_span dims, const char *head, uint32_t field)
{
    if (!hlo_has_ints(dims, field))
        return;
    xp_buf_str(out, head);
    hlo_text_set(out, dims, field);
}

void hlo_text_gather_dims(struct xp_buf *out, struct xp_span dims)
{
    xp_buf_str(out, "offset_dims=");
    hlo_text_set(out, dims, 1);
    xp_buf_str(out, ", collapsed_slice_dims=");
    hlo_text_set(out, dims, 2);
    xp_buf_str(out, ", start_index_map=");
    hlo_text_set(out, dims, 3);
    optional_set(out, dims, ", operand_batching_dims=", 5);
    optional_set(out, dims, ", start_indices_batching_dims=", 6);
    xp_buf_fmt(out, ", index_vector_dim=%lld", (long long)hlo_get_int(dims, 4, 0));
}

void hlo_text_scatter_dims(struct xp_buf *out, struct xp_span dims)
{
    xp_buf_str(out, "update_window_dims=");
    hlo_text_set(out, dims, 1);
    xp_buf_str(out, ", inserted_window_dims=");
    hlo_text_set(out, dims, 2);
    xp_buf_str(out, ", scatter_dims_to_operand_dims=");
    hlo_text_set(out, dims, 3);
    optional_set(out, dims, ", input_batching_dims=", 5);
    optional_set(out, dims, ", scatter_indices_batching_dims=", 6);
    xp_buf_fmt(out, ", index_vector_dim=%lld", (long long)hlo_get_int(dims, 4, 0));
}
