/* shard/tools/report_programs.h - what the files of memory_viewer's report share: the buffers of a
 * compiled program.
 */
#ifndef SHARD_REPORT_PROGRAMS_H
#define SHARD_REPORT_PROGRAMS_H

#include "shard/tools/memory_view.h"
#include "shard/tools/report_modules.h"

struct program_buffer {
    struct xp_span name, op, opcode, shape, kind, source;
    struct xp_span stack; /* of the source, innermost first, a line each */
    uint64_t bytes, unpadded;
    bool has_life, placed;
    uint64_t start, limit;      /* steps of the program */
    int64_t allocation, offset; /* where placed: its number, bytes into it */
};

struct program_view {
    struct program_buffer *buffers; /* at the peak */
    size_t nbuffers;
    int64_t *heap, *unpadded;
    struct xp_span *at;
    size_t nsteps;
    int64_t peak, peak_unpadded, indefinite;
    uint64_t peak_step;
};

/* A buffer to the facts of a host and from them: report_memory_viewer.c's. */
typedef void program_put_fn(struct facts_out *f, const struct memory_view *v,
                            const struct memory_object *o);
typedef void program_get_fn(struct facts *f, struct program_buffer *b);

/* --- all its buffers, at the peak or not: report_memory_lifetimes.c, for lifetimes=all --- */

/* lifetimes=all; XP_BAD_REQUEST: something else. */
enum xp_status lifetimes_asked(const struct tool_args *args, bool *asked, struct xp_error *err);
enum xp_status lifetimes_put(struct facts_out *f, const struct memory_view *v, struct xp_arena *a,
                             program_put_fn *put, struct xp_error *err);
struct program_lives;
/* False when memory is out. */
bool lifetimes_get(struct facts *f, struct program_lives **out, struct xp_arena *a,
                   program_get_fn *get);
/* Table "lifetimes", and a series of what has no row there. */
void lifetimes_write(struct report *r, struct program_lives *l, uint64_t program);

/* --- what would save memory: report_memory_hints.c --- */

/* Table "hints" of the program's buffers in that memory space. Each says what it alone could save
 * at most. */
void report_memory_hints(struct report *r, const struct program_view *v, uint64_t program,
                         int64_t space);

/* --- its memories: report_memory_spaces.c --- */

#define MEMORY_SPACES_MAX 16 /* that are told apart */

struct memory_space {
    int64_t space; /* the number that allocations have as their color */
    uint64_t allocations, buffers, bytes;
};
struct memory_spaces {
    struct memory_space v[MEMORY_SPACES_MAX];
    size_t n;
};

/* memory_space= of the request, 0 where absent; XP_BAD_REQUEST when it is no number. */
enum xp_status memory_space_asked(const struct tool_args *args, int64_t *space,
                                  struct xp_error *err);
const char *memory_space_name(int64_t space); /* NULL: it has none */
void memory_spaces_put(struct facts_out *f, const struct hlo_module *m);
void memory_spaces_get(struct facts *f, struct memory_spaces *all);
/* Table "spaces"; notes if the one that is asked for is none of them. */
void memory_spaces_write(struct report *r, const struct memory_spaces *all, int64_t asked);

/* --- all programs of the run: report_programs.c, for programs=all --- */

#define PROGRAMS_MAX 64 /* that are looked at: those that ran longest */

/* programs=all; XP_BAD_REQUEST: something else. */
enum xp_status programs_asked(const struct tool_args *args, bool *asked, struct xp_error *err);
/* Of a host, of one memory space; before its modules. */
enum xp_status programs_put(struct facts_out *f, const struct tool_host *host, int64_t space,
                            struct xp_arena *a, struct xp_error *err);
struct programs;
enum xp_status programs_read(struct facts *hosts, size_t n, struct xp_arena *a,
                             struct programs **all, struct xp_error *err);
/* Table and series "programs". */
void programs_write(struct report *r, const struct programs *all);

#endif
