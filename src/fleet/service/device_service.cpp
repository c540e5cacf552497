// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/device_service.h"

#include <fmt/format.h>

#include <utility>

#include "base/little_endian.h"
#include "fleet/privacy/random.h"
#include "fleet/roles/enrolment.h"
#include "fleet/service/notice.h"
#include "fleet/service/signed_epoch.h"

namespace gpusonde::fleet {
namespace {

constexpr uint32_t kDeviceStateVersion = 1;

}  // namespace

DeviceService::DeviceService(Description description, Ticket ticket, StateFile file)
    : description_(std::move(description)),
      id_(description_.Id()),
      schedule_(description_.period_s),
      ticket_(std::move(ticket)),
      file_(std::move(file)) {}

Result<DeviceService> DeviceService::Open(Description description, Ticket ticket, const std::string& folder) {
  if (ticket.fleet != description.Id())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the ticket of device {} is of another fleet than {}, or of this one before its "
                            "description was changed",
                            DeviceName(ticket.device), description.name));
  ASSIGN_OR_RETURN(StateFile file, StateFile::Open(folder, ticket.fleet));
  ASSIGN_OR_RETURN(const privacy::SecretBytes saved, file.Read());
  DeviceService service(std::move(description), std::move(ticket), std::move(file));
  if (saved.empty()) return service;
  privacy::ByteReader in(saved);
  TRY(service.Load(in));
  return service;
}

Status DeviceService::Load(privacy::ByteReader& in) {
  if (const auto version = in.Read<uint32_t>(); version > kDeviceStateVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("{}: version {}, this gpusonde reads {}", file_.path(),
                                                version, kDeviceStateVersion));
  first_epoch_ = in.Read<uint32_t>();
  const std::span<const uint8_t> enrolment = in.ReadWithLength();
  enrolment_.assign(enrolment.begin(), enrolment.end());
  if (in.Read<uint8_t>() != 0) {
    ASSIGN_OR_RETURN(device_, Device::Load(MakeSigningKey(), in));
    if (device_->id() != ticket_.device)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{} is that of device {}, the ticket is of {}; give each device a folder of its own",
                      file_.path(), DeviceName(device_->id()), DeviceName(ticket_.device)));
  }
  if (!in.IsComplete()) return Fail(ErrorCode::kCorrupt, file_.path() + " is damaged");
  return {};
}

Status DeviceService::Save() const {
  privacy::ByteWriter out;
  out.Add(kDeviceStateVersion);
  out.Add(first_epoch_);
  out.AddWithLength(enrolment_);
  out.Add(static_cast<uint8_t>(device_.has_value()));
  if (device_.has_value()) device_->Save(out);
  return file_.Save(out.Take());
}

// Keys with all decryptors, for reports from `first_epoch` on. Nobody keeps the exchange's secret.
Status DeviceService::MakeEnrolment(BoardClient& board, uint32_t first_epoch) {
  ASSIGN_OR_RETURN(const SignedEpoch signed_epoch, SignedEpoch::Read(board, first_epoch, description_, id_));
  const auto offers = signed_epoch.All(NoticeKind::kExchange);
  if (!offers.has_value())
    return Fail(ErrorCode::kNotFound,
                fmt::format("not all decryptors take enrolments for epoch {} yet", first_epoch));
  privacy::Wiped<uint8_t> secret(privacy::kKeyBytes);
  privacy::Random::FromSystem().Fill(secret.values());
  const ExchangeKey exchange(privacy::KeyBytes(secret.values()));
  std::vector<privacy::MaskKey> masks;
  for (const ExchangeOpen& offer : *offers) {
    ASSIGN_OR_RETURN(privacy::MaskKey mask, exchange.AsDevice(offer, ticket_.device, first_epoch));
    masks.push_back(std::move(mask));
  }
  const SigningKey key = MakeSigningKey();
  const Notice notice{.kind = NoticeKind::kEnrolment,
                      .epoch = first_epoch,
                      .sender = ticket_.device,
                      .item = 0,
                      .payload = BytesOf(Enrolment{
                          .key = key.open(), .exchange = exchange.open(), .admission = ticket_.signature})};
  device_.emplace(ticket_.device, MakeSigningKey(), std::move(masks));
  first_epoch_ = first_epoch;
  enrolment_ = MakeNotice(notice, id_, key);
  return Save();
}

Status DeviceService::Enrol(BoardClient& board, uint32_t first_epoch) {
  if (!device_.has_value()) TRY(MakeEnrolment(board, first_epoch));
  const Status posted = board.PostNotice(enrolment_);
  if (posted.has_value()) {
    enrolment_.clear();
    return Save();
  }
  if (posted.error().code != ErrorCode::kInvalidArgument) return posted;
  // The aggregator never had it, and won't take it any more: the next step begins anew.
  device_.reset();
  enrolment_.clear();
  TRY(Save());
  return posted;
}

Status DeviceService::MakeReport(BoardClient& board, const Observe& observe, uint32_t epoch) {
  ASSIGN_OR_RETURN(const SignedEpoch signed_epoch, SignedEpoch::Read(board, epoch, description_, id_));
  ASSIGN_OR_RETURN(const DrawnEpoch draw, signed_epoch.Drawn());
  const Assignment assignment = AssignmentOf(ticket_.device, epoch, draw.beacon, draw.layout);
  ASSIGN_OR_RETURN(const Work work, observe(schedule_.BeginMs(epoch), schedule_.BeginMs(epoch + 1)));
  if (work.rows.size() < description_.groups)
    return Fail(ErrorCode::kInternal,
                fmt::format("{} groups were observed of {}", work.rows.size(), description_.groups));
  const std::vector<uint32_t> message =
      MessageOf(work.finding, assignment, draw.layout, work.rows[assignment.group]);
  privacy::Random random = privacy::Random::FromSystem();
  TRY(device_->ReportMasked(epoch, assignment.place, privacy::Slots(message), random));
  return Save();
}

Status DeviceService::Send(BoardClient& board, uint32_t epoch) {
  ASSIGN_OR_RETURN(std::string verdict, board.PostReport(device_->pending()));
  last_reported_ = Reported{.epoch = epoch, .verdict = std::move(verdict)};
  device_->Acknowledge();
  return Save();
}

// When a report is sent says nothing, as it is drawn beforehand, and a fleet's don't come at once.
int64_t DeviceService::MomentOf(uint32_t epoch) const {
  std::vector<uint8_t> data;
  AppendLittleEndian(data, epoch);
  const privacy::Wiped<uint8_t> key =
      privacy::Derive(privacy::KeyBytes(ticket_.seed.values()), "gpusonde report moment", data);
  privacy::Random random = privacy::Random::FromKey(privacy::KeyBytes(key.values()));
  const auto spread = static_cast<uint64_t>(schedule_.PeriodMs()) * 2 / 5;
  return schedule_.ReportsBeginMs(epoch) + static_cast<int64_t>(random.Below(Uint128{spread} + 1));
}

Status DeviceService::Report(BoardClient& board, const Observe& observe, uint32_t epoch, int64_t now_ms) {
  const bool is_made = device_->next_epoch() == epoch + 1 && !device_->pending().empty();
  if (now_ms < MomentOf(epoch) || now_ms >= schedule_.ReportsEndMs(epoch)) return {};
  if (device_->next_epoch() > epoch && !is_made) return {};
  if (!is_made) TRY(MakeReport(board, observe, epoch));
  return Send(board, epoch);
}

Status DeviceService::Step(BoardClient& board, const Observe& observe, int64_t now_ms) {
  const uint32_t now = schedule_.EpochAt(now_ms);
  Status done;
  if (!is_enrolled())
    done = Enrol(board, now + 1);
  else if (now > first_epoch_)
    done = Report(board, observe, now - 1, now_ms);
  return UnlessNotYet(std::move(done));
}

}  // namespace gpusonde::fleet
