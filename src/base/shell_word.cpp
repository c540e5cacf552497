// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

namespace gpusonde {

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char character : text) {
    if (character == '\'')
      word += "'\\''";
    else
      word += character;
  }
  return word + "'";
}

}  // namespace gpusonde
