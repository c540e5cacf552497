// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/stack.h"

namespace gpusonde::ebpf {

// A view of one unsymbolized stack: addresses and code objects. Doesn't own its memory.
class RawStack {
 public:
  RawStack() = default;

  // `words` has the frames of all kinds, as counted in `counts`.
  RawStack(const gpusonde_stack_counts& counts, std::span<const uint64_t> words)
      : counts_(counts), words_(words) {}

  // The stack that a BPF program emitted in `bytes` bytes; nullopt if its counts don't fit them.
  static std::optional<RawStack> FromWire(const gpusonde_stack& stack, size_t bytes) {
    const gpusonde_stack_counts& counts = stack.counts;
    const size_t words = size_t{counts.kernel_frames} + counts.user_frames + 2 * size_t{counts.python_frames};
    if (bytes < offsetof(gpusonde_stack, words) + words * sizeof(uint64_t)) return std::nullopt;
    // __u64 and uint64_t are different types of the same representation.
    return RawStack(counts, {reinterpret_cast<const uint64_t*>(stack.words), words});
  }

  // Kernel addresses, leaf first; empty when the thread ran in user mode.
  std::span<const uint64_t> kernel() const { return words_.first(counts_.kernel_frames); }
  // Addresses, leaf first.
  std::span<const uint64_t> user() const {
    return words_.subspan(counts_.kernel_frames, counts_.user_frames);
  }
  // Leaf first.
  std::span<const gpusonde_python_frame> python() const {
    const std::span<const uint64_t> words =
        words_.subspan(size_t{counts_.kernel_frames} + counts_.user_frames);
    static_assert(sizeof(gpusonde_python_frame) == 2 * sizeof(uint64_t));
    return {reinterpret_cast<const gpusonde_python_frame*>(words.data()), words.size() / 2};
  }
  // The constructor's arguments: the number of frames of each kind, and all frames.
  const gpusonde_stack_counts& counts() const { return counts_; }
  std::span<const uint64_t> words() const { return words_; }

 private:
  gpusonde_stack_counts counts_{};
  std::span<const uint64_t> words_;
};

}  // namespace gpusonde::ebpf
