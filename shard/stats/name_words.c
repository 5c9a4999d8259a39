#include "shard/stats/name_words.h"

#include <strings.h>

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_letter(uint8_t c)
{
    return is_lower(c) || is_upper(c);
}

/* Whether a word may begin or end before letter i. */
static bool is_edge(struct xp_span s, size_t i)
{
    if (i == 0 || i >= s.n || !is_letter(s.p[i - 1]) || !is_letter(s.p[i]))
        return true;
    if (!is_upper(s.p[i]))
        return false;
    return is_lower(s.p[i - 1]) || (i + 1 < s.n && is_lower(s.p[i + 1]));
}

bool name_has_word(struct xp_span name, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= name.n; i++)
        if (strncasecmp((const char *)name.p + i, word, n) == 0 && is_edge(name, i) &&
            is_edge(name, i + n))
            return true;
    return false;
}

bool name_has_any(struct xp_span name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name_has_word(name, words[i]))
            return true;
    return false;
}

bool name_says_prefill(struct xp_span name)
{
    return name_has_word(name, "prefill");
}

bool name_says_decode(struct xp_span name)
{
    static const char *const files[] = {"jpeg", "png",  "gif",   "bmp",   "wav",   "raw",
                                        "csv",  "json", "proto", "image", "audio", "video"};
    return name_has_word(name, "generate") ||
           (name_has_word(name, "decode") &&
            !name_has_any(name, files, sizeof files / sizeof *files));
}
