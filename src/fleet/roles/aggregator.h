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
#include "fleet/privacy/bfv_decryptor.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/privacy/masks.h"
#include "fleet/roles/enrolment.h"
#include "fleet/roles/report.h"
#include "fleet/sampling.h"

namespace gpusonde::fleet {

// The result of accepting a report.
enum class Verdict : uint8_t {
  kAccepted,
  kMalformed,   // wrong magic or length, or an invalid body
  kStranger,    // of a device that is not enrolled
  kOtherEpoch,  // of an epoch that isn't collected now, or of the other kind
  kOtherPlace,  // of a place not assigned to the device
  kDuplicate,   // of a device that reported already: not added again
  kBadSignature,
};
inline constexpr size_t kVerdicts = 7;
// Stable, in results: "bad_signature".
std::string_view Name(Verdict verdict);

// A sum of BFV reports, with their number. Not thread-safe.
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

// The sum of the reports of one place and cohort, and their devices.
struct Gathered {
  std::variant<privacy::MaskedSum, CiphertextSum> sum;
  std::vector<privacy::ReportList::Entry> entries;
};

// A worker of the aggregator for one epoch: verifies untrusted reports and adds the valid ones. Sees masked
// numbers only. Any number of workers run in parallel, each for devices of its own, and merge in any order.
// Not thread-safe.
class Intake {
 public:
  // The directory must outlive it and not change meanwhile.
  Intake(const Directory& directory, ReportKind kind, uint32_t epoch, const Beacon& beacon,
         const Layout& layout);

  // Checks cheap properties first: length, header, directory, assignment, duplicates; then the signature,
  // then the body.
  Verdict Accept(std::span<const uint8_t> report);

  // kInvalidArgument if a device is in both, which a correct division of devices among workers excludes, or
  // if their epochs differ.
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
