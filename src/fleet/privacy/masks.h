// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/byte_stream.h"
#include "fleet/privacy/random.h"
#include "fleet/privacy/wiped.h"

// Additively homomorphic encryption with masks: report = m + Σⱼ PRF(kⱼ, epoch ‖ page ‖ salt) modulo 2^32,
// slot by slot, where the device and decryptor j share kⱼ. Sums of reports are masked by the sums of
// their masks. Source: Castelluccia, Mykletun, Tsudik, "Efficient aggregation of encrypted data in wireless
// sensor networks" (2005).
//
// Security: while one decryptor keeps its keys, a report is uniformly random to everybody else if ChaCha20
// and keyed BLAKE2b are pseudorandom functions. A mask is used once: it depends on epoch and salt, and a
// device's second report for an epoch has another salt. Keys are ratcheted by BLAKE2b each epoch, so that
// keys stolen later don't unmask earlier reports.
//
// Range: sums are correct while every slot's true sum is below 2^32, which allows 16 million reports of 255.
namespace gpusonde::privacy {

inline constexpr size_t kReportRows = 64;  // 61 applications, idle, unknown, elsewhere
inline constexpr size_t kRowSlots = 64;    // 63 bins and the contributor
inline constexpr size_t kReportSlots = kReportRows * kRowSlots;
inline constexpr uint32_t kReportWeight = 255;  // sum of a row's bins, and its contributor slot

using Slots = std::span<const uint32_t, kReportSlots>;
using Salt = std::array<uint8_t, 16>;

// The use of a mask.
struct MaskUse {
  uint32_t page = 0;
  Salt salt{};
};

// The key that a device shares with a decryptor, for one epoch. Move-only; only Save reads it. Not
// thread-safe.
class MaskKey {
 public:
  // At enrolment: both sides derive the same key from an X25519 exchange (RFC 7748), bound to both public
  // keys and to the device's id: who enrols under another id with a device's public key, which needs no
  // secret, gets other masks, and so can't be listed with the device's salt to multiply its report
  // (decryptor_test.cpp). kInvalidArgument for a public key of small order.
  static Result<MaskKey> FromExchange(KeyBytes own_secret, KeyBytes device_public, KeyBytes decryptor_public,
                                      bool we_are_the_device, uint64_t device, uint32_t epoch);

  // As a part of its role's state. Load takes what Save wrote; whether it was all there, the reader says.
  void Save(ByteWriter& out) const;
  static MaskKey Load(ByteReader& in);

  uint32_t epoch() const { return epoch_; }
  // Ratchets to an epoch and forgets earlier ones. kInvalidArgument for a forgotten epoch, or one more than a
  // year of hours ahead.
  Status AdvanceTo(uint32_t epoch);
  // The error that AdvanceTo would give.
  Status CheckAdvance(uint32_t epoch) const;

  // Adds the mask of this epoch.
  void Add(const MaskUse& use, std::span<uint32_t, kReportSlots> slots) const;

 private:
  MaskKey(Wiped<uint8_t> key, uint32_t epoch) : key_(std::move(key)), epoch_(epoch) {}

  Wiped<uint8_t> key_;
  uint32_t epoch_;
};

// A device's report, masked by all decryptors' keys, which must be of one epoch.
std::vector<uint32_t> MaskReport(Slots message, std::span<const MaskKey> keys, const MaskUse& use);

// A sum of masked reports of one epoch and page, with their number. Merges in any order. Not thread-safe.
class MaskedSum {
 public:
  MaskedSum() : slots_(kReportSlots) {}

  void Add(Slots report);
  void Add(const MaskedSum& other);

  uint64_t reports() const { return reports_; }
  Slots slots() const { return Slots(slots_); }

 private:
  // Removes the masks, once (decryptor.h).
  friend Result<struct NoisySum> Unmask(MaskedSum sum, const class ReportList& list,
                                        std::vector<class MaskAnswer>&& answers);
  void Subtract(Slots answer);

  std::vector<uint32_t> slots_;
  uint64_t reports_ = 0;
};

}  // namespace gpusonde::privacy
