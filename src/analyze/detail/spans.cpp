// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/spans.h"

namespace gpusonde::analyze {

std::string_view WithoutArguments(std::string_view name) {
  for (const std::string_view data : {", seq = ", ", op_id = "}) name = name.substr(0, name.find(data));
  return name;
}

std::string_view RepeatedName(std::string_view name) {
  name = WithoutArguments(name);
  const size_t last = name.find_last_not_of("0123456789");
  const bool numbered = last != std::string_view::npos && last + 1 < name.size() && last > 0;
  return numbered && name[last] == '#' ? name.substr(0, last) : name;
}

}  // namespace gpusonde::analyze
