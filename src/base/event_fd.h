// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/fd.h"

namespace gpusonde {

// An event for poll(2): readable from Signal until Clear. Thread-safe. If the process has run out of
// descriptors it is never readable.
class EventFd {
 public:
  EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // Async-signal-safe, except that it may change errno.
  void Signal() {
    const uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof one);
  }
  void Clear() {
    uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof count);
  }
  int get() const { return fd_.get(); }

 private:
  Fd fd_;
};

}  // namespace gpusonde
