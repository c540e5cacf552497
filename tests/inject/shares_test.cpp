// SPDX-License-Identifier: Apache-2.0
// The call sampler of the inject library (inject/call_sampler.h) and the estimator from its samples
// (model/launch_shares.h), on real kernel streams played over and over in virtual time: real programs are
// periodic, and what samples them must not fall into step with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "inject/call_sampler.h"
#include "model/launch_shares.h"

namespace gpusonde {
namespace {

constexpr double kSeconds = 60;
// A step launches a kernel from up to so many places, as the layers of a model do.
constexpr size_t kStacksOfAKernel = 6;

struct Launch {
  size_t kernel = 0;
  size_t stack = 0;  // of that kernel's
  double duration_ns = 0;
  double at_s = 0;  // within the period
};

struct Period {
  std::string name;
  std::vector<Launch> launches;
  size_t kernels = 0;
  double length_s = 0;
};

// The kernels of one file (data/kernel-streams/README.md). A launch comes when the device is idle or the one
// before it ends, whichever the stream says; that of the n-th part of a kernel's launches comes from stack n.
Period Read(const std::filesystem::path& path) {
  Period period{.name = path.stem(), .launches = {}, .kernels = 0, .length_s = 0};
  std::ifstream file(path);
  std::vector<size_t> launches_of_kernel;  // of this step
  std::vector<size_t> most_of_kernel;      // of any step
  for (std::string line; std::getline(file, line);) {
    if (line == "mark step") launches_of_kernel.assign(launches_of_kernel.size(), 0);
    if (!line.starts_with("k ")) continue;
    std::istringstream fields(line.substr(2));
    size_t stream = 0, kernel = 0;
    double skipped = 0, gap_ns = 0, duration_ns = 0;
    fields >> stream >> kernel;
    for (int i = 0; i < 7; ++i) fields >> skipped;
    fields >> gap_ns >> duration_ns;
    launches_of_kernel.resize(std::max(launches_of_kernel.size(), kernel + 1));
    most_of_kernel.resize(launches_of_kernel.size());
    period.launches.push_back({kernel, launches_of_kernel[kernel]++, duration_ns, period.length_s});
    most_of_kernel[kernel] = std::max(most_of_kernel[kernel], launches_of_kernel[kernel]);
    period.length_s += (gap_ns + duration_ns) * 1e-9;
  }
  period.kernels = most_of_kernel.size();
  for (Launch& launch : period.launches) {
    const size_t all = most_of_kernel[launch.kernel];
    launch.stack = launch.stack * std::min(all, kStacksOfAKernel) / all;
  }
  return period;
}

std::vector<Period> Streams() {
  std::vector<Period> periods;
  for (const auto& file : std::filesystem::directory_iterator("data/kernel-streams"))
    if (file.path().extension() == ".stream") periods.push_back(Read(file.path()));
  std::ranges::sort(periods, {}, &Period::name);
  return periods;
}

struct Tally {
  int64_t estimates = 0;
  int64_t covered = 0;
  double worst_points = 0;  // of the device's time
  std::string worst;
};

// Durations vary from one period to the next, as they do on a device.
void Play(const Period& period, std::mt19937_64& random, Tally& tally) {
  struct Stack {
    double truth_ns = 0;
    model::LaunchSums sums;
    int sampled = 0;
  };
  std::vector<std::vector<Stack>> kernels(period.kernels, std::vector<Stack>(kStacksOfAKernel));
  std::uniform_real_distribution<double> jitter(0.9, 1.1);
  inject::CallSampler sampler;
  sampler.Seed(random() | 1, 1);
  uint32_t second = 1;
  inject::CallSampler::Times times = {};  // of the last second
  std::vector<double> now_ns(times.size());
  double device_ns = 0;
  for (double start_s = 1; start_s < 1 + kSeconds; start_s += period.length_s)
    for (const Launch& launch : period.launches) {
      const double duration_ns = launch.duration_ns * jitter(random);
      Stack& stack = kernels[launch.kernel][launch.stack];
      stack.truth_ns += duration_ns;
      device_ns += duration_ns;
      const auto of = static_cast<uint32_t>(launch.kernel % times.size());
      if (const auto at = static_cast<uint32_t>(start_s + launch.at_s); at != second) {
        second = at;
        for (size_t i = 0; i < times.size(); ++i)
          times[i] = static_cast<uint32_t>(std::exchange(now_ns[i], 0) / 1000);
      }
      now_ns[of] += duration_ns;
      if (!sampler.Sample(second, of, &times)) continue;
      const double p = static_cast<double>(sampler.probability()) / inject::CallSampler::kCertain;
      stack.sums += {duration_ns / p, (1 - p) / (p * p) * duration_ns * duration_ns};
      ++stack.sampled;
    }
  for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    const std::vector<Stack>& stacks = kernels[kernel];
    if (std::ranges::count_if(stacks, [](const Stack& stack) { return stack.truth_ns > 0; }) < 2)
      continue;  // exact by construction: nothing to estimate
    model::LaunchSums whole;
    double total_ns = 0;
    for (const Stack& stack : stacks) {
      whole += stack.sums;
      total_ns += stack.truth_ns;
    }
    if (whole.time_ns == 0) continue;  // shown as [stack not sampled]
    for (const Stack& stack : stacks) {
      if (stack.truth_ns == 0) continue;
      const double off_ns = std::abs(total_ns * stack.sums.time_ns / whole.time_ns - stack.truth_ns);
      const double variance = model::ShareVariance(static_cast<int64_t>(total_ns), stack.sums, whole);
      ++tally.estimates;
      tally.covered += off_ns <= static_cast<double>(model::IntervalNs(variance)) ? 1 : 0;
      if (100 * off_ns / device_ns > tally.worst_points) {
        tally.worst_points = 100 * off_ns / device_ns;
        tally.worst = period.name + ", kernel " + std::to_string(kernel);
      }
    }
  }
}

TEST(Shares, OfRealPeriodicStreamsAreWithinTheirIntervals) {
  const std::vector<Period> streams = Streams();
  ASSERT_GE(streams.size(), 7U);
  std::mt19937_64 random(20261121);
  constexpr int kRuns = 200;
  Tally all;
  for (int run = 0; run < kRuns; ++run) Play(streams[static_cast<size_t>(run) % streams.size()], random, all);
  EXPECT_GE(static_cast<double>(all.covered) / static_cast<double>(all.estimates), 0.93)
      << all.covered << " of " << all.estimates;
  EXPECT_LE(all.worst_points, 5) << all.worst;
}

}  // namespace
}  // namespace gpusonde
