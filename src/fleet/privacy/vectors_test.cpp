// SPDX-License-Identifier: Apache-2.0
// Known answers, made by an independent implementation: ../shared/vectors/README.md.
#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fleet/privacy/bfv.h"

namespace gpusonde::privacy {
namespace {

constexpr const char* kFile = "../shared/vectors/bfv_vectors.json.gz";

std::string Inflate(const char* path) {
  std::string text;
  const gzFile file = gzopen(path, "rb");
  if (file == nullptr) return text;
  char buffer[1 << 16];
  for (int count; (count = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  gzclose(file);
  return text;
}

// Both primes' residues, lowest degree first.
Evaluated Read(const nlohmann::json& residues) {
  Polynomial polynomial;
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (size_t i = 0; i < kDegree; ++i) polynomial.modulo(prime)[i] = residues[prime][i].get<uint64_t>();
  return Evaluate(std::move(polynomial));
}

TEST(Vectors, AnIndependentImplementationsCiphertextsAreDecryptedAndAddedExactly) {
  const std::string text = Inflate(kFile);
  if (text.empty()) GTEST_SKIP() << kFile << " isn't here";
  const auto vectors = nlohmann::json::parse(text);
  ASSERT_EQ(vectors["n"], kDegree);
  for (size_t prime = 0; prime < kPrimes; ++prime) ASSERT_EQ(vectors["q"][prime], kModuli[prime].prime());
  constexpr PlaintextBits kBits{40};
  ASSERT_EQ(vectors["t"], uint64_t{1} << kBits.value);
  const auto coefficients = vectors["secret"].get<std::vector<int64_t>>();
  const SecretKey secret = SecretKey::FromCoefficients(std::span<const int64_t, kDegree>(coefficients));

  Ciphertext sum;
  std::vector<uint64_t> last;
  ASSERT_EQ(vectors["cases"].size(), 4u);
  for (const auto& one : vectors["cases"]) {
    const Ciphertext ciphertext{Read(one["ciphertext"][0]), Read(one["ciphertext"][1])};
    const auto found = Decrypt(secret, kBits, ciphertext);
    last = one["message"].get<std::vector<uint64_t>>();
    EXPECT_TRUE(std::ranges::equal(found.values(), last)) << one["name"];
    if (&one != &vectors["cases"].back()) Add(sum, ciphertext);
  }
  EXPECT_TRUE(std::ranges::equal(Decrypt(secret, kBits, sum).values(), last)) << "our sum of the first three";
}

}  // namespace
}  // namespace gpusonde::privacy
