/* What else goes over the wire of rpc.h: the build's name, sentences in headers. */
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "server/rpc.h"

/* --- the build --- */

static char build[65];

/* One PT_NOTE segment: notes, each a head, a name and a description, padded to 4 bytes. */
static bool find_id(const uint8_t *p, size_t n)
{
    while (n >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) h;
        memcpy(&h, p, sizeof h);
        size_t name = (h.n_namesz + 3u) & ~3u, desc = (h.n_descsz + 3u) & ~3u;
        const uint8_t *id = p + sizeof h + name;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(p + sizeof h, "GNU", 4)) {
            xp_hex(id, h.n_descsz < sizeof build / 2 ? h.n_descsz : sizeof build / 2, build);
            return true;
        }
        size_t all = sizeof h + name + desc;
        if (all > n)
            return false;
        p += all;
        n -= all;
    }
    return false;
}

/* The first object is the program. */
static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE &&
            find_id((const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                    info->dlpi_phdr[i].p_memsz))
            break;
    return 1;
}

static void find_build(void)
{
    dl_iterate_phdr(look_at, NULL);
}

const char *rpc_build(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_build);
    return build;
}

/* --- sentences in headers --- */

void rpc_escape(const char *text, char *out)
{
    for (; *text; text++) {
        uint8_t c = (uint8_t)*text;
        if (c < 0x20 || c > 0x7e || c == '%')
            out += snprintf(out, 4, "%%%02X", c);
        else
            *out++ = (char)c;
    }
    *out = 0;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void rpc_unescape(char *text)
{
    char *out = text;
    for (; *text; text++) {
        int high = *text == '%' ? nibble(text[1]) : -1, low = high >= 0 ? nibble(text[2]) : -1;
        if (low >= 0 && (high || low)) {
            *out++ = (char)(high << 4 | low);
            text += 2;
        } else {
            *out++ = *text;
        }
    }
    *out = 0;
}
