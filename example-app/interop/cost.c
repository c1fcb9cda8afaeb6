/* What a call of a C launcher costs on the host: nanoseconds until it returns, the kernel being enqueued. Needs a GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "example_kernels.h"

/* Launches in a row before the queue is drained, so that the queue is never full. */
#define BATCH 512
#define ROUNDS 201

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(void) {
  static float values[256];
  static double rounds[ROUNDS];
  void *pa, *pb;
  int64_t extent = 256;
  if (tirx_is_simulator()) {
    fprintf(stderr, "the simulator's launches are not what is measured here\n");
    return 1;
  }
  if (tirx_alloc(0, sizeof values, &pa) || tirx_alloc(0, sizeof values, &pb) ||
      tirx_copy_to_device(0, pa, values, sizeof values)) {
    fprintf(stderr, "%s\n", tirx_last_error());
    return 1;
  }
  DLTensor a = {pa, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &extent, NULL, 0};
  DLTensor b = {pb, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &extent, NULL, 0};
  for (int round = 0; round < ROUNDS; ++round) {
    const double start = now();
    for (int i = 0; i < BATCH; ++i) {
      if (scale(&a, &b, NULL)) {
        fprintf(stderr, "%s\n", tirx_last_error());
        return 1;
      }
    }
    rounds[round] = (now() - start) / BATCH;
    tirx_synchronize(0, NULL);
  }
  qsort(rounds, ROUNDS, sizeof *rounds, ascending);
  printf("C launcher: %.0f ns per call (fastest %.0f)\n", rounds[ROUNDS / 2], rounds[0]);
  tirx_free(0, pa);
  tirx_free(0, pb);
  return 0;
}
