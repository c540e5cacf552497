// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/copy_engine.h"

#include <algorithm>
#include <cmath>

namespace simgpu {
namespace {

int64_t OverlapNs(const CopyEngine::Span& span, int64_t from_ns, int64_t to_ns) {
  return std::max<int64_t>(0, std::min(span.end_ns, to_ns) - std::max(span.start_ns, from_ns));
}

}  // namespace

CopyEngine::Span CopyEngine::Place(int64_t ready_ns, int64_t bytes, double bytes_per_ns,
                                   int64_t overhead_ns) {
  const int64_t start_ns = std::max(ready_ns, free_ns_);
  const Span span{start_ns, start_ns + overhead_ns + std::llround(static_cast<double>(bytes) / bytes_per_ns)};
  free_ns_ = span.end_ns;
  last_[next_ % kRemembered] = {span, bytes};
  ++next_;
  return span;
}

int64_t CopyEngine::BusyNs(int64_t from_ns, int64_t to_ns) const {
  if (free_ns_ <= from_ns) return 0;
  int64_t busy_ns = 0;
  for (const Copy& copy : last_) busy_ns += OverlapNs(copy.span, from_ns, to_ns);
  return busy_ns;
}

int64_t CopyEngine::BytesMoved(int64_t from_ns, int64_t to_ns) const {
  if (free_ns_ <= from_ns) return 0;
  double bytes = 0;
  for (const Copy& copy : last_) {
    const int64_t overlap_ns = OverlapNs(copy.span, from_ns, to_ns);
    if (overlap_ns > 0)
      bytes += static_cast<double>(copy.bytes) * static_cast<double>(overlap_ns) /
               static_cast<double>(copy.span.end_ns - copy.span.start_ns);
  }
  return std::llround(bytes);
}

}  // namespace simgpu
