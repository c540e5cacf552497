// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/privacy/bfv.h"
#include "fleet/privacy/masks.h"
#include "fleet/privacy/wiped.h"

// A report on its way from a device to the aggregator. Little-endian:
//   magic "GSR" and the kind ('m' masked, 'b' BFV), epoch u32, place u32, device u64, salt 16 bytes,
//   the body: 4,096 slots of u32, or a packed ciphertext,
//   an Ed25519 signature (RFC 8032) of the BLAKE2b-512 digest of all before it.
// Every report of a kind has the same size.
namespace gpusonde::fleet {

enum class ReportKind : uint8_t { kMasked = 'm', kBfv = 'b' };

struct ReportHeader {
  ReportKind kind = ReportKind::kMasked;
  uint32_t epoch = 0;
  uint32_t place = 0;
  uint64_t device = 0;
  privacy::Salt salt{};

  bool operator==(const ReportHeader&) const = default;
};

inline constexpr size_t kReportHeaderBytes = 36;
inline constexpr size_t kSignatureBytes = 64;
constexpr size_t BodyBytes(ReportKind kind) {
  return kind == ReportKind::kMasked ? privacy::kReportSlots * sizeof(uint32_t) : privacy::kCiphertextBytes;
}
constexpr size_t ReportBytes(ReportKind kind) {
  return kReportHeaderBytes + BodyBytes(kind) + kSignatureBytes;
}

using VerifyKey = std::array<uint8_t, 32>;

// A device's signing key. Move-only, can't be read, wiped on destruction. Signing is thread-safe.
class SigningKey {
 public:
  explicit SigningKey(privacy::KeyBytes seed);

  const VerifyKey& open() const { return open_; }
  std::array<uint8_t, kSignatureBytes> Sign(std::span<const uint8_t> bytes) const;

 private:
  VerifyKey open_{};
  privacy::Wiped<uint8_t> secret_;
};

// Whether the last 64 bytes are a signature of the others.
bool IsSigned(std::span<const uint8_t> report, const VerifyKey& key);

// A complete report. The body has the size of its kind.
std::vector<uint8_t> MakeReport(const ReportHeader& header, std::span<const uint8_t> body,
                                const SigningKey& key);

// Nullopt if the magic or the length is wrong.
std::optional<ReportHeader> ReadHeader(std::span<const uint8_t> report);
// The body of a report with a valid header.
inline std::span<const uint8_t> BodyOf(std::span<const uint8_t> report) {
  return report.subspan(kReportHeaderBytes, report.size() - kReportHeaderBytes - kSignatureBytes);
}

// Encodes slots as the body of a masked report, and decodes them.
std::vector<uint8_t> BytesOf(privacy::Slots slots);
std::vector<uint32_t> SlotsOf(std::span<const uint8_t> body);

}  // namespace gpusonde::fleet
