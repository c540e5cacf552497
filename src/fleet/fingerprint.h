// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace gpusonde::fleet {

inline constexpr size_t kFeatures = 256;
// The length of every fingerprint's vector before rounding, which adds at most √256/2 = 8. The product of two
// is therefore below 2^19 in absolute value, whatever the kernels are, and fits into plaintexts modulo 2^20.
inline constexpr int kFingerprintLength = 716;
static_assert((kFingerprintLength + 8) * (kFingerprintLength + 8) < 1 << 19);

// An application's kernels as a vector of integers, whose direction identifies the application. All zeros if
// no kernel was observed.
using Fingerprint = std::array<int16_t, kFeatures>;

// The scalar product: kFingerprintLength² for equal fingerprints, about 0 for unrelated ones.
inline int32_t Score(const Fingerprint& a, const Fingerprint& b) {
  int32_t score = 0;
  for (size_t i = 0; i < kFeatures; ++i) score += int32_t{a[i]} * b[i];
  return score;
}

// A fingerprint that was written elsewhere. Errors: kInvalidArgument, as the rest of a sentence about it, for
// any that no kernels have: of another size, or longer than kFingerprintLength and rounding allow, whose
// scores could overflow.
Result<Fingerprint> ReadFingerprint(std::span<const int64_t> features);

// Makes a fingerprint of a stream of kernels. Features are the words of the kernels' names, whole names, and
// names two and three in a row on one stream (n-grams), each weighted by the square root of its share of GPU
// time, which reflects both frequency and duration, and keeps a single kernel from dominating. Features
// are hashed to 256 places and signs (Weinberger et al., "Feature hashing", 2009), so that collisions cancel
// on average. Not thread-safe.
class FingerprintBuilder {
 public:
  // Adds a finished kernel; calls are in time order on each stream.
  void Add(int64_t stream, std::string_view name, int64_t duration_ns);
  Fingerprint Build() const;

  // The features by their hash, before hashing to places and rounding; for comparison in evaluations.
  std::map<uint64_t, double> Features() const;

 private:
  struct Kernel {
    uint64_t id = 0;
    std::vector<uint64_t> words;
    double time_ns = 0;
  };
  struct Recent {
    uint64_t last = 0;  // 0: none yet
    uint64_t before = 0;
  };

  Kernel& Find(std::string_view name);

  struct HashName {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  std::unordered_map<std::string, Kernel, HashName, std::equal_to<>> kernels_;
  std::map<int64_t, Recent> streams_;
  // Whole numbers: exact, in any order, up to 2^53 ns; beyond, which is months, nothing overflows.
  std::unordered_map<uint64_t, double> time_ns_;  // by n-gram of two and three
  double total_ns_ = 0;
};

}  // namespace gpusonde::fleet
