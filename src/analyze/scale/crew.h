// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/scale/mpi_plugin.h"
#include "base/result.h"

namespace gpusonde::analyze {

// The cooperating processes of an MPI job. One per process; not thread-safe.
class Crew {
 public:
  // Whether a launcher (such as mpirun) started this process.
  static bool IsLaunched();
  // Loads the MPI plugin from the program's library folder and joins the others. Errors: kUnavailable.
  static Result<std::unique_ptr<Crew>> Join();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // Waits for all other ranks.
  ~Crew();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Sends to one rank and receives from another; −1: none. The receiver must call Exchange at the same time.
  Result<std::string> Exchange(int to, std::string_view bytes, int from) const;
  // Gathers a value of each rank, by rank; all ranks must call it.
  Result<std::vector<std::string>> GatherAll(std::string_view own) const;
  // Like GatherAll, but only rank 0 gets the values; the others get nothing.
  Result<std::vector<std::string>> Gather(std::string_view own) const;
  // Ends all processes of the job, because this one can't continue.
  [[noreturn]] void Abort() const;

 private:
  explicit Crew(const GpusondeMpi* mpi) : mpi_(mpi) {}
  const GpusondeMpi* mpi_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace gpusonde::analyze
