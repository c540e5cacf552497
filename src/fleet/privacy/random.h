// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/int128.h"
#include "fleet/privacy/wiped.h"

namespace gpusonde::privacy {

inline constexpr size_t kKeyBytes = 32;
using KeyBytes = std::span<const uint8_t, kKeyBytes>;

// Lets libsodium select the fastest code for this processor, once; without it everything works in portable
// code that is several times slower. Called wherever keys or randomness are made.
// Thread-safe.
void ReadySodium();

// Derives 32 secret bytes from a key, a label that separates uses, and data: keyed BLAKE2b-256 over the
// length-prefixed label and the data. Source: RFC 7693.
Wiped<uint8_t> Derive(KeyBytes key, std::string_view label, std::span<const uint8_t> data);

// A stream of uniform bits: ChaCha20 (RFC 8439) under a key, from its first block; deterministic for a key.
// Up to 256 GiB. Not thread-safe.
class Random {
 public:
  // With a fresh key from the system.
  static Random FromSystem();
  // Deterministic: for noise that must be the same after a crash (docs/fleet/privacy.md, The scheme), and for
  // tests.
  static Random FromKey(KeyBytes key);

  void Fill(std::span<uint8_t> out);
  uint64_t Next();
  // Uniform in [0, bound), bound > 0, by rejection. Its time depends on rejected values, not on the result.
  Uint128 Below(Uint128 bound);
  bool Bit() { return (Next() & 1) != 0; }

 private:
  explicit Random(Wiped<uint8_t> key);
  void Refill();

  static constexpr size_t kBufferBytes = 4096;
  Wiped<uint8_t> key_;
  Wiped<uint8_t> buffer_;
  size_t used_ = kBufferBytes;
  uint32_t block_ = 0;
};

}  // namespace gpusonde::privacy
