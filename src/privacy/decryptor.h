// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "privacy/budget.h"
#include "privacy/masks.h"

namespace gpusonde::privacy {

// The reports that a sum is of: one epoch and page, each device once.
class ReportList {
 public:
  struct Entry {
    uint64_t device = 0;
    Salt salt{};
    bool operator==(const Entry&) const = default;
  };

  // kInvalidArgument when a device is in it twice.
  static Result<ReportList> Create(uint32_t epoch, uint32_t page, std::vector<Entry> entries);

  uint32_t epoch() const { return epoch_; }
  uint32_t page() const { return page_; }
  std::span<const Entry> entries() const { return entries_; }  // by device
  // What decryptors agree on before they answer: BLAKE2b-256 of all of it.
  const std::array<uint8_t, 32>& hash() const { return hash_; }

 private:
  ReportList() = default;

  uint32_t epoch_ = 0;
  uint32_t page_ = 0;
  std::vector<Entry> entries_;
  std::array<uint8_t, 32> hash_{};
};

// What one decryptor holds, and the rules by which it answers. One answer for a list, one list for a report:
// the same list gets the same answer again, noise included, and a report that was answered for in one list is
// refused in any other. Not thread-safe; no I/O: whoever runs it persists before it tells.
class MaskDecryptor {
 public:
  struct Rules {
    uint64_t min_reports = 1000;
    double epsilon = 14.8;  // of a device and page, in all its windows: a week of hours at ε = 1
    double delta = 1e-9;
    uint64_t sigma = kNoiseSigma;
  };

  // `secret`: where the noise comes from; its own, never told.
  MaskDecryptor(Rules rules, KeyBytes secret);

  // kInvalidArgument for a device that is enrolled.
  Status Enrol(uint64_t device, MaskKey key);

  // The sum of the list's masks less this decryptor's noise: the sum of the reports, less the answers of all,
  // is the sum of the messages plus everybody's noise. Errors, and then nothing is spent: kInvalidArgument
  // for a list smaller than the minimum; kNotFound for a device that isn't enrolled; kPermissionDenied for a
  // report that was answered for already, or a device without budget on the page; those of MaskKey::AdvanceTo
  // for an epoch before the newest one that any answer was for.
  Result<std::vector<uint32_t>> Answer(const ReportList& list);

  // Keys go on to this epoch, and nothing older can be answered any more.
  Status Forget(uint32_t before_epoch);

 private:
  struct Device {
    MaskKey key;
    std::map<uint32_t, Budget> budgets;                 // by page
    std::map<uint32_t, std::array<uint8_t, 32>> spent;  // by epoch: the list
  };

  Status Check(const ReportList& list) const;

  Rules rules_;
  Budget fresh_budget_;
  Wiped<uint8_t> secret_;
  std::map<uint64_t, Device> devices_;
};

}  // namespace gpusonde::privacy
