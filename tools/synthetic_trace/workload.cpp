// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <algorithm>
#include <cmath>

namespace gpusonde::synthetic {
namespace {

constexpr int kKinds = 20;
constexpr int kShapes = 2;
constexpr int kKernelsPerStep = 200;  // and one collective
constexpr int kCopyEvery = 10;
constexpr int64_t kCallNs = 3'000;
constexpr int64_t kHostGapNs = 1'500;
constexpr int64_t kLaunchNs = 2'000;  // from the call's end to the GPU, at least
constexpr int64_t kGpuGapNs = 1'200;
constexpr size_t kQueue = 64;  // launches that the host is ahead at most
constexpr int kComputeStream = 7;
constexpr int kCopyStream = 13;
constexpr int kCollectiveStream = 20;
constexpr int64_t kCollectiveNs = 80'000;

int64_t BaseNs(int kind, int shape) { return 4'000 + 1'700 * kind + 9'000 * shape; }

}  // namespace

const std::vector<std::string>& KernelNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (int i = 0; i < kKinds; ++i)
      made.push_back("void synthetic::kernel_" + std::to_string(i) + "<float, " +
                     std::to_string(32 << (i % 4)) + ">(float const*, float*, unsigned int)");
    made.emplace_back("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
    return made;
  }();
  return names;
}

Workload::Workload(const Plan& plan)
    : plan_(plan),
      steps_(std::max<int64_t>(1, plan.kernels / (int64_t{plan.ranks} * (kKernelsPerStep + 1)))),
      ranks_(static_cast<size_t>(plan.ranks)) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].random.seed(plan.seed * 1'000'003 + i);
    ranks_[i].starts.assign(kQueue, 0);
  }
}

double Workload::Factor(int rank) const {
  double factor = rank == plan_.slow_rank ? plan_.slow_factor : 1;
  const bool in_window = step_ * 10 >= steps_ * 4 && step_ * 10 < steps_ * 5;
  if (rank == plan_.slow_window_rank && in_window) factor *= plan_.window_factor;
  return factor;
}

int64_t Workload::Launch(Rank& rank, Step& step, bool is_copy) {
  // A full queue blocks the host until an earlier launch has started.
  rank.host_ns =
      std::max(rank.host_ns + kHostGapNs, rank.starts[static_cast<size_t>(rank.correlation) % kQueue]);
  step.calls.push_back({.start_ns = rank.host_ns,
                        .end_ns = rank.host_ns + kCallNs,
                        .correlation = rank.correlation,
                        .is_copy = is_copy});
  rank.host_ns += kCallNs;
  return rank.host_ns + kLaunchNs;
}

void Workload::RunKernels(int number, Step& step) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  std::normal_distribution<double> noise(0, plan_.noise);
  int64_t copy_end_ns = 0;
  for (int i = 0; i < kKernelsPerStep; ++i) {
    const int kind = static_cast<int>(rank.random() % kKinds);
    const int shape = static_cast<int>(rank.random() % kShapes);
    const bool beside_copy = i % kCopyEvery == 0;
    if (beside_copy) {
      const int64_t ready_ns = Launch(rank, step, true);
      const int64_t start_ns = std::max({ready_ns, rank.copies_ns, rank.gpu_ns});
      copy_end_ns = start_ns + 15'000;
      step.events.push_back({.start_ns = start_ns,
                             .end_ns = copy_end_ns,
                             .correlation = rank.correlation,
                             .stream = kCopyStream,
                             .bytes = 256 << 10});
      rank.starts[static_cast<size_t>(rank.correlation++) % kQueue] = start_ns;
      rank.copies_ns = copy_end_ns;
    }
    const int64_t ready_ns = Launch(rank, step, false);
    const int64_t start_ns = std::max(ready_ns, rank.gpu_ns + kGpuGapNs);
    double duration =
        static_cast<double>(BaseNs(kind, shape)) * std::exp(noise(rank.random)) * Factor(number);
    if (start_ns < copy_end_ns) duration *= plan_.copy_effect;
    if (kind == kVariableKernel && rank.random() % 8 == 0) duration *= plan_.variable_factor;
    rank.gpu_ns = start_ns + std::llround(duration);
    step.events.push_back({.start_ns = start_ns,
                           .end_ns = rank.gpu_ns,
                           .correlation = rank.correlation,
                           .kernel = kind,
                           .stream = kComputeStream,
                           .grid = shape + 1});
    rank.starts[static_cast<size_t>(rank.correlation++) % kQueue] = start_ns;
  }
}

std::vector<Step> Workload::Next() {
  std::vector<Step> steps(ranks_.size());
  int64_t last_ns = 0;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const auto number = static_cast<int>(i);
    steps[i].begin_ns = rank.host_ns;
    RunKernels(number, steps[i]);
    if (number == plan_.late_rank) rank.host_ns = std::max(rank.host_ns, rank.gpu_ns) + plan_.late_ns;
    const int64_t ready_ns = Launch(rank, steps[i], false);
    // Arrivals always differ a little.
    const int64_t start_ns =
        std::max(ready_ns, rank.gpu_ns + kGpuGapNs) + static_cast<int64_t>(rank.random() % 5'000);
    steps[i].events.push_back({.start_ns = start_ns,
                               .correlation = rank.correlation,
                               .kernel = kKinds,
                               .stream = kCollectiveStream,
                               .grid = 24});
    rank.starts[static_cast<size_t>(rank.correlation++) % kQueue] = start_ns;
    last_ns = std::max(last_ns, start_ns);
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.gpu_ns = last_ns + kCollectiveNs;
    steps[i].events.back().end_ns = rank.gpu_ns;
    rank.host_ns = std::max(rank.host_ns, rank.gpu_ns);
    steps[i].end_ns = rank.host_ns;
    std::ranges::stable_sort(steps[i].events, {}, &Event::start_ns);
  }
  ++step_;
  return steps;
}

}  // namespace gpusonde::synthetic
