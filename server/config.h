/* server/config.h - flags, the environment and a file as one command line.
 *
 * Every option of options.h may also stand in the environment, --memory-budget as
 * XPROFD_MEMORY_BUDGET, or in the file that --config (or XPROFD_CONFIG) names, one a line:
 *
 *     # what the chart mounts
 *     memory-budget = 2GB
 *     logdir = gs://bucket/prefix
 *
 * A flag wins over the environment, that over the file, that over what the program does anyway. An
 * option that may be repeated is so in the file, or by commas in the environment; whoever names it
 * replaces all of those below. An option that only says yes has the value "yes" or "no".
 *
 * Order      config_read makes an argv; options_parse reads that. config_print tells each value and
 *            where it is from. config_free last: options point into it.
 * Errors     A sentence on stderr with file and line; OPTIONS_WRONG.
 */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include "server/options.h"

#define CONFIG_FILE_MAX 65536

struct config {
    int argc;
    char **argv;                   /* NULL-terminated; strings are the config's or the process' */
    int file_end, environment_end; /* argv: what the file says, the environment, then flags */
    bool print;                    /* --print-config is there */
    char *text;                    /* of the file */
    char **owned;                  /* strings made here */
    int n_owned;
};

enum options_result config_read(int argc, char **argv, struct config *c);
/* A table of all options: name, value, source. What is secret is in files, and only these are
 * named. */
void config_print(const struct config *c);
void config_free(struct config *c);

#endif
