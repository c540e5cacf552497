// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/roles/draw.h"
#include "fleet/service/board_client.h"
#include "fleet/service/description.h"
#include "fleet/service/notice.h"

namespace gpusonde::fleet {

// What the decryptors have signed of one epoch, as any party reads it: what is not signed by them is ignored.
class SignedEpoch {
 public:
  // Errors: those of BoardClient::Notices.
  static Result<SignedEpoch> Read(BoardClient& board, uint32_t epoch, const Description& description,
                                  const FleetId& fleet);

  // A decryptor's notice of a kind; null if there is none.
  const std::array<uint8_t, 32>* Find(NoticeKind kind, uint64_t decryptor) const;
  // One of each decryptor, in their order; nullopt until all are there.
  std::optional<std::vector<std::array<uint8_t, 32>>> All(NoticeKind kind) const;

  // The beacon, once it is drawn. Errors: kNotFound until then; kInvalidArgument if a part isn't what its
  // decryptor committed to.
  Result<DrawnEpoch> Drawn() const;

 private:
  SignedEpoch(uint32_t epoch, size_t decryptors, Layout layout)
      : epoch_(epoch), decryptors_(decryptors), layout_(layout) {}

  uint32_t epoch_;
  size_t decryptors_;
  Layout layout_;
  std::map<std::pair<NoticeKind, uint64_t>, std::array<uint8_t, 32>> values_;
};

}  // namespace gpusonde::fleet
