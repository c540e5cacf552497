// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

CriticalPath::Part& PartOf(CriticalPath& path, PathKind kind, std::string_view name) {
  const auto find = [&](std::string_view wanted) {
    return std::ranges::find_if(
        path.parts, [&](const CriticalPath::Part& part) { return part.kind == kind && part.name == wanted; });
  };
  auto found = find(name);
  if (found == path.parts.end()) found = find(NameTable::kOther);
  return found != path.parts.end() ? *found
                                   : path.parts.emplace_back(CriticalPath::Part{kind, std::string(name)});
}

}  // namespace

void AddRankWaits(const Job& job, size_t rank, std::span<const CollectiveWait> waits, CriticalPath& path) {
  for (const CriticalPath::Communication& one : path.communication) {
    const auto wait = std::ranges::lower_bound(waits, one.start_ns, {}, &CollectiveWait::start_ns);
    if (wait == waits.end() || wait->start_ns != one.start_ns) continue;
    const auto& collectives = job.ranks[rank].result.collectives;
    const auto kernel = std::ranges::lower_bound(collectives, one.start_ns, {}, &Collective::start_ns);
    if (kernel == collectives.end() || kernel->start_ns != one.start_ns) continue;
    // The path has the kernel from its start, or from the path's begin.
    const int64_t from_ns = std::max(one.start_ns, path.begin_ns);
    const int64_t waited_ns = std::min(one.part_ns, one.start_ns + wait->wait_ns - from_ns);
    if (waited_ns <= 0) continue;
    PartOf(path, PathKind::kCommunication, job.names[kernel->name]).total_ns -= waited_ns;
    CriticalPath::Part& part = PartOf(path, PathKind::kRankWait, fmt::format("rank {}", wait->last));
    ++part.count;
    part.total_ns += waited_ns;
  }
  std::ranges::stable_sort(path.parts, std::greater(), &CriticalPath::Part::total_ns);
}

}  // namespace gpusonde::analyze
