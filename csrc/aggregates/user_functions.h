/*
 * user_functions.h - window functions of the user: Python objects (udf), of which C has only the window's number; or
 * compiled code (native udf), whose arguments pystream.h documents.
 *
 * The state of a native udf is the first code other than 0 that `process` returned, and the user's bytes. After a
 * failure `process` is not called again for this state. The failure is reported when the window is emitted: the first
 * in the order of the output, whatever the design and the timing. In lanes the code
 * is that of some tuple that failed, otherwise of the first one.
 */
#pragma once

#include "aggregates/kernel.h"

/* A copy of the caller's description. NULL: out of memory. */
native_udf *native_udf_new(const ps_native *from);
void native_udf_free(native_udf *u);

/* Bytes of a window's state, the user's and ours. */
size_t native_udf_size(const native_udf *u);

/* Whether the user gave a function that combines two states: then the order of tuples does not matter. */
bool native_udf_combines(const native_udf *u);
