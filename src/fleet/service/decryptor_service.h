// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/privacy/wiped.h"
#include "fleet/roles/beacon.h"
#include "fleet/service/board_client.h"
#include "fleet/service/description.h"
#include "fleet/service/schedule.h"
#include "fleet/service/signed_epoch.h"
#include "fleet/service/state_file.h"

namespace gpusonde::fleet {

// One decryptor: enrols devices, draws its part of the beacons and answers for lists, as far as the
// aggregator has what it needs. Its state is durable before anything that follows from it leaves the process,
// so that it can be killed at any time. Not thread-safe.
class DecryptorService {
 public:
  // `key` must be that of one of the description's decryptors. Errors: kInvalidArgument if it isn't; those of
  // StateFile.
  static Result<DecryptorService> Open(Description description, SigningKey key, const std::string& folder,
                                       int64_t now_ms);

  // Does what is due at this Unix time in ms. Call it every second or so. Errors: those of BoardClient and
  // StateFile; what failed is tried again by the next call.
  Status Step(BoardClient& board, int64_t now_ms);

  uint64_t number() const { return number_; }  // in the description
  uint64_t devices() const { return devices_; }
  std::optional<uint32_t> last_answered() const { return last_answered_; }

 private:
  DecryptorService(Description description, uint64_t number, SigningKey key, StateFile file,
                   privacy::MaskDecryptor decryptor);

  Status Load(privacy::ByteReader& in);
  Status Save() const;
  Status Post(BoardClient& board, NoticeKind kind, uint32_t epoch, std::span<const uint8_t> payload);
  Status OfferExchange(BoardClient& board, uint32_t epoch);
  Status Enrol(BoardClient& board, uint32_t now_epoch);
  Status Draw(BoardClient& board, uint32_t epoch);
  Status Answer(BoardClient& board, uint32_t epoch);
  Result<std::vector<privacy::ReportList>> Check(const std::vector<ListedReports>& listed,
                                                 const DrawnEpoch& draw) const;
  Status AnswerAll(BoardClient& board, uint32_t epoch, const std::vector<privacy::ReportList>& lists);
  void Forget(uint32_t before_epoch);

  Description description_;
  FleetId id_;
  Schedule schedule_;
  uint64_t number_;
  SigningKey key_;
  StateFile file_;
  std::set<std::pair<NoticeKind, uint32_t>> posted_;  // kinds and epochs, so that each is sent once
  std::optional<uint32_t> forgotten_;                 // before this epoch

  // What is saved.
  privacy::MaskDecryptor decryptor_;
  uint64_t devices_ = 0;
  std::map<uint32_t, privacy::Wiped<uint8_t>> exchanges_;  // secrets, by the first epoch that they are for
  struct Drawing {
    BeaconPart part{};
    // All decryptors', since this one's part is revealed: another part of theirs is not accepted any more,
    // with which they could choose the beacon.
    std::vector<Commitment> commitments;
  };
  std::map<uint32_t, Drawing> drawings_;
  std::optional<uint32_t> last_answered_;
};

}  // namespace gpusonde::fleet
