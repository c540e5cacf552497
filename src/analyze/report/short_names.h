// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpusonde::analyze {

// Names as lines of a terminal take them: escaped as base/printable.h does, at most 70 bytes. Of a long one
// its beginning and end are left, or, where several names would look the same (instances of one template
// differ in what the middle of their names says), what tells them apart.
class ShortNames {
 public:
  // Those that are shown together. They must outlive it.
  explicit ShortNames(const std::vector<std::string_view>& names);
  // Of one of those, or of any other, which isn't told apart from them then.
  std::string operator()(std::string_view name) const;

 private:
  // Of names in order, what differs.
  void TellApart(std::span<const std::string_view> names);

  std::unordered_map<std::string_view, std::vector<size_t>> differences_;  // where they are, one or two
};

}  // namespace gpusonde::analyze
