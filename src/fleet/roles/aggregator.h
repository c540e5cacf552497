// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "fleet/roles/enrolment.h"
#include "fleet/roles/report.h"
#include "fleet/sampling.h"
#include "privacy/bfv_decryptor.h"
#include "privacy/decryptor.h"
#include "privacy/masks.h"

namespace gpusonde::fleet {

// What became of a report.
enum class Verdict : uint8_t {
  kAccepted,
  kMalformed,   // no report, by magic and length; or a body that is none
  kStranger,    // of nobody who is enrolled
  kOtherEpoch,  // of an epoch that isn't being gathered, or of the other kind
  kOtherPlace,  // of a place that isn't the device's
  kDuplicate,   // of a device that reported already: not added again
  kBadSignature,
};
inline constexpr size_t kVerdicts = 7;
// Stable, in results: "bad_signature".
std::string_view Name(Verdict verdict);

// BFV reports, added. Knows how many it holds. Not thread-safe.
class CiphertextSum {
 public:
  void Add(const privacy::Ciphertext& report);
  void Add(const CiphertextSum& other);

  uint64_t reports() const { return reports_; }
  const privacy::Ciphertext& ciphertext() const { return sum_; }

 private:
  privacy::Ciphertext sum_;
  uint64_t reports_ = 0;
};

// The reports of one place and cohort: what they sum to, and whose they are.
struct Gathered {
  std::variant<privacy::MaskedSum, CiphertextSum> sum;
  std::vector<privacy::ReportList::Entry> entries;
};

// One worker of the aggregator, for one epoch: takes reports, believes none of them, adds what is good. Sees
// masked numbers only. Any number of them work beside each other, each on devices of its own, and merge in
// any order. Not thread-safe.
class Intake {
 public:
  // The directory must outlive it and not change meanwhile.
  Intake(const Directory& directory, ReportKind kind, uint32_t epoch, const Beacon& beacon,
         const Layout& layout);

  // What is cheap is looked at first: length, header, directory, assignment, duplicates; then the signature;
  // then the body.
  Verdict Accept(std::span<const uint8_t> report);

  // kInvalidArgument when a device is in both, which a right division of devices among workers excludes; or
  // when they are of two epochs.
  Status Merge(Intake other);

  using Place = std::pair<uint32_t, uint32_t>;  // and cohort
  std::map<Place, Gathered>& gathered() { return gathered_; }
  const std::array<uint64_t, kVerdicts>& counts() const { return counts_; }

 private:
  Verdict Judge(std::span<const uint8_t> report);

  const Directory* directory_;
  ReportKind kind_;
  uint32_t epoch_;
  Beacon beacon_;
  Layout layout_;
  std::unordered_set<uint64_t> devices_;
  std::map<Place, Gathered> gathered_;
  std::array<uint64_t, kVerdicts> counts_{};
};

}  // namespace gpusonde::fleet
