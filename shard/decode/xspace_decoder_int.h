/* shard/decode/xspace_decoder_int.h - the decoder's state; for xspace_decoder.c only. */
#ifndef XSPACE_DECODER_INT_H
#define XSPACE_DECODER_INT_H

#define XSPACE_GROUPS 100 /* nested groups; protobuf's own limit */

enum xspace_frame_kind {
    XSPACE_F_SPACE,
    XSPACE_F_PLANE,
    XSPACE_F_LINE,
    XSPACE_F_EVENT, /* only one that is too large for the patch buffer; so the next four */
    XSPACE_F_STAT,
    XSPACE_F_META,
    XSPACE_F_META_VALUE,
    XSPACE_F_GROUP
};

struct xspace_frame {
    enum xspace_frame_kind kind;
    uint32_t group; /* field number of a group */
    uint64_t at, end;
};

struct xspace_text {
    uint32_t n;
    uint8_t p[XSPACE_NAME_MAX];
};

struct xspace_decoder {
    const struct xspace_sink *sink;
    void *ctx;
    const uint8_t *dull;   /* xspace_decoder_dull */
    struct xp_error error; /* sticky */
    uint64_t pos;          /* offset in the object of the next byte to parse */
    uint64_t skip;         /* bytes to step over */
    uint64_t text_left;    /* bytes still to go to *text */
    struct xspace_text *text;
    bool pext; /* varints by an instruction that not all CPUs have */
    bool begun;
    bool hopped; /* frames may have ended in what was hopped over */
    int depth;   /* frames in use */
    struct xspace_frame frames[6 + XSPACE_GROUPS];
    struct xspace_line line;
    struct xspace_plane plane;
    struct xspace_event big_event;
    struct xspace_stat big_stat;
    struct xspace_meta big_meta;
    uint32_t nbatch, npatch;
    struct xspace_text plane_name, name, display_name;
    struct xspace_event batch[XSPACE_BATCH];
    uint8_t patch[XSPACE_PATCH];
};

#endif
