/*
 * native_udf.h - window functions that users bring as compiled code: pystream.h says what they are given.
 *
 * The window's state is the code that `process` gave when it first failed (0: never) and then the user's own bytes.
 * A failed state is not touched again; the failure is reported when its window is put out, so which one is reported
 * does not depend on the design or on timing: it is the first in the order of the output.
 */
#pragma once

#include "base/base.h"
#include "columns/batch.h"
#include "columns/output.h"

typedef struct native_udf native_udf;

/* A copy of what the caller described. NULL when out of memory. */
native_udf *native_udf_new(const ps_native *from);
void native_udf_free(native_udf *u);

/* Bytes of state a window needs, the user's and ours. */
size_t native_udf_size(const native_udf *u);

/* For snapshots: the code that `process` failed with, and the user's bytes; and back into a state of zero bytes. */
int32_t native_udf_failed(const void *state);
bytes native_udf_bytes(const native_udf *u, const void *state);
uint8_t *native_udf_load(void *state, int32_t failed); /* where the user's bytes belong */

void native_udf_add(const native_udf *u, void *state, const column *columns, int64_t row);

/* Writes the result; PS_UDF_FAILED with the user's code in *fault. */
ps_code native_udf_finish(const native_udf *u, const void *state, out_rows *rows, int32_t to, ps_fault *fault);
