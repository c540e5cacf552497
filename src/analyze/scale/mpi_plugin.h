// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// The interface of libgpusonde-mpi.so: the few MPI calls we need, in C, so that gpusonde itself doesn't
// depend on MPI. All return 0 or an MPI error code.

#ifdef __cplusplus
extern "C" {
#endif

struct GpusondeMpi {
  // Joins the job.
  int (*join)(int* rank, int* size);
  // Sends bytes to one rank and receives from another at the same time; either may be −1: none. The caller
  // frees the received bytes with free(3); null with a size of 0.
  int (*exchange)(int to, const void* bytes, size_t size, int from, void** received, size_t* received_size);
  // Waits for all ranks and leaves the job.
  int (*leave)();
  // Ends all processes of the job at once.
  void (*abort)(int status);
};

// The only exported symbol of the library.
const struct GpusondeMpi* gpusonde_mpi();  // NOLINT(readability-identifier-naming): as C names are

#ifdef __cplusplus
}
#endif
