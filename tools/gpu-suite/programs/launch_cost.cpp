// SPDX-License-Identifier: Apache-2.0
// The duration of a kernel launch for its thread: launches an (almost) empty kernel and prints the durations
// of the calls as JSON.
//   launch_cost --rate R --seconds S --depth D     R launches a second (0: as many as possible), from D
//   frames deep
#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "cuda.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kModule = R"(
.version 7.0
.target sm_70
.address_size 64
// simgpu: duration_ns=500
.visible .entry nothing(.param .u64 unused) { ret; }
)";
// Not measured: the first launches, which load code, and the time until the thread's sampler knows its rate.
constexpr double kWarmUpS = 2.5;
// At a given rate, launches come in batches of this length: waking up for each would measure the wake-ups.
constexpr auto kPause = std::chrono::milliseconds(10);
constexpr size_t kMaxLaunches = 5'000'000;

struct Flags {
  double rate = 0;
  double seconds = 5;
  int depth = 0;
};

class Launcher {
 public:
  explicit Launcher(const hpc::Cuda& cuda)
      : cuda_(cuda), kernel_(cuda.Load(kModule, "nothing")), stream_(cuda.MakeStream()) {}

  // The duration in ns of one launch, from `depth` frames below.
  [[gnu::noinline]] double From(int depth) const {
    if (depth > 0) {
      const double nanoseconds = From(depth - 1);
      asm volatile("" ::: "memory");  // no tail call
      return nanoseconds;
    }
    const auto start = Clock::now();
    cuda_.Launch(kernel_, 1, 32, stream_, 0);
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }

  // The duration of each launch in ns.
  std::vector<double> Run(const Flags& flags, double seconds) const {
    std::vector<double> took;
    took.reserve(flags.rate > 0 ? static_cast<size_t>(flags.rate * seconds * 1.1) + 1 : kMaxLaunches);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    const double batch = std::max(1.0, flags.rate * std::chrono::duration<double>(kPause).count());
    for (auto next = Clock::now(); next < end && took.size() < kMaxLaunches;) {
      const double count = flags.rate > 0 ? batch : 1000;
      for (double i = 0; i < count; ++i) took.push_back(From(flags.depth));
      if (flags.rate > 0) {
        next +=
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count / flags.rate));
        std::this_thread::sleep_until(next);
      } else {
        cuda_.Synchronize(stream_);  // otherwise a launch might wait for room in the queue
        next = Clock::now();
      }
    }
    cuda_.Synchronize(stream_);
    return took;
  }

 private:
  const hpc::Cuda& cuda_;
  hpc::Cuda::Kernel kernel_;
  hpc::Cuda::Stream stream_;
};

// Nothing if the arguments are invalid.
std::optional<Flags> ReadFlags(int argc, char** argv) {
  constexpr std::array kOptions = {option{"rate", required_argument, nullptr, 'r'},
                                   option{"seconds", required_argument, nullptr, 's'},
                                   option{"depth", required_argument, nullptr, 'd'}, option{}};
  Flags flags;
  int letter = 0;
  while ((letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1) {
    if (letter == 'r')
      flags.rate = std::strtod(optarg, nullptr);
    else if (letter == 's')
      flags.seconds = std::strtod(optarg, nullptr);
    else if (letter == 'd')
      flags.depth = static_cast<int>(std::strtol(optarg, nullptr, 10));
    else
      return std::nullopt;
  }
  const bool sensible = optind == argc && flags.rate >= 0 && flags.rate <= 1e6 && flags.seconds > 0 &&
                        flags.seconds <= 600 && flags.depth >= 0 && flags.depth <= 1000;
  return sensible ? std::optional(flags) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Flags> flags = ReadFlags(argc, argv);
  if (!flags.has_value()) {
    fmt::print(stderr, "usage: launch_cost [--rate R] [--seconds S] [--depth D]\n");
    return 2;
  }
  const auto cuda = hpc::Cuda::Open();
  if (!cuda.has_value()) {
    fmt::print(stderr, "launch_cost: {}\n", cuda.error());
    return 1;
  }
  const Launcher launcher(*cuda);
  launcher.Run(*flags, std::min(kWarmUpS, 2 * flags->seconds));
  std::vector<double> took = launcher.Run(*flags, flags->seconds);
  std::ranges::sort(took);
  double sum = 0;
  for (const double nanoseconds : took) sum += nanoseconds;
  const auto quantile = [&](double share) {
    return took[static_cast<size_t>(share * static_cast<double>(took.size() - 1))];
  };
  fmt::print(
      "{{\"device\":\"{}\",\"calls\":{},\"mean_ns\":{:.1f},\"p50_ns\":{:.0f},\"p90_ns\":{:.0f},"
      "\"p99_ns\":{:.0f},\"p999_ns\":{:.0f}}}\n",
      cuda->device_name(), took.size(), sum / static_cast<double>(took.size()), quantile(0.5), quantile(0.9),
      quantile(0.99), quantile(0.999));
}
