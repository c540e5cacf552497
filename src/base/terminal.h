// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

enum class Style { kBold, kRed, kYellow, kGreen };

// The output capabilities of a stream: output to a file or a pipe has no colour and no width.
struct Terminal {
  bool colour = false;  // a terminal, and NO_COLOR (https://no-color.org) is not set
  size_t width = 0;     // in characters; 0: unlimited, not a terminal

  static Terminal Of(int fd);

  std::string Paint(Style style, std::string_view text) const;
};

// Breaks lines longer than `width` at spaces and indents continuation lines by `indent`. Doesn't break words.
// Width 0 leaves the text unchanged.
std::string Wrap(std::string_view text, size_t width, size_t indent);

}  // namespace gpusonde
