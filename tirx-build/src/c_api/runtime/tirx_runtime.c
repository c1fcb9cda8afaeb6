/* The run time of C launchers: errors, the driver (opened when it is first needed), images, launches, tensor maps. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "tirx_runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32)
#include <windows.h>
#define TIRX_THREAD_LOCAL __declspec(thread)
static void* open_library(const char* name) { return (void*)LoadLibraryA(name); }
static void* symbol_of(void* library, const char* name) { return (void*)GetProcAddress((HMODULE)library, name); }
static void* symbol_of_process(const char* name) {
  HMODULE library = GetModuleHandleA("tvm_ffi.dll");
  return library ? (void*)GetProcAddress(library, name) : NULL;
}
static void lock(int* word) {
  while (InterlockedCompareExchange((volatile LONG*)word, 1, 0)) Sleep(0);
}
static void unlock(int* word) { InterlockedExchange((volatile LONG*)word, 0); }
#else
#include <dlfcn.h>
#include <sched.h>
#define TIRX_THREAD_LOCAL __thread
static void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
static void* symbol_of(void* library, const char* name) { return dlsym(library, name); }
static void* symbol_of_process(const char* name) { return dlsym(RTLD_DEFAULT, name); }
static void lock(int* word) {
  while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(int* word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }
#endif

/* ---- Errors ---- */

static TIRX_THREAD_LOCAL char last_error[1024];
static TIRX_THREAD_LOCAL const char* last_kind = "RuntimeError";

TIRX_API const char* tirx_last_error(void) { return last_error; }

static int32_t fail(int32_t status, const char* kind, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  last_kind = kind;
  return status;
}

int32_t tirx_fail_check(const char* kernel, const char* kind, const char* message) {
  return fail(TIRX_ERROR_CHECK, kind, "kernel `%s`: %s", kernel, message);
}

static int32_t fail_argument(const char* kernel, const char* kind, int32_t index, const char* argument,
                             const char* field, const char* actual, const char* expected) {
  char place[24] = "";
  if (index >= 0) snprintf(place, sizeof place, "argument %d ", (int)index);
  return fail(TIRX_ERROR_ARGUMENT, kind, "kernel `%s`, %s`%s`: %s is %s, expected %s", kernel, place, argument, field,
              actual, expected);
}

int32_t tirx_fail_text(const char* kernel, const char* kind, int32_t index, const char* argument, const char* field,
                       const char* expected, const char* actual) {
  return fail_argument(kernel, kind, index, argument, field, actual, expected);
}

int32_t tirx_fail_type(const char* kernel, int32_t index, const char* argument, const char* expected, int32_t found) {
  char text[32];
  const char* name = NULL;
  switch (found) {
    case 0: name = "nothing"; break;
    case 1: name = "an integer"; break;
    case 2: name = "a boolean"; break;
    case 3: name = "a number"; break;
    case 4: name = "a pointer"; break;
    case 7: case 70: name = "a tensor"; break;
    default: snprintf(text, sizeof text, "type %d", (int)found); name = text;
  }
  return fail_argument(kernel, "TypeError", index, argument, "type", name, expected);
}

int32_t tirx_fail_value(const char* kernel, int32_t index, const char* argument, const char* field,
                        const char* expected, int64_t actual) {
  char text[32];
  /* Addresses are printed in hexadecimal. */
  snprintf(text, sizeof text, strcmp(field, "data") == 0 ? "0x%llx" : "%lld", (long long)actual);
  return fail_argument(kernel, "ValueError", index, argument, field, text, expected);
}

int32_t tirx_fail_mismatch(const char* kernel, int32_t index, const char* argument, const char* field, int64_t wanted,
                           const char* words, int64_t actual) {
  char found[32], expected[256];
  snprintf(found, sizeof found, "%lld", (long long)actual);
  snprintf(expected, sizeof expected, *words ? "%lld (%s)" : "%lld", (long long)wanted, words);
  return fail_argument(kernel, "ValueError", index, argument, field, found, expected);
}

int32_t tirx_fail_tensor_map(const char* kernel, const char* map, const char* field, const char* expected,
                             int64_t actual) {
  char text[32];
  snprintf(text, sizeof text, strcmp(field, "globalAddress") == 0 ? "0x%llx" : "%lld", (long long)actual);
  return fail(TIRX_ERROR_CHECK, "ValueError", "kernel `%s`: tensor map `%s`: %s is %s, expected %s", kernel, map,
              field, text, expected);
}

/* The tensor of an argument of a packed call; NULL where there is none. A tensor object begins with the object's header. */
static const DLTensor* tensor_of(const tirx_any* any) {
  enum { OBJECT_HEADER = 24 };
  if (!any->v.v_ptr) return NULL;
  if (any->type_index == 70) return (const DLTensor*)((const char*)any->v.v_ptr + OBJECT_HEADER);
  return any->type_index == 7 ? (const DLTensor*)any->v.v_ptr : NULL;
}

int32_t tirx_check_tensor(const char* kernel, const void* args, int32_t num_args, int32_t index, const char* argument,
                          int32_t rank) {
  if (!args || index >= num_args) return TIRX_OK;
  const tirx_any* any = (const tirx_any*)args + index;
  if (any->type_index != 7 && any->type_index != 70) return TIRX_OK;
  const DLTensor* tensor = tensor_of(any);
  if (!tensor) return tirx_fail_text(kernel, "ValueError", index, argument, "tensor", "a pointer", "null");
  if (tensor->ndim != rank) return TIRX_OK;
  if (rank && !tensor->shape)
    return tirx_fail_text(kernel, "ValueError", index, argument, "shape", "a pointer", "null");
  for (int32_t i = 0; i < rank; ++i) {
    char field[24];
    snprintf(field, sizeof field, "shape[%d]", (int)i);
    if (tensor->shape[i] < 0)
      return tirx_fail_value(kernel, index, argument, field, "0 or more", tensor->shape[i]);
  }
  return TIRX_OK;
}

/* The name of a type of elements. */
static void dtype_name(DLDataType dtype, char* text, size_t size) {
  /* Names by DLPack's codes; the bits follow those that end in a letter without them. */
  static const struct {
    const char* name;
    bool has_bits;
  } names[] = {{"int", true},
               {"uint", true},
               {"float", true},
               {"handle", false},
               {"bfloat", true},
               {"complex", true},
               {"bool", false},
               {"float8_e3m4", false},
               {"float8_e4m3", false},
               {"float8_e4m3b11fnuz", false},
               {"float8_e4m3fn", false},
               {"float8_e4m3fnuz", false},
               {"float8_e5m2", false},
               {"float8_e5m2fnuz", false},
               {"float8_e8m0fnu", false},
               {"float6_e2m3fn", false},
               {"float6_e3m2fn", false},
               {"float4_e2m1fn", false}};
  char bits[8] = "", lanes[12] = "";
  if (dtype.code >= sizeof names / sizeof *names) {
    snprintf(text, size, "DLPack's code %d with %d bits", dtype.code, dtype.bits);
    return;
  }
  if (names[dtype.code].has_bits) snprintf(bits, sizeof bits, "%d", dtype.bits);
  if (dtype.lanes != 1) snprintf(lanes, sizeof lanes, "x%d", dtype.lanes);
  snprintf(text, size, "%s%s%s", names[dtype.code].name, bits, lanes);
}

int32_t tirx_fail_dtype(const char* kernel, const char* kind, const void* args, int32_t index, const char* argument,
                        const char* expected) {
  char found[64] = "unknown";
  const DLTensor* tensor = tensor_of((const tirx_any*)args + index);
  if (tensor) dtype_name(tensor->dtype, found, sizeof found);
  return fail_argument(kernel, kind, index, argument, "dtype", found, expected);
}

/* ---- The driver ---- */

typedef struct {
  int id;
  char pad[4];
  union {
    char bytes[64];
    unsigned dims[3];
    int number;
  } value;
} launch_attribute;

typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  launch_attribute* attributes;
  unsigned num_attributes;
} launch_config;

/* Numbers of the driver API. */
enum {
  ATTRIBUTE_COOPERATIVE = 2,
  ATTRIBUTE_CLUSTER = 4,
  ATTRIBUTE_PROGRAMMATIC = 6,
  ATTRIBUTE_PREFERRED_CLUSTER = 11,
  FUNCTION_PTX_VERSION = 5,
  FUNCTION_SHARED_BYTES = 8,
  FUNCTION_NON_PORTABLE_CLUSTER = 14,
  /* The first architecture with programmatic dependent launches. */
  LEAST_PROGRAMMATIC = 90,
  STATUS_NO_BINARY = 209
};

#define DRIVER_FUNCTIONS(X)                                                            \
  X(cuInit, "cuInit", (unsigned))                                                      \
  X(cuDeviceGet, "cuDeviceGet", (int*, int))                                           \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void**, int))               \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (void**))                                      \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (void*))                                       \
  X(cuCtxGetDevice, "cuCtxGetDevice", (int*))                                          \
  X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                      \
  X(cuStreamSynchronize, "cuStreamSynchronize", (void*))                               \
  X(cuGetErrorName, "cuGetErrorName", (int, const char**))                             \
  X(cuGetErrorString, "cuGetErrorString", (int, const char**))                         \
  X(cuModuleLoadData, "cuModuleLoadData", (void**, const void*))                       \
  X(cuModuleGetFunction, "cuModuleGetFunction", (void**, void*, const char*))          \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int*, int, void*))                      \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (void*, int, int))                       \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", (const launch_config*, void*, void**, void**)) \
  X(cuMemAlloc, "cuMemAlloc_v2", (uint64_t*, size_t))                                  \
  X(cuMemFree, "cuMemFree_v2", (uint64_t))                                             \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (uint64_t, const void*, size_t))                  \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void*, uint64_t, size_t))

static struct {
#define FIELD(name, symbol, args) int (*name) args;
  DRIVER_FUNCTIONS(FIELD)
#undef FIELD
  /* Missing in some drivers. */
  int (*cuTensorMapEncodeTiled)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                                const uint32_t*, int, int, int, int);
  /* Only in the simulator. */
  int (*load_ir)(void**, const void*, size_t);
  const char* (*simulator_error)(void);
} driver;

static int driver_lock;
/* 0 not tried, 1 open, -1 failed. */
static int driver_state;
static char driver_problem[256];

static int open_driver_once(void) {
  const char* names[] = {getenv("TIRX_DRIVER"),
#if defined(_WIN32)
                         "nvcuda.dll",
#else
                         "libcuda.so.1", "libcuda.so",
#endif
  };
  void* library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; ++i) {
    if (!names[i] || !*names[i]) continue;
    library = open_library(names[i]);
    if (!library && i == 0) {
      snprintf(driver_problem, sizeof driver_problem, "the driver `%.180s` (TIRX_DRIVER) cannot be opened", names[i]);
      return -1;
    }
  }
  if (!library) {
    snprintf(driver_problem, sizeof driver_problem, "the NVIDIA driver (libcuda) is not installed; without a GPU, name the library of the simulator in TIRX_DRIVER");
    return -1;
  }
#define LOAD(name, symbol, args)                                                                       \
  *(void**)&driver.name = symbol_of(library, symbol);                                                  \
  if (!driver.name) {                                                                                  \
    snprintf(driver_problem, sizeof driver_problem, "the driver has no `%s`: it is too old", symbol);  \
    return -1;                                                                                         \
  }
  DRIVER_FUNCTIONS(LOAD)
#undef LOAD
  *(void**)&driver.cuTensorMapEncodeTiled = symbol_of(library, "cuTensorMapEncodeTiled");
  *(void**)&driver.load_ir = symbol_of(library, "tirxSimulatorLoadIr");
  *(void**)&driver.simulator_error = symbol_of(library, "tirxSimulatorError");
  int status = driver.cuInit(0);
  if (status) {
    const char* name = NULL;
    driver.cuGetErrorName(status, &name);
    snprintf(driver_problem, sizeof driver_problem, "the driver does not start: %s", name ? name : "unknown error");
    return -1;
  }
  return 1;
}

static int32_t open_driver(void) {
  lock(&driver_lock);
  if (!driver_state) driver_state = open_driver_once();
  int state = driver_state;
  unlock(&driver_lock);
  return state == 1 ? TIRX_OK : fail(TIRX_ERROR_DRIVER, "RuntimeError", "%s", driver_problem);
}

TIRX_API bool tirx_is_simulator(void) { return open_driver() == TIRX_OK && driver.load_ir; }

static int32_t driver_failed(const char* kernel, const char* attempt, int status) {
  const char *name = NULL, *text = NULL;
  const char* told = driver.simulator_error ? driver.simulator_error() : NULL;
  if (told && *told) return fail(TIRX_ERROR_DRIVER, "RuntimeError", "%s", told);
  driver.cuGetErrorName(status, &name);
  driver.cuGetErrorString(status, &text);
  return fail(TIRX_ERROR_DRIVER, "RuntimeError", "%s%s%s%s: %s (%s)", kernel ? "kernel `" : "", kernel ? kernel : "",
              kernel ? "`: " : "", attempt, text ? text : "unknown error", name ? name : "?");
}

#define DRIVER(kernel, attempt, call)                                  \
  do {                                                                 \
    int status_ = (call);                                              \
    if (status_) return driver_failed(kernel, attempt, status_);       \
  } while (0)

/* Makes a context of the device current: keeps a current one, otherwise takes the device's primary context. */
static int32_t enter_device(const char* kernel, int32_t device) {
  void* context = NULL;
  int current = -1, handle = 0;
  TIRX_TRY(open_driver());
  DRIVER(kernel, "asking for the context", driver.cuCtxGetCurrent(&context));
  DRIVER(kernel, "finding the device", driver.cuDeviceGet(&handle, device));
  if (context && driver.cuCtxGetDevice(&current) == 0 && current == handle) return TIRX_OK;
  /* Retained for the life of the process, as in the CUDA runtime. */
  DRIVER(kernel, "opening the device", driver.cuDevicePrimaryCtxRetain(&context, handle));
  DRIVER(kernel, "opening the device", driver.cuCtxSetCurrent(context));
  return TIRX_OK;
}

int32_t tirx_set_device(const char* kernel, int32_t device, void** stream) {
  if (*stream == TIRX_STREAM_OF_FFI) {
    void* (*stream_of)(int32_t, int32_t);
    *(void**)&stream_of = symbol_of_process("TVMFFIEnvGetStream");
    *stream = stream_of ? stream_of(2, device) : NULL;
  }
  return enter_device(kernel, device);
}

static int32_t null_argument(const char* function, const char* argument) {
  return fail(TIRX_ERROR_ARGUMENT, "ValueError", "%s: %s is NULL", function, argument);
}

TIRX_API int32_t tirx_alloc(int32_t device, size_t bytes, void** address) {
  uint64_t place = 0;
  if (!address) return null_argument("tirx_alloc", "address");
  TIRX_TRY(enter_device(NULL, device));
  DRIVER(NULL, "allocating device memory", driver.cuMemAlloc(&place, bytes ? bytes : 1));
  *address = (void*)(uintptr_t)place;
  return TIRX_OK;
}

TIRX_API int32_t tirx_free(int32_t device, void* address) {
  TIRX_TRY(enter_device(NULL, device));
  DRIVER(NULL, "freeing device memory", driver.cuMemFree((uint64_t)(uintptr_t)address));
  return TIRX_OK;
}

TIRX_API int32_t tirx_copy_to_device(int32_t device, void* address, const void* source, size_t bytes) {
  if (bytes && !address) return null_argument("tirx_copy_to_device", "address");
  if (bytes && !source) return null_argument("tirx_copy_to_device", "source");
  TIRX_TRY(enter_device(NULL, device));
  DRIVER(NULL, "copying to the device", driver.cuMemcpyHtoD((uint64_t)(uintptr_t)address, source, bytes));
  return TIRX_OK;
}

TIRX_API int32_t tirx_copy_to_host(int32_t device, void* destination, const void* address, size_t bytes) {
  if (bytes && !destination) return null_argument("tirx_copy_to_host", "destination");
  if (bytes && !address) return null_argument("tirx_copy_to_host", "address");
  TIRX_TRY(enter_device(NULL, device));
  DRIVER(NULL, "waiting for the device", driver.cuCtxSynchronize());
  DRIVER(NULL, "copying from the device", driver.cuMemcpyDtoH(destination, (uint64_t)(uintptr_t)address, bytes));
  return TIRX_OK;
}

TIRX_API int32_t tirx_synchronize(int32_t device, tirx_stream stream) {
  TIRX_TRY(enter_device(NULL, device));
  DRIVER(NULL, "waiting for the stream", driver.cuStreamSynchronize((void*)stream));
  return TIRX_OK;
}

/* ---- Images and launches ---- */

/* A kernel loaded into a context; kept for the life of the process. */
typedef struct loaded {
  struct loaded* next;
  void* context;
  struct {
    void* handle;
    uint32_t shared_limit;
    int non_portable;
    /* The PTX that its code is from, as 90. */
    int ptx_version;
  } functions[];
} loaded;

static int load_lock;

static int32_t load(tirx_kernel* kernel, void* context, loaded** out) {
  void* module = NULL;
  if (driver.load_ir) {
    DRIVER(kernel->name, "loading the kernel", driver.load_ir(&module, kernel->ir, kernel->ir_bytes));
  } else {
    if (!kernel->fatbin)
      return fail(TIRX_ERROR_NO_CODE, "RuntimeError", "kernel `%s` was built without nvcc: it has no code for a GPU",
                  kernel->name);
    int status = driver.cuModuleLoadData(&module, kernel->fatbin);
    if (status == STATUS_NO_BINARY)
      return fail(TIRX_ERROR_NO_CODE, "RuntimeError", "kernel `%s` has no code for this device", kernel->name);
    DRIVER(kernel->name, "loading the kernel", status);
  }
  loaded* made = (loaded*)calloc(1, sizeof(loaded) + kernel->num_functions * sizeof made->functions[0]);
  if (!made) return fail(TIRX_ERROR_DRIVER, "RuntimeError", "kernel `%s`: no memory", kernel->name);
  made->context = context;
  for (uint32_t i = 0; i < kernel->num_functions; ++i) {
    int status = driver.cuModuleGetFunction(&made->functions[i].handle, module, kernel->functions[i].symbol);
    if (status) {
      free(made);
      return driver_failed(kernel->name, "finding the device function", status);
    }
    made->functions[i].shared_limit = 0;
    status = driver.cuFuncGetAttribute(&made->functions[i].ptx_version, FUNCTION_PTX_VERSION, made->functions[i].handle);
    if (status) {
      free(made);
      return driver_failed(kernel->name, "asking for the PTX of the device function", status);
    }
  }
  made->next = (loaded*)kernel->loaded;
  *out = made;
  return TIRX_OK;
}

static int32_t loaded_in_context(tirx_kernel* kernel, loaded** out) {
  void* context = NULL;
  DRIVER(kernel->name, "asking for the context", driver.cuCtxGetCurrent(&context));
  lock(&load_lock);
  for (loaded* known = (loaded*)kernel->loaded; known; known = known->next) {
    if (known->context == context) {
      unlock(&load_lock);
      *out = known;
      return TIRX_OK;
    }
  }
  int32_t status = load(kernel, context, out);
  if (!status) kernel->loaded = *out;
  unlock(&load_lock);
  return status;
}

int32_t tirx_extent(const char* kernel, const char* what, int64_t value, uint32_t* extent) {
  if (value < 0 || value > INT64_C(0xffffffff))
    return fail(TIRX_ERROR_LAUNCH, "ValueError", "kernel `%s`: %s would be %lld", kernel, what, (long long)value);
  *extent = (uint32_t)value;
  return TIRX_OK;
}

int32_t tirx_launch_extent(const char* kernel, const char* what, tirx_wide value, const char* expression,
                           const char* const* names, const tirx_wide* values, size_t count, uint32_t* extent) {
  char found[48] = "does not fit 64 bits", list[384] = "";
  size_t used = 0;
  if (value.fits && value.value >= 0 && value.value <= INT64_C(0xffffffff)) {
    *extent = (uint32_t)value.value;
    return TIRX_OK;
  }
  if (value.fits) snprintf(found, sizeof found, "would be %lld", (long long)value.value);
  for (size_t i = 0; i < count; ++i) {
    int more = values[i].fits && used < sizeof list
                   ? snprintf(list + used, sizeof list - used, "%s%s = %lld", used ? ", " : " (", names[i],
                              (long long)values[i].value)
                   : 0;
    if (more > 0) used += (size_t)more;
  }
  return fail(TIRX_ERROR_LAUNCH, "ValueError", "kernel `%s` cannot be launched: %s, `%s`, %s%s%s", kernel, what,
              expression, found, list, used ? ")" : "");
}

static int is_ones(const uint32_t dims[3]) { return dims[0] == 1 && dims[1] == 1 && dims[2] == 1; }

int32_t tirx_launch(tirx_kernel* kernel, uint32_t function, void* stream, const tirx_launch_config* config,
                    void** params) {
  loaded* state = NULL;
  launch_attribute attributes[4];
  unsigned count = 0;
  if (!tirx_has_blocks(config)) return TIRX_OK;
  for (uint32_t i = 0; i < kernel->functions[function].num_params; ++i)
    if (kernel->functions[function].params[i] == TIRX_TENSOR_MAP && !params[i])
      return fail(TIRX_ERROR_ARGUMENT, "ValueError", "kernel `%s`: a tensor map is NULL", kernel->name);
  /* A kernel without tensors: no argument determines the device. */
  if (stream == TIRX_STREAM_OF_FFI) TIRX_TRY(tirx_set_device(kernel->name, 0, &stream));
  TIRX_TRY(open_driver());
  TIRX_TRY(loaded_in_context(kernel, &state));
  void* handle = state->functions[function].handle;
  if (config->shared_bytes > 48 * 1024 && config->shared_bytes > state->functions[function].shared_limit) {
    DRIVER(kernel->name, "asking for dynamic shared memory",
           driver.cuFuncSetAttribute(handle, FUNCTION_SHARED_BYTES, (int)config->shared_bytes));
    state->functions[function].shared_limit = config->shared_bytes;
  }
  memset(attributes, 0, sizeof attributes);
  int preferred = !is_ones(config->preferred_cluster);
  if (!is_ones(config->cluster) || preferred) {
    attributes[count].id = ATTRIBUTE_CLUSTER;
    memcpy(attributes[count++].value.dims, config->cluster, sizeof config->cluster);
    if (config->cluster[0] * config->cluster[1] * config->cluster[2] > 8 && !state->functions[function].non_portable) {
      DRIVER(kernel->name, "asking for a large cluster",
             driver.cuFuncSetAttribute(handle, FUNCTION_NON_PORTABLE_CLUSTER, 1));
      state->functions[function].non_portable = 1;
    }
  }
  if (preferred) {
    attributes[count].id = ATTRIBUTE_PREFERRED_CLUSTER;
    memcpy(attributes[count++].value.dims, config->preferred_cluster, sizeof config->preferred_cluster);
  }
  /* Code for older GPUs, which a newer one may run too, does not wait for the previous kernel. */
  if (config->programmatic && state->functions[function].ptx_version >= LEAST_PROGRAMMATIC) {
    attributes[count].id = ATTRIBUTE_PROGRAMMATIC;
    attributes[count++].value.number = 1;
  }
  if (config->cooperative) {
    attributes[count].id = ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.number = 1;
  }
  launch_config driver_config = {{config->grid[0], config->grid[1], config->grid[2]},
                                 {config->block[0], config->block[1], config->block[2]},
                                 config->shared_bytes,
                                 stream,
                                 attributes,
                                 count};
  DRIVER(kernel->name, "launching", driver.cuLaunchKernelEx(&driver_config, handle, params, NULL));
  return TIRX_OK;
}

/* ---- Tensor maps ---- */

/* Encodes a map; a failure is told of `kernel`, where there is one. */
static int32_t encode(const char* kernel, const char* map, const tirx_tensor_map_spec* spec, tirx_tensor_map* out) {
  TIRX_TRY(open_driver());
  if (!driver.cuTensorMapEncodeTiled)
    return fail(TIRX_ERROR_DRIVER, "RuntimeError", "%s%s%sthe driver has no tensor maps: it is too old",
                kernel ? "kernel `" : "", kernel ? kernel : "", kernel ? "`: " : "");
  memset(out, 0, sizeof *out);
  int status = driver.cuTensorMapEncodeTiled(out, (int)spec->data_type, spec->rank, (void*)(uintptr_t)spec->address,
                                             spec->dims, spec->strides, spec->box_dims, spec->element_strides,
                                             (int)spec->interleave, (int)spec->swizzle, (int)spec->l2_promotion,
                                             (int)spec->oob_fill);
  if (status) {
    char attempt[128];
    snprintf(attempt, sizeof attempt, "encoding tensor map `%.64s`", map);
    return driver_failed(kernel, attempt, status);
  }
  return TIRX_OK;
}

int32_t tirx_tensor_map_encode(const char* kernel, const char* map, tirx_tensor_map_cache* cache,
                               const tirx_tensor_map_spec* spec, tirx_tensor_map* out) {
  lock(&cache->lock);
  for (uint32_t i = 0; i < cache->count; ++i) {
    if (memcmp(&cache->specs[i], spec, sizeof *spec) == 0) {
      *out = cache->maps[i];
      unlock(&cache->lock);
      return TIRX_OK;
    }
  }
  int32_t status = encode(kernel, map, spec, out);
  if (!status) {
    uint32_t place = cache->next++ % TIRX_KEPT_MAPS;
    cache->specs[place] = *spec;
    cache->maps[place] = *out;
    if (cache->count < TIRX_KEPT_MAPS) ++cache->count;
  }
  unlock(&cache->lock);
  return status;
}

/* `CUtensorMapDataType` of a tensor's elements; -1 where maps have none of them. */
static int data_type_of(DLDataType dtype) {
  static const struct {
    uint8_t code, bits, number;
  } types[] = {{kDLInt, 8, 0},    {kDLInt, 16, 1},   {kDLInt, 32, 3},   {kDLInt, 64, 5},   {kDLUInt, 8, 0},
               {kDLUInt, 16, 1},  {kDLUInt, 32, 2},  {kDLUInt, 64, 4},  {kDLFloat, 16, 6}, {kDLFloat, 32, 7},
               {kDLFloat, 64, 8}, {kDLBfloat, 16, 9}, {kDLBool, 8, 0},  {17, 4, 14}};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (types[i].code == dtype.code && types[i].bits == dtype.bits && dtype.lanes == 1) return types[i].number;
  /* The floats of 8 bits, which DLPack numbers from 7 on. */
  return dtype.bits == 8 && dtype.lanes == 1 && dtype.code >= 7 && dtype.code <= 14 ? 0 : -1;
}

/* The driver's number of a mode that is given in bytes: 0, and then `least` and its doubles; 255 for another one. */
static uint32_t mode_of(uint32_t bytes, uint32_t least, uint32_t most) {
  uint32_t number = 0;
  if (!bytes) return 0;
  for (uint32_t known = least; known <= most; known *= 2) {
    ++number;
    if (known == bytes) return number;
  }
  return 255;
}

#define WRONG_MAP(...) return fail(TIRX_ERROR_ARGUMENT, "ValueError", "tensor map: " __VA_ARGS__)

TIRX_API int32_t tirx_tensor_map_of(const DLTensor* tensor, const tirx_tensor_map_options* options,
                                    tirx_tensor_map* map) {
  tirx_tensor_map_spec spec;
  int64_t compact = 1;
  memset(&spec, 0, sizeof spec);
  if (!tensor || !options || !map) WRONG_MAP("an argument is NULL");
  const int32_t rank = tensor->ndim;
  const int data_type = options->data_type ? (int)options->data_type : data_type_of(tensor->dtype);
  if (!tensor->data) WRONG_MAP("the data of its tensor is NULL");
  if (!tensor->shape) WRONG_MAP("the shape of its tensor is NULL");
  if (rank < 1 || rank > 5) WRONG_MAP("its tensor has %d dimensions, expected 1 to 5", (int)rank);
  if (data_type < 0)
    WRONG_MAP("there are none of elements with DLPack's code %d and %d bits", tensor->dtype.code, tensor->dtype.bits);
  for (int32_t i = rank - 1; i >= 0; --i) {
    const int32_t d = rank - 1 - i;
    const int64_t stride = tensor->strides ? tensor->strides[i] : compact;
    if (tensor->shape[i] < 1)
      WRONG_MAP("shape[%d] is %lld: a tensor without elements has none", (int)i, (long long)tensor->shape[i]);
    if (stride < 0 || (d == 0 && stride != 1 && tensor->shape[i] != 1))
      WRONG_MAP("strides[%d] is %lld, expected %s", (int)i, (long long)stride, d ? "one that is not negative" : "1");
    spec.dims[d] = (uint64_t)tensor->shape[i];
    if (d) spec.strides[d - 1] = (uint64_t)stride * tensor->dtype.bits / 8;
    spec.box_dims[d] = options->box[i];
    spec.element_strides[d] = options->steps[i] ? options->steps[i] : 1;
    compact *= tensor->shape[i];
  }
  spec.rank = (uint32_t)rank;
  spec.data_type = (uint32_t)data_type;
  spec.address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  spec.swizzle = (uint32_t)options->swizzle;
  spec.l2_promotion = mode_of(options->l2_promotion, 64, 256);
  spec.interleave = mode_of(options->interleave, 16, 32);
  spec.oob_fill = options->nan_fill;
  if (spec.swizzle > 3) WRONG_MAP("swizzle is no number of a mode, which are 0 to 3 (none, 32, 64 and 128 bytes)");
  if (spec.l2_promotion == 255) WRONG_MAP("l2_promotion is %u, expected 0, 64, 128 or 256", options->l2_promotion);
  if (spec.interleave == 255) WRONG_MAP("interleave is %u, expected 0, 16 or 32", options->interleave);
  TIRX_TRY(enter_device(NULL, tensor->device.device_id));
  return encode(NULL, "of a tensor", &spec, map);
}

/* ---- TVM's FFI ---- */

int32_t tirx_ffi_result(int32_t status, void* result) {
  if (status == TIRX_OK) {
    if (result) {
      tirx_any none = {0, 0, {0}};
      memcpy(result, &none, sizeof none);
    }
    return 0;
  }
  void (*raise)(const char*, const char*);
  *(void**)&raise = symbol_of_process("TVMFFIErrorSetRaisedFromCStr");
  if (raise) raise(last_kind, last_error);
  return -1;
}

/* `tirx_tensor_map(place, tensor, swizzle, l2_promotion, interleave, nan_fill, data_type, box…)` for callers through the FFI:
 * `tirx_tensor_map_of` with the map at `place`, the address of 128 bytes, aligned to 64. */
TIRX_API int32_t __tvm_ffi_tirx_tensor_map(void* self, const void* args, int32_t num_args, void* result) {
  enum { BEFORE_BOX = 7 };
  const tirx_any* given = (const tirx_any*)args;
  const DLTensor* tensor = NULL;
  tirx_tensor_map_options options;
  int numbers = 1;
  (void)self;
  memset(&options, 0, sizeof options);
  for (int32_t i = 2; i < num_args; ++i) {
    numbers &= given[i].type_index == 1 || given[i].type_index == 2;
    if (i >= BEFORE_BOX && i < BEFORE_BOX + 5) options.box[i - BEFORE_BOX] = (uint32_t)given[i].v.v_int64;
  }
  if (num_args > BEFORE_BOX && given[0].type_index == 4 && numbers) {
    tensor = tensor_of(&given[1]);
  }
  if (!tensor)
    return tirx_ffi_result(fail(TIRX_ERROR_ARGUMENT, "TypeError",
                                "tirx_tensor_map takes an address, a tensor, 5 numbers and the extents of a box"),
                           result);
  if (num_args - BEFORE_BOX != tensor->ndim)
    return tirx_ffi_result(fail(TIRX_ERROR_ARGUMENT, "ValueError", "tensor map: the box has %d extents, its tensor %d",
                                (int)num_args - BEFORE_BOX, (int)tensor->ndim),
                           result);
  options.swizzle = (tirx_swizzle)mode_of((uint32_t)given[2].v.v_int64, 32, 128);
  options.l2_promotion = (uint32_t)given[3].v.v_int64;
  options.interleave = (uint32_t)given[4].v.v_int64;
  options.nan_fill = given[5].v.v_int64 != 0;
  options.data_type = (uint32_t)given[6].v.v_int64;
  return tirx_ffi_result(tirx_tensor_map_of(tensor, &options, (tirx_tensor_map*)given[0].v.v_ptr), result);
}

/* ---- 16-bit floats ---- */

/* A value rounded to a format with this mantissa, least exponent and bias, to nearest, ties to even. */
static uint16_t to_half(double value, int mantissa, int exponent_bits) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = (uint16_t)(bits >> 63 << 15);
  const uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << mantissa);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1u << (mantissa - 1));
  value = fabs(value);
  if (isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent;
  frexp(value, &exponent);
  /* value is 1.x times 2^(exponent - 1); below the least exponent the steps stay as they are. */
  int step = (exponent - 1 < 1 - bias ? 1 - bias : exponent - 1) - mantissa;
  double steps = nearbyint(ldexp(value, -step));
  uint64_t whole = (uint64_t)steps;
  uint64_t encoded = (uint64_t)(step + mantissa + bias - 1) << mantissa;
  encoded += whole;
  if (encoded >= infinity) return sign | infinity;
  return (uint16_t)(sign | encoded);
}

static double from_half(uint16_t bits, int mantissa, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  double value;
  if (exponent == (1 << exponent_bits) - 1) value = fraction ? (double)NAN : (double)INFINITY;
  else if (!exponent) value = ldexp(fraction, 1 - bias - mantissa);
  else value = ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits >> 15 ? -value : value;
}

uint16_t tirx_f16(double value) { return to_half(value, 10, 5); }
uint16_t tirx_bf16(double value) { return to_half(value, 7, 8); }
double tirx_f16_to_double(uint16_t bits) { return from_half(bits, 10, 5); }
double tirx_bf16_to_double(uint16_t bits) { return from_half(bits, 7, 8); }
