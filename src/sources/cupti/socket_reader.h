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

// Reads the sockets whose other ends are inherited by programs started by us. Not thread-safe.
class SocketReader {
 public:
  // The program's end, to be inherited (close-on-exec is off), and the variable that announces it.
  struct ProgramEnd {
    Fd fd;
    std::string environment;  // "NAME=value"
  };
  // Errors: kIo.
  Result<ProgramEnd> Open();

  // Visits pending batches, at most kMaxBytes of them, with the sender's pid according to the kernel.
  void Drain(const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit);

  std::vector<int> fds() const;
  model::DropCounts DrainDrops() { return drops_.Take(); }

 private:
  // More than arrives between two calls; a faster writer has to wait.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  bool DrainOne(int fd, size_t& budget,
                const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit);

  std::vector<Fd> sockets_;
  model::DropCounts drops_;
};

}  // namespace gpusonde::cupti
