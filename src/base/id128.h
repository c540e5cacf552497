// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpusonde {

// A 128-bit identifier: a content hash of a stack, location, function, binary or process. Two machines
// compute the same id for the same content without coordination.
struct Id128 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Id128&) const = default;
  bool IsZero() const { return high == 0 && low == 0; }

  // 32 lower-case hex digits, most significant first.
  std::string ToHex() const;
  // The inverse; also accepts UUID dashes. Nullopt for any other text.
  static std::optional<Id128> FromHex(std::string_view text);
};

// Builds an id from parts: IdHasher("location").Add(build_id).Add(offset).Finish(). The kind separates id
// spaces, and every part is length-prefixed, so ("ab","c") and ("a","bc") differ. XXH3-128: fast, not
// cryptographic; a process that forges a collision only confuses the names of its own frames.
class IdHasher {
 public:
  explicit IdHasher(std::string_view kind) { Add(kind); }
  IdHasher& Add(std::string_view part);
  IdHasher& Add(uint64_t part);
  IdHasher& Add(Id128 part) { return Add(part.high).Add(part.low); }
  Id128 Finish() const;

 private:
  std::string bytes_;
};

// The id of an ordered list of ids; a stack is the list of its locations, leaf first.
Id128 HashIds(std::string_view kind, std::span<const Id128> ids);

}  // namespace gpusonde

template <>
struct std::hash<gpusonde::Id128> {
  // Ids are hashes already.
  size_t operator()(const gpusonde::Id128& id) const noexcept { return id.low; }
};
