/* Kernels from C: C = A + B, and a shape that does not fit. */
#include <stdio.h>
#include <string.h>

#include "example_kernels.h"

#define N 256

static int check(int32_t status, const char* what) {
  if (status != TIRX_OK) fprintf(stderr, "%s: %s\n", what, tirx_last_error());
  return status;
}

/* A compact tensor of float32 on device 0. */
static DLTensor tensor(void* data, int64_t* extent) {
  DLTensor made = {data, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, extent, NULL, 0};
  return made;
}

int main(void) {
  float a[N], b[N], c[N];
  void *pa, *pb, *pc;
  int64_t extent = N, wrong = N / 2;
  for (int i = 0; i < N; ++i) {
    a[i] = (float)i;
    b[i] = 0.5f;
  }
  if (check(tirx_alloc(0, sizeof a, &pa), "alloc") || check(tirx_alloc(0, sizeof b, &pb), "alloc") ||
      check(tirx_alloc(0, sizeof c, &pc), "alloc") || check(tirx_copy_to_device(0, pa, a, sizeof a), "copy") ||
      check(tirx_copy_to_device(0, pb, b, sizeof b), "copy"))
    return 1;
  DLTensor ta = tensor(pa, &extent), tb = tensor(pb, &extent), tc = tensor(pc, &extent);
  if (check(add_n256(&ta, &tb, &tc, NULL), "add") || check(tirx_copy_to_host(0, c, pc, sizeof c), "copy")) return 1;
  for (int i = 0; i < N; ++i) {
    if (c[i] != a[i] + b[i]) {
      fprintf(stderr, "c[%d] is %g\n", i, c[i]);
      return 1;
    }
  }
  DLTensor half = tensor(pb, &wrong);
  if (add_n256(&ta, &half, &tc, NULL) != TIRX_ERROR_ARGUMENT) return 1;
  printf("%s\n", tirx_last_error());
  printf("c[255] = %g, on %s\n", c[N - 1], tirx_is_simulator() ? "the simulator" : "a GPU");
  tirx_free(0, pa);
  tirx_free(0, pb);
  tirx_free(0, pc);
  return 0;
}
