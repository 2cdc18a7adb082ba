/* limbs.c - see limbs.h. */
#include "base/limbs.h"

void limbs_carry(uint64_t *a, int n, uint64_t sign) {
  bool more = true;
  for (int i = 0; more && i < n; i++) {
    more = a[i] == ~sign;
    a[i] += sign | 1;
  }
}
