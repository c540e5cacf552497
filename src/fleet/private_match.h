// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/catalog.h"
#include "fleet/privacy/bfv.h"

// Identification under encryption: the catalog computes the scores of a fingerprint that it can't read, and
// a device that follows the protocol learns only the scores (docs/fleet/privacy.md, Identification). One that
// makes up its query learns, instead of a score, up to 24 bits of its choice about an application: those of a
// coefficient above the flooding noise.
//
// A query is four ciphertexts under a fresh key of the device: 64 features each, as the coefficients 0 to 63
// of a polynomial. The key's `a` is expanded from a seed: with one of the device's choice, such as 0, the
// answer's encryption of zero would hide nothing, and answers would reveal the fingerprints. The catalog's
// are laid out so that one product gives the scores of 64 applications: application j's features are reversed
// at 64j to 64j+63, so that coefficient 64j+63 of the product is their scalar product. Neighbours reach up to
// 64j+62 only. The four products are added, rerandomised so that they reveal nothing else
// (privacy::Rerandomize), and switched to a modulus of 2^30. Exact: the plaintext modulus 2^20 holds every
// score and its sign.
namespace gpusonde::fleet {

inline constexpr size_t kFeaturesPerCiphertext = 64;
inline constexpr size_t kQueryCiphertexts = kFeatures / kFeaturesPerCiphertext;
inline constexpr size_t kApplicationsPerAnswer = privacy::kDegree / kFeaturesPerCiphertext;

// The device's message; all of it is public.
struct PrivateQuery {
  std::array<uint8_t, privacy::kKeyBytes> seed{};  // of the key's `a`
  privacy::Evaluated b;                            // the rest of the key
  std::vector<privacy::Ciphertext> features;

  size_t bytes() const { return seed.size() + (1 + 2 * features.size()) * privacy::kCiphertextBytes / 2; }
};

// The device's side: one key, one query. Moves only. Not thread-safe.
class PrivateMatcher {
 public:
  explicit PrivateMatcher(privacy::Random& random);

  PrivateQuery Ask(const Fingerprint& fingerprint, privacy::Random& random) const;
  // The scores, in the catalog's order. kCorrupt if their number is not `applications`.
  Result<std::vector<int32_t>> Read(std::span<const privacy::SwitchedAnswer> answers,
                                    size_t applications) const;

 private:
  privacy::SecretKey secret_;
};

// The catalog's side. Thread-safe after construction.
class PrivateCatalog {
 public:
  explicit PrivateCatalog(const Catalog& catalog);

  // One answer for each 64 applications. kInvalidArgument for a query of another shape.
  Result<std::vector<privacy::SwitchedAnswer>> Answer(const PrivateQuery& query,
                                                      privacy::Random& random) const;

 private:
  // By block of 64 applications, then by ciphertext of the query.
  std::vector<std::vector<privacy::Evaluated>> factors_;
  size_t applications_;
};

}  // namespace gpusonde::fleet
