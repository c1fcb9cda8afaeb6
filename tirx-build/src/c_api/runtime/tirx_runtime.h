/* Support for generated launchers. Not for programs. */
#ifndef TIRX_RUNTIME_H
#define TIRX_RUNTIME_H

#include <math.h>
#include <string.h>

#include "tirx_c.h"

/* An argument of a packed call: TVM FFI's `TVMFFIAny`. */
typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
  } v;
} tirx_any;

static inline tirx_any tirx_any_int(int64_t value) {
  tirx_any any = {1, 0, {0}};
  any.v.v_int64 = value;
  return any;
}
static inline tirx_any tirx_any_bool(bool value) {
  tirx_any any = {2, 0, {0}};
  any.v.v_int64 = value;
  return any;
}
static inline tirx_any tirx_any_float(double value) {
  tirx_any any = {3, 0, {0}};
  any.v.v_float64 = value;
  return any;
}
static inline tirx_any tirx_any_pointer(const void* value) {
  tirx_any any = {4, 0, {0}};
  any.v.v_ptr = (void*)value;
  return any;
}
static inline tirx_any tirx_any_tensor(const DLTensor* value) {
  tirx_any any = {7, 0, {0}};
  any.v.v_ptr = (void*)value;
  return any;
}

#define TIRX_TRY(call)            \
  do {                            \
    int32_t status_ = (call);     \
    if (status_) return status_;  \
  } while (0)

/* Kinds of parameters of a device function: bits of a scalar, or one of these. */
#define TIRX_POINTER 0
#define TIRX_TENSOR_MAP 255

typedef struct {
  const char* symbol;
  uint32_t num_params;
  const uint8_t* params;
} tirx_function;

typedef struct {
  const char* name;
  /* NULL where the build had no nvcc. */
  const void* fatbin;
  const void* ir;
  size_t ir_bytes;
  const tirx_function* functions;
  uint32_t num_functions;
  void* loaded;
} tirx_kernel;

#define TIRX_KERNEL(id, shown, table, count) \
  { shown, TIRX_FATBIN_##id, id##_ir, sizeof(id##_ir), table, count, NULL }

typedef struct {
  uint32_t grid[3], block[3], cluster[3], preferred_cluster[3];
  uint32_t shared_bytes;
  int cooperative, programmatic;
} tirx_launch_config;

#define TIRX_LAUNCH_CONFIG \
  { {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0, 0, 0 }

typedef struct {
  uint32_t data_type, rank;
  uint64_t address;
  uint64_t dims[5], strides[5];
  uint32_t box_dims[5], element_strides[5];
  uint32_t interleave, swizzle, l2_promotion, oob_fill;
} tirx_tensor_map_spec;

#define TIRX_KEPT_MAPS 8
typedef struct {
  int lock;
  uint32_t count, next;
  tirx_tensor_map_spec specs[TIRX_KEPT_MAPS];
  tirx_tensor_map maps[TIRX_KEPT_MAPS];
} tirx_tensor_map_cache;

/* For callers through the FFI: the stream of their environment. */
#define TIRX_STREAM_OF_FFI ((void*)(intptr_t)-1)

int32_t tirx_fail_check(const char* kernel, const char* kind, const char* message);
int32_t tirx_fail_text(const char* kernel, const char* kind, int32_t index, const char* argument, const char* field,
                       const char* expected, const char* actual);
int32_t tirx_fail_type(const char* kernel, int32_t index, const char* argument, const char* expected, int32_t found);
int32_t tirx_fail_dtype(const char* kernel, const char* kind, const void* args, int32_t index, const char* argument,
                        const char* expected);
int32_t tirx_fail_value(const char* kernel, int32_t index, const char* argument, const char* field,
                        const char* expected, int64_t actual);
int32_t tirx_fail_mismatch(const char* kernel, int32_t index, const char* argument, const char* field, int64_t wanted,
                           const char* words, int64_t actual);
int32_t tirx_fail_tensor_map(const char* kernel, const char* map, const char* field, const char* expected,
                             int64_t actual);
/* Checks what every read of a tensor relies on: that it is there, and has a shape without negative extents. Other checks are
 * the kernel's own. */
int32_t tirx_check_tensor(const char* kernel, const void* args, int32_t num_args, int32_t index, const char* argument,
                          int32_t rank);
int32_t tirx_set_device(const char* kernel, int32_t device, void** stream);
int32_t tirx_extent(const char* kernel, const char* what, int64_t value, uint32_t* extent);
/* A 64-bit integer for launch extents, with a flag for overflow and division by zero. */
typedef struct {
  int64_t value;
  bool fits;
} tirx_wide;

static inline tirx_wide tirx_wide_of(int64_t value) {
  tirx_wide wide = {value, true};
  return wide;
}
static inline tirx_wide tirx_wide_unsigned(uint64_t value) {
  tirx_wide wide = {(int64_t)value, value <= (uint64_t)INT64_MAX};
  return wide;
}
static inline tirx_wide tirx_wide_add(tirx_wide a, tirx_wide b) {
  bool over = b.value > 0 ? a.value > INT64_MAX - b.value : a.value < INT64_MIN - b.value;
  tirx_wide wide = {over ? 0 : a.value + b.value, a.fits && b.fits && !over};
  return wide;
}
static inline tirx_wide tirx_wide_sub(tirx_wide a, tirx_wide b) {
  bool over = b.value < 0 ? a.value > INT64_MAX + b.value : a.value < INT64_MIN + b.value;
  tirx_wide wide = {over ? 0 : a.value - b.value, a.fits && b.fits && !over};
  return wide;
}
static inline tirx_wide tirx_wide_mul(tirx_wide a, tirx_wide b) {
  bool over = a.value != 0 && b.value != 0 &&
              ((a.value == -1 && b.value == INT64_MIN) || (b.value == -1 && a.value == INT64_MIN));
  if (!over && a.value > 0) over = b.value > INT64_MAX / a.value || b.value < INT64_MIN / a.value;
  if (!over && a.value < -1) over = b.value > INT64_MIN / a.value || b.value < INT64_MAX / a.value;
  tirx_wide wide = {over ? 0 : a.value * b.value, a.fits && b.fits && !over};
  return wide;
}
/* Quotients and remainders, rounded to zero or to minus infinity. */
static inline tirx_wide tirx_wide_div(tirx_wide a, tirx_wide b) {
  bool bad = b.value == 0 || (b.value == -1 && a.value == INT64_MIN);
  tirx_wide wide = {bad ? 0 : a.value / b.value, a.fits && b.fits && !bad};
  return wide;
}
static inline tirx_wide tirx_wide_rem(tirx_wide a, tirx_wide b) {
  bool bad = b.value == 0 || (b.value == -1 && a.value == INT64_MIN);
  tirx_wide wide = {bad ? 0 : a.value % b.value, a.fits && b.fits && !bad};
  return wide;
}
static inline tirx_wide tirx_wide_floor_div(tirx_wide a, tirx_wide b) {
  tirx_wide wide = tirx_wide_div(a, b);
  if (wide.fits && a.value % b.value != 0 && (a.value < 0) != (b.value < 0)) --wide.value;
  return wide;
}
static inline tirx_wide tirx_wide_floor_mod(tirx_wide a, tirx_wide b) {
  tirx_wide wide = tirx_wide_rem(a, b);
  if (wide.fits && wide.value != 0 && (wide.value < 0) != (b.value < 0)) wide.value += b.value;
  return wide;
}
static inline tirx_wide tirx_wide_min(tirx_wide a, tirx_wide b) {
  tirx_wide wide = {a.value < b.value ? a.value : b.value, a.fits && b.fits};
  return wide;
}
static inline tirx_wide tirx_wide_max(tirx_wide a, tirx_wide b) {
  tirx_wide wide = {a.value > b.value ? a.value : b.value, a.fits && b.fits};
  return wide;
}
/* An extent as the driver takes it, from its value, its expression and the values of the expression's variables. */
int32_t tirx_launch_extent(const char* kernel, const char* what, tirx_wide value, const char* expression,
                           const char* const* names, const tirx_wide* values, size_t count, uint32_t* extent);
/* A grid with no blocks does nothing. */
static inline bool tirx_has_blocks(const tirx_launch_config* config) {
  return config->grid[0] && config->grid[1] && config->grid[2];
}
int32_t tirx_launch(tirx_kernel* kernel, uint32_t function, void* stream, const tirx_launch_config* config,
                    void** params);
int32_t tirx_tensor_map_encode(const char* kernel, const char* map, tirx_tensor_map_cache* cache,
                               const tirx_tensor_map_spec* spec, tirx_tensor_map* out);
/* Gives an error to the FFI's caller, and 0 or -1. */
int32_t tirx_ffi_result(int32_t status, void* result);

/* Divisions that round to zero or to minus infinity; a zero divisor is recorded. */
static inline int64_t tirx_truncdiv(int64_t a, int64_t b, bool* by_zero) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) {
    *by_zero = true;
    return 0;
  }
  return a / b;
}
static inline int64_t tirx_truncmod(int64_t a, int64_t b, bool* by_zero) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) {
    *by_zero = true;
    return 0;
  }
  return a % b;
}
static inline int64_t tirx_floordiv(int64_t a, int64_t b, bool* by_zero) {
  int64_t quotient = tirx_truncdiv(a, b, by_zero);
  return !*by_zero && quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
static inline int64_t tirx_floormod(int64_t a, int64_t b, bool* by_zero) {
  int64_t rest = tirx_truncmod(a, b, by_zero);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline uint64_t tirx_udiv(uint64_t a, uint64_t b, bool* by_zero) {
  if (b == 0) *by_zero = true;
  return b == 0 ? 0 : a / b;
}
static inline uint64_t tirx_umod(uint64_t a, uint64_t b, bool* by_zero) {
  if (b == 0) *by_zero = true;
  return b == 0 ? 0 : a % b;
}
/* Floats to integers: truncated; the nearest integer of the type, or zero for NaN. */
static inline int64_t tirx_to_int(double value, int64_t min, int64_t max) {
  if (value != value) return 0;
  return value <= (double)min ? min : value >= (double)max ? max : (int64_t)value;
}
static inline uint64_t tirx_to_uint(double value, uint64_t max) {
  return !(value > 0) ? 0 : value >= (double)max ? max : (uint64_t)value;
}
static inline int tirx_popcount(uint64_t value) {
  int count = 0;
  for (; value; value &= value - 1) ++count;
  return count;
}
static inline int tirx_clz(uint64_t value, int bits) {
  int count = bits;
  for (; value; value >>= 1) --count;
  return count;
}

/* 16-bit floats as their bits, rounded to nearest, ties to even. */
uint16_t tirx_f16(double value);
uint16_t tirx_bf16(double value);
double tirx_f16_to_double(uint16_t bits);
double tirx_bf16_to_double(uint16_t bits);

#endif
