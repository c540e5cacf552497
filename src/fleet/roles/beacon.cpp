// SPDX-License-Identifier: Apache-2.0
#include "fleet/roles/beacon.h"

#include <fmt/format.h>
#include <sodium.h>

#include <string_view>
#include <vector>

#include "base/little_endian.h"

namespace gpusonde::fleet {
namespace {

std::array<uint8_t, 32> Hash(std::string_view label, uint32_t epoch, std::span<const BeaconPart> parts) {
  std::vector<uint8_t> bytes(label.begin(), label.end());
  AppendLittleEndian(bytes, epoch);
  for (const BeaconPart& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  std::array<uint8_t, 32> hash;
  crypto_generichash(hash.data(), hash.size(), bytes.data(), bytes.size(), nullptr, 0);
  return hash;
}

}  // namespace

Commitment Commit(uint32_t epoch, const BeaconPart& part) {
  return Hash("gpusonde beacon part", epoch, {&part, 1});
}

Result<Beacon> Reveal(uint32_t epoch, std::span<const Commitment> commitments,
                      std::span<const BeaconPart> parts) {
  if (commitments.size() != parts.size() || parts.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("beacon: {} parts for {} commitments", parts.size(), commitments.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    if (Commit(epoch, parts[i]) != commitments[i])
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("beacon: decryptor {}'s part isn't what it committed to", i));
  return Hash("gpusonde beacon", epoch, parts);
}

}  // namespace gpusonde::fleet
