// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/poller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace gpusonde::nvml {
namespace {

// Calls take a few µs (simgpu) to a few 100 µs (reported for real drivers); PCIe throughput takes 20 ms.
constexpr int64_t kSlowNs = 5 * kNanosPerMilli;
// A query that fails this often in a row runs rarely from then on.
constexpr int kFailuresInARow = 10;
constexpr int64_t kAfterFailuresNs = 10 * kNanosPerSecond;
// A device without any result for this many rounds is considered lost.
constexpr int kSilentRounds = 10;
// Slightly less than the period of a query, so that rounds of 100 ms don't make it 1.1 s.
int64_t PeriodOf(Cadence cadence) {
  constexpr int64_t kLess = 50 * kNanosPerMilli;
  switch (cadence) {
    case Cadence::kEveryRound:
      return 0;
    case Cadence::kEverySecond:
      return kNanosPerSecond - kLess;
    case Cadence::kEveryFiveSeconds:
      return 5 * kNanosPerSecond - kLess;
  }
  return 0;
}

enum class Verdict { kSuccess, kUnsupported, kFailed, kDeviceLost, kLibraryLost };

Verdict Judge(gpusonde_nvml_result result) {
  if (IsUnsupported(result)) return Verdict::kUnsupported;
  switch (result) {
    case GPUSONDE_NVML_SUCCESS:
      return Verdict::kSuccess;
    case GPUSONDE_NVML_ERROR_GPU_IS_LOST:
    case GPUSONDE_NVML_ERROR_RESET_REQUIRED:
      return Verdict::kDeviceLost;
    case GPUSONDE_NVML_ERROR_UNINITIALIZED:
    case GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED:
    case GPUSONDE_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return Verdict::kLibraryLost;
    default:
      return Verdict::kFailed;
  }
}

}  // namespace

std::string Describe(const Device& device) { return fmt::format("GPU {} ({})", device.index, device.name); }

Poller::Poller(const Library& library, std::vector<Device> devices, std::function<int64_t()> clock)
    : library_(library), clock_(std::move(clock)) {
  for (Device& device : devices) {
    DeviceState& state = devices_.emplace_back();
    state.device = std::move(device);
    state.cache.mig = state.device.mig;
    state.queries.resize(AllQueries().size());
    for (size_t query = 0; query < state.queries.size(); ++query)
      state.queries[query].never_again = state.device.mig.has_value() && !AllQueries()[query].of_instances;
  }
}

bool Poller::any_device_lost() const { return std::ranges::any_of(devices_, &DeviceState::lost); }

void Poller::Round(int64_t period_ns, PollResult& polled) {
  const int64_t begin_ns = clock_();
  struct Slow {
    int64_t started_ns;
    size_t device, query;
    auto operator<=>(const Slow&) const = default;
  };
  std::vector<Slow> slow;
  for (size_t device = 0; device < devices_.size(); ++device) {
    DeviceState& state = devices_[device];
    state.successes = state.errors = 0;
    for (size_t query = 0; query < state.queries.size(); ++query) {
      const QueryState& progress = state.queries[query];
      if (state.lost || library_lost_ || progress.never_again || progress.due_ns > begin_ns) continue;
      if (progress.took_ns > kSlowNs)
        slow.push_back({progress.started_ns, device, query});
      else
        Run(device, query, polled);
    }
  }
  // The query that has waited longest comes first.
  std::ranges::sort(slow);
  for (const Slow& next : slow) {
    if (library_lost_) break;
    if (&next != slow.data() && clock_() - begin_ns > period_ns / 2) break;
    if (!devices_[next.device].lost) Run(next.device, next.query, polled);
  }
  if (!library_lost_)
    for (DeviceState& state : devices_) EndRound(state, polled);
}

void Poller::Run(size_t device, size_t query, PollResult& polled) {
  DeviceState& state = devices_[device];
  QueryState& progress = state.queries[query];
  const Query& definition = AllQueries()[query];
  Readings readings;
  progress.started_ns = clock_();
  const gpusonde_nvml_result result =
      definition.read(library_.functions(), state.device.handle, state.cache, readings);
  const int64_t now_ns = clock_();
  progress.took_ns = now_ns - progress.started_ns;
  progress.due_ns = progress.started_ns + PeriodOf(definition.cadence);
  switch (Judge(result)) {
    case Verdict::kSuccess:
      ++state.successes;
      progress.failures = 0;
      for (const Readings::Value& value : readings.values())
        polled.readings.push_back({now_ns, device, value.pid, value.metric, value.value});
      polled.drops.Add(model::DropReason::kGpuReadingsAbsurd, readings.absurd());
      polled.drops.Add(model::DropReason::kGpuReadingsFailed, readings.failed());
      return;
    case Verdict::kUnsupported:
      progress.never_again = true;
      state.unsupported.emplace_back(definition.name);
      return;
    case Verdict::kFailed:
      Failed(state, query, result, polled);
      return;
    case Verdict::kDeviceLost:
      Lose(state, library_.Explain(result), polled);
      return;
    case Verdict::kLibraryLost:
      library_lost_ = true;
      polled.notices.push_back(
          {true, fmt::format("NVIDIA's driver was unloaded: {}", library_.Explain(result))});
      return;
  }
}

void Poller::Failed(DeviceState& state, size_t query, gpusonde_nvml_result result, PollResult& polled) {
  QueryState& progress = state.queries[query];
  ++state.errors;
  polled.drops.Add(model::DropReason::kGpuReadingsFailed);
  if (++progress.failures >= kFailuresInARow) progress.due_ns = progress.started_ns + kAfterFailuresNs;
  if (std::exchange(progress.reported, result) == result) return;
  polled.notices.push_back({true, fmt::format("{}: {} can't be read: {}", Describe(state.device),
                                              AllQueries()[query].name, library_.Explain(result))});
}

void Poller::Lose(DeviceState& state, const std::string& why, PollResult& polled) {
  state.lost = true;
  polled.notices.push_back(
      {true, fmt::format("{} is lost: {}; retrying from time to time", Describe(state.device), why)});
}

void Poller::EndRound(DeviceState& state, PollResult& polled) {
  if (state.lost) return;
  if (!state.unsupported.empty()) {
    polled.notices.push_back({false, fmt::format("{} doesn't support: {}", Describe(state.device),
                                                 fmt::join(std::exchange(state.unsupported, {}), ", "))});
  }
  if (state.errors > 0 && state.successes == 0)
    ++state.silent_rounds;
  else if (state.successes > 0)
    state.silent_rounds = 0;
  if (state.silent_rounds >= kSilentRounds) Lose(state, "it no longer answers", polled);
}

}  // namespace gpusonde::nvml
