// SPDX-License-Identifier: Apache-2.0
#include "privacy/decryptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "privacy/gaussian.h"

namespace gpusonde::privacy {
namespace {

constexpr size_t kEntryBytes = sizeof(uint64_t) + sizeof(Salt);

template <class Integer>
void Append(std::vector<uint8_t>& bytes, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

Result<ReportList> ReportList::Create(uint32_t epoch, uint32_t page, std::vector<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::device);
  const auto twice = std::ranges::adjacent_find(entries, {}, &Entry::device);
  if (twice != entries.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("report list: device {} is in it twice", twice->device));
  ReportList list;
  std::vector<uint8_t> bytes;
  bytes.reserve(2 * sizeof(uint32_t) + entries.size() * kEntryBytes);
  Append(bytes, epoch);
  Append(bytes, page);
  for (const Entry& entry : entries) {
    Append(bytes, entry.device);
    bytes.insert(bytes.end(), entry.salt.begin(), entry.salt.end());
  }
  crypto_generichash(list.hash_.data(), list.hash_.size(), bytes.data(), bytes.size(), nullptr, 0);
  list.epoch_ = epoch;
  list.page_ = page;
  list.entries_ = std::move(entries);
  return list;
}

MaskDecryptor::MaskDecryptor(Rules rules, KeyBytes secret)
    : rules_(rules),
      fresh_budget_(rules.epsilon, rules.delta, Rho(kSensitivity, static_cast<double>(rules.sigma))),
      secret_(kKeyBytes) {
  std::ranges::copy(secret, secret_.values().begin());
}

Status MaskDecryptor::Enrol(uint64_t device, MaskKey key) {
  if (!devices_.try_emplace(device, Device{std::move(key), {}, {}}).second)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("enrolment: device {} is enrolled", device));
  return {};
}

Status MaskDecryptor::Check(const ReportList& list) const {
  if (list.entries().size() < rules_.min_reports)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("report list: {} reports; at least {} are released together",
                            list.entries().size(), rules_.min_reports));
  for (const ReportList::Entry& entry : list.entries()) {
    const auto found = devices_.find(entry.device);
    if (found == devices_.end())
      return Fail(ErrorCode::kNotFound, fmt::format("report list: device {} isn't enrolled", entry.device));
    const Device& device = found->second;
    const auto spent = device.spent.find(list.epoch());
    if (spent != device.spent.end() && spent->second != list.hash())
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: device {}'s report of epoch {} was answered for in another list",
                              entry.device, list.epoch()));
    if (list.epoch() < device.key.epoch())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("report list: keys of epoch {} are erased; they are of {} now", list.epoch(),
                              device.key.epoch()));
    const auto budget = device.budgets.find(list.page());
    if (spent == device.spent.end() && budget != device.budgets.end() && budget->second.windows_left() == 0)
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: the privacy budget of device {} on page {} is spent",
                              entry.device, list.page()));
  }
  return {};
}

Result<std::vector<uint32_t>> MaskDecryptor::Answer(const ReportList& list) {
  TRY(Check(list));
  std::vector<uint32_t> answer(kReportSlots);
  const std::span<uint32_t, kReportSlots> slots(answer);
  for (const ReportList::Entry& entry : list.entries()) {
    Device& device = devices_.at(entry.device);
    TRY(device.key.AdvanceTo(list.epoch()));
    device.key.Add({list.page(), entry.salt}, slots);
    if (device.spent.try_emplace(list.epoch(), list.hash()).second)
      TRY(device.budgets.try_emplace(list.page(), fresh_budget_).first->second.Spend());
  }
  // From the list's hash: who asks again, or restores a snapshot, gets the same noise and learns nothing new.
  Random noise =
      Random::FromKey(KeyBytes(Derive(KeyBytes(secret_.values()), "gpusonde noise", list.hash()).values()));
  for (uint32_t& slot : slots) slot -= static_cast<uint32_t>(DrawGaussian(rules_.sigma, noise));
  return answer;
}

Status MaskDecryptor::Forget(uint32_t before_epoch) {
  for (auto& [id, device] : devices_) {
    if (device.key.epoch() < before_epoch) TRY(device.key.AdvanceTo(before_epoch));
    device.spent.erase(device.spent.begin(), device.spent.lower_bound(before_epoch));
  }
  return {};
}

}  // namespace gpusonde::privacy
