// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace gpusonde::model {

// A distribution of non-negative whole numbers in buckets: 64 to each power of two, and one each for 0 to
// 127. A number is at most 0.8 % from the middle of its bucket. The bucket follows from the bits of the
// number and counts are whole, so merging is addition and exact in any order. Negative numbers count as 0.
//
// Memory is 512 bytes per power of two between the smallest and the largest number (at most 58).
class Sketch {
 public:
  static constexpr int kBucketBits = 6;
  static constexpr uint32_t kBuckets = (63 - kBucketBits + 1) << kBucketBits;

  // Buckets in order of their numbers; below 2^7 the bucket is the number.
  static uint32_t BucketOf(int64_t value) {
    if (value <= 0) return 0;
    const auto bits = static_cast<uint64_t>(value);
    const int exponent = 63 - std::countl_zero(bits);
    if (exponent < kBucketBits) return static_cast<uint32_t>(bits);
    const int shift = exponent - kBucketBits;
    return (static_cast<uint32_t>(shift) << kBucketBits) + static_cast<uint32_t>(bits >> shift);
  }
  // The smallest number of a bucket, and the one in its middle.
  static int64_t LowestOf(uint32_t bucket);
  static int64_t MiddleOf(uint32_t bucket);

  void Add(int64_t value) { AddTo(BucketOf(value), 1); }
  void AddTo(uint32_t bucket, uint64_t count) {
    // Below first_ the difference wraps around, and is too large as well.
    if (bucket - first_ >= counts_.size()) Cover(bucket);
    counts_[bucket - first_] += count;
    count_ += count;
  }
  void Merge(const Sketch& other);

  uint64_t count() const { return count_; }

  // The quantile numerator/denominator: the middle of the bucket with the value of rank ⌊(count − 1) ·
  // numerator / denominator⌋. 0 when empty. 0 ≤ numerator ≤ denominator ≤ 2^31.
  int64_t Quantile(uint32_t numerator, uint32_t denominator) const;
  // The middle of the bucket with the value of this rank, from 0; 0 if there are not as many.
  int64_t ValueAt(uint64_t rank) const;
  // How many values lie in buckets that begin above `value`.
  uint64_t CountAbove(int64_t value) const;
  // The median of |x − center|, each x taken at its bucket's middle, by the rank rule of Quantile.
  int64_t MedianDistanceFrom(int64_t center) const;

  // Calls visit(bucket, count) for every bucket that holds something, by bucket.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (uint32_t i = 0; i < counts_.size(); ++i)
      if (counts_[i] != 0) visit(first_ + i, counts_[i]);
  }

  // The whole state, to store or send.
  template <class Archive>
  void Transfer(Archive& archive) {
    if constexpr (Archive::kReads) {
      *this = {};
      uint32_t buckets = 0;
      archive(buckets);
      archive.Require(buckets <= kBuckets);
      for (uint32_t i = 0; i < buckets && archive.ok(); ++i) {
        uint32_t bucket = 0;
        uint64_t count = 0;
        archive(bucket);
        archive(count);
        archive.Require(bucket < kBuckets);
        if (archive.ok()) AddTo(bucket, count);
      }
    } else {
      uint32_t buckets = 0;
      ForEach([&](uint32_t, uint64_t) { ++buckets; });
      archive(buckets);
      ForEach([&](uint32_t bucket, uint64_t count) {
        archive(bucket);
        archive(count);
      });
    }
  }

  // Equal distributions compare equal, however they were built.
  friend bool operator==(const Sketch& a, const Sketch& b);

 private:
  void Cover(uint32_t bucket);

  uint64_t count_ = 0;
  uint32_t first_ = 0;  // the bucket of counts_[0], a multiple of 64
  std::vector<uint64_t> counts_;
};

}  // namespace gpusonde::model
