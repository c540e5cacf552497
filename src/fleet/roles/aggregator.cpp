// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/aggregator.h"

#include <fmt/format.h>

#include <utility>

namespace gpusonde::fleet {

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAccepted:
      return "accepted";
    case Verdict::kMalformed:
      return "malformed";
    case Verdict::kStranger:
      return "stranger";
    case Verdict::kOtherEpoch:
      return "other_epoch";
    case Verdict::kOtherPlace:
      return "other_place";
    case Verdict::kDuplicate:
      return "duplicate";
    case Verdict::kBadSignature:
      return "bad_signature";
  }
  return "unknown";
}

void CiphertextSum::Add(const privacy::Ciphertext& report) {
  privacy::Add(sum_, report);
  ++reports_;
}

void CiphertextSum::Add(const CiphertextSum& other) {
  privacy::Add(sum_, other.sum_);
  reports_ += other.reports_;
}

Intake::Intake(const Directory& directory, ReportKind kind, uint32_t epoch, const Beacon& beacon,
               const Layout& layout)
    : directory_(&directory), kind_(kind), epoch_(epoch), beacon_(beacon), layout_(layout) {}

Verdict Intake::Accept(std::span<const uint8_t> report) {
  const Verdict verdict = Judge(report);
  ++counts_[static_cast<size_t>(verdict)];
  return verdict;
}

Verdict Intake::Judge(std::span<const uint8_t> report) {
  const auto header = ReadHeader(report);
  if (!header.has_value()) return Verdict::kMalformed;
  const VerifyKey* const key = directory_->Find(header->device, header->epoch);
  if (key == nullptr) return Verdict::kStranger;
  if (header->epoch != epoch_ || header->kind != kind_) return Verdict::kOtherEpoch;
  const Assignment assignment = AssignmentOf(header->device, epoch_, beacon_, layout_);
  if (header->place != assignment.place) return Verdict::kOtherPlace;
  if (devices_.contains(header->device)) return Verdict::kDuplicate;
  if (!IsSigned(report, *key)) return Verdict::kBadSignature;

  const Place place(assignment.place, assignment.cohort);
  if (kind_ == ReportKind::kMasked) {
    auto& gathered = gathered_.try_emplace(place).first->second;
    std::get<privacy::MaskedSum>(gathered.sum).Add(privacy::Slots(SlotsOf(BodyOf(report))));
    gathered.entries.push_back({header->device, header->salt});
  } else {
    const auto ciphertext = privacy::Unpack(BodyOf(report));
    if (!ciphertext.has_value()) return Verdict::kMalformed;
    auto& gathered = gathered_.try_emplace(place, Gathered{CiphertextSum(), {}}).first->second;
    std::get<CiphertextSum>(gathered.sum).Add(*ciphertext);
    gathered.entries.push_back({header->device, header->salt});
  }
  devices_.insert(header->device);
  return Verdict::kAccepted;
}

Status Intake::Merge(Intake other) {
  if (other.epoch_ != epoch_ || other.kind_ != kind_)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("aggregator: reports of epoch {} can't be added to those of {}", other.epoch_, epoch_));
  for (const uint64_t device : other.devices_)
    if (devices_.contains(device))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("aggregator: two workers have a report of device {}", device));
  devices_.merge(other.devices_);
  for (auto& [place, theirs] : other.gathered_) {
    const auto [found, is_new] = gathered_.try_emplace(place, std::move(theirs));
    if (is_new) continue;
    Gathered& ours = found->second;
    if (kind_ == ReportKind::kMasked)
      std::get<privacy::MaskedSum>(ours.sum).Add(std::get<privacy::MaskedSum>(theirs.sum));
    else
      std::get<CiphertextSum>(ours.sum).Add(std::get<CiphertextSum>(theirs.sum));
    ours.entries.insert(ours.entries.end(), theirs.entries.begin(), theirs.entries.end());
  }
  for (size_t i = 0; i < kVerdicts; ++i) counts_[i] += other.counts_[i];
  return {};
}

}  // namespace gpusonde::fleet
