// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/decryptor_service.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <utility>

#include "base/little_endian.h"
#include "base/log.h"
#include "base/text.h"
#include "fleet/privacy/random.h"
#include "fleet/roles/enrolment.h"
#include "fleet/service/keys.h"

namespace gpusonde::fleet {
namespace {

constexpr uint32_t kDecryptorStateVersion = 1;
// Secrets and beacons of so many past epochs are kept.
constexpr uint32_t kKeptEpochs = 2;

privacy::Wiped<uint8_t> DrawSecret() {
  privacy::Wiped<uint8_t> secret(privacy::kKeyBytes);
  privacy::Random::FromSystem().Fill(secret.values());
  return secret;
}

// On which decryptors agree before they answer.
std::array<uint8_t, 32> HashOf(uint32_t epoch, const std::vector<privacy::ReportList>& lists) {
  Bytes bytes;
  AppendLittleEndian(bytes, epoch);
  for (const privacy::ReportList& list : lists)
    bytes.insert(bytes.end(), list.hash().begin(), list.hash().end());
  std::array<uint8_t, 32> hash{};
  crypto_generichash(hash.data(), hash.size(), bytes.data(), bytes.size(), nullptr, 0);
  return hash;
}

}  // namespace

DecryptorService::DecryptorService(Description description, uint64_t number, SigningKey key, StateFile file,
                                   privacy::MaskDecryptor decryptor)
    : description_(std::move(description)),
      id_(description_.Id()),
      schedule_(description_.period_s),
      number_(number),
      key_(std::move(key)),
      file_(std::move(file)),
      decryptor_(std::move(decryptor)) {}

Result<DecryptorService> DecryptorService::Open(Description description, SigningKey key,
                                                const std::string& folder, int64_t now_ms) {
  const auto found = std::ranges::find(description.decryptors, key.open(), &Description::Decryptor::key);
  if (found == description.decryptors.end())
    return Fail(ErrorCode::kInvalidArgument, fmt::format("the key {} is of no decryptor of the fleet {}",
                                                         ToHex(key.open()), description.name));
  const auto number = static_cast<uint64_t>(found - description.decryptors.begin());
  ASSIGN_OR_RETURN(StateFile file, StateFile::Open(folder, description.Id()));
  ASSIGN_OR_RETURN(const privacy::SecretBytes saved, file.Read());
  const privacy::Wiped<uint8_t> noise_key = DrawSecret();
  privacy::MaskDecryptor fresh(description.rules, privacy::KeyBytes(noise_key.values()),
                               Schedule(description.period_s).EpochAt(now_ms));
  DecryptorService service(std::move(description), number, std::move(key), std::move(file), std::move(fresh));
  if (saved.empty()) {
    TRY(service.Save());
    return service;
  }
  privacy::ByteReader in(saved);
  TRY(service.Load(in));
  return service;
}

Status DecryptorService::Load(privacy::ByteReader& in) {
  if (const auto version = in.Read<uint32_t>(); version > kDecryptorStateVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("{}: version {}, this gpusonde reads {}", file_.path(),
                                                version, kDecryptorStateVersion));
  ASSIGN_OR_RETURN(decryptor_, privacy::MaskDecryptor::Load(description_.rules, in));
  devices_ = in.Read<uint64_t>();
  const size_t exchanges = in.ReadCount(sizeof(uint32_t) + privacy::kKeyBytes);
  for (size_t i = 0; i < exchanges; ++i) {
    const auto epoch = in.Read<uint32_t>();
    privacy::Wiped<uint8_t> secret(privacy::kKeyBytes);
    in.Read(secret.values());
    exchanges_.emplace(epoch, std::move(secret));
  }
  const size_t drawings = in.ReadCount(sizeof(uint32_t) + sizeof(BeaconPart) + sizeof(uint64_t));
  for (size_t i = 0; i < drawings; ++i) {
    const auto epoch = in.Read<uint32_t>();
    Drawing drawing;
    in.Read(drawing.part);
    drawing.commitments.resize(in.ReadCount(sizeof(Commitment)));
    for (Commitment& commitment : drawing.commitments) in.Read(commitment);
    drawings_.emplace(epoch, std::move(drawing));
  }
  if (in.Read<uint8_t>() != 0) last_answered_ = in.Read<uint32_t>();
  if (!in.IsComplete()) return Fail(ErrorCode::kCorrupt, file_.path() + " is damaged");
  return {};
}

Status DecryptorService::Save() const {
  privacy::ByteWriter out;
  out.Add(kDecryptorStateVersion);
  decryptor_.Save(out);
  out.Add(devices_);
  out.Add(uint64_t{exchanges_.size()});
  for (const auto& [epoch, secret] : exchanges_) {
    out.Add(epoch);
    out.Add(secret.values());
  }
  out.Add(uint64_t{drawings_.size()});
  for (const auto& [epoch, drawing] : drawings_) {
    out.Add(epoch);
    out.Add(std::span<const uint8_t>(drawing.part));
    out.Add(uint64_t{drawing.commitments.size()});
    for (const Commitment& commitment : drawing.commitments) out.Add(std::span<const uint8_t>(commitment));
  }
  out.Add(static_cast<uint8_t>(last_answered_.has_value()));
  if (last_answered_.has_value()) out.Add(*last_answered_);
  return file_.Save(out.Take());
}

Status DecryptorService::Post(BoardClient& board, NoticeKind kind, uint32_t epoch,
                              std::span<const uint8_t> payload) {
  if (posted_.contains({kind, epoch})) return {};
  const Notice notice{.kind = kind,
                      .epoch = epoch,
                      .sender = number_,
                      .item = 0,
                      .payload = {payload.begin(), payload.end()}};
  TRY(board.PostNotice(MakeNotice(notice, id_, key_)));
  posted_.emplace(kind, epoch);
  return {};
}

Status DecryptorService::OfferExchange(BoardClient& board, uint32_t epoch) {
  if (!exchanges_.contains(epoch)) {
    exchanges_.emplace(epoch, DrawSecret());
    TRY(Save());
  }
  const ExchangeKey key(privacy::KeyBytes(exchanges_.at(epoch).values()));
  return Post(board, NoticeKind::kExchange, epoch, key.open());
}

// The devices that enrolled for each epoch that has begun; then the secret is destroyed.
Status DecryptorService::Enrol(BoardClient& board, uint32_t now_epoch) {
  while (!exchanges_.empty() && exchanges_.begin()->first <= now_epoch) {
    const uint32_t epoch = exchanges_.begin()->first;
    ASSIGN_OR_RETURN(const std::vector<Bytes> enrolments, board.Enrolments(epoch));
    const ExchangeKey key(privacy::KeyBytes(exchanges_.begin()->second.values()));
    for (const Bytes& bytes : enrolments) {
      const std::optional<Notice> notice = ReadNotice(bytes, id_);
      if (!notice.has_value() || notice->kind != NoticeKind::kEnrolment || notice->epoch != epoch ||
          !IsBySender(bytes, *notice, description_, id_)) {
        LogWarn("the aggregator gave an enrolment that no device with a ticket signed; it is left out");
        continue;
      }
      Result<privacy::MaskKey> mask = key.AsDecryptor(EnrolmentOf(*notice).exchange, notice->sender, epoch);
      const Status enrolled =
          mask.has_value() ? decryptor_.Enrol(notice->sender, *std::move(mask)) : Fail(mask.error());
      if (enrolled.has_value())
        ++devices_;
      else
        LogWarn("device {} is left out: {}", DeviceName(notice->sender), enrolled.error().message);
    }
    exchanges_.erase(epoch);
    TRY(Save());
  }
  return {};
}

Status DecryptorService::Draw(BoardClient& board, uint32_t epoch) {
  // The beacon assigns devices to places: nobody may enrol once it can be known.
  if (!exchanges_.empty() && exchanges_.begin()->first <= epoch) return {};
  if (posted_.contains({NoticeKind::kPart, epoch})) return {};
  if (!drawings_.contains(epoch)) {
    privacy::Random::FromSystem().Fill(drawings_[epoch].part);
    TRY(Save());
  }
  Drawing& drawing = drawings_.at(epoch);
  TRY(Post(board, NoticeKind::kCommitment, epoch, Commit(epoch, drawing.part)));
  if (drawing.commitments.empty()) {
    ASSIGN_OR_RETURN(const SignedEpoch signed_epoch, SignedEpoch::Read(board, epoch, description_, id_));
    const auto commitments = signed_epoch.All(NoticeKind::kCommitment);
    if (!commitments.has_value()) return {};
    drawing.commitments = *commitments;
    TRY(Save());
  }
  return Post(board, NoticeKind::kPart, epoch, drawing.part);
}

// The lists, if the aggregator was allowed to make them: each place and cohort once, with devices that were
// drawn for it.
Result<std::vector<privacy::ReportList>> DecryptorService::Check(const std::vector<ListedReports>& listed,
                                                                 const DrawnEpoch& draw) const {
  std::vector<privacy::ReportList> lists;
  std::set<std::pair<uint32_t, uint32_t>> places;
  for (const ListedReports& one : listed) {
    ASSIGN_OR_RETURN(privacy::ReportList list,
                     privacy::ReportList::Create(draw.epoch, one.place, one.entries));
    TRY(CheckDraw(list, draw));
    if (one.entries.empty() || !places.emplace(one.place, one.cohort).second ||
        AssignmentOf(one.entries.front().device, draw.epoch, draw.beacon, draw.layout).cohort != one.cohort)
      return Fail(
          ErrorCode::kPermissionDenied,
          fmt::format("report list: that of place {} and cohort {} is empty, there twice or another's",
                      one.place, one.cohort));
    lists.push_back(std::move(list));
  }
  return lists;
}

Status DecryptorService::AnswerAll(BoardClient& board, uint32_t epoch,
                                   const std::vector<privacy::ReportList>& lists) {
  std::vector<std::pair<uint32_t, privacy::MaskAnswer>> answers;
  for (uint32_t item = 0; item < lists.size(); ++item) {
    Result<privacy::MaskAnswer> answer = decryptor_.Answer(lists[item]);
    if (answer.has_value())
      answers.emplace_back(item, *std::move(answer));
    else
      LogWarn("epoch {}, list {} is not answered: {}", epoch, item, answer.error().message);
  }
  // What was answered for must be known after a crash, so that it isn't answered for in another list.
  TRY(Save());
  for (const auto& [item, answer] : answers) {
    Notice notice{
        .kind = NoticeKind::kAnswer, .epoch = epoch, .sender = number_, .item = item, .payload = {}};
    notice.payload.assign(answer.list().begin(), answer.list().end());
    const std::vector<uint8_t> slots = BytesOf(answer.slots());
    notice.payload.insert(notice.payload.end(), slots.begin(), slots.end());
    TRY(board.PostNotice(MakeNotice(notice, id_, key_)));
  }
  last_answered_ = epoch;
  return Save();
}

Status DecryptorService::Answer(BoardClient& board, uint32_t epoch) {
  const auto drawing = drawings_.find(epoch);
  if (last_answered_.value_or(0) >= epoch || drawing == drawings_.end() ||
      drawing->second.commitments.empty())
    return {};
  ASSIGN_OR_RETURN(SignedEpoch signed_epoch, SignedEpoch::Read(board, epoch, description_, id_));
  // Once this one agrees, it needs the lists again only when all do.
  if (posted_.contains({NoticeKind::kAgreement, epoch}) &&
      !signed_epoch.All(NoticeKind::kAgreement).has_value())
    return {};
  ASSIGN_OR_RETURN(const std::vector<ListedReports> listed, board.Lists(epoch));
  const auto parts = signed_epoch.All(NoticeKind::kPart);
  if (!parts.has_value()) return {};
  ASSIGN_OR_RETURN(const Beacon beacon, Reveal(epoch, drawing->second.commitments, *parts));
  ASSIGN_OR_RETURN(const std::vector<privacy::ReportList> lists,
                   Check(listed, {.epoch = epoch, .beacon = beacon, .layout = description_.layout()}));
  const std::array<uint8_t, 32> hash = HashOf(epoch, lists);
  TRY(Post(board, NoticeKind::kAgreement, epoch, hash));
  ASSIGN_OR_RETURN(signed_epoch, SignedEpoch::Read(board, epoch, description_, id_));
  const auto agreements = signed_epoch.All(NoticeKind::kAgreement);
  if (!agreements.has_value()) return {};
  if (const auto other =
          std::ranges::find_if(*agreements, [&](const auto& theirs) { return theirs != hash; });
      other != agreements->end())
    return Fail(
        ErrorCode::kPermissionDenied,
        fmt::format(
            "epoch {}: the aggregator gave decryptor {} other lists than this one; nothing is answered",
            epoch, description_.decryptors[static_cast<size_t>(other - agreements->begin())].name));
  return AnswerAll(board, epoch, lists);
}

void DecryptorService::Forget(uint32_t before_epoch) {
  if (forgotten_ == before_epoch) return;
  forgotten_ = before_epoch;
  if (const Status forgotten = decryptor_.Forget(before_epoch); !forgotten.has_value())
    LogWarn("keys of epochs before {} are not erased: {}", before_epoch, forgotten.error().message);
  drawings_.erase(drawings_.begin(), drawings_.lower_bound(before_epoch));
  std::erase_if(posted_, [&](const auto& posted) { return posted.second < before_epoch; });
}

Status DecryptorService::Step(BoardClient& board, int64_t now_ms) {
  const uint32_t now = schedule_.EpochAt(now_ms);
  Forget(now - std::min(now, kKeptEpochs));
  // Each on its own: a device that can't be enrolled now must not keep an epoch from being answered.
  Status done;
  const auto keep = [&](Status status) {
    if (done.has_value()) done = UnlessNotYet(std::move(status));
  };
  keep(OfferExchange(board, now + 1));
  keep(Enrol(board, now));
  keep(Draw(board, now));
  if (now > 0 && now_ms < schedule_.ReportsEndMs(now - 1)) keep(Draw(board, now - 1));
  if (now > 0) keep(Answer(board, now - 1));
  return done;
}

}  // namespace gpusonde::fleet
