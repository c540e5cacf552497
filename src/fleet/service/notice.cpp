// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/notice.h"

#include <algorithm>
#include <string_view>

#include "base/little_endian.h"
#include "fleet/service/keys.h"

namespace gpusonde::fleet {
namespace {

constexpr std::string_view kNoticeMagic = "GSN";
constexpr size_t kHeaderBytes = 52;
constexpr size_t kEnrolmentBytes = 32 + 32 + kSignatureBytes;

// 0 for a kind that doesn't exist.
size_t PayloadBytes(NoticeKind kind) {
  switch (kind) {
    case NoticeKind::kExchange:
    case NoticeKind::kCommitment:
    case NoticeKind::kPart:
    case NoticeKind::kAgreement:
      return 32;
    case NoticeKind::kEnrolment:
      return kEnrolmentBytes;
    case NoticeKind::kAnswer:
      return kAnswerBytes;
  }
  return 0;
}

}  // namespace

std::vector<uint8_t> MakeNotice(const Notice& notice, const FleetId& fleet, const SigningKey& key) {
  std::vector<uint8_t> bytes(kNoticeMagic.begin(), kNoticeMagic.end());
  bytes.push_back(static_cast<uint8_t>(notice.kind));
  bytes.insert(bytes.end(), fleet.begin(), fleet.end());
  AppendLittleEndian(bytes, notice.epoch);
  AppendLittleEndian(bytes, notice.sender);
  AppendLittleEndian(bytes, notice.item);
  bytes.insert(bytes.end(), notice.payload.begin(), notice.payload.end());
  const auto signature = key.Sign(bytes);
  bytes.insert(bytes.end(), signature.begin(), signature.end());
  return bytes;
}

std::optional<Notice> ReadNotice(std::span<const uint8_t> bytes, const FleetId& fleet) {
  if (bytes.size() < kHeaderBytes + kSignatureBytes ||
      !std::ranges::equal(bytes.first(kNoticeMagic.size()), kNoticeMagic) ||
      !std::ranges::equal(bytes.subspan(4, fleet.size()), fleet))
    return std::nullopt;
  Notice notice{.kind = static_cast<NoticeKind>(bytes[kNoticeMagic.size()]),
                .epoch = ReadLittleEndian<uint32_t>(bytes.subspan(36)),
                .sender = ReadLittleEndian<uint64_t>(bytes.subspan(40)),
                .item = ReadLittleEndian<uint32_t>(bytes.subspan(48)),
                .payload = {}};
  const std::span<const uint8_t> payload =
      bytes.subspan(kHeaderBytes, bytes.size() - kHeaderBytes - kSignatureBytes);
  if (payload.empty() || payload.size() != PayloadBytes(notice.kind)) return std::nullopt;
  if (notice.kind != NoticeKind::kAnswer && notice.item != 0) return std::nullopt;
  notice.payload.assign(payload.begin(), payload.end());
  return notice;
}

bool IsBySender(std::span<const uint8_t> bytes, const Notice& notice, const Description& description,
                const FleetId& fleet) {
  if (notice.kind != NoticeKind::kEnrolment)
    return notice.sender < description.decryptors.size() &&
           IsSigned(bytes, description.decryptors[notice.sender].key);
  const Enrolment enrolment = EnrolmentOf(notice);
  return IsAdmitted(fleet, notice.sender, enrolment.key, enrolment.admission, description.authority) &&
         IsSigned(bytes, enrolment.key);
}

std::vector<uint8_t> BytesOf(const Enrolment& enrolment) {
  std::vector<uint8_t> bytes(enrolment.key.begin(), enrolment.key.end());
  bytes.insert(bytes.end(), enrolment.exchange.begin(), enrolment.exchange.end());
  bytes.insert(bytes.end(), enrolment.admission.begin(), enrolment.admission.end());
  return bytes;
}

Enrolment EnrolmentOf(const Notice& notice) {
  Enrolment enrolment;
  const std::span<const uint8_t> payload(notice.payload);
  std::ranges::copy(payload.first(32), enrolment.key.begin());
  std::ranges::copy(payload.subspan(32, 32), enrolment.exchange.begin());
  std::ranges::copy(payload.subspan(64, kSignatureBytes), enrolment.admission.begin());
  return enrolment;
}

std::array<uint8_t, 32> Payload32(const Notice& notice) {
  std::array<uint8_t, 32> bytes{};
  std::ranges::copy(std::span(notice.payload).first(32), bytes.begin());
  return bytes;
}

}  // namespace gpusonde::fleet
