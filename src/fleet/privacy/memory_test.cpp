// SPDX-License-Identifier: Apache-2.0
// After their use, secrets are nowhere in this process's writable memory, which is searched.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fleet/privacy/bfv.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/privacy/masks.h"

namespace gpusonde::privacy {
namespace {

// The searched value, obfuscated so that the search doesn't find itself.
constexpr uint8_t kDisguise = 0x5a;
constexpr size_t kNeedleBytes = 16;
using Needle = std::array<uint8_t, kNeedleBytes>;

Needle Disguise(std::span<const uint8_t> secret) {
  Needle needle;
  for (size_t i = 0; i < kNeedleBytes; ++i) needle[i] = secret[i] ^ kDisguise;
  return needle;
}

// The number of occurrences in writable memory, without the buffer, which is wiped after each part.
int CountInMemory(const Needle& needle) {
  constexpr size_t kPart = 1 << 16;
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (memory < 0) return -1;
  std::vector<uint8_t> buffer(kPart + kNeedleBytes);
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) != 3 || access[1] != 'w') continue;
    if (end - begin > 1ul << 30) continue;  // a sanitizer's shadow
    for (unsigned long at = begin; at < end; at += kPart) {
      const ssize_t got = ::pread(memory, buffer.data(), buffer.size(), static_cast<off_t>(at));
      for (ssize_t i = 0; i + static_cast<ssize_t>(kNeedleBytes) <= got; ++i) {
        // Comparing the obfuscated first byte first avoids most comparisons.
        if (static_cast<uint8_t>(buffer[static_cast<size_t>(i)] ^ kDisguise) != needle[0]) continue;
        bool same = true;
        for (size_t j = 1; j < kNeedleBytes && same; ++j)
          same = static_cast<uint8_t>(buffer[static_cast<size_t>(i) + j] ^ kDisguise) == needle[j];
        count += same && i < static_cast<ssize_t>(kPart);
      }
      sodium_memzero(buffer.data(), buffer.size());  // which the compiler can't remove
    }
  }
  ::close(memory);
  return count;
}

// A separate function, as the compiler may keep copies of values in the caller's frame.
[[gnu::noinline]] void UseAndExpectCopies(KeyBytes secret, const Needle& needle) {
  Random random = Random::FromKey(secret);
  EXPECT_NE(random.Next(), random.Next());
  const auto derived = Derive(secret, "test", {});
  const MaskDecryptor decryptor(MaskDecryptor::Rules(), secret, 7);
  EXPECT_GE(CountInMemory(needle), 3) << "copies of it are in use";
}

TEST(Memory, HoldsASecretWhileItIsUsedAndNotAfterwards) {
  auto secret = std::make_unique<Wiped<uint8_t>>(kKeyBytes);
  randombytes_buf(secret->values().data(), kKeyBytes);
  const Needle needle = Disguise(secret->values());
  ASSERT_GE(CountInMemory(needle), 1) << "the search works";
  UseAndExpectCopies(KeyBytes(secret->values()), needle);
  secret.reset();
  EXPECT_EQ(CountInMemory(needle), 0);
}

TEST(Memory, ARatchetedKeyIsGone) {
  std::array<uint8_t, kKeyBytes> device{1};
  std::array<uint8_t, kKeyBytes> decryptor{2};
  std::array<uint8_t, kKeyBytes> device_open;
  std::array<uint8_t, kKeyBytes> decryptor_open;
  crypto_scalarmult_base(device_open.data(), device.data());
  crypto_scalarmult_base(decryptor_open.data(), decryptor.data());
  // The key of the first epoch, computed like FromExchange does, for the search.
  Needle needle;
  {
    Wiped<uint8_t> shared(kKeyBytes);
    ASSERT_EQ(crypto_scalarmult(shared.values().data(), device.data(), decryptor_open.data()), 0);
    std::vector<uint8_t> parties(device_open.begin(), device_open.end());
    parties.insert(parties.end(), decryptor_open.begin(), decryptor_open.end());
    parties.insert(parties.end(), {5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0});
    const auto key = Derive(KeyBytes(shared.values()), "gpusonde mask key", parties);
    needle = Disguise(key.values());
  }
  EXPECT_EQ(CountInMemory(needle), 0);
  auto key = MaskKey::FromExchange(device, device_open, decryptor_open, true, 5, 7);
  ASSERT_TRUE(key.has_value());
  std::vector<uint32_t> slots(kReportSlots);
  key->Add({.page = 1, .salt = {}}, std::span<uint32_t, kReportSlots>(slots));
  EXPECT_GE(CountInMemory(needle), 1);
  ASSERT_TRUE(key->AdvanceTo(8).has_value());
  EXPECT_EQ(CountInMemory(needle), 0);
}

[[gnu::noinline]] MaskDecryptor WithKey(KeyBytes key) { return {MaskDecryptor::Rules(), key, 7}; }

TEST(Memory, ARatchetedNoiseKeyIsGone) {
  // When a library calls a function for the first time, the dynamic linker saves vector registers on the
  // stack, in which the secret is after Disguise.
  ASSERT_GE(CountInMemory({}), 0);
  auto key = std::make_unique<Wiped<uint8_t>>(kKeyBytes);
  randombytes_buf(key->values().data(), kKeyBytes);
  const Needle needle = Disguise(key->values());
  MaskDecryptor decryptor = WithKey(KeyBytes(key->values()));
  key.reset();
  EXPECT_GE(CountInMemory(needle), 1);
  ASSERT_TRUE(decryptor.Forget(8).has_value());
  EXPECT_EQ(CountInMemory(needle), 0);
}

}  // namespace
}  // namespace gpusonde::privacy
