// SPDX-License-Identifier: Apache-2.0
// Query times for a week of a GPU's state: eight metrics of one device once a second, as `up` reads them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <random>
#include <string>

#include "bench.h"
#include "model/tables/devices.h"
#include "model/tables/metrics.h"
#include "model/tables/sources.h"
#include "store/queries/metric_query.h"
#include "store/recordings/recording.h"

namespace gpusonde {
namespace {

using model::Metric;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kFirstNs = int64_t{20'000} * 86'400 * kSecondNs;  // 2024-10-04
constexpr int64_t kWeekS = int64_t{7} * 86'400;
constexpr int kBuckets = 600;
constexpr Id128 kDevice{1, 2};
constexpr std::array kMetrics = {Metric::kGpuUtilization, Metric::kGpuMemoryUsed,     Metric::kGpuClockSm,
                                 Metric::kGpuPower,       Metric::kGpuTemperature,    Metric::kGpuPcieRx,
                                 Metric::kGpuPcieTx,      Metric::kGpuThrottleReasons};

// Throttled for a minute of every hour.
double ValueOf(Metric metric, int64_t second, std::mt19937_64& random) {
  if (metric == Metric::kGpuThrottleReasons) return second % 3'600 < 60 ? 4 : 0;
  return static_cast<double>(random() % 10'000) / 10;
}

class Week {
 public:
  Week() {
    store_ = Must(store::CreateRecording(folder_ / "week.sonde"));
    model::BatchBuilder sources(model::kSources);
    sources.Append({.source = {3, 4},
                    .host = "node",
                    .started_ns = kFirstNs,
                    .ended_ns = kFirstNs + kWeekS * kSecondNs});
    model::BatchBuilder devices(model::kDevices);
    devices.Append({.device = kDevice, .uuid = "GPU-1", .name = "GPU", .memory_bytes = 1});
    Must(store_->Append({{sources.Take(), devices.Take()}}));
    std::mt19937_64 random(1);
    for (int64_t second = 0; second < kWeekS;) {
      model::BatchBuilder values(model::kMetrics);
      for (const int64_t until = second + 86'400; second < until; ++second)
        for (const Metric metric : kMetrics)
          values.Append({.time_ns = kFirstNs + second * kSecondNs,
                         .source = {3, 4},
                         .device = kDevice,
                         .metric = std::string(model::InfoOf(metric).name),
                         .value = ValueOf(metric, second, random)});
      Must(store_->Append({{values.Take()}}));
    }
  }
  Week(const Week&) = delete;
  Week& operator=(const Week&) = delete;
  store::Store& store() { return *store_; }

  static Week& Get() {
    static Week week;
    return week;
  }

 private:
  Folder folder_;
  std::unique_ptr<store::Store> store_;
};

model::Selection Last(int64_t seconds) {
  const int64_t end_ns = kFirstNs + kWeekS * kSecondNs;
  return {.from_ns = end_ns - seconds * kSecondNs, .to_ns = end_ns};
}

void Strips(benchmark::State& state) {
  store::Store& store = Week::Get().store();
  for (auto _ : state)
    if (Must(store::ReadMetricStrips(store, Last(state.range(0)), kBuckets)).size() != kMetrics.size())
      std::abort();
  if (state.range(0) == kWeekS) state.SetLabel("goal: <= 200 ms");
}
BENCHMARK(Strips)
    ->ArgName("seconds")
    ->Arg(600)
    ->Arg(28'800)
    ->Arg(kWeekS)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void Marks(benchmark::State& state) {
  store::Store& store = Week::Get().store();
  for (auto _ : state)
    if (Must(store::ReadDeviceMarks(store, Last(state.range(0)), kBuckets)).marks.empty() &&
        state.range(0) > 3'600)
      std::abort();
  if (state.range(0) == kWeekS) state.SetLabel("goal: <= 200 ms");
}
BENCHMARK(Marks)->ArgName("seconds")->Arg(600)->Arg(kWeekS)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
