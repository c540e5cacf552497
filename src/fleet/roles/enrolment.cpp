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

Status Directory::Add(uint64_t device, const VerifyKey& key) {
  if (!keys_.try_emplace(device, key).second)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("enrolment: device {} is enrolled", device));
  return {};
}

}  // namespace gpusonde::fleet
