// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/device.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpusonde::fleet {

void Device::Save(privacy::ByteWriter& out) const {
  out.Add(id_);
  out.Add(next_epoch_);
  out.Add(uint64_t{masks_.size()});
  for (const privacy::MaskKey& key : masks_) key.Save(out);
  out.AddWithLength(report_);
}

Result<Device> Device::Load(SigningKey signing, privacy::ByteReader& in) {
  const auto id = in.Read<uint64_t>();
  const auto next_epoch = in.Read<uint32_t>();
  std::vector<privacy::MaskKey> masks;
  const size_t keys = in.ReadCount(sizeof(uint32_t) + privacy::kKeyBytes);
  for (size_t i = 0; i < keys; ++i) masks.push_back(privacy::MaskKey::Load(in));
  Device loaded(id, std::move(signing), std::move(masks));
  loaded.next_epoch_ = next_epoch;
  const std::span<const uint8_t> report = in.ReadWithLength();
  loaded.report_.assign(report.begin(), report.end());
  if (!in.is_whole() || keys == 0) return Fail(ErrorCode::kCorrupt, "device: its saved state is cut off");
  return loaded;
}

Result<bool> Device::IsRetry(uint32_t epoch) const {
  if (epoch >= next_epoch_) return false;
  if (!report_.empty() && epoch + 1 == next_epoch_) return true;
  return Fail(ErrorCode::kInvalidArgument, fmt::format("device {}: epoch {} was reported for", id_, epoch));
}

Result<std::span<const uint8_t>> Device::ReportMasked(uint32_t epoch, uint32_t place, privacy::Slots message,
                                                      privacy::Random& random) {
  ASSIGN_OR_RETURN(const bool is_retry, IsRetry(epoch));
  if (is_retry) return std::span<const uint8_t>(report_);
  ReportHeader header{.kind = ReportKind::kMasked, .epoch = epoch, .place = place, .device = id_};
  random.Fill(header.salt);
  for (privacy::MaskKey& key : masks_) TRY(key.AdvanceTo(epoch));
  const std::vector<uint32_t> masked =
      privacy::MaskReport(message, masks_, {.page = place, .salt = header.salt});
  report_ = MakeReport(header, BytesOf(privacy::Slots(masked)), signing_);
  next_epoch_ = epoch + 1;
  for (privacy::MaskKey& key : masks_) TRY(key.AdvanceTo(next_epoch_));
  return std::span<const uint8_t>(report_);
}

Result<std::span<const uint8_t>> Device::ReportBfv(uint32_t epoch, uint32_t place, privacy::Slots message,
                                                   const privacy::PublicKey& joint, privacy::Random& random) {
  ASSIGN_OR_RETURN(const bool is_retry, IsRetry(epoch));
  if (is_retry) return std::span<const uint8_t>(report_);
  static_assert(privacy::kReportSlots == privacy::kDegree);
  ReportHeader header{.kind = ReportKind::kBfv, .epoch = epoch, .place = place, .device = id_};
  random.Fill(header.salt);
  privacy::Wiped<uint64_t> wide(privacy::kDegree);
  std::ranges::copy(message, wide.values().begin());
  const privacy::Ciphertext ciphertext =
      privacy::Encrypt(joint, privacy::kReportBits, privacy::Plaintext(wide.values()), random);
  report_ = MakeReport(header, privacy::Pack(ciphertext), signing_);
  next_epoch_ = epoch + 1;
  return std::span<const uint8_t>(report_);
}

}  // namespace gpusonde::fleet
