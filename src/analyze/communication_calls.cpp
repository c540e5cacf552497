// SPDX-License-Identifier: Apache-2.0
#include "analyze/communication_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gpusonde::analyze {
namespace {

using importers::CommunicationCall;
using LaunchWindow = CommunicatorLaunches::Window;

// Follows the calls of one thread in the order of their starts.
class ThreadCalls {
 public:
  ThreadCalls(uint32_t thread, std::vector<LaunchWindow>& windows) : thread_(thread), windows_(windows) {}

  void Add(const CommunicationCall& call) {
    switch (call.kind) {
      case CommunicationCall::Kind::kOperation:
        if (depth_ == 0) return AddWindow(call, call.group);
        if (!has_operation_) group_ = call.group;
        if (call.group != group_) group_ = 0;  // launched together with others'
        has_operation_ = true;
        return;
      case CommunicationCall::Kind::kGroupStart:
        if (depth_++ == 0) has_operation_ = false;
        return;
      case CommunicationCall::Kind::kGroupEnd:
        if (depth_ == 0) return;  // the trace begins within a group
        --depth_;
        if (depth_ == 0 && has_operation_) AddWindow(call, group_);
        return;
    }
  }

 private:
  void AddWindow(const CommunicationCall& call, uint16_t group) {
    // Calls of a thread nest: what begins within another was launched by it.
    if (group == 0 ||
        (!windows_.empty() && windows_.back().thread == thread_ && windows_.back().end_ns > call.start_ns))
      return;
    windows_.push_back({.thread = thread_, .group = group, .start_ns = call.start_ns, .end_ns = call.end_ns});
  }

  uint32_t thread_;
  std::vector<LaunchWindow>& windows_;
  int depth_ = 0;
  bool has_operation_ = false;
  uint16_t group_ = 0;
};

}  // namespace

uint16_t CommunicatorLaunches::GroupAt(uint32_t thread, int64_t time_ns) const {
  const auto after = std::ranges::upper_bound(
      windows_, std::pair(thread, time_ns), {},
      [](const LaunchWindow& window) { return std::pair(window.thread, window.start_ns); });
  if (after == windows_.begin()) return 0;
  const LaunchWindow& window = *std::prev(after);
  return window.thread == thread && time_ns <= window.end_ns ? window.group : uint16_t{0};
}

void CommunicationCalls::Add(std::span<const CommunicationCall> calls) {
  for (const CommunicationCall& call : calls) {
    if (call.kind == CommunicationCall::Kind::kOperation && call.group == 0) ++without_communicator_;
    std::vector<Call>& of_process = by_process_[call.process];
    of_process.push_back({call});
    if (of_process.size() >= 2 * kMaxCalls) Reduce(of_process);
  }
}

void CommunicationCalls::Reduce(std::vector<Call>& calls) {
  if (calls.size() <= kMaxCalls) return;
  std::ranges::nth_element(calls, calls.begin() + static_cast<std::ptrdiff_t>(kMaxCalls));
  beyond_bound_ += static_cast<int64_t>(calls.size() - kMaxCalls);
  calls.resize(kMaxCalls);
}

void CommunicationCalls::Merge(const CommunicationCalls& other) {
  for (const auto& [process, calls] : other.by_process_) {
    std::vector<Call>& of_process = by_process_[process];
    of_process.insert(of_process.end(), calls.begin(), calls.end());
    Reduce(of_process);
  }
  without_communicator_ += other.without_communicator_;
  beyond_bound_ += other.beyond_bound_;
}

void CommunicationCalls::Finish() {
  for (auto& [process, calls] : by_process_) {
    Reduce(calls);
    std::ranges::sort(calls);
  }
}

CommunicatorLaunches CommunicationCalls::LaunchesOf(int64_t process) const {
  const auto found = by_process_.find(process);
  if (found == by_process_.end()) return {};
  std::vector<LaunchWindow> windows;
  std::map<uint32_t, std::vector<const CommunicationCall*>> threads;
  for (const Call& one : found->second) threads[one.call.thread].push_back(&one.call);
  for (const auto& [thread, calls] : threads) {
    ThreadCalls following(thread, windows);
    for (const CommunicationCall* const call : calls) following.Add(*call);
  }
  return CommunicatorLaunches(std::move(windows));
}

}  // namespace gpusonde::analyze
