// SPDX-License-Identifier: Apache-2.0
// A device's computations with its secrets marked as undefined: valgrind then reports every branch and
// address that depends on them (Langley's ctgrind). `constant_time leaky` has such a branch, which must be
// found.
#include <fmt/format.h>
#include <valgrind/memcheck.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "fleet/catalog.h"
#include "fleet/privacy/bfv.h"
#include "fleet/privacy/constant_time.h"
#include "fleet/privacy/masks.h"
#include "fleet/roles/message.h"

namespace {

using namespace gpusonde::privacy;  // NOLINT(google-build-using-namespace): a program of its own

template <class T>
void Poison(const std::vector<T>& values) {
  VALGRIND_MAKE_MEM_UNDEFINED(values.data(), values.size() * sizeof(T));
}
template <class Range>
void Publish(const Range& values) {
  VALGRIND_MAKE_MEM_DEFINED(values.data(), values.size() * sizeof(values[0]));
}

std::array<uint8_t, kKeyBytes> Bytes(uint8_t byte) {
  std::array<uint8_t, kKeyBytes> bytes;
  bytes.fill(byte);
  return bytes;
}

// A query, its answer and its evaluation: the application and the key are secret.
void Identify() {
  Random random = Random::FromKey(Bytes(1));
  std::vector<int64_t> coefficients(kDegree);
  for (size_t i = 0; i < kDegree; ++i) coefficients[i] = static_cast<int64_t>(i % 3) - 1;
  Poison(coefficients);
  const SecretKey secret = SecretKey::FromCoefficients(std::span<const int64_t, kDegree>(coefficients));
  const PublicKey open = secret.MakePublic(random);
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    Publish(open.a.modulo(prime));
    Publish(open.b.modulo(prime));
  }
  std::vector<uint64_t> features(kDegree, 5);
  Poison(features);
  Ciphertext query = Encrypt(open, kIdentificationBits, Plaintext(features), random);
  for (Evaluated* part : {&query.c0, &query.c1})
    for (size_t prime = 0; prime < kPrimes; ++prime) Publish(part->modulo(prime));
  const std::vector<uint32_t> places = {63, 127, 191};
  const auto scores = Decrypt(secret, kIdentificationBits, Switch(std::move(query), places));
  std::vector<int32_t> narrow;
  for (const uint64_t score : scores.values()) narrow.push_back(static_cast<int32_t>(score));
  gpusonde::fleet::Match match = gpusonde::fleet::BestMatch(narrow);
  // In public mode.
  gpusonde::fleet::Fingerprint fingerprint{};
  fingerprint.fill(40);
  const gpusonde::fleet::Catalog catalog{.applications = {{"first", fingerprint}, {"second", fingerprint}}};
  VALGRIND_MAKE_MEM_UNDEFINED(fingerprint.data(), sizeof fingerprint);
  match.application += gpusonde::fleet::BestMatch(Scores(catalog, fingerprint)).application;

  const auto device = Bytes(2);
  std::array<uint8_t, kKeyBytes> device_open{};
  std::array<uint8_t, kKeyBytes> decryptor_open{};
  crypto_scalarmult_base(device_open.data(), device.data());
  crypto_scalarmult_base(decryptor_open.data(), Bytes(3).data());
  std::vector<MaskKey> keys;
  keys.push_back(*MaskKey::FromExchange(device, device_open, decryptor_open, true, 1, 9));
  std::vector<uint32_t> row(kRowSlots, 4);
  Poison(row);
  gpusonde::fleet::Row weights{};
  std::ranges::copy(row, weights.begin());
  gpusonde::fleet::Finding finding;
  finding.application = match.application;
  finding.signature = match.application + 1;
  finding.is_known = match.is_known;
  VALGRIND_MAKE_MEM_UNDEFINED(&finding.is_busy, sizeof finding.is_busy);
  const gpusonde::fleet::Layout layout{.groups = 1, .pages = 1, .cohorts = 1};
  for (const uint32_t place : {0u, layout.signatures_place()}) {
    const auto message = MessageOf(finding, {.place = place}, layout, weights);
    const auto report = MaskReport(Slots(message), keys, {.page = place, .salt = {}});
    Publish(report);
    fmt::print("{}\n", report[0]);
  }
}

void Leak() {
  std::vector<uint32_t> secret(2, 7);
  Poison(secret);
  if (secret[0] > secret[1]) fmt::print("leaked\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string_view(arguments[1]) == "leaky")
    Leak();
  else
    Identify();
}
