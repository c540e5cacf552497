// SPDX-License-Identifier: Apache-2.0
#include "base/html.h"

#include <algorithm>
#include <array>

#include "base/printable.h"

namespace gpusonde {
namespace {

constexpr std::string_view kNarrowNoBreakSpace = "\u202f";
constexpr std::array<std::string_view, 20> kUnits = {"%",   "ns",  "µs",  "ms", "s",  "min", "h",
                                                     "B",   "kB",  "MB",  "GB", "TB", "KiB", "MiB",
                                                     "GiB", "TiB", "MHz", "Hz", "W",  "°C"};

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool BeginsWithUnit(std::string_view text) {
  return std::ranges::any_of(kUnits, [text](std::string_view unit) {
    return text.starts_with(unit) && (text.size() == unit.size() || !IsAlphanumeric(text[unit.size()]));
  });
}

}  // namespace

std::string EscapedHtml(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string SentenceHtml(std::string_view sentence) {
  std::string out;
  size_t from = 0;
  for (size_t at = 1; at + 1 < sentence.size(); ++at) {
    if (sentence[at] != ' ' || sentence[at - 1] < '0' || sentence[at - 1] > '9') continue;
    if (!BeginsWithUnit(sentence.substr(at + 1))) continue;
    out += EscapedHtml(sentence.substr(from, at - from));
    out += kNarrowNoBreakSpace;
    from = at + 1;
  }
  return out + EscapedHtml(sentence.substr(from));
}

}  // namespace gpusonde
