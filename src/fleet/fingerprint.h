// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::fleet {

inline constexpr size_t kFeatures = 256;
// The length of every fingerprint's vector, but for rounding: scores of two are below 2^19 in size, so that
// they fit into plaintexts modulo 2^20.
inline constexpr int kFingerprintLength = 720;

// What an application's kernels look like, as a vector of integers: the direction tells the application. All
// zeros when there was nothing to see.
using Fingerprint = std::array<int16_t, kFeatures>;

// The sum of products: kFingerprintLength² for two that are the same, about 0 for two that have nothing in
// common.
int32_t Score(const Fingerprint& a, const Fingerprint& b);

// Makes a fingerprint of a stream of kernels. Features are the words of the kernels' names, whole names, and
// names two and three in a row on one stream (n-grams), each weighed by the square root of its share of the
// GPU's time: which says how often as well as how long, and lets no single kernel drown the others. Features
// are hashed to 256 places and signs (Weinberger et al., "Feature hashing", 2009), so that collisions cancel
// on average. Not thread-safe.
class FingerprintBuilder {
 public:
  // A kernel's end, in order of time on its stream.
  void Add(int64_t stream, std::string_view name, int64_t duration_ns);
  Fingerprint Build() const;

  // The features before they are hashed to places and rounded, by their hash: what evaluations compare with.
  std::map<uint64_t, double> Features() const;

 private:
  struct Kernel {
    uint64_t id = 0;
    std::vector<uint64_t> words;
    int64_t time_ns = 0;
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
  std::unordered_map<uint64_t, int64_t> time_ns_;  // by n-gram of two and three
  int64_t total_ns_ = 0;
};

}  // namespace gpusonde::fleet
