// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::analyze {

// Shortens names for terminals: escaped as in base/printable.h, at most 70 bytes. A long name keeps its
// beginning and end or, if several names would then look the same (instances of one template differ in the
// middle), the part that distinguishes them.
class ShortNames {
 public:
  // The names that are shown together. They must outlive this object.
  explicit ShortNames(const std::vector<std::string_view>& names);
  // One of those names, shortened; any other name is not distinguished from them.
  std::string operator()(std::string_view name) const;

 private:
  // Finds the differences of sorted names.
  void Disambiguate(std::span<const std::string_view> names);

  std::unordered_map<std::string_view, std::vector<size_t>> differences_;  // where they are, one or two
};

}  // namespace gpusonde::analyze
