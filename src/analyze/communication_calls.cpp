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
        if (depth_ == 0) return AddWindow(call, call);
        if (operations_++ == 0) together_ = call;
        if (call.group != together_.group) together_.group = 0;  // launched together with others'
        return;
      case CommunicationCall::Kind::kGroupStart:
        if (depth_++ == 0) operations_ = 0;
        return;
      case CommunicationCall::Kind::kGroupEnd:
        if (depth_ == 0) return;  // the trace begins within a group
        --depth_;
        if (depth_ > 0 || operations_ == 0) return;
        if (operations_ > 1) together_.bytes = 0;
        return AddWindow(call, together_);
    }
  }

 private:
  // `call` launches `operation`.
  void AddWindow(const CommunicationCall& call, const CommunicationCall& operation) {
    // Calls of a thread nest: what begins within another was launched by it.
    if (operation.group == 0 ||
        (!windows_.empty() && windows_.back().thread == thread_ && windows_.back().end_ns > call.start_ns))
      return;
    windows_.push_back({.thread = thread_,
                        .group = operation.group,
                        .operation = operation.operation,
                        .bytes = operation.bytes,
                        .start_ns = call.start_ns,
                        .end_ns = call.end_ns});
  }

  uint32_t thread_;
  std::vector<LaunchWindow>& windows_;
  int depth_ = 0;
  int64_t operations_ = 0;      // in the group of calls so far
  CommunicationCall together_;  // the first, with the group of all
};

}  // namespace

const LaunchWindow* CommunicatorLaunches::At(uint32_t thread, int64_t time_ns) const {
  const auto after = std::ranges::upper_bound(
      windows_, std::pair(thread, time_ns), {},
      [](const LaunchWindow& window) { return std::pair(window.thread, window.start_ns); });
  if (after == windows_.begin()) return nullptr;
  const LaunchWindow& window = *std::prev(after);
  return window.thread == thread && time_ns <= window.end_ns ? &window : nullptr;
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
