// SPDX-License-Identifier: Apache-2.0
#include "model/span_name.h"

#include <cstddef>

namespace gpusonde::model {
namespace {

constexpr std::string_view kDigits = "0123456789";

}  // namespace

std::string_view WithoutArguments(std::string_view name) {
  for (const std::string_view data : {", seq = ", ", op_id = "}) name = name.substr(0, name.find(data));
  return name;
}

std::string_view RepeatedName(std::string_view name) {
  name = WithoutArguments(name);
  const size_t last = name.find_last_not_of(kDigits);
  const bool numbered = last != std::string_view::npos && last + 1 < name.size() && last > 0;
  return numbered && name[last] == '#' ? name.substr(0, last) : name;
}

std::string_view WithoutVersion(std::string_view call) {
  constexpr std::string_view kMark = "_v";
  constexpr size_t kMinDigits = 4;
  const size_t last = call.find_last_not_of(kDigits);
  if (last == std::string_view::npos || call.size() - last - 1 < kMinDigits) return call;
  const std::string_view head = call.substr(0, last + 1);
  return head.ends_with(kMark) && head.size() > kMark.size() ? head.substr(0, head.size() - kMark.size())
                                                             : call;
}

}  // namespace gpusonde::model
