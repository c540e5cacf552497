// SPDX-License-Identifier: Apache-2.0
#include "spool/host_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/printable.h"

namespace gpusonde::spool {
namespace {

constexpr size_t kMaxBytes = 64;

}  // namespace

Status CheckHostName(std::string_view name) {
  const bool valid = !name.empty() && name.size() <= kMaxBytes && IsLetterOrDigit(name.front()) &&
                     std::ranges::all_of(
                         name, [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
  if (valid) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not a host name: 1 to {} letters, digits, '.', '_' and '-', the first a "
                          "letter or digit",
                          Printable(name.substr(0, 2 * kMaxBytes)), kMaxBytes));
}

}  // namespace gpusonde::spool
