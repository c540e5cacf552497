// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/mpi_plugin.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// libgpusonde-mpi.so
namespace {

constexpr size_t kMaxMessage = size_t{1} << 30;  // MPI counts by int
constexpr int kTag = 1;

int Neighbour(int rank) { return rank < 0 ? MPI_PROC_NULL : rank; }

int Join(int* rank, int* size) {
  int provided = 0;
  int status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (status == MPI_SUCCESS) status = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (status == MPI_SUCCESS) status = MPI_Comm_size(MPI_COMM_WORLD, size);
  return status;
}

int Exchange(int to, const void* bytes, size_t size, int from, void** received, size_t* received_size) {
  *received = nullptr;
  *received_size = 0;
  uint64_t outgoing = size;
  uint64_t incoming = 0;
  int status = MPI_Sendrecv(&outgoing, 1, MPI_UINT64_T, Neighbour(to), kTag, &incoming, 1, MPI_UINT64_T,
                            Neighbour(from), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (status != MPI_SUCCESS) return status;
  if (to < 0) outgoing = 0;
  auto* into = static_cast<char*>(incoming > 0 ? std::malloc(incoming) : nullptr);
  if (incoming > 0 && into == nullptr) return MPI_ERR_NO_MEM;
  const auto* source = static_cast<const char*>(bytes);
  for (uint64_t sent = 0, got = 0; sent < outgoing || got < incoming;) {
    const auto send = static_cast<int>(std::min<uint64_t>(outgoing - sent, kMaxMessage));
    const auto receive = static_cast<int>(std::min<uint64_t>(incoming - got, kMaxMessage));
    status =
        MPI_Sendrecv(source + sent, send, MPI_BYTE, send > 0 ? to : MPI_PROC_NULL, kTag, into + got, receive,
                     MPI_BYTE, receive > 0 ? from : MPI_PROC_NULL, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (status != MPI_SUCCESS) {
      std::free(into);
      return status;
    }
    sent += static_cast<uint64_t>(send);
    got += static_cast<uint64_t>(receive);
  }
  *received = into;
  *received_size = incoming;
  return MPI_SUCCESS;
}

int Leave() { return MPI_Finalize(); }

void Abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

constexpr GpusondeMpi kFunctions = {.join = Join, .exchange = Exchange, .leave = Leave, .abort = Abort};

}  // namespace

__attribute__((visibility("default"))) const GpusondeMpi* gpusonde_mpi() { return &kFunctions; }
