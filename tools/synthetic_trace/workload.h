// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

// A synthetic training job on several GPUs: steps of kernels on one stream, concurrent copies on another, and
// a collective at the end that all ranks leave together. Durations are drawn independently from a log-normal
// distribution for each kernel and launch shape, so that only planted effects can be found.
namespace gpusonde::synthetic {

struct Plan {
  int ranks = 1;
  int64_t kernels = 10'000;  // in all
  uint64_t seed = 1;
  double noise = 0.05;          // standard deviation of a kernel's log duration
  double copy_effect = 1;       // factor on kernels that a copy runs beside
  int slow_rank = -1;           // whose kernels take…
  double slow_factor = 1;       // … this much longer
  int slow_window_rank = -1;    // whose kernels take…
  double window_factor = 1;     // … this much longer between 40 % and 50 % of the steps
  int late_rank = -1;           // whose host comes to the collective…
  int64_t late_ns = 0;          // … this much later
  int64_t clock_offset_ns = 0;  // of each rank's clock from the previous rank's (in formats with clocks)
  double variable_factor = 1;   // on every eighth run of the kernel named kVariableKernel
};

struct Call {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t correlation = 0;
  bool is_copy = false;
};

struct Event {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t correlation = 0;
  int kernel = -1;  // index of KernelNames(); −1: a copy
  int stream = 0;
  int grid = 1;
  int64_t bytes = 0;  // of copies, which are pinned, host to device
};

// The work of one rank in one step, both sorted by start.
struct Step {
  std::vector<Call> calls;
  std::vector<Event> events;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

inline constexpr int kVariableKernel = 3;
// The last one is the collective.
const std::vector<std::string>& KernelNames();

class Workload {
 public:
  explicit Workload(const Plan& plan);
  int64_t steps() const { return steps_; }
  // The next step of all ranks.
  std::vector<Step> Next();

 private:
  struct Rank {
    std::mt19937_64 random;
    int64_t host_ns = 0;
    int64_t gpu_ns = 0;
    int64_t copies_ns = 0;
    int64_t correlation = 1;
    std::vector<int64_t> starts;  // of the latest kernels, a ring
  };

  void RunKernels(int rank, Step& step);
  int64_t Launch(Rank& rank, Step& step, bool is_copy);
  double Factor(int rank) const;

  Plan plan_;
  int64_t steps_;
  int64_t step_ = 0;
  std::vector<Rank> ranks_;
};

}  // namespace gpusonde::synthetic
