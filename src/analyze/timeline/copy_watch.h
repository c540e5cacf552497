// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/records.h"

namespace gpusonde::analyze {

// The relation in time of a copy and a kernel on one device, and the kind of copy.
struct CopyClass {
  bool after = false;  // the kernel began at most 10 µs after the copy, the device's last event, had ended;
                       // Otherwise they overlap.
  importers::CopyKind kind = importers::CopyKind::kUnknown;
  importers::MemoryKind host_memory = importers::MemoryKind::kUnknown;  // pageable, pinned, or neither
  uint8_t size = 0;                                                     // in kCopySizes

  static constexpr uint16_t kCount = 2 * 8 * 8 * 4;
  constexpr uint16_t Pack() const {
    return static_cast<uint16_t>(((after ? 1 : 0) * 8 + static_cast<int>(kind)) * 32 +
                                 static_cast<int>(host_memory) * 4 + size);
  }
  // Whether the number is a valid result of Pack.
  static constexpr bool IsPacked(uint16_t packed) {
    const CopyClass copy = Unpack(packed);
    return packed < kCount && copy.kind <= importers::CopyKind::kHostToHost &&
           copy.host_memory <= importers::MemoryKind::kManaged && copy.size < 3;
  }
  static constexpr CopyClass Unpack(uint16_t packed) {
    return {.after = packed >= kCount / 2,
            .kind = static_cast<importers::CopyKind>(packed / 32 % 8),
            .host_memory = static_cast<importers::MemoryKind>(packed / 4 % 8),
            .size = static_cast<uint8_t>(packed % 4)};
  }
};

// Below 64 KiB a copy is all latency; above 1 MiB it runs at the link's full rate.
inline constexpr std::array kCopySizes = {std::string_view("under_64k"), std::string_view("64k_to_1m"),
                                          std::string_view("1m_and_more")};

// A kernel with a copy beside or before it.
struct WatchedKernel {
  uint64_t stratum = 0;  // the caller's own
  int32_t log = 0;       // the caller's own
  CopyClass copy;
};

// Finds the kernels of one device that run beside or right after a copy. Events are added by start time. Of
// several copies beside a kernel, the one with the longest overlap counts; beside takes precedence over
// after.
class CopyWatch {
 public:
  // Append kernels with a copy, once it is known that no other one is beside them for longer, to `known`.
  void Kernel(const GpuRecord& event, uint64_t stratum, int32_t log, std::vector<WatchedKernel>& known);
  void Copy(const GpuRecord& event, std::vector<WatchedKernel>& known);
  // Any other event of the device.
  void Other(const GpuRecord& event) { last_ = {.end_ns = event.end_ns}; }
  void Finish(std::vector<WatchedKernel>& known);

 private:
  struct Active {
    int64_t end_ns = 0;
    CopyClass copy;
  };
  struct Pending {
    int64_t end_ns = 0;
    int64_t overlap_ns = 0;
    WatchedKernel kernel;
    bool has_copy = false;
  };
  // The device's last event.
  struct Last {
    int64_t end_ns = 0;
    std::optional<CopyClass> copy = std::nullopt;
  };

  // Releases copies and kernels that ended before `now_ns`, and the oldest beyond kMaxAtOnce.
  void Advance(int64_t now_ns, std::vector<WatchedKernel>& known);
  static void Overlap(Pending& pending, int64_t overlap_ns, const CopyClass& copy);

  // Devices run at most 128 kernels at once and have fewer copy engines.
  static constexpr size_t kMaxAtOnce = 256;

  std::vector<Active> copies_;
  std::vector<Pending> kernels_;
  Last last_;
};

}  // namespace gpusonde::analyze
