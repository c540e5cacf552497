// SPDX-License-Identifier: Apache-2.0
#include "store/json.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace gpusonde::store {

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7F) {
          quoted += fmt::format("\\u{:04x}", byte);
        } else if (i + 1 < text.size() && IsC1(text.substr(i, 2))) {
          quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
        } else {
          quoted += c;
        }
    }
  }
  return quoted += '"';
}

}  // namespace gpusonde::store
