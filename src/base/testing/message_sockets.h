// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <stdexcept>
#include <utility>

#include "base/fd.h"

namespace gpusonde {

// Both ends of a connection that keeps messages apart, as processes have that pass descriptors.
inline std::pair<Fd, Fd> MessageSockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no pair of sockets");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace gpusonde
