/* shard/tools/demangle.h - a C++ name as compilers write it (Itanium ABI), as people do.
 *
 *     _ZN2at6native4gemmIfLi4EEEvPfi    void at::native::gemm<float, 4>(float*, int)
 *
 * What GPU kernels are called is read: namespaces, templates, substitutions, function and member
 * pointers, operators, lambdas, local names, literals. Expressions in types (X, decltype) are not:
 * such a name is refused, as is any that is not of the form, and the caller keeps it as it is.
 *
 * Bounds     DEMANGLE_IN_MAX bytes are read, DEMANGLE_OUT_MAX written, however often a name refers
 *            back to its parts; types nest DEMANGLE_DEPTH_MAX deep.
 * Input      Any bytes.
 */
#ifndef SHARD_DEMANGLE_H
#define SHARD_DEMANGLE_H

#include "lib/base/buf.h"

#define DEMANGLE_IN_MAX 8192
#define DEMANGLE_OUT_MAX 16384
#define DEMANGLE_DEPTH_MAX 64

/* Appends to out; false, and out as it was: it is no such name. */
bool demangle(struct xp_span name, struct xp_buf *out);

#endif
