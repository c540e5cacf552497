// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_text.h"

#include <fmt/format.h>

namespace gpusonde::symbols {

std::string PlainText(std::string_view text) {
  constexpr size_t kMaxBytes = 4096;
  std::string plain(text.substr(0, kMaxBytes));
  std::ranges::replace_if(plain, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return plain;
}

std::string FrameText(const SourceFrame& frame) {
  return fmt::format("{}\t{}\t{}\t{}\n", frame.line, frame.first_line, PlainText(frame.file),
                     PlainText(frame.function));
}

}  // namespace gpusonde::symbols
