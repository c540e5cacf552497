// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/masks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/little_endian.h"

namespace gpusonde::privacy {
namespace {

constexpr uint32_t kMaxStep = 366 * 24;

// Restricted pointers, so that g++ vectorises the addition at -O2, where its cost model allows no run-time
// check for overlap. The operands never overlap.
void AddSlots(std::span<uint32_t, kReportSlots> to, Slots from) {
  uint32_t* __restrict const sums = to.data();
  const uint32_t* __restrict const summands = from.data();
  for (size_t i = 0; i < kReportSlots; ++i) sums[i] += summands[i];
}

}  // namespace

Result<MaskKey> MaskKey::FromExchange(KeyBytes own_secret, KeyBytes device_public, KeyBytes decryptor_public,
                                      bool we_are_the_device, uint64_t device, uint32_t epoch) {
  ReadySodium();
  Wiped<uint8_t> shared(kKeyBytes);
  const KeyBytes theirs = we_are_the_device ? decryptor_public : device_public;
  if (crypto_scalarmult(shared.values().data(), own_secret.data(), theirs.data()) != 0)
    return Fail(ErrorCode::kInvalidArgument, "enrolment: the other side's public key is of small order");
  std::vector<uint8_t> parties(device_public.begin(), device_public.end());
  parties.insert(parties.end(), decryptor_public.begin(), decryptor_public.end());
  AppendLittleEndian(parties, device);
  AppendLittleEndian(parties, epoch);
  return MaskKey(Derive(KeyBytes(shared.values()), "gpusonde mask key", parties), epoch);
}

void MaskKey::Save(ByteWriter& out) const {
  out.Add(epoch_);
  out.Add(key_.values());
}

MaskKey MaskKey::Load(ByteReader& in) {
  const auto epoch = in.Read<uint32_t>();
  Wiped<uint8_t> key(kKeyBytes);
  in.Read(key.values());
  return {std::move(key), epoch};
}

Status MaskKey::CheckAdvance(uint32_t epoch) const {
  if (epoch < epoch_ || epoch - epoch_ > kMaxStep)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("mask key: epoch {} can't be reached from {}", epoch, epoch_));
  return {};
}

Status MaskKey::AdvanceTo(uint32_t epoch) {
  TRY(CheckAdvance(epoch));
  for (; epoch_ < epoch; ++epoch_) key_ = Derive(KeyBytes(key_.values()), "gpusonde mask ratchet", {});
  return {};
}

void MaskKey::Add(const MaskUse& use, std::span<uint32_t, kReportSlots> slots) const {
  std::vector<uint8_t> purpose;
  AppendLittleEndian(purpose, epoch_);
  AppendLittleEndian(purpose, use.page);
  purpose.insert(purpose.end(), use.salt.begin(), use.salt.end());
  const Wiped<uint8_t> stream_key = Derive(KeyBytes(key_.values()), "gpusonde mask", purpose);
  constexpr uint8_t kNonce[crypto_stream_chacha20_ietf_NONCEBYTES] = {};
  Wiped<uint32_t> mask(kReportSlots);
  crypto_stream_chacha20_ietf(reinterpret_cast<uint8_t*>(mask.values().data()), mask.values().size_bytes(),
                              kNonce, stream_key.values().data());
  AddSlots(slots, Slots(mask.values()));
}

std::vector<uint32_t> MaskReport(Slots message, std::span<const MaskKey> keys, const MaskUse& use) {
  std::vector<uint32_t> report(message.begin(), message.end());
  for (const MaskKey& key : keys) key.Add(use, std::span<uint32_t, kReportSlots>(report));
  return report;
}

void MaskedSum::Add(Slots report) {
  AddSlots(std::span<uint32_t, kReportSlots>(slots_), report);
  ++reports_;
}

void MaskedSum::Add(const MaskedSum& other) {
  AddSlots(std::span<uint32_t, kReportSlots>(slots_), other.slots());
  reports_ += other.reports_;
}

void MaskedSum::Subtract(Slots answer) {
  for (size_t i = 0; i < kReportSlots; ++i) slots_[i] -= answer[i];
}

}  // namespace gpusonde::privacy
