// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/enrolment.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

namespace gpusonde::fleet {

ExchangeKey::ExchangeKey(privacy::KeyBytes secret) : secret_(privacy::kKeyBytes) {
  privacy::ReadySodium();
  std::ranges::copy(secret, secret_.values().begin());
  crypto_scalarmult_base(open_.data(), secret_.values().data());
}

Result<privacy::MaskKey> ExchangeKey::AsDevice(const ExchangeOpen& decryptor, uint64_t id,
                                               uint32_t epoch) const {
  return privacy::MaskKey::FromExchange(privacy::KeyBytes(secret_.values()), open_, decryptor, true, id,
                                        epoch);
}

Result<privacy::MaskKey> ExchangeKey::AsDecryptor(const ExchangeOpen& device, uint64_t id,
                                                  uint32_t epoch) const {
  return privacy::MaskKey::FromExchange(privacy::KeyBytes(secret_.values()), device, open_, false, id, epoch);
}

Status Directory::Add(uint64_t device, const VerifyKey& key, uint32_t first_epoch) {
  if (!members_.try_emplace(device, Member{.key = key, .first_epoch = first_epoch}).second)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("enrolment: device {} is enrolled", device));
  return {};
}

void Directory::Expel(uint64_t device, uint32_t from_epoch) {
  const auto found = members_.find(device);
  if (found != members_.end()) found->second.end_epoch = std::min(found->second.end_epoch, from_epoch);
}

const VerifyKey* Directory::Find(uint64_t device, uint32_t epoch) const {
  const auto found = members_.find(device);
  if (found == members_.end()) return nullptr;
  const Member& member = found->second;
  return epoch < member.first_epoch || epoch >= member.end_epoch ? nullptr : &member.key;
}

}  // namespace gpusonde::fleet
