// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace gpusonde::symbols {

// Memory of another process. Its content is untrusted, may change between two reads, and may be gone.
class Memory {
 public:
  virtual ~Memory() = default;

  // Fills `out` from `address` on; false if any of it could not be read.
  virtual bool Read(uint64_t address, std::span<std::byte> out) const = 0;

  // A number or plain struct at `address`.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::optional<T> ReadAs(uint64_t address) const {
    T value;
    if (!Read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
  }
};

// A running process's memory, through process_vm_readv(2): root or CAP_SYS_PTRACE may, and a process's own
// user where ptrace is allowed. Needs no descriptor; a process that has ended reads as nothing.
class ProcessMemory : public Memory {
 public:
  explicit ProcessMemory(int32_t pid) : pid_(pid) {}
  bool Read(uint64_t address, std::span<std::byte> out) const override;

 private:
  int32_t pid_;
};

}  // namespace gpusonde::symbols
