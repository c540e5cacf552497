// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/lines.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxPairs = 100;
constexpr std::array<std::string_view, kWorkKinds> kWorkNames = {
    "compute", "communication", "unknown_copy", "htod", "dtoh", "dtod", "ptop", "htoh", "memset", "graph"};

ConcurrencyLine::StreamNumber NumberOf(const StreamTable& table, size_t place) {
  if (place == StreamTable::kMaxStreams) return std::nullopt;
  return table.streams()[place].stream;
}

// All beyond the first come last among equals.
auto KeyOf(ConcurrencyLine::StreamNumber number) { return std::tuple(!number.has_value(), number); }

void AddKinds(const RankTimeline& timeline, ConcurrencyLine& line) {
  for (size_t later = 0; later < kWorkKinds; ++later) {
    const int64_t busy_ns = timeline.KindNs(static_cast<WorkKind>(later));
    if (busy_ns > 0) line.kind_times.push_back({kWorkNames[later], busy_ns});
    for (size_t earlier = 0; earlier < later; ++earlier) {
      const int64_t shared_ns =
          timeline.SharedNs(static_cast<WorkKind>(later), static_cast<WorkKind>(earlier));
      if (shared_ns > 0) line.kinds.push_back({kWorkNames[earlier], kWorkNames[later], shared_ns});
    }
  }
  std::ranges::stable_sort(line.kinds, std::greater<>(), &ConcurrencyLine::Kinds::shared_ns);
}

void AddStreams(const StreamTable& table, ConcurrencyLine& line) {
  for (size_t place = 0; place < table.streams().size(); ++place) {
    const StreamTimes& times = table.streams()[place];
    line.streams.push_back({.stream = NumberOf(table, place),
                            .events = times.events,
                            .busy_ns = times.busy.length_ns(),
                            .gaps = MakeIdleLine(times.gaps)});
    for (size_t earlier = 0; earlier < place; ++earlier) {
      const int64_t shared_ns = table.SharedNs(place, earlier);
      if (shared_ns == 0) continue;
      ConcurrencyLine::Pair pair{NumberOf(table, earlier), NumberOf(table, place), shared_ns};
      if (KeyOf(pair.second) < KeyOf(pair.first)) std::swap(pair.first, pair.second);
      line.pairs.push_back(pair);
    }
  }
  std::ranges::sort(line.streams, {}, [](const ConcurrencyLine::Stream& stream) {
    return std::tuple(-stream.busy_ns, KeyOf(stream.stream));
  });
  std::ranges::sort(line.pairs, {}, [](const ConcurrencyLine::Pair& pair) {
    return std::tuple(-pair.shared_ns, KeyOf(pair.first), KeyOf(pair.second));
  });
  line.pairs.resize(std::min(line.pairs.size(), kMaxPairs));
}

}  // namespace

std::vector<ConcurrencyLine> ListConcurrency(const Job& job) {
  std::vector<ConcurrencyLine> lines;
  for (const JobRank& rank : job.ranks) {
    const RankTimeline& timeline = rank.result.timeline;
    ConcurrencyLine line{.rank = rank.number, .trace = rank.trace};
    const auto& at_least_ns = timeline.concurrency().at_least_ns();
    for (size_t level = 0; level < at_least_ns.size(); ++level)
      line.running_ns[level] =
          at_least_ns[level] - (level + 1 < at_least_ns.size() ? at_least_ns[level + 1] : 0);
    if (at_least_ns[0] > 0)
      line.mean = static_cast<double>(timeline.concurrency().work_ns()) / static_cast<double>(at_least_ns[0]);
    AddKinds(timeline, line);
    AddStreams(timeline.streams(), line);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusonde::analyze
