// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/roles/aggregator.h"

namespace gpusonde::fleet {

// What became of the sum of one place and cohort.
enum class Outcome : uint8_t {
  kReleased,
  kRefused,     // it can't be the sum of honest reports (CheckBalance)
  kUnanswered,  // a decryptor didn't answer in time
};
inline constexpr size_t kOutcomes = 3;
// Stable, in results: "released".
std::string_view Name(Outcome outcome);

// What an epoch released: public, as all noise is in it.
struct Release {
  struct List {
    uint32_t place = 0;
    uint32_t cohort = 0;
    uint64_t reports = 0;
    uint32_t answers = 0;  // each has noise of its own
    Outcome outcome = Outcome::kUnanswered;
    std::vector<int32_t> slots;  // kReportSlots if released, else empty

    bool operator==(const List&) const = default;
  };

  uint32_t epoch = 0;
  uint64_t devices = 0;  // enrolled by its end
  uint64_t expelled = 0;
  std::array<uint64_t, kVerdicts> verdicts{};  // of the reports that arrived
  uint32_t lists_too_small = 0;
  std::vector<List> lists;

  bool operator==(const Release&) const = default;
};

// FOLDER/EPOCH.release, written atomically. Errors: those of the file system.
Status WriteRelease(const std::string& folder, const Release& release);
// Errors: kCorrupt; kNotFound; those of the file system.
Result<Release> ReadRelease(const std::string& folder, uint32_t epoch);
// The epochs with a file in the folder, in their order.
Result<std::vector<uint32_t>> ListReleases(const std::string& folder);

}  // namespace gpusonde::fleet
