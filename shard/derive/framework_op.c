#include "shard/derive/framework_op.h"

#include <strings.h>

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_tf_name(struct xp_span s)
{
    if (!s.n || !(is_lower(s.p[0]) || is_upper(s.p[0]) || is_digit(s.p[0]) || s.p[0] == '.'))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (!(is_lower(c) || is_upper(c) || is_digit(c) || (c && strchr("_.\\/>-", c))))
            return false;
    }
    return true;
}

static bool is_tf_type(struct xp_span s)
{
    if (!s.n || !(is_upper(s.p[0]) || s.p[0] == '_'))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!(is_lower(s.p[i]) || is_upper(s.p[i]) || is_digit(s.p[i]) || s.p[i] == '_'))
            return false;
    return true;
}

/* [a-z_][a-z0-9_]* and perhaps anything in one pair of brackets that ends it. */
static bool is_jax_type(struct xp_span s)
{
    if (!s.n || !(is_lower(s.p[0]) || s.p[0] == '_'))
        return false;
    size_t i = 1;
    while (i < s.n && (is_lower(s.p[i]) || is_digit(s.p[i]) || s.p[i] == '_'))
        i++;
    if (i == s.n)
        return true;
    return s.p[i] == '[' && s.n >= i + 2 && s.p[s.n - 1] == ']' && !memchr(s.p + i, '\n', s.n - i);
}

static bool is_integer(struct xp_span s)
{
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    if (i == s.n || s.n - i > 18)
        return false;
    for (; i < s.n; i++)
        if (!is_digit(s.p[i]))
            return false;
    return true;
}

static struct xp_span after_last(struct xp_span s, uint8_t c)
{
    for (size_t i = s.n; i-- > 0;)
        if (s.p[i] == c)
            return xp_span_of(s.p + i + 1, s.n - i - 1);
    return s;
}

/* The last component without a trailing _<number>. */
static struct xp_span type_of_name(struct xp_span name)
{
    struct xp_span op = after_last(name, '/');
    struct xp_span suffix = after_last(op, '_');
    if (is_integer(suffix))
        op.n = suffix.n < op.n ? op.n - suffix.n - 1 : 0;
    return op;
}

static bool copy_op(struct xp_span full, struct framework_op *op)
{
    static const char *const kinds[] = {"MemcpyHToD", "MemcpyDToH", "MemcpyDToD", "MemcpyHToH"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (full.n < 10 || strncasecmp((const char *)full.p, kinds[i], 10) != 0)
            continue;
        *op = (struct framework_op){FRAMEWORK_COPY, full, xp_span_str(kinds[i])};
        return true;
    }
    return false;
}

struct framework_op framework_op_parse(struct xp_span full)
{
    struct framework_op op = {FRAMEWORK_UNKNOWN, full, {0}};
    const uint8_t *colon = full.n ? memchr(full.p, ':', full.n) : NULL;
    if (!colon) {
        copy_op(full, &op);
        return op;
    }
    struct xp_span name = xp_span_of(full.p, (size_t)(colon - full.p));
    struct xp_span type = xp_span_of(colon + 1, full.n - name.n - 1);
    if (xp_span_eq(name, XP_SPAN_LIT("Iterator")))
        return (struct framework_op){FRAMEWORK_TF_DATA, full, XP_SPAN_LIT("Dataset")};
    if (is_tf_name(name) && is_tf_type(type))
        return (struct framework_op){FRAMEWORK_TF, name, type};
    struct xp_span derived = type.n ? type : type_of_name(name);
    if (is_jax_type(derived)) {
        const uint8_t *bracket = memchr(derived.p, '[', derived.n);
        if (bracket)
            derived.n = (size_t)(bracket - derived.p);
        return (struct framework_op){FRAMEWORK_JAX, name, derived};
    }
    if (!type.n)
        return (struct framework_op){FRAMEWORK_TF, name, derived};
    return op;
}

struct xp_span framework_op_label(const struct framework_op *op, bool *iterator)
{
    *iterator = op->framework == FRAMEWORK_TF_DATA;
    struct xp_span s = op->type;
    if (*iterator) {
        s = op->name;
        for (size_t i = s.n; i >= 2; i--)
            if (s.p[i - 1] == ':' && s.p[i - 2] == ':')
                return xp_span_of(s.p + i, s.n - i);
    } else if (op->framework == FRAMEWORK_UNKNOWN) {
        s = op->name;
        while (s.n && (s.p[s.n - 1] == ' ' || (s.p[s.n - 1] >= 9 && s.p[s.n - 1] <= 13)))
            s.n--;
    }
    return s;
}

bool framework_scope_next(struct xp_span *rest, struct xp_span *scope)
{
    const uint8_t *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    if (!slash)
        return false;
    *scope = xp_span_of(rest->p, (size_t)(slash - rest->p));
    *rest = xp_span_of(slash + 1, rest->n - scope->n - 1);
    return true;
}

/* --- gradients --- */

static bool next_part(struct xp_span *rest, struct xp_span *part)
{
    if (!rest->p)
        return false;
    const uint8_t *slash = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    *part = xp_span_of(rest->p, slash ? (size_t)(slash - rest->p) : rest->n);
    *rest = slash ? xp_span_of(slash + 1, rest->n - part->n - 1) : (struct xp_span){0};
    return true;
}

/* A scope "gradients...", or "gradient_tape". */
static bool tf_gradient(struct xp_span name)
{
    struct xp_span part;
    while (next_part(&name, &part) && name.p)
        if (xp_span_starts(part, XP_SPAN_LIT("gradients")) ||
            xp_span_eq(part, XP_SPAN_LIT("gradient_tape")))
            return true;
    return false;
}

/* transpose(jvp(...)), but not transpose[permutation=...]. */
static bool jax_gradient(struct xp_span name)
{
    struct xp_span part;
    while (next_part(&name, &part))
        if (xp_span_starts(part, XP_SPAN_LIT("transpose(")))
            return true;
    return false;
}

static bool is_jax(struct xp_span name, struct xp_span type)
{
    struct xp_span part = {0};
    if (!name.n || !is_jax_type(type))
        return false;
    while (next_part(&name, &part))
        continue;
    return xp_span_has(part, type);
}

bool framework_is_gradient(struct xp_span name, struct xp_span type)
{
    if (is_tf_type(type) && is_tf_name(name))
        return tf_gradient(name);
    return (is_jax(name, type) || !type.n) && jax_gradient(name);
}
