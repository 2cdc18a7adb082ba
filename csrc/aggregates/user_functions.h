/*
 * user_functions.h - window functions that users bring: as Python objects (udf), which live in Python and have only the
 * window's number here; or as compiled code (native udf): pystream.h says what that is given.
 *
 * The state of a native udf is the code that `process` gave when it first failed (0: never) and then the user's own
 * bytes. A failed state is not touched again; the failure is reported when its window is put out, so which one is
 * reported does not depend on the design or on timing: it is the first in the order of the output.
 */
#pragma once

#include "aggregates/kernel.h"

/* A copy of what the caller described. NULL when out of memory. */
native_udf *native_udf_new(const ps_native *from);
void native_udf_free(native_udf *u);

/* Bytes of state a window needs, the user's and ours. */
size_t native_udf_size(const native_udf *u);
