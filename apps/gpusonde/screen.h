// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/event_fd.h"

namespace gpusonde::app {

// A terminal's alternate screen, drawn as a whole. The destructor restores the terminal; a signal that ends
// the program at once must be caught (stop_signal.h). Ctrl-Z does nothing meanwhile. Not thread-safe.
class Screen {
 public:
  // Standard output must be a terminal. Keys are read from standard input if it is one too.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    size_t columns = 80;
    size_t rows = 24;
    bool operator==(const Size&) const = default;
  };
  Size size() const;

  // Lines beyond the size are not drawn; each must fit into a row.
  void Draw(std::span<const std::string> lines) const;

  // Waits until a key is pressed, the event is signalled, a signal arrives or the time is over; returns the
  // key. Bytes of sequences, such as those of cursor keys, are keys of their own.
  std::optional<char> Wait(const EventFd& event, int64_t timeout_ns);

 private:
  std::optional<termios> before_;  // of standard input, if it is a terminal
  bool reads_keys_ = false;
};

}  // namespace gpusonde::app
