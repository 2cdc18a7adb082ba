/*
 * utf8.h - whether bytes are UTF-8: what comes from outside is checked once, where it comes in.
 *
 * Columns of strings are looked at as one piece: if all bytes are ASCII, as a rule, or together UTF-8 and no string
 * begins inside a character, each string is UTF-8. That costs a pass over the bytes at the speed of memory.
 */
#pragma once

#include "base/base.h"
#include "columns/batch.h"

bool utf8_is_valid(bytes x);

/* Whether the string is one of a column whose strings are such: see ps_query. */
bool string_fits(bytes x, int32_t strings);
