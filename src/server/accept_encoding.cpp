// SPDX-License-Identifier: Apache-2.0
#include "server/accept_encoding.h"

#include "base/ascii.h"
#include "base/text.h"

namespace gpusonde::server {
namespace {

constexpr std::string_view kBlanks = " \t";

// Whether the parameters after a coding say "never": q=0, q=0.0, …
bool IsRefused(std::string_view parameters) {
  const std::string_view text = Trimmed(parameters, kBlanks);
  if (!text.starts_with("q=") && !text.starts_with("Q=")) return false;
  return text.substr(2).find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    const size_t semicolon = item.find(';');
    const std::string_view coding = Trimmed(item.substr(0, semicolon), kBlanks);
    if (EqualsIgnoringCase(coding, "gzip") || EqualsIgnoringCase(coding, "x-gzip"))
      return semicolon == std::string_view::npos || !IsRefused(item.substr(semicolon + 1));
    if (comma == std::string_view::npos) break;
    accept_encoding.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace gpusonde::server
