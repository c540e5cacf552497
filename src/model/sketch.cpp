// SPDX-License-Identifier: Apache-2.0
#include "model/sketch.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"

namespace gpusonde::model {
namespace {

constexpr uint32_t kBlock = 1u << Sketch::kBucketBits;

// The rank of a quantile; the lower one for even counts.
uint64_t RankOf(uint64_t count, uint32_t numerator, uint32_t denominator) {
  return static_cast<uint64_t>(Uint128{count - 1} * numerator / denominator);
}

}  // namespace

int64_t Sketch::LowestOf(uint32_t bucket) {
  if (bucket < 2 * kBlock) return bucket;
  const uint32_t shift = (bucket >> kBucketBits) - 1;
  return static_cast<int64_t>(uint64_t{kBlock + (bucket & (kBlock - 1))} << shift);
}

int64_t Sketch::MiddleOf(uint32_t bucket) {
  if (bucket < 2 * kBlock) return bucket;
  const uint32_t shift = (bucket >> kBucketBits) - 1;
  return LowestOf(bucket) + static_cast<int64_t>(((uint64_t{1} << shift) - 1) / 2);
}

void Sketch::Cover(uint32_t bucket) {
  const uint32_t block = bucket & ~(kBlock - 1);
  if (counts_.empty()) first_ = block;
  if (block < first_) {
    counts_.insert(counts_.begin(), first_ - block, 0);
    first_ = block;
  }
  if (bucket - first_ >= counts_.size()) counts_.resize(block + kBlock - first_);
}

void Sketch::Merge(const Sketch& other) {
  other.ForEach([this](uint32_t bucket, uint64_t count) { AddTo(bucket, count); });
}

int64_t Sketch::Quantile(uint32_t numerator, uint32_t denominator) const {
  return count_ == 0 ? 0 : ValueAt(RankOf(count_, numerator, denominator));
}

int64_t Sketch::ValueAt(uint64_t rank) const {
  for (uint32_t i = 0; i < counts_.size(); ++i) {
    if (rank < counts_[i]) return MiddleOf(first_ + i);
    rank -= counts_[i];
  }
  return 0;
}

uint64_t Sketch::CountAbove(int64_t value) const {
  uint64_t above = 0;
  ForEach([&above, value](uint32_t bucket, uint64_t count) {
    if (LowestOf(bucket) > value) above += count;
  });
  return above;
}

int64_t Sketch::MedianDistanceFrom(int64_t center) const {
  if (count_ == 0) return 0;
  std::vector<std::pair<int64_t, uint64_t>> distances;
  ForEach([&distances, center](uint32_t bucket, uint64_t count) {
    const int64_t middle = MiddleOf(bucket);
    distances.emplace_back(middle > center ? middle - center : center - middle, count);
  });
  std::ranges::sort(distances);
  uint64_t left = RankOf(count_, 1, 2);
  for (const auto& [distance, count] : distances) {
    if (left < count) return distance;
    left -= count;
  }
  return 0;
}

bool operator==(const Sketch& a, const Sketch& b) {
  std::vector<std::pair<uint32_t, uint64_t>> left, right;
  a.ForEach([&left](uint32_t bucket, uint64_t count) { left.emplace_back(bucket, count); });
  b.ForEach([&right](uint32_t bucket, uint64_t count) { right.emplace_back(bucket, count); });
  return left == right;
}

}  // namespace gpusonde::model
