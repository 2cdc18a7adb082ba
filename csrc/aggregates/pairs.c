/*
 * pairs.c - covar, slope, intercept and corr of the aggregate's column (u) and its second one (v), each of integers or
 * of floats; ddof is the parameter of covar.
 *
 * States, partials and entries are alike (exact_pairs.h), with as many products as the result needs. As in moments.c,
 * what enters a total can leave it again.
 *
 * As bytes, in snapshots and partials: 1, whose bits say which wide parts there are; the narrow sums of u and v, 16
 * each; the narrow words of each product, 8 each; then the wide sums (wide_bytes.h) of u and v, and the wide limbs of
 * each product, 8 each.
 */
#include "base/exact_pairs.h"
#include "aggregates/partial.h"
#include "aggregates/state_bytes.h"
#include "aggregates/wide_bytes.h"

typedef ps_exact_pairs pairs;

#define WORDS_BYTES (INT64_C(8) * EXACT_PRODUCT_WORDS)
#define LIMBS_BYTES (INT64_C(8) * EXACT_PRODUCT_LIMBS)
#define MOST_BYTES (1 + 2 * (16 + WIDE_BYTES) + EXACT_PAIR_PRODUCTS * (WORDS_BYTES + LIMBS_BYTES))

static int products_of(const kernel *k) { return exact_pair_products((exact_pair_result)k->result); }

static exact_pair_kind kind_of(const aggregate *a) {
  return (exact_pair_kind){exact_values_of(a->type), exact_values_of(a->by_type), products_of(a->kernel)};
}

/* States of `products` products lie side by side. */
static inline pairs *pairs_at(void *states, int products, int64_t i) {
  return (pairs *)(void *)((uint8_t *)states + (size_t)i * exact_pairs_size(products));
}

static inline const pairs *pairs_in(const void *states, int products, int64_t i) {
  return (const pairs *)(const void *)((const uint8_t *)states + (size_t)i * exact_pairs_size(products));
}

/* ---- as bytes ---- */

/* Bit 0: the sum of u, bit 1: that of v, then the products. */
static unsigned wide_parts(const pairs *p, int products) {
  unsigned parts = (p->u.wide ? 1u : 0) | (p->v.wide ? 2u : 0);
  for (int i = 0; i < products; i++) parts |= (p->product[i].wide ? 4u : 0) << i;
  return parts;
}

static int64_t length_of(unsigned parts, int products) {
  int sums = __builtin_popcount(parts & 3), limbs = __builtin_popcount(parts >> 2);
  return 1 + 32 + products * WORDS_BYTES + sums * (int64_t)WIDE_BYTES + limbs * LIMBS_BYTES;
}

static uint8_t *put_words(uint8_t *to, const uint64_t *word, int n) {
  for (int i = 0; i < n; i++) to = bytes_put_word(to, word[i]);
  return to;
}

static const uint8_t *get_words(const uint8_t *from, uint64_t *word, int n) {
  for (int i = 0; i < n; i++, from += 8) word[i] = bytes_word(from);
  return from;
}

static void put_pairs(uint8_t *to, const pairs *p, int products) {
  *to++ = (uint8_t)wide_parts(p, products);
  to = bytes_put_int128(bytes_put_int128(to, p->u.narrow), p->v.narrow);
  for (int i = 0; i < products; i++) to = put_words(to, p->product[i].word, EXACT_PRODUCT_WORDS);
  if (p->u.wide) to = put_wide(to, p->u.wide);
  if (p->v.wide) to = put_wide(to, p->v.wide);
  for (int i = 0; i < products; i++) {
    if (p->product[i].wide) to = put_words(to, p->product[i].wide->limb, EXACT_PRODUCT_LIMBS);
  }
}

/* Pairs read from bytes, with room for their wide parts. */
typedef struct {
  pairs p;
  exact_sum_wide u, v;
  exact_product_wide product[EXACT_PAIR_PRODUCTS];
} pairs_got;

static const uint8_t *get_sum(const uint8_t *from, bool wide, ps_exact_sum *sum, exact_sum_wide *room) {
  if (!wide) return from;
  *room = wide_at(from);
  sum->wide = room;
  return from + WIDE_BYTES;
}

/* False: these are not the bytes of any pairs. */
static bool get_pairs(pairs_got *to, bytes x, int64_t n, int products) {
  if (x.length < 1 || x.data[0] >> (2 + products) || x.length != length_of(x.data[0], products)) return false;
  unsigned parts = x.data[0];
  to->p = (pairs){.u = {.narrow = bytes_int128(x.data + 1), .n = n}, .v = {.narrow = bytes_int128(x.data + 17)}};
  const uint8_t *at = x.data + 33;
  for (int i = 0; i < products; i++) at = get_words(at, to->p.product[i].word, EXACT_PRODUCT_WORDS);
  at = get_sum(at, parts & 1, &to->p.u, &to->u);
  at = get_sum(at, parts & 2, &to->p.v, &to->v);
  for (int i = 0; i < products; i++) {
    if (!(parts >> 2 >> i & 1)) continue;
    at = get_words(at, to->product[i].limb, EXACT_PRODUCT_LIMBS);
    to->p.product[i].wide = &to->product[i];
  }
  return true;
}

/* ---- a window's state ---- */

static const column *second(const aggregate *a, const column *c) { return c + (a->by - a->column); }

static bool pairs_add(const aggregate *a, void *state, const column *c, int64_t row) {
  return exact_pairs_add(state, kind_of(a), column_bits(c, row), column_bits(second(a, c), row));
}

static bool pairs_reserve(const aggregate *a, void *state, const column *c, int64_t row) {
  return exact_pairs_reserve(state, kind_of(a), column_bits(c, row), column_bits(second(a, c), row));
}

static bool pairs_write(const aggregate *a, const void *state, byte_buffer *to) {
  const pairs *p = state;
  int products = products_of(a->kernel);
  uint8_t x[MOST_BYTES];
  put_pairs(x, p, products);
  return state_put_word(to, (uint64_t)p->u.n) && state_put(to, x, length_of(x[0], products));
}

static void pairs_read(const aggregate *a, void *state, state_reader *from) {
  int products = products_of(a->kernel);
  uint8_t x[MOST_BYTES] = {0};
  pairs_got got;
  int64_t n = state_get_count(from);
  state_get(from, x, 1);
  state_require(from, x[0] >> (2 + products) == 0);
  int64_t length = from->code == PS_OK ? length_of(x[0], products) : 1;
  if (!state_get(from, x + 1, length - 1)) return;
  bool ok = get_pairs(&got, (bytes){x, length}, n, products) && exact_pairs_possible(&got.p, kind_of(a));
  state_require(from, ok);
  if (ok && !exact_pairs_combine(state, &got.p, products, LIMBS_PLUS)) from->code = PS_NO_MEMORY;
}

/* ---- slices ---- */

/* Bytes that pairs own. */
static int64_t held_by(const pairs *p, int products) {
  unsigned parts = wide_parts(p, products);
  return __builtin_popcount(parts & 3) * (int64_t)sizeof(exact_sum_wide) +
         __builtin_popcount(parts >> 2) * (int64_t)sizeof(exact_product_wide);
}

/* A pair that the narrow sums do not take. */
__attribute__((noinline)) static bool fold_rare(kernel_store *store, pairs *p, exact_pair_kind kind, uint64_t u,
                                                uint64_t v) {
  int64_t before = held_by(p, kind.products);
  if (!exact_pairs_add_rare(p, kind, u, v)) return false;
  store->wide += held_by(p, kind.products) - before;
  return true;
}

INLINED ps_code fold_kind(const kernel_target *t, const counted_rows *c, exact_pair_kind kind) {
  for (int64_t i = 0, n = c->n; i < n; i++) {
    pairs *p = pairs_at(t->states, kind.products, c->entry[i]);
    uint64_t u = c->bits[i], v = c->by[i];
    if (__builtin_expect(!exact_pairs_add_narrow(p, kind, u, v), 0) && !fold_rare(t->store, p, kind, u, v))
      return PS_NO_MEMORY;
  }
  return PS_OK;
}

/* A loop of its own for floats and each number of products; any other kind in one. */
static ps_code pairs_fold(const kernel_target *t, const counted_rows *c) {
  const exact_values floats = {EXACT_DOUBLES, UINT64_MAX};
  exact_pair_kind kind = kind_of(t->a);
  assert(c->bits && c->by);
  if (kind.u.unit != EXACT_DOUBLES || kind.v.unit != EXACT_DOUBLES) return fold_kind(t, c, kind);
  if (kind.products == 1) return fold_kind(t, c, (exact_pair_kind){floats, floats, 1});
  if (kind.products == 2) return fold_kind(t, c, (exact_pair_kind){floats, floats, 2});
  return fold_kind(t, c, (exact_pair_kind){floats, floats, 3});
}

INLINED bool enter_sized(const partial_totals *t, const partial_list *list, int products) {
  for (int64_t i = 0, n = list->n; i < n; i++) {
    pairs *to = pairs_at(t->total, products, list->keys[i]);
    if (!exact_pairs_combine(to, pairs_in(list->partials, products, i), products, LIMBS_PLUS)) return false;
  }
  return true;
}

INLINED bool leave_sized(const partial_totals *t, const partial_list *list, int products) {
  for (int64_t i = 0, n = list->n; i < n; i++) {
    pairs *to = pairs_at(t->total, products, list->keys[i]);
    if (!exact_pairs_combine(to, pairs_in(list->partials, products, i), products, LIMBS_MINUS)) return false;
    if (__builtin_expect(!exact_pairs_are_narrow(to, products), 0) && to->u.n == 0) exact_pairs_clear(to, products);
  }
  return true;
}

INLINED bool holds_sized(const void *partials, int64_t n, int products) {
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= !exact_pairs_are_narrow(pairs_in(partials, products, i), products);
  return any;
}

INLINED void drop_sized(void *partials, int64_t n, int products) {
  for (int64_t i = 0; i < n; i++) exact_pairs_clear(pairs_at(partials, products, i), products);
}

INLINED void entries_drop_sized(kernel_store *store, void *states, int64_t n, int products) {
  for (int64_t i = 0; store->wide && i < n; i++) {
    pairs *p = pairs_at(states, products, i);
    store->wide -= held_by(p, products);
    exact_pairs_clear(p, products);
  }
}

/* These callbacks are not given the aggregate: one for each number of products. */
#define SIZED_BY(products)                                                                                     \
  static bool enter_##products(const partial_totals *t, const partial_list *list) {                            \
    return enter_sized(t, list, products);                                                                     \
  }                                                                                                            \
  static bool leave_##products(const partial_totals *t, const partial_list *list) {                            \
    return leave_sized(t, list, products);                                                                     \
  }                                                                                                            \
  static bool holds_##products(const void *partials, int64_t n) { return holds_sized(partials, n, products); } \
  static void drop_many_##products(void *partials, int64_t n) { drop_sized(partials, n, products); }           \
  static void drop_##products(void *state) { exact_pairs_clear(state, products); }                             \
  static void entries_drop_##products(kernel_store *store, void *states, int64_t n) {                          \
    entries_drop_sized(store, states, n, products);                                                            \
  }

SIZED_BY(1)
SIZED_BY(2)
SIZED_BY(3)

static ps_code pairs_finish_many(const partial_results *r) {
  exact_pair_kind kind = kind_of(r->a);
  exact_pair_result which = (exact_pair_result)r->a->kernel->result;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const pairs *p = pairs_in(r->t->total, kind.products, r->keys->keys[i]);
    double result = 0;
    bool found = exact_pairs_result(p, kind, which, r->a->parameter, &result);
    if (!found && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
    out[i] = double_bits(result);
  }
  return PS_OK;
}

/* ---- folds: n, and the pairs as bytes ---- */

static bool pairs_export(const kernel_output *o) {
  int products = products_of(o->a->kernel);
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const pairs *p = pairs_in(o->states, products, output_entry(o, i));
    n[i] = (uint64_t)p->u.n;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, length_of(wide_parts(p, products), products));
    if (!space) return false;
    put_pairs(space, p, products);
  }
  return n != NULL;
}

static bool got_at(pairs_got *to, const kernel_input *in, int64_t row, int products) {
  bytes x = column_bytes(&in->b->columns[in->from + 1], row);
  return get_pairs(to, x, input_integer(in, in->from, row), products);
}

static bool pairs_check(const aggregate *a, const kernel_input *in) {
  exact_pair_kind kind = kind_of(a);
  pairs_got got;
  if (!kernel_check_counts(a, in)) return false;
  for (int64_t row = 0; row < in->n; row++) {
    bool ok = got_at(&got, in, row, kind.products) && exact_pairs_possible(&got.p, kind);
    if (!ok) return kernel_refuse(in, row, PS_BAD_MOMENTS);
  }
  return true;
}

static ps_code pairs_import(const kernel_target *t, const kernel_input *in) {
  int products = products_of(t->a->kernel);
  pairs_got got;
  for (int64_t i = 0; i < in->n; i++) {
    pairs *p = pairs_at(t->states, products, in->entry[i]);
    int64_t before = held_by(p, products);
    bool known = got_at(&got, in, in->row + i, products);
    assert(known && "pairs_check has seen it");
    (void)known;
    if (!exact_pairs_combine(p, &got.p, products, LIMBS_PLUS)) return PS_NO_MEMORY;
    t->store->wide += held_by(p, products) - before;
  }
  return PS_OK;
}

/* ---- the tables ---- */

#define SIZE(products) (offsetof(pairs, product) + (products) * sizeof(exact_product))

#define PAIRS(which, products)        \
  {.result = (which),                 \
   .state_size = SIZE(products),      \
   .add = pairs_add,                  \
   .combine = kernel_combine,         \
   .reserve = pairs_reserve,          \
   .drop = drop_##products,           \
   .finish = kernel_finish,           \
   .write = pairs_write,              \
   .read = pairs_read,                \
   .size = SIZE(products),            \
   .owns = true,                      \
   .fold = pairs_fold,                \
   .enter = enter_##products,         \
   .leave = leave_##products,         \
   .finish_many = pairs_finish_many,  \
   .holds = holds_##products,         \
   .drop_many = drop_many_##products, \
   .entry_size = SIZE(products),      \
   .fold_entries = pairs_fold,        \
   .columns = 2,                      \
   .types = {PS_I64, PS_BYTES32},     \
   .export = pairs_export,            \
   .check = pairs_check,              \
   .import = pairs_import,            \
   .entries_drop = entries_drop_##products}

const kernel kernel_covar = PAIRS(EXACT_COVAR, 1);
const kernel kernel_slope = PAIRS(EXACT_SLOPE, 2);
const kernel kernel_intercept = PAIRS(EXACT_INTERCEPT, 2);
const kernel kernel_corr = PAIRS(EXACT_CORR, 3);
