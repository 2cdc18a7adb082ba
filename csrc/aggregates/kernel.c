/* kernel.c - see kernel.h. */
#include "aggregates/kernel.h"

#include "aggregates/state_bytes.h"
#include "columns/utf8.h"

static const kernel *const of_integers[PS_FUNCTIONS] = {[PS_COUNT] = &kernel_count,
                                                        [PS_SUM] = &kernel_sum_integers,
                                                        [PS_AVG] = &kernel_avg_integers,
                                                        [PS_MIN] = &kernel_min,
                                                        [PS_MAX] = &kernel_max,
                                                        [PS_FIRST] = &kernel_first,
                                                        [PS_LAST] = &kernel_last,
                                                        [PS_VAR] = &kernel_var_integers,
                                                        [PS_STD] = &kernel_std_integers,
                                                        [PS_ARG_MIN] = &kernel_arg_min,
                                                        [PS_ARG_MAX] = &kernel_arg_max,
                                                        [PS_COVAR] = &kernel_covar,
                                                        [PS_SLOPE] = &kernel_slope,
                                                        [PS_INTERCEPT] = &kernel_intercept,
                                                        [PS_CORR] = &kernel_corr,
                                                        [PS_UDF] = &kernel_udf,
                                                        [PS_NATIVE] = &kernel_native,
                                                        [PS_N_UNIQUE] = &kernel_n_unique,
                                                        [PS_QUANTILE] = &kernel_quantile,
                                                        [PS_APPROX_QUANTILE] = &kernel_approx_quantile,
                                                        [PS_TOP_K] = &kernel_top_k,
                                                        [PS_BOTTOM_K] = &kernel_bottom_k,
                                                        [PS_HISTOGRAM] = &kernel_histogram};

static const kernel *const of_floats[PS_FUNCTIONS] = {[PS_SUM] = &kernel_sum_floats,
                                                      [PS_AVG] = &kernel_avg_floats,
                                                      [PS_MIN] = &kernel_min,
                                                      [PS_MAX] = &kernel_max,
                                                      [PS_FIRST] = &kernel_first,
                                                      [PS_LAST] = &kernel_last,
                                                      [PS_VAR] = &kernel_var_floats,
                                                      [PS_STD] = &kernel_std_floats,
                                                      [PS_ARG_MIN] = &kernel_arg_min,
                                                      [PS_ARG_MAX] = &kernel_arg_max,
                                                      [PS_COVAR] = &kernel_covar,
                                                      [PS_SLOPE] = &kernel_slope,
                                                      [PS_INTERCEPT] = &kernel_intercept,
                                                      [PS_CORR] = &kernel_corr,
                                                      [PS_N_UNIQUE] = &kernel_n_unique,
                                                      [PS_QUANTILE] = &kernel_quantile,
                                                      [PS_APPROX_QUANTILE] = &kernel_approx_quantile,
                                                      [PS_TOP_K] = &kernel_top_k,
                                                      [PS_BOTTOM_K] = &kernel_bottom_k,
                                                      [PS_HISTOGRAM] = &kernel_histogram};

static const kernel *const of_bytes[PS_FUNCTIONS] = {
    [PS_MIN] = &kernel_min_bytes,   [PS_MAX] = &kernel_max_bytes,         [PS_FIRST] = &kernel_first_bytes,
    [PS_LAST] = &kernel_last_bytes, [PS_ARG_MIN] = &kernel_arg_min_bytes, [PS_ARG_MAX] = &kernel_arg_max_bytes};

const kernel *kernel_of(ps_function function, ps_type type, bool masked) {
  if (function == PS_COUNT && !masked) return &kernel_count_rows;
  if (type_is_bytes(type)) return of_bytes[function];
  return type_is_float(type) ? of_floats[function] : of_integers[function];
}

/* ---- a window's state as the total of key 0 ---- */

static const uint32_t key_0 = 0;

bool kernel_combine(const aggregate *a, void *state, void *other) {
  return a->kernel->enter(&(partial_totals){.total = state},
                          &(partial_list){.keys = &key_0, .partials = other, .n = 1});
}

ps_code kernel_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)fault;
  _Alignas(16) uint8_t front[64] = {0};
  int64_t failed;
  assert(!a->kernel->stacked || a->kernel->size <= sizeof front);
  partial_totals total = {(void *)(uintptr_t)state, front}; /* only read */
  partial_list keys = {.keys = &key_0, .n = 1};
  return a->kernel->finish_many(&(partial_results){a, &total, &keys, state, rows, to, &failed});
}

/* ---- checks of entries that come in ---- */

bool kernel_refuse(const kernel_input *in, int64_t row, ps_partial_fault what) {
  *in->fault = (ps_fault){.row = row, .aggregate = in->number, .code = (int32_t)what};
  return false;
}

bool kernel_check_counts(const aggregate *a, const kernel_input *in) {
  (void)a;
  for (int64_t row = 0; row < in->n; row++) {
    int64_t n = input_integer(in, in->from, row);
    if (n < 0 || n > input_integer(in, in->rows, row)) return kernel_refuse(in, row, PS_BAD_COUNT);
  }
  return true;
}

bool kernel_check_values(const aggregate *a, const kernel_input *in) {
  const column *c = &in->b->columns[in->from];
  if (!in->packed || (a->is_bytes && a->strings == PS_ANY_BYTES)) return true;
  for (int64_t row = 0; row < in->n; row++) {
    if (column_is_null(c, row)) continue;
    bool ok =
        a->is_bytes ? string_fits(column_bytes(c, row), a->strings) : value_in_range(column_bits(c, row), a->type);
    if (!ok) return kernel_refuse(in, row, PS_BAD_VALUE);
  }
  return true;
}
