/* The common part of every library of tirx kernels: errors, devices and memory.
 *
 * Functions return a status: TIRX_OK, or another value of `tirx_status`; `tirx_last_error` then describes the error of the
 * calling thread. The CUDA driver is opened at run time: no CUDA library is linked. Every function may be called from any
 * thread. */
#ifndef TIRX_C_H
#define TIRX_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TIRX_API
#if defined(_WIN32)
#define TIRX_API __declspec(dllexport)
#elif defined(__GNUC__)
#define TIRX_API __attribute__((visibility("default")))
#else
#define TIRX_API
#endif
#endif

/* Tensors are DLPack's (https://dmlc.github.io/dlpack). Where its header is included first, these are its types. */
#ifndef DLPACK_VERSION
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
/* Device types, with DLPack's numbers. */
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
/* A device. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;
/* Element type codes, with DLPack's numbers. */
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;
/* The type of an element. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
/* A tensor: memory, and how it is laid out. `strides` counts elements; NULL stands for a compact row-major tensor. */
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
#endif
#endif

/* A stream: NULL is the default one. Where cuda_runtime.h is included first, this is its type. */
#if defined(__CUDA_RUNTIME_H__) || defined(TIRX_USE_CUDART)
typedef cudaStream_t tirx_stream;
#else
typedef struct CUstream_st* tirx_stream;
#endif

/* Status of a call. */
typedef enum {
  TIRX_OK = 0,
  /* An argument does not fit the kernel. */
  TIRX_ERROR_ARGUMENT = 1,
  /* A check of the kernel that concerns more than one argument failed. */
  TIRX_ERROR_CHECK = 2,
  /* A launch that no device accepts. */
  TIRX_ERROR_LAUNCH = 3,
  /* The driver is missing, or a call to it failed. */
  TIRX_ERROR_DRIVER = 4,
  /* The library has no code for the device. */
  TIRX_ERROR_NO_CODE = 5
} tirx_status;

/* A tensor map, as `cuTensorMapEncodeTiled` makes it: 128 bytes, aligned to 64. */
#if defined(__cplusplus)
struct alignas(64) tirx_tensor_map {
  uint64_t opaque[16];
};
#else
typedef struct {
  _Alignas(64) uint64_t opaque[16];
} tirx_tensor_map;
#endif

/* How a copy permutes the 16-byte pieces of a box's rows in shared memory; the rows have at most so many bytes. */
typedef enum {
  TIRX_SWIZZLE_NONE = 0,
  TIRX_SWIZZLE_32B = 1,
  TIRX_SWIZZLE_64B = 2,
  TIRX_SWIZZLE_128B = 3
} tirx_swizzle;

/* What a tensor map says beside its tensor. Zeros are the defaults of all but `box`. Lists are in the order of the tensor's
 * shape: the innermost dimension is the last. */
typedef struct {
  /* Elements that one copy moves along each dimension. */
  uint32_t box[5];
  /* Steps in elements along each dimension; zeros stand for ones. */
  uint32_t steps[5];
  tirx_swizzle swizzle;
  /* Bytes that are fetched into the L2 cache together: 0, 64, 128 or 256. */
  uint32_t l2_promotion;
  /* Interleaving in bytes: 0, 16 or 32. */
  uint32_t interleave;
  /* What lies outside of the tensor is filled with NaN instead of zeros. */
  bool nan_fill;
  /* Another CUtensorMapDataType than that of the elements: 11 (tfloat32), 13 and 14 (forms of 4-bit elements); 0 stands for theirs. */
  uint32_t data_type;
} tirx_tensor_map_options;

/* Encodes the map of a tensor, for a kernel that takes one. The map has the tensor's address: it is valid as long as the memory. */
TIRX_API int32_t tirx_tensor_map_of(const DLTensor* tensor, const tirx_tensor_map_options* options,
                                    tirx_tensor_map* map);

/* The message of the last failed call of this thread. Valid until the next failed call of this thread. */
TIRX_API const char* tirx_last_error(void);

/* Whether the driver that was opened is the simulator (TIRX_DRIVER names its library). */
TIRX_API bool tirx_is_simulator(void);

/* Device memory, for programs that do not use the CUDA runtime. `device` counts from 0. */
TIRX_API int32_t tirx_alloc(int32_t device, size_t bytes, void** address);
/* Frees it. */
TIRX_API int32_t tirx_free(int32_t device, void* address);
/* Copies to device memory; returns when it is done. */
TIRX_API int32_t tirx_copy_to_device(int32_t device, void* address, const void* source, size_t bytes);
/* Copies from device memory, after all work of the device is done. */
TIRX_API int32_t tirx_copy_to_host(int32_t device, void* destination, const void* address, size_t bytes);
/* Waits for a stream of a device. */
TIRX_API int32_t tirx_synchronize(int32_t device, tirx_stream stream);

#ifdef __cplusplus
}
#endif

#endif
