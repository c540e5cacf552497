// SPDX-License-Identifier: Apache-2.0
#include "diagnose/gpu_time_by_name.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kBucketNs = kNanosPerSecond / 4;
constexpr size_t kKeptBuckets = 2048;  // eight minutes; more only come from times that are wrong
constexpr size_t kMaxNames = 20'000;
constexpr size_t kKeptNames = 64;  // of each bucket

// Keeps those that took longest.
void Trim(std::unordered_map<uint32_t, int64_t>& bucket) {
  if (bucket.size() <= kKeptNames) return;
  std::vector<std::pair<int64_t, uint32_t>> times;
  for (const auto& [name, ns] : bucket) times.emplace_back(ns, name);
  const auto others = times.begin() + kKeptNames;
  std::ranges::nth_element(times, others, std::greater());
  for (const auto& [ns, name] : std::ranges::subrange(others, times.end())) bucket.erase(name);
}

}  // namespace

void GpuTimeByName::Ingest(const Work& work, std::span<const WorkTime> times) {
  if (work.kind != Work::Kind::kKernel && work.kind != Work::Kind::kCopy) return;
  const std::string name =
      work.kind == Work::Kind::kCopy ? "copies " + std::string(work.name) : std::string(work.name);
  auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    if (names_.size() == kMaxNames) return;
    names_.push_back(name);
    known = by_name_.emplace(names_.back(), static_cast<uint32_t>(names_.size() - 1)).first;
  }
  int64_t start_ns = -1;  // of the bucket of the piece before, mostly that of this one
  int64_t* sum_ns = nullptr;
  for (const WorkTime& time : times) {
    if (const int64_t of_piece_ns = time.end_ns / kBucketNs * kBucketNs; of_piece_ns != start_ns) {
      start_ns = of_piece_ns;
      sum_ns = &BucketAt(start_ns)[known->second];
    }
    *sum_ns += time.length_ns;
  }
}

GpuTimeByName::Bucket& GpuTimeByName::BucketAt(int64_t start_ns) {
  if (!buckets_.empty() && buckets_.rbegin()->first == start_ns) return buckets_.rbegin()->second;
  const auto [found, is_new] = buckets_.try_emplace(start_ns);
  if (is_new && found != buckets_.begin()) Trim(std::prev(found)->second);
  if (buckets_.size() > kKeptBuckets)
    buckets_.erase(found == buckets_.begin() ? std::next(found) : buckets_.begin());
  return found->second;
}

std::map<std::string, double> GpuTimeByName::SharesIn(TimeRange range) const {
  std::map<std::string, double> shares;
  const auto length_ns = static_cast<double>(range.to_ns - range.from_ns);
  if (length_ns <= 0) return shares;
  for (auto bucket = buckets_.lower_bound(range.from_ns - kBucketNs + 1);
       bucket != buckets_.end() && bucket->first < range.to_ns; ++bucket) {
    const int64_t within_ns =
        std::min(bucket->first + kBucketNs, range.to_ns) - std::max(bucket->first, range.from_ns);
    const double part = static_cast<double>(within_ns) / static_cast<double>(kBucketNs);
    for (const auto& [name, ns] : bucket->second)
      shares[names_[name]] += part * static_cast<double>(ns) / length_ns;
  }
  return shares;
}

void GpuTimeByName::ForgetBefore(int64_t time_ns) {
  buckets_.erase(buckets_.begin(), buckets_.lower_bound(time_ns - kBucketNs + 1));
}

}  // namespace gpusonde::diagnose
