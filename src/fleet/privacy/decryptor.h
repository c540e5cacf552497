// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/budget.h"
#include "fleet/privacy/masks.h"

namespace gpusonde::privacy {

using ListHash = std::array<uint8_t, 32>;

// The reports of a sum: of one epoch and page, each device once.
class ReportList {
 public:
  struct Entry {
    uint64_t device = 0;
    Salt salt{};
    bool operator==(const Entry&) const = default;
  };

  // kInvalidArgument if a device occurs twice.
  static Result<ReportList> Create(uint32_t epoch, uint32_t page, std::vector<Entry> entries);

  uint32_t epoch() const { return epoch_; }
  uint32_t page() const { return page_; }
  std::span<const Entry> entries() const { return entries_; }  // by device
  // The hash on which decryptors agree before they answer: BLAKE2b-256 of the whole list.
  const ListHash& hash() const { return hash_; }

 private:
  ReportList() = default;

  uint32_t epoch_ = 0;
  uint32_t page_ = 0;
  std::vector<Entry> entries_;
  ListHash hash_{};
};

// A decryptor's noise key for an epoch, from that of an earlier one: ratcheted like mask keys, so that one
// who steals it later can't take the noise off earlier sums.
Wiped<uint8_t> RatchetNoiseKey(KeyBytes key, uint32_t from_epoch, uint32_t to_epoch);

// The noise that a decryptor with this key adds to its answer for a list: one draw for each slot, the same
// each time (docs/fleet/privacy.md, The scheme).
std::vector<int64_t> NoiseOf(KeyBytes key, const ListHash& list, uint64_t sigma);

// A decryptor's answer for a list. Move-only; used up by one Unmask.
class MaskAnswer {
 public:
  MaskAnswer(MaskAnswer&&) = default;
  MaskAnswer& operator=(MaskAnswer&&) = default;

  const ListHash& list() const { return list_; }
  Slots slots() const { return Slots(slots_); }

 private:
  friend class MaskDecryptor;
  friend MaskAnswer AnswerFrom(const ListHash& list, Slots slots);
  MaskAnswer(const ListHash& list, std::vector<uint32_t> slots) : list_(list), slots_(std::move(slots)) {}

  ListHash list_;
  std::vector<uint32_t> slots_;
};

// The answer that a decryptor sent.
MaskAnswer AnswerFrom(const ListHash& list, Slots slots);

// The sum of the reports' messages and all decryptors' noise, which is public.
struct NoisySum {
  uint64_t reports = 0;
  uint32_t answers = 0;        // each of them with noise of its own
  std::vector<int32_t> slots;  // kReportSlots; true sums stay below 2^31 for up to 8 million reports
};

// Uses up the sum and all answers. kInvalidArgument if the sum has another number of reports than the list,
// or an answer is for another list; the sum is lost then. Without every decryptor's answer the result is
// uniformly random.
Result<NoisySum> Unmask(MaskedSum sum, const ReportList& list, std::vector<MaskAnswer>&& answers);

// A decryptor's state, and the rules by which it answers. One answer for a list, one list for a report:
// the same list gets the same answer again, noise included, and a report that was answered for in one list is
// refused in any other. Not thread-safe; no I/O: the caller persists the state before it publishes an answer.
class MaskDecryptor {
 public:
  struct Rules {
    uint64_t min_reports = 1000;
    double epsilon = 14.8;  // of a device, in all its windows: 183 of an hour at the noise below
    double delta = 1e-9;
    uint64_t sigma = kNoiseSigma;
  };

  // `noise_key`: that of `epoch`, the first to answer for; never revealed.
  MaskDecryptor(Rules rules, KeyBytes noise_key, uint32_t epoch);

  // kInvalidArgument if the device is enrolled already, or was: with a fresh budget and no record of what was
  // answered, its reports could be answered for once more.
  Status Enrol(uint64_t device, MaskKey key);

  // The sum of the list's masks less this decryptor's noise: the sum of the reports, less the answers of all,
  // is the sum of the messages plus everybody's noise. The caller has checked that the list is one that was
  // drawn (fleet/roles/draw.h). Errors, and then nothing is spent: kInvalidArgument
  // for a list smaller than the minimum; kNotFound for a device that isn't enrolled; kPermissionDenied for a
  // report that was answered for already, or a device without budget; those of MaskKey::AdvanceTo for an
  // epoch before the newest one that any answer was for, or far ahead.
  Result<MaskAnswer> Answer(const ReportList& list);

  // How many windows of a device it may still answer for; 0 for one that isn't enrolled.
  int64_t WindowsLeft(uint64_t device) const;

  // Removes a device and erases its key. It can't be enrolled again under this id.
  void Remove(uint64_t device);

  // All of its state, with its keys. Load takes the rules that the caller knows, which are not a part of it.
  // Errors: kCorrupt.
  void Save(ByteWriter& out) const;
  static Result<MaskDecryptor> Load(Rules rules, ByteReader& in);

  // Advances all keys to this epoch; older epochs can't be answered any more.
  Status Forget(uint32_t before_epoch);

 private:
  struct Device {
    MaskKey key;
    Budget budget;
    std::map<uint32_t, ListHash> spent;  // by epoch
  };

  Status Check(const ReportList& list) const;

  Rules rules_;
  Budget fresh_budget_;
  Wiped<uint8_t> noise_key_;
  uint32_t noise_epoch_;
  std::unordered_map<uint64_t, Device> devices_;
  std::unordered_set<uint64_t> removed_;
};

}  // namespace gpusonde::privacy
