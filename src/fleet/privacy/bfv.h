// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/random.h"
#include "fleet/privacy/ring.h"
#include "fleet/privacy/wiped.h"

// The BFV scheme (Brakerski 2012; Fan, Vercauteren 2012, eprint 2012/144) over the ring of ring.h: additions,
// and products with known polynomials. A ciphertext (c₀, c₁) of m under s: c₀ + c₁·s = round(q·m/t) + noise.
//
// Parameters: N = 4096, q < 2^106, ternary secrets, errors of the centred binomial
// distribution with η = 21 (σ = 3.24): 128 bits against classical attacks by the guidelines of 2024 (eprint
// 2024/463), without margin. The plaintext modulus t is a power of two.
//
// Noise. That of a fresh ciphertext is e·u + e₀ + e₁·s with u, s ternary: σ² = 10.5 · (4096·2/3·2 + 1), σ <
// 2^8, and below 2^11 with probability 1 - 2^-50. Decryption is right while the noise is below q/(2t) - 1:
// 2^85 at t = 2^20, 2^77 at t = 2^28. Sums add the noise; a product with a polynomial multiplies it by at
// most the sum of the coefficients' sizes.
//
// Functions are pure, constant-time except for rejected randomness, and thread-safe.
namespace gpusonde::privacy {

// log₂ t; 1 to 40.
struct PlaintextBits {
  int value;
};
inline constexpr PlaintextBits kIdentificationBits{20};
inline constexpr PlaintextBits kReportBits{28};

// 4,096 numbers below t.
using Plaintext = std::span<const uint64_t, kDegree>;

struct PublicKey {
  Evaluated b;  // -(a·s + e)
  Evaluated a;  // uniform
};

struct Ciphertext {
  Evaluated c0;
  Evaluated c1;

  Ciphertext Copy() const { return {c0.Copy(), c1.Copy()}; }
};

// Never leaves the process: it can't be copied, read or serialised.
class SecretKey {
 public:
  // Uniform ternary coefficients.
  static SecretKey Generate(Random& random);
  // For known-answer tests: 4,096 coefficients of -1, 0, 1.
  static SecretKey FromCoefficients(std::span<const int64_t, kDegree> coefficients);

  PublicKey MakePublic(Random& random) const;
  // With a given `a`, common to all shares of a joint key.
  PublicKey MakePublic(const Evaluated& a, Random& random) const;

 private:
  explicit SecretKey(Evaluated secret) : secret_(std::move(secret)) {}
  friend Polynomial Phase(const SecretKey& key, const Ciphertext& ciphertext);
  friend Polynomial AnswerShare(const SecretKey& share, const Ciphertext& sum, Random& noise);
  friend Wiped<uint64_t> Decrypt(const SecretKey& key, PlaintextBits bits,
                                 const struct SwitchedAnswer& answer);

  Evaluated secret_;
};

// A uniform element, the same for the same randomness.
Evaluated DrawUniform(Random& random);

Ciphertext Encrypt(const PublicKey& key, PlaintextBits bits, Plaintext message, Random& random);
Wiped<uint64_t> Decrypt(const SecretKey& key, PlaintextBits bits, const Ciphertext& ciphertext);

// c₀ + c₁·s, which decryption rounds. Reveals the noise, so it is only for decryption and tests.
Polynomial Phase(const SecretKey& key, const Ciphertext& ciphertext);
// round(t·x/q) of every coefficient.
Wiped<uint64_t> Decode(const Polynomial& phase, PlaintextBits bits);

void Add(Ciphertext& sum, const Ciphertext& other);
// `factor`: a polynomial with small coefficients, evaluated once for many products.
void Multiply(Ciphertext& ciphertext, const Evaluated& factor);

// Makes a product reveal only its message: adds a fresh encryption of zero, which hides c₁·f, and uniform
// noise of ±2^82 to c₀, which hides the product's own (statistical distance: own noise/2^82). For t <= 2^20
// the result still decrypts.
void Rerandomize(Ciphertext& ciphertext, const PublicKey& key, Random& random);

// --- answers with a smaller modulus, reduced to some coefficients
// ----------------------------------

inline constexpr int kSwitchedBits = 30;

// c₀ at the selected places and all of c₁, modulo 2^30. Noise after switching: the old one times 2^30/q, and
// rounding, at most (1 + ‖s‖₁)/2, σ ≈ √(4096·2/3/12) = 15.
struct SwitchedAnswer {
  std::vector<uint32_t> places;  // of the coefficients, below 4096
  std::vector<uint32_t> c0;      // one per place
  std::vector<uint32_t> c1;      // 4096
};

SwitchedAnswer Switch(Ciphertext ciphertext, std::span<const uint32_t> places);
// The message's coefficients at the answer's places. bits < kSwitchedBits.
Wiped<uint64_t> Decrypt(const SecretKey& key, PlaintextBits bits, const SwitchedAnswer& answer);

// --- a joint key
// ---------------------------------------------------------------------------------------------------

// The public key to which all shares together are the secret. The shares' public keys have the same `a`.
PublicKey JoinKeys(std::span<const PublicKey> shares);

// A share's part of a decryption: c₁·s with Gaussian smudging of σ = 2^70 (gaussian.h), which hides s for
// well-formed ciphertexts only: a crafted c₁ reveals s (docs/fleet/privacy.md, and a test). Therefore reports
// are masked instead, and BfvDecryptor (bfv_decryptor.h) never answers twice for a sum.
Polynomial AnswerShare(const SecretKey& share, const Ciphertext& sum, Random& noise);
// The sum's message from the answers of all shares.
Wiped<uint64_t> Combine(Ciphertext sum, std::span<const Polynomial> answers, PlaintextBits bits);

// --- on the wire
// -------------------------------------------------------------------------------------------------

// c₀ then c₁, of each the residues modulo q₁ then q₂, 53 bits each, lowest first: 26.5 bytes a coefficient.
inline constexpr size_t kCiphertextBytes = 2 * kPrimes * kDegree * Modulus::kBits / 8;
std::vector<uint8_t> Pack(const Ciphertext& ciphertext);
// kCorrupt for a wrong length and for invalid residues. Whether it is a well-formed ciphertext can't be
// checked.
Result<Ciphertext> Unpack(std::span<const uint8_t> bytes);

// c₀ at the places then c₁, 30 bits each; the querying device knows the places.
constexpr size_t SwitchedBytes(size_t places) { return ((places + kDegree) * kSwitchedBits + 7) / 8; }
std::vector<uint8_t> Pack(const SwitchedAnswer& answer);
// kCorrupt for a wrong length. The places are below 4096.
Result<SwitchedAnswer> UnpackAnswer(std::span<const uint8_t> bytes, std::span<const uint32_t> places);

}  // namespace gpusonde::privacy
