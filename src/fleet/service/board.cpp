// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/board.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/little_endian.h"
#include "base/log.h"
#include "base/text.h"
#include "fleet/roles/beacon.h"
#include "fleet/service/keys.h"

namespace gpusonde::fleet {
namespace {

enum Record : char { kEnrolled = 'E', kExpelled = 'X', kNotice = 'N', kReport = 'R', kClosed = 'C' };

std::unexpected<Error> Never(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}
std::unexpected<Error> NotYet(std::string message) { return Fail(ErrorCode::kNotFound, std::move(message)); }

std::string EpochsFolder(const std::string& folder) { return folder + "/epochs"; }

Status MakeOne(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return Fail(ErrnoError(errno, "make " + path));
}

// The folder must be this fleet's, or new.
Status CheckFleet(const std::string& folder, const FleetId& id) {
  const std::string path = folder + "/fleet";
  const Result<std::string> text = ReadFile(path, 4096);
  if (!text.has_value() && text.error().code == ErrorCode::kNotFound)
    return WriteFileAtomically(path, ToHex(id) + "\n");
  if (!text.has_value()) return Fail(text.error());
  if (*text == ToHex(id) + "\n") return {};
  return Never(
      fmt::format("{} belongs to another fleet, or to this one before its description was changed; "
                  "give another --state",
                  folder));
}

}  // namespace

Board::Board(Description description, std::string folder, Fd lock)
    : description_(std::move(description)),
      id_(description_.Id()),
      layout_(description_.layout()),
      schedule_(description_.period_s),
      folder_(std::move(folder)),
      releases_folder_(folder_ + "/releases"),
      lock_(std::move(lock)) {}

Result<std::unique_ptr<Board>> Board::Open(Description description, std::string folder) {
  ASSIGN_OR_RETURN(Fd lock, LockFolder(folder));
  TRY(CheckFleet(folder, description.Id()));
  std::unique_ptr<Board> board(new Board(std::move(description), std::move(folder), std::move(lock)));
  TRY(MakeOne(EpochsFolder(board->folder_)));
  TRY(MakeOne(board->releases_folder_));
  TRY(board->Load());
  return board;
}

Status Board::Load() {
  epochs_.clear();
  members_.reset();
  directory_ = Directory();
  enrolments_.clear();
  expelled_ = 0;
  ASSIGN_OR_RETURN(Journal members, Journal::Open(folder_ + "/members", [&](std::span<const uint8_t> record) {
                     return TakeMember(record);
                   }));
  members_ = std::move(members);
  std::error_code error;
  for (std::filesystem::directory_iterator at(EpochsFolder(folder_), error), end; !error && at != end;
       at.increment(error))
    if (const auto number = ParseNumber<uint32_t>(at->path().filename().string()); number.has_value())
      TRY(LoadEpoch(*number));
  if (error) return Fail(ErrnoError(error.value(), "read " + EpochsFolder(folder_)));
  broken_ = {};
  return {};
}

Status Board::TakeMember(std::span<const uint8_t> record) {
  const std::span<const uint8_t> body = record.subspan(std::min<size_t>(record.size(), 1));
  if (!record.empty() && record[0] == kExpelled && body.size() == sizeof(uint64_t) + sizeof(uint32_t)) {
    directory_.Expel(ReadLittleEndian<uint64_t>(body), ReadLittleEndian<uint32_t>(body.subspan(8)));
    ++expelled_;
    return {};
  }
  const std::optional<Notice> notice = ReadNotice(body, id_);
  if (record.empty() || record[0] != kEnrolled || !notice.has_value() ||
      notice->kind != NoticeKind::kEnrolment)
    return Fail(ErrorCode::kCorrupt, folder_ + "/members has a record that is no enrolment");
  TRY(directory_.Add(notice->sender, EnrolmentOf(*notice).key, notice->epoch));
  enrolments_[notice->sender] = {notice->epoch, {body.begin(), body.end()}};
  return {};
}

Status Board::LoadEpoch(uint32_t number) {
  const std::string folder = fmt::format("{}/{}", EpochsFolder(folder_), number);
  std::error_code error;
  if (std::filesystem::exists(fmt::format("{}/{}.release", releases_folder_, number), error)) {
    // It was released when the process ended.
    std::filesystem::remove_all(folder, error);
    return {};
  }
  Epoch& epoch = epochs_[number];
  Result<Journal> journal = Journal::Open(
      folder, [&](std::span<const uint8_t> record) { return TakeRecord(number, epoch, record); });
  if (!journal.has_value()) {
    epochs_.erase(number);
    return Fail(std::move(journal).error());
  }
  epoch.journal = *std::move(journal);
  return {};
}

Status Board::TakeRecord(uint32_t number, Epoch& epoch, std::span<const uint8_t> record) {
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}/{}: {}", EpochsFolder(folder_), number, what));
  };
  if (record.empty()) return corrupt("an empty record");
  const std::span<const uint8_t> body = record.subspan(1);
  if (record[0] == kNotice) {
    const std::optional<Notice> notice = ReadNotice(body, id_);
    if (!notice.has_value()) return corrupt("a record that is no notice of this fleet");
    epoch.notices[{notice->kind, notice->sender, notice->item}] = {body.begin(), body.end()};
    Draw(number, epoch);
    return {};
  }
  if (record[0] == kReport) {
    if (!epoch.intake.has_value() || epoch.intake->Accept(body) != Verdict::kAccepted)
      return corrupt("a report that isn't acceptable any more");
    return {};
  }
  if (record[0] == kClosed) return Close(number, epoch);
  return corrupt("a record of an unknown kind");
}

Result<Board::Epoch*> Board::FindOrMake(uint32_t number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end()) return &found->second;
  TRY(LoadEpoch(number));
  const auto made = epochs_.find(number);
  // The clock has jumped back.
  if (made == epochs_.end()) return Never(fmt::format("epoch {} is released", number));
  return &made->second;
}

size_t Board::Count(const Epoch& epoch, NoticeKind kind) const {
  return static_cast<size_t>(std::ranges::count_if(
      epoch.notices, [&](const auto& entry) { return std::get<0>(entry.first) == kind; }));
}

std::vector<std::array<uint8_t, 32>> Board::Collected(const Epoch& epoch, NoticeKind kind) const {
  std::vector<std::array<uint8_t, 32>> values;
  for (const auto& [key, bytes] : epoch.notices)
    if (std::get<0>(key) == kind) values.push_back(Payload32(*ReadNotice(bytes, id_)));
  return values;
}

// Once all parts are there, which agree with their commitments (CheckNotice).
void Board::Draw(uint32_t number, Epoch& epoch) const {
  if (epoch.intake.has_value() || Count(epoch, NoticeKind::kPart) < description_.decryptors.size()) return;
  const Result<Beacon> beacon =
      Reveal(number, Collected(epoch, NoticeKind::kCommitment), Collected(epoch, NoticeKind::kPart));
  if (beacon.has_value()) epoch.intake.emplace(directory_, ReportKind::kMasked, number, *beacon, layout_);
}

Status Board::CheckNotice(const Epoch* epoch, const Notice& notice, int64_t now_ms) const {
  const uint32_t now = schedule_.EpochAt(now_ms);
  if (notice.kind == NoticeKind::kExchange) {
    if (notice.epoch <= now) return Never(fmt::format("enrolments for epoch {} are closed", notice.epoch));
    return notice.epoch == now + 1 ? Status() : NotYet(fmt::format("epoch {} is far away", notice.epoch));
  }
  if (notice.epoch > now) return NotYet(fmt::format("epoch {} has not begun", notice.epoch));
  const bool is_over = epoch == nullptr ? now_ms >= schedule_.ReportsEndMs(notice.epoch) : epoch->is_closed;
  if (notice.kind == NoticeKind::kCommitment || notice.kind == NoticeKind::kPart) {
    if (is_over) return Never(fmt::format("reports of epoch {} are closed", notice.epoch));
    if (notice.kind == NoticeKind::kCommitment) return {};
    if (epoch == nullptr || Count(*epoch, NoticeKind::kCommitment) < description_.decryptors.size())
      return NotYet(fmt::format("not all decryptors have committed to the beacon of epoch {}", notice.epoch));
    const Bytes& committed = epoch->notices.at({NoticeKind::kCommitment, notice.sender, 0});
    if (Payload32(*ReadNotice(committed, id_)) != Commit(notice.epoch, Payload32(notice)))
      return Never(fmt::format("the part of epoch {}'s beacon isn't what was committed to", notice.epoch));
    return {};
  }
  if (epoch == nullptr && is_over) return Never(fmt::format("epoch {} is released", notice.epoch));
  if (!is_over) return NotYet(fmt::format("reports of epoch {} are not closed yet", notice.epoch));
  if (notice.kind == NoticeKind::kAnswer &&
      (notice.item >= epoch->lists.size() || epoch->lists[notice.item].list.hash() != Payload32(notice)))
    return Never(fmt::format("epoch {} has no such list {}", notice.epoch, notice.item));
  return {};
}

Status Board::PostEnrolment(std::span<const uint8_t> bytes, const Notice& notice, int64_t now_ms) {
  const auto known = enrolments_.find(notice.sender);
  if (known != enrolments_.end()) {
    if (std::ranges::equal(known->second.second, bytes)) return {};
    return Never(fmt::format("device {} is enrolled with other keys; give it a new ticket",
                             DeviceName(notice.sender)));
  }
  const uint32_t now = schedule_.EpochAt(now_ms);
  if (notice.epoch <= now) return Never(fmt::format("enrolments for epoch {} are closed", notice.epoch));
  const auto epoch = epochs_.find(notice.epoch);
  if (notice.epoch > now + 1 || epoch == epochs_.end() ||
      Count(epoch->second, NoticeKind::kExchange) < description_.decryptors.size())
    return NotYet(fmt::format("enrolments for epoch {} have not begun", notice.epoch));
  if (!IsBySender(bytes, notice, description_, id_))
    return Never(fmt::format("device {} has no ticket of this fleet's authority", DeviceName(notice.sender)));
  broken_ = members_->Append(kEnrolled, bytes);
  TRY(broken_);
  TRY(directory_.Add(notice.sender, EnrolmentOf(notice).key, notice.epoch));
  enrolments_[notice.sender] = {notice.epoch, {bytes.begin(), bytes.end()}};
  return {};
}

Status Board::PostNotice(std::span<const uint8_t> bytes, int64_t now_ms) {
  const std::optional<Notice> notice = ReadNotice(bytes, id_);
  if (!notice.has_value())
    return Never("not a notice of this fleet: the other side's description of it is another, or older");
  const std::scoped_lock lock(mutex_);
  if (!broken_.has_value()) TRY(Load());
  if (notice->kind == NoticeKind::kEnrolment) return PostEnrolment(bytes, *notice, now_ms);
  if (notice->sender >= description_.decryptors.size())
    return Never(fmt::format("this fleet has no decryptor {}", notice->sender));
  const auto found = epochs_.find(notice->epoch);
  const Epoch* const known = found == epochs_.end() ? nullptr : &found->second;
  const NoticeKey key(notice->kind, notice->sender, notice->item);
  if (known != nullptr && known->notices.contains(key)) {
    if (std::ranges::equal(known->notices.at(key), bytes)) return {};
    return Never(fmt::format("there is another notice of this kind for epoch {} already", notice->epoch));
  }
  // Ed25519 takes a tenth of a millisecond: the cheap checks first.
  TRY(CheckNotice(known, *notice, now_ms));
  if (!IsBySender(bytes, *notice, description_, id_))
    return Never("the notice isn't signed by a decryptor of this fleet");
  ASSIGN_OR_RETURN(Epoch* const epoch, FindOrMake(notice->epoch));
  broken_ = epoch->journal->Append(kNotice, bytes);
  TRY(broken_);
  epoch->notices[key] = {bytes.begin(), bytes.end()};
  Draw(notice->epoch, *epoch);
  return {};
}

Result<std::string> Board::PostReport(std::span<const uint8_t> report, int64_t now_ms) {
  const std::scoped_lock lock(mutex_);
  if (!broken_.has_value()) TRY(Load());
  const uint32_t number = schedule_.EpochAt(now_ms) - 1;
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.intake.has_value() || found->second.is_closed ||
      now_ms >= schedule_.ReportsEndMs(number))
    return NotYet(fmt::format("reports of epoch {} are not taken now", number));
  Epoch& epoch = found->second;
  const Verdict verdict = epoch.intake->Accept(report);
  if (verdict == Verdict::kAccepted) {
    broken_ = epoch.journal->Append(kReport, report);
    TRY(broken_);
  }
  return std::string(Name(verdict));
}

Result<std::vector<Bytes>> Board::Notices(uint32_t number) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Bytes> notices;
  const auto found = epochs_.find(number);
  if (found == epochs_.end()) return notices;
  for (const auto& [key, bytes] : found->second.notices)
    if (std::get<0>(key) != NoticeKind::kAnswer) notices.push_back(bytes);
  return notices;
}

Result<std::vector<Bytes>> Board::Enrolments(uint32_t number, int64_t now_ms) const {
  if (number > schedule_.EpochAt(now_ms))
    return NotYet(fmt::format("enrolments for epoch {} are still taken", number));
  const std::scoped_lock lock(mutex_);
  std::vector<Bytes> enrolments;
  for (const auto& [device, enrolment] : enrolments_)
    if (enrolment.first == number) enrolments.push_back(enrolment.second);
  return enrolments;
}

Result<std::vector<ListedReports>> Board::Lists(uint32_t number) const {
  const std::scoped_lock lock(mutex_);
  const auto found = epochs_.find(number);
  if (found == epochs_.end() || !found->second.is_closed)
    return NotYet(fmt::format("epoch {} has no lists now", number));
  std::vector<ListedReports> lists;
  for (const ClosedList& closed : found->second.lists) lists.push_back(closed.listed);
  return lists;
}

Status Board::Close(uint32_t number, Epoch& epoch) {
  epoch.is_closed = true;
  if (!epoch.intake.has_value()) return {};
  for (auto& [place, gathered] : epoch.intake->gathered()) {
    if (gathered.entries.size() < description_.rules.min_reports) {
      ++epoch.lists_too_small;
      continue;
    }
    ListedReports listed{.place = place.first, .cohort = place.second, .entries = gathered.entries};
    ASSIGN_OR_RETURN(privacy::ReportList list,
                     privacy::ReportList::Create(number, place.first, std::move(gathered.entries)));
    epoch.lists.push_back(
        {std::move(listed), std::move(list), std::move(std::get<privacy::MaskedSum>(gathered.sum))});
  }
  return {};
}

bool Board::IsAnswered(const Epoch& epoch) const {
  return Count(epoch, NoticeKind::kAnswer) == epoch.lists.size() * description_.decryptors.size();
}

// The sum of one list, if all decryptors have answered.
Release::List Board::Open(Epoch& epoch, size_t index) const {
  ClosedList& closed = epoch.lists[index];
  Release::List released{.place = closed.listed.place,
                         .cohort = closed.listed.cohort,
                         .reports = closed.list.entries().size(),
                         .answers = 0,
                         .slots = {}};
  std::vector<privacy::MaskAnswer> answers;
  for (size_t decryptor = 0; decryptor < description_.decryptors.size(); ++decryptor) {
    const auto answer = epoch.notices.find({NoticeKind::kAnswer, decryptor, static_cast<uint32_t>(index)});
    if (answer == epoch.notices.end()) return released;
    const std::span<const uint8_t> payload(answer->second);
    const std::vector<uint32_t> slots =
        SlotsOf(payload.subspan(payload.size() - kSignatureBytes - kAnswerBytes + 32));
    answers.push_back(privacy::AnswerFrom(closed.list.hash(), privacy::Slots(slots)));
  }
  Result<privacy::NoisySum> sum = privacy::Unmask(closed.sum, closed.list, std::move(answers));
  if (!sum.has_value()) return released;
  released.answers = sum->answers;
  const Status balance =
      CheckBalance(*sum, description_.rules.sigma, closed.listed.place == layout_.signatures_place());
  released.outcome = balance.has_value() ? Outcome::kReleased : Outcome::kRefused;
  if (balance.has_value()) released.slots = std::move(sum->slots);
  return released;
}

// Suspects' reports are not taken any more. Decryptors needn't know: they answer for lists without them.
Status Board::Expel(uint32_t released, std::span<const Suspects::Cohort> window) {
  // Reports of the next epoch may have been taken by now, and of later ones if this was delayed. After a
  // restart they must be acceptable again.
  uint32_t from = released + 2;
  for (const auto& [number, epoch] : epochs_)
    if (epoch.intake.has_value()) from = std::max(from, number + 1);
  for (const uint64_t device : suspects_.Judge(window)) {
    std::vector<uint8_t> record;
    AppendLittleEndian(record, device);
    AppendLittleEndian(record, from);
    broken_ = members_->Append(kExpelled, record);
    TRY(broken_);
    directory_.Expel(device, from);
    ++expelled_;
    LogWarn("device {} is expelled from epoch {} on: the sums with its reports were never plausible",
            DeviceName(device), from);
  }
  return {};
}

Status Board::ReleaseEpoch(uint32_t number, Epoch& epoch) {
  Release release;
  release.epoch = number;
  release.devices = directory_.size();
  release.expelled = expelled_;
  release.lists_too_small = epoch.lists_too_small;
  if (epoch.intake.has_value()) release.verdicts = epoch.intake->counts();
  std::vector<Suspects::Cohort> window;
  for (size_t i = 0; i < epoch.lists.size(); ++i) {
    release.lists.push_back(Open(epoch, i));
    const Outcome outcome = release.lists.back().outcome;
    if (outcome != Outcome::kUnanswered)
      window.push_back({&epoch.lists[i].list, outcome == Outcome::kRefused});
  }
  TRY(WriteRelease(releases_folder_, release));
  TRY(Expel(number, window));
  epochs_.erase(number);
  std::error_code error;
  std::filesystem::remove_all(fmt::format("{}/{}", EpochsFolder(folder_), number), error);
  if (error) LogWarn("{}/{} can't be removed: {}", EpochsFolder(folder_), number, error.message());
  return {};
}

Status Board::Tick(int64_t now_ms) {
  const std::scoped_lock lock(mutex_);
  if (!broken_.has_value()) TRY(Load());
  std::vector<uint32_t> due;
  for (auto& [number, epoch] : epochs_) {
    if (!epoch.is_closed && now_ms >= schedule_.ReportsEndMs(number)) {
      broken_ = epoch.journal->Append(kClosed, {});
      TRY(broken_);
      TRY(Close(number, epoch));
    }
    if (!epoch.is_closed) continue;
    if (now_ms >= schedule_.AnswersEndMs(number) || (!epoch.lists.empty() && IsAnswered(epoch)))
      due.push_back(number);
  }
  for (const uint32_t number : due) TRY(ReleaseEpoch(number, epochs_.at(number)));
  return {};
}

Result<Board::State> Board::Describe() const {
  State state;
  ASSIGN_OR_RETURN(state.releases, ListReleases(releases_folder_));
  const std::scoped_lock lock(mutex_);
  state.devices = directory_.size();
  for (const auto& [number, epoch] : epochs_) {
    EpochState one{.epoch = number};
    one.exchanges = Count(epoch, NoticeKind::kExchange);
    one.commitments = Count(epoch, NoticeKind::kCommitment);
    one.parts = Count(epoch, NoticeKind::kPart);
    one.agreements = Count(epoch, NoticeKind::kAgreement);
    one.answers = Count(epoch, NoticeKind::kAnswer);
    one.enrolments = static_cast<uint64_t>(
        std::ranges::count_if(enrolments_, [&](const auto& entry) { return entry.second.first == number; }));
    if (epoch.intake.has_value())
      one.reports = epoch.intake->counts()[static_cast<size_t>(Verdict::kAccepted)];
    one.is_closed = epoch.is_closed;
    one.lists = epoch.lists.size();
    state.epochs.push_back(one);
  }
  return state;
}

}  // namespace gpusonde::fleet
