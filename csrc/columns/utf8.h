/*
 * utf8.h - whether bytes are UTF-8. External data is checked once, where it enters.
 *
 * Columns of strings are checked as one piece: if all bytes are ASCII (the usual case), or together UTF-8 with no
 * string beginning inside a character, each string is UTF-8. That is one pass over the bytes at memory speed.
 */
#pragma once

#include "base/base.h"
#include "columns/batch.h"

bool utf8_is_valid(bytes x);

/* Whether the string is one of a column whose strings are such: see ps_query. */
bool string_fits(bytes x, int32_t strings);
