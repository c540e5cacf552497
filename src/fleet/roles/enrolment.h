// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "base/result.h"
#include "fleet/privacy/masks.h"
#include "fleet/privacy/wiped.h"
#include "fleet/roles/report.h"

namespace gpusonde::fleet {

using ExchangeOpen = std::array<uint8_t, 32>;

// An X25519 key pair (RFC 7748), from which a device and a decryptor derive a common mask key. For the
// enrolments of one epoch, after which both sides destroy theirs: who gets one later can derive the mask keys
// of that epoch again, and from them those of all later ones. Move-only, can't be read, wiped on destruction.
// Thread-safe.
class ExchangeKey {
 public:
  explicit ExchangeKey(privacy::KeyBytes secret);

  const ExchangeOpen& open() const { return open_; }
  // Both sides of one exchange get the same key; `id` is the device's. Errors: those of
  // MaskKey::FromExchange.
  Result<privacy::MaskKey> AsDevice(const ExchangeOpen& decryptor, uint64_t id, uint32_t epoch) const;
  Result<privacy::MaskKey> AsDecryptor(const ExchangeOpen& device, uint64_t id, uint32_t epoch) const;

 private:
  ExchangeOpen open_{};
  privacy::Wiped<uint8_t> secret_;
};

// The enrolled devices, from the enrolment authority for the aggregator. Concurrent reads are thread-safe.
class Directory {
 public:
  // From its first epoch on. kInvalidArgument if the device is enrolled already.
  Status Add(uint64_t device, const VerifyKey& key, uint32_t first_epoch = 0);
  void Remove(uint64_t device) { members_.erase(device); }
  // Removes it from this epoch on, but not from earlier ones, whose lists may have it.
  void Expel(uint64_t device, uint32_t from_epoch);

  // Null if it isn't enrolled in this epoch.
  const VerifyKey* Find(uint64_t device, uint32_t epoch) const;
  size_t size() const { return members_.size(); }

 private:
  struct Member {
    VerifyKey key{};
    uint32_t first_epoch = 0;
    uint32_t end_epoch = std::numeric_limits<uint32_t>::max();
  };

  std::unordered_map<uint64_t, Member> members_;
};

}  // namespace gpusonde::fleet
