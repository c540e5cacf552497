// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <ranges>

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

std::string WithoutFolders(std::string_view command) {
  std::string text;
  for (const auto word : std::views::split(command, ' ')) {
    const std::string_view whole(word);
    if (!text.empty()) text += ' ';
    // Of "/tmp/" the name is before the last slash.
    const size_t slash = whole.starts_with('/') && whole.size() > 1 ? whole.rfind('/', whole.size() - 2)
                                                                    : std::string_view::npos;
    text += whole.substr(slash == std::string_view::npos ? 0 : slash + 1);
  }
  return text;
}

}  // namespace gpusonde
