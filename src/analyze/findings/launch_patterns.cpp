// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxThreadLines = 20;
// A gap of ten usual ones is a pause.
constexpr int64_t kPauseFactor = 10;

int64_t SumFrom(std::span<const int64_t> sums, size_t bucket) {
  int64_t sum = 0;
  for (const int64_t one : sums.subspan(bucket)) sum += one;
  return sum;
}

LaunchPatternLine::Thread ThreadLineOf(const ThreadLaunches& launches) {
  LaunchPatternLine::Thread line{
      .thread = launches.thread,
      .launches = launches.launches,
      .span_ns = launches.last_ns - launches.first_ns,
      .gap_p50_ns = launches.gaps.Quantile(1, 2),
      .gap_p99_ns = launches.gaps.Quantile(99, 100),
      .gap_max_ns = launches.longest_gap_ns,
      .behind_p50_ns = launches.behind.Quantile(1, 2),
      .behind_p99_ns = launches.behind.Quantile(99, 100),
      .waiting_mean = static_cast<double>(launches.waiting) / static_cast<double>(launches.launches)};
  size_t bucket = 1;
  while (bucket + 1 < ThreadLaunches::kBuckets &&
         ThreadLaunches::LowestOf(bucket) / kPauseFactor < line.gap_p50_ns)
    ++bucket;
  line.pause_from_ns = ThreadLaunches::LowestOf(bucket);
  // Buckets of the sketch begin at powers of two.
  const uint64_t pauses = launches.gaps.CountAbove(line.pause_from_ns - 1);
  const uint64_t others = launches.gaps.count() - pauses;
  const int64_t lone = SumFrom(launches.lone, bucket);
  line.pauses = static_cast<int64_t>(pauses);
  line.pauses_ns = SumFrom(launches.gap_ns, bucket);
  line.drained_pauses = SumFrom(launches.drained, bucket);
  line.bursts = line.pauses + 1 - lone;
  line.burst_launches = launches.launches - lone;
  if (others > 0) line.burst_gap_p50_ns = launches.gaps.ValueAt((others - 1) / 2);
  if (pauses > 0) line.pause_p50_ns = launches.gaps.ValueAt(others + (pauses - 1) / 2);
  return line;
}

}  // namespace

std::vector<LaunchPatternLine> ListLaunchPatterns(const Job& job) {
  std::vector<LaunchPatternLine> lines;
  for (const JobRank& rank : job.ranks) {
    const LaunchPattern& pattern = rank.result.launches;
    if (pattern.threads.empty() || rank.is_sampled) continue;
    LaunchPatternLine line{.rank = rank.number, .trace = rank.trace, .others = pattern.others};
    for (const ThreadLaunches& thread : pattern.threads) line.threads.push_back(ThreadLineOf(thread));
    std::ranges::sort(line.threads, {}, [](const LaunchPatternLine::Thread& thread) {
      return std::tuple(-thread.launches, thread.thread);
    });
    for (size_t i = kMaxThreadLines; i < line.threads.size(); ++i) line.others += line.threads[i].launches;
    line.threads.resize(std::min(line.threads.size(), kMaxThreadLines));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusonde::analyze
