// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
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
  // Loads the MPI plugin from the program's library folder. Errors: kUnavailable.
  static Result<std::unique_ptr<Crew>> Load();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // Waits for all other ranks, once they were joined.
  ~Crew();

  // Joins the others; call it before all below, in the same thread. Errors: kUnavailable.
  Status Join();
  // A process among all of the job.
  struct Place {
    int rank = 0;
    int size = 1;

    bool operator==(const Place&) const = default;
  };
  // This one's, as the launcher tells it before Join; empty if it doesn't.
  static std::optional<Place> ExpectedPlace();
  Place place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }

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
  bool joined_ = false;
  Place place_;
};

}  // namespace gpusonde::analyze
