// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gpusonde::diagnose {

struct WorkTime {
  int64_t end_ns = 0;
  int64_t length_ns = 0;
};

// A piece of GPU work, a wait for it, or an NVTX range.
struct Work {
  enum class Kind : uint8_t { kRange, kSync, kKernel, kCopy };
  Kind kind = Kind::kKernel;
  std::string_view name;  // read only during Ingest
  uint64_t shape = 0;     // a hash of grid and block, or bytes
  int64_t time_ns = 0;    // its end: it can't be reported earlier
  int64_t length_ns = 0;
};

inline uint64_t Mix(uint64_t value) {  // splitmix64's finalizer
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace gpusonde::diagnose
