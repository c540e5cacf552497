// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/display_width.h"

namespace gpusonde {
namespace {

// In narrower windows, wrapped text is harder to read than unwrapped.
constexpr size_t kMinWidth = 40;

std::string_view Code(Style style) {
  switch (style) {
    case Style::kBold:
      return "\x1b[1m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kGreen:
      return "\x1b[32m";
  }
  return "";
}

void WrapLine(std::string& out, std::string_view line, size_t width, size_t indent) {
  size_t column = 0;
  bool line_has_word = false;
  while (!line.empty()) {
    const size_t word = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', word), line.size());
    const size_t length = DisplayWidth(line.substr(word, end - word));
    if (line_has_word && length > 0 && column + word + length > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent + length;
      out += line.substr(word, end - word);
    } else {
      out += line.substr(0, end);
      column += word + length;
    }
    line_has_word |= length > 0;
    line.remove_prefix(end);
  }
}

}  // namespace

Terminal Terminal::Of(int fd) {
  if (::isatty(fd) == 0) return {};
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  Terminal terminal{.colour = (no_color == nullptr || *no_color == '\0') &&
                              (term == nullptr || std::string_view(term) != "dumb")};
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = std::max<size_t>(size.ws_col, kMinWidth);
  return terminal;
}

std::string Terminal::Paint(Style style, std::string_view text) const {
  return colour ? fmt::format("{}{}\x1b[0m", Code(style), text) : std::string(text);
}

std::string Wrap(std::string_view text, size_t width, size_t indent) {
  if (width == 0) return std::string(text);
  std::string wrapped;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    WrapLine(wrapped, text.substr(at, end - at), width, indent);
    if (end < text.size()) wrapped += '\n';
    at = end + 1;
  }
  return wrapped;
}

}  // namespace gpusonde
