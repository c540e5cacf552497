// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace gpusonde::analyze {

// A part of the memory that sorted runs may keep instead of being written to a temporary file, which the
// whole process shares; given back when it is destroyed. Thread-safe.
class RunMemory {
 public:
  // A million GPU events with their calls: writing and reading them took a tenth of such an analysis.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // Empty if there is less left.
  static std::optional<RunMemory> Take(size_t bytes) {
    if (Used().fetch_add(bytes) + bytes <= kMaxBytes) return RunMemory(bytes);
    Used() -= bytes;
    return std::nullopt;
  }
  RunMemory() = default;
  RunMemory(RunMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  RunMemory& operator=(RunMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~RunMemory() { Used() -= bytes_; }

 private:
  explicit RunMemory(size_t bytes) : bytes_(bytes) {}
  static std::atomic<size_t>& Used() {
    static std::atomic<size_t> used = 0;
    return used;
  }

  size_t bytes_ = 0;
};

// Allocates large arrays in huge pages, where the system has them for programs that ask: the first use of
// 2 MiB is one page fault then instead of 512, which take longer than writing the records to a file.
template <class T>
class RunAllocator {
 public:
  using value_type = T;

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kLargeBytes) return std::allocator<T>().allocate(count);
    const size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    while (true) {
      if (void* const memory = std::aligned_alloc(kHugePage, whole); memory != nullptr) {
        ::madvise(memory, whole, MADV_HUGEPAGE);  // without it, it is only slower
        return static_cast<T*>(memory);
      }
      const std::new_handler handler = std::get_new_handler();
      if (handler == nullptr) throw std::bad_alloc();
      handler();
    }
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kLargeBytes) return std::allocator<T>().deallocate(memory, count);
    std::free(memory);
  }
  bool operator==(const RunAllocator&) const = default;

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kLargeBytes = size_t{1} << 20;
};

}  // namespace gpusonde::analyze
