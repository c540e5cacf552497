// SPDX-License-Identifier: Apache-2.0
#include "symbols/process_memory.h"

#include <sys/uio.h>

namespace gpusonde::symbols {

bool ProcessMemory::Read(uint64_t address, std::span<std::byte> out) const {
  const iovec local{.iov_base = out.data(), .iov_len = out.size()};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = out.size()};
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(out.size());
}

}  // namespace gpusonde::symbols
