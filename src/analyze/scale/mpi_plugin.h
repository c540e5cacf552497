// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// What libgpusonde-mpi.so offers: the few calls of MPI that are needed, behind an interface in C, so that
// gpusonde itself needs no MPI. All return 0, or an error code of MPI's.

#ifdef __cplusplus
extern "C" {
#endif

struct GpusondeMpi {
  // Joins the others of the job.
  int (*join)(int* rank, int* size);
  // Sends bytes to one and receives from another, at the same time; either may be −1: nobody. What is
  // received is the caller's to give back by free(3); null with a size of 0.
  int (*exchange)(int to, const void* bytes, size_t size, int from, void** received, size_t* received_size);
  // Waits for all, and leaves.
  int (*leave)();
  // Ends all processes of the job at once.
  void (*abort)(int status);
};

// The only symbol of the library.
const struct GpusondeMpi* gpusonde_mpi();  // NOLINT(readability-identifier-naming): as C names are

#ifdef __cplusplus
}
#endif
