/* A CUDA driver without a GPU, for tests of what programs ask of a driver: memory is the host's, launches do nothing but are
 * counted, and the attributes of the last one are kept. Copies are made at once, or recorded by a capture and made at each launch
 * of the graph; those from and to memory that is not allocated are counted. Its devices are H100s (compute capability 9.0). */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_HANDLE = 400, LAUNCH_FAILED = 719,
       CAPTURE_UNSUPPORTED = 900 };

/* What tests look at. */
uint64_t stub_launches, stub_pool_allocations, stub_allocations, stub_synchronizations, stub_trims;
uint64_t stub_frees, stub_stray_copies, stub_graph_launches, stub_graph_kernels;
void *stub_free_stream, *stub_read_stream, *stub_graph_stream; /* Of the last one. */
int stub_devices = 1;
int stub_fails; /* The result of the next launches. */
uint32_t stub_attributes, stub_attribute_ids[16];
uint32_t stub_attribute_values[16][4];

static int contexts[8];
#define context contexts[0]

int cuInit(unsigned flags) { return flags == 0 ? SUCCESS : INVALID_VALUE; }
int cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
int cuDeviceGetCount(int *count) { *count = stub_devices; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < stub_devices ? SUCCESS : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    strncpy(name, "stub H100", (size_t)length);
    return SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 13: *value = 1980000; break;  /* clock */
    case 16: *value = 132; break;      /* multiprocessors */
    case 36: *value = 2619000; break;  /* clock of the memory */
    case 37: *value = 5120; break;     /* its bus */
    case 38: *value = 52428800; break; /* L2 cache */
    case 75: *value = 9; break;        /* compute capability */
    case 76: *value = 0; break;
    case 97: *value = 232448; break;   /* shared memory of a block */
    case 115: *value = 1; break;       /* memory pools */
    default: *value = 1;
    }
    return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **made, int device) { *made = &contexts[device]; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return SUCCESS; }
int cuCtxGetCurrent(void **current) { *current = &context; return SUCCESS; }
int cuCtxSetCurrent(void *wanted) { (void)wanted; return SUCCESS; }
int cuCtxSynchronize(void) { return SUCCESS; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = malloc(1); return SUCCESS; }
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(stream, flags);
}
int cuStreamDestroy_v2(void *stream) { free(stream); return SUCCESS; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream, (void)event, (void)flags; return SUCCESS; }

/* Appends a line to the file that STUB_LOG names. */
static void note(const char *what, size_t bytes) {
    const char *name = getenv("STUB_LOG");
    FILE *file = name ? fopen(name, "a") : NULL;
    if (!file) return;
    fprintf(file, bytes ? "%s %zu\n" : "%s\n", what, bytes);
    fclose(file);
}

static int clock_of_events;
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = malloc(sizeof(int)); return SUCCESS; }
int cuEventRecord(void *event, void *stream) {
    (void)stream;
    note("event", 0);
    *(int *)event = clock_of_events++;
    return SUCCESS;
}
int cuEventSynchronize(void *event) { (void)event; return SUCCESS; }
int cuEventQuery(void *event) { (void)event; return SUCCESS; }
int cuEventDestroy_v2(void *event) { free(event); return SUCCESS; }
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    *milliseconds = 3.0f * (float)(*(int *)end - *(int *)start);
    return SUCCESS;
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) { return cuEventElapsedTime_v2(milliseconds, start, end); }

/* ---- Graphs: one capture at a time ---- */

struct node { int kind; void *to; const void *from; size_t bytes; unsigned char byte; };
enum { KERNEL, COPY, SET };
struct graph { struct node nodes[64]; size_t count; };
static struct graph *capture;
static void *captured_stream;

int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)mode;
    capture = calloc(1, sizeof *capture);
    captured_stream = stream;
    return SUCCESS;
}
int cuStreamEndCapture(void *stream, void **graph) {
    if (!capture || stream != captured_stream) return INVALID_VALUE;
    *graph = capture;
    capture = NULL;
    captured_stream = NULL;
    return SUCCESS;
}

/* ---- Memory ---- */

static struct { char *start; size_t bytes; } live[1024];
static size_t most_live;

static int is_live(const void *place, size_t bytes) {
    for (size_t i = 0; i < most_live; i++)
        if (live[i].start && (char *)place >= live[i].start && (char *)place + bytes <= live[i].start + live[i].bytes) return 1;
    return 0;
}
static void *allocate(size_t bytes) {
    char *made = aligned_alloc(1024, (bytes + 1023) / 1024 * 1024);
    size_t i = 0;
    while (i < most_live && live[i].start) i++;
    if (!made || i == 1024) return NULL;
    if (i == most_live) most_live++;
    live[i].start = made;
    live[i].bytes = bytes;
    return made;
}
/* Freed memory keeps its address to itself and other values, so that its users are found. */
static int release(void *start) {
    for (size_t i = 0; i < most_live; i++) {
        if (live[i].start != start) continue;
        memset(start, 0xdd, live[i].bytes);
        live[i].start = NULL;
        return SUCCESS;
    }
    return INVALID_VALUE;
}

static int run(struct node node) {
    switch (node.kind) {
    case KERNEL: stub_graph_kernels++; return SUCCESS;
    case COPY: memmove(node.to, node.from, node.bytes); return SUCCESS;
    default: memset(node.to, node.byte, node.bytes); return SUCCESS;
    }
}
/* Does something on a stream: now, or when a graph is launched. */
static int queue(struct node node, const void *stream) {
    if (capture && stream == captured_stream) {
        if (capture->count == 64) return INVALID_VALUE;
        capture->nodes[capture->count++] = node;
        return SUCCESS;
    }
    return run(node);
}
static void check(const void *place, size_t bytes) { stub_stray_copies += !is_live(place, bytes); }

int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
    (void)stream;
    if (bytes > (1ull << 40)) return OUT_OF_MEMORY;
    stub_pool_allocations++;
    *address = (uint64_t)(uintptr_t)allocate(bytes);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFreeAsync(uint64_t address, void *stream) {
    stub_frees++;
    stub_free_stream = stream;
    return release((void *)(uintptr_t)address);
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) { stub_allocations++; return cuMemAllocAsync(address, bytes, 0); }
int cuMemFree_v2(uint64_t address) { return cuMemFreeAsync(address, 0); }
int cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
    (void)flags;
    *start = allocate(bytes);
    return *start ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFreeHost(void *start) { return release(start); }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    struct node node = {COPY, (void *)(uintptr_t)to, from, bytes, 0};
    return queue(node, stream);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    struct node node = {COPY, to, (void *)(uintptr_t)from, bytes, 0};
    stub_read_stream = stream;
    return queue(node, stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    struct node node = {COPY, (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, 0};
    return queue(node, stream);
}
int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes, void *stream) {
    (void)to_context, (void)from_context;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream) {
    struct node node = {SET, (void *)(uintptr_t)to, NULL, bytes, byte};
    note("memset", bytes);
    return queue(node, stream);
}

int cuGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags) {
    (void)flags;
    *made = malloc(sizeof(struct graph));
    memcpy(*made, graph, sizeof(struct graph));
    return SUCCESS;
}
int cuGraphLaunch(void *made, void *stream) {
    struct graph *graph = made;
    stub_graph_launches++;
    stub_graph_stream = stream;
    for (size_t i = 0; i < graph->count; i++) {
        struct node *node = &graph->nodes[i];
        if (node->kind != KERNEL) check(node->to, node->bytes);
        if (node->kind == COPY) check(node->from, node->bytes);
        run(*node);
    }
    return SUCCESS;
}
int cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
    (void)nodes;
    *count = ((struct graph *)graph)->count;
    return SUCCESS;
}
int cuGraphExecDestroy(void *made) { free(made); return SUCCESS; }
int cuGraphDestroy(void *graph) { free(graph); return SUCCESS; }
int cuGraphExecUpdate_v2(void *made, void *graph, void *info) {
    (void)info;
    memcpy(made, graph, sizeof(struct graph));
    return SUCCESS;
}

/* A capture ends where the program waits for it. */
int cuStreamSynchronize(void *stream) {
    if (capture && stream == captured_stream) return CAPTURE_UNSUPPORTED;
    stub_synchronizations++;
    return SUCCESS;
}
int cuStreamQuery(void *stream) { return capture && stream == captured_stream ? CAPTURE_UNSUPPORTED : SUCCESS; }

int cuMemGetInfo_v2(size_t *left, size_t *all) { *left = 1u << 30; *all = 1u << 31; return SUCCESS; }
int cuDeviceGetDefaultMemPool(void **pool, int device) { (void)device; *pool = &context; return SUCCESS; }
int cuDeviceGetMemPool(void **pool, int device) { return cuDeviceGetDefaultMemPool(pool, device); }
int cuMemPoolTrimTo(void *pool, size_t keep) { (void)pool, (void)keep; stub_trims++; return SUCCESS; }

int cuModuleLoadData(void **module, const void *image) { *module = (void *)image; return image ? SUCCESS : INVALID_VALUE; }
int cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; *function = strdup(name); return SUCCESS; }
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)function;
    /* Most threads; the version of PTX; dynamic shared memory without being asked for. */
    *value = attribute == 0 ? 1024 : attribute == 5 ? 90 : attribute == 8 ? 49152 : 0;
    return SUCCESS;
}
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function, (void)attribute, (void)value; return SUCCESS; }
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *dims, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
    (void)type, (void)rank, (void)address, (void)dims, (void)strides, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    memset(map, 0, 128);
    return SUCCESS;
}

struct attribute { uint32_t id; char pad[4]; uint32_t value[16]; };
struct config { unsigned grid[3], block[3], shared; void *stream; struct attribute *attributes; unsigned count; };

int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra) {
    struct node node = {KERNEL, NULL, NULL, 0, 0};
    (void)function, (void)params, (void)extra;
    note("launch", 0);
    if (capture && config->stream == captured_stream) return queue(node, config->stream);
    stub_launches++;
    stub_attributes = config->count;
    for (unsigned i = 0; i < config->count && i < 16; i++) {
        stub_attribute_ids[i] = config->attributes[i].id;
        memcpy(stub_attribute_values[i], config->attributes[i].value, sizeof stub_attribute_values[i]);
    }
    return stub_fails;
}

int cuGetErrorName(int error, const char **name) {
    switch (error) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_UNKNOWN";
    }
    return SUCCESS;
}
int cuGetErrorString(int error, const char **text) { (void)error; *text = "told by the stub"; return SUCCESS; }
