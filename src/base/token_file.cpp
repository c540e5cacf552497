// SPDX-License-Identifier: Apache-2.0
#include "base/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/regular_file.h"

namespace gpusonde {
namespace {

constexpr size_t kMinTokenBytes = 16;
constexpr size_t kMaxTokenBytes = 4096;

}  // namespace

Result<std::string> ReadToken(const std::string& path) {
  Result<Fd> opened = OpenRegular(path);
  if (!opened.has_value() && opened.error().code == ErrorCode::kNotFound)
    opened.error().message += "; write the token there that `gpusonde token new` prints";
  ASSIGN_OR_RETURN(const Fd file, std::move(opened));
  ASSIGN_OR_RETURN(std::string token, ReadRegular(file, kMaxTokenBytes + 1));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes || !printable)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the token in {} must be one line of {} to {} printable ASCII characters without "
                            "spaces, as `gpusonde token new` prints it",
                            path, kMinTokenBytes, kMaxTokenBytes));
  return token;
}

}  // namespace gpusonde
