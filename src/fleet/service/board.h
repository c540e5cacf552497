// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "fleet/roles/aggregator.h"
#include "fleet/roles/release.h"
#include "fleet/service/board_client.h"
#include "fleet/service/description.h"
#include "fleet/service/journal.h"
#include "fleet/service/notice.h"
#include "fleet/service/release_file.h"
#include "fleet/service/schedule.h"

namespace gpusonde::fleet {

// The aggregator: takes enrolments, reports and decryptors' notices, each durable before it is acknowledged,
// and releases each epoch's sums. It sees masked numbers only. Times are Unix times in ms, given by the
// caller, and must not run backwards by more than clocks do. Thread-safe.
class Board {
 public:
  // Continues what is in the folder, which it locks and creates. Errors: kUnavailable if another process has
  // it; kInvalidArgument if it is another fleet's; kCorrupt; those of the file system.
  static Result<std::unique_ptr<Board>> Open(Description description, std::string folder);

  // Closes and releases what is due. Call it every second or so. Errors: those of the file system; what
  // failed is tried again by the next call.
  Status Tick(int64_t now_ms);

  // As BoardClient's functions of these names.
  Status PostNotice(std::span<const uint8_t> bytes, int64_t now_ms);
  Result<std::string> PostReport(std::span<const uint8_t> report, int64_t now_ms);
  Result<std::vector<Bytes>> Notices(uint32_t epoch) const;
  Result<std::vector<Bytes>> Enrolments(uint32_t epoch, int64_t now_ms) const;
  Result<std::vector<ListedReports>> Lists(uint32_t epoch) const;

  // What happens to one epoch now, for people.
  struct EpochState {
    uint32_t epoch = 0;
    size_t exchanges = 0, commitments = 0, parts = 0, agreements = 0;  // by as many decryptors
    uint64_t enrolments = 0;
    uint64_t reports = 0;
    bool is_closed = false;
    size_t lists = 0, answers = 0;
  };
  struct State {
    uint64_t devices = 0;
    std::vector<EpochState> epochs;  // not yet released
    std::vector<uint32_t> releases;  // the epochs that are
  };
  Result<State> Describe() const;

  // Folder of the released sums (release_file.h), whole files at any time.
  const std::string& releases_folder() const { return releases_folder_; }
  const Description& description() const { return description_; }

 private:
  using NoticeKey = std::tuple<NoticeKind, uint64_t, uint32_t>;  // kind, sender, item
  struct ClosedList {
    ListedReports listed;
    privacy::ReportList list;
    privacy::MaskedSum sum;
  };
  struct Epoch {
    std::optional<Journal> journal;  // once its records are taken
    std::map<NoticeKey, Bytes> notices;
    std::optional<Intake> intake;  // once the beacon is drawn
    bool is_closed = false;
    uint32_t lists_too_small = 0;
    std::vector<ClosedList> lists;
  };

  Board(Description description, std::string folder, Fd lock);
  Status Load();
  Status LoadEpoch(uint32_t number);
  Status TakeMember(std::span<const uint8_t> record);
  Status TakeRecord(uint32_t number, Epoch& epoch, std::span<const uint8_t> record);
  Result<Epoch*> FindOrMake(uint32_t number);

  Status PostEnrolment(std::span<const uint8_t> bytes, const Notice& notice, int64_t now_ms);
  Status CheckNotice(const Epoch* epoch, const Notice& notice, int64_t now_ms) const;
  void Draw(uint32_t number, Epoch& epoch) const;
  Status Close(uint32_t number, Epoch& epoch);
  bool IsAnswered(const Epoch& epoch) const;
  Status ReleaseEpoch(uint32_t number, Epoch& epoch);
  Release::List Open(Epoch& epoch, size_t index) const;
  Status Expel(uint32_t released, std::span<const Suspects::Cohort> window);

  size_t Count(const Epoch& epoch, NoticeKind kind) const;
  std::vector<std::array<uint8_t, 32>> Collected(const Epoch& epoch, NoticeKind kind) const;

  const Description description_;
  const FleetId id_;
  const Layout layout_;
  const Schedule schedule_;
  const std::string folder_;
  const std::string releases_folder_;
  const Fd lock_;

  mutable std::mutex mutex_;
  Status broken_;  // of an append: everything is loaded again before anything else
  std::optional<Journal> members_;
  Directory directory_;
  std::map<uint64_t, std::pair<uint32_t, Bytes>> enrolments_;  // by device: first epoch, notice
  uint64_t expelled_ = 0;
  Suspects suspects_;
  std::map<uint32_t, Epoch> epochs_;
};

}  // namespace gpusonde::fleet
