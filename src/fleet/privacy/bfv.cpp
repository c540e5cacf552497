// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/bfv.h"

#include <fmt/format.h>

#include "fleet/privacy/gaussian.h"

namespace gpusonde::privacy {
namespace {

// Uniform in {-1, 0, 1} up to 2^-62, from 64 bits each, without rejection, so that sampling a secret takes
// constant time.
Polynomial DrawTernary(Random& random) {
  Wiped<int64_t> coefficients(kDegree);
  for (int64_t& value : coefficients.values())
    value = static_cast<int64_t>((Uint128{random.Next()} * 3) >> 64) - 1;
  return FromSigned(std::span<const int64_t, kDegree>(coefficients.values()));
}

// The number of ones of 21 bits. Not std::popcount, which looks into a table on the oldest x86-64.
int64_t CountOnes(uint64_t bits) {
  bits -= (bits >> 1) & 0x55555555;
  bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f;
  return static_cast<int64_t>((bits * 0x01010101) >> 24 & 0xff);
}

// Centred binomial, η = 21: the difference of two sums of 21 bits.
Polynomial DrawError(Random& random) {
  constexpr uint64_t kMask = (uint64_t{1} << 21) - 1;
  Wiped<int64_t> coefficients(kDegree);
  for (int64_t& value : coefficients.values()) {
    const uint64_t bits = random.Next();
    value = CountOnes(bits & kMask) - CountOnes((bits >> 21) & kMask);
  }
  return FromSigned(std::span<const int64_t, kDegree>(coefficients.values()));
}

// (b·u + e₀ + m, a·u + e₁), `message` being scaled to q.
Ciphertext EncryptScaled(const PublicKey& key, Polynomial message, Random& random) {
  const Evaluated u = Evaluate(DrawTernary(random));
  message += DrawError(random);
  Ciphertext out{key.b * u, key.a * u};
  out.c0 += Evaluate(std::move(message));
  out.c1 += Evaluate(DrawError(random));
  return out;
}

// Packs numbers of `bits` bits each, one after the other, lowest bits first.
class BitWriter {
 public:
  BitWriter(int bits, std::vector<uint8_t>& out) : bits_(bits), out_(out) {}
  void Write(uint64_t value) {
    held_ |= Uint128{value} << held_bits_;
    held_bits_ += bits_;
    for (; held_bits_ >= 8; held_bits_ -= 8, held_ >>= 8) out_.push_back(static_cast<uint8_t>(held_));
  }
  // Fills up the last byte.
  void Finish() {
    if (held_bits_ > 0) out_.push_back(static_cast<uint8_t>(held_));
  }

 private:
  int bits_;
  std::vector<uint8_t>& out_;
  Uint128 held_ = 0;
  int held_bits_ = 0;
};

class BitReader {
 public:
  BitReader(int bits, std::span<const uint8_t> bytes) : bits_(bits), bytes_(bytes) {}
  uint64_t Read() {
    for (; held_bits_ < bits_; held_bits_ += 8) held_ |= Uint128{bytes_[next_++]} << held_bits_;
    const auto value = static_cast<uint64_t>(held_ & ((Uint128{1} << bits_) - 1));
    held_ >>= bits_;
    held_bits_ -= bits_;
    return value;
  }

 private:
  int bits_;
  std::span<const uint8_t> bytes_;
  size_t next_ = 0;
  Uint128 held_ = 0;
  int held_bits_ = 0;
};

}  // namespace

Evaluated DrawUniform(Random& random) {
  Evaluated uniform;
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (uint64_t& value : uniform.modulo(prime))
      value = static_cast<uint64_t>(random.Below(kModuli[prime].prime()));
  return uniform;
}

SecretKey SecretKey::Generate(Random& random) { return SecretKey(Evaluate(DrawTernary(random))); }

SecretKey SecretKey::FromCoefficients(std::span<const int64_t, kDegree> coefficients) {
  return SecretKey(Evaluate(FromSigned(coefficients)));
}

PublicKey SecretKey::MakePublic(Random& random) const { return MakePublic(DrawUniform(random), random); }

PublicKey SecretKey::MakePublic(const Evaluated& a, Random& random) const {
  PublicKey key{a * secret_, a.Copy()};
  key.b += Evaluate(DrawError(random));
  key.b.Negate();
  return key;
}

Ciphertext Encrypt(const PublicKey& key, PlaintextBits bits, Plaintext message, Random& random) {
  const ScalerToQ scale(bits.value);
  Polynomial scaled;
  for (size_t i = 0; i < kDegree; ++i) {
    const auto residues = scale(message[i]);
    for (size_t prime = 0; prime < kPrimes; ++prime) scaled.modulo(prime)[i] = residues[prime];
  }
  return EncryptScaled(key, std::move(scaled), random);
}

Polynomial Phase(const SecretKey& key, const Ciphertext& ciphertext) {
  Evaluated phase = ciphertext.c1 * key.secret_;
  phase += ciphertext.c0;
  return Interpolate(std::move(phase));
}

Wiped<uint64_t> Decode(const Polynomial& phase, PlaintextBits bits) {
  Wiped<uint64_t> message(kDegree);
  for (size_t i = 0; i < kDegree; ++i) message.values()[i] = ScaleToBits(Compose(phase, i), bits.value);
  return message;
}

Wiped<uint64_t> Decrypt(const SecretKey& key, PlaintextBits bits, const Ciphertext& ciphertext) {
  return Decode(Phase(key, ciphertext), bits);
}

void Add(Ciphertext& sum, const Ciphertext& other) {
  sum.c0 += other.c0;
  sum.c1 += other.c1;
}

void Multiply(Ciphertext& ciphertext, const Evaluated& factor) {
  ciphertext.c0 = ciphertext.c0 * factor;
  ciphertext.c1 = ciphertext.c1 * factor;
}

void Rerandomize(Ciphertext& ciphertext, const PublicKey& key, Random& random) {
  constexpr Uint128 kFlood = Uint128{1} << 82;
  Polynomial flood;
  for (size_t i = 0; i < kDegree; ++i) {
    const Uint128 uniform = ((Uint128{random.Next()} << 64) | random.Next()) & (2 * kFlood - 1);
    Decompose(uniform < kFlood ? uniform : kQ - (uniform - kFlood) - 1, flood, i);
  }
  Add(ciphertext, EncryptScaled(key, std::move(flood), random));
}

SwitchedAnswer Switch(Ciphertext ciphertext, std::span<const uint32_t> places) {
  const Polynomial c0 = Interpolate(std::move(ciphertext.c0));
  const Polynomial c1 = Interpolate(std::move(ciphertext.c1));
  const auto switched = [](const Polynomial& polynomial, size_t i) {
    return static_cast<uint32_t>(ScaleToBits(Compose(polynomial, i), kSwitchedBits));
  };
  SwitchedAnswer answer{.places{places.begin(), places.end()}, .c0 = {}, .c1 = {}};
  for (const uint32_t place : places) answer.c0.push_back(switched(c0, place));
  for (size_t i = 0; i < kDegree; ++i) answer.c1.push_back(switched(c1, i));
  return answer;
}

Wiped<uint64_t> Decrypt(const SecretKey& key, PlaintextBits bits, const SwitchedAnswer& answer) {
  // c₁·s over the integers is below 2^30 · 4096 = 2^42 in size, so the residue modulo q₁ determines it.
  Polynomial c1;
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (size_t i = 0; i < kDegree; ++i) c1.modulo(prime)[i] = answer.c1[i];
  const Polynomial product = Interpolate(Evaluate(std::move(c1)) * key.secret_);
  const uint64_t half = kModuli[0].prime() / 2;
  const int shift = kSwitchedBits - bits.value;
  Wiped<uint64_t> message(answer.places.size());
  for (size_t i = 0; i < answer.places.size(); ++i) {
    const uint64_t residue = product.modulo(0)[answer.places[i]];
    const uint64_t negative = uint64_t{0} - ((half - residue) >> 63);
    const uint64_t phase = answer.c0[i] + residue - (kModuli[0].prime() & negative);
    message.values()[i] =
        ((phase + (uint64_t{1} << (shift - 1))) >> shift) & ((uint64_t{1} << bits.value) - 1);
  }
  return message;
}

PublicKey JoinKeys(std::span<const PublicKey> shares) {
  PublicKey joint{shares.front().b.Copy(), shares.front().a.Copy()};
  for (const PublicKey& share : shares.subspan(1)) joint.b += share.b;
  return joint;
}

Polynomial AnswerShare(const SecretKey& share, const Ciphertext& sum, Random& noise) {
  Polynomial answer = Interpolate(sum.c1 * share.secret_);
  Polynomial smudging;
  for (size_t i = 0; i < kDegree; ++i) {
    const Int128 drawn = DrawSmudging(noise);
    Decompose(drawn < 0 ? kQ - Uint128(-drawn) : Uint128(drawn), smudging, i);
  }
  answer += smudging;
  return answer;
}

Wiped<uint64_t> Combine(Ciphertext sum, std::span<const Polynomial> answers, PlaintextBits bits) {
  Polynomial phase = Interpolate(std::move(sum.c0));
  for (const Polynomial& answer : answers) phase += answer;
  return Decode(phase, bits);
}

std::vector<uint8_t> Pack(const Ciphertext& ciphertext) {
  std::vector<uint8_t> bytes;
  bytes.reserve(kCiphertextBytes);
  BitWriter writer(Modulus::kBits, bytes);
  for (const Evaluated* part : {&ciphertext.c0, &ciphertext.c1})
    for (size_t prime = 0; prime < kPrimes; ++prime)
      for (const uint64_t value : part->modulo(prime)) writer.Write(value);
  return bytes;
}

Result<Ciphertext> Unpack(std::span<const uint8_t> bytes) {
  if (bytes.size() != kCiphertextBytes)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("ciphertext: {} bytes instead of {}", bytes.size(), kCiphertextBytes));
  Ciphertext ciphertext;
  BitReader reader(Modulus::kBits, bytes);
  for (Evaluated* part : {&ciphertext.c0, &ciphertext.c1}) {
    for (size_t prime = 0; prime < kPrimes; ++prime) {
      for (uint64_t& value : part->modulo(prime)) {
        value = reader.Read();
        if (value >= kModuli[prime].prime())
          return Fail(ErrorCode::kCorrupt,
                      fmt::format("ciphertext: residue {} of modulus {}", value, kModuli[prime].prime()));
      }
    }
  }
  return ciphertext;
}

std::vector<uint8_t> Pack(const SwitchedAnswer& answer) {
  std::vector<uint8_t> bytes;
  bytes.reserve(SwitchedBytes(answer.places.size()));
  BitWriter writer(kSwitchedBits, bytes);
  for (const uint32_t value : answer.c0) writer.Write(value);
  for (const uint32_t value : answer.c1) writer.Write(value);
  writer.Finish();
  return bytes;
}

Result<SwitchedAnswer> UnpackAnswer(std::span<const uint8_t> bytes, std::span<const uint32_t> places) {
  if (bytes.size() != SwitchedBytes(places.size()))
    return Fail(ErrorCode::kCorrupt,
                fmt::format("answer: {} bytes instead of {}", bytes.size(), SwitchedBytes(places.size())));
  SwitchedAnswer answer{.places{places.begin(), places.end()}, .c0 = {}, .c1 = {}};
  BitReader reader(kSwitchedBits, bytes);
  for (size_t i = 0; i < places.size(); ++i) answer.c0.push_back(static_cast<uint32_t>(reader.Read()));
  for (size_t i = 0; i < kDegree; ++i) answer.c1.push_back(static_cast<uint32_t>(reader.Read()));
  return answer;
}

}  // namespace gpusonde::privacy
