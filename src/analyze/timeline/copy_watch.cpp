// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/copy_watch.h"

#include <algorithm>

namespace gpusonde::analyze {
namespace {

constexpr int64_t kAfterNs = 10'000;

importers::MemoryKind HostMemory(uint32_t transfer) {
  using importers::MemoryKind;
  for (const MemoryKind side : {SourceOf(transfer), TargetOf(transfer)})
    if (side == MemoryKind::kPageable || side == MemoryKind::kPinned) return side;
  return MemoryKind::kUnknown;
}

CopyClass ClassOf(const GpuRecord& copy) {
  constexpr uint32_t kSmall = 64u << 10;
  constexpr uint32_t kLarge = 1u << 20;
  const uint8_t size = copy.bytes < kSmall ? 0 : copy.bytes < kLarge ? 1 : 2;
  return {.kind = CopyOf(copy.name), .host_memory = HostMemory(copy.name), .size = size};
}

}  // namespace

void CopyWatch::Overlap(Pending& pending, int64_t overlap_ns, const CopyClass& copy) {
  if (overlap_ns <= pending.overlap_ns) return;
  pending.overlap_ns = overlap_ns;
  pending.kernel.copy = copy;
  pending.has_copy = true;
}

void CopyWatch::Advance(int64_t now_ns, std::vector<WatchedKernel>& known) {
  std::erase_if(copies_, [now_ns](const Active& copy) { return copy.end_ns <= now_ns; });
  if (copies_.size() == kMaxAtOnce) copies_.erase(copies_.begin());
  size_t kept = 0;
  const size_t drop = kernels_.size() == kMaxAtOnce ? 1 : 0;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (i >= drop && kernels_[i].end_ns > now_ns)
      kernels_[kept++] = kernels_[i];
    else if (kernels_[i].has_copy)
      known.push_back(kernels_[i].kernel);
  }
  kernels_.resize(kept);
}

void CopyWatch::Kernel(const GpuRecord& event, uint64_t stratum, int32_t log,
                       std::vector<WatchedKernel>& known) {
  Advance(event.start_ns, known);
  // Filled where it stays: to copy what was just written in smaller pieces stalls.
  Pending& pending = kernels_.emplace_back();
  pending.end_ns = event.end_ns;
  pending.kernel.stratum = stratum;
  pending.kernel.log = log;
  const bool follows =
      last_.copy.has_value() && last_.end_ns <= event.start_ns && event.start_ns - last_.end_ns <= kAfterNs;
  if (follows) {
    pending.kernel.copy = *last_.copy;
    pending.kernel.copy.after = true;
    pending.has_copy = true;
  }
  for (const Active& copy : copies_)
    Overlap(pending, std::min(copy.end_ns, event.end_ns) - event.start_ns, copy.copy);
  last_ = {.end_ns = event.end_ns};
}

void CopyWatch::Copy(const GpuRecord& event, std::vector<WatchedKernel>& known) {
  Advance(event.start_ns, known);
  const CopyClass copy = ClassOf(event);
  for (Pending& kernel : kernels_)
    Overlap(kernel, std::min(kernel.end_ns, event.end_ns) - event.start_ns, copy);
  copies_.push_back({.end_ns = event.end_ns, .copy = copy});
  last_ = {.end_ns = event.end_ns, .copy = copy};
}

void CopyWatch::Finish(std::vector<WatchedKernel>& known) {
  for (const Pending& pending : kernels_)
    if (pending.has_copy) known.push_back(pending.kernel);
  kernels_.clear();
}

}  // namespace gpusonde::analyze
