// SPDX-License-Identifier: Apache-2.0
#include "base/id128.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "base/ascii.h"

namespace gpusonde {
namespace {

Id128 Hash(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.high64, hash.low64};
}

void AppendNumber(std::string& bytes, uint64_t value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof raw);
}

}  // namespace

std::string Id128::ToHex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Id128> Id128::FromHex(std::string_view text) {
  Id128 id;
  int digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int digit = HexDigit(c);
    if (digit < 0 || ++digits > 32) return std::nullopt;
    id.high = id.high << 4 | id.low >> 60;
    id.low = id.low << 4 | static_cast<uint64_t>(digit);
  }
  if (digits != 32) return std::nullopt;
  return id;
}

IdHasher& IdHasher::Add(std::string_view part) {
  AppendNumber(bytes_, part.size());
  bytes_.append(part);
  return *this;
}

IdHasher& IdHasher::Add(uint64_t part) {
  AppendNumber(bytes_, part);
  return *this;
}

Id128 IdHasher::Finish() const { return Hash(bytes_.data(), bytes_.size()); }

Id128 HashIds(std::string_view kind, std::span<const Id128> ids) {
  IdHasher hasher(kind);
  for (const Id128& id : ids) hasher.Add(id);
  return hasher.Finish();
}

}  // namespace gpusonde
