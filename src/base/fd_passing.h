// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

// Messages with file descriptors between processes, on a SOCK_SEQPACKET pair (unix(7), SCM_RIGHTS). Either
// side may be untrusted: all descriptors that arrive are owned, so that none is left open.
namespace gpusonde {

inline constexpr size_t kMaxPassedFds = 3;

// Whether a call blocks until the socket has room, or a message.
enum class Wait : uint8_t { kNo, kYes };

struct FdMessage {
  std::string bytes;  // empty: the other side has gone
  std::vector<Fd> fds;
};

// Sends a message with duplicates of at most kMaxPassedFds descriptors. Errors: kUnavailable if the socket
// has no room; kNotFound if the other side has gone; kIo.
Status SendWithFds(int socket, std::string_view bytes, std::initializer_list<int> fds, Wait wait);

// Receives a message. Errors: kUnavailable if there is none; kCorrupt if it has more than `max_bytes` or
// kMaxPassedFds, or no descriptor is free here; kIo.
Result<FdMessage> ReceiveWithFds(int socket, size_t max_bytes, Wait wait);

}  // namespace gpusonde
