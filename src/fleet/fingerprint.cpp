// SPDX-License-Identifier: Apache-2.0
#include "fleet/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/id128.h"
#include "base/int128.h"
#include "fleet/kernel_name.h"

namespace gpusonde::fleet {
namespace {

// Bound for programs that generate names; all further names count as one kernel.
constexpr size_t kMaxKernels = 65'536;
// And for those that launch kernels in ever other orders, of which each pair may be a new sequence: further
// ones are not counted.
constexpr size_t kMaxSequences = 262'144;

// Rare features are more specific: all PyTorch programs share words, few share three kernels in a row.
constexpr double kNameFactor = 2;
constexpr double kTwoFactor = 4;
constexpr double kThreeFactor = 8;

// Both numbers are hashes already; the product mixes all bits, and depends on their order.
uint64_t HashPair(uint64_t a, uint64_t b) {
  const Uint128 product = Uint128{a ^ 0x9e3779b97f4a7c15} * (b ^ 0xd1b54a32d192ed03);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Rounding adds at most √256/2 = 8 to the length of a fingerprint.
constexpr int64_t kMaxLength = kFingerprintLength + 8;

}  // namespace

Result<Fingerprint> ReadFingerprint(std::span<const int64_t> features) {
  if (features.size() != kFeatures)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("has {} numbers instead of {}", features.size(), kFeatures));
  Fingerprint fingerprint{};
  int64_t square = 0;
  for (size_t i = 0; i < kFeatures; ++i) {
    if (features[i] < -kMaxLength || features[i] > kMaxLength)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("has number {}, which is not between -{} and {}",
                                                           features[i], kMaxLength, kMaxLength));
    fingerprint[i] = static_cast<int16_t>(features[i]);
    square += features[i] * features[i];
  }
  if (square > kMaxLength * kMaxLength)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("is longer than {}", kFingerprintLength));
  return fingerprint;
}

FingerprintBuilder::Kernel& FingerprintBuilder::Find(std::string_view name) {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  if (kernels_.size() >= kMaxKernels) return kernels_.begin()->second;
  Kernel kernel;
  IdHasher whole("fleet kernel");
  std::vector<std::string> words = KernelWords(name);
  for (const std::string& word : words) whole.Add(word);
  kernel.id = whole.Finish().low;
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  for (const std::string& word : words) kernel.words.push_back(IdHasher("fleet word").Add(word).Finish().low);
  return kernels_.emplace(name, std::move(kernel)).first->second;
}

void FingerprintBuilder::Add(int64_t stream, std::string_view name, int64_t duration_ns) {
  if (duration_ns <= 0) return;
  Kernel& kernel = Find(name);
  Recent& recent = streams_[stream];
  const auto time_ns = static_cast<double>(duration_ns);
  total_ns_ += time_ns;
  kernel.time_ns += time_ns;
  const auto count = [&](uint64_t sequence, double factor) {
    const auto found = time_ns_.find(sequence);
    if (found != time_ns_.end())
      found->second += factor * time_ns;
    else if (time_ns_.size() < kMaxSequences)
      time_ns_.emplace(sequence, factor * time_ns);
  };
  if (recent.last != 0) {
    const uint64_t two = HashPair(recent.last, kernel.id);
    count(two, kTwoFactor);
    if (recent.before != 0) count(HashPair(recent.before, two), kThreeFactor);
  }
  recent = {kernel.id, recent.last};
}

std::map<uint64_t, double> FingerprintBuilder::Features() const {
  std::map<uint64_t, double> times_ns(time_ns_.begin(), time_ns_.end());
  for (const auto& [name, kernel] : kernels_) {
    if (kernel.time_ns == 0) continue;
    for (const uint64_t word : kernel.words) times_ns[word] += kernel.time_ns;
    times_ns[kernel.id] += kNameFactor * kernel.time_ns;
  }
  std::map<uint64_t, double> features;
  for (const auto& [feature, time_ns] : times_ns) features[feature] = std::sqrt(time_ns / total_ns_);
  return features;
}

Fingerprint FingerprintBuilder::Build() const {
  // Summed by feature, so that floating-point sums don't depend on the order of kernels.
  std::array<double, kFeatures> sums{};
  for (const auto& [feature, weight] : Features())
    sums[feature % kFeatures] += (feature >> 63) != 0 ? weight : -weight;
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  Fingerprint fingerprint{};
  if (squares == 0) return fingerprint;
  for (size_t i = 0; i < kFeatures; ++i)
    fingerprint[i] = static_cast<int16_t>(std::lround(sums[i] * kFingerprintLength / std::sqrt(squares)));
  return fingerprint;
}

}  // namespace gpusonde::fleet
