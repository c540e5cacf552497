// SPDX-License-Identifier: Apache-2.0
#include "agent/names.h"

#include <cstdint>

#include "base/time.h"

namespace gpusonde::agent {
namespace {

constexpr int kPollMs = 10;
constexpr int64_t kMaxSymbolsWaitNs = 5 * kNanosPerSecond;
constexpr int64_t kMaxLinesWaitNs = 15 * kNanosPerSecond;

}  // namespace

void Names::WriteArrived() {
  files_.Exchange();
  stacks_.IngestSymbols(drops_);
  IngestLines();
}

void Names::Await(const std::function<bool()>& may_wait) {
  AwaitSymbols(may_wait);
  AwaitLines(may_wait);
}

void Names::IngestLines() {
  lines_.Exchange([this](const symbols::LineClient::Answer& answer) { stacks_.IngestLines(answer, drops_); });
}

void Names::AwaitSymbols(const std::function<bool()>& may_wait) {
  const int64_t until_ns = MonotonicNow() + kMaxSymbolsWaitNs;
  for (stacks_.IngestSymbols(drops_); stacks_.files_awaited() > 0 && MonotonicNow() < until_ns && may_wait();
       stacks_.IngestSymbols(drops_)) {
    files_.Wait(kPollMs);
    files_.Exchange();
  }
  drops_.Add(model::DropReason::kUnreadableBinary, static_cast<int64_t>(stacks_.files_awaited()));
}

void Names::AwaitLines(const std::function<bool()>& may_wait) {
  const int64_t until_ns = MonotonicNow() + kMaxLinesWaitNs;
  for (IngestLines(); !lines_.idle() && MonotonicNow() < until_ns && may_wait(); IngestLines())
    lines_.Wait(kPollMs);
  drops_.Add(model::DropReason::kLinesLate, static_cast<int64_t>(lines_.waiting()));
}

}  // namespace gpusonde::agent
