// SPDX-License-Identifier: Apache-2.0
#include "screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/time.h"

namespace gpusonde::app {
namespace {

// xterm's control sequences, which all terminals in use understand.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseLine = "\x1b[2K";
constexpr std::string_view kEraseBelow = "\x1b[J";

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;  // a terminal that is gone also sends SIGHUP
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Screen::Screen() {
  if (termios mode{}; ::tcgetattr(STDIN_FILENO, &mode) == 0) {
    before_ = mode;
    reads_keys_ = true;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VSUSP] = _POSIX_VDISABLE;
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &mode);
  }
  Write(kEnter);
}

Screen::~Screen() {
  Write(kLeave);
  if (before_.has_value()) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
}

Screen::Size Screen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void Screen::Draw(std::span<const std::string> lines) const {
  std::string text(kHome);
  for (size_t i = 0; i < std::min(lines.size(), size().rows); ++i) {
    if (i > 0) text += "\r\n";
    // Before the line: behind one as wide as the screen, some terminals erase its last character.
    text += kEraseLine;
    text += lines[i];
  }
  if (lines.size() < size().rows) (text += "\r\n") += kEraseBelow;
  Write(text);
}

std::optional<char> Screen::Wait(const EventFd& event, int64_t timeout_ns) {
  std::array<pollfd, 2> waiting{{{.fd = event.get(), .events = POLLIN, .revents = 0},
                                 {.fd = reads_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
  const int64_t timeout_ms = std::clamp<int64_t>(timeout_ns / kNanosPerMilli, 0, 60'000);
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(timeout_ms)) <= 0) return std::nullopt;
  if (waiting[1].revents == 0) return std::nullopt;
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) == 1) return key;
  reads_keys_ = false;  // the terminal is gone
  return std::nullopt;
}

}  // namespace gpusonde::app
