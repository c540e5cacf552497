// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/scale/mpi_plugin.h"
#include "base/result.h"

namespace gpusonde::analyze {

// The processes of an MPI job that work together. One per process; not thread-safe.
class Crew {
 public:
  // Whether a launcher (mpirun and its like) started this process.
  static bool IsLaunched();
  // Loads the MPI plugin, which lies beside the program's libraries, and joins the others. Errors:
  // kUnavailable.
  static Result<std::unique_ptr<Crew>> Join();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // Waits for the others.
  ~Crew();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Sends to one and receives from another; −1: nobody. Whoever is sent to must receive at the same time.
  Result<std::string> Exchange(int to, std::string_view bytes, int from) const;
  // What each has to say, by rank; everyone calls it.
  Result<std::vector<std::string>> GatherAll(std::string_view own) const;
  // The same, but only rank 0 learns it; the others get nothing.
  Result<std::vector<std::string>> Gather(std::string_view own) const;
  // Ends all processes of the job, because this one can't go on.
  [[noreturn]] void Abort() const;

 private:
  explicit Crew(const GpusondeMpi* mpi) : mpi_(mpi) {}
  const GpusondeMpi* mpi_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace gpusonde::analyze
