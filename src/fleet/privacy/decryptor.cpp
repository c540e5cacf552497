// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/decryptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/little_endian.h"
#include "fleet/privacy/gaussian.h"

namespace gpusonde::privacy {
namespace {

constexpr size_t kEntryBytes = sizeof(uint64_t) + sizeof(Salt);

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
  AppendLittleEndian(bytes, epoch);
  AppendLittleEndian(bytes, page);
  for (const Entry& entry : entries) {
    AppendLittleEndian(bytes, entry.device);
    bytes.insert(bytes.end(), entry.salt.begin(), entry.salt.end());
  }
  crypto_generichash(list.hash_.data(), list.hash_.size(), bytes.data(), bytes.size(), nullptr, 0);
  list.epoch_ = epoch;
  list.page_ = page;
  list.entries_ = std::move(entries);
  return list;
}

Wiped<uint8_t> RatchetNoiseKey(KeyBytes key, uint32_t from_epoch, uint32_t to_epoch) {
  Wiped<uint8_t> ratcheted(kKeyBytes);
  std::ranges::copy(key, ratcheted.values().begin());
  for (uint32_t epoch = from_epoch; epoch < to_epoch; ++epoch)
    ratcheted = Derive(KeyBytes(ratcheted.values()), "gpusonde noise ratchet", {});
  return ratcheted;
}

// Derived from the list's hash: a repeated request, or a restored snapshot, gets the same noise and reveals
// nothing new.
std::vector<int64_t> NoiseOf(KeyBytes key, const ListHash& list, uint64_t sigma) {
  Random random = Random::FromKey(KeyBytes(Derive(key, "gpusonde noise", list).values()));
  std::vector<int64_t> noise(kReportSlots);
  for (int64_t& draw : noise) draw = DrawGaussian(sigma, random);
  return noise;
}

MaskAnswer AnswerFrom(const ListHash& list, Slots slots) { return {list, {slots.begin(), slots.end()}}; }

Result<NoisySum> Unmask(MaskedSum sum, const ReportList& list, std::vector<MaskAnswer>&& answers) {
  const std::vector<MaskAnswer> spent = std::exchange(answers, {});  // each is used once
  if (sum.reports() != list.entries().size())
    return Fail(ErrorCode::kInvalidArgument, fmt::format("release: the sum holds {} reports, the list {}",
                                                         sum.reports(), list.entries().size()));
  NoisySum noisy{.reports = sum.reports(), .answers = static_cast<uint32_t>(spent.size()), .slots = {}};
  for (const MaskAnswer& answer : spent) {
    if (answer.list() != list.hash())
      return Fail(ErrorCode::kInvalidArgument, "release: an answer is for another list");
    sum.Subtract(answer.slots());
  }
  noisy.slots.assign(sum.slots().begin(), sum.slots().end());
  return noisy;
}

MaskDecryptor::MaskDecryptor(Rules rules, KeyBytes noise_key, uint32_t epoch)
    : rules_(rules),
      fresh_budget_(rules.epsilon, rules.delta, Rho(kSensitivity, static_cast<double>(rules.sigma))),
      noise_key_(kKeyBytes),
      noise_epoch_(epoch) {
  std::ranges::copy(noise_key, noise_key_.values().begin());
}

Status MaskDecryptor::Enrol(uint64_t device, MaskKey key) {
  if (removed_.contains(device))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("enrolment: device {} was removed; give it another id", device));
  if (!devices_.try_emplace(device, Device{std::move(key), fresh_budget_, {}}).second)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("enrolment: device {} is enrolled", device));
  return {};
}

int64_t MaskDecryptor::WindowsLeft(uint64_t device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? 0 : found->second.budget.windows_left();
}

void MaskDecryptor::Remove(uint64_t device) {
  if (devices_.erase(device) > 0) removed_.insert(device);
}

Status MaskDecryptor::Check(const ReportList& list) const {
  if (list.entries().size() < rules_.min_reports)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("report list: {} reports; at least {} are released together",
                            list.entries().size(), rules_.min_reports));
  if (list.epoch() < noise_epoch_)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("report list: the noise key of epoch {} is erased; it is of {} now", list.epoch(),
                            noise_epoch_));
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
    TRY(device.key.CheckAdvance(list.epoch()));
    if (spent == device.spent.end() && device.budget.windows_left() == 0)
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: the privacy budget of device {} is spent", entry.device));
  }
  return {};
}

Result<MaskAnswer> MaskDecryptor::Answer(const ReportList& list) {
  TRY(Check(list));
  std::vector<uint32_t> answer(kReportSlots);
  const std::span<uint32_t, kReportSlots> slots(answer);
  for (const ReportList::Entry& entry : list.entries()) {
    Device& device = devices_.at(entry.device);
    TRY(device.key.AdvanceTo(list.epoch()));
    device.key.Add({list.page(), entry.salt}, slots);
    if (device.spent.try_emplace(list.epoch(), list.hash()).second) TRY(device.budget.Spend());
  }
  const Wiped<uint8_t> noise_key = RatchetNoiseKey(KeyBytes(noise_key_.values()), noise_epoch_, list.epoch());
  const std::vector<int64_t> noise = NoiseOf(KeyBytes(noise_key.values()), list.hash(), rules_.sigma);
  for (size_t slot = 0; slot < kReportSlots; ++slot) slots[slot] -= static_cast<uint32_t>(noise[slot]);
  return MaskAnswer(list.hash(), std::move(answer));
}

void MaskDecryptor::Save(ByteWriter& out) const {
  out.Add(noise_epoch_);
  out.Add(noise_key_.values());
  out.Add(uint64_t{devices_.size()});
  for (const auto& [id, device] : devices_) {
    out.Add(id);
    device.key.Save(out);
    out.Add(static_cast<uint64_t>(device.budget.windows_left()));
    out.Add(uint64_t{device.spent.size()});
    for (const auto& [epoch, list] : device.spent) {
      out.Add(epoch);
      out.Add(std::span<const uint8_t>(list));
    }
  }
  out.Add(uint64_t{removed_.size()});
  for (const uint64_t device : removed_) out.Add(device);
}

Result<MaskDecryptor> MaskDecryptor::Load(Rules rules, ByteReader& in) {
  const auto noise_epoch = in.Read<uint32_t>();
  Wiped<uint8_t> noise_key(kKeyBytes);
  in.Read(noise_key.values());
  MaskDecryptor loaded(rules, KeyBytes(noise_key.values()), noise_epoch);
  constexpr size_t kSpentBytes = sizeof(uint32_t) + sizeof(ListHash);
  constexpr size_t kDeviceBytes = 3 * sizeof(uint64_t) + sizeof(uint32_t) + kKeyBytes;
  const size_t devices = in.ReadCount(kDeviceBytes);
  loaded.devices_.reserve(devices);
  for (size_t i = 0; i < devices; ++i) {
    const auto id = in.Read<uint64_t>();
    MaskKey key = MaskKey::Load(in);
    Device device{std::move(key), Budget(static_cast<int64_t>(in.Read<uint64_t>())), {}};
    const size_t spent = in.ReadCount(kSpentBytes);
    for (size_t k = 0; k < spent; ++k) {
      const auto epoch = in.Read<uint32_t>();
      ListHash list;
      in.Read(list);
      device.spent.emplace(epoch, list);
    }
    loaded.devices_.emplace(id, std::move(device));
  }
  const size_t removed = in.ReadCount(sizeof(uint64_t));
  for (size_t i = 0; i < removed; ++i) loaded.removed_.insert(in.Read<uint64_t>());
  if (!in.is_whole()) return Fail(ErrorCode::kCorrupt, "decryptor: its saved state is cut off");
  return loaded;
}

Status MaskDecryptor::Forget(uint32_t before_epoch) {
  noise_key_ = RatchetNoiseKey(KeyBytes(noise_key_.values()), noise_epoch_, before_epoch);
  noise_epoch_ = std::max(noise_epoch_, before_epoch);
  for (auto& [id, device] : devices_) {
    if (device.key.epoch() < before_epoch) TRY(device.key.AdvanceTo(before_epoch));
    device.spent.erase(device.spent.begin(), device.spent.lower_bound(before_epoch));
  }
  return {};
}

}  // namespace gpusonde::privacy
