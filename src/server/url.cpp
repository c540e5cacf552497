// SPDX-License-Identifier: Apache-2.0
#include "server/url.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/utf8.h"

namespace gpusonde::server {
namespace {

Result<std::string> Decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return Fail(ErrorCode::kInvalidArgument,
                    "malformed address: '%' must be followed by two hex digits; write '%' itself as %25");
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (!IsUtf8(decoded) || decoded.contains('\0'))
    return Fail(ErrorCode::kInvalidArgument, "malformed address: its text is not UTF-8 without NUL");
  return decoded;
}

}  // namespace

Result<Target> ParseTarget(std::string_view target) {
  if (!target.starts_with('/') || target.contains('#'))
    return Fail(ErrorCode::kInvalidArgument, "malformed address: it must be /path or /path?name=value&…");
  const size_t question = target.find('?');
  Target parsed;
  ASSIGN_OR_RETURN(parsed.path, Decode(target.substr(0, question), false));
  if (question == std::string_view::npos) return parsed;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    ASSIGN_OR_RETURN(std::string name, Decode(pair.substr(0, equals), true));
    ASSIGN_OR_RETURN(std::string value, Decode(pair.substr(std::min(equals + 1, pair.size())), true));
    parsed.query.emplace_back(std::move(name), std::move(value));
  }
  return parsed;
}

std::string EncodeQueryValue(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = IsLetterOrDigit(c) || c == '_';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string_view HostWithoutPort(std::string_view host) {
  size_t end = host.find(':');
  if (host.starts_with('[')) {
    const size_t bracket = host.find(']');
    if (bracket == std::string_view::npos) return {};
    end = bracket + 1;
  }
  const std::string_view name = host.substr(0, end);
  std::string_view port = host.substr(name.size());
  if (port.empty()) return name;
  port.remove_prefix(1);
  const bool is_port = host[name.size()] == ':' && port.size() <= 5 && std::ranges::all_of(port, IsDigit);
  return is_port ? name : std::string_view();
}

}  // namespace gpusonde::server
