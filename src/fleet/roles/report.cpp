// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/report.h"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/little_endian.h"

namespace gpusonde::fleet {
namespace {

constexpr std::array<uint8_t, 3> kMagic = {'G', 'S', 'R'};
static_assert(std::endian::native == std::endian::little, "slots are copied as they lie");

using Digest = std::array<uint8_t, 64>;

Digest DigestOf(std::span<const uint8_t> bytes) {
  Digest digest;
  crypto_generichash(digest.data(), digest.size(), bytes.data(), bytes.size(), nullptr, 0);
  return digest;
}

}  // namespace

SigningKey::SigningKey(privacy::KeyBytes seed) : secret_(crypto_sign_SECRETKEYBYTES) {
  privacy::ReadySodium();
  crypto_sign_seed_keypair(open_.data(), secret_.values().data(), seed.data());
}

std::array<uint8_t, kSignatureBytes> SigningKey::Sign(std::span<const uint8_t> bytes) const {
  const Digest digest = DigestOf(bytes);
  std::array<uint8_t, kSignatureBytes> signature;
  crypto_sign_detached(signature.data(), nullptr, digest.data(), digest.size(), secret_.values().data());
  return signature;
}

bool IsSigned(std::span<const uint8_t> report, const VerifyKey& key) {
  if (report.size() < kSignatureBytes) return false;
  const Digest digest = DigestOf(report.first(report.size() - kSignatureBytes));
  return crypto_sign_verify_detached(report.last(kSignatureBytes).data(), digest.data(), digest.size(),
                                     key.data()) == 0;
}

std::vector<uint8_t> MakeReport(const ReportHeader& header, std::span<const uint8_t> body,
                                const SigningKey& key) {
  std::vector<uint8_t> report;
  report.reserve(ReportBytes(header.kind));
  report.assign(kMagic.begin(), kMagic.end());
  report.push_back(static_cast<uint8_t>(header.kind));
  AppendLittleEndian(report, header.epoch);
  AppendLittleEndian(report, header.place);
  AppendLittleEndian(report, header.device);
  report.insert(report.end(), header.salt.begin(), header.salt.end());
  report.insert(report.end(), body.begin(), body.end());
  const auto signature = key.Sign(report);
  report.insert(report.end(), signature.begin(), signature.end());
  return report;
}

std::optional<ReportHeader> ReadHeader(std::span<const uint8_t> report) {
  if (report.size() < kReportHeaderBytes || !std::ranges::equal(report.first(kMagic.size()), kMagic))
    return std::nullopt;
  ReportHeader header;
  header.kind = static_cast<ReportKind>(report[kMagic.size()]);
  if (header.kind != ReportKind::kMasked && header.kind != ReportKind::kBfv) return std::nullopt;
  if (report.size() != ReportBytes(header.kind)) return std::nullopt;
  header.epoch = ReadLittleEndian<uint32_t>(report.subspan(4));
  header.place = ReadLittleEndian<uint32_t>(report.subspan(8));
  header.device = ReadLittleEndian<uint64_t>(report.subspan(12));
  std::ranges::copy(report.subspan(20, header.salt.size()), header.salt.begin());
  return header;
}

std::vector<uint8_t> BytesOf(privacy::Slots slots) {
  std::vector<uint8_t> bytes(slots.size_bytes());
  std::memcpy(bytes.data(), slots.data(), bytes.size());
  return bytes;
}

std::vector<uint32_t> SlotsOf(std::span<const uint8_t> body) {
  std::vector<uint32_t> slots(privacy::kReportSlots);
  std::memcpy(slots.data(), body.data(), slots.size() * sizeof(uint32_t));
  return slots;
}

}  // namespace gpusonde::fleet
