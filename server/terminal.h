/* server/terminal.h - a profile's text on a terminal.
 *
 * Names come from files that anyone may have written: control characters, which move a cursor or
 * set a title, marks that turn the direction of text, and bytes that are not UTF-8 are each shown
 * as one '?'.
 */
#ifndef SERVER_TERMINAL_H
#define SERVER_TERMINAL_H

#include <stdio.h>

#include <jansson.h>

#include "lib/base/span.h"

/* Lines stay lines: '\n' and '\t' are kept. */
void terminal_text(FILE *f, struct xp_span text);

/* A DataTable as XProf's tools answer it: its properties, then aligned columns. A cell is one
 * line and at most 60 characters; "..." ends one that was cut. */
void terminal_table(FILE *f, const json_t *table);

/* A report (docs/api.md), its JSON text: verdict, metrics, tables, notes; units as people write
 * them. */
void terminal_report(FILE *f, struct xp_span text);

#endif
