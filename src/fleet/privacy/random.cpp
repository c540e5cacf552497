// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/random.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gpusonde::privacy {
namespace {

constexpr size_t kBlockBytes = 64;

void Add(crypto_generichash_state& state, std::span<const uint8_t> part) {
  crypto_generichash_update(&state, part.data(), part.size());
}

}  // namespace

void ReadySodium() {
  static const int ready = sodium_init();
  static_cast<void>(ready);
}

Wiped<uint8_t> Derive(KeyBytes key, std::string_view label, std::span<const uint8_t> data) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), kKeyBytes);
  const auto label_bytes = static_cast<uint8_t>(label.size());
  Add(state, {&label_bytes, 1});
  Add(state, {reinterpret_cast<const uint8_t*>(label.data()), label_bytes});
  Add(state, data);
  Wiped<uint8_t> out(kKeyBytes);
  crypto_generichash_final(&state, out.values().data(), kKeyBytes);
  sodium_memzero(&state, sizeof state);
  return out;
}

Random::Random(Wiped<uint8_t> key) : key_(std::move(key)), buffer_(kBufferBytes) {}

Random Random::FromSystem() {
  ReadySodium();
  Wiped<uint8_t> key(kKeyBytes);
  randombytes_buf(key.values().data(), kKeyBytes);
  return Random(std::move(key));
}

Random Random::FromKey(KeyBytes key) {
  ReadySodium();
  Wiped<uint8_t> copy(kKeyBytes);
  std::ranges::copy(key, copy.values().begin());
  return Random(std::move(copy));
}

void Random::Refill() {
  constexpr uint8_t kNonce[crypto_stream_chacha20_ietf_NONCEBYTES] = {};
  const auto buffer = buffer_.values();
  sodium_memzero(buffer.data(), buffer.size());
  crypto_stream_chacha20_ietf_xor_ic(buffer.data(), buffer.data(), buffer.size(), kNonce, block_,
                                     key_.values().data());
  block_ += static_cast<uint32_t>(kBufferBytes / kBlockBytes);
  used_ = 0;
}

void Random::Fill(std::span<uint8_t> out) {
  while (!out.empty()) {
    if (used_ == kBufferBytes) Refill();
    const size_t count = std::min(out.size(), kBufferBytes - used_);
    std::memcpy(out.data(), buffer_.values().data() + used_, count);
    used_ += count;
    out = out.subspan(count);
  }
}

uint64_t Random::Next() {
  if (used_ + sizeof(uint64_t) > kBufferBytes) Refill();
  uint64_t value;
  std::memcpy(&value, buffer_.values().data() + used_, sizeof value);
  used_ += sizeof value;
  return value;
}

Uint128 Random::Below(Uint128 bound) {
  const auto top = static_cast<uint64_t>((bound - 1) >> 64);
  const auto low = static_cast<uint64_t>(bound - 1);
  const auto bits = top != 0 ? 64 + std::bit_width(top) : std::bit_width(low);
  if (bits <= 64) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    for (;;)
      if (const uint64_t value = Next() & mask; value < bound) return value;
  }
  const Uint128 mask = bits == 128 ? ~Uint128{0} : (Uint128{1} << bits) - 1;
  for (;;)
    if (const Uint128 value = ((Uint128{Next()} << 64) | Next()) & mask; value < bound) return value;
}

}  // namespace gpusonde::privacy
