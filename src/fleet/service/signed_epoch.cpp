// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/signed_epoch.h"

#include <fmt/format.h>

#include "fleet/roles/beacon.h"

namespace gpusonde::fleet {

Result<SignedEpoch> SignedEpoch::Read(BoardClient& board, uint32_t epoch, const Description& description,
                                      const FleetId& fleet) {
  ASSIGN_OR_RETURN(const std::vector<Bytes> notices, board.Notices(epoch));
  SignedEpoch read(epoch, description.decryptors.size(), description.layout());
  for (const Bytes& bytes : notices) {
    const std::optional<Notice> notice = ReadNotice(bytes, fleet);
    if (!notice.has_value() || notice->epoch != epoch || notice->kind == NoticeKind::kEnrolment ||
        notice->kind == NoticeKind::kAnswer || !IsBySender(bytes, *notice, description, fleet))
      continue;
    read.values_.try_emplace({notice->kind, notice->sender}, Payload32(*notice));
  }
  return read;
}

const std::array<uint8_t, 32>* SignedEpoch::Find(NoticeKind kind, uint64_t decryptor) const {
  const auto found = values_.find({kind, decryptor});
  return found == values_.end() ? nullptr : &found->second;
}

std::optional<std::vector<std::array<uint8_t, 32>>> SignedEpoch::All(NoticeKind kind) const {
  std::vector<std::array<uint8_t, 32>> all;
  for (uint64_t decryptor = 0; decryptor < decryptors_; ++decryptor) {
    const auto* const value = Find(kind, decryptor);
    if (value == nullptr) return std::nullopt;
    all.push_back(*value);
  }
  return all;
}

Result<DrawnEpoch> SignedEpoch::Drawn() const {
  const auto commitments = All(NoticeKind::kCommitment);
  const auto parts = All(NoticeKind::kPart);
  if (!commitments.has_value() || !parts.has_value())
    return Fail(ErrorCode::kNotFound,
                fmt::format("the decryptors have not drawn the beacon of epoch {} yet", epoch_));
  ASSIGN_OR_RETURN(const Beacon beacon, Reveal(epoch_, *commitments, *parts));
  return DrawnEpoch{.epoch = epoch_, .beacon = beacon, .layout = layout_};
}

}  // namespace gpusonde::fleet
