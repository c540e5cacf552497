// SPDX-License-Identifier: Apache-2.0
#include "otlp/headers_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/ascii.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace gpusonde::otlp {
namespace {

constexpr size_t kMaxHeaders = 32;
constexpr size_t kMaxFileBytes = 16 << 10;
constexpr std::string_view kBlanks = " \t\r";

// What delimits or describes the request: another value would change its meaning.
constexpr std::array<std::string_view, 9> kOwnHeaders = {
    "connection", "content-encoding",  "content-length", "content-type", "expect", "host",
    "te",         "transfer-encoding", "upgrade"};

// The characters of a header's name (RFC 9110, section 5.6.2).
bool IsTokenCharacter(char c) {
  return IsLetterOrDigit(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

}  // namespace

Result<std::vector<net::HttpHeader>> ReadHeaders(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd file, OpenRegular(path));
  ASSIGN_OR_RETURN(const std::string text, ReadRegular(file, kMaxFileBytes + 1));
  if (text.size() > kMaxFileBytes)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has more than {} bytes of headers", path, kMaxFileBytes));
  std::vector<net::HttpHeader> headers;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = Trimmed(TakeLine(rest), kBlanks);
    if (line.empty() || line.front() == '#') continue;
    const auto refuse = [&](std::string_view why) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("line {} of {}: {}", number, path, why));
    };
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 ||
        !std::ranges::all_of(line.substr(0, colon), IsTokenCharacter))
      return refuse("not a header as in 'Authorization: Bearer abc'");
    const std::string name(line.substr(0, colon));
    const std::string value(Trimmed(line.substr(colon + 1), kBlanks));
    if (!std::ranges::all_of(value, [](char c) { return c >= ' ' && c < '\x7f'; }))
      return refuse("the value has other characters than printable ASCII");
    if (std::ranges::any_of(kOwnHeaders, [&](std::string_view own) { return EqualsIgnoringCase(own, name); }))
      return refuse(fmt::format("gpusonde sets the header {} itself", name));
    if (headers.size() == kMaxHeaders) return refuse(fmt::format("more than {} headers", kMaxHeaders));
    headers.push_back({.name = name, .value = value});
  }
  return headers;
}

}  // namespace gpusonde::otlp
