/* shard/hlo/dot_int.h - what the files of the graph dumper share. */
#ifndef SHARD_HLO_DOT_INT_H
#define SHARD_HLO_DOT_INT_H

#include "shard/hlo/hlo_dot.h"

/* How an instruction is to be shown. */
enum dot_show {
    DOT_HIDE,
    DOT_NORMAL,
    DOT_HIGHLIGHT,
    DOT_SOME_OPERANDS, /* of several, not all are in the graph */
    DOT_NO_OPERANDS,
    DOT_SOME_USERS,
};

enum dot_color {
    DOT_WHITE,
    DOT_BROWN,
    DOT_DARK_BLUE,
    DOT_DARK_GREEN,
    DOT_DARK_ORANGE,
    DOT_DARK_RED,
    DOT_GRAY,
    DOT_GREEN,
    DOT_ORANGE,
    DOT_PURPLE,
    DOT_YELLOW,
    DOT_DASHED,
};

struct dot {
    const struct hlo_module *m;
    const struct hlo_dot_options *opt;
    const struct hlo_dot_out *to;
    uint32_t comp;              /* that is drawn */
    uint8_t *show;              /* an enum dot_show for each instruction */
    uint8_t *merged;            /* for each instruction: 0 not asked yet, 1 no, 2 yes */
    uint8_t *shown;             /* the same for each computation */
    uint8_t *clustered;         /* computations that have their box */
    uint32_t *call;             /* by computation: the call that is all that calls it; HLO_NONE */
    uint32_t *edge_to, *edge_n; /* by where an edge begins: where the last went, how many did */
    struct xp_buf edges;
};

/* Sets d->show by distance from an instruction. False when scratch is spent. */
bool dot_neighbours(struct dot *d, uint32_t instr, uint32_t radius);

bool dot_is_fused(const struct dot *d, const struct hlo_instr *in);
bool dot_merged(struct dot *d, const struct hlo_instr *in);
bool dot_shows_comp(struct dot *d, uint32_t comp);
bool dot_shows_fusion(struct dot *d, const struct hlo_instr *in);
bool dot_fused_scalar(const struct dot *d, const struct hlo_instr *in);
const struct hlo_instr *dot_fused_constant(const struct dot *d, const struct hlo_instr *in);
/* What an edge that concerns in leads to. */
const struct hlo_instr *dot_edge_end(struct dot *d, const struct hlo_instr *in);
/* "add" for return p0 + p1; NULL when it is more than that. */
const char *dot_trivial(const struct dot *d, uint32_t comp);
bool dot_is_small(const struct dot *d, const struct hlo_instr *in);

enum dot_color dot_color_of(struct dot *d, const struct hlo_instr *in);
void dot_color_text(struct xp_buf *out, enum dot_color color);
/* Text for a label: < > and " become entities. */
void dot_html(struct xp_buf *out, struct xp_span s);
/* What stands inside a node, and in its tooltip. */
void dot_node_label(struct dot *d, const struct hlo_instr *in);
void dot_node_tooltip(struct dot *d, const struct hlo_instr *in);
/* Attributes and shape, lines joined by <br/>, `before` in front if there is any. */
void dot_extra_info(struct dot *d, const struct hlo_instr *in, const char *before);
void dot_backend_config(struct dot *d, const struct hlo_instr *in, const char *before);

#endif
