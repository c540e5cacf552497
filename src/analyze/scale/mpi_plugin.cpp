// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/mpi_plugin.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// libgpusonde-mpi.so
namespace {

constexpr size_t kMaxMessage = size_t{1} << 30;  // MPI counts by int
constexpr int kTag = 1;

int Neighbour(int rank) { return rank < 0 ? MPI_PROC_NULL : rank; }

// Like MPI_Waitall. Open MPI polls while it waits, in a loop that takes a core which this rank's threads,
// other ranks or other programs could use: so this sleeps once a wait is longer than passing on a message
// takes, and longer the longer it has waited.
int Wait(MPI_Request* requests, int count) {
  constexpr int kPolls = 1'000;  // 0.2 to 1 ms, about as long as the next message takes to build
  constexpr useconds_t kFirstSleepUs = 50, kMaxSleepUs = 1'000;
  useconds_t sleep_us = kFirstSleepUs;
  for (int polls = 0;; ++polls) {
    int done = 0;
    const int status = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (status != MPI_SUCCESS || done != 0) return status;
    if (polls < kPolls) continue;
    ::usleep(sleep_us);
    sleep_us = std::min(kMaxSleepUs, sleep_us + sleep_us / 8);
  }
}

// Like MPI_Sendrecv, of bytes; ranks below 0 neither get nor send any.
int SendAndReceive(const void* out, int out_size, int to, void* in, int in_size, int from) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int status = MPI_Irecv(in, in_size, MPI_BYTE, Neighbour(from), kTag, MPI_COMM_WORLD, &requests[0]);
  if (status == MPI_SUCCESS)
    status = MPI_Isend(out, out_size, MPI_BYTE, Neighbour(to), kTag, MPI_COMM_WORLD, &requests[1]);
  return status == MPI_SUCCESS ? Wait(requests, 2) : status;
}

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
  int status = SendAndReceive(&outgoing, sizeof outgoing, to, &incoming, sizeof incoming, from);
  if (status != MPI_SUCCESS) return status;
  if (to < 0) outgoing = 0;
  auto* into = static_cast<char*>(incoming > 0 ? std::malloc(incoming) : nullptr);
  if (incoming > 0 && into == nullptr) return MPI_ERR_NO_MEM;
  const auto* source = static_cast<const char*>(bytes);
  for (uint64_t sent = 0, got = 0; sent < outgoing || got < incoming;) {
    const auto send = static_cast<int>(std::min<uint64_t>(outgoing - sent, kMaxMessage));
    const auto receive = static_cast<int>(std::min<uint64_t>(incoming - got, kMaxMessage));
    status =
        SendAndReceive(source + sent, send, send > 0 ? to : -1, into + got, receive, receive > 0 ? from : -1);
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

// Rank 0 has work to do when the others have none left: they wait for it here, as MPI_Finalize polls.
int Leave() {
  MPI_Request all_leave = MPI_REQUEST_NULL;
  const int status = MPI_Ibarrier(MPI_COMM_WORLD, &all_leave);
  if (status == MPI_SUCCESS) Wait(&all_leave, 1);
  return MPI_Finalize();
}

void Abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

constexpr GpusondeMpi kFunctions = {.join = Join, .exchange = Exchange, .leave = Leave, .abort = Abort};

}  // namespace

__attribute__((visibility("default"))) const GpusondeMpi* gpusonde_mpi() { return &kFunctions; }
