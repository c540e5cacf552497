// SPDX-License-Identifier: Apache-2.0
// A fleet's aggregator: honest and other notices and reports, at any time and in any order, with its process
// restarted in between, which must change nothing. Each byte of the input is a step, its arguments follow it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleet/roles/beacon.h"
#include "fleet/roles/message.h"
#include "fleet/service/board.h"
#include "fleet/service/keys.h"
#include "fleet/service/results.h"
#include "fleet/service/testing/fleet.h"
#include "scratch_folder.h"

namespace {

using namespace gpusonde;         // NOLINT(google-build-using-namespace): a program of its own
using namespace gpusonde::fleet;  // NOLINT(google-build-using-namespace)

constexpr uint32_t kFirstEpoch = 100;
constexpr uint8_t kDecryptors = 2;
constexpr uint8_t kDevices = 4;
constexpr size_t kMaxSteps = 300;

// What restarts must keep.
struct BoardView {
  uint64_t devices = 0;
  std::vector<uint32_t> releases;
  std::vector<std::array<uint64_t, 10>> epochs;
  std::vector<Bytes> told;  // to others

  bool operator==(const BoardView&) const = default;
};

class BoardPlay {
 public:
  explicit BoardPlay(std::span<const uint8_t> bytes) : rest_(bytes) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    for (uint8_t i = 0; i < kDevices; ++i) tickets_.push_back(testing::TicketOf(id_, i));
    Reopen();
  }

  void Run() {
    for (size_t step = 0; step < kMaxSteps && !rest_.empty(); ++step) Step();
    Restart();
    const auto results = SumUp(*board_, 100);
    if (!results.has_value() || ToText(*results).empty() || ToJson(*results).empty()) std::abort();
  }

 private:
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

  void Step() {
    switch (Byte() % 8) {
      case 0:
        now_ms_ += 500 * int64_t{Byte()};
        return;
      case 1:
        if (!board_->Tick(now_ms_).has_value()) std::abort();
        return;
      case 2:
        return Restart();
      case 3:
        return PostAnyNotice();
      case 4:
        return PostAnyReport();
      case 5:
        return PostBytes();
      case 6:
        return PostOfAll();
      default:
        return PostAnswers();
    }
  }

  // An epoch near now.
  uint32_t AnEpoch() { return schedule_.EpochAt(now_ms_) + 1 - Byte() % 4; }
  static BeaconPart PartOf(uint64_t decryptor) { return {static_cast<uint8_t>(decryptor)}; }
  static SigningKey KeyOfSender(uint64_t sender) {
    return testing::KeyOf(static_cast<uint8_t>(1 + sender % 4));
  }

  Bytes Payload(NoticeKind kind, uint32_t epoch, uint64_t sender, uint32_t item, bool honest) {
    if (kind == NoticeKind::kEnrolment) {
      const Ticket& ticket = tickets_[sender % kDevices];
      const SigningKey key(privacy::KeyBytes(ticket.seed.values()));
      return BytesOf(Enrolment{.key = key.open(), .admission = honest ? ticket.signature : Signature{}});
    }
    const BeaconPart part = honest ? PartOf(sender) : BeaconPart{77};
    if (kind == NoticeKind::kCommitment) return AsBytes(Commit(epoch, part));
    if (kind != NoticeKind::kAnswer) return AsBytes(part);
    Bytes payload(kAnswerBytes);
    const auto lists = board_->Lists(epoch);
    if (honest && lists.has_value() && item < lists->size()) {
      const auto list = privacy::ReportList::Create(epoch, (*lists)[item].place, (*lists)[item].entries);
      if (!list.has_value()) std::abort();
      std::ranges::copy(list->hash(), payload.begin());
    }
    return payload;
  }
  static Bytes AsBytes(const std::array<uint8_t, 32>& bytes) { return {bytes.begin(), bytes.end()}; }

  void Post(NoticeKind kind, uint32_t epoch, uint64_t sender, uint32_t item, bool honest, bool intact) {
    const Notice notice{.kind = kind,
                        .epoch = epoch,
                        .sender = sender,
                        .item = item,
                        .payload = Payload(kind, epoch, sender, item, honest)};
    const bool is_device = kind == NoticeKind::kEnrolment;
    Bytes bytes =
        MakeNotice(notice, id_,
                   is_device ? SigningKey(privacy::KeyBytes(tickets_[sender % kDevices].seed.values()))
                             : KeyOfSender(sender));
    if (!intact) bytes[bytes.size() - 1 - sender % bytes.size()] ^= 1;
    Expect(board_->PostNotice(bytes, now_ms_));
  }
  // Only what is too early, or never will be taken.
  static void Expect(const Status& status) {
    if (!status.has_value() && status.error().code != ErrorCode::kNotFound &&
        status.error().code != ErrorCode::kInvalidArgument)
      std::abort();
  }

  void PostAnyNotice() {
    constexpr std::array kKinds = {NoticeKind::kExchange, NoticeKind::kEnrolment, NoticeKind::kCommitment,
                                   NoticeKind::kPart,     NoticeKind::kAgreement, NoticeKind::kAnswer};
    const NoticeKind kind = kKinds[Byte() % kKinds.size()];
    const uint32_t epoch = AnEpoch();
    const uint8_t who = Byte();
    const uint8_t how = Byte();
    const uint64_t sender = kind == NoticeKind::kEnrolment ? uint64_t{1000} + who % kDevices : who % 4;
    Post(kind, epoch, sender, how / 4 % 3, how % 2 == 0, how % 4 < 2);
  }
  // What all decryptors, and the devices, do in a good epoch.
  void PostOfAll() {
    const uint8_t what = Byte() % 4;
    const uint32_t epoch = AnEpoch();
    constexpr std::array kKinds = {NoticeKind::kExchange, NoticeKind::kCommitment, NoticeKind::kPart};
    if (what < kKinds.size())
      for (uint8_t i = 0; i < kDecryptors; ++i) Post(kKinds[what], epoch, i, 0, true, true);
    else
      for (uint8_t i = 0; i < kDevices; ++i)
        Post(NoticeKind::kEnrolment, epoch, uint64_t{1000} + i, 0, true, true);
  }
  void PostAnswers() {
    const uint32_t epoch = AnEpoch();
    const auto lists = board_->Lists(epoch);
    if (!lists.has_value()) return;
    for (uint32_t item = 0; item < lists->size(); ++item)
      for (uint8_t i = 0; i < kDecryptors; ++i) Post(NoticeKind::kAnswer, epoch, i, item, true, true);
  }

  void PostAnyReport() {
    const uint8_t who = Byte();
    const uint8_t how = Byte();
    const uint32_t epoch = AnEpoch();
    std::vector<BeaconPart> parts;
    std::vector<Commitment> commitments;
    for (uint8_t i = 0; i < kDecryptors; ++i) {
      parts.push_back(PartOf(i));
      commitments.push_back(Commit(epoch, parts.back()));
    }
    const auto beacon = Reveal(epoch, commitments, parts);
    if (!beacon.has_value()) std::abort();
    const uint64_t device = uint64_t{1000} + who % kDevices;
    const Assignment drawn = AssignmentOf(device, epoch, *beacon, fleet_.layout());
    ReportHeader header{.epoch = epoch, .place = how % 8 == 7 ? how : drawn.place, .device = device};
    header.salt[0] = how;
    // Idle, or of a weight that isn't released.
    std::vector<uint32_t> slots = MessageOf({}, drawn, fleet_.layout(), RoundToReport({}));
    if (how % 4 != 0) slots[who] = how;
    const std::vector<uint8_t> body = BytesOf(privacy::Slots(slots));
    Bytes report =
        MakeReport(header, body, SigningKey(privacy::KeyBytes(tickets_[who % kDevices].seed.values())));
    if (how % 16 == 6) report.back() ^= 1;
    const auto verdict = board_->PostReport(report, now_ms_);
    Expect(verdict.has_value() ? Status() : std::unexpected(verdict.error()));
  }

  void PostBytes() {
    const size_t wanted = Byte();
    const std::span<const uint8_t> bytes = rest_.first(std::min(wanted, rest_.size()));
    Expect(board_->PostNotice(bytes, now_ms_));
    const auto verdict = board_->PostReport(bytes, now_ms_);
    Expect(verdict.has_value() ? Status() : std::unexpected(verdict.error()));
    rest_ = rest_.subspan(bytes.size());
  }

  BoardView Look() const {
    const auto state = board_->Describe();
    if (!state.has_value()) std::abort();
    BoardView view{.devices = state->devices, .releases = state->releases, .epochs = {}, .told = {}};
    for (const Board::EpochState& epoch : state->epochs) {
      view.epochs.push_back({epoch.epoch, epoch.exchanges, epoch.commitments, epoch.parts, epoch.agreements,
                             epoch.enrolments, epoch.reports, uint64_t{epoch.is_closed}, epoch.lists,
                             epoch.answers});
      view.told.push_back(Join(board_->Notices(epoch.epoch).value()));
      if (const auto lists = board_->Lists(epoch.epoch); lists.has_value()) {
        view.told.push_back(BytesOf(*lists));
        for (const ListedReports& list : *lists)
          if (list.entries.size() < fleet_.rules.min_reports) std::abort();
      }
    }
    std::ranges::sort(view.epochs);
    return view;
  }
  void Restart() {
    const BoardView before = Look();
    Reopen();
    if (Look() != before) std::abort();
  }
  void Reopen() {
    board_.reset();
    auto opened = Board::Open(fleet_, folder_);
    if (!opened.has_value()) std::abort();
    board_ = *std::move(opened);
  }

  static const ScratchFolder& Scratch() {
    static const ScratchFolder folder;
    return folder;
  }

  std::span<const uint8_t> rest_;
  const std::string folder_ = Scratch() / "board";
  const Description fleet_ = testing::SmallFleet(kDecryptors);
  const FleetId id_ = fleet_.Id();
  const Schedule schedule_{testing::kPeriodS};
  int64_t now_ms_ = schedule_.BeginMs(kFirstEpoch);
  std::vector<Ticket> tickets_;
  std::unique_ptr<Board> board_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  BoardPlay({data, size}).Run();
  return 0;
}
