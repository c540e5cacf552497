// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/drops.h"

namespace gpusonde::cupti {

// Our end of the sockets that programs started by us inherit. Not thread-safe.
class SocketReader {
 public:
  // The program's end, to be inherited (close-on-exec is off), and what its environment has to say about it.
  struct ProgramEnd {
    Fd fd;
    std::string environment;  // "NAME=value"
  };
  // Errors: kIo.
  Result<ProgramEnd> Open();

  // Hands over every batch that waits, at most kMostBytes of them, with the sender's pid as the kernel says.
  void Drain(const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit);

  std::vector<int> fds() const;
  model::DropCounts TakeDrops() { return drops_.Take(); }

 private:
  // More than arrives between two calls; whoever writes faster than we read waits.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  bool DrainOne(int fd, size_t& budget,
                const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit);

  std::vector<Fd> sockets_;
  model::DropCounts drops_;
};

}  // namespace gpusonde::cupti
