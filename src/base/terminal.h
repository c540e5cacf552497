// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusonde {

enum class Style { kBold, kRed, kYellow, kGreen };

// What a stream shows to a person: nothing is coloured or fitted to a width when it goes to a file or a pipe.
struct Terminal {
  bool colour = false;  // a terminal, and NO_COLOR (https://no-color.org) is not set
  size_t width = 0;     // in characters; 0: any, it is no terminal

  static Terminal Of(int fd);

  std::string Paint(Style style, std::string_view text) const;
};

// Breaks lines that are longer than `width` at spaces; what follows a break is indented by `indent`. A word
// that is longer than a line stays whole. Width 0 leaves the text as it is.
std::string Wrap(std::string_view text, size_t width, size_t indent);

}  // namespace gpusonde
