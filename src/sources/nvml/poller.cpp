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
// A question that fails this often in a row is asked rarely from then on.
constexpr int kFailuresInARow = 10;
constexpr int64_t kAfterFailuresNs = 10 * kNanosPerSecond;
// A device without any answer for this many rounds is considered lost.
constexpr int kMuteRounds = 10;
// Slightly less than the period of a question, so that rounds of 100 ms don't make it 1.1 s.
int64_t PeriodOf(Often often) {
  constexpr int64_t kLess = 50 * kNanosPerMilli;
  switch (often) {
    case Often::kEveryRound:
      return 0;
    case Often::kEverySecond:
      return kNanosPerSecond - kLess;
    case Often::kEveryFiveSeconds:
      return 5 * kNanosPerSecond - kLess;
  }
  return 0;
}

enum class Verdict { kAnswered, kNeverKnown, kFailed, kDeviceLost, kLibraryLost };

Verdict Judge(gpusonde_nvml_result result) {
  if (IsUnsupported(result)) return Verdict::kNeverKnown;
  switch (result) {
    case GPUSONDE_NVML_SUCCESS:
      return Verdict::kAnswered;
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
    state.memory.mig = state.device.mig;
    state.asked.resize(AllQuestions().size());
    for (size_t question = 0; question < state.asked.size(); ++question)
      state.asked[question].never_again =
          state.device.mig.has_value() && !AllQuestions()[question].of_instances;
  }
}

bool Poller::any_device_lost() const { return std::ranges::any_of(devices_, &DeviceState::lost); }

void Poller::Round(int64_t period_ns, News& news) {
  const int64_t begin_ns = clock_();
  struct Slow {
    int64_t asked_ns;
    size_t device, question;
    auto operator<=>(const Slow&) const = default;
  };
  std::vector<Slow> slow;
  for (size_t device = 0; device < devices_.size(); ++device) {
    DeviceState& state = devices_[device];
    state.answers = state.errors = 0;
    for (size_t question = 0; question < state.asked.size(); ++question) {
      const Asked& asked = state.asked[question];
      if (state.lost || library_lost_ || asked.never_again || asked.due_ns > begin_ns) continue;
      if (asked.took_ns > kSlowNs)
        slow.push_back({asked.asked_ns, device, question});
      else
        Ask(device, question, news);
    }
  }
  // The question that has waited longest comes first.
  std::ranges::sort(slow);
  for (const Slow& next : slow) {
    if (library_lost_) break;
    if (&next != slow.data() && clock_() - begin_ns > period_ns / 2) break;
    if (!devices_[next.device].lost) Ask(next.device, next.question, news);
  }
  if (!library_lost_)
    for (DeviceState& state : devices_) EndRound(state, news);
}

void Poller::Ask(size_t device, size_t question, News& news) {
  DeviceState& state = devices_[device];
  Asked& asked = state.asked[question];
  const Question& what = AllQuestions()[question];
  Answer answer;
  asked.asked_ns = clock_();
  const gpusonde_nvml_result result =
      what.ask(library_.functions(), state.device.handle, state.memory, answer);
  const int64_t now_ns = clock_();
  asked.took_ns = now_ns - asked.asked_ns;
  asked.due_ns = asked.asked_ns + PeriodOf(what.often);
  switch (Judge(result)) {
    case Verdict::kAnswered:
      ++state.answers;
      asked.failures = 0;
      for (const Answer::Value& value : answer.values())
        news.readings.push_back({now_ns, device, value.pid, value.metric, value.value});
      news.drops.Add(model::DropReason::kGpuReadingsAbsurd, answer.absurd());
      news.drops.Add(model::DropReason::kGpuReadingsFailed, answer.failed());
      return;
    case Verdict::kNeverKnown:
      asked.never_again = true;
      state.unknown.emplace_back(what.name);
      return;
    case Verdict::kFailed:
      Failed(state, question, result, news);
      return;
    case Verdict::kDeviceLost:
      Lose(state, library_.Explain(result), news);
      return;
    case Verdict::kLibraryLost:
      library_lost_ = true;
      news.notices.push_back(
          {true, fmt::format("NVIDIA's driver was unloaded: {}", library_.Explain(result))});
      return;
  }
}

void Poller::Failed(DeviceState& state, size_t question, gpusonde_nvml_result result, News& news) {
  Asked& asked = state.asked[question];
  ++state.errors;
  news.drops.Add(model::DropReason::kGpuReadingsFailed);
  if (++asked.failures >= kFailuresInARow) asked.due_ns = asked.asked_ns + kAfterFailuresNs;
  if (std::exchange(asked.reported, result) == result) return;
  news.notices.push_back({true, fmt::format("{}: {} can't be read: {}", Describe(state.device),
                                            AllQuestions()[question].name, library_.Explain(result))});
}

void Poller::Lose(DeviceState& state, const std::string& why, News& news) {
  state.lost = true;
  news.notices.push_back(
      {true, fmt::format("{} is lost: {}; retrying from time to time", Describe(state.device), why)});
}

void Poller::EndRound(DeviceState& state, News& news) {
  if (state.lost) return;
  if (!state.unknown.empty()) {
    news.notices.push_back({false, fmt::format("{} doesn't support: {}", Describe(state.device),
                                               fmt::join(std::exchange(state.unknown, {}), ", "))});
  }
  if (state.errors > 0 && state.answers == 0)
    ++state.mute_rounds;
  else if (state.answers > 0)
    state.mute_rounds = 0;
  if (state.mute_rounds >= kMuteRounds) Lose(state, "it no longer answers", news);
}

}  // namespace gpusonde::nvml
