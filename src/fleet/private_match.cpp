// SPDX-License-Identifier: Apache-2.0
#include "fleet/private_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gpusonde::fleet {
namespace {

using privacy::kDegree;

constexpr uint64_t kPlaintextMask = (uint64_t{1} << privacy::kIdentificationBits.value) - 1;

// The coefficient that becomes the score of the j-th application of a block.
uint32_t PlaceOf(size_t application) {
  return static_cast<uint32_t>(kFeaturesPerCiphertext * application + kFeaturesPerCiphertext - 1);
}

// The `a` of a query's key: uniform, however the seed was chosen.
privacy::Evaluated Expand(privacy::KeyBytes seed) {
  privacy::Random random =
      privacy::Random::FromKey(privacy::KeyBytes(privacy::Derive(seed, "gpusonde query key", {}).values()));
  return privacy::DrawUniform(random);
}

}  // namespace

PrivateMatcher::PrivateMatcher(privacy::Random& random) : secret_(privacy::SecretKey::Generate(random)) {}

PrivateQuery PrivateMatcher::Ask(const Fingerprint& fingerprint, privacy::Random& random) const {
  PrivateQuery query;
  random.Fill(query.seed);
  privacy::PublicKey key = secret_.MakePublic(Expand(query.seed), random);
  privacy::Wiped<uint64_t> message(kDegree);
  for (size_t part = 0; part < kQueryCiphertexts; ++part) {
    for (size_t i = 0; i < kFeaturesPerCiphertext; ++i)
      message.values()[i] =
          static_cast<uint64_t>(int64_t{fingerprint[part * kFeaturesPerCiphertext + i]}) & kPlaintextMask;
    query.features.push_back(
        privacy::Encrypt(key, privacy::kIdentificationBits, privacy::Plaintext(message.values()), random));
  }
  query.b = std::move(key.b);
  return query;
}

Result<std::vector<int32_t>> PrivateMatcher::Read(std::span<const privacy::SwitchedAnswer> answers,
                                                  size_t applications) const {
  std::vector<int32_t> scores;
  for (const privacy::SwitchedAnswer& answer : answers) {
    const auto block = privacy::Decrypt(secret_, privacy::kIdentificationBits, answer);
    constexpr int kUnused = 32 - privacy::kIdentificationBits.value;
    for (const uint64_t score : block.values())  // sign-extended
      scores.push_back(static_cast<int32_t>(static_cast<uint32_t>(score) << kUnused) >> kUnused);
  }
  if (scores.size() != applications)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("catalog's answer: {} scores instead of {}", scores.size(), applications));
  return scores;
}

PrivateCatalog::PrivateCatalog(const Catalog& catalog) : applications_(catalog.applications.size()) {
  for (size_t first = 0; first < applications_; first += kApplicationsPerAnswer) {
    const size_t count = std::min(kApplicationsPerAnswer, applications_ - first);
    auto& block = factors_.emplace_back();
    for (size_t part = 0; part < kQueryCiphertexts; ++part) {
      std::vector<int64_t> coefficients(kDegree);
      for (size_t j = 0; j < count; ++j)
        for (size_t i = 0; i < kFeaturesPerCiphertext; ++i)
          coefficients[PlaceOf(j) - i] =
              catalog.applications[first + j].fingerprint[part * kFeaturesPerCiphertext + i];
      block.push_back(
          privacy::Evaluate(privacy::FromSigned(std::span<const int64_t, kDegree>(coefficients))));
    }
  }
}

Result<std::vector<privacy::SwitchedAnswer>> PrivateCatalog::Answer(const PrivateQuery& query,
                                                                    privacy::Random& random) const {
  if (query.features.size() != kQueryCiphertexts)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("private query: {} ciphertexts instead of {}",
                                                         query.features.size(), kQueryCiphertexts));
  const privacy::PublicKey key{query.b.Copy(), Expand(query.seed)};
  std::vector<privacy::SwitchedAnswer> answers;
  for (size_t block = 0; block < factors_.size(); ++block) {
    privacy::Ciphertext sum;
    for (size_t part = 0; part < kQueryCiphertexts; ++part) {
      privacy::Ciphertext product = query.features[part].Copy();
      privacy::Multiply(product, factors_[block][part]);
      privacy::Add(sum, product);
    }
    privacy::Rerandomize(sum, key, random);
    std::vector<uint32_t> places;
    for (size_t j = 0; j < std::min(kApplicationsPerAnswer, applications_ - block * kApplicationsPerAnswer);
         ++j)
      places.push_back(PlaceOf(j));
    answers.push_back(privacy::Switch(std::move(sum), places));
  }
  return answers;
}

}  // namespace gpusonde::fleet
