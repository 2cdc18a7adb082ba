/*
 * exact_ratio.h - the double nearest to a / d * 2^exponent, and to its square root, for integers a of many limbs and d.
 *
 * Of a the highest 255 bits are taken, and of the others whether there are any: a rest. They are divided by d shifted to
 * 128 bits, so the quotient has 127 or 128 bits, and again a rest. A double keeps 53 bits of the result, or fewer; of what
 * is below them it matters only whether it is more than a half, exactly a half or less. Two bits more and whether there
 * is a rest decide that, and there are at least nine more:
 *
 *   the quotient   its upper 63 or 64 bits; a rest is what was left at any step
 *   the root       of the quotient shifted by 2 or 3 bits, so that its exponent is even: the integer root has 62 or 63
 *                  bits; a rest is what was left at any step, or that the quotient is no square
 *
 * Rounding is to nearest, ties to even; to subnormal numbers as well, once; and to infinity from 2^1024 - 2^970 on.
 */
#pragma once

#include "base/limbs.h"

/* d > 0; a has n limbs and no sign. */
double exact_ratio_round(const uint64_t *a, int n, uint128 d, int exponent);
double exact_ratio_root(const uint64_t *a, int n, uint128 d, int exponent);
